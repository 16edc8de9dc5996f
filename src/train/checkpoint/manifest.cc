#include "train/checkpoint/manifest.h"

#include <nlohmann/json.hpp>
#include <set>

#include "train/checkpoint/block_sums.h"
#include "train/checkpoint/parse_json.h"
#include "train/checkpoint/safetensors.h"

namespace muster::checkpoint {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "muster-checkpoint/1";
constexpr std::string_view kFormatFamily = "muster-checkpoint/";
constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
constexpr std::uint64_t kMostStep = 999'999'999'999;
constexpr std::size_t kMostFiles = 65536;

Result<std::vector<std::uint64_t>> ParseNumbers(const json& array, std::uint64_t limit,
                                                std::string_view where) {
  std::vector<std::uint64_t> numbers;
  for (const json& number : array) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > limit)
      return Error(Code::kDataLoss, std::string(where) + " is no list of integers");
    numbers.push_back(number.get<std::uint64_t>());
  }
  return numbers;
}

Result<FlatIndex> ParseIndex(const json& value) {
  FlatIndex index{.length = MUSTER_TRY(Unsigned(value, "length", kMost, "index"))};
  for (const json& group : *MUSTER_TRY(Member(value, "groups", "array", "index"))) {
    if (!group.is_object()) return Error(Code::kDataLoss, "index: a group is no object");
    index.groups.push_back(
        {.name = MUSTER_TRY(Text(group, "name", 1024, "index.groups")),
         .dtype = MUSTER_TRY(ParseDType(MUSTER_TRY(Text(group, "dtype", 16, "index.groups"))))});
  }
  const json& tensors = *MUSTER_TRY(Member(value, "tensors", "object", "index"));
  for (const auto& [name, tensor] : tensors.items()) {
    const std::string where = "index.tensors['" + name.substr(0, 200) + "']";
    if (!tensor.is_object()) return Error(Code::kDataLoss, where + " is no object");
    const json& shape = *MUSTER_TRY(Member(tensor, "shape", "array", where));
    index.entries.push_back({.name = name,
                             .shape = MUSTER_TRY(ParseNumbers(shape, kMost, where + ".shape")),
                             .offset = MUSTER_TRY(Unsigned(tensor, "offset", kMost, where)),
                             .length = MUSTER_TRY(Unsigned(tensor, "length", kMost, where))});
  }
  MUSTER_TRY(Within("index", Validate(index)));
  return index;
}

/// Slices must lie in their file and in the flat space before anything is read through them.
Status CheckSlice(const StoredSlice& slice, const StoredFile& file, const FlatIndex& index) {
  const auto group = std::ranges::find(index.groups, slice.group, &Group::name);
  if (group == index.groups.end())
    return Error(Code::kDataLoss, file.name + " holds a slice of the unknown group '" +
                                      slice.group.substr(0, 200) + "'");
  const std::uint64_t size = SizeOf(group->dtype);
  if (slice.begin > index.length || slice.length > index.length - slice.begin ||
      slice.data_offset > file.data_bytes ||
      slice.length > (file.data_bytes - slice.data_offset) / size)
    return Error(Code::kDataLoss, file.name + ": a slice of '" + slice.group +
                                      "' leaves the file or the flat space");
  return Ok();
}

