#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "data/arrow/decode.h"
#include "data/arrow/encode.h"

namespace muster::data::arrow {
namespace {

using Blob = std::vector<std::byte>;

template <typename T>
void Put(Blob& blob, std::vector<T> values) {
  const std::size_t at = blob.size();
  blob.resize(at + values.size() * sizeof(T));
  std::memcpy(blob.data() + at, values.data(), values.size() * sizeof(T));
}

void Append(Blob& blob, ByteSpan more) { blob.insert(blob.end(), more.begin(), more.end()); }

Schema TestSchema() {
  return {.fields = {Int64Field("label"), Utf8Field("source")}, .metadata = {{"k", "v"}}};
}

/// Two rows: label 5, −1; source "ab", "c". The body is one block of 128 bytes.
struct Sample {
  Blob file;
  BatchFrame frame;

  Sample(std::vector<std::int32_t> offsets = {0, 2, 3}, std::int64_t data_length = 3,
         std::int64_t body_length = 256) {
    Append(file, EncodeSchema(TestSchema()));
    const BatchLayout layout{.rows = 2,
                             .nodes = {{2, 0}, {2, 0}},
                             .buffers = {{0, 0}, {0, 16}, {64, 0}, {64, 12}, {128, data_length}},
                             .body_length = body_length};
    frame.offset = file.size();
    const Blob head = EncodeBatchHead(layout, file.size());
    frame.metadata_length = head.size();
    frame.body_length = 256;
    frame.rows = 2;
    Append(file, head);
    Blob body;
    Put<std::int64_t>(body, {5, -1});
    body.resize(64);
    Put<std::int32_t>(body, std::move(offsets));
    body.resize(128);
    Append(body, AsBytes("abc"));
    body.resize(256);
    Append(file, body);
    Append(file, kEndOfStream);
  }
};

std::string ErrorOf(const Sample& sample) {
  auto walker = StreamWalker::Open(sample.file);
  if (!walker) return walker.error().message();
  const auto frame = walker->Next();
  if (!frame) return frame.error().message();
  const auto batch = ReadBatch(sample.file, **frame, walker->schema());
  return batch ? "no error" : batch.error().message();
}

TEST(ArrowStream, ReadsBackWhatItWrote) {
  const Sample sample;
  auto walker = StreamWalker::Open(sample.file);
  ASSERT_TRUE(walker) << walker.error().ToString();
  EXPECT_EQ(walker->schema().fields, TestSchema().fields);
  EXPECT_EQ(walker->schema().Metadata("k"), "v");
  const auto frame = walker->Next();
  ASSERT_TRUE(frame && *frame);
  EXPECT_EQ(**frame, sample.frame);
  const auto batch = ReadBatch(sample.file, **frame, walker->schema());
  ASSERT_TRUE(batch) << batch.error().ToString();
  EXPECT_EQ(batch->columns[0].Integer(1), -1);
  EXPECT_EQ(AsText(batch->columns[1].Bytes(0)), "ab");
  EXPECT_EQ(AsText(batch->columns[1].Bytes(1)), "c");
  EXPECT_FALSE(**walker->Next() == **frame);
}

TEST(ArrowStream, BodiesStartOnPages) {
  const Sample sample;
  EXPECT_EQ(sample.frame.body_offset() % kBodyAlignment, 0u);
  EXPECT_EQ(sample.frame.offset % 8, 0u);
}

TEST(ArrowStream, EveryCutIsFound) {
  const Sample sample;
  for (std::size_t size = 0; size < sample.file.size(); ++size) {
    Sample cut = sample;
    cut.file.resize(size);
    auto walker = StreamWalker::Open(cut.file);
    bool whole = walker.has_value();
    while (whole) {
      const auto frame = walker->Next();
      whole = frame.has_value();
      if (frame && !*frame) break;
    }
    ASSERT_FALSE(whole) << "cut to " << size << " bytes";
  }
}

TEST(ArrowStream, RefusesHostileBatches) {
  EXPECT_NE(ErrorOf(Sample({0, 3, 2})).find("offset 2 behind 3"), std::string::npos);
  EXPECT_NE(ErrorOf(Sample({-4, 2, 3})).find("first offset of -4"), std::string::npos);
  EXPECT_NE(ErrorOf(Sample({0, 2, 2'000'000'000})).find("needs 2000000000"), std::string::npos);
  EXPECT_NE(ErrorOf(Sample({0, 2, 3}, 1'000)).find("outside its body"), std::string::npos);
  EXPECT_NE(ErrorOf(Sample({0, 2, 3}, -1)).find("buffer of -1 bytes"), std::string::npos);
  EXPECT_NE(ErrorOf(Sample({0, 2, 3}, 3, 1 << 20)).find("does not fit"), std::string::npos);
}

TEST(ArrowStream, RefusesForeignFilesByName) {
  const auto error_of = [](Blob file) {
    file.resize(64);
    return StreamWalker::Open(file).error().message();
  };
  Blob old;
  Put<std::int32_t>(old, {56, 16, 0});  // before 0.15 a message began with its length
  EXPECT_NE(error_of(old).find("0.15"), std::string::npos);
  Blob random_access;
  Append(random_access, AsBytes("ARROW1\0\0"));
  EXPECT_NE(error_of(random_access).find("not a stream"), std::string::npos);
}

TEST(ArrowStream, IsTheSameForTheSameInput) { EXPECT_EQ(Sample().file, Sample().file); }

}  // namespace
}  // namespace muster::data::arrow
