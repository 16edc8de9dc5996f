// muster data ls DIR: what a dataset holds. With --rows, the rows themselves as JSON lines.
#include <fmt/format.h>
#include <zlib.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "cli/verb.h"
#include "data/layout/checked_batch.h"
#include "data/layout/split_folder.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;
using data::arrow::ArrayView;
using data::arrow::Field;
using data::arrow::TypeId;

struct Arguments {
  std::string folder;
  std::string split;
  std::string rows;
};

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Bytes are shown as their length and CRC-32, enough to compare with.
Json BytesJson(ByteSpan bytes) {
  const auto crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  return {{"bytes", bytes.size()}, {"crc32", crc}};
}

Json ValueJson(const ArrayView& array, std::int64_t row) {
  if (array.IsNull(row)) return nullptr;
  switch (array.field->type) {
    case TypeId::kNull:
      return nullptr;
    case TypeId::kInt:
      if (!array.field->is_signed) return static_cast<std::uint64_t>(array.Integer(row));
      return array.Integer(row);
    case TypeId::kFloat:
      if (array.field->bit_width == 16) return nullptr;
      return array.Number(row);
    case TypeId::kBool:
      return array.Integer(row) != 0;
    case TypeId::kBinary:
    case TypeId::kLargeBinary:
    case TypeId::kFixedSizeBinary:
      return BytesJson(array.Bytes(row));
    case TypeId::kUtf8:
    case TypeId::kLargeUtf8:
      return AsText(array.Bytes(row));
    case TypeId::kList:
    case TypeId::kLargeList:
    case TypeId::kFixedSizeList: {
      Json items = Json::array();
      const auto [begin, end] = array.Items(row);
      for (std::int64_t i = begin; i < end; ++i) items.push_back(ValueJson(array.children[0], i));
      return items;
    }
    case TypeId::kStruct: {
      Json object = Json::object();
      for (const ArrayView& child : array.children)
        object[child.field->name] = ValueJson(child, row);
      return object;
    }
  }
  return nullptr;
}

struct RowRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "5" is the first five rows, "10:20" the ten from row 10.
Result<RowRange> ParseRange(std::string_view text) {
  const auto colon = text.find(':');
  const bool from_first = colon == std::string_view::npos;
  const auto begin =
      from_first ? std::optional<std::uint64_t>(0) : ParseNumber(text.substr(0, colon));
  const auto end = ParseNumber(from_first ? text : text.substr(colon + 1));
  if (begin && end && *begin <= *end) return RowRange{*begin, *end};
  return Error(Code::kInvalid, fmt::format("--rows '{}' is no range", text),
               "write 5 for the first five rows, or 10:20");
}

Json RowJson(const data::SplitFolder& split, const data::arrow::BatchView& batch,
             std::uint64_t number, std::int64_t row) {
  Json object = {{"row", number}};
  if (!split.place().name.empty()) object["split"] = split.place().name;
  for (const ArrayView& column : batch.columns) {
    object[column.field->name] = ValueJson(column, row);
  }
  return object;
}

/// Emits the rows of one split that are in the range, each only after its checksums held.
class RowEmitter {
 public:
  using Emit = std::function<Status(Json)>;
  RowEmitter(const data::SplitFolder& split, const RowRange& range, const Emit& emit)
      : split_(split), range_(range), emit_(emit) {
    if (auto columns = data::ImageColumns::Find(split.schema(), split.features())) {
      columns_ = *columns;
    }
  }

  Status Run() {
    std::uint64_t first = 0;  // global number of the batch's first row
    for (std::size_t shard = 0; shard < split_.shards().size(); ++shard) {
      const std::uint64_t shard_first = first;
      const auto& batches = split_.shards()[shard].batches;
      for (std::size_t batch = 0; batch < batches.size(); ++batch) {
        const std::uint64_t end = first + batches[batch].frame.rows;
        if (end > range_.begin && first < range_.end) {
          MUSTER_TRY(EmitBatch(shard, batch, first, shard_first));
        }
        first = end;
      }
    }
    return Ok();
  }

 private:
  Status EmitBatch(std::size_t shard, std::size_t number, std::uint64_t first,
                   std::uint64_t shard_first) {
    const auto batch =
        MUSTER_TRY(data::CheckedBatch::Read(split_, columns_, shard, number, first - shard_first));
    const auto rows = static_cast<std::uint64_t>(batch.view().rows);
    const std::uint64_t end = std::min(first + rows, range_.end);
    for (std::uint64_t row = std::max(first, range_.begin); row < end; ++row) {
      const std::uint64_t at = row - first;
      if (columns_) {
        const ArrayView& images = columns_->Images(batch.view());
        const auto index = static_cast<std::int64_t>(at);
        if (!images.IsNull(index)) {
          MUSTER_TRY(Within(fmt::format("{}, batch {}, row {}", split_.NameOf(shard), number, at),
                            batch.CheckImage(at, images.Bytes(index))));
        }
      }
      Json printed = RowJson(split_, batch.view(), row, static_cast<std::int64_t>(at));
      MUSTER_TRY(split_.Whole(shard));
      MUSTER_TRY(emit_(std::move(printed)));
    }
    return Ok();
  }

