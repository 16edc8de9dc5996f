// A command line of `muster run`, a word a line; PET_ variables come first. What is read is in
// range.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "spec/torchrun/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace torchrun = muster::spec::torchrun;
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == '\n') {
      words.emplace_back();
    } else if (data[i] != 0) {
      words.back() += static_cast<char>(data[i]);
    }
  }
  std::map<std::string, std::string> variables;
  while (!words.empty() && words.front().starts_with("PET_") &&
         words.front().find('=') != std::string::npos) {
    const auto equals = words.front().find('=');
    variables[words.front().substr(0, equals)] = words.front().substr(equals + 1);
    words.erase(words.begin());
  }
  const std::vector<torchrun::OwnOption> own = {{"ranks", true}, {"n", true}, {"quiet", false}};
  const auto line = torchrun::SplitRunLine(words, own);
  if (!line) return 0;
  MUSTER_CHECK(line->own.size() + line->words.size() <= words.size() + size);
  MUSTER_CHECK((line->form == torchrun::RunLine::Form::kNothing) == line->words.empty());
  const auto settings =
      torchrun::ReadSettings(*line, [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      });
  if (!settings) return 0;
  MUSTER_CHECK(!settings->ranks || settings->ranks->count > 0);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    MUSTER_CHECK(settings->shown.Of(rank) <= 3);
    MUSTER_CHECK(torchrun::LinePrefix(settings->role, settings->role, rank, rank).size() <=
                 (settings->role.size() + 10) * (settings->role.size() + 1));
  }
  return 0;
}
