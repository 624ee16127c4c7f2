// refused: static.assert.*on_send: a floating-point value would lose its fraction
//
// The same in a select.
#include <gofer/select.h>

void send(const gofer::chan<int>& c) { gofer::select(gofer::on_send(c, 3.7)); }
