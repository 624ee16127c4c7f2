// refused: static.assert.*on_recv: the function must take the channel's value_type
//
// The message names the channel: see on_recv_names_the_channel.
#include <gofer/select.h>

#include <string>

void receive(const gofer::chan<std::string>& c) {
  gofer::select(gofer::on_recv(c, [](int*) {}));
}
