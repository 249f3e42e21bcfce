//! What images show (ClinMM-Bench, supplement F: `image_id`, `image_finding`, `diagnostic_significance`).
//!
//! A finding is copied from the caption and from the clauses of the text that refer to the figure; a clause that draws a
//! conclusion tells the significance instead. A caption that is divided by letters gives each panel its own part.

use std::ops::Range;

use super::diagnosis::{FinalDiagnosis, Located};
use super::examinations::Examinations;
use super::masking::figure_references;
use super::presentation::staged_text;
use super::sections::patterns;
use crate::record::article::{Article, Figure, Region};
use crate::record::staged::StagedText;
use crate::text::leakage::{Gold, Synonyms};
use crate::text::sentences::sentences;

/// References to a figure in the text that are read. It bounds the time.
const MAX_MENTIONS: usize = 64;
/// Panels of a caption that are told apart.
const MAX_PANELS: usize = 26;

patterns! {
    /// A letter that begins a part of a caption: "(a)", "(A,", "a)", "A:", "A.".
    PANEL = r"\((?P<round>[a-z])\s*\)|(?:^|[.;]\s+)(?P<bare>[a-z])[):.]\s|(?:^|[.;]\s+)(?P<dash>[a-z])\s[-–—]\s";
    /// What follows a letter that stands behind its part.
    BEHIND = r"^\s*\)\s*(?:$|[.,;)]|and\b)";
    /// One letter or several in brackets: "(a)", "(a, b)", "(a and b)", "(a–c)".
    LETTERS = r"\(\s*(?P<first>[a-z])(?:\s*(?P<to>[-–—]|to|,|and|&)\s*(?P<last>[a-z]))?\s*\)";
    CONCLUSION = r"\b(?:confirm\w*|suggest\w*|consistent with|compatible with|indicat\w+|in keeping with|diagnos\w+|pathognomonic|characteristic of|typical of|suspicious|suspicion|concerning for|exclud\w+|ruled out|ruling out|supporting|supports?|proved|proving|represent(?:s|ing)|corresponding to|favou?r\w*|evidence of|raised the possibility|concluded)\b";
    /// Signs and abbreviations that a caption explains.
    LEGEND = r"^(?:[A-Z0-9/ -]{2,12}\s*[=:,]\s*[^.;]{3,60}[.;,]?\s*)+$|^(?:abbreviations?|note|source|reproduced|reprinted|courtesy|scale bars?|original magnification)\b";
    OTHER_FIGURE = r"\b(?:figs?\.?|figures?)[\s\x{a0}]*\d+";
}

/// What one image shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageText {
    /// What should be seen.
    pub image_finding: Option<StagedText>,
    /// What it means for the diagnosis.
    pub diagnostic_significance: Option<StagedText>,
    /// All of the caption.
    pub caption: Option<StagedText>,
}

/// The name of an image: the label of its figure, and the number of the graphic where it has several. `position` is that of
/// the figure in the article, from 0; it names a figure without a label.
pub fn image_id(figure: &Figure, position: usize, panel: u32, n_panels: u32) -> String {
    let label = figure.label.as_deref().unwrap_or_default().trim().trim_end_matches(['.', ':', ',', ';']).trim_end();
    let label = if label.is_empty() { format!("Figure {}", position + 1) } else { label.to_owned() };
    if n_panels > 1 { format!("{label} ({})", panel + 1) } else { label }
}

/// Copies what is said of one graphic of a figure. `panel` counts the graphics from 0.
///
/// A clause of the caption that names the diagnosis or draws a conclusion is its significance, unless nothing else would be
/// left to be seen. Takes time linear in the caption and in the paragraphs that mention the figure, of whose references the
/// first 64 are read.
pub fn findings(
    article: &Article,
    figure: &Figure,
    panel: u32,
    diagnosis: &FinalDiagnosis,
    examinations: &Examinations,
) -> ImageText {
    let Some(position) = article.figures.iter().position(|other| std::ptr::eq(other, figure) || other == figure) else {
        return ImageText::default();
    };
    let names: Vec<Gold> = std::iter::once(&diagnosis.diagnosis)
        .chain(&diagnosis.synonyms)
        .map(|name| Gold::new(name, "", &Synonyms::default()))
        .collect();
    let concludes = |text: &str| CONCLUSION.is_match(text) || names.iter().any(|gold| !gold.leaks(text).is_empty());

    let whole = caption_places(figure, position);
    let mut seen = Vec::new();
    let mut meant = Vec::new();
    for place in &whole {
        let Some(text) = caption_text(figure, place) else { continue };
        let wanted = panel_ranges(text, panel, figure.graphics.len());
        for range in wanted {
            for sentence in statements(text, &range) {
                let words = text.get(sentence.clone()).unwrap_or_default();
                if LEGEND.is_match(words) {
                    continue;
                }
                let located = Located { text_id: place.text_id.clone(), start: sentence.start, end: sentence.end };
                if concludes(words) { meant.push(located) } else { seen.push(located) }
            }
        }
    }
    let (text_seen, text_meant): (Vec<_>, Vec<_>) = mentions(article, figure, panel)
        .into_iter()
        .filter(|clause| is_statement(clause_text(article, clause), examinations))
        .partition(|clause| !CONCLUSION.is_match(clause_text(article, clause)));
    seen.extend(text_seen);
    meant.extend(text_meant);
    if seen.is_empty() {
        // A caption that is one conclusion: it is all that there is to see.
        seen.clone_from(&meant);
    }
    ImageText {
        image_finding: staged_text(article, &seen),
        diagnostic_significance: staged_text(article, &meant),
        caption: staged_text(article, &whole),
    }
}

