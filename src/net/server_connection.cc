#include "net/server_connection.h"

#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/log.h"
#include "net/socket_text.h"

namespace muster::net {
namespace {

constexpr int kHeadTooLarge = 431;
constexpr int kBodyTooLarge = 413;
constexpr int kMethodNotAllowed = 405;
constexpr int kMethodUnknown = 501;
// libmicrohttpd wants one for every answer from a callback; it is used for HTTP/1.0 only.
constexpr std::size_t kBlock = 4096;

/// Finds out that the other host is gone while something waits to be sent or nothing is said.
void WatchForSilence(int fd, std::chrono::seconds most) {
  const int on = 1;
  const int seconds = static_cast<int>(std::max<std::int64_t>(most.count() / 4, 1));
  const int probes = 3;
  const auto milliseconds = static_cast<unsigned>(std::chrono::milliseconds(most).count());
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
}

MHD_Result TakeHeader(void* to, MHD_ValueKind, const char* name, const char* value) {
  static_cast<std::vector<Header>*>(to)->push_back({name, value == nullptr ? "" : value});
  return MHD_YES;
}

MHD_Result TakeArgument(void* to, MHD_ValueKind, const char* name, const char* value) {
  static_cast<std::map<std::string, std::string>*>(to)->emplace(name,
                                                                value == nullptr ? "" : value);
  return MHD_YES;
}

Response Refusal(const Error& error, int status = 0) {
  Response response = ErrorResponse(error);
  if (status != 0) response.status = status;
  return response;
}

/// What Content-Length says; nothing for a body that comes in chunks.
std::optional<std::uint64_t> AnnouncedBody(const std::vector<Header>& headers) {
  if (FindHeader(headers, "Transfer-Encoding")) return std::nullopt;
  const auto text = FindHeader(headers, "Content-Length");
  if (!text) return 0;
  std::uint64_t length = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), length);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return length;
}

ssize_t OnReadStream(void* connection, std::uint64_t, char* out, std::size_t most) {
  return static_cast<ServerConnection*>(connection)->ReadStream(out, most);
}

}  // namespace

ServerConnection::ServerConnection(ServerCore& core, MHD_Connection* connection, int fd)
    : core_(core), connection_(connection), fd_(fd) {
  WatchForSilence(fd, core.options().stall_timeout);
  SetDeadline();
}

ServerConnection::~ServerConnection() {
  DropDeadline();
  if (peer_watch_) core_.loop().Remove(*peer_watch_);
}

void ServerConnection::SetDeadline() {
  DropDeadline();
  deadline_ = core_.loop().After(core_.options().request_timeout, [this] {
    deadline_.reset();
    ++core_.counters().timed_out;
    // libmicrohttpd sees a closed peer and cleans up.
    ::shutdown(fd_, SHUT_RDWR);
  });
}

void ServerConnection::DropDeadline() {
  if (deadline_) core_.loop().Remove(*std::exchange(deadline_, std::nullopt));
}

ServerConnection::Next ServerConnection::Begin(const char* method, const char* path) {
  ++core_.counters().requests;
  exchange_ = std::make_unique<Exchange>();
  ReadHead(path);
  if (const auto known = ParseMethod(method)) {
    exchange_->request.method = *known;
    exchange_->refusal = Refuse();
  } else {
    exchange_->refusal =
        Refusal(Error(Code::kInvalid, "that method is not served here"), kMethodUnknown);
  }
  if (exchange_->refusal) ++core_.counters().refused;
  const auto body = AnnouncedBody(exchange_->request.headers);
  const auto most = static_cast<std::uint64_t>(core_.options().max_body.count);
  if (body && *body > most) {
    // Answered before it comes: a client that waits for "100 Continue" never sends it.
    exchange_->refusal =
        Refusal(Error(Code::kInvalid, fmt::format("a body of {} bytes is too large", *body),
                      fmt::format("at most {} are taken", most)),
                kBodyTooLarge);
    return Answer(*exchange_->refusal);
  }
  // Otherwise a refused body is read and dropped, so that the answer arrives and the connection
  // stays of use: closing over unread bytes would reset it.
  return Next::kGoOn;
}

