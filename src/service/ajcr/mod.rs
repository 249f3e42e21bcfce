//! Pages of the American Journal of Case Reports (`casemill sources fetch ajcr`): which articles, and how their pages are
//! got. The MTDiag paper (section B.3) starts from a published list of DOIs with final diagnoses.
//!
//! ```text
//! list ── ids ── resolver (doi.org) ── redirects to allowed hosts ── page ── its full text ── checks ── AJCR<n>.html
//! ```
//!
//! Whoever fetches pages needs the publisher's leave to do so: robots.txt and terms of use are not read here. Requests
//! leave one after another, slowly, and stop when the server shows that it does not want them.
//!
//! Below the raw folder:
//!
//! ```text
//! AJCR<n>.html           the page of an article, as the server sent it
//! *.csv, *.xlsx          lists of articles; one given by --list is copied here
//! fetch.lock.json        address, hash and day of each page
//! ```

mod ask;
mod page;
pub mod plan;
