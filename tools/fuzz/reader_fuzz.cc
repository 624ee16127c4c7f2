// libFuzzer's entry: everything that reads a trace, on any bytes. Nothing may happen but an error.
//
// Half of the inputs begin with a valid header, so that the fuzzer need not find one.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "trace/order/reader.h"
#include "trace/perfetto/convert.h"
#include "trace/summary/summary.h"
#include "trace/view/timeline.h"

namespace {

using namespace gofer::tool;

void read(std::span<const uint8_t> bytes) {
  size_t written = 0;
  try {
    Reader reader(open_bytes(bytes));
    Summary summary(reader.names(), 5);
    PerfettoConverter perfetto(reader.names(), {.all = true, .ids = {}},
                               [&](std::string_view portion) { written += portion.size(); });
    Timeline timeline(reader.names(), [&](std::string_view block) { written += block.size(); });
    const auto finish = [&](const std::string& damage) {
      summary.finish();
      perfetto.finish();
      written += timeline.finish(reader, "fuzz", damage).size();
      written += to_text(summary, reader, 0).size() + to_json(summary, reader).size();
    };
    std::string damage;
    try {
      Event event;
      while (reader.next(event)) {
        written += describe(event).size();
        summary.add(event);
        perfetto.add(event);
        timeline.add(event);
      }
    } catch (const TraceError& error) {
      damage = error.what();
    }
    finish(damage);
  } catch (const FileError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr const char* headers[] = {"go 1.22 trace\0\0", "go 1.23 trace\0\0", "go 1.25 trace\0\0",
                                     "go 1.26 trace\0\0"};
  if (data[0] < 4) {
    std::vector<uint8_t> bytes(headers[data[0]], headers[data[0]] + 16);
    bytes.insert(bytes.end(), data + 1, data + size);
    read(bytes);
  } else {
    read({data, size});
  }
  return 0;
}