/// Title and passages of a caption.
fn caption_places(figure: &Figure, position: usize) -> Vec<Located> {
    let title = figure.title.as_deref().map(|title| (format!("f{position}.title"), title.len()));
    let passages =
        figure.caption.iter().enumerate().map(|(index, passage)| (format!("f{position}.{index}"), passage.text.len()));
    title
        .into_iter()
        .chain(passages)
        .filter(|(_, length)| *length > 0)
        .map(|(text_id, end)| Located { text_id, start: 0, end })
        .collect()
}

fn caption_text<'a>(figure: &'a Figure, place: &Located) -> Option<&'a str> {
    match place.text_id.rsplit_once('.')?.1 {
        "title" => figure.title.as_deref(),
        index => figure.caption.get(index.parse::<usize>().ok()?).map(|passage| passage.text.as_str()),
    }
}

/// The parts of a caption that speak of one panel: what stands before the first letter, and the part behind its own. The
/// whole caption where there is one graphic, no letters, or fewer letters than graphics.
fn panel_ranges(text: &str, panel: u32, n_graphics: usize) -> Vec<Range<usize>> {
    let whole = std::iter::once(0..text.len()).collect();
    if n_graphics < 2 {
        return whole;
    }
    // Letters in their order; "(a)" inside of part (b) begins no part.
    let mut starts: Vec<usize> = Vec::new();
    // "The right eye (a) and the left eye (b)": the letters stand behind what they mean.
    let mut stand_behind = false;
    for captures in PANEL.captures_iter(text) {
        let Some(letter) = captures.iter().skip(1).flatten().next() else { continue };
        let next = char::from(b'a' + u8::try_from(starts.len().min(MAX_PANELS - 1)).unwrap_or_default());
        if letter.as_str().eq_ignore_ascii_case(&next.to_string()) && starts.len() < MAX_PANELS {
            let is_round = captures.name("round").is_some();
            stand_behind |= is_round && text.get(letter.end()..).is_some_and(|rest| BEHIND.is_match(rest));
            starts.push(if is_round { captures.get(0).map_or(0, |all| all.start()) } else { letter.start() });
        }
    }
    if starts.len() < n_graphics || stand_behind {
        return whole;
    }
    let index = panel as usize;
    let Some(start) = starts.get(index) else { return whole };
    let end = starts.get(index + 1).copied().unwrap_or(text.len());
    let before = starts.first().copied().unwrap_or(0);
    [0..before, *start..end].into_iter().filter(|range| range.start < range.end).collect()
}

/// The sentences and parts between semicolons of a range of a text, without what surrounds them.
fn statements(text: &str, range: &Range<usize>) -> Vec<Range<usize>> {
    let part = text.get(range.clone()).unwrap_or_default();
    sentences(part)
        .into_iter()
        .map(|sentence| range.start + sentence.start..range.start + sentence.end)
        .filter(|sentence| {
            text.get(sentence.clone()).is_some_and(|words| words.chars().filter(|c| c.is_alphabetic()).count() >= 3)
        })
        .collect()
}

fn clause_text<'a>(article: &'a Article, place: &Located) -> &'a str {
    super::diagnosis::text_of(article, &place.text_id)
        .and_then(|text| text.get(place.start..place.end))
        .unwrap_or_default()
}

/// More than the name of an examination.
fn is_statement(text: &str, examinations: &Examinations) -> bool {
    let named: usize = examinations.mentions(text).iter().map(|mention| mention.end - mention.start).sum();
    text.chars().filter(|c| c.is_alphabetic()).count() >= 12 && text.len().saturating_sub(named) > 12
}