bool GoodFileName(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

Result<StoredFile> ParseFile(const json& value, const FlatIndex& index) {
  if (!value.is_object()) return Error(Code::kDataLoss, "files: an entry is no object");
  StoredFile file{.name = MUSTER_TRY(Text(value, "name", 255, "files"))};
  const std::string& where = file.name;
  if (!GoodFileName(file.name)) return Error(Code::kDataLoss, "files: a name leaves the folder");
  file.header_bytes =
      MUSTER_TRY(Unsigned(value, "header_bytes", kSafetensorsHeaderLimit + 8, where));
  if (file.header_bytes < 8) return Error(Code::kDataLoss, where + ": 'header_bytes' is below 8");
  file.data_bytes = MUSTER_TRY(Unsigned(value, "data_bytes", kMost, where));
  file.header_crc32c =
      static_cast<std::uint32_t>(MUSTER_TRY(Unsigned(value, "header_crc32c", UINT32_MAX, where)));
  const json& sums = *MUSTER_TRY(Member(value, "crc32c", "array", where));
  for (const std::uint64_t sum : MUSTER_TRY(ParseNumbers(sums, UINT32_MAX, where + ".crc32c")))
    file.crc32c.push_back(static_cast<std::uint32_t>(sum));
  if (file.crc32c.size() != BlocksOf(file.data_bytes))
    return Error(Code::kDataLoss, where + " has " + std::to_string(file.crc32c.size()) +
                                      " checksums for " + std::to_string(file.data_bytes) +
                                      " bytes");
  for (const json& slice : *MUSTER_TRY(Member(value, "slices", "array", where))) {
    if (!slice.is_object()) return Error(Code::kDataLoss, where + ": a slice is no object");
    file.slices.push_back(
        {.group = MUSTER_TRY(Text(slice, "group", 1024, where)),
         .begin = MUSTER_TRY(Unsigned(slice, "begin", kMost, where)),
         .length = MUSTER_TRY(Unsigned(slice, "length", kMost, where)),
         .data_offset = MUSTER_TRY(Unsigned(slice, "data_offset", kMost, where))});
    MUSTER_TRY(CheckSlice(file.slices.back(), file, index));
  }
  return file;
}

Status ParseFiles(const json& document, Manifest& manifest) {
  const json& files = *MUSTER_TRY(Member(document, "files", "array", "manifest"));
  if (files.empty() || files.size() != manifest.world)
    return Error(Code::kDataLoss, "manifest: " + std::to_string(files.size()) + " files of " +
                                      std::to_string(manifest.world) + " ranks");
  std::set<std::string> names;
  for (const json& value : files) {
    manifest.files.push_back(MUSTER_TRY(ParseFile(value, manifest.index)));
    if (!names.insert(manifest.files.back().name).second)
      return Error(Code::kDataLoss, "files: " + manifest.files.back().name + " appears twice");
  }
  const Status complete = RequireComplete(manifest);
  if (!complete) return Error(Code::kDataLoss, complete.error().message());
  return Ok();
}

Status CheckFormat(const json& document) {
  const std::string format = MUSTER_TRY(Text(document, "format", 64, "manifest"));
  if (format == kFormat) return Ok();
  if (format.starts_with(kFormatFamily))
    return Error(
        Code::kPrecondition,
        "the checkpoint has format " + format + ", this program reads " + std::string(kFormat),
        "use the version of muster that wrote it, or a newer one");
  return Error(Code::kDataLoss, "manifest: the format is not " + std::string(kFormat));
}

Status ParseRun(const json& document, Manifest& manifest) {
  constexpr std::string_view kWhere = "manifest";
  manifest.step = MUSTER_TRY(Unsigned(document, "step", kMostStep, kWhere));
  manifest.generation =
      Generation(MUSTER_TRY(Unsigned(document, "generation", UINT64_MAX, kWhere)));
  manifest.world =
      static_cast<std::uint32_t>(MUSTER_TRY(Unsigned(document, "world", kMostFiles, kWhere)));
  manifest.model = MUSTER_TRY(Text(document, "model", 1024, kWhere));
  manifest.config_json = MUSTER_TRY(Member(document, "config", "object", kWhere))->dump();
  manifest.loader_state = MUSTER_TRY(Text(document, "loader_state", 65536, kWhere));
  manifest.random_key = MUSTER_TRY(Unsigned(document, "random_key", UINT64_MAX, kWhere));
  manifest.optimizer_step = MUSTER_TRY(Unsigned(document, "optimizer_step", manifest.step, kWhere));
  if (MUSTER_TRY(Unsigned(document, "block_bytes", UINT64_MAX, kWhere)) != kBlockBytes)
    return Error(Code::kDataLoss, "manifest: 'block_bytes' is not " + std::to_string(kBlockBytes));
  manifest.created_utc = MUSTER_TRY(Text(document, "created_utc", 64, kWhere));
  const json& canonical = *MUSTER_TRY(Member(document, "canonical", "object", kWhere));
  const json& enabled = *MUSTER_TRY(Member(canonical, "enabled", "boolean", "canonical"));
  manifest.canonical = {.enabled = enabled.get<bool>(),
                        .virtual_shards = static_cast<std::uint32_t>(MUSTER_TRY(
                            Unsigned(canonical, "virtual_shards", UINT32_MAX, "canonical")))};
  if (manifest.canonical.enabled && manifest.canonical.virtual_shards == 0)
    return Error(Code::kDataLoss, "canonical: it is enabled with 0 virtual_shards");
  const json& environment = *MUSTER_TRY(Member(document, "environment", "object", kWhere));
  for (const auto& [key, value] : environment.items()) {
    if (!value.is_string()) return Error(Code::kDataLoss, "environment: a value is no string");
    manifest.environment[key] = value.get<std::string>();
  }
  return Ok();
}

json IndexToJson(const FlatIndex& index) {
  json groups = json::array();
  for (const Group& group : index.groups)
    groups.push_back({{"name", group.name}, {"dtype", NameOf(group.dtype)}});
  json tensors = json::object();
  for (const IndexEntry& entry : index.entries)
    tensors[entry.name] = {
        {"shape", entry.shape}, {"offset", entry.offset}, {"length", entry.length}};
  return {{"length", index.length}, {"groups", std::move(groups)}, {"tensors", std::move(tensors)}};
}

json FileToJson(const StoredFile& file) {
  json slices = json::array();
  for (const StoredSlice& slice : file.slices)
    slices.push_back({{"group", slice.group},
                      {"begin", slice.begin},
                      {"length", slice.length},
                      {"data_offset", slice.data_offset}});
  return {{"name", file.name},
          {"header_bytes", file.header_bytes},
          {"data_bytes", file.data_bytes},
          {"header_crc32c", file.header_crc32c},
          {"crc32c", file.crc32c},
          {"slices", std::move(slices)}};
}

}  // namespace

