// refused: static.assert.*on_recv: the variable must be a std::optional of the channel's value_type
//
#include <gofer/select.h>

void receive(const gofer::chan<int>& c) {
  std::optional<long> value;
  gofer::select(gofer::on_recv(c, value));
}
