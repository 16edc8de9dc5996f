#include "spec/job.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace muster::spec {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kExample = R"(apiVersion: muster/v1
kind: Job
metadata: {name: vit-fashion}
spec:
  queue: default
  share: vision
  priority: 500
  nodes: 1                      # or {min: 2, max: 8}
  ranksPerNode: 2               # auto | cpu | gpu | a number
  spares: {processes: 1, nodes: 0}
  resources: {cpu: 2, memory: 4GiB, gpu: 0}
  command: [muster-train, vit, --data, $MUSTER_DATA_0]
  timeLimit: 2h
  estimate: 30m                 # for backfill; optional
  checkpoint: {dir: checkpoints, every: 100}
  data: [{uri: s3://bucket/fashion, at: /data/fashion, stage: true}]
  restart: {evalPeriod: 6h, processRestarts: 3, fullRestarts: 1, total: 12, inPlace: false, hangLimit: 10m, nodeLease: 30s}
  logRules:
    - {name: loss, pattern: 'loss=([0-9.eE+-]+)', startWithin: 2m, every: 4m}
)";

constexpr std::string_view kNormalised = R"yaml(apiVersion: muster/v1
kind: Job
metadata:
  name: vit-fashion
spec:
  queue: default
  share: vision
  priority: 500
  nodes: 1
  ranksPerNode: 2
  spares:
    processes: 1
    nodes: 0
  resources:
    cpu: 2
    memory: 4GiB
    gpu: 0
  command: [muster-train, vit, --data, $MUSTER_DATA_0]
  timeLimit: 2h
  estimate: 30m
  checkpoint:
    dir: checkpoints
    every: 100
  data:
    - uri: s3://bucket/fashion
      at: /data/fashion
      stage: true
  restart:
    evalPeriod: 6h
    processRestarts: 3
    fullRestarts: 1
    total: 12
    inPlace: false
    hangLimit: 10m
    nodeLease: 30s
  logRules:
    - name: loss
      pattern: "loss=([0-9.eE+-]+)"
      startWithin: 2m
      every: 4m
      threshold: none
      points: 1
      fault: false
      scope: any
      stream: both
      onNonNumber: fault
      action: restart-process
)yaml";

constexpr std::string_view kDefaults = R"(apiVersion: muster/v1
kind: Job
metadata:
  name: a
spec:
  queue: default  # default
  share: default  # default
  priority: 0  # default
  nodes: 1  # default
  ranksPerNode: 1  # default
  spares:
    processes: 0  # default
    nodes: 0  # default
  resources:
    cpu: 0  # default
    memory: 0B  # default
    gpu: 0  # default
  command: ["true"]
  timeLimit: none  # default
  estimate: none  # default
  checkpoint:
    dir: checkpoints  # default
    every: 50
  data: []  # default
  restart:
    evalPeriod: 6h  # default
    processRestarts: 3  # default
    fullRestarts: 1  # default
    total: none  # default
    inPlace: true  # default
    hangLimit: none  # default
    nodeLease: 15s  # default
  logRules: []  # default
)";

std::string JobWith(std::string_view spec) {
  return fmt::format("apiVersion: muster/v1\nkind: Job\nmetadata: {{name: a}}\nspec:\n{}", spec);
}

std::string ErrorOf(std::string_view text) {
  const auto parsed = ParseJob(text, "job.yaml");
  if (parsed) return "no error";
  EXPECT_EQ(parsed.error().code(), Code::kInvalid);
  return parsed.error().message();
}

TEST(ParseJob, ReadsEveryKeyOfTheExample) {
  const auto parsed = ParseJob(kExample, "job.yaml");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().ToString();
  const Job& job = parsed->job;
  EXPECT_EQ(job.name, "vit-fashion");
  EXPECT_EQ(job.share, "vision");
  EXPECT_EQ(job.priority, 500U);
  EXPECT_EQ(job.ranks_per_node, (RanksPerNode{.count = 2}));
  EXPECT_EQ(job.spares.processes, 1U);
  EXPECT_EQ(job.resources, (Resources{.cpu_milli = 2000, .memory = 4_GiB, .gpu = 0}));
  EXPECT_THAT(job.command, ElementsAre("muster-train", "vit", "--data", "$MUSTER_DATA_0"));
  EXPECT_EQ(job.time_limit, hours(2));
  EXPECT_EQ(job.estimate, minutes(30));
  EXPECT_EQ(job.checkpoint.every, 100U);
  ASSERT_EQ(job.data.size(), 1U);
  EXPECT_TRUE(job.data[0].stage);
  EXPECT_EQ(job.log_rules[0].every, minutes(4));
}

