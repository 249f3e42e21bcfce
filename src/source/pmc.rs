//! A folder of PubMed Central packages: which files are articles, what belongs to each, what the archive says of them, and
//! which query found them.
//!
//! ```text
//! PMC<id>.<version>/PMC<id>.<version>.xml   the article; all other files of the folder are its package
//! metadata/PMC<id>.<version>.json           what the archive says of it: licence, open access, retraction
//! selection.jsonl                           which query found it: {"pmcid": …, "version": …, "specialty": …}
//! <anything>.xml                            an article without package
//! ```
//!
//! The layout is that of the object store `pmc-oa-opendata`; folders of other names are packages too if they hold one XML
//! file.

use crate::record::article::{License, LicenseFamily, PackageFile};
use crate::record::provenance::{RESERVED, UNSTATED};
use crate::record::raw::{RawFile, RawSource};
use crate::store::raw;
use crate::text::strict_json::parse_value;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;

/// Folder of the archive's records about articles.
pub const METADATA: &str = "metadata";
/// File that says which query found an article.
pub const SELECTION: &str = "selection.jsonl";
/// Files beside the articles are small; a larger one is not what it should be.
const MAX_SIDE_BYTES: u64 = 256 << 20;
const MAX_METADATA_BYTES: u64 = 1 << 20;

/// The articles of a folder, by path.
pub struct Packages<'a> {
    source: &'a RawSource,
    by_path: BTreeMap<&'a str, &'a RawFile>,
    /// Folder → files, below the raw folder.
    folders: BTreeMap<&'a str, Vec<&'a RawFile>>,
}

/// Whether a name is that of an XML file, packed or not.
fn is_xml(path: &str) -> bool {
    let name = path.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.ends_with(".xml") || name.ends_with(".nxml")
}

/// The folder of a path, with its slash; empty for none.
fn folder_of(path: &str) -> &str {
    path.rfind('/').and_then(|at| path.get(..=at)).unwrap_or_default()
}

/// `PMC123.2` → `PMC123`, 2; also from `PMC123.2.xml`.
pub fn versioned_id(name: &str) -> Option<(String, Option<u32>)> {
    let digits_from = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = name.strip_prefix("PMC")?;
    let n = digits_from(rest);
    let (id, rest) = (rest.get(..n)?, rest.get(n..)?);
    if id.is_empty() {
        return None;
    }
    let version = rest.strip_prefix('.').and_then(|rest| rest.get(..digits_from(rest))?.parse().ok());
    Some((format!("PMC{id}"), version))
}

impl<'a> Packages<'a> {
    pub fn new(source: &'a RawSource) -> Self {
        let mut folders: BTreeMap<&str, Vec<&RawFile>> = BTreeMap::new();
        for file in &source.files {
            folders.entry(folder_of(&file.path)).or_default().push(file);
        }
        let by_path = source.files.iter().map(|file| (file.path.as_str(), file)).collect();
        Self { source, by_path, folders }
    }

    /// Files that should be articles, sorted by path.
    pub fn articles(&self) -> impl Iterator<Item = &'a RawFile> {
        let metadata = format!("{}/{METADATA}/", self.source.name);
        self.by_path.values().copied().filter(move |file| is_xml(&file.path) && !file.path.starts_with(&metadata))
    }

    pub fn file(&self, path: &str) -> Option<&'a RawFile> {
        self.by_path.get(path).copied()
    }

    /// What lies beside an article in its folder. In a folder of several articles only what begins with the name of this one.
    pub fn files(&self, article: &RawFile) -> Vec<(PackageFile, &'a RawFile)> {
        let folder = folder_of(&article.path);
        // Directly in the folder of the source there are no packages.
        if folder.matches('/').count() < 2 {
            return Vec::new();
        }
        let files = self.folders.get(folder).map(Vec::as_slice).unwrap_or_default();
        let is_alone = files.iter().filter(|file| is_xml(&file.path)).count() == 1;
        let stem = article.path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or_default();
        let of_article = |name: &str| is_alone || (!stem.is_empty() && name.starts_with(stem));
        let mut found = Vec::new();
        for file in files.iter().filter(|file| !is_xml(&file.path)) {
            let name = file.path.get(folder.len()..).unwrap_or_default();
            if of_article(name) {
                found.push((
                    PackageFile { name: name.to_owned(), sha256: file.sha256.clone(), bytes: file.bytes },
                    *file,
                ));
            }
        }
        found
    }

    /// The version of the article by the names of its folder and file.
    pub fn version(&self, article: &RawFile) -> Option<u32> {
        article.path.rsplit('/').take(2).find_map(|part| versioned_id(part)?.1)
    }

    /// What the archive says of an article.
    ///
    /// # Errors
    /// A file that is not such a record: its rights are then not what they seem.
    pub fn metadata(&self, article: &RawFile) -> anyhow::Result<Option<Metadata>> {
        let name = article.path.rsplit('/').next().unwrap_or_default();
        let stem = name.strip_suffix(".gz").unwrap_or(name);
        let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
        let path = format!("{}/{METADATA}/{stem}.json", self.source.name);
        let Some(file) = self.by_path.get(path.as_str()) else { return Ok(None) };
        let text = read_text(file, MAX_METADATA_BYTES)?;
        let parsed: Metadata = serde_json::from_str(&text)
            .map_err(|error| anyhow::anyhow!("{path}: not a record of the archive: {error}"))?;
        Ok(Some(parsed))
    }

    /// Which query found which article.
    ///
    /// # Errors
    /// A line that is not such an entry, or two that differ about one article.
    pub fn selection(&self) -> anyhow::Result<Selection> {
        let path = format!("{}/{SELECTION}", self.source.name);
        let Some(file) = self.by_path.get(path.as_str()) else { return Ok(Selection::default()) };
        Selection::parse(&path, &read_text(file, MAX_SIDE_BYTES)?)
    }
}

