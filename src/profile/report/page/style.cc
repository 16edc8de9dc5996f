// The page's style sheet. Colours are Okabe and Ito's, which the colour-blind tell apart;
// generations, phases and losses also differ in lightness.
#include "profile/report/page/sections.h"

namespace muster::profile {
namespace {

constexpr std::string_view kStyle = R"css(
:root{--bg:#fff;--panel:#f6f7f9;--ink:#1a1f26;--soft:#57606c;--line:#dde1e6;--grid:#e8ebef;
--blue:#0072b2;--sky:#56b4e9;--green:#009e73;--red:#c8501a;--orange:#e69f00;--pink:#cc79a7;--violet:#7a5ca8;
--grey:#8b939e;--pale:#c9ced5;--gen1:#2f7fb8;--gen2:#8a63b8;--range:#0072b226;--replay:#e69f0038;--onbar:#fff}
@media (prefers-color-scheme:dark){:root{--bg:#13161a;--panel:#1b1f25;--ink:#e8ebef;--soft:#a0a9b4;--line:#313842;
--grid:#272d35;--blue:#4596d6;--sky:#9ed7f7;--green:#36c79b;--red:#ff8552;--orange:#f0b436;--pink:#e09cc3;--violet:#a98bd6;
--grey:#8b939e;--pale:#4a525d;--gen1:#2b6f9f;--gen2:#7a55a6;--range:#4596d640;--replay:#f0b43633}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
-webkit-text-size-adjust:100%}
main{max-width:1080px;margin:0 auto;padding:28px 24px 40px}
header{padding-bottom:4px}
.name{margin:0 0 6px;font-weight:600;overflow-wrap:anywhere}
.name span{color:var(--soft);font-weight:400;margin-left:8px}
h1{font-size:clamp(21px,3.4vw,30px);line-height:1.25;font-weight:600;letter-spacing:-.01em;margin:0 0 22px;overflow-wrap:anywhere;text-wrap:balance}
.goon{margin:-10px 0 20px}.goon code{overflow-wrap:anywhere}
.state{font-weight:700}.state.good{color:var(--green)}.state.bad{color:var(--red)}.state.live{color:var(--blue)}
h2{font-size:18px;font-weight:600;margin:0 0 10px}
h3{font-size:14px;font-weight:600;margin:18px 0 6px}
section{border-top:1px solid var(--line);padding:22px 0 26px}
p{margin:8px 0}.fine,footer{color:var(--soft);font-size:13px}.warn{color:var(--red)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(148px,1fr));gap:1px;margin:0 0 26px;background:var(--line);
border:1px solid var(--line);border-radius:8px;overflow:hidden}
.tiles div{background:var(--panel);padding:12px 14px}
.tiles dt{color:var(--soft);font-size:13px}
.tiles dd{margin:0;font-size:22px;font-weight:600;line-height:1.3;font-variant-numeric:tabular-nums}
.tiles small{display:block;font-size:12.5px;font-weight:400;color:var(--soft)}
.legend{list-style:none;margin:0 0 10px;padding:0;display:flex;flex-wrap:wrap;gap:3px 18px;font-size:13px;color:var(--soft)}
.legend b{color:var(--ink);font-weight:600}.legend small{font-size:12.5px}
.key{margin:7px 0 0}
.swatch{display:inline-block;width:14px;height:10px;margin-right:7px;border-radius:2px;background:currentColor}
.plot{display:grid;padding-right:16px;grid-template-columns:64px minmax(0,1fr);font-size:12px;color:var(--soft);font-variant-numeric:tabular-nums}
.ytitle{grid-column:1/3;padding-bottom:5px}.ytitle:empty{display:none}
.y{position:relative}.y span{position:absolute;right:8px;transform:translateY(-50%);white-space:nowrap}
.frame{position:relative;border-left:1px solid var(--line);border-bottom:1px solid var(--line)}
.frame svg{display:block;width:100%;height:100%}
.overlay{position:absolute;inset:0;pointer-events:none}
.x{grid-column:2;position:relative;height:22px}.x span{position:absolute;top:4px;transform:translateX(-50%);white-space:nowrap}
.xtitle{grid-column:2;text-align:right}
path,rect{vector-effect:non-scaling-stroke}
.line{fill:none;stroke-width:1.5;stroke-linecap:round;stroke-linejoin:round}
.grid{fill:none;stroke:var(--grid);stroke-width:1}
.hover{fill:transparent}.hover:hover{fill:var(--ink);fill-opacity:.1}
.loss-range{fill:var(--range)}
.line.loss-raw{stroke:var(--sky);stroke-width:1.2}.swatch.loss-raw{background:var(--sky)}
.line.loss-smooth{stroke:var(--blue);stroke-width:2.4}.swatch.loss-smooth{background:var(--blue)}
.replay{fill:var(--replay)}.swatch.replay{background:var(--replay);outline:1px solid var(--orange);outline-offset:-1px}
.line.fault{stroke:var(--red);stroke-width:1.6;stroke-dasharray:4 3}.swatch.fault{background:var(--red);width:3px}
.line.recovery{stroke:var(--green);stroke-width:1.6}.swatch.recovery{background:var(--green);width:3px}
.line.checkpoint{stroke:var(--grey);stroke-width:1;stroke-dasharray:1 3}.swatch.checkpoint{background:var(--grey);width:3px}
.gen{stroke:var(--bg);stroke-width:2;paint-order:stroke}
.gen.odd{fill:var(--gen1)}.gen.even{fill:var(--gen2)}.swatch.gen.odd{background:var(--gen1)}.swatch.gen.even{background:var(--gen2)}
.inside{position:absolute;transform:translateY(-50%);padding:0 8px;height:1.5em;overflow:hidden;white-space:nowrap;container-type:inline-size}
.inside b,.inside i{font:inherit;display:none}
@container (min-width:7.3em){.inside b{display:inline}}
@container (min-width:1.9em) and (max-width:7.29em){.inside i{display:inline}}
.onbar{color:var(--onbar);font-size:12px}
.aftermark{padding-left:14px}.tomark{padding-right:12px}
.mark{position:absolute;transform:translate(-50%,-50%);pointer-events:auto}
.died{color:var(--bg);background:var(--red);border-radius:50%;width:17px;height:17px;line-height:16px;text-align:center;font-weight:700;
box-shadow:0 0 0 2px var(--bg)}
.dot{width:9px;height:9px;border-radius:50%;background:var(--blue);box-shadow:0 0 0 2px var(--bg)}
.line.accuracy{stroke:var(--blue);stroke-width:2}
.p-data{fill:var(--orange)}.p-forward{fill:var(--sky)}.p-backward{fill:var(--blue)}.p-comm{fill:var(--pink)}
.p-optimizer{fill:var(--green)}.p-checkpoint{fill:var(--violet)}.p-eval{fill:var(--grey)}.p-rest{fill:var(--pale)}
.swatch.p-data{background:var(--orange)}.swatch.p-forward{background:var(--sky)}.swatch.p-backward{background:var(--blue)}
.swatch.p-comm{background:var(--pink)}.swatch.p-optimizer{background:var(--green)}.swatch.p-checkpoint{background:var(--violet)}
.swatch.p-eval{background:var(--grey)}.swatch.p-rest{background:var(--pale)}
.line.tail{stroke:var(--ink);stroke-width:1.1}.swatch.tail{background:var(--ink);height:2px;vertical-align:middle}
.line.median{stroke:var(--red);stroke-width:1.4;stroke-dasharray:6 4}.swatch.median{background:var(--red);height:2px;vertical-align:middle}
.bar{display:block;width:100%;height:26px;border-radius:4px;background:var(--panel)}
.b-startup,.l-stop{fill:var(--sky)}.b-training{fill:var(--blue)}.b-lost{fill:var(--red)}.b-other{fill:var(--pale)}.b-ending{fill:var(--grey)}
.l-detect{fill:var(--orange)}.l-start{fill:var(--green)}.l-replay{fill:var(--pink)}
.swatch.b-startup,.swatch.l-stop{background:var(--sky)}.swatch.b-training{background:var(--blue)}.swatch.b-lost{background:var(--red)}
.swatch.b-other{background:var(--pale)}.swatch.b-ending{background:var(--grey)}.swatch.l-detect{background:var(--orange)}
.swatch.l-start{background:var(--green)}.swatch.l-replay{background:var(--pink)}
.scroll{overflow-x:auto;background:linear-gradient(90deg,var(--bg) 30%,transparent) 0 0/36px 100% no-repeat local,
linear-gradient(270deg,var(--bg) 30%,transparent) 100% 0/36px 100% no-repeat local,linear-gradient(90deg,var(--pale),transparent) 0 0/10px 100% no-repeat,
linear-gradient(270deg,var(--pale),transparent) 100% 0/10px 100% no-repeat}
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums;margin:6px 0}
th{font-weight:600;text-align:left;color:var(--soft);font-size:13px}
th,td{padding:6px 18px 6px 0;border-bottom:1px solid var(--line);white-space:nowrap}
.num{text-align:right}.wide{white-space:normal;min-width:4em;max-width:16em}
.facts{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:5px 22px;margin:0 0 16px;font-size:14px}
.facts dt{color:var(--soft)}.facts dd{margin:0;overflow-wrap:anywhere}
details{margin:10px 0}summary{cursor:pointer;font-size:14px;font-weight:600}
pre{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:12px 14px;margin:8px 0;font:12.5px/1.5 ui-monospace,SFMono-Regular,
Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow:auto;max-height:420px;white-space:pre-wrap;overflow-wrap:anywhere}
:focus-visible{outline:2px solid var(--blue);outline-offset:2px}
footer{border-top:1px solid var(--line);padding-top:14px}
@media (max-width:620px){main{padding:18px 14px 28px}.x .odd{visibility:hidden}.plot{grid-template-columns:62px minmax(0,1fr)}
.tiles{grid-template-columns:repeat(2,minmax(0,1fr))}th,td{padding-right:13px}.facts{grid-template-columns:1fr;gap:0}.facts dd{margin-bottom:8px}
.faults thead{position:absolute;clip-path:inset(50%)}.faults,.faults tbody{display:block}
.faults tr{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:1px 22px;padding:8px 0;border-bottom:1px solid var(--line)}
.faults td{display:flex;justify-content:space-between;gap:10px;border:0;padding:0;white-space:normal;max-width:none;text-align:right;overflow-wrap:anywhere}
.faults td::before{content:attr(data-name);color:var(--soft);text-align:left;overflow-wrap:normal}}
pre.whole{max-height:none}
@media print{section{break-inside:avoid}section:has(pre){break-inside:auto}.hover{display:none}pre{max-height:none;overflow:visible}}
)css";

}  // namespace

std::string_view PageStyle() { return kStyle; }

}  // namespace muster::profile
