// The only file, beside yaml_words.cc, that knows yaml-cpp. Its parser runs in event mode, so that
// DocumentBuilder can stop it by an exception before a hostile file grows; yaml-cpp's own
// exceptions end here too.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>
#include <utility>

#include "spec/document_builder.h"
#include "spec/document_readers.h"
#include "spec/yaml_words.h"

namespace muster::spec {
namespace {

/// Thrown out of a callback to stop the parser; never leaves this file.
struct Refused {};

Place PlaceOf(const YAML::Mark& mark) {
  return {static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1)};
}

class Events final : public YAML::EventHandler {
 public:
  explicit Events(DocumentBuilder& builder) : builder_(builder) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Scalar(Value::Kind::kNull, PlaceOf(mark), "", anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const Place place = PlaceOf(mark);
    const bool quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!quoted) RefuseTag(tag, place);
    Scalar(quoted ? Value::Kind::kText : Value::Kind::kPlain, place, text, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) {
      builder_.Refuse(PlaceOf(mark), "this alias is inside of what it names");
      throw Refused();
    }
    Must(builder_.Copy(found->second, PlaceOf(mark)));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Begin(Value::Kind::kList, PlaceOf(mark), tag, anchor);
  }
  void OnSequenceEnd() override { End(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Begin(Value::Kind::kMap, PlaceOf(mark), tag, anchor);
  }
  void OnMapEnd() override { End(); }

 private:
  static void Must(bool accepted) {
    if (!accepted) throw Refused();
  }
  void RefuseTag(const std::string& tag, Place place) {
    if (tag.empty() || tag == "?") return;
    builder_.Refuse(place, "the tag '" + tag + "' means nothing here; only !!str does");
    throw Refused();
  }
  void Scalar(Value::Kind kind, Place place, const std::string& text, YAML::anchor_t anchor) {
    if (builder_.key_expected()) {
      Must(anchor == 0 || builder_.Refuse(place, "a key cannot be an anchor"));
      Must(kind != Value::Kind::kNull || builder_.Refuse(place, "a key is missing here"));
      Must(builder_.Key(place, text));
      return;
    }
    Must(builder_.Scalar(kind, place, text));
    if (anchor != 0) anchored_.insert_or_assign(anchor, builder_.last());
  }
  void Begin(Value::Kind kind, Place place, const std::string& tag, YAML::anchor_t anchor) {
    RefuseTag(tag, place);
    Must(builder_.Begin(kind, place));
    anchors_.push_back(anchor);
  }
  void End() {
    Must(builder_.End());
    const YAML::anchor_t anchor = anchors_.back();
    anchors_.pop_back();
    if (anchor != 0) anchored_.insert_or_assign(anchor, builder_.last());
  }

  DocumentBuilder& builder_;
  std::vector<YAML::anchor_t> anchors_;  ///< of the open lists and maps
  std::map<YAML::anchor_t, Value> anchored_;
};

}  // namespace

Result<Value> ReadYaml(std::string_view text, std::string_view file, const DocumentLimits& limits) {
  DocumentBuilder builder(file, limits);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Events events(builder);
    parser.HandleNextDocument(events);
    DocumentBuilder rest(file, limits);
    Events more(rest);
    if (parser.HandleNextDocument(more) && rest.started()) {
      return Error(Code::kInvalid,
                   AtPlace(file, rest.Take().place, "a second document; one file holds one job"));
    }
  } catch (const Refused&) {
    if (builder.error()) return Error(*builder.error());
    return Error(Code::kInvalid, AtPlace(file, {1, 1}, "more than one document"));
  } catch (const YAML::Exception& error) {
    const Place place = PlaceOf(error.mark);
    return Error(Code::kInvalid,
                 AtPlace(file, place, YamlWords(error.msg, text, place) + Excerpt(text, place)));
  } catch (const std::exception& error) {
    return Error(Code::kInvalid, AtPlace(file, {1, 1}, error.what()));
  }
  return builder.Take();
}

}  // namespace muster::spec
