// refused: .*(nodiscard|-Wunused-result|unused)
//
#include <gofer/timer.h>

void drop() { gofer::after(std::chrono::seconds(1)); }
