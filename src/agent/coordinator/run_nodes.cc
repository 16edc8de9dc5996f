#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "agent/coordinator/gang.h"
#include "agent/coordinator/run_loop.h"
#include "base/host_name.h"
#include "net/own_address.h"
#include "net/tls.h"
#include "profile/report/go_on.h"
#include "spec/env.h"

namespace muster::agent {
namespace {

constexpr auto kLease = std::chrono::seconds(15);
constexpr auto kSshAgain = std::chrono::seconds(5);
constexpr const char* kAnyHost = "0.0.0.0";

}  // namespace

/// One address of this host, so that the store is where agents are and nowhere else.
Result<net::Address> RunLoop::ListenAddress() const {
  if (!options_.listen.empty()) {
    return net::ParseAddress(options_.listen, net::PortZero::kFreePort);
  }
  std::string towards = options_.hosts.empty() ? "" : options_.hosts[0];
  towards = towards.substr(towards.find('@') + 1);
  auto own = net::FindOwnAddress(towards);
  // What ssh calls a host may be a name that only ssh knows.
  if (!own) own = net::FindOwnAddress("");
  return net::Address{MUSTER_TRY(std::move(own)).host, 0};
}

/// This host is the first node; the others join by the hub.
Status RunLoop::SetUpGang() {
  const net::Address listen = MUSTER_TRY(ListenAddress());
  store_host_ = listen.host == "localhost" ? kThisHost : listen.host;
  join_token_ = MUSTER_TRY(net::JoinToken::CreateFile(folder_.At("join-token")));
  HubOptions hub{.address = {store_host_, listen.port},
                 .token = *join_token_,
                 .ticket = Ticket(),
                 .version = options_.version};
  // Whoever is on this host could read a plain connection's token anyway.
  std::string fragment;
  if (!net::IsLoopback(hub.address)) {
    hub.tls = MUSTER_TRY(net::MakeTlsIdentity("muster run", clock_.Wall()));
    fragment = "#" + hub.tls->fingerprint.ToString();
  }
  auto gang = std::make_unique<Gang>(GangOptions{.slots = options_.nodes,
                                                 .least = options_.least_nodes,
                                                 .ranks_per_slot = options_.ranks / options_.nodes},
                                     *loop_, [this](const Report& said) { Hear(said); });
  if (!options_.leads_only) MUSTER_TRY(AddOwnNode(*gang));
  hub_ = MUSTER_TRY(AgentHub::Listen(
      *loop_, std::move(hub),
      [this, raw = gang.get()](const std::string& name, const Gang::MakeNode& make) {
        events_.Add("node_joined", {{"node", name}});
        joined_.insert(name);
        raw->Add(name, make);
      },
      ground_.make_routes));
  const net::Address bound = hub_->address();
  const std::string host = bound.host == kAnyHost ? HostName() : bound.host;
  join_url_ = fmt::format("{}://{}/{}", fragment.empty() ? "http" : "https",
                          net::FormatAddress({host, bound.port}), fragment);
  node_ = std::move(gang);
  MUSTER_TRY(folder_.Write("join-url", join_url_ + "\n", 0600));
  return StartSsh();
}

/// What the node says while it is made concerns nobody but itself.
Status RunLoop::AddOwnNode(Gang& gang) {
  auto relay = std::make_shared<OnReport>([](const Report&) {});
  auto own = MUSTER_TRY(MakeOwnNode([relay](Report said) { (*relay)(std::move(said)); }));
  gang.Add(HostName(), [&](OnReport on_report) {
    *relay = std::move(on_report);
    return std::move(own);
  });
  return Ok();
}

Status RunLoop::StartSsh() {
  if (options_.hosts.empty()) return Ok();
  // Each host sees us at an address of its own, which its ssh knows.
  const bool any = hub_->address().host == kAnyHost;
  std::string url = join_url_;
  if (any) url.replace(url.find("//") + 2, HostName().size(), kSshClient);
  ssh_ = MUSTER_TRY(SshAgents::Start(
      *loop_,
      {.ssh = options_.ssh,
       .hosts = options_.hosts,
       .muster = std::filesystem::path(options_.shim).parent_path() / "muster",
       .url = url,
       .token = join_token_->Reveal(),
       .environment = VariablesForNodes(spec::ProcessEnviron())},
      [this](const std::string& host, const os::Exit& exit) { SshEnded(host, exit); }));
  return Ok();
}

/// A host that was never reached is a mistake; one that was comes back, or is waited for.
void RunLoop::SshEnded(const std::string& host, const os::Exit& exit) {
  if (exit.ok() || state_.verdict) return;
  const std::string what = fmt::format("the agent on {} ended: ssh: {}", host, os::Describe(exit));
  console_->Say("muster: " + what);
  if (!joined_.contains(host.substr(host.find('@') + 1))) {
    if (state_.phase == Phase::kIdle || state_.phase == Phase::kStarting) {
      FailStart(Error(Code::kUnavailable, what, "look above for what ssh or the agent said"));
    }
    return;
  }
  loop_->After(kSshAgain, [this, host] {
    if (!state_.verdict) static_cast<void>(ssh_->StartOne(host));
  });
}

JobTicket RunLoop::Ticket() const {
  std::error_code gone;
  return {.run_id = run_id_,
          .folder = folder_.path(),
          .cwd = std::filesystem::current_path(gone).string(),
          .job_yaml = options_.job_yaml,
          .flags = options_.flags,
          .ranks = options_.ranks,
          .ranks_per_node = options_.ranks / options_.nodes,
          .lease = kLease};
}

void RunLoop::TellHowToJoin() {
  if (!options_.hosts.empty()) return;
  console_->Say(fmt::format("muster: on each other node: muster agent --join {} --token-file {}",
                            profile::ShellWord(join_url_),
                            profile::ShellWord(folder_.At("join-token"))));
}

}  // namespace muster::agent
