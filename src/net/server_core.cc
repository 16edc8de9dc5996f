#include "net/server_core.h"

#include <microhttpd.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <utility>

#include "base/log.h"
#include "net/listen_socket.h"
#include "net/server_connection.h"

namespace muster::net {
namespace {

// One buffer a connection holds head, body pieces and chunks of the answer.
constexpr std::size_t kConnectionMemory = 32 << 10;
constexpr const char* kTlsVersions = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

// Without the pipe by which other threads would wake it: RunSoon does, for less.
constexpr unsigned kSuspendOnly = MHD_ALLOW_SUSPEND_RESUME & ~unsigned{MHD_USE_ITC};

using Next = ServerConnection::Next;

MHD_Result ResultOf(Next next) { return next == Next::kGoOn ? MHD_YES : MHD_NO; }

ServerConnection* ConnectionOf(MHD_Connection* connection) {
  const auto* info = ::MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info == nullptr ? nullptr : static_cast<ServerConnection*>(info->socket_context);
}

MHD_Result OnRequest(void*, MHD_Connection* raw, const char* path, const char* method,
                     const char* /*version*/, const char* data, std::size_t* size, void** seen) {
  ServerConnection* const connection = ConnectionOf(raw);
  if (connection == nullptr) return MHD_NO;
  if (*seen == nullptr) {
    *seen = connection;
    return ResultOf(connection->Begin(method, path));
  }
  if (*size == 0) return ResultOf(connection->Finish());
  const Next next = connection->TakeBody(data, *size);
  *size = 0;
  return ResultOf(next);
}

void OnCompleted(void*, MHD_Connection* raw, void** seen, MHD_RequestTerminationCode code) {
  ServerConnection* const connection = ConnectionOf(raw);
  if (connection == nullptr || *seen == nullptr) return;
  *seen = nullptr;
  connection->Complete(code == MHD_REQUEST_TERMINATED_DAEMON_SHUTDOWN);
}

void OnConnection(void* core, MHD_Connection* raw, void** context,
                  MHD_ConnectionNotificationCode code) {
  auto* const server = static_cast<ServerCore*>(core);
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    *context = server->Opened(raw);
  } else if (*context != nullptr) {
    server->Closed(static_cast<ServerConnection*>(std::exchange(*context, nullptr)));
  }
}

__attribute__((format(printf, 2, 0))) void OnLog(void*, const char* format, va_list arguments) {
  std::array<char, 512> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  log::Debug("http server", {{"libmicrohttpd", text.data()}});
}

}  // namespace

ServerCore::ServerCore(os::EventLoop& loop, ServerOptions options)
    : loop_(loop), options_(std::move(options)) {}

ServerCore::~ServerCore() {
  if (heartbeat_) loop_.Remove(*heartbeat_);
  if (watch_) loop_.Remove(*watch_);
  if (daemon_ != nullptr) {
    MUSTER_CHECK(!running_);
    for (auto& [key, connection] : connections_) connection->Release();
    ::MHD_stop_daemon(daemon_);
  }
  if (timeout_) loop_.Remove(*timeout_);
  connections_.clear();
  for (const auto& stream : std::exchange(ended_, {})) stream->TellEnd();
}

Status ServerCore::Start() {
  // libmicrohttpd takes 0 for never.
  MUSTER_CHECK(options_.stall_timeout.count() > 0 && options_.max_connections > 0);
  Fd listening = std::move(options_.listening);
  if (listening.valid()) {
    address_ = MUSTER_TRY(BoundAddress(listening.get()));
  } else {
    ListenSocket opened = MUSTER_TRY(OpenListenSocket(options_.address));
    listening = std::move(opened.fd);
    address_ = std::move(opened.address);
  }
  daemon_ = StartDaemon(std::move(listening));
  if (daemon_ == nullptr) {
    return Error(Code::kPrecondition, "the HTTP server on " + FormatAddress(address_) +
                                          " does not start" +
                                          (options_.tls ? ": TLS refused its certificate?" : ""));
  }
  const auto* info = ::MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
  MUSTER_CHECK(info != nullptr);
  watch_ = MUSTER_TRY(loop_.Watch(info->epoll_fd, EPOLLIN, [this](std::uint32_t) { Run(); }));
  heartbeat_ = loop_.After(options_.heartbeat, [this] { SendHeartbeats(); });
  return Ok();
}

