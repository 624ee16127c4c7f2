// refused: .*constraint
//
#include <gofer/chan.h>

gofer::chan<void> c(1);
