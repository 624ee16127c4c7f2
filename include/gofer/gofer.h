// Everything Gofer has, in one include.
#pragma once

#include <gofer/chan.h>
#include <gofer/debug.h>
#include <gofer/go.h>
#include <gofer/select.h>
#include <gofer/wait_group.h>
