// gofer-test: once
#include "debug/symbol_name.h"

#include <gtest/gtest.h>

namespace {

using gofer::internal::is_internal_name;
using gofer::internal::short_name;
using gofer::internal::short_symbol;

TEST(ShortName, DropsParametersAndReturnTypes) {
  EXPECT_EQ(short_name("gofer::wait_group::wait()"), "gofer::wait_group::wait");
  EXPECT_EQ(short_name("void produce<int>(gofer::chan<int>)"), "produce<int>");
  EXPECT_EQ(short_name("unsigned long f<int>(int)"), "f<int>");
  EXPECT_EQ(short_name("decltype (auto) gofer::run<S>(S&&)"), "gofer::run<S>");
  EXPECT_EQ(short_name("A::f(int) const"), "A::f");
  EXPECT_EQ(short_name("A::f(int) const &"), "A::f");
}

TEST(ShortName, DropsAnonymousNamespaces) {
  EXPECT_EQ(short_name("(anonymous namespace)::A::~A()"), "A::~A");
  EXPECT_EQ(short_name("void f<(anonymous namespace)::A>()"), "f<A>");
}

TEST(ShortName, NamesLambdasByTheirFunctionAndNumber) {
  EXPECT_EQ(short_name("main::{lambda()#1}::operator()() const"), "main::{lambda#1}");
  EXPECT_EQ(
      short_name("f(int)::{lambda(int)#2}::operator()(int) const::{lambda()#1}::operator()()"),
      "f::{lambda#2}::{lambda#1}");
  EXPECT_EQ(short_name("main::{lambda(auto:1)#1}::operator()<int>(int) const"), "main::{lambda#1}");
  EXPECT_EQ(short_name("main::{lambda()#1}::_FUN()"), "main::{lambda#1}");
}

TEST(ShortName, UnderstandsTheLambdasOfDebugInformation) {
  EXPECT_EQ(short_name("main::<lambda(int)>::operator()"), "main::{lambda}");
  EXPECT_EQ(short_name("run<main()::<lambda()> >"), "run<main::{lambda}>");
  EXPECT_EQ(short_name("run<main()::<lambda(std::vector<int>)> >"), "run<main::{lambda}>");
}

TEST(ShortName, UnderstandsTheLambdasOfClangAndOfLlvmsDemangler) {
  EXPECT_EQ(short_name("f(int)::$_2::operator()(int) const"), "f::{lambda#3}");
  EXPECT_EQ(short_name("void g<f(int)::$_0>(f(int)::$_0)"), "g<f::{lambda#1}>");
  EXPECT_EQ(short_name("main::'lambda'()::operator()() const"), "main::{lambda}");
  EXPECT_EQ(short_name("main::'lambda0'(int)::operator()(int) const"), "main::{lambda0}");
}

TEST(ShortName, LeavesOutDefaultTemplateArguments) {
  EXPECT_EQ(short_name("std::vector<std::__cxx11::basic_string<char, std::char_traits<char>, "
                       "std::allocator<char> >, std::allocator<std::__cxx11::basic_string<char, "
                       "std::char_traits<char>, std::allocator<char> > > >::push_back(int)"),
            "std::vector<std::string>::push_back");
}

TEST(ShortName, CutsLongTemplateArguments) {
  EXPECT_EQ(
      short_name("std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}"
                 "> > >::_M_run()"),
      "std::thread::_State_impl<...>::_M_run");
}

TEST(ShortName, KeepsOperators) {
  EXPECT_EQ(short_name("operator new(unsigned long)"), "operator new");
  EXPECT_EQ(short_name("operator new[](unsigned long)"), "operator new[]");
  EXPECT_EQ(short_name("A::operator bool() const"), "A::operator bool");
  EXPECT_EQ(short_name("A::operator()(int)"), "A::operator()");
  EXPECT_EQ(short_name("A::operator->() const"), "A::operator->");
  EXPECT_EQ(short_name("A::operator[](int)"), "A::operator[]");
  EXPECT_EQ(short_name("bool operator< <int>(A<int>, A<int>)"), "operator<<int>");
  EXPECT_EQ(short_name("std::ostream& operator<< <char>(std::ostream&, char)"), "operator<<<char>");
  EXPECT_EQ(short_name("operators_of(int)"), "operators_of");
}

TEST(ShortName, DropsWhatOptimisersAppend) {
  EXPECT_EQ(short_name("f(int) [clone .isra.0] [clone .cold]"), "f");
  EXPECT_EQ(short_symbol("main.cold"), "main");
  EXPECT_EQ(short_symbol("_Z1fi.constprop.0"), "f");
}

TEST(ShortName, GivesBackWhatItDoesNotUnderstand) {
  EXPECT_EQ(short_name("void (*f<int>(int))(char)"), "void (*f<int>(int))(char)");
  EXPECT_EQ(short_name(""), "");
  EXPECT_EQ(short_name("<"), "<>");
  for (const char* odd :
       {"{", "'", "<lambda(", "'lambda", "{lambda(", "$_", "operator", "(", "a::"}) {
    short_name(odd);
  }
  EXPECT_EQ(short_name("a<b(c{d["), "a<b(c{d[>");
}

TEST(InternalName, IsOneOfTheLibraryOrOfTheMachinery) {
  EXPECT_TRUE(is_internal_name("gofer::internal::park"));
  EXPECT_TRUE(is_internal_name("gofer::detail::enter_small<...>"));
  EXPECT_TRUE(is_internal_name("gofer::run<...>::{lambda#1}"));
  EXPECT_TRUE(is_internal_name("__cxa_throw"));
  EXPECT_TRUE(is_internal_name("__libc_start_main"));
  EXPECT_TRUE(is_internal_name("__pthread_kill_implementation"));
  EXPECT_TRUE(is_internal_name("__clang_call_terminate"));
  EXPECT_FALSE(is_internal_name("abort"));
  EXPECT_FALSE(is_internal_name("gofer::wait_group::wait"));
  EXPECT_FALSE(is_internal_name("gofer::chan<int>::send"));
  EXPECT_FALSE(is_internal_name("main"));
  EXPECT_FALSE(is_internal_name("main::{lambda#1}"));
  EXPECT_FALSE(is_internal_name("cloned"));
}

}  // namespace
