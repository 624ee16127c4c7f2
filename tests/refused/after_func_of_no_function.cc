// refused: no matching function.*after_func
//
#include <gofer/timer.h>

void start() { gofer::after_func(std::chrono::seconds(1), 5); }
