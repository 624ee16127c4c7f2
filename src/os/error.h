// errno of the calling thread, and results that carry it.
#pragma once

#include <cerrno>

namespace gofer::internal::os {

/// The errno of a call that has just failed. Not inlined: the address of errno must be asked for in
/// the thread of the moment, and compilers keep it over calls that may switch.
int last_error() noexcept;

/// What a call of libc returned, or -errno.
template <class T>
T or_error(T n) noexcept {
  return n >= 0 ? n : static_cast<T>(-last_error());
}

}  // namespace gofer::internal::os
