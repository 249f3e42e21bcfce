//! Does an article stand? Retracted articles, notices of retraction, and corrections are different states, and an erratum
//! is no retraction. Links are read as PubMed Central writes them: a notice points to its `retracted-article`, the
//! retracted article to its notice by `retraction-forward`.

use super::front::related;
use super::tags::Tag;
use super::tree::Element;
use crate::record::article::{Article, EditorialState};

/// Decides the state by article type, title, subjects, events and links. The gravest counts, a notice before what it says
/// of another article.
pub fn read(element: Element<'_, '_>, article: &mut Article) {
    use EditorialState::{ConcernNotice, Corrected, CorrectionNotice, OfConcern, Retracted, RetractionNotice};
    let mut found: Vec<(EditorialState, String)> = Vec::new();
    let article_type = article.article_type.as_deref().unwrap_or_default().to_ascii_lowercase();
    let by_type = match article_type.as_str() {
        "retraction" | "partial-retraction" | "withdrawal" => Some(RetractionNotice),
        "correction" | "erratum" | "corrigendum" | "addendum" => Some(CorrectionNotice),
        "expression-of-concern" => Some(ConcernNotice),
        "retracted-article" => Some(Retracted),
        _ => None,
    };
    found.extend(by_type.map(|state| (state, format!("article-type `{article_type}`"))));
    let title = article.title.as_deref().unwrap_or_default();
    found.extend(by_title(title).map(|state| (state, format!("title `{title}`"))));
    for subject in &article.subjects {
        let state = match subject.to_ascii_lowercase().as_str() {
            "retraction" | "retraction notice" | "retraction note" => RetractionNotice,
            "retracted" | "retracted article" | "retracted publication" => Retracted,
            "erratum" | "correction" | "corrigendum" | "published erratum" => CorrectionNotice,
            "expression of concern" => ConcernNotice,
            _ => continue,
        };
        found.push((state, format!("subject `{subject}`")));
    }
    for date in &article.dates {
        let event = date.date_type.as_deref().unwrap_or_default();
        match event {
            "retracted" | "retraction" => found.push((Retracted, format!("event `{event}`"))),
            "corrected" | "correction" => found.push((Corrected, format!("event `{event}`"))),
            _ => {}
        }
    }
    let body_links = element.elements().filter(|part| matches!(part.tag(), Tag::Body | Tag::Back));
    let body_links = body_links.flat_map(|part| part.descendants().filter(|below| below.tag() == Tag::RelatedArticle));
    article.related_articles.extend(body_links.map(related));
    let is_correction = by_type == Some(CorrectionNotice);
    for link in &article.related_articles {
        let relation = link.relation.as_deref().unwrap_or_default();
        let state = match relation {
            "retracted-article" | "partial-retraction" => RetractionNotice,
            "retraction-forward" | "retraction" => Retracted,
            // A correction says so by its type; another article with this link is itself a corrected version.
            "corrected-article" if is_correction => CorrectionNotice,
            "corrected-article" | "correction-forward" | "corrected-article-forward" | "republished-article" => {
                Corrected
            }
            "object-of-concern" => ConcernNotice,
            "concern-forward" | "expression-of-concern" => OfConcern,
            _ => continue,
        };
        found.push((state, format!("related-article `{relation}`")));
    }
    let gravity = |state: EditorialState| match state {
        RetractionNotice => 6,
        Retracted => 5,
        CorrectionNotice => 4,
        ConcernNotice => 3,
        OfConcern => 2,
        Corrected => 1,
        EditorialState::Standing => 0,
    };
    article.editorial = found.iter().map(|(state, _)| *state).max_by_key(|state| gravity(*state)).unwrap_or_default();
    article.editorial_evidence = found.into_iter().map(|(_, evidence)| evidence).collect();
}

fn by_title(title: &str) -> Option<EditorialState> {
    let title = title.trim_start_matches(['[', '(', '*', ' ']).to_ascii_lowercase();
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| title.starts_with(prefix));
    if begins(&["retracted:", "retracted article", "retracted.", "retracted]", "withdrawn:", "withdrawn article"]) {
        return Some(EditorialState::Retracted);
    }
    if begins(&[
        "retraction:",
        "retraction to:",
        // Not "retraction of", which eyelids and tendons do as well.
        "retraction of:",
        "retraction of “",
        "retraction note",
        "retraction notice",
        "notice of retraction",
        "statement of retraction",
        "withdrawal:",
    ]) {
        return Some(EditorialState::RetractionNotice);
    }
    if begins(&[
        "erratum",
        "corrigendum",
        "correction:",
        "correction to:",
        "correction to “",
        "author correction",
        "publisher correction",
    ]) {
        return Some(EditorialState::CorrectionNotice);
    }
    if begins(&["expression of concern", "editorial expression of concern"]) {
        return Some(EditorialState::ConcernNotice);
    }
    None
}
