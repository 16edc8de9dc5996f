// muster agent --join URL: this host as one more node of a job that `muster run` or a server leads.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "agent/remote/agent_process.h"
#include "agent/remote/ssh_agents.h"
#include "base/durable.h"
#include "base/host_name.h"
#include "base/version.h"
#include "cli/run_line.h"
#include "cli/run_options.h"
#include "cli/verb.h"
#include "net/address.h"
#include "spec/env.h"

namespace muster::cli {
namespace {

constexpr const char* kTokenVariable = "MUSTER_JOIN_TOKEN";
constexpr const char* kStandardInput = "-";  // from muster run, by ssh

struct AgentFlags {
  std::string join;
  std::string token_file;
  std::string name;
  double patience_s = 600;
};

/// "https://HOST:PORT/#sha256:…": the pin stands behind the mark.
Status ReadJoin(const std::string& text, agent::LinkOptions& link) {
  const auto mark = text.find('#');
  link.coordinator = MUSTER_TRY(net::ParseUrl(text.substr(0, mark)));
  std::string& host = link.coordinator.address.host;
  if (host == agent::kSshClient) {
    const auto from = spec::ProcessEnv()("SSH_CONNECTION");
    if (!from) return Error(Code::kInvalid, "--join is for an agent that ssh starts");
    host = from->substr(0, from->find(' '));
  }
  if (mark != std::string::npos) {
    link.pin = MUSTER_TRY(net::Fingerprint::Parse(text.substr(mark + 1)));
  } else if (link.coordinator.tls) {
    return Error(Code::kInvalid, "--join has no fingerprint behind a #",
                 "copy the whole line that muster run printed, in quotes");
  }
  return Ok();
}

Result<net::JoinToken> ReadToken(const std::string& file) {
  if (file == kStandardInput) {
    const agent::Handover handover = MUSTER_TRY(agent::ReadHandover(STDIN_FILENO));
    for (const std::string& line : handover.environment) spec::SetVariable(line);
    return net::JoinToken::Parse(handover.token);
  }
  if (!file.empty()) return net::JoinToken::ReadFile(file);
  const auto text = spec::ProcessEnv()(kTokenVariable);
  if (text) return net::JoinToken::Parse(*text);
  return Error(Code::kInvalid, "there is no token to join with",
               fmt::format("give --token-file, or the token in {}", kTokenVariable));
}

std::string StateFolder() {
  const auto lookup = spec::ProcessEnv();
  if (const auto state = lookup("XDG_STATE_HOME"); state && !state->empty()) {
    return *state + "/muster/runs";
  }
  return lookup("HOME").value_or("/tmp") + "/.local/state/muster/runs";
}

Result<agent::RunOptions> OptionsOf(const agent::JobTicket& ticket, const std::string& job_file,
                                    const std::string& program) {
  std::vector<std::string> words = ticket.flags;
  words.push_back(job_file);
  const RunFlags flags = MUSTER_TRY(ReadRunWords(words));
  spec::Job job = MUSTER_TRY(JobFor(flags, program));
  job.ranks_per_node = {spec::RanksPerNode::Kind::kCount, ticket.ranks_per_node};
  return OptionsFor(job, flags, program);
}

Result<int> Join(const AgentFlags& flags, const Invocation& invocation) {
  if (!(flags.patience_s >= 0 && flags.patience_s <= 1e6)) {
    return Error(Code::kInvalid, fmt::format("--patience is {}", flags.patience_s),
                 "give seconds, 0 to a million");
  }
  agent::LinkOptions link{.token = MUSTER_TRY(ReadToken(flags.token_file)),
                          .join = {.version = std::string(Version()), .name = flags.name}};
  MUSTER_TRY(ReadJoin(flags.join, link));
  link.patience = std::chrono::milliseconds(static_cast<std::int64_t>(flags.patience_s * 1000));
  // Workers are not to find it.
  spec::ForgetVariable(kTokenVariable);
  const agent::AgentOptions options{
      .link = std::move(link),
      .state_folder = StateFolder(),
      .lifeline_fd = flags.token_file == kStandardInput ? STDIN_FILENO : -1,
      .json = invocation.json,
      .options_for = [&](const agent::JobTicket& ticket, const std::string& job_file) {
        return OptionsOf(ticket, job_file, invocation.program);
      }};
  const int exit_code = MUSTER_TRY(agent::RunAgent(options));
  if (invocation.json) {
    MUSTER_TRY(
        Print(fmt::format("{{\"node\": \"{}\", \"exit_code\": {}}}\n", flags.name, exit_code)));
  }
  return exit_code;
}

}  // namespace

void AddAgent(CLI::App& parent, Invocation& invocation) {
  CLI::App* app =
      AddSubcommand(parent, "agent", "Make this host a node of a job on several", invocation);
  app->footer(
      "muster run --nnodes 2 …, on one host, prints the line to type on the other:\n"
      "muster agent --join 'https://node1:34567/#sha256:…' --token-file RUN/join-token");
  auto flags = std::make_shared<AgentFlags>();
  flags->name = HostName();
  app->add_option("--join", flags->join, "URL of the job, with the fingerprint of its certificate")
      ->type_name("URL")
      ->required();
  app->add_option("--token-file", flags->token_file,
                  "The job's token, mode 0600; default: the variable MUSTER_JOIN_TOKEN")
      ->type_name("FILE");
  app->add_option("--name", flags->name, "Name of this node; default: that of the host")
      ->type_name("NAME");
  app->add_option("--patience", flags->patience_s,
                  "Seconds without the coordinator after which the workers end; default 600");
  app->callback([flags, &invocation] {
    invocation.action = [flags, &invocation] { return Join(*flags, invocation); };
  });
}

}  // namespace muster::cli