Result<Manifest> ParseManifest(std::string_view text) {
  const json document = MUSTER_TRY(ParseJsonObject(text, {}));
  MUSTER_TRY(CheckFormat(document));
  Manifest manifest;
  MUSTER_TRY(ParseRun(document, manifest));
  auto index = ParseIndex(*MUSTER_TRY(Member(document, "index", "object", "manifest")));
  if (!index) return Error(Code::kDataLoss, index.error().message());
  manifest.index = std::move(*index);
  MUSTER_TRY(ParseFiles(document, manifest));
  return manifest;
}

Result<std::string> WriteManifest(const Manifest& manifest) {
  const auto config = ParseJsonObject(manifest.config_json, {});
  if (!config)
    return Error(Code::kInvalid, "the model's configuration: " + config.error().message());
  json files = json::array();
  for (const StoredFile& file : manifest.files) files.push_back(FileToJson(file));
  const json document = {{"format", kFormat},
                         {"step", manifest.step},
                         {"generation", manifest.generation.value()},
                         {"world", manifest.world},
                         {"model", manifest.model},
                         {"config", *config},
                         {"index", IndexToJson(manifest.index)},
                         {"loader_state", manifest.loader_state},
                         {"random_key", manifest.random_key},
                         {"optimizer_step", manifest.optimizer_step},
                         {"canonical",
                          {{"enabled", manifest.canonical.enabled},
                           {"virtual_shards", manifest.canonical.virtual_shards}}},
                         {"environment", manifest.environment},
                         {"created_utc", manifest.created_utc},
                         {"block_bytes", kBlockBytes},
                         {"files", std::move(files)}};
  try {
    return document.dump(1, ' ') + "\n";
  } catch (const json::exception&) {
    return Error(Code::kInvalid, "a text of the manifest is not UTF-8");
  }
}

}  // namespace muster::checkpoint
