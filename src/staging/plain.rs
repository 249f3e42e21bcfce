//! An article as plain text for a reader who sees nothing else: a model that judges or converts it.

use crate::record::article::{Article, Figure, Passage, PatientSegment, Region, TableContent};

/// Title, abstract, text with its section titles, tables and captions; of one patient of several, what belongs to that
/// patient and to nobody else. Cut at the end of a paragraph when it is longer than `max_chars`, and then it says so.
pub fn report(article: &Article, patient: Option<&PatientSegment>, max_chars: usize) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(article.title.clone());
    let main = article.main_abstract.and_then(|position| article.abstracts.get(position as usize));
    if let Some(main) = main.filter(|_| patient.is_none()) {
        parts.push("ABSTRACT".to_owned());
        for paragraph in &main.paragraphs {
            let heading = paragraph.section_path.last().map(|title| format!("{title}: ")).unwrap_or_default();
            parts.push(format!("{heading}{}", paragraph.passage.text));
        }
    }
    let mut path: &[String] = &[];
    for (position, paragraph) in (0u32..).zip(&article.paragraphs) {
        let is_of_other = patient.is_some_and(|segment| !segment.paragraphs.contains(&position));
        if paragraph.region != Region::Body || is_of_other {
            continue;
        }
        if paragraph.section_path != path {
            path = &paragraph.section_path;
            parts.extend((!path.is_empty()).then(|| path.join(" / ").to_uppercase()));
        }
        parts.push(paragraph.passage.text.clone());
    }
    for table in article.tables.iter().filter(|table| table.content == TableContent::Grid && patient.is_none()) {
        let heading: Vec<&str> = [table.label.as_deref(), table.title.as_deref()].into_iter().flatten().collect();
        let caption = join(&table.caption);
        parts.push(format!("{} {caption}\n{}", heading.join(" "), table.to_text()).trim().to_owned());
    }
    for (position, figure) in article.figures.iter().enumerate() {
        let is_of_other =
            patient.is_some_and(|segment| u32::try_from(position).is_ok_and(|at| !segment.figures.contains(&at)));
        if figure.place.sub_article.is_none() && !is_of_other {
            parts.push(caption(figure, position));
        }
    }
    let mut text = String::new();
    let mut left = max_chars;
    for part in parts.iter().filter(|part| !part.trim().is_empty()) {
        let length = part.chars().count() + 2;
        if length > left {
            text += "[The report goes on.]\n\n";
            break;
        }
        left -= length;
        text += part;
        text += "\n\n";
    }
    text.truncate(text.trim_end().len());
    text
}

fn caption(figure: &Figure, position: usize) -> String {
    let label = figure.label.clone().unwrap_or_else(|| format!("Figure {}", position + 1));
    let texts: Vec<String> =
        figure.title.iter().cloned().chain([join(&figure.group_caption), join(&figure.caption)]).collect();
    let text = texts.iter().filter(|text| !text.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" ");
    format!("{}. {text}", label.trim().trim_end_matches(['.', ':']))
}

fn join(passages: &[Passage]) -> String {
    passages.iter().map(|passage| passage.text.as_str()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::jats;
    use expect_test::expect;

    #[test]
    fn a_report_reads_like_the_article() {
        let xml = "<article><front><article-meta><title-group><article-title>A case of gout</article-title></title-group>\
            <abstract><p>Short.</p></abstract></article-meta></front><body><sec><title>Case</title><p>A man had pain.</p>\
            <fig><label>Figure 1.</label><caption><p>The toe.</p></caption><graphic xmlns:xlink=\"http://www.w3.org/1999/xlink\" xlink:href=\"g1\"/></fig></sec>\
            <sec><title>Discussion</title><p>It was gout.</p></sec></body></article>";
        let article = jats::read(xml.as_bytes(), jats::Limits::default()).unwrap();
        expect![[r#"
            A case of gout

            ABSTRACT

            Short.

            CASE

            A man had pain.

            DISCUSSION

            It was gout.

            Figure 1. The toe."#]]
        .assert_eq(&report(&article, None, 10_000));
        assert!(report(&article, None, 40).ends_with("[The report goes on.]"));
    }
}
