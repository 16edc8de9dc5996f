// The only file, beside yaml_words.cc, that knows yaml-cpp. Its parser runs in event mode, so that
// DocumentBuilder can stop it by an exception before a hostile file grows; yaml-cpp's own
// exceptions end here too.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
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

/// Whether the quoted text that begins here, behind anchor and tag, has no end.
bool IsOpenQuote(std::string_view text) {
  while (text.starts_with('&') || text.starts_with('!')) {
    text.remove_prefix(std::min(text.find_first_of(" \t\r\n"), text.size()));
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
  if (!text.starts_with('"') && !text.starts_with('\'')) return false;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const bool doubled = text[0] == '\'' && text.substr(i).starts_with("''");
    if ((text[0] == '"' && text[i] == '\\') || doubled) {
      ++i;
    } else if (text[i] == text[0]) {
      return false;
    }
  }
  return true;
}

class Events final : public YAML::EventHandler {
 public:
  Events(DocumentBuilder& builder, std::string_view source) : builder_(builder), source_(source) {}

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
    // yaml-cpp misses it where nothing or a newline stands at the end of the file.
    if (quoted && IsOpenQuote(source_.substr(std::min(Offset(mark), source_.size())))) {
      throw YAML::ParserException(mark, YAML::ErrorMsg::EOF_IN_SCALAR);
    }
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
  /// yaml-cpp counts bytes, and not those of a byte order mark.
  std::size_t Offset(const YAML::Mark& mark) const {
    const std::size_t skipped = source_.starts_with("\xEF\xBB\xBF") ? 3 : 0;
    return skipped + static_cast<std::size_t>(mark.pos);
  }
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
  std::string_view source_;
  std::vector<YAML::anchor_t> anchors_;  ///< of the open lists and maps
  std::map<YAML::anchor_t, Value> anchored_;
};

}  // namespace

Result<Value> ReadYaml(std::string_view text, std::string_view file, const DocumentLimits& limits) {
  DocumentBuilder builder(file, limits);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Events events(builder, text);
    parser.HandleNextDocument(events);
    DocumentBuilder rest(file, limits);
    Events more(rest, text);
    if (parser.HandleNextDocument(more) && rest.started()) {
      return Error(Code::kInvalid,
                   AtPlace(file, rest.Take().place, "a second document; one file holds one job"));
    }
  } catch (const Refused&) {
    if (builder.error()) return Error(*builder.error());
    return Error(Code::kInvalid, AtPlace(file, {1, 1}, "more than one document"));
  } catch (const YAML::Exception& error) {
    const Place place = PlaceOfFault(text, PlaceOf(error.mark));
    return Error(Code::kInvalid,
                 AtPlace(file, place, YamlWords(error.msg, text, place) + Excerpt(text, place)));
  } catch (const std::exception& error) {
    return Error(Code::kInvalid, AtPlace(file, {1, 1}, error.what()));
  }
  return builder.Take();
}

}  // namespace muster::spec
