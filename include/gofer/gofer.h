// Everything Gofer has, in one include.
#pragma once

#include <gofer/blocking.h>
#include <gofer/buffer.h>
#include <gofer/chan.h>
#include <gofer/cond.h>
#include <gofer/context.h>
#include <gofer/debug.h>
#include <gofer/fd.h>
#include <gofer/future.h>
#include <gofer/go.h>
#include <gofer/io_error.h>
#include <gofer/latch.h>
#include <gofer/local.h>
#include <gofer/mutex.h>
#include <gofer/net.h>
#include <gofer/no_preempt.h>
#include <gofer/once.h>
#include <gofer/pool.h>
#include <gofer/rate_limiter.h>
#include <gofer/rw_mutex.h>
#include <gofer/select.h>
#include <gofer/semaphore.h>
#include <gofer/singleflight.h>
#include <gofer/task_group.h>
#include <gofer/timer.h>
#include <gofer/wait_group.h>
