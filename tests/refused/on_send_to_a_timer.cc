// refused: no matching function.*on_send
//
#include <gofer/select.h>
#include <gofer/timer.h>

void send(const gofer::time_chan& c) { gofer::select(gofer::on_send(c, gofer::time_point())); }
