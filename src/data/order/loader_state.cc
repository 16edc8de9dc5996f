#include "data/order/loader_state.h"

#include <fmt/format.h>

#include <charconv>

namespace muster::data {
namespace {

constexpr std::string_view kMagic = "loader/1";
constexpr std::size_t kMaxText = 200;

Error Malformed(std::string_view field) {
  return Error(Code::kInvalid, fmt::format("the loader state's '{}' is malformed", field));
}

/// Takes " name=value" off the front of `rest`.
Result<std::string_view> TakeField(std::string_view& rest, std::string_view name) {
  const std::string prefix = fmt::format(" {}=", name);
  if (!rest.starts_with(prefix)) return Malformed(name);
  rest.remove_prefix(prefix.size());
  const std::string_view value = rest.substr(0, rest.find(' '));
  rest.remove_prefix(value.size());
  return value;
}

template <typename T>
Status ReadNumber(std::string_view text, std::string_view name, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return Malformed(name);
  return Ok();
}

template <typename T>
Status TakeNumber(std::string_view& rest, std::string_view name, T& value) {
  return ReadNumber(MUSTER_TRY(TakeField(rest, name)), name, value);
}

/// "1:window:16".
Status ReadOrder(std::string_view text, LoaderState& state) {
  const auto first = text.find(':');
  const auto second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) return Malformed("order");
  MUSTER_TRY(ReadNumber(text.substr(0, first), "order", state.order_version));
  if (state.order_version != kOrderVersion) {
    return Error(Code::kPrecondition,
                 fmt::format("the loader state has order version {}, this program has {}",
                             state.order_version, kOrderVersion),
                 "continue with the version of Muster that wrote it");
  }
  state.mode = MUSTER_TRY(ParseOrderMode(text.substr(first + 1, second - first - 1)));
  MUSTER_TRY(ReadNumber(text.substr(second + 1), "order", state.window));
  return state.window == 0 ? Status(Malformed("order")) : Ok();
}

}  // namespace

std::string LoaderState::ToText() const {
  return fmt::format("{} dataset={} order={}:{}:{} seed={} epoch={} samples={} batch={} context={}",
                     kMagic, dataset.Hex(), order_version, NameOf(mode), window, seed, epoch,
                     samples, batch, context);
}

Result<LoaderState> LoaderState::Parse(std::string_view text) {
  if (text.size() > kMaxText || !text.starts_with(kMagic)) return Malformed(kMagic);
  text.remove_prefix(kMagic.size());
  LoaderState state;
  state.dataset = MUSTER_TRY(DatasetId::Parse(MUSTER_TRY(TakeField(text, "dataset"))));
  MUSTER_TRY(ReadOrder(MUSTER_TRY(TakeField(text, "order")), state));
  MUSTER_TRY(TakeNumber(text, "seed", state.seed));
  MUSTER_TRY(TakeNumber(text, "epoch", state.epoch));
  MUSTER_TRY(TakeNumber(text, "samples", state.samples));
  MUSTER_TRY(TakeNumber(text, "batch", state.batch));
  MUSTER_TRY(TakeNumber(text, "context", state.context));
  if (!text.empty()) return Malformed("context");
  return state;
}

}  // namespace muster::data
