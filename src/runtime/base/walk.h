// A walk over a table of records whose places are filled from the front and never emptied.
#pragma once

#include <cstddef>

#include "runtime/base/atomic.h"

namespace gofer::internal {

/// For range-based for: ends at the end of the table, or at its first empty place.
template <class T>
class Walk {
 public:
  Walk(const atomic<T*>* first, const atomic<T*>* end) : at_(first), end_(end) { look(); }
  Walk begin() const { return *this; }
  std::nullptr_t end() const { return nullptr; }
  T* operator*() const { return record_; }
  Walk& operator++() {
    ++at_;
    look();
    return *this;
  }
  bool operator!=(std::nullptr_t) const { return record_ != nullptr; }

 private:
  void look() { record_ = at_ != end_ ? at_->load(acquire) : nullptr; }
  const atomic<T*>* at_;
  const atomic<T*>* end_;
  T* record_ = nullptr;
};

}  // namespace gofer::internal
