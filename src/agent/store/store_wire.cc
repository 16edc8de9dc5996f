#include "agent/store/store_wire.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace muster::agent {
namespace {

constexpr std::uint32_t kMagic = 0x3C85F7CE;

/// Walks over bytes that may end anywhere. Once something is missing or wrong, all that follows is.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t Number(std::size_t size) {
    const std::string_view raw = Take(size);
    std::uint64_t value = 0;
    for (std::size_t i = raw.size(); i-- > 0;)
      value = value << 8 | static_cast<std::uint8_t>(raw[i]);
    return value;
  }

  std::string_view Bytes(std::string_view what, std::size_t most) {
    const std::uint64_t size = Number(8);
    if (size > most) Refuse(fmt::format("a {} of {} bytes; {} are the most", what, size, most));
    return Take(size);
  }
  std::string_view Key() { return Bytes("key", kMaxStoreKey); }
  std::string_view Value() { return Bytes("value", kMaxStoreValue); }

  std::uint64_t Count() {
    const std::uint64_t count = Number(8);
    if (count > kMaxStoreKeys) {
      Refuse(fmt::format("{} keys in one request; {} are the most", count, kMaxStoreKeys));
    }
    return whole() ? count : 0;
  }

  void Refuse(std::string why) {
    if (whole()) refused_ = std::move(why);
  }

  bool whole() const { return !short_ && refused_.empty(); }
  const std::string& refused() const { return refused_; }
  std::size_t at() const { return at_; }

 private:
  std::string_view Take(std::uint64_t size) {
    if (!whole()) return {};
    short_ = bytes_.size() - at_ < size;
    if (short_) return {};
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  bool short_ = false;
  std::string refused_;
};

/// What a request consists of. `request` null: only to see whether all of it is there, because a
/// long one comes in many pieces.
class Walk {
 public:
  Walk(Cursor& cursor, StoreRequest* request) : cursor_(cursor), request_(request) {}

  void Key() {
    const auto key = cursor_.Key();
    if (request_ != nullptr) request_->keys.emplace_back(key);
  }
  void Value() {
    const auto value = cursor_.Value();
    if (request_ != nullptr) request_->values.emplace_back(value);
  }
  void Number(std::size_t size) {
    const auto number = static_cast<std::int64_t>(cursor_.Number(size));
    if (request_ != nullptr) request_->number = number;
  }
  void Keys(bool with_values) {
    const std::uint64_t count = cursor_.Count();
    for (std::uint64_t i = 0; i < count && cursor_.whole(); ++i) {
      Key();
      if (with_values) Value();
    }
  }

  void Body(StoreOp op) {
    switch (op) {
      case StoreOp::kValidate:
        if (cursor_.Number(4) != kMagic) cursor_.Refuse("another magic number than TCPStore's");
        return;
      case StoreOp::kSet:
      case StoreOp::kAppend:
      case StoreOp::kQueuePush:
        Key();
        return Value();
      case StoreOp::kCompareSet:
        Key();
        Value();
        return Value();
      case StoreOp::kGet:
      case StoreOp::kDelete:
      case StoreOp::kQueuePop:
      case StoreOp::kQueueLength:
        return Key();
      case StoreOp::kAdd:
      case StoreOp::kBarrier:
        Key();
        return Number(8);
      case StoreOp::kCheck:
      case StoreOp::kWait:
      case StoreOp::kMultiGet:
        return Keys(false);
      case StoreOp::kMultiSet:
        return Keys(true);
      case StoreOp::kPing:
        return Number(4);
      case StoreOp::kNumKeys:
      case StoreOp::kCancelWait:
      case StoreOp::kListKeys:
        return;
    }
    cursor_.Refuse(fmt::format("an operation with number {}", static_cast<int>(op)));
  }

 private:
  Cursor& cursor_;
  StoreRequest* request_;
};

}  // namespace

Result<std::optional<StoreRequest>> StoreRequestReader::Next() {
  const std::string_view rest = std::string_view(buffer_).substr(used_);
  if (rest.empty()) {
    buffer_.clear();
    used_ = 0;
    return std::nullopt;
  }
  Cursor cursor(rest);
  const auto op = static_cast<StoreOp>(cursor.Number(1));
  if ((op == StoreOp::kValidate) == validated_) {
    cursor.Refuse(validated_ ? "a second greeting" : "no greeting");
  }
  Walk(cursor, nullptr).Body(op);
  if (!cursor.refused().empty()) return Error(Code::kInvalid, cursor.refused());
  if (!cursor.whole()) {
    buffer_.erase(0, std::exchange(used_, 0));
    return std::nullopt;
  }
  StoreRequest request{.op = op};
  Cursor again(rest.substr(1));
  Walk(again, &request).Body(op);
  used_ += cursor.at();
  validated_ = true;
  return request;
}

void PutStoreNumber(std::string& out, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i));
}

void PutStoreBytes(std::string& out, std::string_view value) {
  PutStoreNumber(out, value.size());
  out += value;
}

}  // namespace muster::agent
