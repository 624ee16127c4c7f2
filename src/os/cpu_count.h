// How many CPUs this process may use: by its affinity, and by the quota of its control groups.
#pragma once

namespace gofer::internal {

/// CPUs that the calling thread may run on, at least 1. The calling thread's, because threads that
/// it starts inherit that; and asked anew each time, because it may change.
int num_cpu();

/// What GOMAXPROCS is when it is not set: num_cpu(), or less if a cgroup grants less.
int default_gomaxprocs();

/// CPUs' worth of time that the cgroups of this process grant it, rounded up; 0: no limit is known.
/// `root` stands before every path that is read ("" for the real ones): proc/self/cgroup,
/// proc/self/mountinfo and the mount points named there.
int cgroup_cpu_limit(const char* root);

/// Go's rule: the smaller of both, but a quota never takes it below 2 (a limit of one CPU's worth
/// of time is not a limit to one CPU, and two threads use it better).
int gomaxprocs_within(int cpus, int cgroup_limit);

}  // namespace gofer::internal