TEST(ParseJob, PrintsTheExampleNormalised) {
  const auto parsed = ParseJob(kExample, "job.yaml");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(PrintJobYaml(parsed->job), kNormalised);
}

TEST(ParseJob, SaysWhichValuesAreDefaults) {
  const auto parsed =
      ParseJob(JobWith("  command: [true]\n  checkpoint: {every: 50}\n"), "job.yaml");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().ToString();
  EXPECT_EQ(PrintJobYaml(*parsed), kDefaults);
}

TEST(ParseJob, TakesJsonAndPrintsItBack) {
  const auto parsed = ParseJob(kExample, "job.yaml");
  ASSERT_TRUE(parsed.has_value());
  const auto again = ParseJob(PrintJobJson(parsed->job), "job.json");
  ASSERT_TRUE(again.has_value()) << again.error().ToString();
  EXPECT_EQ(again->job, parsed->job);
  const auto sniffed = ParseJob(PrintJobJson(parsed->job), "stdin");
  ASSERT_TRUE(sniffed.has_value());
  EXPECT_EQ(sniffed->job, parsed->job);
}

TEST(ParseJob, SuggestsTheKeyThatWasMeant) {
  EXPECT_THAT(ErrorOf(JobWith("  command: [a]\n  prioirty: 3\n")),
              HasSubstr("job.yaml:6:3: unknown key 'prioirty' in spec: did you mean 'priority'?"));
}

TEST(ParseJob, ReportsEveryFaultOfTheFileInOrder) {
  EXPECT_EQ(
      ErrorOf(JobWith("  command: []\n  nodes: 0\n  queue: 7\n  timeLimit: 5\n  colour: red\n")),
      "job.yaml:5:12: 'spec.command' is missing or empty; write it as a list: [python, "
      "train.py]\n"
      "job.yaml:6:10: 'spec.nodes' is 0; a job needs at least one node\n"
      "job.yaml:7:10: 'spec.queue' takes text (in quotes when it looks like this), found the "
      "number 7\n"
      "job.yaml:8:14: 'spec.timeLimit' takes a duration such as 90s, 30m or 2h, or none, found "
      "the number 5\n"
      "job.yaml:9:3: unknown key 'colour' in spec");
}

TEST(ParseJob, CapsTheListOfFaults) {
  std::string keys = "  command: [a]\n";
  for (int i = 0; i < 30; ++i) keys += fmt::format("  zzzz{}: 1\n", i);
  EXPECT_THAT(ErrorOf(JobWith(keys)), HasSubstr("job.yaml: and 10 more"));
}

struct BadSpec {
  const char* spec;
  const char* says;
};