/// The stretches of the text that refer to a panel of a figure: each from the reference before it, or the beginning of the
/// sentence, to its own; behind the last one to the end of the sentence.
fn mentions(article: &Article, figure: &Figure, panel: u32) -> Vec<Located> {
    let letter = u8::try_from(panel).ok().and_then(|panel| b'a'.checked_add(panel)).map(char::from).unwrap_or('a');
    let n_graphics = figure.graphics.len();
    let mut found: Vec<Located> = Vec::new();
    for anchor in figure.mentions.iter().take(MAX_MENTIONS) {
        let Some(paragraph) = article.paragraphs.get(anchor.paragraph as usize) else { continue };
        if paragraph.region != Region::Body && paragraph.region != Region::SubArticle {
            continue;
        }
        let text = paragraph.passage.text.as_str();
        let (at, behind) = (anchor.text_start as usize, anchor.text_end as usize);
        let Some(sentence) = sentences(text).into_iter().find(|sentence| sentence.contains(&at)) else { continue };
        if n_graphics > 1 && !speaks_of(text, behind, letter) {
            continue;
        }
        let bracketed = figure_references(text);
        // Other figures that the sentence refers to part it.
        let others: Vec<Range<usize>> = paragraph
            .passage
            .mentions
            .iter()
            .filter(|mention| {
                // One that is not in brackets is the subject or object of the sentence.
                bracketed.iter().any(|range| range.contains(&(mention.text_start as usize)))
            })
            .filter(|mention| {
                mention.ref_type.as_deref() == Some("fig") && figure.id.as_deref() != Some(mention.rid.as_str())
            })
            .map(|mention| mention.text_start as usize..mention.text_end as usize)
            .filter(|other| sentence.contains(&other.start))
            .collect();
        let start = others.iter().map(|other| other.end).filter(|end| *end <= at).max().unwrap_or(sentence.start);
        let has_later = others.iter().any(|other| other.start >= behind);
        let end = if has_later { behind } else { sentence.end };
        found.extend(without_references(text, start..end).into_iter().map(|range| Located {
            text_id: format!("p{}", anchor.paragraph),
            start: range.start,
            end: range.end,
        }));
    }
    found.sort_by_key(|place| (place.text_id.len(), place.text_id.clone(), place.start, std::cmp::Reverse(place.end)));
    let mut kept: Vec<Located> = Vec::with_capacity(found.len());
    for place in found {
        let is_told = kept.last().is_some_and(|last| last.text_id == place.text_id && place.start < last.end);
        if !is_told {
            kept.push(place);
        }
    }
    kept
}

/// Whether the reference that ends at `behind` means a panel: it names its letter, or none.
fn speaks_of(text: &str, behind: usize, letter: char) -> bool {
    let tail: String = text.get(behind..).unwrap_or_default().chars().take(12).collect();
    let tail = tail.trim_start();
    let (first, last) = match LETTERS.captures(tail) {
        Some(captures) if captures.get(0).is_some_and(|all| all.start() == 0) => {
            let of = |name| captures.name(name).and_then(|found| found.as_str().chars().next());
            (of("first"), of("last"))
        }
        _ => {
            let mut letters = tail.chars();
            let first = letters.next().filter(char::is_ascii_alphabetic);
            match letters.next() {
                Some(next) if next.is_alphabetic() => (None, None),
                _ => (first, None),
            }
        }
    };
    let Some(first) = first.map(|first| first.to_ascii_lowercase()) else { return true };
    let last = last.map_or(first, |last| last.to_ascii_lowercase());
    (first..=last.max(first)).contains(&letter)
}

