#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "agent/coordinator/gang.h"
#include "agent/coordinator/run_loop.h"
#include "base/host_name.h"
#include "net/tls.h"
#include "profile/report/go_on.h"

namespace muster::agent {
namespace {

constexpr auto kLease = std::chrono::seconds(15);
constexpr const char* kAnyHost = "0.0.0.0";

}  // namespace

/// This host is the first node; the others join by the hub.
Status RunLoop::SetUpGang(std::uint64_t soft_nofile) {
  const net::Address listen =
      MUSTER_TRY(net::ParseAddress(options_.listen, net::PortZero::kFreePort));
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
  auto gang = std::make_unique<Gang>(
      GangOptions{.slots = options_.nodes, .ranks_per_slot = options_.ranks / options_.nodes},
      *loop_, [this](const Report& said) { Hear(said); });
  // What it says while it is made concerns nobody but itself.
  auto relay = std::make_shared<OnReport>([](const Report&) {});
  auto own =
      MUSTER_TRY(MakeOwnNode([relay](Report said) { (*relay)(std::move(said)); }, soft_nofile));
  gang->Add(HostName(), [&](OnReport on_report) {
    *relay = std::move(on_report);
    return std::move(own);
  });
  hub_ = MUSTER_TRY(AgentHub::Listen(
      *loop_, std::move(hub),
      [this, raw = gang.get()](const std::string& name, const Gang::MakeNode& make) {
        events_.Add("node_joined", {{"node", name}});
        raw->Add(name, make);
      }));
  const net::Address bound = hub_->address();
  const std::string host = bound.host == kAnyHost ? HostName() : bound.host;
  join_url_ = fmt::format("{}://{}/{}", fragment.empty() ? "http" : "https",
                          net::FormatAddress({host, bound.port}), fragment);
  node_ = std::move(gang);
  return folder_.Write("join-url", join_url_ + "\n", 0600);
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
  console_->Say(fmt::format("muster: on each other node: muster agent --join {} --token-file {}",
                            profile::ShellWord(join_url_),
                            profile::ShellWord(folder_.At("join-token"))));
}

}  // namespace muster::agent
