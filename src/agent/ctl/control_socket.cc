#include "agent/ctl/control_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "os/wait_fd.h"

namespace muster::agent {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kName = "control";
constexpr std::size_t kMostPeers = 8;
constexpr std::size_t kMostRequest = 4 << 10;
constexpr std::size_t kMostAnswer = 64 << 20;
constexpr auto kRequestLimit = std::chrono::seconds(5);
constexpr auto kAnswerLimit = std::chrono::seconds(30);

sockaddr_un AddressIn(int folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  fmt::format_to_n(address.sun_path, sizeof(address.sun_path) - 1, "/proc/self/fd/{}/{}", folder,
                   kName);
  return address;
}

const sockaddr* Plain(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);  // NOLINT: how sockets take it
}

Result<Fd> OpenFolder(const std::string& folder) {
  Fd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError("open " + folder, errno);
  return fd;
}

bool IsOurs(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

std::string FormatAnswer(const Result<std::string>& answer) {
  if (answer) return "{\"error\":null,\"value\":" + *answer + "}\n";
  const Error& error = answer.error();
  const Json json = {{"error",
                      {{"code", TraitsOf(error.code()).name},
                       {"message", error.message()},
                       {"hint", error.hint()}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::string> ParseAnswer(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("error")) {
    return Error(Code::kUnavailable, "muster run ended before it had answered");
  }
  const Json& error = json["error"];
  if (error.is_null()) return json.value("value", Json()).dump();
  const auto word = [&](const char* key) {
    return error.is_object() && error.contains(key) && error[key].is_string()
               ? error[key].get<std::string>()
               : std::string();
  };
  return Error(CodeNamed(word("code")).value_or(Code::kBug), word("message"), word("hint"));
}

}  // namespace

ControlSocket::ControlSocket(os::EventLoop& loop, Fd folder, Fd listening, Handler handler)
    : loop_(loop),
      folder_(std::move(folder)),
      listening_(std::move(listening)),
      handler_(std::move(handler)),
      self_(std::make_shared<ControlSocket*>(this)) {}

Result<std::unique_ptr<ControlSocket>> ControlSocket::Listen(os::EventLoop& loop,
                                                             const std::string& folder,
                                                             Handler handler) {
  Fd at = MUSTER_TRY(OpenFolder(folder));
  Fd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listening.valid()) return ErrnoError("socket", errno);
  // The file that bind makes gets these rights.
  if (::fchmod(listening.get(), 0600) < 0) return ErrnoError("fchmod", errno);
  ::unlinkat(at.get(), kName, 0);
  const sockaddr_un address = AddressIn(at.get());
  if (::bind(listening.get(), Plain(address), sizeof(address)) < 0 ||
      ::listen(listening.get(), kMostPeers) < 0) {
    return ErrnoError(fmt::format("bind {}/{}", folder, kName), errno);
  }
  std::unique_ptr<ControlSocket> control(
      new ControlSocket(loop, std::move(at), std::move(listening), std::move(handler)));
  control->watch_ = MUSTER_TRY(loop.Watch(control->listening_.get(), EPOLLIN,
                                          [raw = control.get()](std::uint32_t) { raw->Accept(); }));
  return control;
}

ControlSocket::~ControlSocket() {
  while (!peers_.empty()) Close(peers_.begin()->first);
  if (watch_) loop_.Remove(*watch_);
  ::unlinkat(folder_.get(), kName, 0);
}

void ControlSocket::Accept() {
  Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid() || peers_.size() >= kMostPeers || !IsOurs(fd.get())) return;
  const std::uint64_t id = next_id_++;
  const auto watch = loop_.Watch(
      fd.get(), EPOLLIN, [this, id](std::uint32_t) { peers_.at(id).asked ? Write(id) : Read(id); });
  if (!watch) return;
  const auto limit = loop_.After(kRequestLimit, [this, id] { Close(id); });
  peers_.emplace(id, Peer{std::move(fd), *watch, limit});
}

void ControlSocket::Read(std::uint64_t id) {
  Peer& peer = peers_.at(id);
  std::array<char, kMostRequest> bytes{};
  const ssize_t n = ::read(peer.fd.get(), bytes.data(), bytes.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) return Close(id);
  peer.in.append(bytes.data(), static_cast<std::size_t>(n));
  const auto end = peer.in.find('\n');
  if (end == std::string::npos && peer.in.size() < kMostRequest) return;
  peer.asked = true;
  // Until there is an answer only a hang-up is of interest.
  static_cast<void>(loop_.Change(peer.watch, 0));
  loop_.Remove(peer.limit);
  peer.limit = loop_.After(kAnswerLimit, [this, id] { Close(id); });
  Handle(id, peer.in.substr(0, end));
}

void ControlSocket::Handle(std::uint64_t id, const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  const bool whole = json.is_object() && json.contains("verb") && json["verb"].is_string();
  if (!whole) return Answer(id, Error(Code::kInvalid, "a request that is no {\"verb\": …}"));
  handler_(json["verb"].get<std::string>(),
           [self = std::weak_ptr(self_), id](const Result<std::string>& answer) {
             if (const auto alive = self.lock()) (*alive)->Answer(id, answer);
           });
}

void ControlSocket::Answer(std::uint64_t id, const Result<std::string>& answer) {
  const auto peer = peers_.find(id);
  if (peer == peers_.end()) return;  // it did not wait
  peer->second.out = FormatAnswer(answer);
  Write(id);
}

void ControlSocket::Write(std::uint64_t id) {
  Peer& peer = peers_.at(id);
  if (peer.out.empty()) return Close(id);  // it hung up
  const ssize_t n = ::send(peer.fd.get(), peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN && errno != EINTR) return Close(id);
  if (n > 0) peer.out.erase(0, static_cast<std::size_t>(n));
  if (peer.out.empty()) return Close(id);
  static_cast<void>(loop_.Change(peer.watch, EPOLLOUT));
}

void ControlSocket::Close(std::uint64_t id) {
  const auto peer = peers_.find(id);
  if (peer == peers_.end()) return;
  loop_.Remove(peer->second.watch);
  loop_.Remove(peer->second.limit);
  peers_.erase(peer);
}

Result<std::string> AskRun(const std::string& folder, const std::string& verb,
                           std::chrono::nanoseconds limit) {
  const Fd at = MUSTER_TRY(OpenFolder(folder));
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressIn(at.get());
  if (!fd.valid()) return ErrnoError("socket", errno);
  if (::connect(fd.get(), Plain(address), sizeof(address)) < 0) {
    const bool nobody = errno == ENOENT || errno == ECONNREFUSED;
    if (!nobody) return ErrnoError(fmt::format("connect to {}/{}", folder, kName), errno);
    return Error(Code::kNotFound, "no muster run listens at " + folder);
  }
  const std::string request = Json{{"verb", verb}}.dump() + "\n";
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return ErrnoError("ask muster run", errno);
  }
  const Instant deadline = SystemClock().Now() + limit;
  std::string answer;
  std::array<char, 64 << 10> bytes{};
  for (;;) {
    if (!MUSTER_TRY(os::WaitFd(fd.get(), POLLIN, deadline - SystemClock().Now()))) {
      return Error(Code::kDeadline, "muster run does not answer", "it may be stopped or busy");
    }
    const ssize_t n = ::read(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || answer.size() > kMostAnswer) break;
    answer.append(bytes.data(), static_cast<std::size_t>(n));
  }
  return ParseAnswer(answer);
}

}  // namespace muster::agent
