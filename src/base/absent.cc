#include "base/absent.h"

#include <fmt/format.h>

#include <filesystem>

namespace muster {

std::string AbsolutePath(const std::string& path) {
  std::error_code gone;
  const auto absolute = std::filesystem::absolute(path, gone);
  return gone ? path : absolute.lexically_normal().string();
}

Error Absent(std::string_view what, const std::string& path, std::string_view hint) {
  // An empty name would be told as the working folder, which is there.
  if (path.empty())
    return {Code::kInvalid, fmt::format("the {} has no name", what), std::string(hint)};
  return {Code::kNotFound, fmt::format("there is no {} at {}", what, AbsolutePath(path)),
          std::string(hint)};
}

}  // namespace muster
