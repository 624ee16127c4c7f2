// The table of a singleflight: a std::map that knows its keys by their addresses.
#include <gofer/singleflight.h>

#include <map>
#include <stdexcept>

namespace gofer::detail {

struct key_table::tree {
  using less = bool (*)(const void* a, const void* b);
  std::map<const void*, void*, less> values;
};

key_table::key_table(bool (*less)(const void* a, const void* b))
    : tree_(new tree{std::map<const void*, void*, tree::less>(less)}) {}

key_table::~key_table() = default;

void* key_table::find(const void* key) const {
  const auto found = tree_->values.find(key);
  return found == tree_->values.end() ? nullptr : found->second;
}

void key_table::insert(const void* key, void* value) { tree_->values.emplace(key, value); }

void key_table::erase(const void* key) { tree_->values.erase(key); }

std::exception_ptr ended_by_goexit() {
  return std::make_exception_ptr(
      std::runtime_error("gofer::singleflight: the call that was shared ended by goexit()"));
}

}  // namespace gofer::detail
