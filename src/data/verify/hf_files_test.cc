// The JSON files of a set: what a pack wrote is held to, what Hugging Face needs is asked for, and
// nothing that a person may write is called damage.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/dataset.h"
#include "data/layout/hf_check.h"
#include "data/layout/hf_json.h"
#include "data/testing/sample_data.h"
#include "data/verify/verify.h"

namespace muster::data {
namespace {

using Json = nlohmann::ordered_json;

class HfFiles : public testing::Test {
 protected:
  HfFiles() : set_(PackSample(folder_, 20, 1'000'000)) {}

  VerifyReport Verify() { return VerifySplit(FindSplits(set_, OnDamage::kKeep)->front()); }
  /// What is found once `change` was made to a file, which is then put back; empty: nothing.
  template <typename Change>
  std::string FoundAfter(const std::string& name, Change change) {
    const std::string good = ReadFile(set_ + "/" + name);
    Json json = Json::parse(good);
    change(json);
    return FoundIn(name, json.dump());
  }
  std::string FoundIn(const std::string& name, const std::string& text) {
    const std::string path = set_ + "/" + name;
    const std::string good = ReadFile(path);
    WriteFile(path, text);
    const VerifyReport report = Verify();
    WriteFile(path, good);
    if (report.damages == 0) return {};
    EXPECT_EQ(report.damages, 1u) << report.first[1].ToString();
    EXPECT_EQ(report.first[0].file, path);
    return report.first[0].what;
  }
  void DropManifest() { std::filesystem::remove_all(set_ + "/_muster"); }

