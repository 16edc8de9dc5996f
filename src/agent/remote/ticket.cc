#include "agent/remote/ticket.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/shim/protocol.h"

namespace muster::agent {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestName = 64;
constexpr int kDeepest = 3;
constexpr std::uint32_t kMostRanks = 1 << 20;

bool IsName(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name[0] != '.' && name.size() <= kLongestName &&
         std::ranges::all_of(name, plain);
}

/// The fields of one JSON object; the first that is not as it should be is `wrong`.
class Object {
 public:
  explicit Object(std::string_view text)
      : json_(Json::parse(
            text, [](int depth, Json::parse_event_t, Json&) { return depth <= kDeepest; }, false)) {
    if (!json_.is_object()) wrong_ = "it is no JSON object";
  }
  std::string Text(const char* key) {
    const Json* value = Find(key);
    if (value == nullptr || !value->is_string()) return Wrong(key);
    return value->get<std::string>();
  }
  std::uint32_t Number(const char* key) {
    const Json* value = Find(key);
    const bool fits = value != nullptr && value->is_number_unsigned() &&
                      value->get<std::uint64_t>() <= 0xffffffffU;
    if (!fits) Wrong(key);
    return fits ? value->get<std::uint32_t>() : 0;
  }
  std::vector<std::string> Texts(const char* key) {
    std::vector<std::string> texts;
    const Json* value = Find(key);
    if (value == nullptr || !value->is_array()) {
      Wrong(key);
      return texts;
    }
    for (const Json& entry : *value) {
      if (!entry.is_string()) {
        Wrong(key);
        return texts;
      }
      texts.push_back(entry.get<std::string>());
    }
    return texts;
  }
  const std::string& wrong() const { return wrong_; }

 private:
  const Json* Find(const char* key) const {
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  std::string Wrong(const char* key) {
    if (wrong_.empty()) wrong_ = fmt::format("'{}' is missing or not what it should be", key);
    return {};
  }

  Json json_;
  std::string wrong_;
};

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string FormatJoin(const JoinRequest& request) {
  return Dump(
      {{"protocol", request.protocol}, {"version", request.version}, {"name", request.name}});
}

Result<JoinRequest> ParseJoin(std::string_view text) {
  Object object(text);
  JoinRequest request;
  request.protocol = object.Number("protocol");
  request.version = object.Text("version");
  request.name = object.Text("name");
  if (object.wrong().empty() && IsName(request.name)) return request;
  return Error(Code::kInvalid,
               object.wrong().empty()
                   ? "join: the node's name is not 1 to 64 of letters, digits, . - _"
                   : "join: " + object.wrong());
}

std::string FormatTicket(const JobTicket& ticket) {
  return Dump({{"agent", ticket.agent},
               {"run_id", ticket.run_id},
               {"folder", ticket.folder},
               {"cwd", ticket.cwd},
               {"job_yaml", ticket.job_yaml},
               {"flags", ticket.flags},
               {"ranks", ticket.ranks},
               {"ranks_per_node", ticket.ranks_per_node},
               {"lease_ms", ticket.lease.count()}});
}

Result<JobTicket> ParseTicket(std::string_view text) {
  Object object(text);
  JobTicket ticket;
  ticket.agent = object.Text("agent");
  ticket.run_id = object.Text("run_id");
  ticket.folder = object.Text("folder");
  ticket.cwd = object.Text("cwd");
  ticket.job_yaml = object.Text("job_yaml");
  ticket.flags = object.Texts("flags");
  ticket.ranks = object.Number("ranks");
  ticket.ranks_per_node = object.Number("ranks_per_node");
  ticket.lease = std::chrono::milliseconds(object.Number("lease_ms"));
  if (!object.wrong().empty()) return Error(Code::kInvalid, "ticket: " + object.wrong());
  const bool whole = ticket.ranks_per_node > 0 && ticket.ranks_per_node <= shim::kMaxWorkers &&
                     ticket.ranks <= kMostRanks && ticket.ranks % ticket.ranks_per_node == 0 &&
                     ticket.lease.count() > 0 && IsName(ticket.agent) && IsName(ticket.run_id);
  if (!whole) return Error(Code::kInvalid, "ticket: its values contradict each other");
  return ticket;
}

std::string WhyNotTogether(const JoinRequest& request, const std::string& version) {
  if (request.protocol == kNodeProtocol) return {};
  return fmt::format(
      "the coordinator is muster {} and speaks version {} of the node protocol, the agent is "
      "muster "
      "{} and speaks version {}",
      version, kNodeProtocol, request.version, request.protocol);
}

}  // namespace muster::agent
