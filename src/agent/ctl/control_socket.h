#pragma once
// How other terminals talk to a `muster run`: a UNIX socket `control` in the run folder, mode 0600,
// for processes of the same user (SO_PEERCRED) and root. A connection is one request, a line of
// JSON {"verb": "dump"}, and one answer, {"error": null, "value": …} or {"error": {code, message,
// hint}}, then its end. At most 8 at a time, a request of 4 KiB within 5 s.
//
// Owner: the run loop. Bound and dialled by way of /proc/self/fd, so that a folder's path may be
// longer than the 107 bytes of sun_path.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "os/event_loop.h"

namespace muster::agent {

class ControlSocket {
 public:
  /// JSON, or why not. Called once for each request, at any later time; it may outlive the socket.
  using Reply = std::function<void(const Result<std::string>&)>;
  using Handler = std::function<void(const std::string& verb, Reply reply)>;

  static Result<std::unique_ptr<ControlSocket>> Listen(os::EventLoop& loop,
                                                       const std::string& folder, Handler handler);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

 private:
  struct Peer {
    Fd fd;
    os::WatchId watch;
    os::TimerId limit;
    std::string in{};
    std::string out{};
    bool asked = false;
  };
  ControlSocket(os::EventLoop& loop, Fd folder, Fd listening, Handler handler);
  void Accept();
  void Read(std::uint64_t id);
  void Handle(std::uint64_t id, const std::string& line);
  void Answer(std::uint64_t id, const Result<std::string>& answer);
  void Write(std::uint64_t id);
  void Close(std::uint64_t id);

  os::EventLoop& loop_;
  Fd folder_;
  Fd listening_;
  Handler handler_;
  std::optional<os::WatchId> watch_;
  std::map<std::uint64_t, Peer> peers_;
  std::uint64_t next_id_ = 1;
  std::shared_ptr<ControlSocket*> self_;  ///< what replies hold weakly
};

/// Asks the `muster run` of a folder; the value is the answer's. NotFound: nobody listens there.
Result<std::string> AskRun(const std::string& folder, const std::string& verb,
                           std::chrono::nanoseconds limit);

}  // namespace muster::agent
