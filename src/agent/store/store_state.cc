#include "agent/store/store_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace muster::agent {
namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
const std::string kOk(1, '\0');
const std::string kNo(1, '\1');  // not ready; the wait is cancelled

/// As torch reads it: the number at the beginning, whatever follows it.
Result<std::int64_t> NumberIn(const std::string& key, const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || errno != 0) {
    return Error(Code::kInvalid, fmt::format("an addition to {}, which holds no number", key));
  }
  return number;
}

template <typename Whole>
std::string Number(Whole value) {
  std::string out;
  PutStoreNumber(out, static_cast<std::uint64_t>(value));
  return out;
}

std::string Bytes(std::string_view value) {
  std::string out;
  PutStoreBytes(out, value);
  return out;
}

}  // namespace

Result<std::vector<StoreReply>> StoreState::Apply(StoreClientId client,
                                                  const StoreRequest& request) {
  Replies replies;
  const auto answer = [&](std::string bytes) { replies.push_back({client, std::move(bytes)}); };
  switch (request.op) {
    case StoreOp::kValidate:
      break;
    case StoreOp::kSet:
      MUSTER_TRY(Set(request.keys[0], request.values[0], replies));
      break;
    case StoreOp::kCompareSet:
      MUSTER_TRY(CompareSet(client, request, replies));
      break;
    case StoreOp::kGet:
      answer(Bytes(Get(request.keys[0])));
      break;
    case StoreOp::kAdd:
      replies.push_back({client, {}});
      replies[0].bytes = Number(MUSTER_TRY(Add(request.keys[0], request.number, replies)));
      break;
    case StoreOp::kCheck:
      answer(std::all_of(request.keys.begin(), request.keys.end(),
                         [this](const std::string& key) { return Has(key); })
                 ? kOk
                 : kNo);
      break;
    case StoreOp::kWait:
      Wait(client, request.keys, replies);
      break;
    case StoreOp::kNumKeys:
      answer(Number(values_.size()));
      break;
    case StoreOp::kDelete:
      answer(Number(Delete(request.keys[0]) ? 1 : 0));
      break;
    case StoreOp::kAppend:
      MUSTER_TRY(Set(request.keys[0], Get(request.keys[0]) + request.values[0], replies));
      break;
    case StoreOp::kMultiGet:
      answer(MUSTER_TRY(MultiGet(request.keys)));
      break;
    case StoreOp::kMultiSet:
      MUSTER_TRY(MultiSet(request, replies));
      break;
    case StoreOp::kCancelWait:
      StopWaiting(client);
      answer(kNo);
      break;
    case StoreOp::kPing:
      answer(Number(request.number).substr(0, 4));
      break;
    case StoreOp::kQueuePush:
      MUSTER_TRY(Push(request, replies));
      break;
    case StoreOp::kQueuePop:
      Pop(client, request.keys[0], replies);
      break;
    case StoreOp::kQueueLength:
      answer(Number(queues_.contains(request.keys[0]) ? queues_[request.keys[0]].size() : 0));
      break;
    case StoreOp::kListKeys:
      answer(ListKeys());
      break;
    case StoreOp::kBarrier:
      MUSTER_TRY(Barrier(client, request, replies));
      break;
  }
  return replies;
}

void StoreState::Forget(StoreClientId client) { StopWaiting(client); }

Status StoreState::Reserve(std::size_t more) const {
  if (more <= kMaxStoreBytes - bytes_) return Ok();
  return Error(Code::kExhausted,
               fmt::format("the store would hold more than {} MiB", kMaxStoreBytes >> 20));
}

Status StoreState::Set(const std::string& key, std::string value, Replies& replies) {
  const auto found = values_.find(key);
  const std::size_t before = found != values_.end() ? key.size() + found->second.size() : 0;
  const std::size_t after = key.size() + value.size();
  if (after > before) MUSTER_TRY(Reserve(after - before));
  bytes_ = bytes_ - before + after;
  values_[key] = std::move(value);
  Wake(key, kAll, replies);
  return Ok();
}

Status StoreState::MultiSet(const StoreRequest& request, Replies& replies) {
  std::size_t more = 0;
  for (const std::string& key : request.keys) more += key.size();
  for (const std::string& value : request.values) more += value.size();
  MUSTER_TRY(Reserve(more));
  for (std::size_t i = 0; i < request.keys.size(); ++i) {
    MUSTER_TRY(Set(request.keys[i], request.values[i], replies));
  }
  return Ok();
}

/// A small request may ask for a big value many times.
Result<std::string> StoreState::MultiGet(const std::vector<std::string>& keys) const {
  std::string all;
  for (const std::string& key : keys) {
    const std::string& value = Get(key);
    if (value.size() > kMaxStoreBytes - all.size()) {
      return Error(Code::kExhausted, "an answer of more bytes than the store may hold");
    }
    PutStoreBytes(all, value);
  }
  return all;
}

