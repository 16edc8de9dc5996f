#include "spec/document_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::spec {
namespace {

std::size_t CountOf(const Value& value) {
  std::size_t count = 1;
  for (const Value& item : value.items) count += CountOf(item);
  for (const Member& member : value.members) count += CountOf(member.value);
  return count;
}

std::size_t DepthOf(const Value& value) {
  std::size_t depth = 0;
  for (const Value& item : value.items) depth = std::max(depth, DepthOf(item));
  for (const Member& member : value.members) depth = std::max(depth, DepthOf(member.value));
  return depth + 1;
}

}  // namespace

bool DocumentBuilder::Refuse(Place place, std::string_view message) {
  if (!error_) error_.emplace(Code::kInvalid, AtPlace(file_, place, message));
  return false;
}

bool DocumentBuilder::Count(std::size_t values, Place place) {
  values_ += values;
  if (values_ <= limits_.values) return true;
  return Refuse(place, fmt::format("more than {} values", limits_.values));
}

bool DocumentBuilder::key_expected() const {
  return !open_.empty() && open_.back()->kind == Value::Kind::kMap && !key_;
}

Value* DocumentBuilder::Attach(Value value) {
  started_ = true;
  if (open_.empty()) {
    root_ = std::move(value);
    return &root_;
  }
  Value& parent = *open_.back();
  if (parent.kind == Value::Kind::kList) return &parent.items.emplace_back(std::move(value));
  Member member = std::move(*key_);
  key_.reset();
  member.value = std::move(value);
  return &parent.members.emplace_back(std::move(member)).value;
}

bool DocumentBuilder::Scalar(Value::Kind kind, Place place, std::string text) {
  if (error_ || !Count(1, place)) return false;
  if (key_expected()) return Refuse(place, "a key is missing here");
  last_ = Attach({.kind = kind, .place = place, .text = std::move(text)});
  return true;
}

bool DocumentBuilder::Begin(Value::Kind kind, Place place) {
  if (error_ || !Count(1, place)) return false;
  if (key_expected()) return Refuse(place, "a key must be text, not a list or a map");
  if (open_.size() >= limits_.depth) {
    return Refuse(place, fmt::format("nested deeper than {} levels", limits_.depth));
  }
  open_.push_back(Attach({.kind = kind, .place = place}));
  return true;
}

bool DocumentBuilder::End() {
  if (error_ || open_.empty()) return false;
  last_ = open_.back();
  open_.pop_back();
  return true;
}

bool DocumentBuilder::Key(Place place, std::string text) {
  if (error_ || !Count(1, place)) return false;
  key_ = Member{.key = std::move(text), .place = place};
  return true;
}

bool DocumentBuilder::Copy(const Value& value, Place place) {
  if (error_ || !Count(CountOf(value), place)) return false;
  if (key_expected()) return Refuse(place, "an alias cannot be a key");
  if (open_.size() + DepthOf(value) > limits_.depth + 1) {
    return Refuse(place, fmt::format("nested deeper than {} levels", limits_.depth));
  }
  Value copy = value;
  copy.place = place;
  last_ = Attach(std::move(copy));
  return true;
}

}  // namespace muster::spec
