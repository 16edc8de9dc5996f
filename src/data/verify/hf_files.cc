#include "data/verify/hf_files.h"

#include <algorithm>
#include <string>

#include "data/layout/hf_check.h"

namespace muster::data {
namespace {

bool IsNamed(const SplitFolder& split, const std::string& file) {
  return std::ranges::any_of(split.Findings(),
                             [&](const SetFinding& finding) { return finding.file == file; });
}

using Check = std::vector<std::string> (*)(std::string_view text, const HfTruth& truth);

void CheckFile(const SplitFolder& split, const std::string& name, const HfTruth& truth, Check check,
               VerifyReport& report) {
  const std::string path = split.place().folder + "/" + name;
  if (IsNamed(split, path)) return;
  const auto text = ReadSetFile(path);
  if (!text) return report.AddError(path, -1, text.error());
  for (std::string& what : check(*text, truth)) report.Add({path, -1, -1, std::move(what)});
}

}  // namespace

void CheckHfFiles(const SplitFolder& split, VerifyReport& report) {
  const HfTruth truth{.manifest = split.has_manifest() ? &split.manifest() : nullptr,
                      .schema = split.knows_schema() ? &split.schema() : nullptr};
  CheckFile(split, "state.json", truth, CheckStateJson, report);
  CheckFile(split, "dataset_info.json", truth, CheckDatasetInfoJson, report);
}

}  // namespace muster::data
