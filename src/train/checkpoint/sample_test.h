#pragma once
// For the tests of checkpoints: a small model, and ranks as threads that agree with each other.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/file_system.h"
#include "base/rng.h"
#include "train/checkpoint/open.h"
#include "train/checkpoint/save.h"

namespace muster::checkpoint {

/// An own folder, gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = ::testing::TempDir() + "muster-checkpoint-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Agreement between threads.
class ThreadAgreement final : public Agreement {
 public:
  explicit ThreadAgreement(std::uint32_t world) : meeting_(world, Close{*this}) {}
  Result<bool> AllOk(bool ok) override {
    if (!ok) failed_ = true;
    meeting_.arrive_and_wait();
    return all_ok_;  // overwritten only when everybody has come again
  }

 private:
  struct Close {
    ThreadAgreement& agreement;
    void operator()() noexcept { agreement.all_ok_ = !agreement.failed_.exchange(false); }
  };
  std::atomic<bool> failed_{false};
  bool all_ok_ = true;
  std::barrier<Close> meeting_;
};

/// Three tensors with padding between them, in two groups of different dtypes.
inline FlatIndex SampleIndex(std::uint64_t padding) {
  FlatIndex index;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape) {
    std::uint64_t length = 1;
    for (const std::uint64_t extent : shape) length *= extent;
    index.entries.push_back(
        {.name = name, .shape = std::move(shape), .offset = index.length, .length = length});
    index.length += (length + padding - 1) / padding * padding;
  };
  add("embed.weight", {50, 7});
  add("scale", {});
  add("block.0.weight", {300, 11});
  add("empty", {0, 4});
  index.groups = {{"param", DType::kF32}, {"exp_avg", DType::kF64}};
  return index;
}

/// The value of an element depends on its tensor and place in it only, not on the layout.
inline double ValueAt(std::uint64_t seed, const std::string& group, const std::string& name,
                      std::uint64_t i) {
  return static_cast<double>(Mix(seed, std::hash<std::string>{}(group + name), i) >> 40);
}

/// The whole flat space of a group, as bytes.
inline std::vector<std::byte> FlatOf(const FlatIndex& index, const Group& group,
                                     std::uint64_t seed) {
  std::vector<std::byte> bytes(index.length * SizeOf(group.dtype));
  for (const IndexEntry& entry : index.entries) {
    for (std::uint64_t i = 0; i < entry.length; ++i) {
      const double value = ValueAt(seed, group.name, entry.name, i);
      const auto single = static_cast<float>(value);
      std::byte* to = bytes.data() + (entry.offset + i) * SizeOf(group.dtype);
      if (group.dtype == DType::kF32) std::memcpy(to, &single, 4);
      if (group.dtype == DType::kF64) std::memcpy(to, &value, 8);
    }
  }
  return bytes;
}

/// One state of the sample model and how ranks cut it.
class Sample {
 public:
  Sample(std::uint64_t seed, std::uint64_t padding) : index_(SampleIndex(padding)) {
    for (const Group& group : index_.groups) flats_.push_back(FlatOf(index_, group, seed));
  }

  SaveRequest Request(const std::string& folder, std::uint64_t step, Rank rank,
                      std::uint32_t world) const {
    SaveRequest request{.folder = folder, .rank = rank};
    request.manifest = {.step = step,
                        .world = world,
                        .model = "sample",
                        .config_json = R"({"width": 64})",
                        .index = index_,
                        .loader_state = R"({"seed": 1, "samples": 640})",
                        .random_key = 0xffff'ffff'ffff'fff7,
                        .optimizer_step = step,
                        .canonical = {.enabled = true, .virtual_shards = 8},
                        .environment = {{"torch", "2.13.0"}, {"cpu_capability", "AVX512"}},
                        .created_utc = "2026-11-29T22:00:00.000Z"};
    const std::uint64_t begin = index_.length * rank.value() / world;
    const std::uint64_t end = index_.length * (rank.value() + 1) / world;
    for (std::size_t g = 0; g < index_.groups.size(); ++g) {
      const std::uint64_t size = SizeOf(index_.groups[g].dtype);
      request.slices.push_back(
          {.group = index_.groups[g].name,
           .begin = begin,
           .data = std::span(flats_[g]).subspan(begin * size, (end - begin) * size)});
    }
    return request;
  }

  /// Empty when every tensor in the checkpoint is ours, else what is not.
  std::string Compare(Checkpoint& checkpoint) const {
    for (std::size_t g = 0; g < index_.groups.size(); ++g) {
      const std::uint64_t size = SizeOf(index_.groups[g].dtype);
      for (const IndexEntry& entry : index_.entries) {
        std::vector<std::byte> read(entry.length * size);
        const Status status = checkpoint.ReadTensor(index_.groups[g].name, entry.name, read);
        if (!status) return status.error().message();
        if (!read.empty() &&
            std::memcmp(read.data(), flats_[g].data() + entry.offset * size, read.size()) != 0)
          return entry.name + " differs";
      }
    }
    return "";
  }

  const FlatIndex& index() const { return index_; }

 private:
  FlatIndex index_;
  std::vector<std::vector<std::byte>> flats_;
};

/// Saves with a thread a rank; the reports in order of rank.
inline std::vector<Result<SaveReport>> SaveTogether(
    const Sample& sample, const std::string& folder, std::uint64_t step, std::uint32_t world,
    const std::function<void(SaveRequest&)>& change = [](SaveRequest&) {},
    const std::function<FileSystem&(std::uint32_t)>& files_of = [](std::uint32_t) -> FileSystem& {
      return PosixFiles();
    }) {
  ThreadAgreement agreement(world);
  std::vector<Result<SaveReport>> reports(world, Error(Code::kBug, "not run"));
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      SaveRequest request = sample.Request(folder, step, Rank(rank), world);
      change(request);
      reports[rank] = Save(files_of(rank), agreement, request);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return reports;
}

}  // namespace muster::checkpoint
