// refused: .*constraint
//
#include <gofer/chan.h>

gofer::chan<const int> c(1);
