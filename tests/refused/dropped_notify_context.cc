// refused: .*(nodiscard|-Wunused-result|unused)
//
// The signals would do nothing from then on.
#include <gofer/signal.h>

#include <csignal>

void drop() { gofer::notify_context(gofer::background(), {SIGINT}); }
