#include "spec/document.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace muster::spec {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Kinds, text and order, without places.
std::string Shape(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return "~";
    case Value::Kind::kPlain:
      return value.text;
    case Value::Kind::kText:
      return "'" + value.text + "'";
    case Value::Kind::kList: {
      std::string out = "[";
      for (const Value& item : value.items) out += Shape(item) + ",";
      return out + "]";
    }
    case Value::Kind::kMap: {
      std::string out = "{";
      for (const Member& member : value.members)
        out += member.key + ":" + Shape(member.value) + ",";
      return out + "}";
    }
  }
  return "?";
}

TEST(Document, IsTheSameTreeFromYamlAndJson) {
  const auto yaml =
      ReadDocument("a: 1\nb: [x, \"2\", null, true]\nc: {d: -1.5}\n", Syntax::kYaml, "f");
  const auto json = ReadDocument(R"({"a": 1, "b": ["x", "2", null, true], "c": {"d": -1.5}})",
                                 Syntax::kJson, "f");
  ASSERT_TRUE(yaml.has_value()) << yaml.error().ToString();
  ASSERT_TRUE(json.has_value()) << json.error().ToString();
  EXPECT_EQ(Shape(*yaml), "{a:1,b:[x,'2',~,true,],c:{d:-1.5,},}");
  EXPECT_EQ(Shape(*json), "{a:1,b:['x','2',~,true,],c:{d:-1.5,},}");
}

TEST(Document, KnowsThePlaceOfEveryJsonValue) {
  const auto json =
      ReadDocument("{\n  \"a\": 12,\n  \"b\" : [true , {\"c\":\t\"x\"}]\n}", Syntax::kJson, "f");
  ASSERT_TRUE(json.has_value()) << json.error().ToString();
  const Member& a = json->members[0];
  const Member& b = json->members[1];
  EXPECT_EQ(json->place, (Place{1, 1}));
  EXPECT_EQ(a.place, (Place{2, 3}));
  EXPECT_EQ(a.value.place, (Place{2, 8}));
  EXPECT_EQ(b.place, (Place{3, 3}));
  EXPECT_EQ(b.value.place, (Place{3, 9}));
  EXPECT_EQ(b.value.items[0].place, (Place{3, 10}));
  EXPECT_EQ(b.value.items[1].place, (Place{3, 17}));
  EXPECT_EQ(b.value.items[1].members[0].place, (Place{3, 18}));
  EXPECT_EQ(b.value.items[1].members[0].value.place, (Place{3, 23}));
}

TEST(Document, KnowsThePlaceOfEveryYamlValue) {
  const auto yaml = ReadDocument("a: 12\nb:\n  - x\n  - c: y\n", Syntax::kYaml, "f");
  ASSERT_TRUE(yaml.has_value());
  EXPECT_EQ(yaml->members[0].value.place, (Place{1, 4}));
  EXPECT_EQ(yaml->members[1].place, (Place{2, 1}));
  EXPECT_EQ(yaml->members[1].value.items[1].members[0].value.place, (Place{4, 8}));
}

TEST(Document, CopiesAliasesAndCountsThem) {
  const auto yaml = ReadDocument("a: &x [1, 2]\nb: *x\n", Syntax::kYaml, "f");
  ASSERT_TRUE(yaml.has_value()) << yaml.error().ToString();
  EXPECT_EQ(Shape(*yaml), "{a:[1,2,],b:[1,2,],}");
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{}: &a{} [", i, i);
    for (int j = 0; j < 10; ++j) bomb += fmt::format("{}*a{}", j == 0 ? "" : ", ", i - 1);
    bomb += "]\n";
  }
  const auto refused = ReadDocument(bomb, Syntax::kYaml, "f");
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("more than 20000 values"));
}

struct BadDocument {
  std::string text;
  Syntax syntax;
  const char* says;
};

