// refused: (use of deleted function .*send|call to deleted member function 'send')
//
// 3 would be sent.
#include <gofer/chan.h>

void send(const gofer::chan<int>& c) { c.send(3.7); }