  const data::SplitFolder& split_;
  const RowRange range_;
  const Emit& emit_;
  std::optional<data::ImageColumns> columns_;
};

Json SplitJson(const data::SplitFolder& split) {
  Json shards = Json::array(), columns = Json::object();
  std::uint64_t rows = 0, bytes = 0;
  for (const data::ShardEntry& shard : split.shards()) {
    shards.push_back({{"name", shard.name},
                      {"rows", shard.rows},
                      {"bytes", shard.bytes},
                      {"batches", shard.batches.size()}});
    rows += shard.rows;
    bytes += shard.bytes;
  }
  for (const Field& field : split.schema().fields)
    columns[field.name] = data::arrow::TypeText(field);
  return {{"split", split.place().name},
          {"folder", split.place().folder},
          {"rows", rows},
          {"bytes", bytes},
          {"shards", shards},
          {"columns", columns},
          {"label_names", split.features().label_names},
          {"id", split.id().Hex()},
          {"checksums", split.has_manifest()}};
}

std::string SplitText(const Json& split) {
  std::string text = fmt::format(
      "{:<12}{:>10} {}  {:>3} {}  {:>10}  {}  {}\n",
      split["split"].get<std::string>().empty() ? "-"
                                                : PlainLine(split["split"].get<std::string>()),
      split["rows"].get<std::uint64_t>(), split["rows"] == 1 ? "row " : "rows",
      split["shards"].size(), split["shards"].size() == 1 ? "shard " : "shards",
      FormatBytes({split["bytes"].get<std::int64_t>()}), split["id"].get<std::string>(),
      split["checksums"].get<bool>() ? "checksums" : "no checksums");
  for (const auto& [name, type] : split["columns"].items()) {
    text += fmt::format("  {}: {}\n", PlainLine(name), PlainLine(type.get<std::string>()));
  }
  const auto names = split["label_names"].get<std::vector<std::string>>();
  if (!names.empty())
    text += fmt::format("  {} {}: {}\n", names.size(), names.size() == 1 ? "class" : "classes",
                        PlainLine(fmt::to_string(fmt::join(names, ", "))));
  return text;
}

Result<int> List(const Arguments& arguments, bool json) {
  std::optional<RowRange> range;
  if (!arguments.rows.empty()) range = MUSTER_TRY(ParseRange(arguments.rows));
  Json splits = Json::array(), rows = Json::array();
  const RowEmitter::Emit emit = [&](Json row) -> Status {
    if (!json) return Print(Dump(row));
    rows.push_back(std::move(row));
    return Ok();
  };
  const auto places = MUSTER_TRY(data::SplitsNamed(arguments.folder, arguments.split,
                                                   MUSTER_TRY(data::FindSplits(arguments.folder))));
  for (const data::SplitPlace& place : places) {
    const auto split = MUSTER_TRY(data::SplitFolder::Open(place));
    if (range) {
      MUSTER_TRY(RowEmitter(*split, *range, emit).Run());
    } else {
      splits.push_back(SplitJson(*split));
    }
  }
  if (json) {
    const std::string key = range ? "rows" : "splits";
    MUSTER_TRY(Print(Dump({{"dataset", arguments.folder}, {key, range ? rows : splits}})));
    return 0;
  }
  if (places.empty()) MUSTER_TRY(PrintText("no splits\n"));
  for (const Json& split : splits) MUSTER_TRY(PrintText(SplitText(split)));
  return 0;
}

}  // namespace

void AddDataLs(CLI::App& parent, Invocation& invocation) {
  CLI::App* app =
      AddSubcommand(parent, "ls", "Splits, rows, shards, columns and id of a dataset", invocation);
  auto arguments = std::make_shared<Arguments>();
  app->add_option("DIR", arguments->folder, "A dataset folder, ours or Hugging Face's")->required();
  app->add_option("--split", arguments->split, "Only this split")->type_name("NAME");
  app->add_option("--rows", arguments->rows, "Print rows as JSON lines: 5 or 10:20")
      ->type_name("ROWS");
  app->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] { return List(*arguments, invocation.json); };
  });
}

}  // namespace muster::cli