TEST(ParseJob, RefusesWhatMakesNoSense) {
  const BadSpec cases[] = {
      {"  nodes: 2\n", "5:3: 'spec.command' is missing or empty"},
      {"  command: python train.py\n", "'spec.command' takes a list, found 'python train.py'"},
      {"  command: ['']\n", "'spec.command[0]' is empty"},
      {"  command: [a, {b: c}]\n", "'spec.command[1]' takes text, found a map"},
      {"  command: [a, $MUSTER_DATA_2]\n", "5:16: 'spec.command[1]': the variable $MUSTER_DATA_2"},
      {"  command: [a]\n  command: [b]\n",
       "6:3: key 'command' in spec is there a second time; the "
       "first is in line 5"},
      {"  command: [a]\n  nodes: -1\n",
       "takes a number of nodes or {min: …, max: …}, found the "
       "number -1"},
      {"  command: [a]\n  nodes: {min: 3, max: 2}\n", "'spec.nodes' has max 2 below min 3"},
      {"  command: [a]\n  nodes: {mni: 3}\n",
       "unknown key 'mni' in spec.nodes: did you mean 'min'?"},
      {"  command: [a]\n  ranksPerNode: 0\n", "'spec.ranksPerNode' is 0"},
      {"  command: [a]\n  ranksPerNode: many\n",
       "auto, cpu, gpu or a number up to 4096, found 'many'"},
      {"  command: [a]\n  ranksPerNode: 2.5\n", "found the number 2.5"},
      {"  command: [a]\n  priority: 10000\n", "it goes from 0 to 9999"},
      {"  command: [a]\n  resources: 4GiB\n", "expected a map for 'spec.resources', found '4GiB'"},
      {"  command: [a]\n  resources: {memory: lots}\n", "takes a size such as 512MiB or 4GiB"},
      {"  command: [a]\n  resources: {cpu: -1}\n", "takes a number of cores"},
      {"  command: [a]\n  checkpoint: {every: often}\n",
       "'spec.checkpoint.every' takes a whole number"},
      {"  command: [a]\n  checkpoint: {dir: ''}\n", "'spec.checkpoint.dir' is empty"},
      {"  command: [a]\n  timeLimit: 1h\n  estimate: 2h\n",
       "'spec.estimate' is 2h, above the timeLimit "
       "of 1h"},
      {"  command: [a]\n  data: [{at: /x}]\n", "'spec.data[0].uri' is missing or empty"},
      {"  command: [a]\n  data: [{uri: ''}]\n", "'spec.data[0].uri' is missing or empty"},
      {"  command: [a]\n  data: [{uri: 'gs://x'}]\n", "s3://, file:// and plain paths are taken"},
      {"  command: [a]\n  data: [{uri: x, at: y}]\n", "it takes an absolute path"},
      {"  command: [a]\n  data: [{uri: x, stage: 'yes'}]\n",
       "takes true or false, found the text 'yes'"},
      {"  command: [a]\n  logRules: [{name: l, pattern: '(', every: 1m}]\n",
       "not a pattern that RE2 takes"},
      {"  command: [a]\n  logRules: [{name: l, pattern: '(?=x)', every: 1m}]\n", "not a pattern"},
      {"  command: [a]\n  logRules: [{name: l, pattern: x}]\n", "never fires"},
      {"  command: [a]\n  restart: {hangLimit: 10ms}\n", "'spec.restart.hangLimit' is less"},
      {"  command: [a]\n  restart: {nodeLease: 10ms}\n", "'spec.restart.nodeLease' is less"},
      {"  command: [a]\n  restart: {evalPeriod: 0s}\n", "'spec.restart.evalPeriod' is 0"},
      {"  command: [a]\n  queue: a/b\n", "'spec.queue' is 'a/b'; a name has"},
  };
  for (const BadSpec& bad : cases) EXPECT_THAT(ErrorOf(JobWith(bad.spec)), HasSubstr(bad.says));
}

TEST(ParseJob, SaysWhatAForeignFileIs) {
  EXPECT_THAT(ErrorOf("apiVersion: sagemaker.amazonaws.com/v1\nkind: HyperPodPyTorchJob\n"),
              HasSubstr("job.yaml:2:7: kind is 'HyperPodPyTorchJob'; this reads kind Job"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("the file is empty"));
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("expected a map of keys, found a list"));
  EXPECT_THAT(ErrorOf("hello"), HasSubstr("expected a map of keys, found 'hello'"));
}

std::string RandomWord(Rng& rng) {
  constexpr std::string_view kBytes = "abz09 _.:#'\"\\/$-{}[],&*!|>%@\n\t~";
  std::string word(1, static_cast<char>('a' + rng.Below(26)));
  for (auto n = rng.Below(12); n > 0; --n) word += kBytes[rng.Below(kBytes.size())];
  return word;
}

std::optional<Duration> RandomTime(Rng& rng) {
  if (rng.Below(2) == 0) return std::nullopt;
  return Duration(static_cast<std::int64_t>(rng.Below(1ULL << 50) + 1));
}

