//! The processing summary: what became of each listed article and each page (MTDiag paper, section B.3).

use super::folder::{Folder, Outcome, PAGE_MISSING, read_page};
use super::{PageLimits, PageRules};
use crate::record::article::{Article, TableContent};
use crate::record::raw::RawSource;
use crate::staging::sections::roles;
use crate::staging::series::series;
use serde::Serialize;

/// A row of the summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SummaryRow {
    /// `AJCR937787`; empty where nothing tells it.
    pub ajcr_id: String,
    pub doi: String,
    /// The page, or the list of a row that became no article.
    pub file: String,
    /// `parsed`, `page_missing`, or why there is no article.
    pub status: String,
    pub detail: String,
    /// Patients whose text is told apart, at least one of a page that was read.
    pub n_cases: u32,
    pub n_sections: u32,
    pub n_paragraphs: u32,
    pub n_figures: u32,
    /// Of cells.
    pub n_tables: u32,
    pub n_image_tables: u32,
    pub n_references: u32,
    /// In the list.
    pub n_diagnoses: u32,
}

fn count<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// One row for each page and for each row of a list that has none, pages first, by path.
///
/// # Errors
/// A file that cannot be read, or a list that is none.
pub fn summary(source: &RawSource, rules: &PageRules, limits: PageLimits) -> anyhow::Result<Vec<SummaryRow>> {
    let folder = Folder::read(source, rules, limits)?;
    let mut rows = Vec::new();
    for page in folder.pages() {
        let ajcr_id = page.ajcr_id.clone().unwrap_or_default();
        let listed = folder.listed(&ajcr_id);
        let row = SummaryRow {
            doi: super::list::doi_of(&ajcr_id).unwrap_or_default(),
            file: page.file.path.clone(),
            n_diagnoses: listed.map_or(0, |listed| count(&listed.article.diagnoses)),
            ajcr_id,
            ..SummaryRow::default()
        };
        let failed = |status: &str, detail: String| SummaryRow { status: status.to_owned(), detail, ..row.clone() };
        rows.push(match read_page(page, rules, limits)? {
            Outcome::Read(page) => {
                SummaryRow { status: "parsed".to_owned(), detail: page.flags.join("; "), ..counted(row, &page.article) }
            }
            Outcome::Duplicate => failed("duplicate_page", "another file of the article comes before".to_owned()),
            Outcome::IdMismatch(detail) => failed("id_mismatch", detail),
            Outcome::Fault(error) => failed(error.fault.as_str(), error.detail),
        });
    }
    for (list, exits) in folder.lists() {
        rows.extend(exits.iter().map(|exit| SummaryRow {
            ajcr_id: exit.row.ajcr_id.clone(),
            doi: exit.row.doi.clone(),
            file: list.path.clone(),
            status: exit.reason.to_owned(),
            detail: if exit.reason == PAGE_MISSING {
                format!("line {}", exit.row.line)
            } else {
                format!("line {}: {}", exit.row.line, exit.detail)
            },
            n_diagnoses: count(&exit.row.diagnoses),
            ..SummaryRow::default()
        }));
    }
    Ok(rows)
}

fn counted(row: SummaryRow, article: &Article) -> SummaryRow {
    let of = |content: TableContent| {
        u32::try_from(article.tables.iter().filter(|table| table.content == content).count()).unwrap_or(u32::MAX)
    };
    SummaryRow {
        n_cases: count(&series(article, &roles(article)).patients).max(1),
        n_sections: count(&article.sections),
        n_paragraphs: count(&article.paragraphs),
        n_figures: count(&article.figures),
        n_tables: of(TableContent::Grid),
        n_image_tables: of(TableContent::Image),
        n_references: count(&article.references),
        ..row
    }
}
