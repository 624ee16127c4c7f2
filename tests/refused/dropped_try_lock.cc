// refused: .*(nodiscard|-Wunused-result|unused)
//
#include <gofer/mutex.h>

void drop(gofer::mutex& x) { x.try_lock(); }
