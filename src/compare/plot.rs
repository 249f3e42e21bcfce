//! A [`Comparison`] as one self-contained SVG: bars of all extractors for each metric, as in MedRoundsQA, Figure 7,
//! with intervals. Unlike there the axis begins at 0, so that lengths can be compared.

use std::fmt::Write as _;

use super::EMPTY_NAME;
use super::report::{Comparison, Estimate, ExtractorReport};
use super::table::plain;

/// Fills that people with any colour vision tell apart (Okabe and Ito 2008), used in turn.
const COLOURS: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];

const BAR_WIDTH: f64 = 34.0;
const GROUP_GAP: f64 = 36.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const PLOT_HEIGHT: f64 = 240.0;
const MIN_PLOT_WIDTH: f64 = 420.0;
const LEGEND_LINE: f64 = 20.0;
/// The average width of a character at the size of the legend and the labels.
const CHAR_WIDTH: f64 = 7.0;
/// The same for the title.
const TITLE_CHAR_WIDTH: f64 = 8.5;
/// The longest name in the legend, in characters; the whole name is in the tooltip of each bar.
const MAX_NAME_CHARS: usize = 40;

/// The plot. The empty extractor is left out: all its bars have no height.
///
/// The bytes depend on the arguments only. Every text is escaped, and characters that XML forbids are replaced.
pub fn svg(comparison: &Comparison, title: &str) -> String {
    let extractors: Vec<&ExtractorReport> =
        comparison.extractors.iter().filter(|extractor| extractor.name != EMPTY_NAME).collect();
    let group_width = (extractors.len() as f64 * BAR_WIDTH + GROUP_GAP).max(label_width(comparison) + 8.0);
    let plot_width = (group_width * comparison.metrics.len() as f64).max(MIN_PLOT_WIDTH);
    let group_width = plot_width / comparison.metrics.len().max(1) as f64;
    let legend = legend(&extractors, plot_width);
    let top = 44.0 + legend.height + 18.0;
    let layout = Layout { top, bottom: top + PLOT_HEIGHT, group_width, plot_width };
    let (width, height) = (LEFT + plot_width + RIGHT, layout.bottom + 40.0);

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"plot-title plot-desc\" \
         width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <title id=\"plot-title\">{}</title>\n<desc id=\"plot-desc\">{}</desc>\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n",
        escaped(title),
        escaped(&description(comparison, &extractors)),
    );
    let n_title_chars = ((width - 2.0 * RIGHT) / TITLE_CHAR_WIDTH) as usize;
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"26\" font-size=\"15\" text-anchor=\"middle\">{}</text>",
        width / 2.0,
        escaped(&shortened(title, n_title_chars)),
    );
    svg += &legend.svg;
    svg += &layout.axis();
    for (place, metric) in comparison.metrics.iter().enumerate() {
        let middle = LEFT + (place as f64 + 0.5) * layout.group_width;
        let _ = writeln!(
            svg,
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            layout.bottom + 20.0,
            escaped(&shortened(&metric.title, MAX_NAME_CHARS)),
        );
        let first = middle - extractors.len() as f64 * BAR_WIDTH / 2.0;
        for (bar, extractor) in extractors.iter().enumerate() {
            if let Some(estimate) = extractor.scores.get(place).and_then(|score| score.estimate) {
                let tooltip = format!("{}, {}: {}", extractor.name, metric.title, in_words(estimate));
                svg += &layout.bar(first + bar as f64 * BAR_WIDTH, colour(bar), estimate, &tooltip);
            }
        }
    }
    svg + "</svg>\n"
}

struct Layout {
    top: f64,
    bottom: f64,
    group_width: f64,
    plot_width: f64,
}

impl Layout {
    fn height_of(&self, share: f64) -> f64 {
        self.bottom - share.clamp(0.0, 1.0) * (self.bottom - self.top)
    }

