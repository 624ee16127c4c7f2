// refused: .*(nodiscard|-Wunused-result|unused)
//
#include <gofer/timer.h>

void drop(const gofer::context& ctx) { gofer::sleep_for(ctx, std::chrono::seconds(1)); }
