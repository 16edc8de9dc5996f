#pragma once
// The messages between a controller (`muster run`) and muster-shim, and between the shim and its
// zygote: fixed structs, one a SOCK_SEQPACKET packet, host byte order, descriptors by SCM_RIGHTS.
// docs/formats/shim-protocol.md says the same in words. A packet of another magic, version or size
// is refused and nothing is done for it.
//
// What a worker is to run does not fit into a packet: it travels as a sealed memfd (command.h).

#include <cstddef>
#include <cstdint>

namespace muster::agent::shim {

inline constexpr std::uint32_t kMagic = 0x4d485331;  // "1SHM"
inline constexpr std::uint16_t kVersion = 4;
inline constexpr std::uint32_t kMaxWorkers = 512;  ///< alive at once, on one node
inline constexpr std::uint32_t kMaxExtraFds = 8;
inline constexpr std::uint32_t kAllRanks = 0xffffffff;
inline constexpr std::size_t kMaxCgroupPath = 448;

enum class Type : std::uint16_t {
  // controller → shim
  kStartZygote = 1,
  kSpawn = 2,
  kSignal = 3,
  kStop = 4,
  kGoodbye = 5,
  kHelp = 6,
  kResync = 7,
  // shim → controller
  kHello = 101,
  kZygote = 102,
  kStarted = 103,
  kExited = 104,
  kStopped = 105,
  kSynced = 106,
  // shim ↔ zygote
  kFork = 201,
  kForked = 202,
  kReady = 203,
};

struct Header {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  Type type{};
};

/// kStartZygote, kSpawn, kFork. Descriptors, in this order: command, stdin, stdout (write end),
/// stderr (write end), stdout (read end), stderr (read end), then `extra_fds` that the worker finds
/// as 3, 4, …. The read ends stay with the shim, so that a worker never gets SIGPIPE because its
/// reader died. kFork carries, in the place of the read ends, the cgroup folder (or /dev/null) and
/// the page of errors (MapErrors in child.h), where a copy that cannot become a worker says why.
struct Spawn {
  Header header{};
  std::uint64_t generation = 0;
  std::uint32_t rank = 0;
  std::uint32_t via_zygote = 0;  ///< fork from the zygote; otherwise plain exec
  std::uint32_t extra_fds = 0;
  std::uint32_t umask = 022;
  std::uint64_t request = 0;    ///< kFork: comes back in kForked
  std::uint32_t in_cgroup = 0;  ///< kFork: the cgroup descriptor is real
  std::int32_t parent = 0;      ///< kFork: pid of the shim, for PDEATHSIG's race
  std::uint32_t slot = 0;       ///< kFork: the worker's place in the page of errors
  std::uint32_t reserved = 0;
};
inline constexpr std::uint32_t kSpawnFds = 6, kForkFds = 6;

struct Signal {
  Header header{};
  std::uint32_t rank = kAllRanks;
  std::int32_t signal = 0;
  std::uint32_t only_if_caught = 0;  ///< leave alone who has no handler (SigCgt)
  std::uint32_t reserved = 0;
};

/// TERM (or `signal`) to the worker mains, `grace_ns` to end, then everything below is killed.
/// A second one shortens the grace. Answered by kStopped when nothing is left; at once when that
/// was said of its generation before.
struct Stop {
  Header header{};
  std::int32_t signal = 15;
  std::uint32_t reserved = 0;
  std::uint64_t grace_ns = 0;    ///< 0: kill at once
  std::uint64_t generation = 0;  ///< the newest that may run; comes back in kStopped
};

/// A program that looks at workers for the controller, for their stacks: a child of the shim, which
/// workers let trace them. Descriptors: command, stdin, stdout, stderr. Its end, and that it could
/// not be started, show where its stdout leads. It dies with the shim; a stop spares the
/// last one, which tells of who is being stopped.
struct Help {
  Header header{};
};

/// The controller leaves in order; what is not stopped yet is killed.
struct Goodbye {
  Header header{};
};

/// A controller took the place of one that died. Answered by kHello, kZygote, kStarted of every
/// worker that lives, kExited of those that ended since the last stop, told or not, and kSynced.
struct Resync {
  Header header{};
  std::uint64_t request = 0;  ///< comes back in kSynced: one that died may have asked, too
};

struct Hello {
  Header header{};
  std::int32_t pid = 0;
  std::uint32_t has_cgroup = 0;
  char cgroup[kMaxCgroupPath] = {};
};

struct Zygote {
  Header header{};
  std::int32_t pid = 0;
  std::uint32_t alive = 0;
  std::int32_t error = 0;   ///< errno when it could not be started
  std::int32_t status = 0;  ///< exit code or −signal
  std::uint32_t ready = 0;  ///< it has loaded what its copies need and waits for requests
  std::uint32_t reserved = 0;
};

/// The answer to every kSpawn whose rank could be read. `error` 0: it runs. Otherwise nothing was
/// started and no kExited follows.
struct Started {
  Header header{};
  std::uint64_t generation = 0;
  std::uint32_t rank = 0;
  std::int32_t pid = 0;
  std::int32_t error = 0;
  std::uint32_t forked = 0;
};

struct Exited {
  Header header{};
  std::uint64_t generation = 0;
  std::uint32_t rank = 0;
  std::int32_t pid = 0;
  std::int32_t code = 0;        ///< exit code, when signal is 0
  std::int32_t signal = 0;      ///< the signal that ended it
  std::int32_t exec_error = 0;  ///< errno of what came before and of execve: it never ran
  std::uint32_t dumped_core = 0;
  std::int64_t time_ns = 0;  ///< CLOCK_MONOTONIC when the shim saw the death
};

struct Stopped {
  Header header{};
  std::uint32_t left = 0;  ///< processes that survived SIGKILL for 5 s (state D)
  std::uint32_t reserved = 0;
  std::int64_t time_ns = 0;
  std::uint64_t generation = 0;  ///< of the newest Stop
};

/// Behind everything that kResync asked for.
struct Synced {
  Header header{};
  std::uint64_t request = 0;  ///< of the newest
};

/// The zygote's first packet: it has loaded what its copies need.
struct ReadyToFork {
  Header header{};
};

struct Forked {
  Header header{};
  std::uint64_t request = 0;
  std::int32_t pid = 0;    ///< with the pidfd as descriptor
  std::int32_t error = 0;  ///< errno; EBUSY: the zygote is not single-threaded
};

inline constexpr std::size_t kMaxPacket = 512;
static_assert(sizeof(Spawn) == 56 && sizeof(Hello) == 464 && sizeof(Exited) == 48);

/// A message with its header filled in.
template <typename T>
T Message(Type type) {
  T message{};
  message.header.type = type;
  return message;
}

}  // namespace muster::agent::shim
