#include "data/pack/row_columns.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/error.h"
#include "data/layout/hf_json.h"

namespace muster::data {
namespace {

using arrow::kBufferAlignment;
using arrow::RoundUp;

void AppendText(std::vector<std::byte>& data, std::vector<std::int32_t>& offsets,
                std::string_view text) {
  const ByteSpan bytes = AsBytes(text);
  data.insert(data.end(), bytes.begin(), bytes.end());
  offsets.push_back(static_cast<std::int32_t>(data.size()));
}

/// Lays buffers one behind the other, each on 64 bytes, with zeros between.
class BodyBuilder {
 public:
  explicit BodyBuilder(RowColumns::Body& body) : body_(body), out_(&body.before) {}

  void AddEmpty() { body_.layout.buffers.push_back({static_cast<std::int64_t>(at_), 0}); }
  template <typename T>
  void Add(const std::vector<T>& values) {
    const ByteSpan bytes = std::as_bytes(std::span(values));
    Place(bytes.size());
    out_->insert(out_->end(), bytes.begin(), bytes.end());
    Pad(bytes.size());
  }
  /// The images stay where they are; what follows goes behind them.
  void AddImages(ByteSpan images) {
    Place(images.size());
    body_.images = images;
    out_ = &body_.after;
    Pad(images.size());
  }
  std::int64_t size() const { return static_cast<std::int64_t>(at_); }

 private:
  void Place(std::size_t length) {
    body_.layout.buffers.push_back(
        {static_cast<std::int64_t>(at_), static_cast<std::int64_t>(length)});
  }
  void Pad(std::size_t length) {
    const std::uint64_t padded = RoundUp(length, kBufferAlignment);
    out_->resize(out_->size() + (padded - length));
    at_ += padded;
  }

  RowColumns::Body& body_;
  std::vector<std::byte>* out_;
  std::uint64_t at_ = 0;
};

}  // namespace

arrow::Schema PackedSchema(const std::vector<std::string>& label_names) {
  return {.fields = {arrow::StructField("image",
                                        {arrow::BinaryField("bytes"), arrow::Utf8Field("path")}),
                     arrow::Int64Field("label"), arrow::Utf8Field("source")},
          .metadata = {{"huggingface", SchemaMetadataJson(label_names)}}};
}

void RowColumns::Clear() {
  image_used_ = 0;
  image_offsets_.assign(1, 0);
  image_crcs_.clear();
  path_data_.clear();
  path_offsets_.assign(1, 0);
  labels_.clear();
  source_data_.clear();
  source_offsets_.assign(1, 0);
  shapes_.clear();
}

MutableByteSpan RowColumns::Reserve(std::size_t size) {
  const auto begin = static_cast<std::size_t>(image_offsets_.back());
  image_used_ = begin + size;
  if (image_data_.size() < image_used_) {
    image_data_.resize(std::max(image_used_, image_data_.size() + image_data_.size() / 2));
  }
  return MutableByteSpan(image_data_).subspan(begin, size);
}

void RowColumns::Add(std::size_t size, const Row& row) {
  const auto begin = static_cast<std::size_t>(image_offsets_.back());
  MUSTER_CHECK(begin + size <= image_used_ && begin + size <= INT32_MAX);
  image_used_ = begin + size;
  image_crcs_.push_back(Crc32c(ByteSpan(image_data_).subspan(begin, size)));
  image_offsets_.push_back(static_cast<std::int32_t>(image_used_));
  AppendText(path_data_, path_offsets_, row.path);
  labels_.push_back(row.label);
  AppendText(source_data_, source_offsets_, row.source);
  shapes_.push_back(row.shape);
}

std::string_view RowColumns::SourceOf(std::uint32_t row) const {
  const auto begin = static_cast<std::size_t>(source_offsets_[row]);
  const auto end = static_cast<std::size_t>(source_offsets_[row + 1]);
  return AsText(ByteSpan(source_data_).subspan(begin, end - begin));
}

RowColumns::Body RowColumns::Finish() const {
  Body body;
  BodyBuilder builder(body);
  const std::int64_t count = rows();
  body.layout.rows = count;
  body.layout.nodes.assign(5, {count, 0});  // image, bytes, path, label, source
  builder.AddEmpty();                       // image: no nulls
  builder.AddEmpty();                       // bytes: no nulls
  builder.Add(image_offsets_);
  const std::int64_t images_at = builder.size();
  builder.AddImages(ByteSpan(image_data_).first(image_bytes()));
  builder.AddEmpty();  // path
  builder.Add(path_offsets_);
  builder.Add(path_data_);
  builder.AddEmpty();  // label
  builder.Add(labels_);
  builder.AddEmpty();  // source
  builder.Add(source_offsets_);
  builder.Add(source_data_);
  body.layout.body_length = builder.size();
  for (std::size_t row = 0; row < labels_.size(); ++row) {
    AppendRowEntry(body.index,
                   {static_cast<std::uint32_t>(images_at + image_offsets_[row]),
                    static_cast<std::uint32_t>(image_offsets_[row + 1] - image_offsets_[row]),
                    image_crcs_[row]});
  }
  return body;
}

}  // namespace muster::data
