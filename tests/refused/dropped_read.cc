// refused: .*(nodiscard|-Wunused-result|unused)
//
#include <gofer/fd.h>

void drop(const gofer::fd& x, gofer::buffer to) { x.read(to); }
