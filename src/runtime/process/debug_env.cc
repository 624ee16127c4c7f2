// A setting that is misspelt must not pass for one that works, so every part that is not understood
// is named. It must not stop the program either: the environment may be meant for another version.
//
// Numbers are plain decimal digits: no sign, no space, no 0x, nothing behind. Rejected: strtol and
// atoi, which take "2x", " 2" and "-1" for numbers.
#include "runtime/process/debug_env.h"

#include <algorithm>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <optional>
#include <string_view>

namespace gofer::internal {
namespace {

constexpr int max_gomaxprocs = 4096;
constexpr uint64_t max_milliseconds =
    1'000'000'000;  // eleven days; in nanoseconds they fit in 64 bits
constexpr size_t min_stack_size = size_t{64} << 10;
constexpr size_t max_stack_size = size_t{1} << 30;

// Text from outside, fit for a line: cut where it is long, without control characters.
struct Quoted {
  explicit Quoted(std::string_view from) {
    constexpr size_t longest = 40;
    size_t n = std::min(from.size(), longest);
    for (size_t i = 0; i < n; ++i) {
      const auto c = static_cast<unsigned char>(from[i]);
      text[i] = c < ' ' || c == 0x7f ? '?' : from[i];
    }
    for (int dots = 0; from.size() > longest && dots < 3; ++dots) text[n++] = '.';
    text[n] = '\0';
  }
  char text[48];
};

class Parser {
 public:
  explicit Parser(void (*complain)(const char*)) : complain_(complain) {}

  void parse_list(std::string_view list, DebugEnv* env) {
    while (!list.empty()) {
      const size_t end = list.find(',');
      const std::string_view item = list.substr(0, end);
      list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
      if (!item.empty()) parse_item(item, env);  // "a,,b" and "a," are harmless
    }
  }

  void parse_gomaxprocs(std::string_view value, DebugEnv* env) {
    const std::optional<uint64_t> number = parse_number(value);
    if (!number || *number == 0) {
      return say("gofer: GOMAXPROCS=%s is not a positive number: ignored", Quoted(value).text);
    }
    if (*number > max_gomaxprocs) {
      say("gofer: GOMAXPROCS=%s is too large: %d is used", Quoted(value).text, max_gomaxprocs);
    }
    env->gomaxprocs = static_cast<int>(std::min<uint64_t>(*number, max_gomaxprocs));
  }

  void parse_stack_size(std::string_view value, DebugEnv* env) {
    const char suffix = value.empty() ? '\0' : value.back();
    const bool kilo = suffix == 'K' || suffix == 'k';
    const bool mega = suffix == 'M' || suffix == 'm';
    const int shift = kilo ? 10 : mega ? 20 : 0;
    const std::optional<uint64_t> number =
        parse_number(value.substr(0, value.size() - (shift != 0 ? 1 : 0)));
    if (!number) {
      return say("gofer: GOFER_STACK_SIZE=%s is not a size such as 262144, 256K or 1M: ignored",
                 Quoted(value).text);
    }
    if (*number > max_stack_size >> shift || *number << shift < min_stack_size) {
      return say("gofer: GOFER_STACK_SIZE=%s is not from 64K to 1024M: ignored",
                 Quoted(value).text);
    }
    env->stack_size = *number << shift;
  }

 private:
  void parse_item(std::string_view item, DebugEnv* env) {
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return say("gofer: GOFER_DEBUG: '%s' is not key=value: ignored", Quoted(item).text);
    }
    const std::string_view key = item.substr(0, equals);
    const std::string_view value = item.substr(equals + 1);
    if (key == "model") {
      parse_model(value, env);
    } else if (key == "guard") {
      parse_guard(value, env);
    } else if (key == "idlems") {
      parse_milliseconds(key, value, env->idle_ms);
    } else if (key == "scavengems") {
      parse_milliseconds(key, value, env->scavenge_ms);
    } else if (key == "schedtrace") {
      parse_milliseconds(key, value, env->schedtrace_ms);
    } else if (key == "scheddetail") {
      parse_switch(key, value, env->scheddetail);
    } else if (key == "membarrier") {
      parse_switch(key, value, env->membarrier);
    } else if (key == "procfs") {
      parse_switch(key, value, env->procfs);
    } else if (key == "overcommit") {
      parse_switch(key, value, env->overcommit);
    } else if (key == "asyncpreemptoff") {
      parse_switch(key, value, env->async_preempt_off);
    } else if (key == "zerostacks") {
      parse_switch(key, value, env->zero_stacks);
    } else if (key == "crash") {
      parse_switch(key, value, env->crash_report);
    } else if (key == "panic") {
      parse_panic(value, env);
    } else {
      say("gofer: GOFER_DEBUG: unknown key '%s': ignored", Quoted(key).text);
    }
  }

  void parse_model(std::string_view value, DebugEnv* env) {
    if (value != "gm" && value != "gmp") {
      return say("gofer: GOFER_DEBUG: model=%s is neither gm nor gmp: ignored", Quoted(value).text);
    }
    env->model_gm = value == "gm";
  }

  void parse_guard(std::string_view value, DebugEnv* env) {
    if (value == "madvise") {
      env->guard = DebugEnv::Guard::madvise;
    } else if (value == "mprotect") {
      env->guard = DebugEnv::Guard::mprotect;
    } else if (value == "none") {
      env->guard = DebugEnv::Guard::none;
    } else {
      say("gofer: GOFER_DEBUG: guard=%s is not madvise, mprotect or none: ignored",
          Quoted(value).text);
    }
  }

  void parse_panic(std::string_view value, DebugEnv* env) {
    if (value != "abort" && value != "exit") {
      return say("gofer: GOFER_DEBUG: panic=%s is neither abort nor exit: ignored",
                 Quoted(value).text);
    }
    env->panic_exits = value == "exit";
  }

  void parse_milliseconds(std::string_view key, std::string_view value, int64_t& setting) {
    const std::optional<uint64_t> number = parse_number(value);
    if (!number || *number > max_milliseconds) {
      return say("gofer: GOFER_DEBUG: %s=%s is not a number from 0 to %llu: ignored",
                 Quoted(key).text, Quoted(value).text,
                 static_cast<unsigned long long>(max_milliseconds));
    }
    setting = static_cast<int64_t>(*number);
  }

  void parse_switch(std::string_view key, std::string_view value, bool& setting) {
    if (value != "0" && value != "1") {
      return say("gofer: GOFER_DEBUG: %s=%s is neither 0 nor 1: ignored", Quoted(key).text,
                 Quoted(value).text);
    }
    setting = value == "1";
  }

  // A number too large for 64 bits is the largest one: too large for every use.
  static std::optional<uint64_t> parse_number(std::string_view text) {
    uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, number);
    if (stopped != end || error == std::errc::invalid_argument) return std::nullopt;
    return error == std::errc() ? number : UINT64_MAX;
  }

  void say(const char* format, ...) __attribute__((format(printf, 2, 3))) {
    char line[160];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    complain_(line);
  }

  void (*const complain_)(const char*);
};

}  // namespace

DebugEnv parse_debug_env(const char* gofer_debug, const char* gomaxprocs, const char* stack_size,
                         void (*complain)(const char* message)) {
  DebugEnv env;
  Parser parser(complain);
  if (gofer_debug != nullptr) parser.parse_list(gofer_debug, &env);
  if (gomaxprocs != nullptr) parser.parse_gomaxprocs(gomaxprocs, &env);
  if (stack_size != nullptr) parser.parse_stack_size(stack_size, &env);
  return env;
}

}  // namespace gofer::internal
