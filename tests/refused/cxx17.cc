// the only error: .*Gofer needs C..20
// with: -std=c++17
#include <gofer/gofer.h>
