// What a workload is, and how it joins the table: everything that the files of bench/ share.
//
// A workload is one function; a file ends with a `suite` that names its workloads. No other file
// has to know of it. The Go side has the same functions under the same names (peers/go), and
// run.py has the bars.
#pragma once

#include <chrono>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace bench {

/// What calls the function: the main goroutine of gofer::run, or the main thread with no runtime
/// around it.
enum class model { goroutine, thread };

/// One call of a workload: its size, its name, and where its figures go.
struct job {
  long n;
  int procs;
  std::string_view name;

  /// Prints one line: NAME procs=P value=V unit=U. A workload may print several.
  void report(std::string_view name, double value, std::string_view unit) const;
};

struct workload {
  std::string_view name;
  void (*body)(const job&);
  long n;  ///< the size unless the command line has another
  model runs_in = model::goroutine;
};

/// The workloads of one file, known to main() by their mere definition.
class suite {
 public:
  suite(std::initializer_list<workload> workloads);
  static const workload* find(std::string_view name);
  static const std::vector<workload>& all();
};

/// Ends the process with a message unless ok: a wrong result has no speed.
void check(bool ok, const char* what);

class stopwatch {
 public:
  double ns() const {
    return std::chrono::duration<double, std::nano>(clock::now() - start_).count();
  }
  double ns_each(long count) const { return ns() / static_cast<double>(count); }

 private:
  using clock = std::chrono::steady_clock;
  clock::time_point start_ = clock::now();
};

inline constexpr double ns_per_ms = 1e6;

/// What this process has of the machine's memory.
struct memory {
  long resident_bytes;
  long page_table_bytes;
};
memory read_memory();

/// fib(n), plainly: what the workloads must come to, and how many they start for it.
long fib_value(long n);
/// How many left branches fib(n) has: one for every call with n >= 2.
long fib_branches(long n);

}  // namespace bench
