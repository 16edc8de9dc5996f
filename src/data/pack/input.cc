#include "data/pack/input.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/absent.h"

namespace muster::data {

Result<PackInput> OpenInput(const std::string& path, const InputOptions& options) {
  struct stat info{};
  if (::stat(path.c_str(), &info) < 0) {
    const int why = errno;
    if (why != ENOENT && why != ENOTDIR) return ErrnoError("open " + path, why);
    return Absent("input", path, "give the folder that holds the idx files or the class folders");
  }
  if (!S_ISDIR(info.st_mode)) {
    return Error(Code::kInvalid, path + " is not a folder",
                 "give the folder that holds the idx files or the class folders");
  }
  const bool idx = options.format == InputFormat::kIdx ||
                   (options.format == InputFormat::kAuto && MUSTER_TRY(HasIdxFiles(path)));
  PackInput input = MUSTER_TRY(idx ? OpenIdxFolder(path, options) : OpenImageFolder(path, options));
  input.path = path;
  return input;
}

}  // namespace muster::data
