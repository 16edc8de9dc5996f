#include "agent/stacks/take/unwinder.h"

#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "agent/stacks/take/symbols.h"

namespace muster::agent::stacks {
namespace {

constexpr std::size_t kMostFrames = 100;
constexpr const char* kLate = "the time for stacks was over";

}  // namespace

/// A set of libraries at their addresses, and what was found out about them.
class Layout {
 public:
  Layout(pid_t pid, std::vector<Library> libraries) : pid_(pid), libraries_(std::move(libraries)) {}
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  ~Layout() {
    if (dwfl_ != nullptr) ::dwfl_end(dwfl_);
  }

  bool Fits(const std::vector<Library>& others) const {
    return std::ranges::equal(libraries_, others, [](const Library& a, const Library& b) {
      return a.first.begin == b.first.begin && a.end == b.end && a.first.path == b.first.path &&
             a.first.inode == b.first.inode;
    });
  }
  bool Open();
  Thread Unwind(const HeldThread& thread, Instant deadline);

 private:
  const Frame& NameOf(Dwarf_Addr pc);
  Frame LookUp(Dwarf_Addr pc);
  const Library* At(Dwarf_Addr address) const;

  // What libdwfl calls.
  static int FindElf(Dwfl_Module* module, void** userdata, const char* name, Dwarf_Addr base,
                     char** file, Elf** elf);
  static bool GetThread(Dwfl* dwfl, pid_t tid, void* arg, void** thread_arg);
  static pid_t NextThread(Dwfl*, void*, void**) { return 0; }
  static bool ReadWord(Dwfl* dwfl, Dwarf_Addr address, Dwarf_Word* word, void* arg);
  static bool SetRegisters(Dwfl_Thread* thread, void* arg);
  static int OnFrame(Dwfl_Frame* frame, void* arg);

