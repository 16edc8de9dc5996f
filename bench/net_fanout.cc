// How long does one table take to thousands of readers, and their acknowledgements back? A process
// serves event streams, another one holds all readers, each with a stream and a connection for its
// answers. Every round one event goes to all streams and every reader posts that it has it. The
// first round opens the readers' second connections.
//
//   net_fanout [readers=2000] [bytes=100000] [rounds=7] [plain|tls]
//
// Prints RESULT lines; fails when an acknowledgement is missing after a minute.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "net/http_client.h"
#include "net/http_server.h"
#include "net/listen_socket.h"

namespace {

using namespace muster;
using net::Request;
using net::Response;

constexpr auto kMost = std::chrono::minutes(1);

struct Plan {
  std::size_t readers = 2000;
  std::size_t bytes = 100'000;
  std::size_t rounds = 7;
  bool tls = false;
};

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "net_fanout: %s\n", why.c_str());
  std::_Exit(1);
}

template <typename T>
T Need(Result<T> result) {
  if (!result) Fail(result.error().ToString());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

double CpuMilliseconds(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec used{};
  ::clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) / 1e6;
}

double Milliseconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1e6;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

template <typename Happened>
void TurnUntil(os::EventLoop& loop, const char* what, Happened happened) {
  const Instant end = MonotonicClock::now() + kMost;
  while (!happened()) {
    if (MonotonicClock::now() > end) Fail(std::string("waited a minute for ") + what);
    Need(loop.RunOnce(std::chrono::seconds(1)));
  }
}

/// One reader, as a process of its own would be: a stream, and a connection for its answers.
class Reader {
 public:
  Reader(os::EventLoop& loop, const Plan& plan, std::string base, net::ClientOptions options)
      : plan_(plan), base_(std::move(base)) {
    options.connect_timeout = kMost;
    client_ = Need(net::HttpClient::Create(loop, std::move(options)));
    client_->Listen({.url = base_ + "/events", .answer_timeout = kMost, .silence = kMost},
                    {.on_event = [this](const net::Event& event) { Acknowledge(event); },
                     .on_end = [](const Error& why) { Fail("stream: " + why.ToString()); }});
  }

 private:
  void Acknowledge(const net::Event& event) {
    if (event.data.size() != plan_.bytes) Fail("a table of another size");
    client_->Send({.method = net::Method::kPost,
                   .url = base_ + "/ack",
                   .body = fmt::format(R"({{"table":{}}})", event.id),
                   .timeout = kMost},
                  [](Result<Response> answer) {
                    if (!answer) Fail("acknowledge: " + answer.error().ToString());
                    if (answer->status != 200) Fail("acknowledge: " + answer->body);
                  });
  }

  const Plan& plan_;
  std::string base_;
  std::unique_ptr<net::HttpClient> client_;
};

/// The other process: all readers. Its parent ends it.
[[noreturn]] void Read(const Plan& plan, const std::string& base,
                       const net::ClientOptions& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto loop = Need(os::EventLoop::Create());
  std::vector<std::unique_ptr<Reader>> readers;
  for (std::size_t i = 0; i < plan.readers; ++i) {
    readers.push_back(std::make_unique<Reader>(*loop, plan, base, options));
  }
  Need(loop->Run());
  std::_Exit(0);
}

class Coordinator {
 public:
  Coordinator(const Plan& plan, Fd listening, std::optional<net::TlsIdentity> identity,
              const net::JoinToken& token, pid_t readers)
      : plan_(plan), loop_(Need(os::EventLoop::Create())) {
    if (::clock_getcpuclockid(readers, &readers_clock_) != 0) Fail("no clock of the readers");
    server_ = Need(net::HttpServer::Listen(*loop_, {.listening = std::move(listening),
                                                    .tls = std::move(identity),
                                                    .token = token,
                                                    .max_connections = 20'000,
                                                    .request_timeout = kMost}));
    server_->HandleEvents("/events", [this](const Request&, net::EventStream stream) -> Status {
      streams_.push_back(std::move(stream));
      return Ok();
    });
    server_->Handle(net::Method::kPost, "/ack", [this](const Request&) -> Result<Response> {
      ++acknowledged_;
      return Response{.body = "{}"};
    });
  }

