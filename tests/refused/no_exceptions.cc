// the only error: .*Gofer needs exceptions
// with: -fno-exceptions
#include <gofer/gofer.h>
