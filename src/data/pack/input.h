#pragma once
// Opens what `muster data pack` is given: a folder of idx files (the MNIST family), or a folder of
// images with a class per folder, with or without split folders above. Each in a file of its own;
// this one chooses. Errors name the file and the numbers that disagree.

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "data/decode/image.h"
#include "data/pack/row_source.h"

namespace muster::data {

enum class InputFormat { kAuto, kIdx, kImages };

struct InputOptions {
  InputFormat format = InputFormat::kAuto;
  std::vector<std::string> label_names;  ///< empty: from the folders, or the set's known names
  std::uint64_t max_pixels = kMaxPixels;
  Bytes max_file = 256_MiB;   ///< of one image
  bool decode_check = false;  ///< decode every image, not only its header
  bool leave_out = false;  ///< folders that cannot be taken are left out with a note, not refused
};

Result<PackInput> OpenInput(const std::string& path, const InputOptions& options);
Result<PackInput> OpenIdxFolder(const std::string& path, const InputOptions& options);
Result<PackInput> OpenImageFolder(const std::string& path, const InputOptions& options);

/// Whether the folder has files that are named as the MNIST family names them.
Result<bool> HasIdxFiles(const std::string& path);

}  // namespace muster::data