MHD_Daemon* ServerCore::StartDaemon(Fd listening) {
  unsigned flags = MHD_USE_EPOLL | kSuspendOnly | MHD_USE_ERROR_LOG;
  std::vector<MHD_OptionItem> items{
      {MHD_OPTION_EXTERNAL_LOGGER, reinterpret_cast<intptr_t>(&OnLog), nullptr},
      {MHD_OPTION_NOTIFY_CONNECTION, reinterpret_cast<intptr_t>(&OnConnection), this},
      {MHD_OPTION_NOTIFY_COMPLETED, reinterpret_cast<intptr_t>(&OnCompleted), nullptr},
      {MHD_OPTION_CONNECTION_LIMIT, static_cast<intptr_t>(options_.max_connections), nullptr},
      {MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionMemory, nullptr},
      {MHD_OPTION_CONNECTION_TIMEOUT, static_cast<intptr_t>(options_.stall_timeout.count()),
       nullptr},
      {MHD_OPTION_STRICT_FOR_CLIENT, 1, nullptr},
  };
  if (options_.tls) {
    flags |= MHD_USE_TLS;
    const auto text = [](const std::string& pem) { return const_cast<char*>(pem.c_str()); };
    items.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, text(options_.tls->key_pem)});
    items.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0, text(options_.tls->certificate_pem)});
    items.push_back({MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kTlsVersions)});
  }
  items.push_back({MHD_OPTION_END, 0, nullptr});
  // It closes the socket, also when it does not start.
  const int fd = listening.get();
  MHD_Daemon* daemon =
      ::MHD_start_daemon(flags, 0, nullptr, nullptr, &OnRequest, nullptr, MHD_OPTION_ARRAY,
                         items.data(), MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_END);
  if (daemon != nullptr) [[maybe_unused]]
    const int given = listening.Release();
  return daemon;
}

void ServerCore::Add(Method method, std::string_view pattern, ServerRoute route) {
  const std::size_t number = table_.Add(method, pattern);
  MUSTER_CHECK(number == routes_.size());
  routes_.push_back(std::move(route));
}

ServerConnection* ServerCore::Opened(MHD_Connection* connection) {
  const auto* info = ::MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  auto made = std::make_unique<ServerConnection>(*this, connection, info->connect_fd);
  ServerConnection* const key = made.get();
  connections_.emplace(key, std::move(made));
  ++counters_.connections;
  ++counters_.accepted;
  return key;
}

void ServerCore::Closed(ServerConnection* connection) {
  connections_.erase(connection);
  --counters_.connections;
  // libmicrohttpd stops listening while it has as many as it may, or no descriptor is free, and
  // looks whether it may again when it is run, which nothing else would cause.
  RunSoon();
}

void ServerCore::Run() {
  running_ = true;
  soon_ = false;
  ::MHD_run(daemon_);
  running_ = false;
  for (const auto& stream : std::exchange(ended_, {})) stream->TellEnd();
  SetTimeout();
}

void ServerCore::SetTimeout() {
  if (soon_) return;
  MHD_UNSIGNED_LONG_LONG milliseconds = 0;
  if (::MHD_get_timeout(daemon_, &milliseconds) != MHD_YES) {
    if (timeout_) loop_.Remove(*std::exchange(timeout_, std::nullopt));
    return;
  }
  RunAfter(std::chrono::milliseconds(milliseconds));
}

void ServerCore::RunAfter(std::chrono::nanoseconds delay) {
  if (timeout_) loop_.Remove(*timeout_);
  timeout_ = loop_.After(delay, [this] {
    timeout_.reset();
    Run();
  });
}

void ServerCore::RunSoon() {
  if (!std::exchange(soon_, true)) RunAfter(std::chrono::nanoseconds(0));
}

void ServerCore::SendHeartbeats() {
  const auto comment = std::make_shared<const std::string>(FormatComment(""));
  for (auto& [key, connection] : connections_) connection->Heartbeat(comment);
  heartbeat_ = loop_.After(options_.heartbeat, [this] { SendHeartbeats(); });
}

}  // namespace muster::net
