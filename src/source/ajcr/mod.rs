//! Case reports of the American Journal of Case Reports: pages of the publisher, and the list of their final diagnoses
//! (MTDiag paper, section B.3).
//!
//! What is where on a page is said in `sources/ajcr.toml` alone ([`PageRules`]); a page that has another shape is told by what
//! was not found. [`page`] reads one page, with [`offsets`] that keep the place of every word and [`tree`] that walks once over
//! what the parser made; [`folder`] joins pages and lists, [`list`] reads a list.

mod body;
mod decode;
pub mod folder;
pub mod list;
pub mod offsets;
pub mod page;
pub mod selectors;
mod summary;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod tree;

pub use folder::{Folder, ListExit};
pub use offsets::PageLimits;
pub use page::{Page, PageError, PageFault};
pub use selectors::PageRules;
pub use summary::{SummaryRow, summary};
