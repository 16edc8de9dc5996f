#include "spec/import/hyperpod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace muster::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Fate = ImportedField::Fate;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string Golden(const std::string& name) {
  return ReadFile(std::string(MUSTER_IMPORT_GOLDEN) + "/" + name);
}

/// A whole manifest around a policy and a container's lines.
std::string Manifest(const std::string& policy, const std::string& container) {
  return "apiVersion: sagemaker.amazonaws.com/v1\n"
         "kind: HyperPodPyTorchJob\n"
         "metadata: {name: job}\n"
         "spec:\n"
         "  nprocPerNode: \"2\"\n"
         "  runPolicy: " +
         policy +
         "\n"
         "  replicaSpecs:\n"
         "    - name: pods\n"
         "      template:\n"
         "        spec:\n"
         "          containers:\n"
         "            - " +
         container + "\n";
}

ImportedJob Imported(const std::string& text) {
  auto imported = ImportHyperPod(text, "m.yaml");
  EXPECT_TRUE(imported) << (imported ? "" : imported.error().ToString());
  return imported ? *std::move(imported) : ImportedJob{};
}

std::string Refused(const std::string& text) {
  const auto imported = ImportHyperPod(text, "m.yaml");
  EXPECT_FALSE(imported);
  return imported ? "" : imported.error().message();
}

std::string FateOf(const ImportedJob& imported, std::string_view ending) {
  for (const ImportedField& field : imported.fields) {
    if (field.path.ends_with(ending)) return std::string(NameOf(field.fate)) + ": " + field.words;
  }
  return "absent";
}

class ImportHyperPodGolden : public ::testing::TestWithParam<const char*> {};

// Each manifest has its job file beside it, read by a person line by line.
TEST_P(ImportHyperPodGolden, IsTheJobFileBesideIt) {
  const std::string name = GetParam();
  const auto imported = ImportHyperPod(Golden(name), name);
  ASSERT_TRUE(imported) << imported.error().ToString();
  const std::string printed = PrintImported(*imported, name, "job.yaml");
  EXPECT_EQ(printed, Golden(name + ".job.yaml"));
  const auto parsed = ParseJob(printed, "job.yaml");
  ASSERT_TRUE(parsed) << parsed.error().ToString();
  EXPECT_EQ(parsed->job, imported->job);
}

INSTANTIATE_TEST_SUITE_P(Manifests, ImportHyperPodGolden,
                         ::testing::Values("pretrain.yaml", "elastic.yaml", "cpu.json"),
                         [](const auto& one) {
                           const std::string name = one.param;
                           return name.substr(0, name.find('.'));
                         });

TEST(ImportHyperPod, SaysOfEveryFieldWhereItWent) {
  const auto imported = ImportHyperPod(Golden("pretrain.yaml"), "pretrain.yaml");
  ASSERT_TRUE(imported);
  EXPECT_EQ(FateOf(*imported, "jobMaxRetryCount"), "taken: spec.restart.total: 50");
  EXPECT_EQ(FateOf(*imported, "numRestartBeforeFullJobRestart"),
            "taken: spec.restart.processRestarts: 3");
  EXPECT_THAT(FateOf(*imported, "maxNumRepeatOffendersToAvoid"), HasSubstr("not yet: "));
  EXPECT_THAT(FateOf(*imported, "cleanPodPolicy"), HasSubstr("no meaning: "));
  EXPECT_EQ(FateOf(*imported, "terminationGracePeriodSeconds"), "beside: muster run … --grace 120");
  for (std::size_t i = 1; i < imported->fields.size(); ++i)
    EXPECT_LE(imported->fields[i - 1].place, imported->fields[i].place);
}

TEST(ImportHyperPod, ShowsNoValueOfWhatLooksLikeASecret) {
  const auto imported = ImportHyperPod(Golden("pretrain.yaml"), "pretrain.yaml");
  ASSERT_TRUE(imported);
  EXPECT_EQ(PrintImported(*imported, "pretrain.yaml", "job.yaml").find("not-a-real-token"),
            std::string::npos);
  for (const ImportedField& field : imported->fields)
    EXPECT_EQ(field.value.find("not-a-real-token"), std::string::npos);
}

TEST(ImportHyperPod, NamesUnknownKeysWithTheirPlaceAndANearMiss) {
  EXPECT_EQ(Refused(Manifest("{jobMaxRetryCont: 3}", "{command: [python, t.py]}")),
            "m.yaml:6:15: unknown key 'jobMaxRetryCont' in spec.runPolicy: did you mean "
            "'jobMaxRetryCount'?");
  EXPECT_EQ(Refused(Manifest("{}", "{command: [python, t.py], imagePullPolice: Never}")),
            "m.yaml:12:41: unknown key 'imagePullPolice' in "
            "spec.replicaSpecs[0].template.spec.containers[0]: did you mean 'imagePullPolicy'?");
}

