// Debug information through libdw, with the dynamic linker's symbols as a fallback.
//
// Invariants:
//  - There is one Dwfl for the life of the process. It is made at the first use and never freed.
//    libdw is not thread-safe on one handle, so callers take turns (traceback.cc).
//  - There is no network access. If DEBUGINFOD_URLS is set, libdw would ask a debuginfod server for
//    every stripped library, for minutes.
//
// Names come from the ELF symbol if a frame has one, because the symbol exists without debug
// information and is complete: g++ writes no linkage name into DWARF for static functions, lambdas
// and unnamed namespaces. Inlined functions have DWARF only. Without a linkage name they get their
// names from the scopes around their declaration.
//
// Rejected: dwarf_getscopes (does not look into namespaces, where clang has its functions),
// dwfl_module_addrdie alone (finds a unit through .debug_aranges, which clang does not write),
// addr2line in a child process (fork in a broken process), libbacktrace (not packaged).
#include "debug/symbolize.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string_view>

#include "debug/symbol_name.h"

#ifdef GOFER_HAVE_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#endif

namespace gofer::internal {
namespace {

std::vector<SymbolFrame> symbolize_dynamic(uintptr_t address) {
  SymbolFrame frame;
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(address), &info, reinterpret_cast<void**>(&map),
              RTLD_DL_LINKMAP) != 0) {
    if (info.dli_sname != nullptr) {
      frame.name = short_symbol(info.dli_sname);
      frame.symbol = info.dli_sname;
      frame.function = reinterpret_cast<uintptr_t>(info.dli_saddr);
    }
    if (info.dli_fname != nullptr) frame.module = info.dli_fname;
    frame.module_offset = address - map->l_addr;
  }
  return {frame};
}

#ifdef GOFER_HAVE_LIBDW

int find_debuginfo(Dwfl_Module* module, void** userdata, const char* name, Dwarf_Addr base,
                   const char* file, const char* link_file, GElf_Word link_crc, char** result) {
  const char* servers = std::getenv("DEBUGINFOD_URLS");
  const bool may_download = servers != nullptr && *servers != '\0';
  return (may_download ? dwfl_build_id_find_debuginfo : dwfl_standard_find_debuginfo)(
      module, userdata, name, base, file, link_file, link_crc, result);
}

void report_modules(Dwfl* dwfl) {
  dwfl_report_begin(dwfl);
  dwfl_linux_proc_report(dwfl, getpid());
  dwfl_report_end(dwfl, nullptr, nullptr);
}

Dwfl_Module* find_module(uintptr_t address) {
  static const Dwfl_Callbacks callbacks = {
      .find_elf = dwfl_linux_proc_find_elf,
      .find_debuginfo = find_debuginfo,
      .section_address = nullptr,
      .debuginfo_path = nullptr,
  };
  static Dwfl* dwfl = nullptr;
  if (dwfl == nullptr) {
    dwfl = dwfl_begin(&callbacks);
    if (dwfl == nullptr) return nullptr;
    report_modules(dwfl);
  }
  Dwfl_Module* module = dwfl_addrmodule(dwfl, address);
  if (module != nullptr) return module;
  // libdw maps files that it reads, and would take these mappings for loaded modules. So it looks
  // again only if a module was loaded meanwhile, not for an address at which there is no code.
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0) return nullptr;
  report_modules(dwfl);
  return dwfl_addrmodule(dwfl, address);
}

// The compilation unit around `address`, an address of the process. `bias` is its distance from the
// addresses in the unit.
Dwarf_Die* find_unit(Dwfl_Module* module, uintptr_t address, Dwarf_Addr* bias) {
  Dwarf_Die* unit = dwfl_module_addrdie(module, address, bias);
  if (unit != nullptr) return unit;
  while ((unit = dwfl_module_nextcu(module, unit, bias)) != nullptr) {
    if (dwarf_haspc(unit, address - *bias) > 0) return unit;
  }
  return nullptr;
}

const char* string_attribute(Dwarf_Die* die, unsigned int attribute) {
  Dwarf_Attribute storage;
  Dwarf_Attribute* found = dwarf_attr_integrate(die, attribute, &storage);
  return found != nullptr ? dwarf_formstring(found) : nullptr;
}

// The declaration to which an inlined or out-of-line function refers. It has the function's scopes.
Dwarf_Die declaration_of(Dwarf_Die die) {
  constexpr int longest_chain = 8;  // the data may be damaged
  for (int i = 0; i < longest_chain; ++i) {
    Dwarf_Attribute storage;
    Dwarf_Attribute* reference = dwarf_attr(&die, DW_AT_abstract_origin, &storage);
    if (reference == nullptr) reference = dwarf_attr(&die, DW_AT_specification, &storage);
    Dwarf_Die target;
    if (reference == nullptr || dwarf_formref_die(reference, &target) == nullptr) break;
    die = target;
  }
  return die;
}

bool is_named_scope(int tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
         tag == DW_TAG_union_type || tag == DW_TAG_subprogram;
}

