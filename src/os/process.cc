#include "os/process.h"

#include <pthread.h>
#include <unistd.h>

namespace gofer::internal::os {

void end_process(int status) { _exit(status); }

void at_fork_in_child(void (*f)()) { pthread_atfork(nullptr, nullptr, f); }

int process_id() { return getpid(); }

int online_cores() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

}  // namespace gofer::internal::os
