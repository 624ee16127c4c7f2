// refused: no matching .*function for call to .*set_value
//
// The value of a vector's explicit constructor, five zeros, is not meant.
#include <gofer/future.h>

#include <vector>

void give(gofer::promise<std::vector<int>>& p) { p.set_value(5); }
