#include "net/client_transfer.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "base/version.h"

namespace muster::net {
namespace {

constexpr std::size_t kMostHead = 64 << 10;
constexpr std::size_t kMostErrorBody = 64 << 10;  // of an answer where a stream was wanted
constexpr std::size_t kMostShown = 200;

Code CodeOf(CURLcode code) {
  switch (static_cast<int>(code)) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return Code::kInvalid;
    case CURLE_OPERATION_TIMEDOUT:
      return Code::kDeadline;
    case CURLE_PEER_FAILED_VERIFICATION:
      return Code::kDenied;
    case CURLE_OUT_OF_MEMORY:
      return Code::kExhausted;
    case CURLE_WEIRD_SERVER_REPLY:
      return Code::kPrecondition;
    default:
      return Code::kUnavailable;
  }
}

std::string_view WithoutLineEnd(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

ClientTransfer::ClientTransfer(const TransferPlan& plan, TlsPin* pin, std::function<void()> touched)
    : url_(plan.url),
      method_(plan.method),
      pin_(pin),
      touched_(std::move(touched)),
      max_response_(plan.max_response),
      events_(plan.events),
      easy_(::curl_easy_init()),
      why_(std::make_unique<char[]>(CURL_ERROR_SIZE)) {
  MUSTER_CHECK(easy_ != nullptr);
  ::curl_easy_setopt(easy_, CURLOPT_URL, plan.url.c_str());
  ::curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  ::curl_easy_setopt(easy_, CURLOPT_PROXY, "");  // not even from the environment
  ::curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  ::curl_easy_setopt(easy_, CURLOPT_PATH_AS_IS, 1L);
  ::curl_easy_setopt(easy_, CURLOPT_USERAGENT, "muster");
  ::curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, static_cast<long>(plan.timeout.count()));
  ::curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(plan.connect_timeout.count()));
  ::curl_easy_setopt(easy_, CURLOPT_MAXAGE_CONN, static_cast<long>(plan.idle_connection.count()));
  ::curl_easy_setopt(easy_, CURLOPT_OPENSOCKETFUNCTION, &ClientTransfer::OnOpenSocket);
  ::curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, why_.get());
  ::curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  ::curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &ClientTransfer::OnHeader);
  ::curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  ::curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &ClientTransfer::OnBody);
  ::curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  SetBody(plan);
  SetHeaders(plan);
  SetTls();
}

ClientTransfer::~ClientTransfer() {
  ::curl_easy_cleanup(easy_);
  for (curl_slist* item = list_; item != nullptr; item = item->next) {
    ::OPENSSL_cleanse(item->data, std::strlen(item->data));  // one may be the token
  }
  ::curl_slist_free_all(list_);
}

void ClientTransfer::SetHeaders(const TransferPlan& plan) {
  for (const Header& header : plan.headers) {
    std::string line = header.name + ": " + header.value;
    list_ = ::curl_slist_append(list_, line.c_str());
    ::OPENSSL_cleanse(line.data(), line.size());
  }
  ::curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, list_);
}

void ClientTransfer::SetBody(const TransferPlan& plan) {
  if (plan.body != nullptr) {
    ::curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, plan.body->data());  // not copied
    ::curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(plan.body->size()));
  } else if (plan.method == Method::kHead) {
    ::curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
  }
  if (plan.method != Method::kGet && plan.method != Method::kHead) {
    ::curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, std::string(NameOf(plan.method)).c_str());
  }
}

void ClientTransfer::SetTls() {
  ::curl_easy_setopt(easy_, CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
  if (pin_ == nullptr) return;
  // The name in the certificate says nothing: the certificate itself is known. No authority is
  // loaded, which would cost milliseconds for every connection.
  ::curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYPEER, 1L);
  ::curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYHOST, 0L);
  ::curl_easy_setopt(easy_, CURLOPT_CAINFO, nullptr);
  ::curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);
  ::curl_easy_setopt(easy_, CURLOPT_SSL_SESSIONID_CACHE, 0L);
  ::curl_easy_setopt(easy_, CURLOPT_SSL_CTX_FUNCTION, &ClientTransfer::OnContext);
  ::curl_easy_setopt(easy_, CURLOPT_SSL_CTX_DATA, pin_);
}