std::string function_name(Dwarf_Die* die) {
  const char* linkage_name = string_attribute(die, DW_AT_linkage_name);
  if (linkage_name == nullptr) linkage_name = string_attribute(die, DW_AT_MIPS_linkage_name);
  if (linkage_name != nullptr) return short_symbol(linkage_name);

  const char* own_name = dwarf_diename(die);
  std::string name = own_name != nullptr ? own_name : "";
  Dwarf_Die declaration = declaration_of(*die);
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes_die(&declaration, &scopes);
  for (int i = 1; i < count; ++i) {
    if (!is_named_scope(dwarf_tag(&scopes[i]))) continue;
    const char* scope = dwarf_diename(&scopes[i]);
    std::string_view part = scope != nullptr ? scope : "";
    // clang gives the type of a lambda no name.
    if (part.empty() && dwarf_tag(&scopes[i]) != DW_TAG_namespace) part = "{lambda}";
    if (!part.empty()) name.insert(0, "::").insert(0, part);
  }
  std::free(scopes);
  return short_name(name);
}

// clang writes system headers as "/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../..".
std::string readable_path(const char* path) {
  return std::filesystem::path(path).lexically_normal().string();
}

// The place from which an inlined function was called.
void set_call_site(SymbolFrame& frame, Dwarf_Die* unit, Dwarf_Die* inlined) {
  Dwarf_Attribute storage;
  Dwarf_Word file = 0;
  Dwarf_Word line = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &storage), &file) != 0) return;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &storage), &line) != 0) return;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || file >= count) return;
  const char* path = dwarf_filesrc(files, file, nullptr, nullptr);
  if (path == nullptr) return;
  frame.file = readable_path(path);
  frame.line = static_cast<int>(line);
}

// The child of `parent` with one of these tags and with `address` in it.
bool find_child(Dwarf_Die* parent, Dwarf_Addr address, std::initializer_list<int> tags,
                Dwarf_Die* found) {
  Dwarf_Die child;
  if (dwarf_child(parent, &child) != 0) return false;
  do {
    const int tag = dwarf_tag(&child);
    if (std::find(tags.begin(), tags.end(), tag) == tags.end()) continue;
    if (dwarf_haspc(&child, address) <= 0) continue;
    *found = child;
    return true;
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

// The function around `address`: a child of the unit (g++) or of a namespace in it (clang).
bool find_function(Dwarf_Die* scope, Dwarf_Addr address, Dwarf_Die* found) {
  if (find_child(scope, address, {DW_TAG_subprogram}, found)) return true;
  Dwarf_Die child;
  if (dwarf_child(scope, &child) != 0) return false;
  do {
    if (dwarf_tag(&child) != DW_TAG_namespace) continue;
    if (find_function(&child, address, found)) return true;
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

// Adds the line to `frame`, the function around `address` (in the unit's addresses), and puts the
// functions that were inlined there before it.
std::vector<SymbolFrame> add_debug_info(SymbolFrame frame, Dwarf_Die* unit, Dwarf_Addr address) {
  Dwarf_Die function;
  std::vector<Dwarf_Die> inlined;  // outermost first
  if (find_function(unit, address, &function)) {
    if (frame.name.empty()) frame.name = function_name(&function);
    Dwarf_Die at = function;
    while (find_child(&at, address, {DW_TAG_lexical_block, DW_TAG_inlined_subroutine}, &at)) {
      if (dwarf_tag(&at) == DW_TAG_inlined_subroutine) inlined.push_back(at);
    }
  }

  // The line belongs to the innermost function. Each of the others is at its call of the next one.
  SymbolFrame line;
  if (Dwarf_Line* found = dwarf_getsrc_die(unit, address); found != nullptr) {
    const char* path = dwarf_linesrc(found, nullptr, nullptr);
    if (path != nullptr && dwarf_lineno(found, &line.line) == 0) {
      line.file = readable_path(path);
    }
  }
  std::vector<SymbolFrame> frames;
  for (auto die = inlined.rbegin(); die != inlined.rend(); ++die) {
    line.name = function_name(&*die);
    line.inlined = true;
    frames.push_back(line);
    line = SymbolFrame{};
    set_call_site(line, unit, &*die);
  }
  frame.file = line.file;
  frame.line = line.line;
  frames.push_back(frame);
  return frames;
}

std::vector<SymbolFrame> symbolize_debug(uintptr_t address) {
  Dwfl_Module* module = find_module(address);
  if (module == nullptr) return {};
  SymbolFrame frame;
  GElf_Off offset = 0;
  GElf_Sym symbol;
  const char* name =
      dwfl_module_addrinfo(module, address, &offset, &symbol, nullptr, nullptr, nullptr);
  if (name != nullptr) {
    frame.name = short_symbol(name);
    frame.symbol = name;
    frame.function = address - offset;
  }
  const char* path = nullptr;
  const char* label =
      dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, &path, nullptr);
  if (path == nullptr) path = label;
  if (path != nullptr) frame.module = path;
  Dwarf_Addr bias = 0;
  if (dwfl_module_getelf(module, &bias) != nullptr) frame.module_offset = address - bias;

  Dwarf_Die* unit = find_unit(module, address, &bias);
  if (unit == nullptr) return {frame};
  return add_debug_info(frame, unit, address - bias);
}

#endif  // GOFER_HAVE_LIBDW

}  // namespace

std::vector<SymbolFrame> symbolize(uintptr_t address) {
#ifdef GOFER_HAVE_LIBDW
  std::vector<SymbolFrame> frames = symbolize_debug(address);
  if (!frames.empty()) return frames;
#endif
  return symbolize_dynamic(address);
}

}  // namespace gofer::internal
