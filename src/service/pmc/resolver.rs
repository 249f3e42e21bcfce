//! What a service has to offer, so that one can replace another: services for articles move within months.
//!
//! A [`Search`] turns a published query into hits, a [`Resolver`] an id into a [`Package`]: which version, what is said of
//! it, and its files with their hashes. Nothing else of the project knows which services there are.

use super::queries::Published;
use crate::service::fetch::kinds::FileKind;
use crate::service::fetch::paging::{Hit, SearchProvenance};
use crate::service::fetch::{Fetcher, Progress};
use jiff::civil::Date;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};

/// The number of an article in PubMed Central; written with `PMC` before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pmcid(pub u64);

impl Pmcid {
    /// `PMC` and digits, in any case; nothing may follow.
    pub fn parse(text: &str) -> Option<Self> {
        let (prefix, digits) = text.trim().split_at_checked(3)?;
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let number = digits.parse().ok().filter(|number| is_number && *number > 0)?;
        prefix.eq_ignore_ascii_case("PMC").then_some(Self(number))
    }
}

impl fmt::Display for Pmcid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PMC{}", self.0)
    }
}

/// What services need to do their work.
pub struct Work<'a> {
    pub fetcher: &'a Fetcher<'a>,
    /// The raw folder of the source.
    pub folder: &'a Path,
    pub max_file_bytes: u64,
    pub max_article_bytes: u64,
    pub progress: &'a dyn Fn(Progress<'_>),
}

/// What a service found for one query.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub hits: Vec<Hit>,
    pub provenance: SearchProvenance,
    /// How the service understood the query, where it says so.
    pub understood: Option<String>,
}

/// A service that finds articles.
pub trait Search {
    fn service(&self) -> &'static str;

    fn host(&self) -> String;

    /// The query as this service gets it.
    ///
    /// # Errors
    /// A query that cannot be said in its syntax.
    fn query(&self, published: Published, before: Date) -> anyhow::Result<String>;

    /// In what its queries are not the published ones.
    fn differences(&self) -> &'static [&'static str];

    /// All pages of one search.
    ///
    /// # Errors
    /// A service that refuses, fails or answers something else, and a number of hits that is not the announced one.
    fn search(&self, work: &Work<'_>, query: &str, date: Date) -> anyhow::Result<Found>;

    /// Adds the PMCIDs that the hits of this service lack.
    ///
    /// # Errors
    /// As [`Self::search`].
    fn identify(&self, _work: &Work<'_>, _hits: &mut [Hit]) -> anyhow::Result<()> {
        Ok(())
    }
}

/// A service that has articles.
pub trait Resolver {
    fn service(&self) -> &'static str;

    fn host(&self) -> String;

    /// Asks for articles that the service is known to have. Where it does not have them, its other answers are worth
    /// nothing, least of all that an article is not there.
    ///
    /// # Errors
    /// A service that does not have them; the message names its host.
    fn check(&self, work: &Work<'_>, sentinels: &[Pmcid]) -> anyhow::Result<()>;

    /// One answer for each id, in their order.
    ///
    /// # Errors
    /// A service that does not work as such. What is wrong with one article is its answer.
    fn resolve(&self, work: &Work<'_>, ids: &[Pmcid]) -> anyhow::Result<Vec<Resolved>>;

    /// Where the service has the XML of an article alone, if it has such a place.
    fn full_text(&self, _id: Pmcid) -> anyhow::Result<Option<Url>> {
        Ok(None)
    }
}

/// What a service says of one id.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    Package(Box<Package>),
    /// It does not have the article.
    Absent,
    /// It should have it, but something is wrong.
    Failed(String),
}

/// One version of an article with its files.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    pub pmcid: Pmcid,
    /// The highest one. 0 where the service tells none.
    pub version: u32,
    /// All versions, ascending.
    pub versions: Vec<u32>,
    pub service: &'static str,
    pub metadata: Metadata,
    /// Whether the service may give it away; without it there are no files.
    pub is_open: bool,
    /// The article's XML first.
    pub files: Vec<PackageFile>,
    /// Files that are left out, and why.
    pub left_out: Vec<String>,
}

impl Package {
    /// `PMC12.2`: the name of its folder, of its XML and of its record.
    pub fn name(&self) -> String {
        format!("{}.{}", self.pmcid, self.version)
    }
}

/// A file of a package.
#[derive(Clone, Debug, PartialEq)]
pub struct PackageFile {
    /// In the folder of the package.
    pub name: String,
    pub origin: Origin,
    pub kind: FileKind,
    pub bytes: Option<u64>,
    /// 32 lower-case hexadecimal digits.
    pub md5: Option<String>,
}

/// Where a file comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    Web(Url),
    /// A file of this machine.
    Local(PathBuf),
    /// A member of a `.tar.gz`, by its full name there.
    Member {
        archive: PathBuf,
        name: String,
    },
}