int ClientTransfer::OnContext(void*, void* context, void* pin) {
  static_cast<TlsPin*>(pin)->InstallIn(context);
  return CURLE_OK;
}

/// As libcurl would, but no program that this process starts inherits it.
int ClientTransfer::OnOpenSocket(void*, int, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

std::size_t ClientTransfer::OnHeader(char* data, std::size_t, std::size_t size, void* self) {
  return static_cast<ClientTransfer*>(self)->TakeHeaderLine({data, size}) ? size : 0;
}

std::size_t ClientTransfer::OnBody(char* data, std::size_t, std::size_t size, void* self) {
  return static_cast<ClientTransfer*>(self)->TakeBody({data, size}) ? size : 0;
}

bool ClientTransfer::TakeHeaderLine(std::string_view line) {
  head_bytes_ += line.size();
  if (head_bytes_ > kMostHead) {
    too_large_ = true;
    return false;
  }
  if (line.starts_with("HTTP/")) {
    response_ = {.status = 0, .content_type = {}};  // "100 Continue" may have been before
    return true;
  }
  line = WithoutLineEnd(line);
  if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    response_.headers.push_back(
        {std::string(line.substr(0, colon)), std::string(Trimmed(line.substr(colon + 1)))});
  }
  if (!line.empty()) return true;
  long status = 0;
  ::curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  response_.status = static_cast<int>(status);
  response_.content_type = FindHeader(response_.headers, "Content-Type").value_or("");
  if (events_ && status == 200 && response_.content_type.starts_with("text/event-stream")) {
    streaming_ = true;
    touched_();
  }
  return true;
}

bool ClientTransfer::TakeBody(std::string_view data) {
  if (streaming_) {
    stream_bytes_ += data;
    touched_();
    return true;
  }
  const std::size_t most = events_ ? kMostErrorBody : max_response_;
  if (response_.body.size() + data.size() > most) {
    too_large_ = true;
    return false;
  }
  response_.body += data;
  return true;
}

bool ClientTransfer::Sent() const {
  long bytes = 0;
  ::curl_easy_getinfo(easy_, CURLINFO_REQUEST_SIZE, &bytes);
  return bytes > 0;
}

Result<Response> ClientTransfer::Outcome(int code) {
  if (code != CURLE_OK) return Failure(code);
  return std::move(response_);
}

Error ClientTransfer::Failure(int code) const {
  const std::string what =
      fmt::format("{} {}", NameOf(method_), CutText(PlainLine(url_), kMostShown));
  if (too_large_) {
    return {Code::kPrecondition, fmt::format("{}: the answer is larger than {} bytes", what,
                                             events_ ? kMostErrorBody : max_response_)};
  }
  if (code == CURLE_PEER_FAILED_VERIFICATION && pin_ != nullptr && pin_->refused()) {
    return {Code::kDenied,
            fmt::format("{}: the server's certificate is {}, expected was {}; nothing was sent",
                        what, pin_->refused()->ToString(), pin_->wanted().ToString()),
            "the server was started anew with another identity, or it is another one: ask whoever "
            "runs it for the fingerprint"};
  }
  if (code == CURLE_COULDNT_CONNECT) {
    long reason = 0;
    ::curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &reason);
    if (reason != 0) {
      return {Code::kUnavailable,
              ErrnoError(what + ": connect", static_cast<int>(reason)).message()};
    }
  }
  const char* const why =
      why_[0] != '\0' ? why_.get() : ::curl_easy_strerror(static_cast<CURLcode>(code));
  return {CodeOf(static_cast<CURLcode>(code)),
          fmt::format("{}: {}", what, CutText(PlainLine(why), kMostShown))};
}

}  // namespace muster::net
