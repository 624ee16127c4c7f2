// Everything Gofer has, in one include.
#pragma once

#include <gofer/debug.h>
#include <gofer/go.h>
#include <gofer/wait_group.h>
