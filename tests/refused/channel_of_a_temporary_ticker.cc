// refused: (use of deleted function .*ticker::c\(|call to deleted member function 'c')
//
// The ticker is destroyed before the loop begins, so nothing would ever be received.
#include <gofer/timer.h>

void tick(void (*f)()) {
  for ([[maybe_unused]] auto t : gofer::ticker(std::chrono::seconds(1)).c()) f();
}
