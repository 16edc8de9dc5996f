#include "data/pack/packer.h"

#include <fmt/format.h>

#include "base/thread.h"
#include "data/layout/hf_json.h"
#include "data/pack/output_folder.h"
#include "data/pack/replaceable.h"
#include "data/pack/split_writer.h"

namespace muster::data {
namespace {

constexpr std::size_t kMostReported = 100;

Error Stopped() { return Error(Code::kCancelled, "the pack was stopped, and nothing was changed"); }

/// One worker: claims chunks and turns them into batches until the end or a bad row.
class Worker {
 public:
  Worker(RowSource& source, BatchSequencer& batches, OnError on_error)
      : source_(source), batches_(batches), reader_(source.NewReader()), on_error_(on_error) {}

  void Run() {
    Chunk chunk;
    bool more = true;
    while (more) {
      const Result<bool> claimed = source_.Claim(chunk);
      if (!claimed) batches_.Fail(chunk.number, claimed.error());
      more = claimed.value_or(false) && RunChunk(chunk);
    }
    batches_.WorkerDone();
  }

 private:
  /// False: stop.
  bool RunChunk(const Chunk& chunk) {
    RawBatch batch{.columns = batches_.Take()};
    for (std::uint32_t index = 0; index < chunk.rows; ++index) {
      if (batch.columns->Full()) {
        if (!Emit(chunk, std::move(batch))) return false;
        batch = RawBatch{.columns = batches_.Take()};
      }
      const Status read = reader_->Read(chunk, index, *batch.columns);
      if (read) continue;
      std::string name = reader_->NameOf(chunk, index);
      if (on_error_ == OnError::kStop) {
        const std::string& hint = read.error().hint();
        batches_.Fail(chunk.number,
                      Error(OfContent(read).error().code(), name + " " + read.error().message(),
                            (hint.empty() ? "repair or remove it" : hint) +
                                ", or leave it out with --on-error skip"));
        return false;
      }
      batch.skipped.push_back({std::move(name), read.error().message()});
    }
    batch.last = true;
    return Emit(chunk, std::move(batch));
  }

  bool Emit(const Chunk& chunk, RawBatch batch) {
    batch.body = batch.columns->Finish();
    return batches_.Put(chunk.number, std::move(batch));
  }

  RowSource& source_;
  BatchSequencer& batches_;
  std::unique_ptr<RowReader> reader_;
  const OnError on_error_;
};

/// The workers of one split; stopped and joined on the way out, whatever happened.
class Crew {
 public:
  explicit Crew(BatchSequencer& batches) : batches_(batches) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() { batches_.Stop(); }

  Status Start(RowSource& source, const PackOptions& options) {
    threads_ = MUSTER_TRY(StartCrew(
        {.name = "muster-pack",
         .threads = options.threads,
         .body = [&source, &batches = batches_, on_error = options.on_error](
                     std::size_t, const auto&) { Worker(source, batches, on_error).Run(); },
         .stop = [&batches = batches_] { batches.Stop(); }}));
    return Ok();
  }

 private:
  BatchSequencer& batches_;
  std::vector<std::jthread> threads_;
};

class PackRun {
 public:
  PackRun(FileSystem& files, PackInput& input, const PackOptions& options)
      : files_(files), input_(input), options_(options) {
    for (const auto& split : input.splits) progress_.all_rows += split->rows();
  }

  Result<PackReport> Run(const std::string& out) {
    MUSTER_TRY(CheckApart(input_.path, out));
    const auto folder = MUSTER_TRY(OutputFolder::Begin(
        files_, out, {.replace = options_.replace, .durable = options_.durable}));
    const bool dict = input_.splits.size() > 1;
    std::vector<std::string> names;
    for (const auto& split : input_.splits) {
      std::string path = folder->path();
      if (dict) {
        path += "/" + split->split();
        MUSTER_TRY(files_.MakeDirectory(path, 0755));
      }
      report_.splits.push_back(MUSTER_TRY(PackSplit(*split, path)));
      names.push_back(split->split());
      if (options_.durable) MUSTER_TRY(files_.SyncDirectory(path));
    }
    if (dict) MUSTER_TRY(WriteDict(folder->path(), names));
    if (options_.stop.stop_requested()) return Stopped();
    report_.left_behind = MUSTER_TRY(folder->Commit());
    report_.image_bytes = progress_.image_bytes;
    return std::move(report_);
  }

 private:
  Result<PackedSplit> PackSplit(RowSource& source, const std::string& path) {
    SplitWriter writer(files_, path,
                       {.split = source.split(),
                        .label_names = input_.label_names,
                        .shard_bytes = static_cast<std::uint64_t>(options_.shard_size.count),
                        .durable = options_.durable});
    BatchSequencer batches(options_.threads, static_cast<std::size_t>(options_.memory.count));
    Crew crew(batches);
    MUSTER_TRY(Within("pack", crew.Start(source, options_)));
    const std::stop_callback on_stop(options_.stop, [&batches] { batches.Cancel(); });
    for (;;) {
      auto batch = MUSTER_TRY(batches.Next());
      if (options_.stop.stop_requested()) return Stopped();
      if (!batch) break;
      MUSTER_TRY(writer.Append(batch->body));
      Note(*batch);
      batches.Recycle(std::move(batch->columns));
    }
    PackedSplit packed = MUSTER_TRY(writer.Finish());
    report_.rows += packed.rows;
    return packed;
  }

  void Note(RawBatch& batch) {
    progress_.rows += static_cast<std::uint64_t>(batch.body.layout.rows) + batch.skipped.size();
    progress_.image_bytes += batch.body.images.size();
    report_.census.Add(*batch.columns);
    report_.skipped += batch.skipped.size();
    for (SkippedRow& row : batch.skipped) {
      if (report_.first_skipped.size() < kMostReported) {
        report_.first_skipped.push_back(std::move(row));
      }
    }
    if (options_.on_progress) options_.on_progress(progress_);
  }

  Status WriteDict(const std::string& folder, const std::vector<std::string>& names) {
    return PutFile(files_, folder + "/dataset_dict.json", AsBytes(DatasetDictJson(names)),
                   options_.durable);
  }

  FileSystem& files_;
  PackInput& input_;
  const PackOptions& options_;
  PackProgress progress_;
  PackReport report_;
};

}  // namespace

Result<PackReport> Pack(FileSystem& files, PackInput& input, const std::string& out,
                        const PackOptions& options) {
  if (options.threads == 0) return Error(Code::kInvalid, "0 threads cannot pack anything");
  if (options.shard_size.count <= 0) return Error(Code::kInvalid, "shards of 0 bytes");
  return PackRun(files, input, options).Run(out);
}

}  // namespace muster::data
