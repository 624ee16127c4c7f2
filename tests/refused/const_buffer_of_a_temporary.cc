// refused: (conversion from|no viable conversion from) .*const_buffer
//
// The view would outlive the string. As an argument of write_all a temporary is fine.
#include <gofer/buffer.h>

#include <string>

std::size_t size_of_nothing() {
  gofer::const_buffer b = std::string("temp");
  return b.size();
}
