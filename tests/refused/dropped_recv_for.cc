// refused: .*(nodiscard|-Wunused-result|unused)
//
#include <gofer/chan.h>

#include <chrono>

void drop(const gofer::chan<int>& x) { x.recv_for(std::chrono::seconds(1)); }
