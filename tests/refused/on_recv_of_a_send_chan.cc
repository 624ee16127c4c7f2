// refused: no matching function.*on_recv
//
// A send_chan does not receive, in a select either.
#include <gofer/select.h>

void receive(const gofer::send_chan<int>& c) { gofer::select(gofer::on_recv(c)); }