  void Run() {
    const Instant begun = MonotonicClock::now();
    const double cpu = CpuMilliseconds();
    TurnUntil(*loop_, "readers", [&] { return streams_.size() == plan_.readers; });
    std::fprintf(stderr, "%zu streams open after %.0f ms, server %.0f ms of CPU\n", plan_.readers,
                 Milliseconds(MonotonicClock::now() - begun), CpuMilliseconds() - cpu);
    for (std::size_t round = 0; round < plan_.rounds; ++round) Push(round);
    const std::string kind = plan_.tls ? "tls" : "plain";
    if (wall_.empty()) return;
    fmt::print("RESULT net_fanout_{}_wall {:.1f} ms\n", kind, Median(wall_));
    fmt::print("RESULT net_fanout_{}_server_cpu {:.1f} ms\n", kind, Median(cpu_));
    fmt::print("RESULT net_fanout_{}_readers_cpu {:.1f} ms\n", kind, Median(readers_cpu_));
  }

 private:
  void Push(std::size_t round) {
    acknowledged_ = 0;
    const net::SharedFrame table = net::ShareEvent(
        {.id = std::to_string(round + 1), .type = "table", .data = std::string(plan_.bytes, 't')});
    const Instant begun = MonotonicClock::now();
    const double before = CpuMilliseconds();
    const double readers_before = CpuMilliseconds(readers_clock_);
    for (net::EventStream& stream : streams_) Need(stream.Send(table));
    TurnUntil(*loop_, "acknowledgements", [&] { return acknowledged_ >= plan_.readers; });
    const double wall = Milliseconds(MonotonicClock::now() - begun);
    const double cpu = CpuMilliseconds() - before;
    const double readers_cpu = CpuMilliseconds(readers_clock_) - readers_before;
    std::fprintf(stderr, "round %zu: %.0f ms; CPU: server %.0f ms, readers %.0f ms\n", round, wall,
                 cpu, readers_cpu);
    if (round == 0) return;  // it opens connections
    wall_.push_back(wall);
    cpu_.push_back(cpu);
    readers_cpu_.push_back(readers_cpu);
  }

  Plan plan_;
  std::unique_ptr<os::EventLoop> loop_;
  std::vector<net::EventStream> streams_;
  std::unique_ptr<net::HttpServer> server_;
  std::size_t acknowledged_ = 0;
  std::vector<double> wall_;
  std::vector<double> cpu_;
  std::vector<double> readers_cpu_;
  clockid_t readers_clock_{};
};

Plan ReadPlan(int count, char** words) {
  Plan plan;
  std::size_t* const numbers[] = {&plan.readers, &plan.bytes, &plan.rounds};
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "tls" || word == "plain") {
      plan.tls = word == "tls";
    } else if (i > 3 ||
               std::from_chars(word.data(), word.data() + word.size(), *numbers[i - 1]).ec !=
                   std::errc()) {
      Fail("usage: net_fanout [readers] [bytes] [rounds] [plain|tls]");
    }
  }
  return plan;
}

void RaiseDescriptors(std::size_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted) {
    Fail(fmt::format("needs {} descriptors, the limit is {}", wanted, limit.rlim_cur));
  }
}

}  // namespace

int main(int count, char** words) {
  const Plan plan = ReadPlan(count, words);
  RaiseDescriptors(4 * plan.readers + 100);
  net::ListenSocket socket = Need(net::OpenListenSocket({"127.0.0.1", 0}));
  const net::JoinToken token = net::JoinToken::Random();
  std::optional<net::TlsIdentity> identity;
  net::ClientOptions options{.token = token};
  if (plan.tls) {
    identity = Need(net::MakeTlsIdentity("net_fanout", SystemClock().Wall()));
    options.pin = identity->fingerprint;
  }
  const std::string base = (plan.tls ? "https://" : "http://") + net::FormatAddress(socket.address);
  const pid_t readers = ::fork();
  if (readers < 0) Fail("fork: " + std::string(std::strerror(errno)));
  if (readers == 0) Read(plan, base, options);
  Coordinator coordinator(plan, std::move(socket.fd), std::move(identity), token, readers);
  coordinator.Run();
  ::kill(readers, SIGKILL);
  ::waitpid(readers, nullptr, 0);
  return 0;
}
