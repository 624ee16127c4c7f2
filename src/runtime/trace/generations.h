// Generations: where one ends and the next begins, in all streams.
#pragma once

#include <cstdint>

namespace gofer::internal::tracer {

/// The open generation is followed by `next`, or by nothing (0). On return no event of the old one
/// can be written any more, and all its buffers are full ones. By the tracer's thread.
void close_generation(uint64_t next);

/// Marks of goroutines come again after 255 generations. The marks of goroutines that were not
/// mentioned for long are removed, so that they do not pass for those of a generation to come. By
/// the tracer's thread, at least every that many generations.
void sweep_marks(uint64_t generation);
inline constexpr uint64_t generations_between_sweeps = 63;

}  // namespace gofer::internal::tracer
