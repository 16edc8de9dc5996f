#include "agent/coordinator/join_point.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/host_name.h"
#include "net/listen_socket.h"
#include "net/own_address.h"
#include "net/tls.h"
#include "profile/report/go_on.h"
#include "spec/env.h"

namespace muster::agent {
namespace {

constexpr const char* kAnyHost = "0.0.0.0";
constexpr const char* kSocketName = "hub";
constexpr const char* kTokenFile = "join-token";
constexpr const char* kUrlFile = "join-url";

}  // namespace

Result<net::Address> JoinPoint::AddressFor(const RunOptions& job) {
  if (!job.listen.empty()) return net::ParseAddress(job.listen, net::PortZero::kFreePort);
  std::string towards = job.hosts.empty() ? "" : job.hosts[0];
  towards = towards.substr(towards.find('@') + 1);
  auto own = net::FindOwnAddress(towards);
  // What ssh calls a host may be a name that only ssh knows.
  if (!own) own = net::FindOwnAddress("");
  return net::Address{MUSTER_TRY(std::move(own)).host, 0};
}

JoinPoint::JoinPoint(os::EventLoop& loop, JoinOptions options, Listener listener)
    : loop_(loop), options_(std::move(options)), listener_(std::move(listener)) {}

JoinPoint::~JoinPoint() {
  hub_.reset();
  ssh_.reset();
  options_.kept->Drop(kSocketName);
  for (const char* name : {kTokenFile, kUrlFile}) {
    static_cast<void>(options_.folder->files().RemoveAll(options_.folder->At(name)));
  }
}

Result<std::unique_ptr<JoinPoint>> JoinPoint::Open(os::EventLoop& loop, JoinOptions options,
                                                   Listener listener) {
  std::unique_ptr<JoinPoint> point(new JoinPoint(loop, std::move(options), std::move(listener)));
  MUSTER_TRY(point->Listen());
  return point;
}

Status JoinPoint::Listen() {
  const auto& past = options_.place;
  if (past) {
    token_ = MUSTER_TRY(net::JoinToken::Parse(past->token));
    tls_ = past->tls;
    joined_ = {past->joined.begin(), past->joined.end()};
  } else {
    // Of a process that died before it had saved anything.
    static_cast<void>(PosixFiles().RemoveAll(options_.folder->At(kTokenFile)));
    token_ = MUSTER_TRY(net::JoinToken::CreateFile(options_.folder->At(kTokenFile)));
    // Whoever is on this host could read a plain connection's token anyway.
    if (!net::IsLoopback(options_.address)) {
      tls_ = MUSTER_TRY(net::MakeTlsIdentity("muster run", options_.clock->Wall()));
    }
  }
  HubOptions hub{.address = options_.address, .tls = tls_, .token = *token_};
  hub.ticket = options_.ticket;
  hub.version = options_.job->version;
  hub.keep = options_.keep;
  if (past) hub.place = past->hub;
  if (!options_.make_routes) hub.listening = MUSTER_TRY(Socket());
  hub_ = MUSTER_TRY(AgentHub::Listen(
      loop_, std::move(hub),
      [this](const NodeName& who, const Gang::MakeNode& make) {
        joined_.insert(who.name);
        listener_.on_join(who, make);
      },
      options_.make_routes));
  const net::Address bound = hub_->address();
  const std::string host = bound.host == kAnyHost ? HostName() : bound.host;
  url_ = fmt::format("{}://{}/{}", tls_ ? "https" : "http", net::FormatAddress({host, bound.port}),
                     tls_ ? "#" + tls_->fingerprint.ToString() : "");
  return past ? Ok() : options_.folder->Write(kUrlFile, url_ + "\n", 0600);
}

/// The one that the process before had, where there was one: agents dial it already.
Result<Fd> JoinPoint::Socket() {
  std::vector<Fd> kept = options_.kept->Take(kSocketName);
  if (!kept.empty()) return std::move(kept[0]);
  net::ListenSocket opened = MUSTER_TRY(net::OpenListenSocket(options_.address));
  options_.kept->Keep(kSocketName, {opened.fd.get()});
  return std::move(opened.fd);
}

Status JoinPoint::StartSsh() {
  if (options_.job->hosts.empty()) return Ok();
  // Each host sees us at an address of its own, which its ssh knows.
  const bool any = hub_->address().host == kAnyHost;
  std::string url = url_;
  if (any) url.replace(url.find("//") + 2, HostName().size(), kSshClient);
  SshOptions ssh{.ssh = options_.job->ssh,
                 .hosts = options_.job->hosts,
                 .muster = std::filesystem::path(options_.job->shim).parent_path() / "muster",
                 .url = url,
                 .token = token_->Reveal(),
                 .mark = SshMark(options_.ticket.run_id),
                 .environment = VariablesForNodes(spec::ProcessEnviron()),
                 .kept = options_.kept};
  if (options_.place) ssh.place = options_.place->ssh;
  ssh_ = MUSTER_TRY(SshAgents::Start(
      loop_, ssh, [this](const std::string& host, const std::optional<os::Exit>& exit) {
        SshEnded(host, exit);
      }));
  return Ok();
}

void JoinPoint::SshEnded(const std::string& host, const std::optional<os::Exit>& exit) {
  if (exit && exit->ok()) return;
  const std::string what =
      fmt::format("the agent on {} ended: ssh: {}", host,
                  exit ? os::Describe(*exit) : "nobody saw how, while the run was led anew");
  const bool joined = joined_.contains(host.substr(host.find('@') + 1));
  if (listener_.on_ssh_end(what, joined)) ssh_->StartAgain(host);
}

JoinPlace JoinPoint::place() const {
  JoinPlace place{.token = token_->Reveal(), .tls = tls_, .hub = hub_->place()};
  place.joined.assign(joined_.begin(), joined_.end());
  if (ssh_) place.ssh = ssh_->place();
  return place;
}

std::optional<std::string> JoinPoint::JoinCommand() const {
  if (!options_.job->hosts.empty()) return std::nullopt;
  return fmt::format("muster agent --join {} --token-file {}", profile::ShellWord(url_),
                     profile::ShellWord(options_.folder->At(kTokenFile)));
}

}  // namespace muster::agent
