#include "cli/log_printer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string LogPrinter::Utc(const profile::LogPiece& piece) const {
  if (!piece.t_ns || !look_.to_wall) return {};
  return FormatUtc(WallTime(*look_.to_wall + std::chrono::nanoseconds(*piece.t_ns)));
}

void LogPrinter::Begin() {
  if (look_.json) text_ += "{\"run\":" + Dump(Json(look_.run)) + ",\"lines\":[\n";
}

void LogPrinter::AddJson(const profile::LogPiece& piece) {
  const std::string utc = Utc(piece);
  const Json line = {{"rank", piece.name.rank},
                     {"gen", piece.name.generation},
                     {"stream", piece.name.err ? "stderr" : "stdout"},
                     {"t_ns", piece.t_ns ? Json(*piece.t_ns) : Json()},
                     {"time", utc.empty() ? Json() : Json(utc)},
                     {"continued", !piece.begins},
                     {"text", std::string(profile::WithoutEnd(piece.text))}};
  // The comma comes with the next one, so that each is whole as soon as it is there.
  text_ += (any_ ? "," : "") + Dump(line) + "\n";
  any_ = true;
}

void LogPrinter::Add(const profile::LogPiece& piece) {
  if (look_.json) return AddJson(piece);
  const bool goes_on = !piece.begins && open_ == piece.name;
  if (open_ && !goes_on) text_ += '\n';
  if (!goes_on) {
    const char* mark = piece.begins ? "" : " …";
    if (look_.times) {
      const std::string utc = Utc(piece);
      text_ += (utc.empty() ? "-" : utc) + " ";
    }
    if (look_.prefix) {
      text_ += fmt::format("[{} {}{}] ", piece.name.rank, piece.name.generation, mark);
    }
  }
  // Progress bars end their lines with CR: behind a prefix each is a line of its own.
  const bool own_lines = look_.terminal || look_.prefix || look_.times;
  const std::string_view line = profile::WithoutEnd(piece.text);
  const bool ended = line.size() < piece.text.size();
  text_ += look_.terminal ? PlainText(line) : std::string(piece.text);
  if (ended && own_lines && (look_.terminal || !piece.text.ends_with('\n'))) text_ += '\n';
  open_ = ended ? std::nullopt : std::optional(piece.name);
}

void LogPrinter::End() {
  if (look_.json) text_ += "]}\n";
  if (!look_.json && open_ && (look_.prefix || look_.times || look_.terminal)) text_ += '\n';
}

}  // namespace muster::cli