TEST(Document, RefusesHostileTextAndSaysWhere) {
  const BadDocument cases[] = {
      {"a: &x [*x]\n", Syntax::kYaml, "f:1:8: this alias is inside of what it names"},
      {"a: *nope\n", Syntax::kYaml, "f:1:4: "},
      {"a: !!binary aGk=\n", Syntax::kYaml, "the tag 'tag:yaml.org,2002:binary'"},
      {"a: 1\n---\nb: 2\n", Syntax::kYaml, "f:3:1: a second document"},
      {"? [a]\n: 1\n", Syntax::kYaml, "a key must be text"},
      {"a: [1\n", Syntax::kYaml, "f:2:1: "},
      {"a: 1\n b: 2\n", Syntax::kYaml, "f:2:"},
      {std::string("a: \0", 4), Syntax::kYaml, "f:1:4: control character 0x00"},
      {"a: \"\xC3\x28\"", Syntax::kYaml, "f:1:5: byte 0xc3 is not UTF-8"},
      {"a: \xED\xA0\x80", Syntax::kYaml, "f:1:4: byte 0xed is not UTF-8"},
      {std::string(300'000, ' '), Syntax::kYaml, "300000 bytes, more than the 256 KiB"},
      {std::string(100, '[') + std::string(100, ']'), Syntax::kYaml,
       "f:1:25: nested deeper than 24"},
      {std::string(100'000, '['), Syntax::kJson, "f:1:25: nested deeper than 24"},
      {"{\"a\": 1,}", Syntax::kJson, "f:1:9: "},
      {"{\"a\": 1} x", Syntax::kJson, "f:1:10: "},
      {"", Syntax::kJson, "f:1:1: "},
  };
  for (const BadDocument& bad : cases) {
    const auto document = ReadDocument(bad.text, bad.syntax, "f");
    ASSERT_FALSE(document.has_value()) << bad.says;
    EXPECT_EQ(document.error().code(), Code::kInvalid);
    EXPECT_THAT(document.error().message(), HasSubstr(bad.says));
    EXPECT_THAT(document.error().message(), StartsWith("f:"));
  }
}

/// Any tree of strings, from a stream of random numbers.
Value RandomTree(Rng& rng, int depth) {
  constexpr std::string_view kAlphabet[] = {"a", "b",  "0",  "1",  "e",  "-",    ":",   " ", "#",
                                            "'", "\"", "\\", "\n", "\t", ",",    "[",   "]", "{",
                                            "}", "&",  "*",  "!",  "|",  ">",    "%",   "@", "`",
                                            "$", "é",  "漢", "~",  "?",  "null", "yes", "."};
  Value value;
  const auto kind = depth == 0 ? 0 : rng.Below(3);
  if (kind == 0) {
    value.kind = Value::Kind::kText;
    for (auto n = rng.Below(6); n > 0; --n)
      value.text += kAlphabet[rng.Below(std::size(kAlphabet))];
    return value;
  }
  value.kind = kind == 1 ? Value::Kind::kList : Value::Kind::kMap;
  for (auto n = rng.Below(5); n > 0; --n) {
    Value child = RandomTree(rng, depth - 1);
    if (kind == 1) {
      value.items.push_back(std::move(child));
    } else {
      value.members.push_back({.key = RandomTree(rng, 0).text, .value = std::move(child)});
    }
  }
  return value;
}

/// A bare word that YAML reads back counts as the text that it is.
std::string TextShape(Value value) {
  const std::function<void(Value&)> quote = [&](Value& inner) {
    if (inner.kind == Value::Kind::kPlain) inner.kind = Value::Kind::kText;
    for (Value& item : inner.items) quote(item);
    for (Member& member : inner.members) quote(member.value);
  };
  quote(value);
  return Shape(value);
}

TEST(Document, ReadsBackWhatItPrints) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    const Value tree = RandomTree(rng, 4);
    const std::string yaml = PrintYaml(tree);
    const auto from_yaml = ReadDocument(yaml, Syntax::kYaml, "f");
    ASSERT_TRUE(from_yaml.has_value()) << seed << from_yaml.error().ToString() << "\n" << yaml;
    ASSERT_EQ(TextShape(*from_yaml), Shape(tree)) << seed << "\n" << yaml;
    const auto from_json = ReadDocument(PrintJson(tree), Syntax::kJson, "f");
    ASSERT_TRUE(from_json.has_value()) << seed << from_json.error().ToString();
    ASSERT_EQ(Shape(*from_json), Shape(tree)) << seed;
  }
}

}  // namespace
}  // namespace muster::spec
