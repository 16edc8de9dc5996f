#include "agent/health/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/health/kernel_log_check.h"
#include "agent/health/measuring_checks.h"
#include "agent/health/reading_checks.h"
#include "base/text.h"

namespace muster::agent::health {
namespace {

using std::chrono::milliseconds;

Check Skipped(std::string name, std::string why) {
  return {.name = std::move(name),
          .verdict = Check::Verdict::kSkipped,
          .measured = {},
          .limit = {},
          .advice = std::move(why)};
}

}  // namespace

std::string_view NameOf(Check::Verdict verdict) {
  switch (verdict) {
    case Check::Verdict::kOk:
      return "ok";
    case Check::Verdict::kWarn:
      return "warn";
    case Check::Verdict::kFail:
      return "fail";
    case Check::Verdict::kSkipped:
      return "skipped";
  }
  return "fail";
}

bool Healthy(const std::vector<Check>& checks) {
  return std::ranges::none_of(
      checks, [](const Check& check) { return check.verdict == Check::Verdict::kFail; });
}

std::vector<Check> Examine(const Sight& sight, const DoctorOptions& options) {
  std::vector<Check> checks = {CheckClock(sight),        CheckFiles(sight), CheckProcesses(sight),
                               CheckLockedMemory(sight), CheckCores(sight), CheckPids(sight),
                               CheckPtrace(sight),       CheckMemory(sight)};
  checks.push_back(CheckFolder(sight, {.name = "shm",
                                       .folder = "/dev/shm",
                                       .probe = 8_MiB,
                                       .fail_below = 16_MiB,
                                       .warn_below = 256_MiB}));
  checks.push_back(CheckFolder(sight, {.name = "disk",
                                       .folder = options.folder,
                                       .probe = 16_MiB,
                                       .fail_below = 256_MiB,
                                       .warn_below = 10_GiB}));
  checks.push_back(JudgeBandwidth(MeasureBandwidth(milliseconds(200))));
  checks.push_back(JudgeCores(MeasureCores(milliseconds(300))));
  checks.push_back(CheckJobCgroup(fmt::format("doctor-{}", ::getpid())));
  checks.push_back(CheckLoopback());
  checks.push_back(CheckGpus(sight));
  checks.push_back(CheckKernelLog(options.kernel_log));
  checks.push_back(
      options.python.empty()
          ? Skipped("python", "--python PATH starts it and imports torch")
          : CheckPython(options.python, options.environment, std::chrono::seconds(60)));
  checks.push_back(Skipped("hosts", "clocks and connections between hosts are not compared yet"));
  return checks;
}

std::string CheckTable(const std::vector<Check>& checks) {
  std::string text;
  for (const Check& check : checks) {
    const bool bad =
        check.verdict == Check::Verdict::kWarn || check.verdict == Check::Verdict::kFail;
    std::string line = fmt::format("{:<8} {:<13} {}", NameOf(check.verdict), check.name,
                                   PlainLine(check.measured));
    if (bad && !check.limit.empty()) line += fmt::format("; needs {}", check.limit);
    const auto end = line.find_last_not_of(' ');
    text += line.substr(0, end + 1) + "\n";
    if (!check.advice.empty()) text += fmt::format("{:23}{}\n", "", PlainLine(check.advice));
  }
  return text;
}

std::string CheckJson(const std::vector<Check>& checks) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const Check& check : checks) {
    list.push_back({{"name", check.name},
                    {"verdict", NameOf(check.verdict)},
                    {"measured", check.measured},
                    {"limit", check.limit},
                    {"advice", check.advice}});
  }
  const Json document = {{"healthy", Healthy(checks)}, {"checks", std::move(list)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster::agent::health