TEST(ImportHyperPod, ReportsWrongTypesAndKindsWithTheirPlace) {
  EXPECT_EQ(Refused(Manifest("{jobMaxRetryCount: many}", "{command: [python, t.py]}")),
            "m.yaml:6:33: 'spec.runPolicy.jobMaxRetryCount' takes a whole number from 0 to "
            "2147483647, found 'many'");
  EXPECT_THAT(Refused("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"),
              HasSubstr("m.yaml:2:7: this is kind 'PyTorchJob' of 'kubeflow.org/v1'"));
  EXPECT_THAT(Refused(""), HasSubstr("m.yaml"));
  EXPECT_THAT(Refused("apiVersion: [}"), HasSubstr("m.yaml:1:"));
  EXPECT_THAT(Refused("apiVersion: sagemaker.amazonaws.com/v1\nkind: HyperPodPyTorchJob\n"),
              HasSubstr("'spec' is missing"));
}

TEST(ImportHyperPod, RefusesACommandThatItCannotTakeApart) {
  EXPECT_THAT(Refused(Manifest("{}", "{command: [bash, -c, 'cd /w; torchrun t.py']}")),
              HasSubstr("m.yaml:12:25: the launcher is started by a shell script"));
  EXPECT_THAT(Refused(Manifest("{}", "{image: a}")), HasSubstr("the image's own entry point"));
  EXPECT_THAT(Refused(Manifest("{}", "{args: [t.py]}")), HasSubstr("the image's own entry point"));
  EXPECT_THAT(Refused(Manifest("{}", "{command: [torchrun, --nnode, '2']}")),
              HasSubstr("the launcher is given no script"));
  EXPECT_THAT(Refused(Manifest("{}", "{command: [torchrun, --nprocs=2, t.py]}")),
              HasSubstr("unknown option --nprocs"));
}

TEST(ImportHyperPod, TakesTheImagesEntryPointFromWhoKnowsIt) {
  const std::vector<std::string> entry_point = {"torchrun", "--nproc-per-node=4", "t.py"};
  const auto imported =
      ImportHyperPod(Manifest("{}", "{args: ['--lr', '1']}"), "m.yaml", entry_point);
  ASSERT_TRUE(imported) << imported.error().ToString();
  EXPECT_THAT(imported->job.command, ElementsAre("python", "t.py", "--lr", "1"));
  EXPECT_EQ(imported->job.ranks_per_node.count, 4U);
  // A command of the manifest's own wins.
  const auto own = ImportHyperPod(Manifest("{}", "{command: [a]}"), "m.yaml", entry_point);
  ASSERT_TRUE(own);
  EXPECT_THAT(own->job.command, ElementsAre("a"));
}

TEST(ImportHyperPod, TakesAProgramThatIsNoLauncherAsItIs) {
  const ImportedJob imported =
      Imported(Manifest("{}", "{command: [/workspace/run.sh], args: [a b]}"));
  EXPECT_THAT(imported.job.command, ElementsAre("/workspace/run.sh", "a b"));
  bool said = false;
  for (const ImportedField& field : imported.fields)
    said = said || (field.fate == Fate::kBeside && field.words.find("every rank") == 0);
  EXPECT_TRUE(said);
}

TEST(ImportHyperPod, HasOnlyTheBudgetOfTheRunWithoutARestartPolicy) {
  const ImportedJob imported = Imported(Manifest("{jobMaxRetryCount: 7}", "{command: [a]}"));
  EXPECT_EQ(imported.job.restart.total, 7U);
  EXPECT_EQ(imported.job.restart.process_restarts, 7U);
  EXPECT_EQ(imported.job.restart.full_restarts, 0U);
}

TEST(ImportHyperPod, JudgesAGroupOnlyBesideAThreshold) {
  const ImportedJob imported = Imported(Manifest(
      "{logMonitoringConfiguration: [{name: a, logPattern: '(x|y)', "
      "expectedStartCutOffInSeconds: 5}, {name: b, logPattern: '(z)'}, {name: c, logPattern: "
      "'v=(.*)', metricThreshold: 2.0, operator: gt}, {name: d, logPattern: w, faultOnMatch: true, "
      "metricThreshold: 3}]}",
      "{command: [a]}"));
  ASSERT_EQ(imported.job.log_rules.size(), 3U);  // b can never fire, there and here
  EXPECT_EQ(imported.job.log_rules[0].on_non_number, LogRule::NonNumber::kIgnore);
  EXPECT_EQ(imported.job.log_rules[0].scope, LogRule::Scope::kAny);
  EXPECT_EQ(imported.job.log_rules[1].on_non_number, LogRule::NonNumber::kFault);
  EXPECT_EQ(imported.job.log_rules[1].threshold, (Threshold{Threshold::Operator::kAbove, 2.0}));
  EXPECT_TRUE(imported.job.log_rules[2].fault);
  EXPECT_THAT(FateOf(imported, "[3].metricThreshold"), HasSubstr("no meaning"));
}

TEST(ImportHyperPod, RefusesALookAroundByTheNameOfItsRule) {
  EXPECT_THAT(Refused(Manifest("{logMonitoringConfiguration: [{name: a, logPattern: '(?=x)', "
                               "faultOnMatch: true}]}",
                               "{command: [a]}")),
              HasSubstr("m.yaml:6:"));
}

TEST(ImportHyperPod, RefusesTwoKindsOfNodes) {
  std::string text = Manifest("{}", "{command: [a]}");
  text += "    - {name: other, template: {}}\n";
  EXPECT_THAT(Refused(text), HasSubstr("m.yaml:13:7: 'spec.replicaSpecs' has 2 entries"));
}

}  // namespace
}  // namespace muster::spec
