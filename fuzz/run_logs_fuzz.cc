// A log and its index: whatever the bytes of both, the lines are the log's bytes, each once, and
// the last ones are the end of it.
#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "profile/logs/log_reader.h"

namespace {

using namespace muster::profile;

constexpr LogName kLog{.generation = 1, .rank = 0};

const std::string& Folder() {
  static const std::string folder = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "logs-fuzz-XXXXXX").string();
    MUSTER_CHECK(::mkdtemp(pattern.data()) != nullptr);
    std::filesystem::create_directories(pattern + "/logs/rank-0");
    return pattern;
  }();
  return folder;
}

std::string Lines(const RunFiles& files, const LogQuery& query, std::uint64_t& lines) {
  auto reader = *LogReader::Open(files, query);
  std::string all;
  reader.Read(true, [&](const LogPiece& piece) {
    all += piece.text;
    lines += piece.begins ? 1 : 0;
    return true;
  });
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.size() < 2) return 0;
  const auto tail = static_cast<unsigned char>(text[0]);
  const auto index = text.substr(2, static_cast<unsigned char>(text[1]));
  const std::string log(text.substr(2 + index.size()));
  std::ofstream(Folder() + "/" + kLog.index_path(), std::ios::binary) << index;
  std::ofstream(Folder() + "/" + kLog.log_path(), std::ios::binary) << log;
  const auto files = *RunFiles::Open(Folder());
  std::uint64_t all = 0;
  MUSTER_CHECK(Lines(files, {}, all) == log);
  std::uint64_t some = 0;
  MUSTER_CHECK(log.ends_with(Lines(files, {.tail = tail}, some)));
  MUSTER_CHECK(some == std::min<std::uint64_t>(tail, all));
  std::uint64_t newer = 0;
  MUSTER_CHECK(log.ends_with(Lines(files, {.since_ns = tail}, newer)));
  return 0;
}