  TempFolder folder_;
  const std::string set_;
};

TEST_F(HfFiles, EveryKeyOfStateJsonHasToBeThere) {
  const Json whole = Json::parse(ReadFile(set_ + "/state.json"));
  for (const auto& [key, value] : whole.items()) {
    const std::string name = key;
    const std::string found = FoundAfter("state.json", [&](Json& json) { json.erase(name); });
    EXPECT_NE(found.find(name), std::string::npos) << name << ": " << found;
    for (const Json& other : {Json(7), Json("a-b"), Json(Json::array({1})), Json({{"x", 1}})}) {
      EXPECT_NE(FoundAfter("state.json", [&](Json& json) { json[name] = other; }), "")
          << name << " as " << other;
    }
  }
}

TEST_F(HfFiles, EveryKeyOfDatasetInfoHasToBeThereAndTheFeaturesAreTheShards) {
  for (const char* key : {"citation", "description", "features", "homepage", "license"}) {
    EXPECT_NE(FoundAfter("dataset_info.json", [&](Json& json) { json.erase(key); }), "") << key;
    EXPECT_NE(FoundAfter("dataset_info.json", [&](Json& json) { json[key] = 7; }), "") << key;
  }
  EXPECT_EQ(FoundAfter("dataset_info.json",
                       [](Json& json) { json["features"]["label"]["names"][3] = "x"; }),
            "features.label.names[3] is \"x\", and \"3\" in this set");
  EXPECT_EQ(FoundAfter("dataset_info.json",
                       [](Json& json) { json["features"]["source"]["dtype"] = "strinf"; }),
            "features.source.dtype is \"strinf\", and \"string\" in this set");
  EXPECT_EQ(FoundAfter("dataset_info.json", [](Json& json) { json["features"].erase("source"); }),
            "features.source is gone");
  EXPECT_EQ(FoundAfter("dataset_info.json",
                       [](Json& json) { json["features"]["image"]["decode"] = false; }),
            "features.image.decode is not of this set");
}

TEST_F(HfFiles, WhatAPersonMayWriteIsNoDamage) {
  for (const char* key : {"citation", "description", "homepage", "license"}) {
    EXPECT_EQ(FoundAfter("dataset_info.json", [&](Json& json) { json[key] = "by hand: ä"; }), "");
  }
  EXPECT_EQ(FoundAfter("dataset_info.json", [](Json& json) { json["config_name"] = "mine"; }), "");
  EXPECT_EQ(FoundAfter("dataset_info.json",
                       [](Json& json) { json["version"] = {{"version_str", "1.0.0"}}; }),
            "");
  // Another order of the keys and other white space are the same values.
  EXPECT_EQ(FoundIn("dataset_info.json",
                    nlohmann::json::parse(ReadFile(set_ + "/dataset_info.json")).dump(7)),
            "");
}

TEST_F(HfFiles, KeysThatHuggingFaceKnowsAreOfATypeThatItTakes) {
  for (const char* key : {"version", "splits", "post_processed", "supervised_keys"}) {
    EXPECT_NE(FoundAfter("dataset_info.json", [&](Json& json) { json[key] = 7; })
                  .find(std::string(key) + " is 7"),
              std::string::npos);
    EXPECT_EQ(FoundAfter("dataset_info.json", [&](Json& json) { json[key] = nullptr; }), "");
  }
}

TEST_F(HfFiles, OtherKeysAreRefusedAsHuggingFaceRefusesThem) {
  const auto found = [&](const char* key, const Json& value) {
    return FoundAfter("dataset_info.json", [&](Json& json) { json[key] = value; });
  };
  const auto good = [&](const char* key, const char* text) {
    EXPECT_EQ(found(key, Json::parse(text)), "") << key << " " << text;
  };
  const auto bad = [&](const char* key, const char* text) {
    EXPECT_NE(found(key, Json::parse(text)), "") << key << " " << text;
  };
  for (const char* text : {R"("1.2.30")", R"({"version_str": "0.0.0", "x": 1})"}) {
    good("version", text);
  }
  for (const char* text : {R"("")", R"("abc")", R"("1.0")", R"("1.0.0.0")", R"("1..0")", "[]",
                           R"({"version_str": "1"})", R"({"version_str": 1})", "{}", "true"}) {
    bad("version", text);
  }
  for (const char* text : {"[]", R"(["a", 1])", "{}", R"({"input": "x"})"}) {
    good("supervised_keys", text);
  }
  for (const char* text : {"[1, 2, 3]", R"({"in": "x"})", R"("")"}) bad("supervised_keys", text);
  for (const char* text : {"[]", "{}", R"("")", "[{}]", R"([{"name": "a"}, {"name": "b"}])",
                           R"({"x": {"name": 1, "shard_lengths": 7}, "y": {"name": "1"}})"}) {
    good("splits", text);
  }
  for (const char* text :
       {"[7]", R"("x")", "[{}, {}]", R"([{"name": "a"}, {"name": "a"}])", R"([{"title": "a"}])",
        R"([{"name": []}])", R"({"x": {"name": 1}, "y": {"name": true}})", "true"}) {
    bad("splits", text);
  }
  good("post_processed", R"({"features": {"x": {"dtype": "date32", "_type": "Value"}}, "y": 1})");
  bad("post_processed", R"({"features": {"x": {"dtype": "zz", "_type": "Value"}}})");
  bad("post_processed", R"({"features": []})");
  bad("post_processed", "[]");
}

TEST_F(HfFiles, WhatReadersWouldReadInDifferentWaysIsRefused) {
  for (const std::string name : {"state.json", "dataset_info.json"}) {
    const std::string good = ReadFile(set_ + "/" + name);
    const std::string inside = good.substr(1);
    EXPECT_NE(FoundIn(name, "\xef\xbb\xbf" + good), "");
    EXPECT_NE(FoundIn(name, "{\"x\": 1, \"x\": 1, " + inside).find("\"x\" stands twice"),
              std::string::npos);
    for (const char* bad : {"NaN", "-Infinity", "\"\xff\"", "\"\\ud80\"", "'x'", "01"}) {
      EXPECT_NE(FoundIn(name, "{\"x\": " + std::string(bad) + ", " + inside), "") << bad;
    }
    EXPECT_NE(
        FoundIn(name, "{\"x\": " + std::string(2000, '[') + std::string(2000, ']') + ", " + inside),
        "");
    for (std::size_t keep = 0; keep < good.size() - 1; keep += 13) {
      EXPECT_NE(FoundIn(name, good.substr(0, keep)), "") << keep;
    }
  }
}

TEST_F(HfFiles, WithoutAManifestWhatHuggingFaceNeedsIsAskedFor) {
  DropManifest();
  EXPECT_EQ(Verify().damages, 0u);
  for (const char* key : {"_fingerprint", "_format_columns", "_format_kwargs", "_format_type",
                          "_output_all_columns", "_split"}) {
    EXPECT_EQ(FoundAfter("state.json", [&](Json& json) { json.erase(key); }),
              std::string(key) + " is gone");
  }
  const auto state = [&](auto change) { return FoundAfter("state.json", change); };
  EXPECT_NE(state([](Json& json) { json["_format_kwargs"] = nullptr; }), "");
  EXPECT_NE(state([](Json& json) { json["_format_columns"] = {"imago"}; }), "");
  EXPECT_NE(state([](Json& json) { json["_split"] = "tra-in"; }), "");
  EXPECT_EQ(state([](Json& json) { json["_split"] = "train[:10%]"; }), "");
  EXPECT_EQ(state([](Json& json) { json["_format_columns"] = {"image"}; }), "");
  EXPECT_EQ(state([](Json& json) { json["_format_type"] = "numpy"; }), "");
  EXPECT_EQ(state([](Json& json) { json["_split"] = nullptr; }), "");
}

TEST_F(HfFiles, WithoutAManifestTheFeaturesAreHeldToTheColumns) {
  DropManifest();
  const auto info = [&](auto change) { return FoundAfter("dataset_info.json", change); };
  EXPECT_EQ(info([](Json& json) { json["features"].erase("source"); }), "features.source is gone");
  EXPECT_EQ(info([](Json& json) { json["features"]["more"] = {{"_type", "Image"}}; }),
            "features.more is no column of the shards");
  EXPECT_EQ(info([](Json& json) { json["features"]["source"]["dtype"] = "int64"; }),
            "features.source is int64, and string in the shards");
  EXPECT_EQ(info([](Json& json) { json["features"]["source"] = 7; }),
            "features.source is 7, which is no feature");
  EXPECT_EQ(info([](Json& json) { json["features"]["source"] = {{"_type", "Imaqe"}}; }),
            "features.source._type is \"Imaqe\", which is no kind of feature");
  EXPECT_EQ(info([](Json& json) { json["features"] = nullptr; }), "");
  EXPECT_EQ(info([](Json& json) { json.erase("features"); }), "");
  EXPECT_EQ(info([](Json& json) { json.erase("license"); }), "");
}

TEST_F(HfFiles, WithoutAManifestFeaturesAreHeldToTheArrowTypesAtAnyDepth) {
  DropManifest();
  const auto with = [&](const char* column, const char* feature) {
    return FoundAfter("dataset_info.json",
                      [&](Json& json) { json["features"][column] = Json::parse(feature); });
  };
  EXPECT_EQ(with("source", R"({"dtype": "zz", "_type": "Value"})"),
            "features.source.dtype is \"zz\", which is no type's name");
  EXPECT_EQ(
      with("source", R"({"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"})"),
      "features.source is list<string>, and string in the shards");
  EXPECT_EQ(with("source", R"([{"dtype": "int8", "_type": "Value"}])"),
            "features.source is list<int8>, and string in the shards");
  EXPECT_NE(with("source", R"({"a": {"dtype": "timestamp[us]", "_type": "Value"}})"), "");
  EXPECT_EQ(with("source", R"([{"dtype": "timestamp[us]", "_type": "Value"}])"),
            "features.source is list<timestamp[us]>, and string in the shards");
  EXPECT_EQ(with("source", R"({"languages": ["b", "a"], "_type": "Translation"})"),
            "features.source is struct<a: string, b: string>, and string in the shards");
  EXPECT_NE(with("source", R"({"shape": [2, 3], "dtype": "int8", "_type": "Array2D"})"), "");
  EXPECT_NE(with("source", R"({"_type": "Audio"})"), "");
  EXPECT_EQ(with("source", R"({"dtype": "utf8", "_type": "Value"})"), "");
  EXPECT_EQ(with("source", R"({"feature": {"_type": "Image"}, "size": 3, "_type": "List"})"),
            "features.source.size is nothing that a List has");
  EXPECT_EQ(FoundAfter("state.json", [](Json& json) { json["_format_type"] = "bogus"; }),
            "_format_type is \"bogus\", which is no format");
  EXPECT_EQ(FoundAfter("state.json", [](Json& json) { json["_format_columns"] = "imago"; }),
            "_format_columns names \"imago\", which is no column");
}

TEST_F(HfFiles, ALoneSurrogateInAFreeTextIsOne) {
  std::string info = ReadFile(set_ + "/dataset_info.json");
  info.replace(info.find("\"description\": \"\""), 17,
               R"("description": "\ud83d \\\udc00 \ud83d\ude00")");
  EXPECT_EQ(FoundIn("dataset_info.json", info), "");
}

TEST(HfDict, SplitsThatAreNotListedAndListsThatAreNotSplitsAreDamage) {
  const TempFolder folder;
  const std::string set = folder / "set";
  for (const std::string split : {"train", "test"}) {
    const TempFolder other;
    std::filesystem::create_directories(set);
    std::filesystem::rename(PackSample(other, 20), set + "/" + split);
    std::string state = ReadFile(set + "/" + split + "/state.json");
    state.replace(state.find("\"train\""), 7, '"' + split + '"');
    WriteFile(set + "/" + split + "/state.json", state);
  }
  const std::string dict = set + "/dataset_dict.json";
  const auto found = [&](const std::string& text) {
    WriteFile(dict, text);
    const auto places = FindSplits(set, OnDamage::kKeep);
    if (!places) return places.error().message();
    std::string first;
    const auto reports = VerifySplits(*places);
    for (const VerifyReport& report : *reports) {
      if (first.empty() && report.damages > 0) first = report.first[0].ToString();
    }
    return first;
  };
  EXPECT_EQ(found(DatasetDictJson({"train", "test"})), "");
  EXPECT_EQ(found(DatasetDictJson({"train"})), dict + ": it does not list the split 'test'");
  EXPECT_NE(found(R"({"splits": ["train", 7]})"), "");
  EXPECT_NE(found(R"({"splits": ["train", "tesd"]})"), "");
  EXPECT_NE(found(R"({"splits": ["train", "test"], "splits": ["train", "test"]})"), "");
  EXPECT_NE(found("\xef\xbb\xbf" + DatasetDictJson({"train", "test"})), "");
  EXPECT_NE(found(R"({"split": ["train", "test"]})"), "");
  EXPECT_EQ(found(R"({"splits": []})"), dict + ": it does not list the split 'test'");
  std::filesystem::copy(set + "/test/state.json", set + "/state.json");
  std::filesystem::copy(set + "/test/dataset_info.json", set + "/dataset_info.json");
  EXPECT_NE(found(DatasetDictJson({"train", "test"})).find("instead of those listed"),
            std::string::npos);
}

TEST(HfDict, WhatIsFoundOfTheSetIsToldWhateverSplitIsNamed) {
  const TempFolder folder;
  const std::string set = folder / "set";
  const TempFolder other;
  std::filesystem::create_directories(set);
  std::filesystem::rename(PackSample(other, 20), set + "/train");
  std::filesystem::copy(set + "/train", set + "/test", std::filesystem::copy_options::recursive);
  std::filesystem::copy(set + "/train", set + "/more", std::filesystem::copy_options::recursive);
  WriteFile(set + "/dataset_dict.json", R"({"splits": ["train", "test"], "x": 1, "x": 1})");
  for (const std::string split : {"train", "test", "more"}) {
    auto places = SplitsNamed(set, split, *FindSplits(set, OnDamage::kKeep));
    ASSERT_TRUE(places && places->size() == 1);
    EXPECT_EQ(places->front().findings.size(), 2u) << "the key, and the split that is not listed";
    EXPECT_EQ(VerifySplit(places->front()).damages, 2u) << split;
  }
  EXPECT_EQ(SplitsNamed(set, "none", *FindSplits(set)).error().code(), Code::kNotFound);
}

TEST(HfDict, ADictWithoutSplitsIsNoDamage) {
  const TempFolder folder;
  WriteFile(folder / "set/dataset_dict.json", R"({"splits": []})");
  const auto places = FindSplits(folder / "set", OnDamage::kKeep);
  ASSERT_TRUE(places) << places.error().ToString();
  EXPECT_TRUE(VerifySplits(*places)->empty());
  EXPECT_EQ(Dataset::Open(folder / "set").error().code(), Code::kPrecondition);
  WriteFile(folder / "set/dataset_dict.json", R"({"splits": [], "x": 1, "x": 1})");
  EXPECT_EQ(FindSplits(folder / "set", OnDamage::kKeep).error().code(), Code::kDataLoss);
}

TEST(HfDict, TheNameOfASplitIsWords) {
  for (const char* good : {"train", "a.b_c", "all", "train[:10%]+test[5:]", "übung", "7"}) {
    EXPECT_TRUE(IsHfSplitName(good)) << good;
  }
  for (const char* bad :
       {"", "a-b", "a b", ".a", "a.", "a..b", "train+", "[:3]", "a/b", "a\xef\xbf\xbd"}) {
    EXPECT_FALSE(IsHfSplitName(bad)) << bad;
  }
}

}  // namespace
}  // namespace muster::data
