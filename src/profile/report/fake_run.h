#pragma once
// A run folder as `muster run` leaves it, made up but plausible, for tests and for looking at the
// page. The same options give the same bytes.

#include <cstdint>
#include <string>

namespace muster::profile {

struct FakeRunOptions {
  std::string name = "vit-fashion";
  std::uint32_t ranks = 2;
  std::uint64_t steps = 600;
  std::uint64_t fault_step = 342;  ///< 0: nobody dies
  std::uint32_t fault_rank = 1;
  std::uint64_t checkpoint_every = 100;
  std::uint64_t eval_every = 150;
  bool recovers = true;        ///< false: the run fails with the fault
  bool result = true;          ///< false: result.json is missing
  std::string fault_log = "";  ///< what the rank wrote to stderr before it died
  std::string reason = "";     ///< of a run that failed
};

void WriteFakeRun(const std::string& folder, const FakeRunOptions& options = {});

}  // namespace muster::profile
