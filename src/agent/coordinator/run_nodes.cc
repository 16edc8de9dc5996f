#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "agent/coordinator/run_loop.h"
#include "base/host_name.h"

namespace muster::agent {

/// This host is the first node; the others join.
Status RunLoop::SetUpGang() {
  net::Address address = MUSTER_TRY(JoinPoint::AddressFor(options_));
  store_host_ = address.host == "localhost" ? kThisHost : address.host;
  address.host = store_host_;
  const GangOptions options{.slots = options_.nodes,
                            .least = options_.least_nodes,
                            .ranks_per_slot = options_.ranks / options_.nodes};
  const auto hear = [this](const Report& said) { Hear(said); };
  auto gang = gang_place_ ? std::make_unique<Gang>(options, *loop_, hear, *gang_place_)
                          : std::make_unique<Gang>(options, *loop_, hear);
  gang_ = gang.get();
  if (!options_.leads_only) MUSTER_TRY(AddOwnNode());
  MUSTER_TRY(OpenJoinPoint(address));
  join_->hub().Rejoin(
      [this](const NodeName& who, const Gang::MakeNode& make) { gang_->Attach(who.agent, make); });
  node_ = std::move(gang);
  return join_->StartSsh();
}

Status RunLoop::OpenJoinPoint(const net::Address& address) {
  JoinOptions options{.job = &options_,
                      .folder = &folder_,
                      .clock = &clock_,
                      .kept = &kept_fds_,
                      .address = address,
                      .ticket = Ticket(),
                      .make_routes = ground_.make_routes,
                      .place = join_place_};
  if (kept_fds_.supervised()) {
    options.keep = [this](bool at_once) { at_once ? Save() : SaveSoon(); };
  }
  join_ = MUSTER_TRY(
      JoinPoint::Open(*loop_, std::move(options),
                      {.on_join =
                           [this](const NodeName& who, const Gang::MakeNode& make) {
                             events_.Add("node_joined", {{"node", who.name}});
                             gang_->Add(who, make);
                           },
                       .on_ssh_end = [this](const std::string& what,
                                            bool joined) { return SshEnded(what, joined); }}));
  return Ok();
}

/// What the node says while it is made concerns nobody but itself.
Status RunLoop::AddOwnNode() {
  const std::uint32_t count = options_.ranks / options_.nodes;
  const RankRange ranks = gang_->OwnRanks().value_or(RankRange{0, count});
  auto relay = std::make_shared<OnReport>([](const Report&) {});
  auto own = MUSTER_TRY(MakeOwnNode(ranks, [relay](Report said) { (*relay)(std::move(said)); }));
  const Gang::MakeNode make = [&](OnReport on_report) {
    *relay = std::move(on_report);
    return std::move(own);
  };
  gang_place_ ? gang_->Attach({}, make) : gang_->Add({.name = HostName()}, make);
  return Ok();
}

/// A host that was never reached is a mistake; one that was comes back, or is waited for.
bool RunLoop::SshEnded(const std::string& what, bool joined) {
  if (state_.verdict) return false;
  console_->Say("muster: " + what);
  if (joined) return true;
  if (state_.phase == Phase::kIdle || state_.phase == Phase::kStarting) {
    FailStart(Error(Code::kUnavailable, what, "look above for what ssh or the agent said"));
  }
  return false;
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
          .lease = std::chrono::ceil<std::chrono::milliseconds>(options_.node_lease)};
}

}  // namespace muster::agent
