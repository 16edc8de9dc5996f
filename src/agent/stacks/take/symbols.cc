#include "agent/stacks/take/symbols.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

namespace muster::agent::stacks {
namespace {

struct ElfEnd {
  void operator()(Elf* elf) const { ::elf_end(elf); }
};

/// The symbol's value, and the address that the first segment was linked for.
std::optional<GElf_Addr> ValueOf(Elf* elf, Elf_Scn* section, const GElf_Shdr& header,
                                 std::string_view symbol) {
  Elf_Data* data = ::elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return std::nullopt;
  const auto count = static_cast<int>(header.sh_size / header.sh_entsize);
  for (int i = 0; i < count; ++i) {
    GElf_Sym entry;
    if (::gelf_getsym(data, i, &entry) == nullptr || entry.st_shndx == SHN_UNDEF) continue;
    const char* name = ::elf_strptr(elf, header.sh_link, entry.st_name);
    if (name != nullptr && symbol == name) return entry.st_value;
  }
  return std::nullopt;
}

GElf_Addr LinkedAt(Elf* elf) {
  std::size_t count = 0;
  if (::elf_getphdrnum(elf, &count) < 0) return 0;
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (::gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) continue;
    if (segment.p_type == PT_LOAD) return segment.p_vaddr & ~(segment.p_align - 1);
  }
  return 0;
}

/// Up to where parameters begin, with what is in < > left out.
std::string WithoutArguments(std::string_view name) {
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const std::string_view rest = name.substr(i);
    if (depth == 0 && rest.starts_with("operator")) {
      // Its own signs are no brackets.
      const auto end = name.find('(', i + (rest.starts_with("operator()") ? 10 : 8));
      return out + std::string(name.substr(i, end == std::string_view::npos ? end : end - i));
    }
    if (depth == 0 && rest.starts_with("(anonymous namespace)")) {
      out += "(anonymous)";
      i += 20;
      continue;
    }
    if (depth == 0 && name[i] == '(') break;
    depth += name[i] == '<' ? 1 : 0;
    if (depth == 0) out += name[i];
    depth -= name[i] == '>' && depth > 0 ? 1 : 0;
  }
  // A template's name has its result in front.
  const auto space = out.rfind(' ');
  return space == std::string::npos ? out : out.substr(space + 1);
}

}  // namespace

std::vector<Library> LibrariesOf(const std::vector<Mapping>& maps) {
  std::vector<Library> libraries;
  for (const Mapping& map : maps) {
    if (!libraries.empty() && map.path == libraries.back().first.path && map.offset != 0) {
      libraries.back().end = map.end;
    } else if ((map.path.starts_with('/') && map.offset == 0) || map.path == kVdso) {
      libraries.push_back({map, map.end});
    }
  }
  return libraries;
}

Fd OpenMapped(pid_t pid, const Mapping& map) {
  for (const std::string& prefix : {std::string(), fmt::format("/proc/{}/root", pid)}) {
    Fd file(::open((prefix + map.path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat facts{};
    if (!file.valid() || ::fstat(file.get(), &facts) < 0 || !S_ISREG(facts.st_mode)) continue;
    if (facts.st_ino == map.inode) return file;
  }
  const std::string link = fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, map.begin, map.end);
  return Fd(::open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

std::uint64_t FindSymbol(pid_t pid, const Library& library, std::string_view symbol) {
  const Fd file = OpenMapped(pid, library.first);
  if (!file.valid() || ::elf_version(EV_CURRENT) == EV_NONE) return 0;
  const std::unique_ptr<Elf, ElfEnd> elf(::elf_begin(file.get(), ELF_C_READ_MMAP_PRIVATE, nullptr));
  if (!elf) return 0;
  for (Elf_Scn* section = nullptr; (section = ::elf_nextscn(elf.get(), section)) != nullptr;) {
    GElf_Shdr header;
    if (::gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNSYM) continue;
    const auto value = ValueOf(elf.get(), section, header, symbol);
    if (value) return library.first.begin + *value - LinkedAt(elf.get());
  }
  return 0;
}

std::string NameOfFile(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string FunctionName(const char* symbol) {
  int status = 0;
  char* name = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string text = status == 0 ? WithoutArguments(name) : symbol;
  std::free(name);  // NOLINT: __cxa_demangle allocates by malloc
  // Without its version, and what a compiler made of it.
  return text.substr(0, std::min({text.find('@'), text.find(".constprop."), text.find(".isra."),
                                  text.find(".part."), text.find(".cold")}));
}

}  // namespace muster::agent::stacks
