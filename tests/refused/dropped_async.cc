// refused: .*(nodiscard|-Wunused-result|unused)
//
#include <gofer/future.h>

void drop(int (*x)()) { gofer::async(x); }
