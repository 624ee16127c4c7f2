// Writes JSON text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "trace/reader/error.h"
#include "trace/text.h"

namespace gofer::tool {

/// Writes one JSON value after the other, with the commas between them.
class Json {
 public:
  Json& open(char bracket) {
    separate();
    out_ += bracket;
    first_ = true;
    return *this;
  }
  Json& close(char bracket) {
    out_ += bracket;
    first_ = false;
    return *this;
  }
  Json& key(std::string_view name) {
    separate();
    out_ += json_string(name) + ":";
    first_ = true;
    return *this;
  }
  template <class Number>
  requires std::is_arithmetic_v<Number> Json& field(std::string_view name, Number value) {
    key(name);
    return raw(std::to_string(value));
  }
  Json& field(std::string_view name, std::string_view value) {
    key(name);
    return raw(json_string(value));
  }
  template <class Number>
  requires std::is_arithmetic_v<Number> Json& value(Number value) {
    return raw(std::to_string(value));
  }
  Json& value(std::string_view value) { return raw(json_string(value)); }
  /// An id, or null.
  Json& id(std::string_view name, uint64_t value) {
    key(name);
    return raw(value == none ? "null" : std::to_string(value));
  }
  std::string take() { return std::move(out_) + "\n"; }

 private:
  Json& raw(const std::string& text) {
    separate();
    out_ += text;
    return *this;
  }
  void separate() {
    if (!first_) out_ += ',';
    first_ = false;
  }

  std::string out_;
  bool first_ = true;
};

}  // namespace gofer::tool
