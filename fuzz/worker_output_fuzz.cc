// Any bytes as a worker's output, in any pieces: the lines do not depend on the pieces, none is
// longer than the cap, and nothing but line ends is lost. The exception line is found in any
// stderr.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "agent/logs/line_framer.h"
#include "agent/run/fault_record.h"

namespace {

using muster::agent::Line;
using muster::agent::LineFramer;

std::vector<Line> LinesOf(const std::string& text, std::size_t piece) {
  LineFramer framer;
  std::vector<Line> lines;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    for (Line& line : framer.Add(std::string_view(text).substr(at, piece))) {
      lines.push_back(std::move(line));
    }
  }
  for (Line& line : framer.Finish()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  std::string text(reinterpret_cast<const char*>(data + 2), size - 2);
  // Stretched, so that the cap of a line is reached from few bytes.
  if (data[0] % 4 == 0) text += std::string(std::size_t{data[1]} * 1024, 'x') + text;
  const auto whole = LinesOf(text, text.size() + 1);
  if (whole != LinesOf(text, data[1] + 1U)) std::abort();
  std::string joined;
  for (const Line& line : whole) {
    if (line.text.size() > LineFramer::kMaxLine) std::abort();
    joined += line.text;
  }
  std::erase_if(text, [](char c) { return c == '\r' || c == '\n'; });
  if (joined != text) std::abort();
  if (muster::agent::ExceptionLine(text).size() > 500) std::abort();
  return 0;
}
