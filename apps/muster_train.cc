#include "agent/zygote/zygote.h"
#include "base/fd.h"
#include "main.h"
#include "spec/env.h"

namespace {

int Worker(int argc, char** argv) {
  // Here: what the zygote forked has its signals reset.
  muster::FailAtFileSizeLimit();
  return muster::recipes::TrainMain({argv + 1, argv + argc}, muster::spec::ProcessEnv());
}

}  // namespace

int main(int argc, char** argv) {
  muster::KeepStandardDescriptors();
  muster::FailAtFileSizeLimit();
  const auto zygote = muster::agent::ZygoteFd(argc, argv);
  if (!zygote) return Worker(argc, argv);
  if (const int failed = muster::recipes::WarmUp(); failed != 0) return failed;
  return muster::agent::RunZygote(*zygote, &Worker);
}
