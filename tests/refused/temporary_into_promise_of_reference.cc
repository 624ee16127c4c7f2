// refused: no matching .*function for call to .*set_value
//
// The int is gone before get() returns a reference to it.
#include <gofer/future.h>

void give(gofer::promise<const int&>& p) { p.set_value(5); }
