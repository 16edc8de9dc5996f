#pragma once
// Counters, gauges and histograms that a program shows in Prometheus' text format (version 0.0.4,
// prometheus.io/docs/instrumenting/exposition_formats). Names are muster_… in base units (seconds,
// bytes; counters end in _total) and constants of the code; label values may come from outside, so
// a family takes at most kMaxSeries of them and counts the rest under other="true".
//
// One Metrics per program, passed by reference. Get a metric once and keep the reference: it lives
// as long as the Metrics. Updates are lock-free; any thread.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace muster {

class Counter {
 public:
  void Add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double delta) { value_.fetch_add(delta, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {
 public:
  /// Upper bounds of the buckets, ascending; one for everything above is added.
  explicit Histogram(std::vector<double> bounds);
  void Observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  std::uint64_t count(std::size_t bucket) const {
    return counts_[bucket].load(std::memory_order_relaxed);
  }
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::vector<std::atomic<std::uint64_t>> counts_;
  std::atomic<double> sum_{0};
};

/// Bounds for seconds from 1 ms to about 1 min, each twice the last.
std::vector<double> SecondsBuckets();

class Metrics {
 public:
  static constexpr std::size_t kMaxSeries = 1000;
  using Labels = std::map<std::string, std::string>;
  struct Description {
    std::string name;
    std::string help;
  };

  Metrics();
  ~Metrics();

  /// The metric of that name and labels, made at the first call. A name keeps its kind, or
  /// it is a bug of ours (MUSTER_CHECK). A histogram keeps the bounds of its first call.
  Counter& GetCounter(const Description& description, const Labels& labels = {});
  Gauge& GetGauge(const Description& description, const Labels& labels = {});
  Histogram& GetHistogram(const Description& description, const std::vector<double>& bounds,
                          const Labels& labels = {});

  /// All of them, sorted by name and labels.
  std::string Render() const;

 private:
  struct Family;
  template <typename Metric, typename Make>
  Metric& Get(const Description& description, const Labels& labels, Make make);

  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<Family>> families_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
