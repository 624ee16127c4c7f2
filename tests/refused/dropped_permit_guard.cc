// refused: .*(nodiscard|-Wunused-result|unused)
//
// It would give the permit back at once.
#include <gofer/semaphore.h>

void drop(gofer::semaphore& s) { gofer::permit_guard{s}; }
