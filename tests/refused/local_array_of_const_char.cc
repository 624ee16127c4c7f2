// refused: (.*is not a constant expression|call to consteval function)
//
// Text with a final zero, or four bytes? The compiler cannot tell a local array from a string
// literal.
#include <gofer/buffer.h>

std::size_t size_of(gofer::const_buffer b) { return b.size(); }

std::size_t size_of_local_array() {
  const char bytes[] = {1, 2, 3, 0};
  return size_of(bytes);
}
