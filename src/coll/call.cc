#include "coll/call.h"

#include <cstring>

namespace muster::coll {
namespace {

std::uint64_t Hash(const char* text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (; *text != '\0'; ++text) {
    hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  }
  return hash;
}

const char* TypeName(std::uint32_t type) {
  constexpr const char* kNames[] = {"f32", "f64", "bf16", "f16", "i32", "i64", "u8"};
  return type < std::size(kNames) ? kNames[type] : "?";
}

const char* ReductionName(std::uint32_t reduction) {
  constexpr const char* kNames[] = {"sum", "max", "min"};
  return reduction < std::size(kNames) ? kNames[reduction] : "?";
}

/// The site as printable text: it comes from another process.
std::string SiteOf(const CallRecord& record) {
  std::string site(record.site, ::strnlen(record.site, kSiteText));
  for (char& c : site) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return site;
}

}  // namespace

std::uint64_t SizeOf(muster_coll_type type) {
  constexpr std::uint64_t kSizes[] = {4, 8, 2, 2, 4, 8, 1};
  const auto index = static_cast<std::uint32_t>(type);
  return index < std::size(kSizes) ? kSizes[index] : 0;
}

CallRecord MakeRecord(const CallSpec& spec, std::uint64_t sequence) {
  const char* site = spec.site != nullptr ? spec.site : "";
  CallRecord record{.sequence = sequence,
                    .count = spec.count,
                    .site_hash = Hash(site),
                    .buffer = kPrivate,
                    .operation = static_cast<std::uint32_t>(spec.operation),
                    .type = static_cast<std::uint32_t>(spec.type),
                    .reduction = static_cast<std::uint32_t>(spec.reduction),
                    .root = spec.root,
                    .site = {}};
  std::memcpy(record.site, site, ::strnlen(site, kSiteText - 1));
  return record;
}

bool SameCall(const CallRecord& a, const CallRecord& b) {
  return a.sequence == b.sequence && a.count == b.count && a.site_hash == b.site_hash &&
         a.operation == b.operation && a.type == b.type && a.reduction == b.reduction &&
         a.root == b.root;
}

std::string Describe(const CallRecord& record) {
  const std::string site = SiteOf(record);
  const std::string quoted = site.empty() ? "" : "'" + site + "'";
  const std::string shape =
      std::string(TypeName(record.type)) + " × " + std::to_string(record.count);
  const std::string tail = quoted.empty() ? ")" : ", " + quoted + ")";
  switch (static_cast<Operation>(record.operation)) {
    case Operation::kBarrier:
      return "barrier(" + quoted + ")";
    case Operation::kAllReduce:
      return "all_reduce(" + shape +
             (record.reduction == MUSTER_COLL_SUM
                  ? ""
                  : std::string(", ") + ReductionName(record.reduction)) +
             tail;
    case Operation::kBroadcast:
      return "broadcast(" + shape + ", root " + std::to_string(record.root) + tail;
    case Operation::kAllGather:
      return "all_gather(" + shape + tail;
  }
  return "an unknown operation";
}

}  // namespace muster::coll
