#include "base/error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace muster {
namespace {

constexpr std::array<CodeTraits, 13> kTraits{{
    {Code::kInvalid, "invalid", 400, 2, false},
    {Code::kNotFound, "not_found", 404, 3, false},
    {Code::kAlreadyExists, "already_exists", 409, 5, false},
    {Code::kConflict, "conflict", 409, 5, false},
    {Code::kPrecondition, "precondition", 412, 1, false},
    {Code::kUnauthenticated, "unauthenticated", 401, 4, false},
    {Code::kDenied, "denied", 403, 4, false},
    {Code::kExhausted, "exhausted", 507, 1, false},
    {Code::kUnavailable, "unavailable", 503, 6, true},
    {Code::kDeadline, "deadline", 504, 7, true},
    {Code::kCancelled, "cancelled", 499, 130, false},
    {Code::kDataLoss, "data_loss", 500, 1, false},
    {Code::kBug, "bug", 500, 1, false},
}};

struct ErrnoMeaning {
  int value;
  Code code;
  std::string_view hint = {};  ///< where every user's next step is the same
};
// Everything else is a Precondition.
constexpr ErrnoMeaning kErrnos[] = {
    {ENOENT, Code::kNotFound},
    {ENOTDIR, Code::kNotFound},
    {ESRCH, Code::kNotFound},
    {EEXIST, Code::kAlreadyExists},
    {ENOTEMPTY, Code::kAlreadyExists},
    {EACCES, Code::kDenied, "check the permissions of it and of the folders above it"},
    {EPERM, Code::kDenied, "check the permissions of it and of the folders above it"},
    {EROFS, Code::kDenied, "the file system is mounted read-only; choose another folder"},
    {ENOSPC, Code::kExhausted, "free some room on that disk, then try again"},
    {EDQUOT, Code::kExhausted,
     "your quota on that disk is used up; free some room, then try again"},
    {ENOMEM, Code::kExhausted},
    {EMFILE, Code::kExhausted, "raise the limit of open files: ulimit -n"},
    {ENFILE, Code::kExhausted},
    {EFBIG, Code::kExhausted, "raise the limit of file sizes: ulimit -f"},
    {EAGAIN, Code::kUnavailable},
    {ECONNREFUSED, Code::kUnavailable},
    {ECONNRESET, Code::kUnavailable},
    {EPIPE, Code::kUnavailable},
    {EHOSTUNREACH, Code::kUnavailable},
    {ENETUNREACH, Code::kUnavailable},
    {ETIMEDOUT, Code::kDeadline},
    {EBUSY, Code::kConflict},
    {EIO, Code::kDataLoss},
    {ECANCELED, Code::kCancelled},
    {EINTR, Code::kCancelled},
    {EINVAL, Code::kInvalid},
    {ELOOP, Code::kInvalid},
    {ENAMETOOLONG, Code::kInvalid},
    {EISDIR, Code::kInvalid},
    {ENOEXEC, Code::kInvalid},
    {E2BIG, Code::kInvalid},
    {EBADF, Code::kInvalid},
    {ENXIO, Code::kInvalid},
};

ErrnoMeaning MeaningOf(int value) {
  for (const ErrnoMeaning& known : kErrnos) {
    if (known.value == value) return known;
  }
  return {value, Code::kPrecondition};
}

std::string LowerFirst(std::string text) {
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

}  // namespace

const CodeTraits& TraitsOf(Code code) {
  const auto index = static_cast<std::size_t>(code);
  MUSTER_CHECK(index < kTraits.size() && kTraits[index].code == code);
  return kTraits[index];
}

std::optional<Code> CodeNamed(std::string_view name) {
  const auto* found = std::ranges::find(kTraits, name, &CodeTraits::name);
  return found == kTraits.end() ? std::nullopt : std::optional(found->code);
}

Error::Error(Code code, std::string message, std::string hint)
    : code_(code), message_(std::move(message)), hint_(std::move(hint)) {}

Error Error::Within(std::string_view context) && {
  message_ = std::string(context) + ": " + message_;
  return std::move(*this);
}

Error Error::Hint(std::string_view hint) && {
  if (hint_.empty()) hint_ = hint;
  return std::move(*this);
}

std::string Error::ToString() const { return hint_.empty() ? message_ : message_ + "; " + hint_; }

Error ErrnoError(std::string_view what, int errno_value) {
  const ErrnoMeaning meaning = MeaningOf(errno_value);
  return {meaning.code,
          std::string(what) + ": " + LowerFirst(std::generic_category().message(errno_value)),
          std::string(meaning.hint)};
}

void CheckFailed(const char* file, int line, const char* expression) {
  std::fprintf(
      stderr,
      "%s:%d: broken invariant: %s\nThis is a bug in Muster; please report it with this line.\n",
      file, line, expression);
  std::abort();
}

}  // namespace muster
