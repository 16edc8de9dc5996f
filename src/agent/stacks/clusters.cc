#include "agent/stacks/clusters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/text.h"

namespace muster::agent::stacks {
namespace {

constexpr std::size_t kMostPlace = 200;
constexpr std::size_t kMostFunction = 60;
constexpr std::size_t kPlaceFrames = 3;

/// What every wait ends in says nothing of who waits.
bool IsPlumbing(const Frame& frame) {
  constexpr std::array kLibraries = {"libc.so", "libpthread.so", "ld-linux", "[vdso]"};
  return frame.function.empty() || std::ranges::any_of(kLibraries, [&](std::string_view library) {
           return frame.library.starts_with(library);
         });
}

/// The interpreter's own functions, which Python's frames say better.
bool IsInterpreter(const Frame& frame) {
  return frame.library.starts_with("python3") || frame.library.starts_with("libpython3");
}

std::string KeyOf(const Process& process) {
  if (process.threads.empty()) return "missing " + process.missing;
  const Thread& main = process.threads.front();
  std::string key;
  for (const Frame& frame : main.python) key += fmt::format("{}\t{}\n", frame.function, frame.at);
  for (const Frame& frame : main.native) {
    // The leaf of a spinning thread changes with the moment.
    if (!IsPlumbing(frame) && !IsInterpreter(frame)) key += frame.function + "\n";
  }
  return key.empty() ? "missing " + main.missing : key;
}

std::string Words(const Frame& frame) {
  const std::string name = frame.function.empty() ? "?" : CutText(frame.function, kMostFunction);
  return !frame.at.empty() ? fmt::format("{} ({})", name, frame.at) : name;
}

void AppendFrames(const std::vector<Frame>& frames, std::string& text) {
  for (const Frame& frame : frames) {
    text += fmt::format("      {}  {}\n", frame.function.empty() ? "?" : PlainLine(frame.function),
                        PlainLine(frame.at.empty() ? frame.library : frame.at));
  }
}

void AppendThread(const Thread& thread, std::string& text) {
  std::string tids;
  for (const int tid : thread.tids) tids += fmt::format("{}{}", tids.empty() ? "" : " ", tid);
  text += fmt::format("    {} '{}' {}\n", Counted(thread.tids.size(), "thread"),
                      PlainLine(thread.name), CutText(tids, kMostFunction));
  if (!thread.python.empty()) text += "     python\n";
  AppendFrames(thread.python, text);
  if (!thread.python.empty() && !thread.native.empty()) text += "     native\n";
  AppendFrames(thread.native, text);
  if (!thread.missing.empty()) text += "      (" + thread.missing + ")\n";
}

}  // namespace

std::vector<Cluster> ClustersOf(const std::vector<Process>& processes) {
  std::map<std::string, Cluster> by_key;
  for (const Process& process : processes) {
    Cluster& cluster = by_key[KeyOf(process)];
    if (cluster.example == nullptr) cluster.example = &process;
    cluster.ranks.push_back(process.rank);
  }
  std::vector<Cluster> clusters;
  for (auto& [key, cluster] : by_key) clusters.push_back(std::move(cluster));
  std::ranges::sort(clusters, {}, [](const Cluster& cluster) {
    return std::pair(cluster.ranks.size(), cluster.ranks.front());
  });
  return clusters;
}

std::string PlaceOf(const Process& process) {
  if (process.threads.empty()) return process.missing;
  const Thread& main = process.threads.front();
  std::vector<std::string> words;
  const std::size_t room = kPlaceFrames - (main.python.empty() ? 0 : 1);
  const Frame* wait = nullptr;  // of libc's frames the one that was called, not what it led to
  for (const Frame& frame : main.native) {
    if (IsPlumbing(frame)) {
      if (words.empty() && !frame.function.empty()) wait = &frame;
      continue;
    }
    if (wait != nullptr) words.push_back(Words(*std::exchange(wait, nullptr)));
    // Behind the first frame of the interpreter are those that call Python, which is said better.
    if (words.size() >= room || (!main.python.empty() && IsInterpreter(frame))) break;
    words.push_back(Words(frame));
  }
  if (wait != nullptr && words.empty()) words.push_back(Words(*wait));
  for (const Frame& frame : main.python) {
    if (words.size() >= kPlaceFrames) break;
    words.push_back(Words(frame));
  }
  if (words.empty()) return main.missing.empty() ? "in no function with a name" : main.missing;
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " < ") + word;
  return CutText(PlainLine(text), kMostPlace);
}

std::string RankList(const std::vector<std::uint32_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += text.empty() ? "" : ", ";
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string ToText(const std::vector<Process>& processes) {
  std::string text;
  for (const Cluster& cluster : ClustersOf(processes)) {
    const Process& example = *cluster.example;
    text += fmt::format("{} {}: {}\n", cluster.ranks.size() == 1 ? "rank" : "ranks",
                        RankList(cluster.ranks), PlaceOf(example));
    text += fmt::format("  rank {}, pid {}{}{}\n", example.rank, example.pid,
                        example.name.empty() ? "" : " " + PlainLine(example.name),
                        example.state.empty() ? "" : ", state " + example.state);
    if (!example.missing.empty()) text += "  (" + example.missing + ")\n";
    if (!example.python_missing.empty()) text += "  (" + example.python_missing + ")\n";
    for (const Thread& thread : example.threads) AppendThread(thread, text);
  }
  return text;
}

}  // namespace muster::agent::stacks
