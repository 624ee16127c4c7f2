// refused: .*(nodiscard|-Wunused-result|unused)
//
#include <gofer/context.h>

void drop(const gofer::context& x) { gofer::with_cancel(x); }
