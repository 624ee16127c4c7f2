// refused: .*(nodiscard|-Wunused-result|unused)
//
#include <gofer/net.h>

void drop() { gofer::net::dial("localhost:80"); }
