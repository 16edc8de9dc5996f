// fake_run FOLDER [STEPS [RANKS]]: writes a made-up run folder, to look at the page without
// training.
#include <cstdlib>

#include "profile/report/fake_run.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  muster::profile::FakeRunOptions options;
  if (argc > 2) options.steps = std::strtoull(argv[2], nullptr, 10);
  if (argc > 3) options.ranks = static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10));
  if (argc > 2) options.fault_step = options.steps * 57 / 100;
  options.fault_log = "step 341 loss=0.5123\nTraceback (most recent call last):\n  <b>killed</b>\n";
  muster::profile::WriteFakeRun(argv[1], options);
  return 0;
}
