#pragma once
// One chart as HTML: an SVG that stretches to its frame, with axis labels beside it as text, so
// that type stays readable at 360 px and at full width. Lines keep their width (vector-effect).
// Colours are classes of the page's style sheet, never inline. Every text is escaped here. Pure;
// build, then Html().

#include <string>
#include <string_view>
#include <vector>

#include "profile/report/page/scale.h"

namespace muster::profile {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

struct PlotOptions {
  std::string label;    ///< what the chart shows, for readers who do not see it
  std::string x_title;  ///< with its unit: "step"
  std::string y_title;
  int height_px = 220;
  int x_ticks = 8;
  int y_ticks = 4;  ///< 0: no ticks, see AddRow
};

class Plot {
 public:
  Plot(Scale x, Scale y, PlotOptions options);

  void Line(const std::vector<PlotPoint>& points, std::string_view css);
  /// Between two lines with the same x.
  void Area(const std::vector<PlotPoint>& lower, const std::vector<PlotPoint>& upper,
            std::string_view css);
  /// A rectangle in data coordinates with a tooltip.
  void Box(double x0, double x1, double y0, double y1, std::string_view css,
           std::string_view tooltip);
  /// From top to bottom.
  void Band(double x0, double x1, std::string_view css, std::string_view tooltip);
  void VerticalLine(double x, std::string_view css, std::string_view tooltip);
  void HorizontalLine(double y, std::string_view css, std::string_view tooltip);
  /// Text or a mark over the chart, centred on its place.
  void Mark(double x, double y, std::string_view text, std::string_view css,
            std::string_view tooltip);
  /// Text that starts at x0 and ends before x1: the long form where it fits, else the short one,
  /// else none.
  struct Fitting {
    std::string long_form;
    std::string short_form;
  };
  void Inside(double x0, double x1, double y, const Fitting& text, std::string_view css);
  /// A label of the y axis at a place of its own.
  void AddRow(double y, std::string_view text);

  std::string Html() const;

 private:
  double X(double value) const { return x_.At(value) * 1000; }
  double Y(double value) const { return (1 - y_.At(value)) * 1000; }

  Scale x_;
  Scale y_;
  PlotOptions options_;
  std::string shapes_;
  std::string overlay_;
  std::string rows_;
};

struct LegendEntry {
  std::string css;  ///< class of the swatch
  std::string text;
};
std::string LegendHtml(const std::vector<LegendEntry>& entries);

/// A horizontal bar of parts, each with its tooltip; zero parts take no room.
struct BarPart {
  std::string css;
  double value = 0;
  std::string tooltip;
};
/// `whole`: the value that fills the width.
std::string BarHtml(const std::vector<BarPart>& parts, double whole, std::string_view label);

}  // namespace muster::profile
