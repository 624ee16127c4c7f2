// What the servers share: they say where they listen.
#pragma once

#include <gofer/gofer.h>
#include <signal.h>

#include <cstdio>

inline gofer::net::listener announce(gofer::net::listener l) {
  std::printf("listening at %s\n", l.local_address().to_string().c_str());
  std::fflush(stdout);
  return l;
}
