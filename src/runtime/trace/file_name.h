// The names of files that the tracer makes by itself.
#pragma once

#include <cstddef>

namespace gofer::internal::tracer {

inline constexpr size_t longest_file_name = 4096;

/// Makes a new file that only its owner may read. %p in the pattern stands for the number of the
/// process. If there is a file of that name, .NUMBER is added. Returns a descriptor or -errno, and
/// the name.
int create_file(const char* pattern, char (&name)[longest_file_name]);

}  // namespace gofer::internal::tracer
