#include "base/fd.h"
#include "cli/verb.h"

int main(int argc, char** argv) {
  muster::KeepStandardDescriptors();
  muster::FailAtFileSizeLimit();
  return muster::cli::Main(argc, argv);
}
