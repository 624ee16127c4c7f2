// Function names for people: what a demangler writes, without what a reader skips anyway.
#pragma once

#include <string>
#include <string_view>

namespace gofer::internal {

/// No return type, no parameters, template arguments only where they are short, std's decoration
/// left out:
///   main::{lambda()#1}::operator()() const                    main::{lambda#1}
///   void (anonymous namespace)::produce<int>(gofer::chan<int>)  produce<int>
/// A name that is not understood comes back as it is.
std::string short_name(std::string_view demangled);

/// The same for a symbol as the linker knows it, mangled or not.
std::string short_symbol(const char* symbol);

/// Whether a short name belongs to the library's inside or to the language's and the system's own
/// machinery (throwing, starting a thread), which a trace for users leaves out. Names of the public
/// interface, gofer::wait_group::wait, are not internal.
bool is_internal_name(std::string_view name);

}  // namespace gofer::internal
