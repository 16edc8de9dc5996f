#include "spec/visible_devices.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace muster::spec {
namespace {

/// "0, GPU-5fa1" → 0, GPU-5fa1.
std::vector<std::string> Entries(std::string_view list) {
  std::vector<std::string> entries(1);
  for (const char c : list) {
    if (c == ',') {
      entries.emplace_back();
    } else if (c != ' ') {
      entries.back() += c;
    }
  }
  return entries;
}

bool IsThere(const std::string& entry, std::uint32_t present) {
  if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) return true;
  std::uint32_t number = 0;
  const char* end = entry.data() + entry.size();
  const auto [stop, error] = std::from_chars(entry.data(), end, number);
  return error == std::errc() && stop == end && number < present;
}

}  // namespace

std::uint32_t CountVisible(const std::optional<std::string>& list, std::uint32_t present) {
  if (!list) return present;
  std::uint32_t count = 0;
  for (const std::string& entry : Entries(*list)) {
    if (!IsThere(entry, present)) break;
    ++count;
  }
  return count;
}

Result<std::vector<std::string>> DevicesOf(const std::optional<std::string>& list,
                                           std::uint32_t ranks) {
  std::vector<std::string> devices;
  if (list) {
    devices = Entries(*list);
    if (devices.size() >= ranks) return devices;
    return Error(Code::kPrecondition,
                 fmt::format("CUDA_VISIBLE_DEVICES is {}, too few for {} ranks of one device each",
                             *list, ranks),
                 "ask for fewer ranks, or leave --virtual-local-rank away");
  }
  for (std::uint32_t i = 0; i < ranks; ++i) devices.push_back(std::to_string(i));
  return devices;
}

}  // namespace muster::spec
