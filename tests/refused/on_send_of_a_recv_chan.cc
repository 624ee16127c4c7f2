// refused: no matching function.*on_send
//
// A recv_chan does not send, in a select either.
#include <gofer/select.h>

void send(const gofer::recv_chan<int>& c) { gofer::select(gofer::on_send(c, 1)); }
