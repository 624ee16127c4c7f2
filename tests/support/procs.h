// Another number of processors for one scope.
#pragma once

#include <gofer/go.h>

namespace gofer::test {

class Procs {
 public:
  explicit Procs(int n) : before_(gomaxprocs(n)) {}
  ~Procs() { gomaxprocs(before_); }
  Procs(const Procs&) = delete;
  Procs& operator=(const Procs&) = delete;

 private:
  int before_;
};

}  // namespace gofer::test
