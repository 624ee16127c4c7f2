// A server without memory. operator new fails on demand; what the runtime allocates otherwise does
// not.
#include <gofer/gofer.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

#include "../support/wait_until.h"
#include "runtime/base/sanitizer.h"
#include "scenarios.h"

namespace {

std::atomic<bool> out_of_memory{false};
std::atomic<bool> also_without_exceptions{false};  // the forms of operator new that return nullptr
std::atomic<int> refused{0};

}  // namespace

#ifndef GOFER_TSAN  // clang's runtime for it has an operator new that cannot be replaced
namespace {

void* allocate(std::size_t size, std::size_t align) noexcept {
  const std::size_t rounded = (std::max<std::size_t>(size, 1) + align - 1) / align * align;
  return std::aligned_alloc(align, rounded);
}

void* allocate_or_throw(std::size_t size, std::size_t align) {
  void* p = out_of_memory ? nullptr : allocate(size, align);
  if (p != nullptr) return p;
  ++refused;
  throw std::bad_alloc();
}

// Not inlined, or g++ sees a pointer from operator new in free().
[[gnu::noinline]] void release(void* p) { std::free(p); }

constexpr std::size_t usual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

void* operator new(std::size_t size) { return allocate_or_throw(size, usual); }
void* operator new(std::size_t size, std::align_val_t align) {
  return allocate_or_throw(size, static_cast<std::size_t>(align));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (out_of_memory && also_without_exceptions) {
    ++refused;
    return nullptr;
  }
  return allocate(size, usual);
}
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }
#endif

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

int connect_to(const gofer::net::address& at) {
  const int native = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{60, 0};
  require(setsockopt(native, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0, "limit");
  require(native >= 0 && connect(native, at.data(), at.size()) == 0, "connected");
  return native;
}

bool echoes(int native) {
  char byte = 'x';
  return write(native, &byte, 1) == 1 && read(native, &byte, 1) == 1 && byte == 'x';
}

void echo(const gofer::net::conn& c) {
  char byte;
  while (c.read({&byte, 1}) != 0) c.write_all({&byte, 1});
}

// The main thread is the client; it allocates nothing.
int serve(bool accepts) {
  const gofer::net::listener l = gofer::net::listen("127.0.0.1:0");
  const gofer::net::address at = l.local_address();
  gofer::net::server server(echo, {.max_connections = 2});
  gofer::wait_group serving;
  serving.go([&] { server.serve(l); });
  const int first = connect_to(at);
  require(echoes(first), "served before");
  also_without_exceptions = !accepts;
  out_of_memory = true;
  for (int i = 0; i < 4; ++i) {
    const int before = refused;
    const int native = connect_to(at);
    if (accepts) {
      char byte;
      require(read(native, &byte, 1) <= 0, "closed");
    } else {
      require(wait_until([&] { return refused > before; }), "not accepted");
    }
    close(native);
  }
  require(echoes(first), "served meanwhile");
  out_of_memory = false;
  const int last = connect_to(at);
  require(echoes(last), "served again");
  server.close();
  serving.wait();
  say("completed");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(
      argc, argv,
      {{"handlers", [] { return serve(true); }}, {"connections", [] { return serve(false); }}});
}
