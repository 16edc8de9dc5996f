#include "base/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/error.h"

namespace muster {
namespace {

using AnyMetric =
    std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>, std::unique_ptr<Histogram>>;

bool IsName(std::string_view text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && (text[0] < '0' || text[0] > '9') &&
         std::all_of(text.begin(), text.end(), good);
}

/// Escapes backslash and newline, and in label values the quote.
std::string Escape(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (special.find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

/// a="1",b="2"
std::string RenderLabels(const Metrics::Labels& labels) {
  std::string out;
  for (const auto& [key, value] : labels) {
    MUSTER_CHECK(IsName(key));
    out += fmt::format("{}{}=\"{}\"", out.empty() ? "" : ",", key, Escape(value, "\\\""));
  }
  return out;
}

std::string RenderNumber(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string Line(const std::string& name, const std::string& labels, const std::string& value) {
  return labels.empty() ? fmt::format("{} {}\n", name, value)
                        : fmt::format("{}{{{}}} {}\n", name, labels, value);
}

struct Renderer {
  const std::string& name;
  const std::string& labels;

  std::string operator()(const std::unique_ptr<Counter>& counter) const {
    return Line(name, labels, std::to_string(counter->value()));
  }
  std::string operator()(const std::unique_ptr<Gauge>& gauge) const {
    return Line(name, labels, RenderNumber(gauge->value()));
  }
  std::string operator()(const std::unique_ptr<Histogram>& histogram) const {
    std::string out;
    std::uint64_t below = 0;
    const auto& bounds = histogram->bounds();
    for (std::size_t i = 0; i <= bounds.size(); ++i) {
      below += histogram->count(i);
      const std::string bound = i < bounds.size() ? RenderNumber(bounds[i]) : "+Inf";
      out += Line(name + "_bucket",
                  fmt::format("{}{}le=\"{}\"", labels, labels.empty() ? "" : ",", bound),
                  std::to_string(below));
    }
    out += Line(name + "_sum", labels, RenderNumber(histogram->sum()));
    return out + Line(name + "_count", labels, std::to_string(below));
  }
};

}  // namespace

struct Metrics::Family {
  std::string help;
  std::map<std::string, AnyMetric> series;  // by rendered labels
};

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {
  MUSTER_CHECK(std::is_sorted(bounds_.begin(), bounds_.end()));
}

void Histogram::Observe(double value) {
  // A value equal to a bound belongs below it ("le"); NaN compares with nothing and goes to the
  // end.
  const auto bucket =
      std::isnan(value) ? bounds_.end() : std::lower_bound(bounds_.begin(), bounds_.end(), value);
  counts_[static_cast<std::size_t>(bucket - bounds_.begin())].fetch_add(1,
                                                                        std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<double> SecondsBuckets() {
  std::vector<double> bounds;
  for (double bound = 0.001; bound < 100; bound *= 2) bounds.push_back(bound);
  return bounds;
}

Metrics::Metrics() = default;
Metrics::~Metrics() = default;

template <typename Metric, typename Make>
Metric& Metrics::Get(const Description& description, const Labels& labels, Make make) {
  MutexLock lock(mutex_);
  MUSTER_CHECK(IsName(description.name));
  std::unique_ptr<Family>& family = families_[description.name];
  if (family == nullptr) {
    family = std::make_unique<Family>();
    family->help = description.help;
  }
  std::string key = RenderLabels(labels);
  // Whoever can choose label values must not be able to fill the memory.
  const bool known = family->series.contains(key);
  if (!known && family->series.size() >= kMaxSeries) key = "other=\"true\"";
  const auto [place, fresh] = family->series.try_emplace(key, std::unique_ptr<Metric>());
  auto* const slot = std::get_if<std::unique_ptr<Metric>>(&place->second);
  MUSTER_CHECK(slot != nullptr);
  if (fresh) *slot = make();
  MUSTER_CHECK(place->second.index() == family->series.begin()->second.index());
  return **slot;
}

Counter& Metrics::GetCounter(const Description& description, const Labels& labels) {
  return Get<Counter>(description, labels, [] { return std::make_unique<Counter>(); });
}

Gauge& Metrics::GetGauge(const Description& description, const Labels& labels) {
  return Get<Gauge>(description, labels, [] { return std::make_unique<Gauge>(); });
}

Histogram& Metrics::GetHistogram(const Description& description, const std::vector<double>& bounds,
                                 const Labels& labels) {
  return Get<Histogram>(description, labels, [&] { return std::make_unique<Histogram>(bounds); });
}

std::string Metrics::Render() const {
  constexpr std::string_view kTypes[] = {"counter", "gauge", "histogram"};
  MutexLock lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) {
    const std::string_view type = kTypes[family->series.begin()->second.index()];
    out +=
        fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, Escape(family->help, "\\"), name, type);
    for (const auto& [labels, metric] : family->series) {
      out += std::visit(Renderer{name, labels}, metric);
    }
  }
  return out;
}

}  // namespace muster
