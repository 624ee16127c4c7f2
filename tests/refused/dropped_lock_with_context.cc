// refused: .*(nodiscard|-Wunused-result|unused)
//
#include <gofer/mutex.h>

void drop(gofer::mutex& x, const gofer::context& ctx) { x.lock(ctx); }
