#include "profile/report/page/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "profile/report/text.h"

namespace muster::profile {
namespace {

std::string Title(std::string_view tooltip) {
  return tooltip.empty() ? std::string() : fmt::format("<title>{}</title>", EscapeHtml(tooltip));
}

/// A coordinate with one digit behind the point at most: a pixel is two or more.
std::string Number(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

constexpr double kLeastPart = 6;  // thousandths of a bar: what is less could not be seen

/// Thousandths of the bar that each part gets. What the short ones have too much the longest lacks.
std::vector<double> WidthsOf(const std::vector<BarPart>& parts, double whole) {
  std::vector<double> widths;
  double added = 0;
  for (const BarPart& part : parts) {
    const double exact = whole > 0 ? std::max(0.0, part.value) / whole * 1000 : 0;
    widths.push_back(part.value > 0 ? std::max(kLeastPart, exact) : 0);
    added += widths.back() - exact;
  }
  if (widths.empty()) return widths;
  double& longest = *std::max_element(widths.begin(), widths.end());
  longest = std::max(kLeastPart, longest - added);
  return widths;
}

}  // namespace

Plot::Plot(Scale x, Scale y, PlotOptions options) : x_(x), y_(y), options_(std::move(options)) {}

void Plot::Line(const std::vector<PlotPoint>& points, std::string_view css) {
  if (points.empty()) return;
  shapes_ += fmt::format("<path class=\"line {}\" d=\"M", css);
  for (const PlotPoint& point : points) {
    shapes_ += fmt::format("{} {} ", Number(X(point.x)), Number(Y(point.y)));
  }
  // One point alone shows as a dot: its line caps are round.
  if (points.size() == 1) shapes_ += "h0";
  shapes_ += "\"/>";
}

void Plot::Area(const std::vector<PlotPoint>& lower, const std::vector<PlotPoint>& upper,
                std::string_view css) {
  if (lower.empty() || lower.size() != upper.size()) return;
  shapes_ += fmt::format("<path class=\"{}\" d=\"M", css);
  for (const PlotPoint& point : upper) {
    shapes_ += fmt::format("{} {} ", Number(X(point.x)), Number(Y(point.y)));
  }
  for (auto point = lower.rbegin(); point != lower.rend(); ++point) {
    shapes_ += fmt::format("{} {} ", Number(X(point->x)), Number(Y(point->y)));
  }
  shapes_ += "z\"/>";
}

void Plot::Box(double x0, double x1, double y0, double y1, std::string_view css,
               std::string_view tooltip) {
  shapes_ +=
      fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">{}</rect>", css,
                  Number(X(x0)), Number(Y(y1)), Number(std::max(0.5, X(x1) - X(x0))),
                  Number(Y(y0) - Y(y1)), Title(tooltip));
}

void Plot::Band(double x0, double x1, std::string_view css, std::string_view tooltip) {
  Box(x0, x1, y_.low(), y_.high(), css, tooltip);
}

void Plot::VerticalLine(double x, std::string_view css, std::string_view tooltip) {
  shapes_ += fmt::format("<path class=\"line {}\" d=\"M{} 0V1000\">{}</path>", css, Number(X(x)),
                         Title(tooltip));
}

void Plot::HorizontalLine(double y, std::string_view css, std::string_view tooltip) {
  shapes_ += fmt::format("<path class=\"line {}\" d=\"M0 {}H1000\">{}</path>", css, Number(Y(y)),
                         Title(tooltip));
}

void Plot::Mark(double x, double y, std::string_view text, std::string_view css,
                std::string_view tooltip) {
  overlay_ +=
      fmt::format("<span class=\"mark {}\" style=\"left:{}%;top:{}%\" title=\"{}\">{}</span>", css,
                  Number(X(x) / 10), Number(Y(y) / 10), EscapeHtml(tooltip), EscapeHtml(text));
}

void Plot::Inside(double x0, double x1, double y, const Fitting& text, std::string_view css) {
  overlay_ += fmt::format(
      "<span class=\"inside {}\" style=\"left:{}%;top:{}%;width:{}%\"><b>{}</b><i>{}</i></span>",
      css, Number(X(x0) / 10), Number(Y(y) / 10), Number((X(x1) - X(x0)) / 10),
      EscapeHtml(text.long_form), EscapeHtml(text.short_form));
}

void Plot::AddRow(double y, std::string_view text) {
  rows_ += fmt::format("<span style=\"top:{}%\">{}</span>", Number(Y(y) / 10), EscapeHtml(text));
}

std::string Plot::Html() const {
  std::string grid;
  std::string y_labels = rows_;
  if (options_.y_ticks > 0) {
    for (const Tick& tick : NiceTicks(y_, options_.y_ticks)) {
      const double y = (1 - tick.at) * 1000;
      grid += fmt::format("M0 {}H1000", Number(y));
      y_labels += fmt::format("<span style=\"top:{}%\">{}</span>", Number(y / 10), tick.label);
    }
  }
  std::string x_labels;
  int number = 0;
  for (const Tick& tick : NiceTicks(x_, options_.x_ticks)) {
    // Every other label leaves on a narrow screen.
    x_labels +=
        fmt::format("<span{} style=\"left:{}%\">{}</span>",
                    number++ % 2 == 1 ? " class=\"odd\"" : "", Number(tick.at * 100), tick.label);
  }
  return fmt::format(
      "<div class=\"plot\"><div class=\"ytitle\">{}</div><div class=\"y\" "
      "aria-hidden=\"true\">{}</div>"
      "<div class=\"frame\" style=\"height:{}px\"><svg viewBox=\"0 0 1000 1000\" "
      "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\"><path class=\"grid\" "
      "d=\"{}\"/>{}</svg>"
      "<div class=\"overlay\" aria-hidden=\"true\">{}</div></div>"
      "<div class=\"x\" aria-hidden=\"true\">{}</div><div class=\"xtitle\">{}</div></div>",
      EscapeHtml(options_.y_title), y_labels, options_.height_px, EscapeHtml(options_.label), grid,
      shapes_, overlay_, x_labels, EscapeHtml(options_.x_title));
}

std::string LegendHtml(const std::vector<LegendEntry>& entries) {
  std::string out = "<ul class=\"legend\">";
  for (const LegendEntry& entry : entries) {
    out += fmt::format("<li><i class=\"swatch {}\"></i>{}</li>", entry.css, EscapeHtml(entry.text));
  }
  return out + "</ul>";
}

std::string BarHtml(const std::vector<BarPart>& parts, double whole, std::string_view label) {
  const std::vector<double> widths = WidthsOf(parts, whole);
  std::string shapes;
  double x = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].value <= 0) continue;
    shapes +=
        fmt::format("<rect class=\"{}\" x=\"{}\" y=\"0\" width=\"{}\" height=\"10\">{}</rect>",
                    parts[i].css, Number(x), Number(widths[i]), Title(parts[i].tooltip));
    x += widths[i];
  }
  return fmt::format(
      "<svg class=\"bar\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"{}\">{}</svg>",
      EscapeHtml(label), shapes);
}

}  // namespace muster::profile