fn read_text(file: &RawFile, limit: u64) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    raw::open(file, 0)?.take(limit + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(bytes.len() as u64 <= limit, "{}: larger than {limit} bytes", file.path);
    String::from_utf8(bytes).map_err(|error| anyhow::anyhow!("{}: not UTF-8: {error}", file.path))
}

/// A record of the archive about one version of an article; further keys are left alone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Metadata {
    pub pmcid: String,
    /// `CC BY-NC`, without version; null in old records, which says nothing.
    #[serde(default)]
    pub license_code: Option<String>,
    /// Being in the object store proves nothing; this does.
    #[serde(default)]
    pub is_pmc_openaccess: Option<bool>,
    #[serde(default)]
    pub is_manuscript: Option<bool>,
    #[serde(default)]
    pub is_retracted: Option<bool>,
}

/// Specialty by article.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(BTreeMap<String, Option<String>>);

impl Selection {
    pub fn parse(path: &str, text: &str) -> anyhow::Result<Self> {
        let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let value = parse_value(line).map_err(|error| anyhow::anyhow!("{path}:{number}: {error}"))?;
            let pmcid = value.get("pmcid").and_then(Value::as_str).and_then(versioned_id);
            let Some((pmcid, _)) = pmcid else {
                anyhow::bail!("{path}:{number}: `pmcid` must be like \"PMC123\"");
            };
            let specialty = match value.get("specialty") {
                None | Some(Value::Null) => None,
                Some(Value::String(specialty)) if !specialty.trim().is_empty() => Some(specialty.trim().to_owned()),
                Some(_) => anyhow::bail!("{path}:{number}: `specialty` must be a name or null"),
            };
            if let Some(before) = found.get(&pmcid)
                && *before != specialty
            {
                anyhow::bail!(
                    "{path}:{number}: {pmcid} has another specialty than on an earlier line; an article has one"
                );
            }
            found.insert(pmcid, specialty);
        }
        Ok(Self(found))
    }

    pub fn specialty(&self, pmcid: &str) -> Option<&str> {
        self.0.get(pmcid)?.as_deref()
    }
}

/// The licence that a code of the archive names, such as `CC BY-NC`; none if it names none.
pub fn license_of_code(code: &str) -> Option<License> {
    let words: Vec<String> =
        code.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').map(str::to_ascii_uppercase).collect();
    let has = |word: &str| words.iter().any(|known| known == word);
    if has("CC0") {
        return Some(License { family: LicenseFamily::Cc0, ..License::default() });
    }
    (has("CC") && has("BY")).then(|| License {
        family: LicenseFamily::CcBy,
        non_commercial: has("NC"),
        no_derivatives: has("ND"),
        share_alike: has("SA"),
        version: words
            .iter()
            .find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()))
            .cloned(),
    })
}

