#include "agent/stacks/take/python_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "agent/stacks/take/symbols.h"

namespace muster::agent::stacks {
namespace {

constexpr std::size_t kMostFrames = 100;
constexpr int kMostThreads = 1000;
constexpr std::size_t kMostText = 300;
constexpr std::size_t kMostTable = 256 << 10;

/// Offsets of one minor version, in bytes.
struct Shape {
  unsigned minor;
  unsigned interpreters;  ///< _PyRuntimeState.interpreters.head
  unsigned next_interpreter, threads;
  unsigned next_thread = 8;
  unsigned native_id;
  unsigned frame;       ///< PyThreadState: the current frame, or what points to it
  int frame_in_record;  ///< _PyCFrame.current_frame; −1: there is none between
  unsigned code, previous, instruction;
  unsigned owner;  ///< a byte; 3: a frame of C
  unsigned first_line, instructions;
  unsigned ascii_size;  ///< PyASCIIObject
};
constexpr std::array kShapes = {
    Shape{11, 40, 0, 16, 8, 160, 56, 8, 32, 48, 56, 69, 72, 184, 48},
    Shape{12, 40, 0, 72, 8, 144, 56, 0, 0, 8, 56, 70, 68, 192, 40},
    Shape{13, 632, 7264, 7344, 8, 160, 72, -1, 0, 8, 56, 70, 68, 200, 40},
};
// The same in all of them.
constexpr unsigned kType = 8, kFilename = 112, kQualifiedName = 128, kLineTable = 136;
constexpr unsigned kBytesSize = 16, kBytesValue = 32;
constexpr unsigned kTextLength = 16, kTextState = 32;
constexpr char kOwnedByC = 3;

struct Reader {
  pid_t pid;
  const Shape& shape;
  std::uint64_t code_type;

  std::uint64_t Word(std::uint64_t at) const { return ReadWord(pid, at).value_or(0); }
  std::string Text(std::uint64_t at) const;
  std::string Bytes(std::uint64_t at) const;
  std::optional<Frame> FrameOf(std::uint64_t record) const;
  std::vector<Frame> Frames(std::uint64_t thread, std::string* missing) const;
};

void AppendUtf8(std::uint32_t c, std::string& text) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 0x3f));
  } else {
    put(0xf0 | (c >> 18 & 7)), put(0x80 | (c >> 12 & 0x3f)), put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

/// A str of the compact kinds, which is every name that a compiler made.
std::string Reader::Text(std::uint64_t at) const {
  const std::uint64_t length = Word(at + kTextLength);
  const auto state = static_cast<std::uint32_t>(Word(at + kTextState));
  const std::size_t kind = state >> 2 & 7;
  const bool compact = (state >> 5 & 1) != 0;
  const bool ascii = (state >> 6 & 1) != 0;
  if (!compact || (kind != 1 && kind != 2 && kind != 4)) return {};
  const std::size_t head = shape.ascii_size + (ascii ? 0 : shape.minor == 11 ? 24 : 16);
  const std::size_t count = std::min<std::uint64_t>(length, kMostText);
  const std::string bytes = ReadMemory(pid, at + head, count * kind);
  std::string text;
  for (std::size_t i = 0; i + kind <= bytes.size(); i += kind) {
    std::uint32_t c = 0;
    std::memcpy(&c, bytes.data() + i, kind);
    AppendUtf8(c, text);
  }
  return text;
}

std::string Reader::Bytes(std::uint64_t at) const {
  const std::uint64_t size = Word(at + kBytesSize);
  return ReadMemory(pid, at + kBytesValue, std::min<std::uint64_t>(size, kMostTable));
}

/// Nothing when what it executes is no code object.
std::optional<Frame> Reader::FrameOf(std::uint64_t record) const {
  const std::uint64_t code = Word(record + shape.code);
  if (code == 0 || Word(code + kType) != code_type) return std::nullopt;
  const std::uint64_t offset = Word(record + shape.instruction) - (code + shape.instructions);
  const auto first = static_cast<int>(static_cast<std::uint32_t>(Word(code + shape.first_line)));
  const int line = LineOf(Bytes(Word(code + kLineTable)), first, offset);
  const std::string file = NameOfFile(Text(Word(code + kFilename)));
  return Frame{
      Text(Word(code + kQualifiedName)), {}, line > 0 ? fmt::format("{}:{}", file, line) : file};
}

std::vector<Frame> Reader::Frames(std::uint64_t thread, std::string* missing) const {
  std::uint64_t record = Word(thread + shape.frame);
  if (shape.frame_in_record >= 0 && record != 0) {
    record = Word(record + static_cast<unsigned>(shape.frame_in_record));
  }
  std::vector<Frame> frames;
  while (record != 0 && frames.size() < kMostFrames) {
    const std::string owner = ReadMemory(pid, record + shape.owner, 1);
    if (owner.empty()) break;
    if (owner[0] != kOwnedByC) {
      auto frame = FrameOf(record);
      if (!frame) {
        *missing = "the interpreter's frames are not where they were expected";
        break;
      }
      frames.push_back(std::move(*frame));
    }
    record = Word(record + shape.previous);
  }
  return frames;
}

bool MayBePython(const Library& library) {
  const std::string name = NameOfFile(library.first.path);
  return name.starts_with("python3") || name.starts_with("libpython3");
}

/// A number of 6 bits a byte, the lowest first; bit 6 says that more follow.
std::uint32_t TakeNumber(std::string_view table, std::size_t* at) {
  std::uint32_t value = 0;
  for (unsigned shift = 0; *at < table.size() && shift < 32; shift += 6) {
    const auto byte = static_cast<unsigned char>(table[(*at)++]);
    value |= (byte & 0x3fU) << shift;
    if ((byte & 0x40) == 0) break;
  }
  return value;
}

int TakeSigned(std::string_view table, std::size_t* at) {
  const std::uint32_t value = TakeNumber(table, at);
  const int size = static_cast<int>(value >> 1);
  return (value & 1) != 0 ? -size : size;
}

}  // namespace

