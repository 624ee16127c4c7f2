// refused: .*(nodiscard|-Wunused-result|unused)
//
// It would cancel at once.
#include <gofer/context.h>

void drop(const gofer::cancel_func& cancel) { gofer::cancel_guard{cancel}; }
