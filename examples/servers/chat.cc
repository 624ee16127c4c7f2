// A chat server: the first line that a connection sends is the guest's name. Every further line
// goes to all other guests.
//
//   chat 127.0.0.1:7002        and then, twice: nc 127.0.0.1 7002
//
// One goroutine, the room, knows the guests; all other goroutines talk to it through channels only.
// Each guest has two goroutines: one reads lines, and one writes what the room has for the guest.
// The room never waits for a guest. A guest that does not read until its channel is full is thrown
// out.
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "announce.h"

using namespace std::chrono_literals;

namespace {

constexpr std::size_t longest_line = 1000;

struct Guest {
  std::string name;
  gofer::net::conn c;
  gofer::chan<std::string> lines = gofer::chan<std::string>(64);  // for him
};
using GuestRef = std::shared_ptr<Guest>;

struct Said {
  GuestRef by;
  std::string text;
};

class Room {
 public:
  Room() {
    running_.go([this] { run(); });
  }
  ~Room() {
    closing_.close();
    running_.wait();
  }

  void serve(gofer::net::conn c) {
    const auto guest = std::make_shared<Guest>(Guest{"", c});
    std::string rest;
    guest->name = read_line(c, rest).value_or("");
    if (guest->name.empty()) return;
    joining_.send(guest);
    gofer::wait_group writer;
    writer.go([guest] { write_lines(*guest); });
    // Tells the room that the guest has left, however that happens.
    try {
      while (auto line = read_line(c, rest)) said_.send({guest, *line});
    } catch (const std::system_error&) {
    }
    leaving_.send(guest);
    writer.wait();
  }

 private:
  void run() {
    std::set<GuestRef> guests;
    const auto tell = [&](const GuestRef& except, const std::string& text) {
      for (const GuestRef& guest : guests) {
        if (guest != except && !guest->lines.try_send(text)) guest->c.close();
      }
    };
    bool open = true;
    while (open) {
      gofer::select(gofer::on_recv(closing_, [&] { open = false; }),
                    gofer::on_recv(joining_,
                                   [&](GuestRef guest) {
                                     tell(guest, "* " + guest->name + " is here\n");
                                     static_cast<void>(
                                         guest->lines.try_send("* welcome, " + guest->name + "\n"));
                                     guests.insert(guest);
                                   }),
                    gofer::on_recv(leaving_,
                                   [&](GuestRef guest) {
                                     guests.erase(guest);
                                     guest->lines.close();
                                     tell(guest, "* " + guest->name + " has left\n");
                                   }),
                    gofer::on_recv(said_, [&](Said said) {
                      tell(said.by, said.by->name + ": " + said.text + "\n");
                    }));
    }
  }

  static void write_lines(const Guest& guest) {
    std::error_code ec;
    for (const std::string& line : guest.lines) {
      if (!ec) guest.c.write_all(line, ec);
    }
  }

  // Nothing at the end of the input, or if a line is too long. `rest` is what was read behind it.
  static std::optional<std::string> read_line(const gofer::net::conn& c, std::string& rest) {
    for (;;) {
      if (const auto end = rest.find('\n'); end != std::string::npos) {
        std::string line = rest.substr(0, end);
        rest.erase(0, end + 1);
        if (!line.empty() && line.back() == '\r') line.pop_back();
        return line;
      }
      if (rest.size() > longest_line) return std::nullopt;
      char bytes[512];
      const std::size_t n = c.read(bytes);
      if (n == 0) return std::nullopt;
      rest.append(bytes, n);
    }
  }

  gofer::chan<GuestRef> joining_{0};
  gofer::chan<GuestRef> leaving_{0};
  gofer::chan<Said> said_{0};
  gofer::chan<std::monostate> closing_{0};
  gofer::wait_group running_;
};

}  // namespace

int main(int argc, char** argv) {
  return gofer::run([=] {
    const auto [ctx, stop] = gofer::notify_context(gofer::background(), {SIGINT, SIGTERM});
    const auto listener = announce(gofer::net::listen(argc > 1 ? argv[1] : "127.0.0.1:7002"));
    Room room;
    gofer::net::serve(ctx, listener, [&](gofer::net::conn c) { room.serve(c); },
                      {.max_connections = 1000, .grace = 0s});  // guests stay as long as they like
    return 0;
  });
}