void ServerConnection::ReadHead(const char* path) {
  Request& request = exchange_->request;
  request.path = path;
  ::MHD_get_connection_values(connection_, MHD_HEADER_KIND, &TakeHeader, &request.headers);
  ::MHD_get_connection_values(connection_, MHD_GET_ARGUMENT_KIND, &TakeArgument, &request.query);
  const auto* info = ::MHD_get_connection_info(connection_, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  if (info != nullptr && info->client_addr != nullptr) {
    request.peer = FormatAddress(AddressOf(*info->client_addr));
  }
}

std::optional<Response> ServerConnection::Refuse() {
  const auto* head =
      ::MHD_get_connection_info(connection_, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  if (head != nullptr &&
      head->header_size > static_cast<std::size_t>(core_.options().max_head.count)) {
    return Refusal(Error(Code::kInvalid, "the request's head is too large"), kHeadTooLarge);
  }
  Request& request = exchange_->request;
  if (core_.options().admit) {
    if (const Status admitted = core_.options().admit(request); !admitted) {
      return Refusal(admitted.error());
    }
  }
  auto match = core_.table().Find(request.method, request.path);
  const ServerRoute* const route = match ? &core_.route(match->route) : nullptr;
  // Who has no token does not even learn which paths there are.
  if (route == nullptr || route->access == Access::kToken) {
    if (const Status known = CheckToken(); !known) return Refusal(known.error());
  }
  if (!match) {
    return Refusal(match.error(), match.error().code() == Code::kInvalid ? kMethodNotAllowed : 0);
  }
  request.bound = std::move(match->bound);
  exchange_->route = route;
  return std::nullopt;
}

Status ServerConnection::CheckToken() const {
  const auto& token = core_.options().token;
  if (!token) return Ok();
  const auto header = FindHeader(exchange_->request.headers, "Authorization");
  if (!header) {
    return Error(Code::kUnauthenticated, "the request has no token",
                 "send 'Authorization: Bearer TOKEN'");
  }
  if (token->AdmitsHeader(*header)) return Ok();
  return Error(Code::kUnauthenticated, "the token is not the one of this server",
               "take the token file of the server that you want to reach");
}

ServerConnection::Next ServerConnection::TakeBody(const char* data, std::size_t size) {
  if (exchange_->answered) return Next::kGoOn;
  exchange_->received += size;
  // Only a body in chunks comes here: no answer can be given in its midst.
  if (exchange_->received > static_cast<std::size_t>(core_.options().max_body.count)) {
    ++core_.counters().refused;
    return Next::kClose;
  }
  if (!exchange_->refusal) exchange_->request.body.append(data, size);
  return Next::kGoOn;
}

ServerConnection::Next ServerConnection::Finish() {
  if (exchange_->answered) return Next::kGoOn;
  if (exchange_->refusal) return Answer(*exchange_->refusal);
  if (exchange_->route->streams) return StartStream();
  const Result<Response> response = exchange_->route->handler(exchange_->request);
  return Answer(response ? *response : ErrorResponse(response.error()));
}

ServerConnection::Next ServerConnection::Answer(const Response& response) {
  MHD_Response* const made = ::MHD_create_response_from_buffer(
      response.body.size(), const_cast<char*>(response.body.data()), MHD_RESPMEM_MUST_COPY);
  std::vector<Header> headers = response.headers;
  headers.push_back({"Content-Type", response.content_type});
  return Queue(response.status, made, headers);
}

ServerConnection::Next ServerConnection::StartStream() {
  auto state = std::make_shared<StreamState>(
      static_cast<std::size_t>(core_.options().max_stream_queue.count));
  const Status started = exchange_->route->streams(exchange_->request, EventStream(state));
  // A handler that kept the stream and refused it all the same holds one that has ended.
  if (!started) state->End(StreamEnd::kClosed);
  if (!started) return Answer(ErrorResponse(started.error()));
  MHD_Response* const response =
      ::MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlock, &OnReadStream, this, nullptr);
  const Next next = Queue(200, response, {{"Content-Type", "text/event-stream"}});
  if (next == Next::kClose) {
    state->End(StreamEnd::kPeerGone);
    core_.Ended(std::move(state));
    return next;
  }
  exchange_->stream = std::move(state);
  exchange_->stream->set_carrier(this);
  ++core_.counters().streams;
  DropDeadline();
  WatchPeer();
  return next;
}

ServerConnection::Next ServerConnection::Queue(int status, MHD_Response* response,
                                               const std::vector<Header>& headers) {
  if (response == nullptr) return Next::kClose;  // no memory
  exchange_->answered = true;
  SetDeadline();
  bool whole = ::MHD_add_response_header(response, "Cache-Control", "no-store") == MHD_YES &&
               ::MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES;
  for (const Header& header : headers) {
    whole = whole && ::MHD_add_response_header(response, header.name.c_str(),
                                               header.value.c_str()) == MHD_YES;
  }
  if (!whole) log::Error("a handler answered with an impossible header", {{"status", status}});
  const bool queued = whole && ::MHD_queue_response(connection_, static_cast<unsigned>(status),
                                                    response) == MHD_YES;
  ::MHD_destroy_response(response);
  return queued ? Next::kGoOn : Next::kClose;
}

void ServerConnection::Complete(bool server_stops) {
  if (const auto stream = exchange_->stream) {
    if (peer_watch_) core_.loop().Remove(*std::exchange(peer_watch_, std::nullopt));
    const bool drained = stream->closing() && stream->queued_bytes() == 0;
    stream->End(server_stops ? StreamEnd::kServerGone
                : drained    ? StreamEnd::kClosed
                             : StreamEnd::kPeerGone);
    if (stream->end() == StreamEnd::kSlowReader) ++core_.counters().slow_readers;
    stream->set_carrier(nullptr);
    --core_.counters().streams;
    core_.Ended(stream);
  }
  exchange_.reset();
  suspended_ = false;
  SetDeadline();
}

std::ptrdiff_t ServerConnection::ReadStream(char* out, std::size_t most) {
  StreamState& stream = *exchange_->stream;
  if (stream.end()) return MHD_CONTENT_READER_END_WITH_ERROR;
  const std::size_t count = stream.Take(out, most);
  if (count > 0) return static_cast<std::ptrdiff_t>(count);
  if (stream.closing()) return MHD_CONTENT_READER_END_OF_STREAM;
  suspended_ = true;
  ::MHD_suspend_connection(connection_);
  return 0;
}

/// A suspended connection is not watched by libmicrohttpd, and one that sends is not read.
void ServerConnection::WatchPeer() {
  auto watch = core_.loop().Watch(fd_, EPOLLRDHUP, [this](std::uint32_t) { PeerGone(); });
  if (watch) peer_watch_ = *watch;
}

void ServerConnection::PeerGone() {
  core_.loop().Remove(*std::exchange(peer_watch_, std::nullopt));
  exchange_->stream->End(StreamEnd::kPeerGone);
  Cut();
}

void ServerConnection::Heartbeat(const SharedFrame& comment) {
  if (!exchange_ || !exchange_->stream) return;
  StreamState& stream = *exchange_->stream;
  if (stream.TakeActivity() || stream.queued_bytes() > 0 || stream.end() || stream.closing()) {
    return;
  }
  [[maybe_unused]] const Status sent = stream.Push(comment);  // an empty queue takes it
}

void ServerConnection::Release() {
  if (exchange_ && exchange_->stream) exchange_->stream->End(StreamEnd::kServerGone);
  Wake();
}

void ServerConnection::Wake() {
  if (!std::exchange(suspended_, false)) return;
  ::MHD_resume_connection(connection_);
  core_.RunSoon();
}

void ServerConnection::Cut() {
  ::shutdown(fd_, SHUT_RDWR);
  Wake();
}

}  // namespace muster::net
