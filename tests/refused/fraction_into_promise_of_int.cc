// refused: (use of deleted function .*set_value|call to deleted member function 'set_value')
//
// 3 would be the result.
#include <gofer/future.h>

void give(gofer::promise<int>& p) { p.set_value(3.7); }
