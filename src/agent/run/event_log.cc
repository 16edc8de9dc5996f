#include "agent/run/event_log.h"

#include <nlohmann/json.hpp>

namespace muster::agent {

Instant EventLog::Add(std::string_view event, std::initializer_list<Field> fields) {
  const Instant now = clock_.Now();
  nlohmann::ordered_json line = {{"t_ns", now.time_since_epoch().count()}, {"event", event}};
  for (const Field& field : fields) {
    std::visit([&](const auto& value) { line[std::string(field.key)] = value; }, field.value);
  }
  file_.Append(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  return now;
}

void EventLog::AddLoss(const LogLoss& loss) {
  losses_.Add(loss);
  Add("log_dropped", {{"rank", loss.id.rank.value()},
                      {"stream", std::string(NameOf(loss.id.stream))},
                      {"bytes", loss.bytes},
                      {"reason", std::string(NameOf(loss.why))}});
}

}  // namespace muster::agent
