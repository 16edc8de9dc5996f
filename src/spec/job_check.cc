#include "spec/job_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/duration.h"
#include "spec/command.h"
#include "spec/log_rule_check.h"

namespace muster::spec {
namespace {

class Faults {
 public:
  void Add(std::string path, std::string message) {
    faults_.push_back({std::move(path), std::move(message)});
  }
  /// Adds when the count is above `most`; true when it is not.
  bool AtMost(std::string path, std::size_t count, std::size_t most) {
    if (count <= most) return true;
    Add(path, fmt::format("'{}' has {} entries; at most {} are taken", path, count, most));
    return false;
  }
  std::vector<JobFault> Take() { return std::move(faults_); }

 private:
  std::vector<JobFault> faults_;
};

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Names become folders, labels and file names: letters and digits, with . _ - between them.
bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && IsNameByte(name.front()) &&
         IsNameByte(name.back()) && std::all_of(name.begin(), name.end(), [](char c) {
           return IsNameByte(c) || c == '.' || c == '_' || c == '-';
         });
}

void CheckName(const std::string& path, std::string_view name, Faults& faults) {
  if (name.empty()) {
    faults.Add(path, fmt::format("'{}' is missing or empty", path));
  } else if (!IsName(name)) {
    faults.Add(path, fmt::format("'{}' is '{}'; a name has up to {} letters and digits, with . _ - "
                                 "between them",
                                 path, name.substr(0, 2 * kLongestName), kLongestName));
  }
}

void CheckShape(const Job& job, Faults& faults) {
  if (job.priority > kMostPriority) {
    faults.Add("spec.priority", fmt::format("'spec.priority' is {}; it goes from 0 to {}",
                                            job.priority, kMostPriority));
  }
  if (job.nodes.min == 0) {
    faults.Add("spec.nodes", "'spec.nodes' is 0; a job needs at least one node");
  } else if (job.nodes.max < job.nodes.min) {
    faults.Add("spec.nodes",
               fmt::format("'spec.nodes' has max {} below min {}", job.nodes.max, job.nodes.min));
  } else if (job.nodes.max > kMostNodes) {
    faults.Add("spec.nodes",
               fmt::format("'spec.nodes' is {}; at most {} are taken", job.nodes.max, kMostNodes));
  }
  if (job.ranks_per_node.kind == RanksPerNode::Kind::kCount && job.ranks_per_node.count == 0) {
    faults.Add("spec.ranksPerNode", "'spec.ranksPerNode' is 0; a job needs at least one rank");
  }
  if (job.spares.processes > kMostRanksPerNode) {
    faults.Add("spec.spares.processes",
               fmt::format("'spec.spares.processes' is {}; at most {} are taken",
                           job.spares.processes, kMostRanksPerNode));
  }
  if (job.spares.nodes > kMostNodes) {
    faults.Add("spec.spares.nodes", fmt::format("'spec.spares.nodes' is {}; at most {} are taken",
                                                job.spares.nodes, kMostNodes));
  }
}

void CheckCommand(const Job& job, Faults& faults) {
  if (job.command.empty()) {
    return faults.Add("spec.command",
                      "'spec.command' is missing or empty; write it as a list: [python, train.py]");
  }
  if (job.command[0].empty()) {
    faults.Add("spec.command[0]", "'spec.command[0]' is empty; it names the program to run");
  }
  if (!faults.AtMost("spec.command", job.command.size(), kMostArguments)) return;
  const Variables variables = DataVariables(job);
  for (std::size_t i = 0; i < job.command.size(); ++i) {
    const std::string path = fmt::format("spec.command[{}]", i);
    if (job.command[i].find('\0') != std::string::npos) {
      faults.Add(path, fmt::format("'{}' holds a NUL byte", path));
      continue;
    }
    const auto expanded = ExpandArgument(job.command[i], variables);
    if (!expanded) faults.Add(path, fmt::format("'{}': {}", path, expanded.error().message()));
  }
}

void CheckTimes(const Job& job, Faults& faults) {
  if (job.time_limit && job.time_limit->count() == 0) {
    faults.Add("spec.timeLimit", "'spec.timeLimit' is 0; leave it out for no limit");
  }
  if (job.estimate && job.estimate->count() == 0) {
    faults.Add("spec.estimate", "'spec.estimate' is 0; leave it out when you do not know");
  }
  if (job.time_limit && job.estimate && *job.estimate > *job.time_limit) {
    faults.Add("spec.estimate",
               fmt::format("'spec.estimate' is {}, above the timeLimit of {}",
                           FormatExact(*job.estimate), FormatExact(*job.time_limit)));
  }
  if (job.restart.hang_limit && *job.restart.hang_limit < std::chrono::seconds(1)) {
    faults.Add("spec.restart.hangLimit",
               "'spec.restart.hangLimit' is less than 1s; leave it out for no limit");
  }
  if (job.restart.node_lease < std::chrono::seconds(1)) {
    faults.Add("spec.restart.nodeLease",
               "'spec.restart.nodeLease' is less than 1s: a node that is only slow would be lost");
  }
  if (job.restart.eval_period.count() == 0) {
    faults.Add("spec.restart.evalPeriod",
               "'spec.restart.evalPeriod' is 0; restarts are counted over it");
  }
}

/// Paths and uris go to system calls, which would cut them at a NUL.
void CheckNul(const std::string& path, std::string_view text, Faults& faults) {
  if (text.find('\0') != std::string_view::npos) {
    faults.Add(path, fmt::format("'{}' holds a NUL byte", path));
  }
}

void CheckSource(const DataSource& source, const std::string& path, Faults& faults) {
  if (source.uri.empty()) {
    faults.Add(path + ".uri", fmt::format("'{}.uri' is missing or empty", path));
  } else if (const auto scheme = source.uri.find("://"); scheme != std::string::npos) {
    const std::string name = source.uri.substr(0, scheme);
    if (name != "s3" && name != "file") {
      faults.Add(path + ".uri", fmt::format("'{}.uri' is '{}'; s3://, file:// and plain paths are "
                                            "taken",
                                            path, source.uri));
    } else if (source.uri.size() == scheme + 3 ||
               (name == "file" && source.uri[scheme + 3] != '/')) {
      faults.Add(path + ".uri", fmt::format("'{}.uri' is '{}'; write s3://bucket/prefix or "
                                            "file:///path",
                                            path, source.uri));
    }
  }
  CheckNul(path + ".uri", source.uri, faults);
  CheckNul(path + ".at", source.at, faults);
  if (!source.at.empty() && source.at.front() != '/') {
    faults.Add(path + ".at",
               fmt::format("'{}.at' is '{}'; it takes an absolute path", path, source.at));
  }
}

void CheckData(const Job& job, Faults& faults) {
  if (!faults.AtMost("spec.data", job.data.size(), kMostData)) return;
  std::set<std::string> taken;
  for (std::size_t i = 0; i < job.data.size(); ++i) {
    const std::string path = fmt::format("spec.data[{}]", i);
    CheckSource(job.data[i], path, faults);
    if (!job.data[i].at.empty() && !taken.insert(job.data[i].at).second) {
      faults.Add(path + ".at",
                 fmt::format("'{}.at' is '{}', as of another entry", path, job.data[i].at));
    }
  }
}

void CheckLogRules(const Job& job, Faults& faults) {
  if (!faults.AtMost("spec.logRules", job.log_rules.size(), kMostLogRules)) return;
  std::set<std::string> taken;
  for (std::size_t i = 0; i < job.log_rules.size(); ++i) {
    const LogRule& rule = job.log_rules[i];
    const std::string path = fmt::format("spec.logRules[{}]", i);
    CheckName(path + ".name", rule.name, faults);
    if (!taken.insert(rule.name).second) {
      faults.Add(path + ".name",
                 fmt::format("'{}.name' is '{}', as of another rule", path, rule.name));
    }
    CheckLogRule(rule, path, [&](const std::string& where, std::string message) {
      faults.Add(where, std::move(message));
    });
  }
}

}  // namespace

std::vector<JobFault> CheckJob(const Job& job) {
  Faults faults;
  CheckName("metadata.name", job.name, faults);
  CheckName("spec.queue", job.queue, faults);
  CheckName("spec.share", job.share, faults);
  CheckShape(job, faults);
  CheckCommand(job, faults);
  CheckTimes(job, faults);
  if (job.checkpoint.dir.empty()) {
    faults.Add("spec.checkpoint.dir", "'spec.checkpoint.dir' is empty");
  }
  CheckNul("spec.checkpoint.dir", job.checkpoint.dir, faults);
  CheckData(job, faults);
  CheckLogRules(job, faults);
  return faults.Take();
}

Status ValidateJob(const Job& job) {
  std::string message;
  for (const JobFault& fault : CheckJob(job)) {
    if (!message.empty()) message += '\n';
    message += fault.message;
  }
  if (message.empty()) return Ok();
  return Error(Code::kInvalid, std::move(message));
}

}  // namespace muster::spec
