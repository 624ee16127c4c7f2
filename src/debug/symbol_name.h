// Function names for people: the demangled name, without the parts that a reader skips anyway.
#pragma once

#include <string>
#include <string_view>

namespace gofer::internal {

/// A name without return type, parameters and std's decoration, with template arguments only if
/// they are short:
///   main::{lambda()#1}::operator()() const                    main::{lambda#1}
///   void (anonymous namespace)::produce<int>(gofer::chan<int>)  produce<int>
/// Returns a name that it does not understand as it is.
std::string short_name(std::string_view demangled);

/// The same for a linker symbol, mangled or not.
std::string short_symbol(const char* symbol);

/// Returns whether a short name belongs to the inside of the library, or to the machinery of the
/// language and the system (throwing, starting a thread). A trace for users leaves such names out.
/// Names of the public interface, such as gofer::wait_group::wait, are not internal.
bool is_internal_name(std::string_view name);

}  // namespace gofer::internal