/// A range without references to figures in brackets, and without the bracket that its end may divide.
fn without_references(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = range.start;
    for cut in figure_references(text) {
        if cut.end <= from || cut.start >= range.end {
            continue;
        }
        if cut.start > from {
            found.push(from..cut.start);
        }
        from = cut.end.min(range.end);
    }
    found.push(from..range.end);
    found
        .into_iter()
        .filter_map(|part| {
            let words = text.get(part.clone())?;
            let trim = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | ')' | ':');
            let start = part.start + words.len() - words.trim_start_matches(trim).len();
            let end = part.start + words.trim_end().len();
            let words = text.get(start..end)?;
            let is_bare = OTHER_FIGURE.replace_all(words, "").chars().filter(|c| c.is_alphabetic()).count() < 12;
            (!is_bare).then_some(start..end)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::masking::tests::{diagnosis, examinations};
    use super::super::presentation::tests::{article, check};
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;
    use std::fmt::Write as _;

    fn account(body: &str, name: &str) -> String {
        let (_, article) = article(body);
        let mut text = String::new();
        for (position, figure) in article.figures.iter().enumerate() {
            let n_panels = u32::try_from(figure.graphics.len()).unwrap();
            for panel in 0..n_panels {
                let found = findings(&article, figure, panel, &diagnosis(name, &[]), examinations());
                let all = [&found.image_finding, &found.diagnostic_significance, &found.caption];
                check(&article, &all.into_iter().flatten().collect::<Vec<_>>());
                let show = |text: &Option<StagedText>| text.as_ref().map_or("-".to_owned(), |text| text.text.clone());
                let id = image_id(figure, position, panel, n_panels);
                writeln!(
                    text,
                    "{id}\n  seen: {}\n  meant: {}",
                    show(&found.image_finding),
                    show(&found.diagnostic_significance)
                )
                .unwrap();
            }
        }
        text
    }

    #[test]
    fn caption_and_text_are_divided_into_what_is_seen_and_what_it_means() {
        let found = account(
            r#"<sec><title>Case</title><p>CT showed a rim (<xref ref-type="fig" rid="a">Fig. 1</xref>) and MRI a nodule in the wall (<xref ref-type="fig" rid="b">Fig. 2</xref>), suggestive of a hydatid cyst.</p></sec>
            <fig id="a"><label>Fig. 1.</label><caption><p>CT of the liver. A thin rim is seen. CT: computed tomography.</p></caption><graphic/></fig>
            <fig id="b"><caption><p>MRI confirms hydatidosis.</p></caption><graphic/></fig>"#,
            "hydatidosis",
        );
        expect![[r#"
            Fig. 1
              seen: CT of the liver. A thin rim is seen. CT showed a rim
              meant: -
            Figure 2
              seen: and MRI a nodule in the wall
              meant: MRI confirms hydatidosis. suggestive of a hydatid cyst.
        "#]]
        .assert_eq(&found);
    }

    #[test]
    fn panels_have_their_own_part_of_a_caption() {
        let found = account(
            r#"<sec><title>Case</title><p>The nail was thick (<xref ref-type="fig" rid="a">Figure 1</xref>B). The hand was warm (<xref ref-type="fig" rid="a">Figure 1</xref>(a)).</p></sec>
            <fig id="a"><label>Figure 1</label><caption><p>Left hand. (A) Palm with a scar. (B) Thick yellow nail.</p></caption><graphic/><graphic/></fig>
            <fig id="b"><label>Figure 2</label><caption><p>Fundus of the right (a) and left eye (b).</p></caption><graphic/><graphic/></fig>
            <fig id="c"><label>Figure 3</label><caption><p>(a) First part; (b) second part of it.</p></caption><graphic/></fig>"#,
            "gout",
        );
        expect![[r#"
            Figure 1 (1)
              seen: Left hand. (A) Palm with a scar. The hand was warm
              meant: -
            Figure 1 (2)
              seen: Left hand. (B) Thick yellow nail. The nail was thick
              meant: -
            Figure 2 (1)
              seen: Fundus of the right (a) and left eye (b).
              meant: -
            Figure 2 (2)
              seen: Fundus of the right (a) and left eye (b).
              meant: -
            Figure 3
              seen: (a) First part; (b) second part of it.
              meant: -
        "#]]
        .assert_eq(&found);
    }

    #[test]
    fn labels_name_images() {
        let figure = |label: Option<&str>| Figure { label: label.map(str::to_owned), ..Figure::default() };
        assert_eq!(image_id(&figure(Some("Figure 2.")), 0, 0, 1), "Figure 2");
        assert_eq!(image_id(&figure(Some("Fig. 3:")), 0, 1, 3), "Fig. 3 (2)");
        assert_eq!(image_id(&figure(None), 4, 0, 1), "Figure 5");
        assert_eq!(image_id(&figure(Some(" . ")), 4, 0, 1), "Figure 5");
    }

    proptest! {
        #[test]
        fn quotes_are_copies_and_no_caption_makes_it_fail(caption in
            "(\\(a\\) |\\(B\\)|b\\) |c\\. |\\. |; |and |é|showing |gout |confirming |[a-z]{1,6} |\\(|\\)){0,30}") {
            account(
                &format!(
                    "<sec><title>Case</title><p>It {caption} (<xref ref-type=\"fig\" rid=\"a\">Figure 1</xref>){caption}.</p></sec><fig id=\"a\"><label>Figure 1</label><caption><p>{caption}</p></caption><graphic/><graphic/><graphic/></fig>"
                ),
                "gout",
            );
        }
    }
}
