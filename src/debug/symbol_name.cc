// A scanner over demangled names. It reads a name once from left to right and needs no grammar,
// because only a few characters matter at the outermost level:
//
//   <     template arguments: shortened by the same rules, or "<...>" if they stay long
//   (     parameters: dropped; "(anonymous namespace)::" too
//   {     a lambda, "{lambda(int)#2}": its parameters are dropped, and its "::operator()" as well;
//         clang writes "$_1", LLVM's demangler "'lambda'(int)", g++ in DWARF "<lambda(int)>"
//   space the return type ends here: dropped; or a " const" that follows parameters
//
// Rejected: libiberty's option flags (not reachable through __cxa_demangle) and regular expressions
// (std::regex recurses, and a trace is printed when stack may be short).
#include "debug/symbol_name.h"

#include <cxxabi.h>

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace gofer::internal {
namespace {

constexpr size_t max_arguments_length = 40;

bool starts_at(std::string_view text, size_t at, std::string_view what) {
  return text.substr(at, what.size()) == what;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

// The index after the bracket that closes the one at `open`, or the end of the text if it is not
// closed.
size_t after_bracket(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '>' && i > 0 && text[i - 1] == '-') continue;  // "->" of a trailing type
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if (c == '>' || c == ')' || c == '}' || c == ']') --depth;
    if (depth == 0) return i + 1;
  }
  return text.size();
}

// Template arguments that are defaults and tell the reader nothing.
bool is_noise_argument(std::string_view argument) {
  for (const char* prefix : {"std::allocator<", "std::char_traits<", "std::default_delete<",
                             "std::less<", "std::hash<", "std::equal_to<"}) {
    if (argument.starts_with(prefix)) return true;
  }
  return false;
}

class Scanner {
 public:
  // `is_type`: the text is a template argument, in which spaces and parentheses belong to a type.
  Scanner(std::string_view in, bool is_type) : in_(in), is_type_(is_type) {}

  std::string scan() {
    while (at_ < in_.size()) step();
    replace_all(out_, "::__cxx11::", "::");
    replace_all(out_, "::__1::", "::");
    replace_all(out_, "std::basic_string<char>", "std::string");
    replace_all(out_, "std::basic_string_view<char>", "std::string_view");
    return std::move(out_);
  }

 private:
  void step() {
    const char c = in_[at_];
    if (at_operator()) {
      take_operator();
    } else if (starts_at(in_, at_, "<lambda(")) {
      take_local_type(c);
    } else if (c == '<') {
      take_arguments();
    } else if (c == '(') {
      take_parentheses();
    } else if (c == '{' || c == '\'') {
      take_local_type(c);
    } else if (starts_at(in_, at_, "$_")) {
      take_clang_lambda();
    } else if (c == '[') {  // [abi:cxx11], [clone .cold]
      at_ = after_bracket(in_, at_);
    } else if (c == ' ' && !is_type_) {
      take_space();
    } else {
      out_ += c;
      ++at_;
    }
  }

  bool at_operator() const {
    constexpr std::string_view word = "operator";
    if (!starts_at(in_, at_, word)) return false;
    const char before = at_ == 0 ? ' ' : in_[at_ - 1];
    const char after = at_ + word.size() < in_.size() ? in_[at_ + word.size()] : '_';
    return (before == ' ' || before == ':') && after != '_' && !std::isalnum(after);
  }

  // The characters of an operator's name are not brackets, and "operator bool" has a space in it.
  void take_operator() {
    copy(std::strlen("operator"));
    for (const char* symbol : {"()", "<<=", ">>=", "<=>", "->*", "<<", ">>", "<=", ">=", "->", "<",
                               ">", "[]", " new[]", " delete[]"}) {
      if (!starts_at(in_, at_, symbol)) continue;
      copy(std::strlen(symbol));
      if (starts_at(in_, at_, " <")) ++at_;  // "operator< <int>"
      return;
    }
    while (at_ < in_.size() && in_[at_] != '(' && in_[at_] != '<') copy(1);
  }

  void take_arguments() {
    const size_t end = after_bracket(in_, at_);
    std::string arguments;
    size_t from = at_ + 1;
    while (from < end) {
      size_t to = from;
      while (to < end - 1 && in_[to] != ',') {
        const bool opens = std::strchr("<({[", in_[to]) != nullptr;
        to = opens ? after_bracket(in_, to) : to + 1;
      }
      std::string_view argument = in_.substr(from, to - from);
      while (argument.starts_with(' ')) argument.remove_prefix(1);
      while (argument.ends_with(' ')) argument.remove_suffix(1);
      if (!is_noise_argument(argument)) {
        if (!arguments.empty()) arguments += ", ";
        arguments += Scanner(argument, true).scan();
      }
      from = to + 1;
    }
    out_ += '<';
    out_ += arguments.size() <= max_arguments_length ? arguments : "...";
    out_ += '>';
    at_ = end;
  }

  void take_parentheses() {
    constexpr std::string_view anonymous = "(anonymous namespace)::";
    if (starts_at(in_, at_, anonymous)) {
      at_ += anonymous.size();
      return;
    }
    const size_t end = after_bracket(in_, at_);
    const size_t next = after_qualifiers(end);
    // In a type, only the parameters of an enclosing function are dropped: "f(int)::{lambda()#1}".
    if (is_type_ && !starts_at(in_, next, "::")) return copy(end - at_);
    at_ = next;
  }

  // "{lambda(int)#2}", "<lambda(int)>", and "'lambda1'(int)".
  void take_local_type(char open) {
    const bool in_quotes = open == '\'';
    const size_t quote = in_.find('\'', at_ + 1);
    size_t end = !in_quotes ? after_bracket(in_, at_) : quote == in_.npos ? in_.size() : quote + 1;
    const std::string_view body = in_.substr(at_ + 1, end - at_ - 2);
    const size_t parameters = body.find('(');
    out_ += '{';
    out_ += body.substr(0, parameters);
    if (parameters != in_.npos) out_ += body.substr(after_bracket(body, parameters));
    out_ += '}';
    if (in_quotes && end < in_.size() && in_[end] == '(') end = after_bracket(in_, end);
    at_ = end;
    drop_lambda_call();
  }

  // "$_0", which clang counts from 0 over the whole file.
  void take_clang_lambda() {
    at_ += std::strlen("$_");
    int number = 0;
    size_t digits = 0;
    while (at_ + digits < in_.size() && std::isdigit(in_[at_ + digits])) ++digits;
    std::from_chars(in_.data() + at_, in_.data() + at_ + digits, number);
    out_ += "{lambda#" + std::to_string(number + 1) + '}';
    at_ += digits;
    drop_lambda_call();
  }

  // Drops the names by which a lambda is called, because its body has no other name.
  void drop_lambda_call() {
    for (std::string_view call : {"::operator()", "::_FUN", "::__invoke"}) {
      if (!starts_at(in_, at_, call)) continue;
      at_ += call.size();
      if (at_ < in_.size() && in_[at_] == '<') at_ = after_bracket(in_, at_);
    }
  }

  void take_space() {
    const size_t next = after_qualifiers(at_);
    if (next > at_) {
      at_ = next;
    } else {
      out_.clear();
      ++at_;
    }
  }

  // What may follow parameters.
  size_t after_qualifiers(size_t from) const {
    for (bool found = true; found;) {
      found = false;
      for (std::string_view word : {" const", " volatile", " &&", " &", " noexcept"}) {
        if (!starts_at(in_, from, word)) continue;
        const size_t end = from + word.size();
        if (end < in_.size() && in_[end] != ' ' && in_[end] != ':' && in_[end] != '[') continue;
        from = end;
        found = true;
      }
      if (starts_at(in_, from, " [")) {
        from = after_bracket(in_, from + 1);
        found = true;
      }
    }
    return from;
  }

  void copy(size_t n) {
    out_ += in_.substr(at_, n);
    at_ += n;
  }

  const std::string_view in_;
  const bool is_type_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string short_name(std::string_view demangled) {
  std::string name = Scanner(demangled, false).scan();
  return name.empty() ? std::string(demangled) : name;
}

std::string short_symbol(const char* symbol) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  if (demangled == nullptr) {
    // A C function. A suffix of the optimiser (.cold, .constprop.0) does not belong to its name.
    const std::string_view name = symbol;
    return std::string(name.substr(0, name.find('.', 1)));
  }
  std::string name = short_name(demangled);
  std::free(demangled);
  return name;
}

bool is_internal_name(std::string_view name) {
  for (std::string_view prefix :
       {"gofer::internal::", "gofer::detail::", "gofer_", "__cxxabiv1::", "__cxa_", "__gxx_",
        "_Unwind_", "std::terminate", "std::rethrow_exception", "std::__invoke", "std::invoke",
        "std::apply", "std::__apply", "std::_Function_handler<", "std::thread::_", "__libc_start_",
        "__pthread_kill_", "__clang_call_terminate"}) {
    if (name.starts_with(prefix)) return true;
  }
  for (std::string_view whole :
       {"_start", "start_thread", "clone", "__clone", "clone3", "__clone3", "__clone_internal",
        "__start_context", "execute_native_thread_routine"}) {
    if (name == whole) return true;
  }
  // A lambda in the body of a public function is as internal as what it calls, and so is a part of
  // such a lambda that is not inlined.
  return name.starts_with("gofer::") && (name.ends_with('}') || name.ends_with("_slow"));
}

}  // namespace gofer::internal
