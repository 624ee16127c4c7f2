// Starts the runtime, and leaves at once: what a sanitizer says of switches it was not told of is
// not the point.
#include <gofer/gofer.h>
#include <unistd.h>

int main() {
  gofer::go([] {});
  _exit(0);
}