/// What the archive says of one version: `metadata/PMC<id>.<version>.json`. Further keys are left alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    pub pmcid: String,
    pub version: u32,
    #[serde(default)]
    pub pmid: Option<u64>,
    #[serde(default)]
    pub doi: Option<String>,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub citation: Option<String>,
    /// Being in the store proves nothing; this does.
    #[serde(default)]
    pub is_pmc_openaccess: Option<bool>,
    #[serde(default)]
    pub is_manuscript: Option<bool>,
    #[serde(default)]
    pub is_historical_ocr: Option<bool>,
    #[serde(default)]
    pub is_retracted: Option<bool>,
    /// `CC BY`, without a version. Null is unknown, and unknown is closed.
    #[serde(default)]
    pub license_code: Option<String>,
    #[serde(default)]
    pub xml_url: Option<String>,
    /// Addresses, or objects with an `url`.
    #[serde(default)]
    pub media_urls: Option<Value>,
}

impl Metadata {
    /// Reads a record and checks that it is the one asked for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &[u8], pmcid: Pmcid, version: u32) -> Result<Self, String> {
        let metadata: Self = serde_json::from_slice(bytes).map_err(|error| format!("not a record: {error}"))?;
        let is_asked = Pmcid::parse(&metadata.pmcid) == Some(pmcid) && metadata.version == version;
        if is_asked {
            return Ok(metadata);
        }
        Err(format!("the record of {pmcid}.{version} is one of {}.{}", metadata.pmcid, metadata.version))
    }

    /// The addresses of media; `None` where the record does not speak of any.
    ///
    /// # Errors
    /// A list of something else.
    pub fn media(&self) -> Result<Option<Vec<&str>>, String> {
        let Some(media) = self.media_urls.as_ref().filter(|media| !media.is_null()) else { return Ok(None) };
        let entries = media.as_array().ok_or("`media_urls` is not a list")?;
        let address = |entry| url_of(entry).ok_or("`media_urls` has an entry without address");
        Ok(Some(entries.iter().map(address).collect::<Result<_, _>>()?))
    }
}

fn url_of(entry: &Value) -> Option<&str> {
    entry.as_str().or_else(|| entry.get("url")?.as_str())
}

/// What a file must be by its name: the article's XML, a picture, or something else that is no page.
pub fn kind_of(name: &str) -> FileKind {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    match extension.as_str() {
        "xml" | "nxml" => FileKind::Xml { roots: vec!["article".to_owned()] },
        "jpg" | "jpeg" | "png" | "gif" | "tif" | "tiff" | "webp" | "bmp" => FileKind::Image,
        _ => FileKind::Media,
    }
}

/// Whether a name can be that of a file in a package: one part, nothing that steers a terminal or hides.
pub fn is_safe_name(name: &str) -> bool {
    let plain = !name.contains(['/', '\\']) && !name.chars().any(char::is_control);
    plain && !name.is_empty() && !name.starts_with('.') && !crate::store::raw::is_name_of_fetch(name)
}

/// Keeps what the caps allow: a file that is too large is left out, an article that is too large is refused.
///
/// # Errors
/// Why the article is refused.
pub fn cap(package: &mut Package, work: &Work<'_>) -> Result<(), String> {
    let mut total = 0u64;
    let mut kept = Vec::new();
    for file in std::mem::take(&mut package.files) {
        let bytes = file.bytes.unwrap_or(0);
        if bytes > work.max_file_bytes {
            let why = format!("{} has {bytes} bytes, {} are allowed", file.name, work.max_file_bytes);
            if kept.is_empty() {
                return Err(why);
            }
            package.left_out.push(why);
            continue;
        }
        total = total.saturating_add(bytes);
        kept.push(file);
    }
    package.files = kept;
    if total > work.max_article_bytes {
        return Err(format!("its files have {total} bytes, {} are allowed", work.max_article_bytes));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_whole_numbers_behind_their_prefix() {
        for (text, expected) in [
            ("PMC12", Some(12)),
            (" pmc0012\n", Some(12)),
            ("PMC", None),
            ("PMC12.1", None),
            ("PMC+12", None),
            ("12", None),
            ("PMC0", None),
            ("ß€12", None),
        ] {
            assert_eq!(Pmcid::parse(text).map(|id| id.0), expected, "{text:?}");
        }
    }

    #[test]
    fn a_record_is_the_one_asked_for_and_says_nothing_where_it_is_silent() {
        let text = br#"{"pmcid": "PMC12", "version": 2, "license_code": null, "new_key": [1]}"#;
        let metadata = Metadata::parse(text, Pmcid(12), 2).unwrap();
        assert_eq!((metadata.license_code.as_deref(), metadata.is_pmc_openaccess), (None, None));
        assert_eq!(metadata.media(), Ok(None));
        assert_eq!(Metadata::parse(text, Pmcid(12), 1).unwrap_err(), "the record of PMC12.1 is one of PMC12.2");
        let media = |text: &str| {
            let media_urls = Some(serde_json::from_str(text).unwrap());
            Metadata { media_urls, ..Metadata::default() }.media().map(|urls| urls.map(|urls| urls.join(" ")))
        };
        assert_eq!(
            media(r#"["s3://b/a.jpg", {"url": "s3://b/c.gif"}]"#),
            Ok(Some("s3://b/a.jpg s3://b/c.gif".to_owned()))
        );
        assert_eq!(media("null"), Ok(None));
        assert!(media("[1]").is_err() && media(r#""a""#).is_err());
    }

    #[test]
    fn names_that_leave_the_folder_or_hide_are_none() {
        for name in ["", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a\nb", "fetch.lock.json", "x.part"] {
            assert!(!is_safe_name(name), "{name:?}");
        }
        assert!(is_safe_name("Figure 1 (ä).JPG"));
    }
}
