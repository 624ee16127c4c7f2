// refused: .*(nodiscard|-Wunused-result|unused)
//
#include <gofer/select.h>

void drop(const gofer::chan<int>& x) { gofer::on_recv(x); }
