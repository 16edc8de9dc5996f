#include <flatbuffers/flatbuffers.h>
#include <gtest/gtest.h>

#include <functional>

#include "data/arrow/message.h"

namespace muster::data::arrow {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using Fields = std::vector<Offset<fb::Field>>;

/// One column as anybody may write it.
struct Column {
  std::string name = "x";
  fb::Type type = fb::Type::Bool;
  std::function<Offset<void>(FlatBufferBuilder&)> value = [](FlatBufferBuilder& builder) {
    return fb::CreateEmpty(builder).Union();
  };
  bool dictionary = false;
  std::vector<Column> children;
};

Offset<fb::Field> Write(FlatBufferBuilder& builder, const Column& column) {
  Fields children;
  for (const Column& child : column.children) children.push_back(Write(builder, child));
  const auto child_vector = builder.CreateVector(children);
  const auto name = builder.CreateString(column.name);
  const auto value = column.value(builder);
  const auto dictionary =
      column.dictionary ? fb::CreateDictionary(builder, 1) : Offset<fb::Dictionary>();
  return fb::CreateField(builder, name, false, column.type, value, dictionary, child_vector);
}

Result<Schema> Read(const std::vector<Column>& columns,
                    fb::Endianness endianness = fb::Endianness::Little) {
  FlatBufferBuilder builder;
  Fields fields;
  for (const Column& column : columns) fields.push_back(Write(builder, column));
  builder.Finish(fb::CreateSchema(builder, endianness, builder.CreateVector(fields)));
  return ReadSchema(*flatbuffers::GetRoot<fb::Schema>(builder.GetBufferPointer()));
}

std::string Refused(const Column& column) {
  const auto schema = Read({column});
  if (schema) return "read";
  EXPECT_EQ(schema.error().code(), Code::kPrecondition);
  return schema.error().message();
}

auto Int(int bits) {
  return [bits](FlatBufferBuilder& builder) { return fb::CreateInt(builder, bits, true).Union(); };
}

TEST(ReadSchema, TakesEachWidthOfIntegersAndNoOther) {
  for (const int bits : {8, 16, 32, 64}) {
    EXPECT_EQ(Refused({.type = fb::Type::Int, .value = Int(bits)}), "read") << bits;
  }
  for (const int bits : {-8, 0, 1, 7, 128}) {
    EXPECT_EQ(Refused({.type = fb::Type::Int, .value = Int(bits)}),
              "column 'x': integers of " + std::to_string(bits) + " bits");
  }
}

TEST(ReadSchema, RefusesAFloatOfNoKnownPrecision) {
  const auto precision = [](int number) -> Column {
    return {.type = fb::Type::FloatingPoint, .value = [number](FlatBufferBuilder& builder) {
              return fb::CreateFloatingPoint(builder, static_cast<fb::Precision>(number)).Union();
            }};
  };
  for (const int known : {0, 1, 2}) EXPECT_EQ(Refused(precision(known)), "read");
  for (const int unknown : {-1, 3})
    EXPECT_EQ(Refused(precision(unknown)), "column 'x': unknown float precision");
}

TEST(ReadSchema, RefusesANegativeSize) {
  EXPECT_EQ(Refused({.type = fb::Type::FixedSizeBinary,
                     .value =
                         [](FlatBufferBuilder& builder) {
                           return fb::CreateFixedSizeBinary(builder, -1).Union();
                         }}),
            "column 'x': a fixed size of -1");
  EXPECT_EQ(Refused({.type = fb::Type::FixedSizeList,
                     .value =
                         [](FlatBufferBuilder& builder) {
                           return fb::CreateFixedSizeList(builder, -7).Union();
                         },
                     .children = {{}}}),
            "column 'x': a fixed size of -7");
}

TEST(ReadSchema, RefusesTypesThatItDoesNotReadByTheirNumber) {
  for (const fb::Type type :
       {fb::Type::Decimal, fb::Type::Date, fb::Type::Time, fb::Type::Timestamp, fb::Type::Interval,
        fb::Type::Union, fb::Type::Map, fb::Type::Duration, static_cast<fb::Type>(99)}) {
    EXPECT_EQ(Refused({.type = type}), "column 'x': Arrow type number " +
                                           std::to_string(static_cast<int>(type)) +
                                           " is not supported");
  }
}

TEST(ReadSchema, RefusesDictionariesAndAnotherByteOrder) {
  EXPECT_EQ(Refused({.dictionary = true}), "column 'x': dictionary encoding");
  const auto big = Read({{}}, fb::Endianness::Big);
  ASSERT_FALSE(big);
  EXPECT_EQ(big.error().message(), "the stream is big-endian");
}

TEST(ReadSchema, CountsTheChildrenOfEachType) {
  const Column child{.name = "y"};
  EXPECT_EQ(Refused({.children = {child}}), "column 'x': 1 child fields for its type");
  EXPECT_EQ(Refused({.type = fb::Type::List}), "column 'x': 0 child fields for its type");
  EXPECT_EQ(Refused({.type = fb::Type::LargeList, .children = {child, child}}),
            "column 'x': 2 child fields for its type");
  EXPECT_EQ(Refused({.type = fb::Type::Struct, .children = {child, child}}), "read");
}

TEST(ReadSchema, BoundsDepthAndNumberOfFields) {
  Column nested{.name = "leaf"};
  for (int depth = 0; depth < 32; ++depth) {
    nested = {.name = "list", .type = fb::Type::List, .children = {nested}};
  }
  EXPECT_EQ(Refused(nested), "read");
  nested = {.name = "list", .type = fb::Type::List, .children = {nested}};
  EXPECT_EQ(Refused(nested), "column 'leaf': nested too deeply");
  EXPECT_TRUE(Read(std::vector<Column>(10'000)));
  const auto many = Read(std::vector<Column>(10'001));
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().message(), "the schema has more than 10,000 fields");
}

}  // namespace
}  // namespace muster::data::arrow
