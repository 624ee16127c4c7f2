// says: received_by<gofer::chan<int>
//
// A reader of the message sees which channel it is about.
#include <gofer/select.h>

void receive(const gofer::chan<int>& c) {
  gofer::select(gofer::on_recv(c, [](int*) {}));
}
