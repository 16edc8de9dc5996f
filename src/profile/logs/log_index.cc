#include "profile/logs/log_index.h"

#include <algorithm>
#include <limits>

namespace muster::profile {
namespace {

constexpr std::size_t kWord = 8;
constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

void Put(std::uint64_t value, char* out) {
  for (std::size_t i = 0; i < kWord; ++i) out[i] = static_cast<char>(value >> (8 * i));
}

std::uint64_t Get(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kWord; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return std::min(value, kMost);
}

}  // namespace

std::array<char, kLogRecordBytes> EncodeLogMark(const LogMark& mark) {
  std::array<char, kLogRecordBytes> record{};
  Put(static_cast<std::uint64_t>(mark.t_ns), record.data());
  Put(mark.offset, record.data() + kWord);
  return record;
}

LogMark DecodeLogMark(std::string_view record) {
  return {.t_ns = static_cast<std::int64_t>(Get(record.substr(0, kWord))),
          .offset = Get(record.substr(kWord, kWord))};
}

}  // namespace muster::profile
