// One copy of the runtime in a process.
//
// A program and a plug-in, each linked with libgofer.a, have two schedulers that know nothing of
// each other. They share what a process has once: the handlers of SIGURG and SIGSEGV, the terminate
// handler, and the exception state of threads. A goroutine of one copy that calls the other one is
// a foreign thread there and blocks its M. Sooner or later the process crashes without a word. So
// the copy that starts second ends the process with a message.
//
// Every object file that contains the runtime has an ELF note that leads to the word `in_use` of
// its copy. dl_iterate_phdr shows the notes of all loaded objects, whatever their symbols' scope is
// (RTLD_LOCAL, hidden visibility), and neither stripping nor --gc-sections removes them. A copy
// that is loaded but never started does no harm.
//
// Two copies that start at the same time: each sets its own word and then looks at the others'
// (seq_cst on both sides), so at least one of them sees the other.
//
// Rejected: a symbol looked up with dlsym (does not see RTLD_LOCAL), an environment variable or a
// socket's name (outlive exec, or are shared by containers), a look at the handler of SIGURG (the
// program may have put its own in front). Not seen: a copy in another namespace of dlmopen.
#include "runtime/process/one_copy.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "runtime/base/atomic.h"
#include "runtime/report/panic.h"

extern "C" {
[[gnu::visibility("hidden"), gnu::used]] constinit gofer::internal::atomic<uint32_t>
    gofer_copy_in_use{0};
}

// An Elf64_Nhdr, the owner's name, and the distance to the word: directives of the assembler, the
// same for every processor.
asm(R"(
  .pushsection .note.gofer, "a", %note
  .balign 4
  .long 6
  .long 4
  .long 1
  .asciz "Gofer"
  .balign 4
  .long gofer_copy_in_use - .
  .popsection
)");

namespace gofer::internal {
namespace {

constexpr char owner[] = "Gofer";
constexpr uint32_t note_type = 1;

constexpr size_t rounded_up(size_t n, size_t align) { return (n + align - 1) & ~(align - 1); }

// The word of the copy that these notes tell of, or nullptr.
const atomic<uint32_t>* word_in(const char* notes, size_t size, size_t align) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes, sizeof header);
    const size_t text_at = rounded_up(sizeof header + header.n_namesz, align);
    const size_t next = rounded_up(text_at + header.n_descsz, align);
    if (text_at + header.n_descsz > size) return nullptr;
    if (header.n_type == note_type && header.n_namesz == sizeof owner &&
        header.n_descsz == sizeof(int32_t) &&
        std::memcmp(notes + sizeof header, owner, sizeof owner) == 0) {
      int32_t distance;
      std::memcpy(&distance, notes + text_at, sizeof distance);
      return reinterpret_cast<const atomic<uint32_t>*>(notes + text_at + distance);
    }
    if (next >= size) return nullptr;
    notes += next;
    size -= next;
  }
  return nullptr;
}

const char* name_of(const char* path) {
  return path == nullptr || path[0] == '\0' ? "the program" : path;
}

// Called for each loaded object; *found gets the name of one with another copy in use.
int look_for_other(dl_phdr_info* object, size_t, void* found) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    const size_t align = segment.p_align > 4 ? 8 : 4;
    const atomic<uint32_t>* word = word_in(notes, segment.p_memsz, align);
    if (word == nullptr || word == &gofer_copy_in_use || word->load(seq_cst) == 0) continue;
    *static_cast<const char**>(found) = name_of(object->dlpi_name);
    return 1;
  }
  return 0;
}

// A plug-in with a copy of its own: its threads run on after a dlclose. libgofer.so is linked so.
void stay_loaded() {
  Dl_info self;
  if (dladdr(&gofer_copy_in_use, &self) == 0) return;
  dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace

void claim_process() {
  gofer_copy_in_use.store(1, seq_cst);
  const char* other = nullptr;
  dl_iterate_phdr(look_for_other, &other);
  if (other != nullptr) {
    fatal_error(
        "two copies of Gofer in one process: one is in use in %s, and another one was about to "
        "start. Link the program and its plug-ins with the shared library (libgofer.so) instead "
        "of libgofer.a",
        other);
  }
  stay_loaded();
}

}  // namespace gofer::internal
