// Contracts about locks, which clang checks (-Wthread-safety); nothing for other compilers.
//
// They are macros because the attributes belong to clang, and g++ warns of what it does not know.
#pragma once

#ifdef __clang__
#define GOFER_ATTRIBUTE(x) __attribute__((x))
#else
#define GOFER_ATTRIBUTE(x)
#endif

/// A class that is a lock, and one that holds a lock while it lives.
#define GOFER_LOCKABLE GOFER_ATTRIBUTE(capability("lock"))
#define GOFER_SCOPED_LOCK GOFER_ATTRIBUTE(scoped_lockable)
/// The function takes, tries to take or releases a lock.
#define GOFER_ACQUIRES(...) GOFER_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define GOFER_TRIES(...) GOFER_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define GOFER_RELEASES(...) GOFER_ATTRIBUTE(release_capability(__VA_ARGS__))
/// The caller holds the lock.
#define GOFER_REQUIRES(...) GOFER_ATTRIBUTE(requires_capability(__VA_ARGS__))
/// The field is read and written with that lock only.
#define GOFER_GUARDED_BY(x) GOFER_ATTRIBUTE(guarded_by(x))
/// Unchecked: the next stack releases the lock, or there are several, or no other thread runs.
#define GOFER_UNCHECKED_LOCKS GOFER_ATTRIBUTE(no_thread_safety_analysis)
