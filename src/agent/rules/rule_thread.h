#pragma once
// Log rules on the output of running workers: a thread that owns the engine. Whoever reads the
// pipes gives it their bytes and never waits: at most kMostWaiting bytes are held, and what does
// not fit is lost for the rules, counted, and no proof of silence. What the run loop says (Begin,
// Go …) takes its turn between the bytes. Deadlines are looked at when no bytes wait, and time in
// which the thread could not run does not count.
//
// Any thread may call; `on_firing` is called from the thread of its own, not after Stop.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "agent/logs/log_id.h"
#include "agent/rules/engine.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"

namespace muster::agent::rules {

inline constexpr Bytes kMostWaiting = 16_MiB;

class RuleThread {
 public:
  using OnFiring = std::function<void(Firing)>;

  static Result<std::unique_ptr<RuleThread>> Start(RuleEngine engine, const Clock& clock,
                                                   OnFiring on_firing);
  ~RuleThread();
  RuleThread(const RuleThread&) = delete;
  RuleThread& operator=(const RuleThread&) = delete;

  void Bytes(const LogId& id, std::string_view bytes);
  /// `spawned`: by rank, the generation of the process whose lines count.
  void Begin(Generation generation, std::vector<Generation> spawned);
  /// In the place of Begin and Go (RuleEngine::Resume).
  void Resume(Generation generation, std::vector<Generation> spawned);
  void Go();
  void Pause();
  void Finish(Rank rank);
  /// Bytes that the rules did not see since the last call.
  std::uint64_t TakeMissed();
  void Stop();

 private:
  struct Shared;
  explicit RuleThread(std::unique_ptr<Shared> shared);
  std::unique_ptr<Shared> shared_;
};

}  // namespace muster::agent::rules