/// A licence as an SPDX expression. Creative Commons licences without a version are `LicenseRef-CC-BY-…`: what they demand is
/// known, their text is not.
pub fn spdx(license: &License) -> String {
    match license.family {
        LicenseFamily::Unknown => UNSTATED.to_owned(),
        LicenseFamily::Reserved => RESERVED.to_owned(),
        LicenseFamily::PublicDomain => "CC-PDDC".to_owned(),
        LicenseFamily::Cc0 => "CC0-1.0".to_owned(),
        LicenseFamily::CcBy => {
            let mut name = "CC-BY".to_owned();
            for (flag, part) in [
                (license.non_commercial, "-NC"),
                (license.no_derivatives, "-ND"),
                (license.share_alike && !license.no_derivatives, "-SA"),
            ] {
                if flag {
                    name += part;
                }
            }
            match &license.version {
                Some(version) if spdx::license_id(&format!("{name}-{version}")).is_some() => {
                    format!("{name}-{version}")
                }
                _ => format!("LicenseRef-{name}"),
            }
        }
    }
}

/// All that two statements about one article demand, and whether they differ. One that says nothing demands nothing.
pub fn strictest_license(one: &License, other: &License) -> (License, bool) {
    match (one.family, other.family) {
        (LicenseFamily::Unknown, _) => (other.clone(), false),
        (_, LicenseFamily::Unknown) => (one.clone(), false),
        (a, b) => {
            let differ = a != b
                || (one.non_commercial, one.no_derivatives, one.share_alike)
                    != (other.non_commercial, other.no_derivatives, other.share_alike)
                || matches!((&one.version, &other.version), (Some(one), Some(other)) if one != other);
            let family = a.max(b);
            let version = if !differ || family == LicenseFamily::CcBy && a == b {
                one.version.clone().or_else(|| other.version.clone())
            } else if a == family {
                one.version.clone()
            } else {
                other.version.clone()
            };
            let license = License {
                family,
                non_commercial: one.non_commercial || other.non_commercial,
                no_derivatives: one.no_derivatives || other.no_derivatives,
                share_alike: one.share_alike || other.share_alike,
                version,
            };
            (license, differ)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_ids_and_versions() {
        assert_eq!(versioned_id("PMC12.3"), Some(("PMC12".into(), Some(3))));
        assert_eq!(versioned_id("PMC12.10.xml"), Some(("PMC12".into(), Some(10))));
        assert_eq!(versioned_id("PMC12.xml"), Some(("PMC12".into(), None)));
        assert_eq!(versioned_id("article.xml"), None);
    }

    #[test]
    fn codes_of_the_archive_are_licences() {
        let shown = |code: &str| license_of_code(code).map(|license| spdx(&license));
        assert_eq!(shown("CC BY").as_deref(), Some("LicenseRef-CC-BY"));
        assert_eq!(shown("CC BY-NC-ND").as_deref(), Some("LicenseRef-CC-BY-NC-ND"));
        assert_eq!(shown("CC BY-NC-SA 4.0").as_deref(), Some("CC-BY-NC-SA-4.0"));
        assert_eq!(shown("CC0").as_deref(), Some("CC0-1.0"));
        assert_eq!(shown("NO-CC CODE"), None);
        assert_eq!(shown("none"), None);
    }

    #[test]
    fn two_statements_demand_what_either_does() {
        let of = |code: &str| license_of_code(code).unwrap();
        let (both, differ) = strictest_license(&of("CC BY 4.0"), &of("CC BY"));
        assert_eq!((spdx(&both).as_str(), differ), ("CC-BY-4.0", false));
        let (both, differ) = strictest_license(&of("CC BY 4.0"), &of("CC BY-NC-ND"));
        assert_eq!((spdx(&both).as_str(), differ), ("CC-BY-NC-ND-4.0", true));
        let reserved = License { family: LicenseFamily::Reserved, ..License::default() };
        assert_eq!(spdx(&strictest_license(&reserved, &of("CC0")).0), RESERVED);
        assert_eq!(spdx(&strictest_license(&License::default(), &License::default()).0), UNSTATED);
    }

    #[test]
    fn a_selection_has_one_specialty_an_article() {
        let selection =
            Selection::parse("s", "{\"pmcid\":\"PMC1\",\"specialty\":\"Oncology\"}\n\n{\"pmcid\":\"PMC2\"}").unwrap();
        assert_eq!((selection.specialty("PMC1"), selection.specialty("PMC2")), (Some("Oncology"), None));
        let twice = "{\"pmcid\":\"PMC1\",\"specialty\":\"A\"}\n{\"pmcid\":\"PMC1\",\"specialty\":\"B\"}";
        assert!(Selection::parse("s", twice).unwrap_err().to_string().starts_with("s:2: PMC1 has another"));
        assert!(Selection::parse("s", "{\"pmcid\": 7}").is_err());
    }
}
