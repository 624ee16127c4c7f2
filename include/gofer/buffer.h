// buffer and const_buffer: where bytes go, and where they come from.
//
//   char line[512];
//   const std::size_t n = in.read(line);        // any array, span, vector or string of bytes
//   out.write_all({line, n});                   // or a pointer and a size
//   out.write_all("a string literal, without its final zero");   // other arrays: all bytes
#pragma once

#include <gofer/detail/config.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#ifndef __GLIBCXX__  // whose <span> has what is used of <ranges>, at two fifths of the cost
#include <ranges>
#endif

namespace gofer {

namespace detail {

template <class R>
concept bytes = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                    sizeof(std::ranges::range_value_t<R>) == 1 &&
                std::is_trivially_copyable_v<std::ranges::range_value_t<R>>;

template <class R>
concept writable_bytes =
    bytes<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

// A view of such a temporary would outlive the bytes.
template <class R>
concept owns_bytes = bytes<R> && !std::is_lvalue_reference_v<R> && !std::ranges::borrowed_range<R>;

template <class C>
concept character = std::is_same_v<C, char> || std::is_same_v<C, char8_t>;

}  // namespace detail

/// Bytes to be written to. A view: it owns nothing. The layout is that of struct iovec.
class buffer {
 public:
  constexpr buffer() = default;
  constexpr buffer(void* data, std::size_t size) : data_(data), size_(size) {}
  /// Does not take a temporary, because the bytes read into it would be destroyed with it.
  template <detail::writable_bytes R>
    requires(!detail::owns_bytes<R>)
  constexpr buffer(R&& range) : data_(std::ranges::data(range)), size_(std::ranges::size(range)) {}

  void* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// The buffer without its first n bytes; n must not exceed size().
  buffer after(std::size_t n) const { return {static_cast<char*>(data_) + n, size_ - n}; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Bytes to be read. A view: it owns nothing. The layout is that of struct iovec.
class const_buffer {
 public:
  constexpr const_buffer() = default;
  constexpr const_buffer(const void* data, std::size_t size) : data_(data), size_(size) {}
  /// Takes a string literal without its final zero, and a static array of const char as a whole.
  /// Both have the same type, so the compiler has to look at the object, which it can do only if
  /// the address is constant. A local array of const char does not compile ("not a constant
  /// expression"): write std::string_view(a) for text, or {a, sizeof a} for all bytes.
  template <detail::character C, std::size_t N>
  consteval const_buffer(const C (&text)[N])
      : data_(text), size_(__builtin_constant_p(&text[0]) ? N - 1 : N) {}
  /// A zero-terminated string. The zero is not part of the buffer.
  template <class P>
    requires(std::is_pointer_v<std::remove_cvref_t<P>>&& std::is_convertible_v<P, const char*>)
  const_buffer(P&& text) : data_(text), size_(std::strlen(text)) {}
  /// Does not take a temporary that owns its bytes: const_buffer b = std::string("gone").
  template <detail::bytes R>
    requires(!detail::owns_bytes<R>)
  constexpr const_buffer(R&& range)
      : data_(std::ranges::data(range)), size_(std::ranges::size(range)) {}

  const void* data() const { return data_; }
  std::size_t size() const { return size_; }
  const_buffer after(std::size_t n) const {
    return {static_cast<const char*>(data_) + n, size_ - n};
  }

 private:
  const void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace gofer
