#pragma once
// The lines that a file of a live run grows by, read by offset: each poll costs what is new. Of a
// file that grew by more than is of interest only the end is read. Torn lines wait for their rest,
// lines above 64 KiB are passed over, a file that is not there yet has no lines. One thread.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "profile/report/run_files.h"

namespace muster::profile {

class LineTail {
 public:
  /// Of what came since the last poll at most the last `most` bytes are read.
  LineTail(std::string path, Bytes most) : path_(std::move(path)), most_(most) {}

  void Poll(const RunFiles& files, const std::function<void(std::string_view)>& use);

 private:
  void Feed(std::string_view bytes, const std::function<void(std::string_view)>& use);

  std::string path_;
  Bytes most_;
  std::uint64_t offset_ = 0;
  std::string held_;       ///< the front of a line
  bool skipping_ = false;  ///< up to the next newline nothing is of use
};

}  // namespace muster::profile