int LineOf(std::string_view table, int first_line, std::uint64_t offset) {
  constexpr unsigned kNone = 15, kLong = 14, kNoColumns = 13, kOneLine = 10;
  std::uint64_t end = 0;
  int line = first_line;
  for (std::size_t at = 0; at < table.size();) {
    const auto head = static_cast<unsigned char>(table[at++]);
    const unsigned code = head >> 3 & 15;
    if (code == kLong || code == kNoColumns) {
      line += TakeSigned(table, &at);
    } else if (code >= kOneLine && code < kNoColumns) {
      line += static_cast<int>(code - kOneLine);
    }
    // What else belongs to the entry has no highest bit, its begin has it.
    while (at < table.size() && (static_cast<unsigned char>(table[at]) & 0x80) == 0) ++at;
    end += ((head & 7U) + 1) * 2;
    if (offset < end) return code == kNone ? 0 : line;
  }
  return 0;
}

std::optional<Interpreter> FindInterpreter(pid_t pid) {
  for (const Library& library : LibrariesOf(MapsOf(pid))) {
    if (!MayBePython(library)) continue;
    Interpreter found{.runtime = FindSymbol(pid, library, "_PyRuntime"),
                      .code_type = FindSymbol(pid, library, "PyCode_Type")};
    if (found.runtime == 0 || found.code_type == 0) continue;
    const std::uint64_t version = FindSymbol(pid, library, "Py_Version");
    if (version != 0) found.version = ReadWord(pid, version).value_or(0) & 0xffffffff;
    return found;
  }
  return std::nullopt;
}

PythonStacks ReadPython(pid_t pid, const Interpreter& interpreter) {
  PythonStacks stacks;
  const auto major = static_cast<unsigned>(interpreter.version >> 24 & 0xff);
  const auto minor = static_cast<unsigned>(interpreter.version >> 16 & 0xff);
  const auto shape = std::ranges::find(kShapes, minor, &Shape::minor);
  if (major != 3 || shape == kShapes.end()) {
    const std::string which =
        interpreter.version == 0 ? "before 3.11" : fmt::format("{}.{}", major, minor);
    stacks.missing =
        fmt::format("frames of Python {} cannot be read, of 3.11 to 3.13 they can", which);
    return stacks;
  }
  const Reader reader{pid, *shape, interpreter.code_type};
  int left = kMostThreads;
  for (std::uint64_t owner = reader.Word(interpreter.runtime + shape->interpreters);
       owner != 0 && left > 0; owner = reader.Word(owner + shape->next_interpreter)) {
    for (std::uint64_t thread = reader.Word(owner + shape->threads); thread != 0 && left-- > 0;
         thread = reader.Word(thread + shape->next_thread)) {
      const auto tid = static_cast<pid_t>(reader.Word(thread + shape->native_id));
      auto frames = reader.Frames(thread, &stacks.missing);
      if (!frames.empty()) stacks.frames[tid] = std::move(frames);
    }
  }
  if (stacks.frames.empty() && stacks.missing.empty()) {
    stacks.missing = "no thread is in Python code";
  }
  return stacks;
}

}  // namespace muster::agent::stacks
