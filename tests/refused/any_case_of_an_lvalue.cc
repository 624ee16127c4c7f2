// refused: no matching.*push_back
//
// A case is moved into the vector.
#include <gofer/select.h>

#include <vector>

void add(std::vector<gofer::any_case>& cases, const gofer::chan<int>& c) {
  auto one = gofer::on_recv(c);
  cases.push_back(one);
}
