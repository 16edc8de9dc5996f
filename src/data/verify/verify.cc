#include "data/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "base/worker_pool.h"
#include "data/verify/hf_files.h"
#include "data/verify/shard_verifier.h"

namespace muster::data {
namespace {

constexpr std::size_t kMostListed = 100;

/// Whether the error says something about the bytes, and not only that they cannot be seen here.
bool IsDamage(const Error& error) {
  switch (error.code()) {
    case Code::kInvalid:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kConflict:
    case Code::kDataLoss:
    case Code::kBug:
      return true;
    case Code::kPrecondition:
    case Code::kUnauthenticated:
    case Code::kDenied:
    case Code::kExhausted:
    case Code::kUnavailable:
    case Code::kDeadline:
    case Code::kCancelled:
      return false;
  }
  return true;
}

/// Adds up what the threads read.
class Progress {
 public:
  Progress(std::uint64_t all, const VerifyOptions& options) : all_(all), options_(options) {}

  void Add(std::uint64_t bytes) {
    if (!options_.on_progress) return;
    const MutexLock lock(mutex_);
    done_ += bytes;
    options_.on_progress(std::min(done_, all_), all_);
  }

 private:
  const std::uint64_t all_;
  const VerifyOptions& options_;
  Mutex mutex_;
  std::uint64_t done_ MUSTER_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::string Damage::ToString() const {
  std::string text = file;
  if (batch >= 0) text += fmt::format(", batch {}", batch);
  if (row >= 0) text += fmt::format(", row {}", row);
  if (text == file && what.find(file) != std::string::npos) return what;
  return text + ": " + what;
}

void VerifyReport::Add(Damage damage) {
  ++damages;
  if (first.size() < kMostListed) first.push_back(std::move(damage));
}

void VerifyReport::AddError(const std::string& file, std::int64_t batch, const Error& error) {
  if (IsDamage(error)) return Add({file, batch, -1, error.message()});
  if (unread.size() >= kMostListed) return;
  const bool named = error.message().find(file) != std::string::npos;
  unread.push_back(named ? error : Error(error).Within(file));
}

namespace {

/// A split, and what was found in each of its shards.
struct Opened {
  std::unique_ptr<SplitFolder> split;
  VerifyReport report;
  std::vector<VerifyReport> shards;
};

/// Class names are of whole numbers in a column that is there.
Status CheckLabelColumn(const SplitFolder& split) {
  const Features& features = split.features();
  if (!split.knows_schema() || features.label.empty() || features.label_names.empty()) return Ok();
  const int column = split.schema().IndexOf(features.label);
  if (column < 0) {
    return Error(Code::kDataLoss, fmt::format("there is no label column '{}'", features.label));
  }
  if (split.schema().fields[static_cast<std::size_t>(column)].type == arrow::TypeId::kInt) {
    return Ok();
  }
  return Error(Code::kDataLoss,
               fmt::format("the label column '{}' holds no whole numbers", features.label));
}

Opened Open(const SplitPlace& place) {
  Opened opened{.split = nullptr, .report = {.split = place.name}, .shards = {}};
  for (const SetFinding& finding : place.findings) {
    opened.report.AddError(finding.file, -1, finding.error);
  }
  auto split = SplitFolder::Open(place, OnDamage::kKeep);
  if (!split) {
    opened.report.AddError(place.folder, -1, split.error());
    return opened;
  }
  opened.split = *std::move(split);
  opened.report.opened = true;
  opened.report.id = opened.split->id();
  opened.report.has_checksums = opened.split->has_manifest();
  opened.report.lost_checksums = opened.split->lost_manifest();
  opened.shards.resize(opened.split->shards().size());
  for (const SetFinding& finding : opened.split->Findings()) {
    opened.report.AddError(finding.file, -1, finding.error);
  }
  CheckHfFiles(*opened.split, opened.report);
  if (const Status labels = CheckLabelColumn(*opened.split); !labels) {
    opened.report.AddError(place.folder, -1, labels.error());
  }
  return opened;
}

/// The shards' findings in their order.
VerifyReport Sum(Opened& opened) {
  VerifyReport& sum = opened.report;
  for (VerifyReport& shard : opened.shards) {
    sum.shards += shard.shards;
    sum.batches += shard.batches;
    sum.rows += shard.rows;
    sum.bytes += shard.bytes;
    sum.recorded.batches += shard.recorded.batches;
    sum.recorded.rows += shard.recorded.rows;
    sum.recorded.bytes += shard.recorded.bytes;
    sum.damages += shard.damages;
    sum.unlabelled += shard.unlabelled;
    sum.without_image += shard.without_image;
    for (Error& error : shard.unread) {
      if (sum.unread.size() < kMostListed) sum.unread.push_back(std::move(error));
    }
    for (Damage& damage : shard.first) {
      if (sum.first.size() < kMostListed) sum.first.push_back(std::move(damage));
    }
  }
  return std::move(sum);
}

Status VerifyAll(std::vector<Opened>& opened, const VerifyOptions& options, Progress& progress) {
  std::unique_ptr<WorkerPool> pool;
  if (options.threads > 1) {
    pool = MUSTER_TRY(
        Within("verify", WorkerPool::Start({.name = "muster-verify", .threads = options.threads})));
  }
  for (Opened& set : opened) {
    for (std::size_t shard = 0; shard < set.shards.size(); ++shard) {
      const auto look = [&set, &progress, shard](const std::stop_token&) {
        ShardVerifier(*set.split, shard, set.shards[shard], [&progress](std::uint64_t bytes) {
          progress.Add(bytes);
        }).Run();
      };
      if (pool == nullptr) {
        look({});
      } else {
        MUSTER_TRY(pool->Submit(look));
      }
    }
  }
  if (pool != nullptr) pool->Finish();
  return Ok();
}

}  // namespace

Result<std::vector<VerifyReport>> VerifySplits(const std::vector<SplitPlace>& places,
                                               const VerifyOptions& options) {
  std::vector<Opened> opened;
  std::uint64_t all = 0;
  for (const SplitPlace& place : places) {
    opened.push_back(Open(place));
    if (opened.back().split == nullptr) continue;
    for (const ShardEntry& shard : opened.back().split->shards()) all += shard.bytes;
  }
  Progress progress(all, options);
  MUSTER_TRY(VerifyAll(opened, options, progress));
  std::vector<VerifyReport> reports;
  for (Opened& set : opened) reports.push_back(Sum(set));
  return reports;
}

VerifyReport VerifySplit(const SplitPlace& place) {
  // One thread is the caller's, so nothing can fail to start.
  return std::move(VerifySplits({place})->front());
}

}  // namespace muster::data