LogRule RandomRule(Rng& rng, std::uint64_t n) {
  LogRule rule{.name = fmt::format("r{}", n), .pattern = "a+(\\d)", .every = minutes(n)};
  if (rng.Below(2) == 0) {
    rule.threshold = Threshold{static_cast<Threshold::Operator>(rng.Below(5)),
                               static_cast<double>(rng.Below(1U << 30)) / 1024 - 9};
    rule.points = 1 + static_cast<std::uint32_t>(rng.Below(9));
  }
  if (rng.Below(2) == 0) rule.stop = "none";
  rule.fault = rng.Below(2) == 0;
  rule.scope = static_cast<LogRule::Scope>(rng.Below(4));
  rule.stream = static_cast<LogRule::Stream>(rng.Below(3));
  rule.on_non_number = static_cast<LogRule::NonNumber>(rng.Below(3));
  rule.action = static_cast<LogRule::Act>(rng.Below(6));
  return rule;
}

Job RandomJob(Rng& rng) {
  Job job{.name = fmt::format("job-{}", rng.Below(1000)),
          .queue = fmt::format("q.{}", rng.Below(10)),
          .priority = static_cast<std::uint32_t>(rng.Below(10'000))};
  job.nodes.min = static_cast<std::uint32_t>(1 + rng.Below(4));
  job.nodes.max = job.nodes.min + static_cast<std::uint32_t>(rng.Below(3));
  job.ranks_per_node.kind = static_cast<RanksPerNode::Kind>(rng.Below(4));
  if (job.ranks_per_node.kind == RanksPerNode::Kind::kCount) job.ranks_per_node.count = 8;
  job.spares = {.processes = static_cast<std::uint32_t>(rng.Below(5)), .nodes = 2};
  job.resources = {.cpu_milli = rng.Below(9000),
                   .memory = {static_cast<std::int64_t>(rng.Below(1ULL << 53))},
                   .gpu = static_cast<std::uint32_t>(rng.Below(9))};
  for (auto n = 1 + rng.Below(6); n > 0; --n) job.command.push_back(RandomWord(rng));
  job.time_limit = RandomTime(rng);
  job.checkpoint = {.dir = RandomWord(rng), .every = rng.Below(1ULL << 40)};
  for (auto n = rng.Below(3); n > 0; --n) {
    job.data.push_back(
        {.uri = "d" + std::to_string(n), .at = fmt::format("/{}", n), .stage = n == 1});
  }
  job.restart.eval_period = RandomTime(rng).value_or(hours(1));
  if (rng.Below(2) == 0) job.restart.hang_limit = hours(1 + rng.Below(9));
  job.restart.node_lease = std::chrono::seconds(1 + rng.Below(60));
  for (auto n = rng.Below(3); n > 0; --n) {
    job.log_rules.push_back(RandomRule(rng, n));
  }
  return job;
}

TEST(ParseJob, NamesANextStepWhateverIsWrongWithTheText) {
  const std::string large(static_cast<std::size_t>(kMaxJobBytes.count) + 1, '#');
  for (const std::string& text : {std::string("a: [1"), std::string("a: b: c"), std::string("{"),
                                  std::string("a: 1\n---\nb: 2\n"), std::string("\xff"), large}) {
    const auto job = ParseJob(text, "job.yaml");
    ASSERT_FALSE(job);
    EXPECT_THAT(job.error().hint(), HasSubstr("docs/reference/job-file.md"));
  }
  EXPECT_THAT(ReadJob(PosixFiles(), "/").error().hint(), HasSubstr("256 KiB"));
}

TEST(ParseJob, ReadsBackEveryJobThatItPrints) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed);
    const Job job = RandomJob(rng);
    ASSERT_TRUE(ValidateJob(job).has_value()) << seed << ValidateJob(job).error().ToString();
    const auto yaml = ParseJob(PrintJobYaml(job), "job.yaml");
    ASSERT_TRUE(yaml.has_value()) << seed << yaml.error().ToString() << PrintJobYaml(job);
    ASSERT_EQ(yaml->job, job) << seed << PrintJobYaml(job);
    const auto json = ParseJob(PrintJobJson(job), "job.json");
    ASSERT_TRUE(json.has_value()) << seed << json.error().ToString();
    ASSERT_EQ(json->job, job) << seed;
  }
}

}  // namespace
}  // namespace muster::spec
