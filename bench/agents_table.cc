// How long does a new generation's table take to thousands of agents, and their word that they have
// it back? The coordinator's own Gang, AgentHub and RemotePeers, over TLS on loopback, against as
// many AgentLinks, each with connections of its own, in one other process. What an agent gets is
// its part of the table, the start of its ranks; its answer is that it begun.
//
//   agents_table [agents=2000] [ranks=8] [rounds=7] [tls|plain]
//
// A JSON line a round: seconds to the last answer to a Start, and to a Stop. Fails when an answer
// is missing after a minute.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/coordinator/gang.h"
#include "agent/remote/agent_hub.h"
#include "agent/remote/agent_link.h"

namespace {

using namespace muster;
using namespace muster::agent;

constexpr auto kMost = std::chrono::minutes(1);
constexpr int kAtOnce = 32;  // that join

struct Plan {
  std::uint32_t agents = 2000;
  std::uint32_t ranks = 8;  ///< of each
  std::uint32_t rounds = 7;
  bool tls = true;
};

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "agents_table: %s\n", why.c_str());
  std::_Exit(1);
}

template <typename T>
T Need(Result<T> result) {
  if (!result) Fail(result.error().ToString());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

double CpuSeconds(clockid_t clock) {
  timespec used{};
  ::clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

/// An agent whose ranks begin and end at once.
class Agent {
 public:
  Agent(os::EventLoop& loop, LinkOptions options, std::function<void()> on_joined) {
    link_ = Need(AgentLink::Create(
        loop, std::move(options),
        {.on_ticket = [on_joined](const JobTicket&) { on_joined(); },
         .on_order = [this](const Order& order) { Take(order); },
         .on_trouble =
             [](const Error& why) { std::fprintf(stderr, "%s\n", why.ToString().c_str()); },
         .on_end = [](const Error& why) { Fail("an agent: " + why.ToString()); }}));
    link_->Join();
  }

 private:
  void Take(const Order& order) {
    if (const auto* start = std::get_if<order::Start>(&order)) {
      link_->Send(report::Begun{start->generation});
    } else if (const auto* stop = std::get_if<order::Stop>(&order)) {
      link_->Send(report::Stopped{stop->generation});
    }
  }
  std::unique_ptr<AgentLink> link_;
};

/// The other process: all agents. Its parent ends it.
[[noreturn]] void Serve(const Plan& plan, const LinkOptions& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto loop = Need(os::EventLoop::Create());
  std::vector<std::unique_ptr<Agent>> agents;
  // A few at a time: a handshake costs a millisecond on either side, and all are on this host.
  std::function<void()> next = [&] {
    if (agents.size() == plan.agents) return;
    LinkOptions own = options;
    own.join = {.version = "bench", .name = fmt::format("n{}", agents.size())};
    agents.push_back(std::make_unique<Agent>(*loop, own, [&] { loop->Post(next); }));
  };
  for (int i = 0; i < kAtOnce; ++i) next();
  Need(loop->Run());
  std::_Exit(0);
}

class Coordinator {
 public:
  Coordinator(const Plan& plan, HubOptions options)
      : plan_(plan), loop_(Need(os::EventLoop::Create())) {
    gang_ = std::make_unique<Gang>(
        GangOptions{.slots = plan.agents, .least = plan.agents, .ranks_per_slot = plan.ranks},
        *loop_, [this](const Report& report) { Hear(report); });
    hub_ = Need(AgentHub::Listen(*loop_, std::move(options),
                                 [this](const NodeName& who, const Gang::MakeNode& make) {
                                   gang_->Add(who, make);
                                   ++joined_;
                                 }));
  }
  const net::Address& address() const { return hub_->address(); }

  void Run(pid_t agents) {
    if (::clock_getcpuclockid(agents, &agents_clock_) != 0) Fail("no clock of the agents");
    const Instant begin = MonotonicClock::now();
    Await("agents", [this] { return joined_ == plan_.agents; });
    std::fprintf(stderr, "%u agents joined after %.2f s\n", plan_.agents,
                 Seconds(MonotonicClock::now() - begin));
    for (std::uint64_t round = 0; round < plan_.rounds; ++round) Play(round);
  }

 private:
  void Hear(const Report& report) {
    if (std::holds_alternative<report::Begun>(report)) ++begun_;
    if (std::holds_alternative<report::Stopped>(report)) stopped_ = true;
    if (const auto* lost = std::get_if<report::NodeLost>(&report)) {
      Fail("a node is lost: " + lost->reason);
    }
  }

  /// The first one opens what is kept open from then on.
  void Play(std::uint64_t round) {
    order::Start start{.generation = Generation(round + 1),
                       .world = plan_.agents * plan_.ranks,
                       .master_addr = "10.0.0.1",
                       .master_port = 29500};
    for (std::uint32_t i = 0; i < start.world; ++i) start.ranks.emplace_back(i);
    begun_ = 0;
    const double own = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
    const double theirs = CpuSeconds(agents_clock_);
    const Instant begin = MonotonicClock::now();
    gang_->Send(start);
    const Instant sent = MonotonicClock::now();
    Await("answers to a start", [this] { return begun_ == plan_.agents; });
    const Instant all = MonotonicClock::now();
    const double own_used = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - own;
    const double their_used = CpuSeconds(agents_clock_) - theirs;
    stopped_ = false;
    gang_->Send(order::Stop{start.generation, SIGTERM, {}});
    Await("answers to a stop", [this] { return stopped_; });
    fmt::print(
        R"({{"table_s":{:.4f},"sent_s":{:.4f},"stop_s":{:.4f},"coordinator_cpu_s":{:.4f},"agents_cpu_s":{:.4f}}})"
        "\n",
        Seconds(all - begin), Seconds(sent - begin), Seconds(MonotonicClock::now() - all), own_used,
        their_used);
    std::fflush(stdout);
  }

  template <typename Happened>
  void Await(const char* what, Happened happened) {
    const Instant end = MonotonicClock::now() + kMost;
    while (!happened()) {
      if (MonotonicClock::now() > end) Fail(std::string("waited a minute for ") + what);
      Need(loop_->RunOnce(std::chrono::seconds(1)));
    }
  }

  const Plan plan_;
  std::unique_ptr<os::EventLoop> loop_;
  std::unique_ptr<Gang> gang_;
  std::unique_ptr<AgentHub> hub_;
  std::uint32_t joined_ = 0;
  std::uint32_t begun_ = 0;
  bool stopped_ = false;
  clockid_t agents_clock_{};
};

Plan ReadPlan(int count, char** words) {
  Plan plan;
  std::uint32_t* const numbers[] = {&plan.agents, &plan.ranks, &plan.rounds};
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "tls" || word == "plain") {
      plan.tls = word == "tls";
    } else if (i > 3 ||
               std::from_chars(word.data(), word.data() + word.size(), *numbers[i - 1]).ec !=
                   std::errc()) {
      Fail("usage: agents_table [agents] [ranks] [rounds] [tls|plain]");
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
  RaiseDescriptors(5 * std::size_t{plan.agents} + 100);
  HubOptions hub{
      .address = {"127.0.0.1", 0}, .token = net::JoinToken::Random(), .version = "bench"};
  hub.ticket = {.run_id = "b12",
                .folder = "/none",
                .cwd = "/",
                .job_yaml = "kind: Job\n",
                .ranks = plan.agents * plan.ranks,
                .ranks_per_node = plan.ranks,
                .lease = std::chrono::seconds(60)};
  LinkOptions link{.token = hub.token};
  if (plan.tls) {
    hub.tls = Need(net::MakeTlsIdentity("agents_table", SystemClock().Wall()));
    link.pin = hub.tls->fingerprint;
  }
  Coordinator coordinator(plan, std::move(hub));
  link.coordinator = {.tls = plan.tls, .address = coordinator.address()};
  const pid_t agents = ::fork();
  if (agents < 0) Fail("fork failed");
  if (agents == 0) Serve(plan, link);
  coordinator.Run(agents);
  ::kill(agents, SIGKILL);
  ::waitpid(agents, nullptr, 0);
  return 0;
}
