#include <fmt/format.h>

#include <algorithm>

#include "spec/document.h"

namespace muster::spec {
namespace {

constexpr std::size_t kFlowWidth = 72;

/// A string literal that both YAML and JSON read back as `text`.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_./$-+=%").find(c) != std::string_view::npos;
}

/// "90m", "4GiB": begins like a number, but cannot be one ("0x1B" could).
bool IsQuantity(std::string_view text) {
  return text.size() > 1 && text[0] >= '0' && text[0] <= '9' &&
         std::string_view("xXoO").find(text[1]) == std::string_view::npos &&
         std::string_view("smhdB").find(text.back()) != std::string_view::npos;
}

/// Whether YAML reads the bare word back as a string and a person sees at once that it is one.
bool SafeBare(std::string_view text) {
  if (text.empty() ||
      !std::all_of(text.begin(), text.end(), [](char c) { return IsWordByte(c) || c == ':'; })) {
    return false;
  }
  const char first = text.front();
  if (IsQuantity(text)) return true;
  const bool starts_word = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') ||
                           first == '/' || first == '$' || first == '_';
  const bool option =
      text.size() > 2 && text.starts_with("--") && IsWordByte(text[2]) && text[2] != '-';
  if ((!starts_word && !option) || text.back() == ':') return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  constexpr std::string_view kReserved[] = {"null", "true", "false", "yes", "no",
                                            "on",   "off",  "y",     "n"};
  return std::find(std::begin(kReserved), std::end(kReserved), lower) == std::end(kReserved);
}

std::string YamlScalar(const Value& value) {
  if (value.kind == Value::Kind::kNull) return "null";
  if (value.kind == Value::Kind::kPlain) return value.text;
  return SafeBare(value.text) ? value.text : Quoted(value.text);
}

bool IsLeaf(const Value& value) {
  return value.kind != Value::Kind::kList && value.kind != Value::Kind::kMap;
}

/// "[a, b]" when that is short and flat enough to read, else nothing.
std::string FlowList(const Value& value) {
  std::string out = "[";
  for (const Value& item : value.items) {
    if (!IsLeaf(item)) return "";
    if (out.size() > 1) out += ", ";
    out += YamlScalar(item);
    if (out.size() > kFlowWidth) return "";
  }
  return out + "]";
}

/// What stands behind "key:" on its line, or nothing when the value takes lines of its own.
std::string OnOneLine(const Value& value) {
  if (IsLeaf(value)) return YamlScalar(value);
  if (value.kind == Value::Kind::kMap) return value.members.empty() ? "{}" : "";
  return FlowList(value);
}

void AppendYaml(const Value& value, std::size_t indent, std::string& out);

void AppendMembers(const Value& map, std::size_t indent, bool first_inline, std::string& out) {
  for (const Member& member : map.members) {
    if (!first_inline) out.append(indent, ' ');
    first_inline = false;
    out += SafeBare(member.key) ? member.key : Quoted(member.key);
    out += ':';
    const std::string line = OnOneLine(member.value);
    if (!line.empty()) out += ' ' + line;
    if (!member.comment.empty()) out += "  # " + member.comment;
    out += '\n';
    if (line.empty()) AppendYaml(member.value, indent + 2, out);
  }
}

void AppendYaml(const Value& value, std::size_t indent, std::string& out) {
  if (value.kind == Value::Kind::kMap) return AppendMembers(value, indent, false, out);
  for (const Value& item : value.items) {
    out.append(indent, ' ');
    out += "- ";
    const std::string line = OnOneLine(item);
    if (!line.empty()) {
      out += line + '\n';
    } else if (item.kind == Value::Kind::kMap) {
      AppendMembers(item, indent + 2, true, out);
    } else {
      out += '\n';
      AppendYaml(item, indent + 2, out);
    }
  }
}

void AppendJson(const Value& value, std::size_t indent, std::string& out) {
  if (value.kind == Value::Kind::kNull) {
    out += "null";
  } else if (value.kind == Value::Kind::kPlain) {
    out += value.text;
  } else if (value.kind == Value::Kind::kText) {
    out += Quoted(value.text);
  } else {
    const bool map = value.kind == Value::Kind::kMap;
    const std::size_t count = map ? value.members.size() : value.items.size();
    out += map ? '{' : '[';
    for (std::size_t i = 0; i < count; ++i) {
      out += i == 0 ? "\n" : ",\n";
      out.append(indent + 2, ' ');
      if (map) out += Quoted(value.members[i].key) + ": ";
      AppendJson(map ? value.members[i].value : value.items[i], indent + 2, out);
    }
    if (count > 0) {
      out += '\n';
      out.append(indent, ' ');
    }
    out += map ? '}' : ']';
  }
}

}  // namespace

std::string PrintYaml(const Value& document) {
  std::string out;
  const std::string line = OnOneLine(document);
  if (!line.empty()) return line + '\n';
  AppendYaml(document, 0, out);
  return out;
}

std::string PrintJson(const Value& document) {
  std::string out;
  AppendJson(document, 0, out);
  return out + '\n';
}

}  // namespace muster::spec
