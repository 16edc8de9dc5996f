#pragma once
// What went wrong, as the one error type of the whole system. The code answers *what can the caller
// do*; the message says what happened with the values in it, lower case; the hint says what to do
// next, when the user can act. One table maps a code to its HTTP status, the exit code of the
// command line and whether a retry can help.
//
// Invalid is for what somebody wrote to say what to do: words of a command line, a job file, a
// request, an argument of a function. What a file *holds* is never Invalid: damaged, cut short or
// in contradiction to another it is DataLoss; whole but not what is needed (another format or
// version, other columns, too large) it is Precondition. So 2 sends a script to its own words and 1
// to the files that they name. OfContent (result.h) turns the one into the other at a border.
//
// Values; any thread. Made where the fault is seen, passed up by MUSTER_TRY (result.h), logged once
// where it is dropped.

#include <optional>
#include <string>
#include <string_view>

namespace muster {

enum class Code {
  kInvalid,          ///< what was asked for is wrong; ask otherwise
  kNotFound,         ///< what was named does not exist
  kAlreadyExists,    ///< what should be made is there already
  kConflict,         ///< someone else holds it or changed it; look again
  kPrecondition,     ///< a file or the system is not in the state that this needs
  kUnauthenticated,  ///< say who you are
  kDenied,           ///< you may not
  kExhausted,        ///< out of disk, memory, file descriptors, quota
  kUnavailable,      ///< cannot be reached now; try again
  kDeadline,         ///< took too long
  kCancelled,        ///< somebody asked to stop
  kDataLoss,         ///< stored bytes are damaged or gone
  kBug,              ///< our own invariant broke
};

struct CodeTraits {
  Code code;
  std::string_view name;  ///< stable, for JSON: "not_found"
  int http_status;
  int exit_code;
  bool retryable;  ///< the same call may succeed later without anyone's help
};

const CodeTraits& TraitsOf(Code code);
/// By CodeTraits::name.
std::optional<Code> CodeNamed(std::string_view name);

class [[nodiscard]] Error {
 public:
  Error(Code code, std::string message, std::string hint = {});

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }

  /// Puts `context` and ": " before the message: the outer frames say where, the inner one says
  /// what.
  Error Within(std::string_view context) &&;
  /// Replaces an empty hint; a hint from nearer the fault knows better and stays.
  Error Hint(std::string_view hint) &&;

  /// "message; hint" on one line, as a terminal shows it.
  std::string ToString() const;

 private:
  Code code_;
  std::string message_;
  std::string hint_;
};

/// The error of a failed system call: "open /data/x: no such file or directory", with the code that
/// `errno_value` means.
Error ErrnoError(std::string_view what, int errno_value);

/// Prints the broken invariant and ends the process; see MUSTER_CHECK.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);

}  // namespace muster

/// Ends the process when an invariant of our own code is broken. Never for input, files or the
/// network.
#define MUSTER_CHECK(condition)                              \
  do {                                                       \
    if (!(condition)) [[unlikely]]                           \
      ::muster::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)
