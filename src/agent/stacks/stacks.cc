#include "agent/stacks/stacks.h"

#include <nlohmann/json.hpp>

namespace muster::agent::stacks {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "muster-stacks/1";
constexpr int kDeepest = 8;

Json FramesJson(const std::vector<Frame>& frames) {
  Json list = Json::array();
  for (const Frame& frame : frames) list.push_back({frame.function, frame.library, frame.at});
  return list;
}

Json ThreadJson(const Thread& thread) {
  return {{"tids", thread.tids},
          {"name", thread.name},
          {"missing", thread.missing},
          {"native", FramesJson(thread.native)},
          {"python", FramesJson(thread.python)}};
}

Json ProcessJson(const Process& process) {
  Json threads = Json::array();
  for (const Thread& thread : process.threads) threads.push_back(ThreadJson(thread));
  return {{"rank", process.rank},         {"pid", process.pid},
          {"name", process.name},         {"state", process.state},
          {"missing", process.missing},   {"python_missing", process.python_missing},
          {"threads", std::move(threads)}};
}

std::vector<Frame> FramesOf(const Json& json) {
  std::vector<Frame> frames;
  for (const Json& frame : json) {
    const auto word = [&](std::size_t index) { return frame.at(index).get<std::string>(); };
    frames.push_back({word(0), word(1), word(2)});
  }
  return frames;
}

Thread ThreadOf(const Json& json) {
  return {.tids = json.at("tids").get<std::vector<int>>(),
          .name = json.at("name").get<std::string>(),
          .native = FramesOf(json.at("native")),
          .python = FramesOf(json.at("python")),
          .missing = json.at("missing").get<std::string>()};
}

Process ProcessOf(const Json& json) {
  Process process{.rank = json.at("rank").get<std::uint32_t>(),
                  .pid = json.at("pid").get<int>(),
                  .name = json.at("name").get<std::string>(),
                  .state = json.at("state").get<std::string>(),
                  .missing = json.at("missing").get<std::string>(),
                  .python_missing = json.at("python_missing").get<std::string>()};
  for (const Json& thread : json.at("threads")) process.threads.push_back(ThreadOf(thread));
  return process;
}

}  // namespace

std::string ToJson(const std::vector<Process>& processes) {
  Json list = Json::array();
  for (const Process& process : processes) list.push_back(ProcessJson(process));
  const Json json = {{"format", kFormat}, {"processes", std::move(list)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::vector<Process>> FromJson(std::string_view text) {
  if (text.size() > static_cast<std::size_t>(kMaxJson.count)) {
    return Error(Code::kInvalid, "stacks of more than 4 MiB");
  }
  const auto limit = [](int depth, Json::parse_event_t, Json&) { return depth <= kDeepest; };
  const Json json = Json::parse(text, limit, false);
  if (!json.is_object() || json.value("format", Json()) != kFormat) {
    return Error(Code::kInvalid, "stacks that are no muster-stacks/1");
  }
  std::vector<Process> processes;
  try {
    for (const Json& process : json.at("processes")) processes.push_back(ProcessOf(process));
  } catch (const Json::exception& wrong) {
    return Error(Code::kInvalid, std::string("stacks: ") + wrong.what());
  }
  return processes;
}

}  // namespace muster::agent::stacks