  pid_t pid_;  ///< of the first process that has it: it may be gone
  std::vector<Library> libraries_;
  Dwfl* dwfl_ = nullptr;
  std::map<Dwarf_Addr, Frame> names_;
  const HeldThread* thread_ = nullptr;  ///< that is unwound at the moment, and what comes of it
  Instant deadline_{};
  Thread* out_ = nullptr;
};

/// The vDSO is in no file, but ours is the same: one kernel.
Elf* OwnVdso() {
  const auto* begin = reinterpret_cast<char*>(::getauxval(AT_SYSINFO_EHDR));  // NOLINT
  for (const Mapping& map : MapsOf(::getpid())) {
    if (begin == nullptr || map.path != kVdso) continue;
    return ::elf_memory(const_cast<char*>(begin), map.end - map.begin);
  }
  return nullptr;
}

int Layout::FindElf(Dwfl_Module*, void** userdata, const char*, Dwarf_Addr base, char** file,
                    Elf** elf) {
  const auto* self = static_cast<const Layout*>(*userdata);
  const Library* library = self->At(base);
  if (library == nullptr) return -1;
  if (library->first.path == kVdso) {
    *elf = OwnVdso();
    return -1;
  }
  *file = ::strdup(library->first.path.c_str());  // libdwfl's, which frees it
  return OpenMapped(self->pid_, library->first).Release();
}

const Library* Layout::At(Dwarf_Addr address) const {
  const auto found = std::ranges::find_if(libraries_, [address](const Library& library) {
    return library.first.begin <= address && address < library.end;
  });
  return found == libraries_.end() ? nullptr : &*found;
}

bool Layout::Open() {
  static const Dwfl_Callbacks kFiles = {.find_elf = &Layout::FindElf,
                                        .find_debuginfo = ::dwfl_standard_find_debuginfo,
                                        .section_address = nullptr,
                                        .debuginfo_path = nullptr};
  static const Dwfl_Thread_Callbacks kThreads = {.next_thread = &Layout::NextThread,
                                                 .get_thread = &Layout::GetThread,
                                                 .memory_read = &Layout::ReadWord,
                                                 .set_initial_registers = &Layout::SetRegisters,
                                                 .detach = nullptr,
                                                 .thread_detach = nullptr};
  dwfl_ = ::dwfl_begin(&kFiles);
  if (dwfl_ == nullptr) return false;
  ::dwfl_report_begin(dwfl_);
  for (const Library& library : libraries_) {
    Dwfl_Module* module =
        ::dwfl_report_module(dwfl_, library.first.path.c_str(), library.first.begin, library.end);
    void** userdata = nullptr;
    if (module == nullptr) continue;
    ::dwfl_module_info(module, &userdata, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    *userdata = this;
  }
  ::dwfl_report_end(dwfl_, nullptr, nullptr);
  return ::dwfl_attach_state(dwfl_, nullptr, pid_, &kThreads, this);
}

bool Layout::GetThread(Dwfl*, pid_t tid, void* arg, void** thread_arg) {
  *thread_arg = arg;
  return static_cast<Layout*>(arg)->thread_->tid == tid;
}

bool Layout::ReadWord(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* arg) {
  const HeldThread& thread = *static_cast<Layout*>(arg)->thread_;
  const std::uint64_t at = address - thread.stack_at;
  if (address < thread.stack_at || at + sizeof(*word) > thread.stack.size()) return false;
  std::memcpy(word, thread.stack.data() + at, sizeof(*word));
  return true;
}

bool Layout::SetRegisters(Dwfl_Thread* thread, void* arg) {
  const ::user_regs_struct& r = static_cast<Layout*>(arg)->thread_->registers;
#if defined(__x86_64__)
  // In DWARF's order.
  const std::array<Dwarf_Word, 17> words = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi,
                                            r.rbp, r.rsp, r.r8,  r.r9,  r.r10, r.r11,
                                            r.r12, r.r13, r.r14, r.r15, r.rip};
#elif defined(__aarch64__)
  std::array<Dwarf_Word, 32> words{};
  std::ranges::copy(r.regs, words.begin());
  words[31] = r.sp;
  ::dwfl_thread_state_register_pc(thread, r.pc);
#endif
  return ::dwfl_thread_state_registers(thread, 0, words.size(), words.data());
}

int Layout::OnFrame(Dwfl_Frame* frame, void* arg) {
  auto* self = static_cast<Layout*>(arg);
  if (SystemClock().Now() > self->deadline_) {
    self->out_->missing = kLate;
    return DWARF_CB_ABORT;
  }
  Dwarf_Addr pc = 0;
  bool exact = false;
  if (!::dwfl_frame_pc(frame, &pc, &exact) || pc == 0) return DWARF_CB_ABORT;
  // What a call returns to may be of the next function.
  self->out_->native.push_back(self->NameOf(exact ? pc : pc - 1));
  return self->out_->native.size() < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

const Frame& Layout::NameOf(Dwarf_Addr pc) {
  const auto [entry, is_new] = names_.try_emplace(pc);
  if (is_new) entry->second = LookUp(pc);
  return entry->second;
}

Frame Layout::LookUp(Dwarf_Addr pc) {
  const Library* library = At(pc);
  Frame frame{.function = {}, .library = library == nullptr ? "" : NameOfFile(library->first.path)};
  Dwfl_Module* module = ::dwfl_addrmodule(dwfl_, pc);
  if (module == nullptr) return frame;
  GElf_Off offset = 0;
  GElf_Sym symbol;
  const char* name =
      ::dwfl_module_addrinfo(module, pc, &offset, &symbol, nullptr, nullptr, nullptr);
  if (name != nullptr) frame.function = FunctionName(name);
  int line = 0;
  Dwfl_Line* source = ::dwfl_module_getsrc(module, pc);
  const char* file = source == nullptr
                         ? nullptr
                         : ::dwfl_lineinfo(source, nullptr, &line, nullptr, nullptr, nullptr);
  if (file != nullptr && line > 0) frame.at = fmt::format("{}:{}", NameOfFile(file), line);
  return frame;
}

Thread Layout::Unwind(const HeldThread& thread, Instant deadline) {
  Thread out{.tids = {thread.tid}, .name = thread.name};
  thread_ = &thread;
  deadline_ = deadline;
  out_ = &out;
  ::dwfl_getthread_frames(dwfl_, thread.tid, &Layout::OnFrame, this);
  thread_ = nullptr;
  if (out.native.empty() && out.missing.empty()) out.missing = "its stack cannot be read";
  return out;
}

Unwinder::Unwinder() = default;
Unwinder::~Unwinder() = default;

std::vector<Thread> Unwinder::FramesOf(const HeldProcess& process, Instant deadline) {
  const std::vector<Library> libraries = LibrariesOf(process.maps);
  auto layout = std::ranges::find_if(
      layouts_, [&](const auto& candidate) { return candidate->Fits(libraries); });
  if (layout == layouts_.end()) {
    auto opened = std::make_unique<Layout>(process.pid, libraries);
    if (opened->Open()) layout = layouts_.insert(layouts_.end(), std::move(opened));
  }
  std::vector<Thread> threads;
  for (const HeldThread& thread : process.threads) {
    Thread out{.tids = {thread.tid}, .name = thread.name, .missing = thread.missing};
    if (out.missing.empty() && layout == layouts_.end())
      out.missing = "its libraries are not known";
    if (out.missing.empty() && SystemClock().Now() > deadline) out.missing = kLate;
    threads.push_back(out.missing.empty() ? (*layout)->Unwind(thread, deadline) : std::move(out));
  }
  return threads;
}

}  // namespace muster::agent::stacks
