#include "runtime/trace/writer.h"

#include <cerrno>

namespace gofer::internal::tracer {

void Writer::write_state() {
  s_.stated_in = generation_;
  if (s_.p != nullptr) {
    mention(s_.p, s_.in_call ? ProcStatus::in_call : ProcStatus::running);
  }
  if (s_.g != nullptr) mention(s_.g, s_.in_call ? GoStatus::in_call : GoStatus::running, s_.m);
}

void Writer::begin_records(Buffer* b) {
  b->records = true;
  b->data()[0] = gofer_records_version;
  b->used = 1;
}

void Writer::fail_for_count() { fail(EOVERFLOW); }

}  // namespace gofer::internal::tracer
