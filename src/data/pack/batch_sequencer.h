#pragma once
// Brings batches that workers make in any order back into the order of their chunks, within a
// memory budget. A chunk may give several batches; the chunk whose turn it is never waits for the
// budget behind others, so the queue cannot lock up. Workers call Take/Put/Fail, one writer calls
// Next.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "data/pack/row_columns.h"

namespace muster::data {

/// A row that was left out, and why.
struct SkippedRow {
  std::string name;
  std::string reason;
};

struct RawBatch {
  std::unique_ptr<RowColumns> columns;
  RowColumns::Body body;
  std::vector<SkippedRow> skipped;
  bool last = false;  ///< of its chunk
};

class BatchSequencer {
 public:
  BatchSequencer(unsigned workers, std::size_t budget) : workers_(workers), budget_(budget) {}

  /// Columns to fill, used ones first.
  std::unique_ptr<RowColumns> Take();
  /// Waits until the batch may be held; false: stop working.
  bool Put(std::uint64_t chunk, RawBatch batch);
  /// A worker failed at `chunk`; the error of the lowest chunk is the one that Next gives.
  void Fail(std::uint64_t chunk, Error error);
  void WorkerDone();
  /// From the writer: nobody will call Next again.
  void Stop();
  /// From any thread: as if the workers were done, so that Next returns at once.
  void Cancel();

  /// The next batch in order; nullopt when all workers are done and all batches were given.
  Result<std::optional<RawBatch>> Next();
  void Recycle(std::unique_ptr<RowColumns> columns);

 private:
  bool MayHold(std::uint64_t chunk) const MUSTER_REQUIRES(mutex_);
  bool HasBatch(std::uint64_t chunk) const MUSTER_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar room_;
  CondVar arrived_;
  std::map<std::uint64_t, std::deque<RawBatch>> waiting_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Error> errors_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<RowColumns>> spare_ MUSTER_GUARDED_BY(mutex_);
  std::uint64_t head_ MUSTER_GUARDED_BY(mutex_) = 0;  ///< the chunk whose turn it is
  std::size_t held_ MUSTER_GUARDED_BY(mutex_) = 0;    ///< bytes waiting
  unsigned workers_ MUSTER_GUARDED_BY(mutex_);
  const std::size_t budget_;
  bool cancelled_ MUSTER_GUARDED_BY(mutex_) = false;
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::data