bool StoreState::Delete(const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  bytes_ -= found->first.size() + found->second.size();
  values_.erase(found);
  return true;
}

std::string StoreState::ListKeys() const {
  std::string list = Number(values_.size());
  for (const auto& [key, value] : values_) PutStoreBytes(list, key);
  return list;
}

/// Answers with what the key holds afterwards. For a key that is not there torch answers with the
/// expected value, and so do we.
Status StoreState::CompareSet(StoreClientId client, const StoreRequest& request, Replies& replies) {
  const std::string& key = request.keys[0];
  const std::string& expected = request.values[0];
  const bool there = values_.contains(key);
  Replies woken;
  if (there ? values_[key] == expected : expected.empty()) {
    MUSTER_TRY(Set(key, request.values[1], woken));
  }
  replies.push_back({client, Bytes(values_.contains(key) ? values_[key] : expected)});
  for (StoreReply& reply : woken) replies.push_back(std::move(reply));
  return Ok();
}

Result<std::int64_t> StoreState::Add(const std::string& key, std::int64_t by, Replies& replies) {
  std::int64_t sum = by;
  if (values_.contains(key)) {
    // Beyond 64 bits it wraps.
    sum = static_cast<std::int64_t>(
        static_cast<std::uint64_t>(MUSTER_TRY(NumberIn(key, values_[key]))) +
        static_cast<std::uint64_t>(by));
  }
  MUSTER_TRY(Set(key, std::to_string(sum), replies));
  return sum;
}

/// A counter of arrivals: who brings it to the size of the world opens the barrier for good.
Status StoreState::Barrier(StoreClientId client, const StoreRequest& request, Replies& replies) {
  const std::string& key = request.keys[0];
  StopWaiting(client);
  Replies woken;
  const std::int64_t arrived = MUSTER_TRY(Add(key, 1, woken));
  if (arrived < request.number) {
    barriers_[key].push_back(client);
    lacking_[client].barrier = key;
    return Ok();
  }
  replies.push_back({client, kOk});
  const auto inside = barriers_.find(key);
  if (inside == barriers_.end()) return Ok();
  for (const StoreClientId other : inside->second) {
    replies.push_back({other, kOk});
    lacking_.erase(other);
  }
  barriers_.erase(inside);
  return Ok();
}

Status StoreState::Push(const StoreRequest& request, Replies& replies) {
  const std::size_t more = request.keys[0].size() + request.values[0].size();
  MUSTER_TRY(Reserve(more));
  bytes_ += more;
  queues_[request.keys[0]].push_back(request.values[0]);
  // Who is woken takes it; a second one would find nothing.
  Wake(request.keys[0], 1, replies);
  return Ok();
}

void StoreState::Pop(StoreClientId client, const std::string& key, Replies& replies) {
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) {
    replies.push_back({client, Number(0)});
    return;
  }
  const std::string value = std::move(queue->second.front());
  queue->second.pop_front();
  if (queue->second.empty()) queues_.erase(queue);
  bytes_ -= key.size() + value.size();
  std::string bytes = Number(1);
  PutStoreBytes(bytes, value);
  replies.push_back({client, std::move(bytes)});
}

void StoreState::Wait(StoreClientId client, const std::vector<std::string>& keys,
                      Replies& replies) {
  StopWaiting(client);
  Lacking lacking;
  for (const std::string& key : keys) {
    if (!Has(key)) lacking.keys.insert(key);
  }
  if (lacking.keys.empty()) {
    replies.push_back({client, kOk});
    return;
  }
  for (const std::string& key : lacking.keys) waiting_[key].push_back(client);
  lacking_[client] = std::move(lacking);
}

bool StoreState::Has(const std::string& key) const {
  return values_.contains(key) || queues_.contains(key);
}

const std::string& StoreState::Get(const std::string& key) const {
  static const std::string kMissing;
  const auto found = values_.find(key);
  return found != values_.end() ? found->second : kMissing;
}

void StoreState::Wake(const std::string& key, std::size_t most, Replies& replies) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  std::deque<StoreClientId>& clients = found->second;
  for (; !clients.empty() && most > 0; --most) {
    const StoreClientId client = clients.front();
    clients.pop_front();
    Lacking& lacking = lacking_[client];
    lacking.keys.erase(key);
    if (!lacking.keys.empty()) continue;
    lacking_.erase(client);
    replies.push_back({client, kOk});
  }
  if (clients.empty()) waiting_.erase(found);
}

void StoreState::StopWaiting(StoreClientId client) {
  const auto found = lacking_.find(client);
  if (found == lacking_.end()) return;
  const auto leave = [client](auto& places, const std::string& key) {
    const auto place = places.find(key);
    if (place == places.end()) return;
    std::erase(place->second, client);
    if (place->second.empty()) places.erase(place);
  };
  for (const std::string& key : found->second.keys) leave(waiting_, key);
  if (!found->second.barrier.empty()) leave(barriers_, found->second.barrier);
  lacking_.erase(found);
}

}  // namespace muster::agent