    fn axis(&self) -> String {
        let (right, middle) = (LEFT + self.plot_width, (self.top + self.bottom) / 2.0);
        let mut svg = format!(
            "<text x=\"18\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {middle:.1})\">Score (%)</text>\n"
        );
        for per_cent in (0..=100).step_by(20) {
            let height = self.height_of(f64::from(per_cent) / 100.0);
            let colour = if per_cent == 0 { "#333333" } else { "#dddddd" };
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT:.1}\" y1=\"{height:.1}\" x2=\"{right:.1}\" y2=\"{height:.1}\" stroke=\"{colour}\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{per_cent}</text>",
                LEFT - 8.0,
                height + 4.0,
            );
        }
        svg
    }

    fn bar(&self, left: f64, colour: &str, estimate: Estimate, tooltip: &str) -> String {
        let (value, low, high) = (estimate.value.0, estimate.low.0, estimate.high.0);
        let (top, middle) = (self.height_of(value), left + BAR_WIDTH / 2.0);
        let (whisker_top, whisker_bottom) = (self.height_of(high), self.height_of(low));
        format!(
            "<g><title>{}</title>\n\
             <rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>\n\
             <path d=\"M{middle:.1} {whisker_bottom:.1}V{whisker_top:.1}M{:.1} {whisker_top:.1}h8M{:.1} {whisker_bottom:.1}h8\" \
             stroke=\"#000000\" fill=\"none\"/>\n\
             <text x=\"{middle:.1}\" y=\"{:.1}\" font-size=\"11\" text-anchor=\"middle\">{:.1}</text></g>\n",
            escaped(tooltip),
            left + 2.0,
            BAR_WIDTH - 4.0,
            self.bottom - top,
            middle - 4.0,
            middle - 4.0,
            whisker_top.min(top) - 4.0,
            value * 100.0,
        )
    }
}

struct Legend {
    svg: String,
    height: f64,
}

/// Squares and names in as many lines as they need.
fn legend(extractors: &[&ExtractorReport], plot_width: f64) -> Legend {
    let (mut svg, mut left, mut line) = (String::new(), 0.0, 0.0);
    for (place, extractor) in extractors.iter().enumerate() {
        let name = shortened(&extractor.name, MAX_NAME_CHARS);
        let width = 18.0 + CHAR_WIDTH * name.chars().count() as f64 + 16.0;
        if left > 0.0 && left + width > plot_width {
            (left, line) = (0.0, line + 1.0);
        }
        let top = 44.0 + line * LEGEND_LINE;
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT + left,
            colour(place),
            LEFT + left + 18.0,
            top + 10.5,
            escaped(&name),
        );
        left += width;
    }
    Legend { svg, height: if extractors.is_empty() { 0.0 } else { (line + 1.0) * LEGEND_LINE } }
}

fn label_width(comparison: &Comparison) -> f64 {
    let n_chars = comparison.metrics.iter().map(|metric| metric.title.chars().count().min(MAX_NAME_CHARS)).max();
    n_chars.unwrap_or(0) as f64 * CHAR_WIDTH
}

fn colour(place: usize) -> &'static str {
    COLOURS[place % COLOURS.len()]
}

/// The plot for those who cannot see it: every number of it.
fn description(comparison: &Comparison, extractors: &[&ExtractorReport]) -> String {
    let mut text = format!(
        "Bar chart. Agreement with the reference {} over {} cases in per cent, higher is better; whiskers are {:.0} % intervals.",
        comparison.reference,
        comparison.n_cases,
        comparison.confidence.0 * 100.0,
    );
    for (place, metric) in comparison.metrics.iter().enumerate() {
        let scores = extractors.iter().filter_map(|extractor| {
            let estimate = extractor.scores.get(place)?.estimate?;
            Some(format!("{} {}", extractor.name, in_words(estimate)))
        });
        let _ = write!(text, " {}: {}.", metric.title, scores.collect::<Vec<_>>().join(", "));
    }
    text
}

fn in_words(estimate: Estimate) -> String {
    let [value, low, high] = [estimate.value, estimate.low, estimate.high].map(|number| number.0 * 100.0);
    format!("{value:.1} ({low:.1} to {high:.1})")
}

fn shortened(text: &str, n_chars: usize) -> String {
    if text.chars().count() <= n_chars {
        return text.to_owned();
    }
    text.chars().take(n_chars.saturating_sub(1)).chain(['…']).collect()
}

/// Text for content or an attribute (XML 1.0, sections 2.2 and 2.4). Control characters are gone after [`plain`]; of
/// what else XML forbids a string can hold only U+FFFE and U+FFFF.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in plain(text).chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}
