#include <fmt/format.h>

#include "base/absent.h"
#include "spec/job.h"
#include "spec/job_check.h"
#include "spec/log_rule_read.h"
#include "spec/object_reader.h"

namespace muster::spec {
namespace {

void ReadNodes(ObjectReader& spec, Findings& findings, NodeRange& out) {
  const Value* value = spec.Take("nodes");
  if (value == nullptr) return;
  if (value->kind != Value::Kind::kMap) {
    const auto count = ToWhole(*value);
    if (!count || *count > kMostNodes) {
      return spec.Expected(*value, "nodes", "a number of nodes or {min: …, max: …}");
    }
    out.min = out.max = static_cast<std::uint32_t>(*count);
    return;
  }
  ObjectReader range(*value, spec.PathOf("nodes"), findings);
  range.Whole("min", out.min);
  out.max = out.min;
  range.Whole("max", out.max);
  range.Finish();
}

void ReadRanksPerNode(ObjectReader& spec, RanksPerNode& out) {
  const Value* value = spec.Take("ranksPerNode");
  if (value == nullptr) return;
  using Kind = RanksPerNode::Kind;
  const auto count = ToWhole(*value);
  if (count && *count <= kMostRanksPerNode) {
    out = {.kind = Kind::kCount, .count = static_cast<std::uint32_t>(*count)};
  } else if (value->text == "auto") {
    out = {.kind = Kind::kAuto};
  } else if (value->text == "cpu") {
    out = {.kind = Kind::kCpu};
  } else if (value->text == "gpu") {
    out = {.kind = Kind::kGpu};
  } else {
    spec.Expected(*value, "ranksPerNode",
                  fmt::format("auto, cpu, gpu or a number up to {}", kMostRanksPerNode));
  }
}

void ReadSpares(const Value& value, const std::string& path, Findings& findings, Spares& out) {
  ObjectReader spares(value, path, findings);
  spares.Whole("processes", out.processes);
  spares.Whole("nodes", out.nodes);
  spares.Finish();
}

void ReadResources(const Value& value, const std::string& path, Findings& findings,
                   Resources& out) {
  ObjectReader resources(value, path, findings);
  resources.Cores("cpu", out.cpu_milli);
  resources.Size("memory", out.memory);
  resources.Whole("gpu", out.gpu);
  resources.Finish();
}

void ReadCheckpoint(const Value& value, const std::string& path, Findings& findings,
                    CheckpointPlan& out) {
  ObjectReader checkpoint(value, path, findings);
  checkpoint.Text("dir", out.dir);
  checkpoint.Whole("every", out.every);
  checkpoint.Finish();
}

void ReadRestart(const Value& value, const std::string& path, Findings& findings,
                 RestartPolicy& out) {
  ObjectReader restart(value, path, findings);
  restart.Time("evalPeriod", out.eval_period);
  restart.Whole("processRestarts", out.process_restarts);
  restart.Whole("fullRestarts", out.full_restarts);
  restart.Whole("total", out.total);
  restart.Flag("inPlace", out.in_place);
  restart.Time("hangLimit", out.hang_limit);
  restart.Time("nodeLease", out.node_lease);
  restart.Finish();
}

DataSource ReadData(const Value& value, const std::string& path, Findings& findings) {
  DataSource source;
  ObjectReader data(value, path, findings);
  data.Text("uri", source.uri);
  data.Text("at", source.at);
  data.Flag("stage", source.stage);
  data.Finish();
  return source;
}

template <typename Part>
void ReadPart(ObjectReader& spec, std::string_view key, Findings& findings, Part& out,
              void (*read)(const Value&, const std::string&, Findings&, Part&)) {
  if (const Value* value = spec.Take(key)) read(*value, spec.PathOf(key), findings, out);
}

void ReadSpec(const Value& value, Findings& findings, Job& job) {
  ObjectReader spec(value, "spec", findings);
  spec.Text("queue", job.queue);
  spec.Text("share", job.share);
  spec.Whole("priority", job.priority);
  ReadNodes(spec, findings, job.nodes);
  ReadRanksPerNode(spec, job.ranks_per_node);
  ReadPart(spec, "spares", findings, job.spares, ReadSpares);
  ReadPart(spec, "resources", findings, job.resources, ReadResources);
  spec.Words("command", job.command);
  spec.Time("timeLimit", job.time_limit);
  spec.Time("estimate", job.estimate);
  ReadPart(spec, "checkpoint", findings, job.checkpoint, ReadCheckpoint);
  spec.List("data", [&](const Value& item, const std::string& path) {
    job.data.push_back(ReadData(item, path, findings));
  });
  ReadPart(spec, "restart", findings, job.restart, ReadRestart);
  spec.List("logRules", [&](const Value& item, const std::string& path) {
    job.log_rules.push_back(ReadLogRule(item, path, findings));
  });
  spec.Finish();
}

/// apiVersion and kind say whether this is a job file at all.
void ReadKind(ObjectReader& top, Findings& findings) {
  std::string version;
  std::string kind;
  top.Text("apiVersion", version);
  top.Text("kind", kind);
  if (version.empty()) {
    findings.AddAt("apiVersion",
                   "'apiVersion' is missing or empty; a job file says apiVersion: muster/v1");
  } else if (version != "muster/v1") {
    findings.AddAt("apiVersion",
                   fmt::format("apiVersion is '{}'; this muster reads muster/v1", version));
  }
  if (kind.empty()) {
    findings.AddAt("kind", "'kind' is missing or empty; a job file says kind: Job");
  } else if (kind != "Job") {
    findings.AddAt("kind", fmt::format("kind is '{}'; this reads kind Job", kind));
  }
}

Job ReadTop(const Value& document, Findings& findings) {
  Job job;
  ObjectReader top(document, "", findings);
  if (!top.valid()) return job;
  ReadKind(top, findings);
  if (const Value* value = top.Take("metadata")) {
    ObjectReader metadata(*value, "metadata", findings);
    metadata.Text("name", job.name);
    metadata.Finish();
  }
  if (const Value* value = top.Take("spec")) ReadSpec(*value, findings, job);
  top.Finish();
  for (const JobFault& fault : CheckJob(job)) findings.AddAt(fault.path, fault.message);
  return job;
}

Syntax SyntaxOf(std::string_view text, std::string_view file) {
  if (file.ends_with(".json")) return Syntax::kJson;
  if (file.ends_with(".yaml") || file.ends_with(".yml")) return Syntax::kYaml;
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' ? Syntax::kJson : Syntax::kYaml;
}

}  // namespace

Result<ParsedJob> ParseJob(std::string_view text, std::string_view file) {
  auto read = ReadDocument(text, SyntaxOf(text, file), file, DocumentLimits{.bytes = kMaxJobBytes});
  if (!read) {
    return std::move(read.error())
        .Hint("repair that place; docs/reference/job-file.md has a job file to start from");
  }
  const Value document = *std::move(read);
  if (document.kind == Value::Kind::kNull) {
    return Error(Code::kInvalid, fmt::format("{}: the file is empty", file),
                 "docs/reference/job-file.md has a job file to start from");
  }
  Findings findings;
  Job job = ReadTop(document, findings);
  if (!findings.empty()) return findings.ToError(file);
  return ParsedJob{.job = std::move(job), .given = findings.Given()};
}

Result<ParsedJob> ReadJob(FileSystem& files, const std::string& path) {
  auto read = files.ReadAll(path, kMaxJobBytes);
  if (!read && read.error().code() == Code::kNotFound) {
    return Absent("job file", path,
                  "look at the name; docs/reference/job-file.md has a job file to start from");
  }
  auto text = Within("read the job file", std::move(read));
  if (text) return ParseJob(*text, path);
  return std::move(text.error())
      .Hint(fmt::format("a job file is a regular file of at most {}; look at the name",
                        FormatBytes(kMaxJobBytes)));
}

}  // namespace muster::spec
