#include "agent/shim/command.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace muster::agent::shim {
namespace {

bool ReadHeader(const char* data, std::size_t size, CommandHeader* header) {
  if (size < sizeof(CommandHeader)) return false;
  std::memcpy(header, data, sizeof(CommandHeader));
  return header->magic == kCommandMagic && header->version == 1 && header->argc >= 1 &&
         header->argc <= kMaxStrings && header->envc <= kMaxStrings &&
         header->bytes == size - sizeof(CommandHeader);
}

/// The string at `*cursor`, which is moved behind its NUL; nullptr when it does not end before
/// `end`.
char* NextString(char** cursor, char* end) {
  char* start = *cursor;
  if (start >= end) return nullptr;
  auto* nul = static_cast<char*>(std::memchr(start, '\0', static_cast<std::size_t>(end - start)));
  if (nul == nullptr) return nullptr;
  *cursor = nul + 1;
  return start;
}

}  // namespace

std::size_t CommandTableSize(const char* data, std::size_t size) {
  CommandHeader header{};
  if (!ReadHeader(data, size, &header)) return 0;
  return std::size_t{header.argc} + header.envc + 2;
}

int ParseCommand(char* data, std::size_t size, char** table, std::size_t table_size, Command* out) {
  CommandHeader header{};
  if (!ReadHeader(data, size, &header)) return EINVAL;
  if (table_size < std::size_t{header.argc} + header.envc + 2) return EINVAL;
  char* cursor = data + sizeof(CommandHeader);
  char* const end = data + size;
  out->folder = NextString(&cursor, end);
  out->program = NextString(&cursor, end);
  if (out->folder == nullptr || out->program == nullptr) return EINVAL;
  out->argc = header.argc;
  out->argv = table;
  out->environ = table + header.argc + 1;
  for (std::uint32_t i = 0; i < header.argc; ++i) {
    if ((out->argv[i] = NextString(&cursor, end)) == nullptr) return EINVAL;
  }
  out->argv[header.argc] = nullptr;
  for (std::uint32_t i = 0; i < header.envc; ++i) {
    if ((out->environ[i] = NextString(&cursor, end)) == nullptr) return EINVAL;
  }
  out->environ[header.envc] = nullptr;
  return cursor == end ? 0 : EINVAL;
}

int MapCommand(int fd, Command* out) {
  struct stat info{};
  if (::fstat(fd, &info) < 0) return errno;
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size < sizeof(CommandHeader) || size > kMaxCommandBytes) return EINVAL;
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return errno;
  const std::size_t pointers = CommandTableSize(static_cast<const char*>(data), size);
  if (pointers == 0) return EINVAL;
  void* table = ::mmap(nullptr, pointers * sizeof(char*), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (table == MAP_FAILED) return errno;
  return ParseCommand(static_cast<char*>(data), size, static_cast<char**>(table), pointers, out);
}

}  // namespace muster::agent::shim
