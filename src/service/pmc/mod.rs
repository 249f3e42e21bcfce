//! Case reports of PubMed Central: which articles, and how their packages are got (`casemill sources fetch pmc`).
//!
//! ```text
//! queries ── Search (eutils, europepmc) ── selection ── Resolver (opendata, europepmc, local) ── packages ── files
//! ```
//!
//! The paper (sections 4.1 and 4.1.1, Supplementary Information C) searches PubMed by specialty and takes XML and images
//! from the Open Access subset. The archive's file server and its service for packages were closed in 2026; since then
//! articles lie in the object store `pmc-oa-opendata`, a folder for each version. Services move within months, so they
//! are adapters behind two traits in [`resolver`], and their hosts are settings of `sources/pmc.toml`.
//!
//! Below the raw folder:
//!
//! ```text
//! PMC<id>.<version>/<file>           the article's XML and what belongs to it
//! metadata/PMC<id>.<version>.json    what the archive says of it
//! selection.jsonl                    which query found which article
//! outcomes.jsonl                     what became of each article, also of those without files
//! search.json                        queries, totals and the day of the search
//! fetch.lock.json                    address, hashes, licence and day of each file
//! ```

pub mod europepmc;
pub mod eutils;
pub mod local;
pub mod opendata;
pub mod plan;
pub mod queries;
pub mod resolver;
