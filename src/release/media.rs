//! Images of cases in a release: which may be there by profile, under a name that is their hash, and how to find the others.

use super::case::{CaseMedia, CaseRows, CaseType, MEDIA};
use super::licence::Profile;
use crate::error::verification;
use crate::record::Hash;
use crate::record::release::{CitationRow, MediaRow};
use crate::record::staged::Citation;
use crate::stage::MediaRef;
use crate::stage::MediaStore;
use crate::store::{fs, raw};
use anyhow::Context;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// How to find the images that a release does not hold.
pub const RECIPES: &str = "recipes/media.jsonl";
/// What to name when a case is passed on.
pub const ATTRIBUTION: &str = "ATTRIBUTION.csv";

/// The rows of a case in `media.parquet`.
pub fn rows(case_id: &str, media: &[CaseMedia], profile: Profile) -> Vec<MediaRow> {
    let row = |(ordinal, image): (u32, &CaseMedia)| {
        let withheld = profile.media_refusal(&image.licence, image.access, image.shown != image.sha256);
        MediaRow {
            case_id: case_id.to_owned(),
            ordinal,
            image_id: image.image_id.clone(),
            sha256: image.sha256.clone(),
            shown_sha256: image.shown.clone(),
            path: withheld.is_none().then(|| format!("media/{}.{}", image.shown, image.extension)),
            withheld: withheld.map(str::to_owned),
            width: image.width,
            height: image.height,
            licence: image.licence.clone(),
            access: image.access,
            attribution: image.attribution.clone(),
        }
    };
    (0u32..).zip(media).map(row).collect()
}

/// A line of `recipes/media.jsonl`.
#[derive(Serialize)]
struct Recipe<'a> {
    case_id: &'a str,
    ordinal: u32,
    /// Of the published file; what is fetched must have it.
    sha256: &'a Hash,
    /// Of the picture that is shown: `filter_media` makes it of the published file where the two differ.
    shown_sha256: &'a Hash,
    /// Package and file in the archive. A file name can name the diagnosis.
    place: &'a str,
    licence: &'a str,
    withheld: &'a str,
}

/// The lines of a case in [`RECIPES`].
pub fn recipes(case_type: &CaseType, rows: &CaseRows) -> anyhow::Result<Vec<String>> {
    let Some(media) = case_type.media else { return Ok(Vec::new()) };
    let media = media(&rows.case)?;
    let rows: Vec<MediaRow> = rows.table(MEDIA)?;
    let mut lines = Vec::new();
    for (row, image) in rows.iter().zip(&media) {
        let Some(withheld) = &row.withheld else { continue };
        lines.push(serde_json::to_string(&Recipe {
            case_id: &row.case_id,
            ordinal: row.ordinal,
            sha256: &row.sha256,
            shown_sha256: &row.shown_sha256,
            place: &image.place,
            licence: &row.licence,
            withheld,
        })?);
    }
    Ok(lines)
}

/// The header of [`ATTRIBUTION`].
pub const ATTRIBUTION_HEADER: &str =
    "case_id,title,authors,journal,year,doi,pmid,pmcid,version,copyright,licence,licence_url,changes";

/// One line of [`ATTRIBUTION`], RFC 4180.
pub fn attribution(mut row: CitationRow) -> anyhow::Result<String> {
    // One line a case, whatever a title holds.
    for text in row.title.iter_mut().chain(&mut row.copyright).chain([&mut row.authors]) {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    writer.serialize(row)?;
    let line = String::from_utf8(writer.into_inner()?)?;
    Ok(line.trim_end().to_owned())
}

/// Copies images into a release, each once.
pub struct MediaWriter<'a> {
    folder: &'a Path,
    store: &'a dyn MediaStore,
    written: BTreeSet<String>,
}

impl<'a> MediaWriter<'a> {
    pub fn create(folder: &'a Path, store: &'a dyn MediaStore) -> anyhow::Result<Self> {
        fs::create_dir(&folder.join("media"))?;
        Ok(Self { folder, store, written: BTreeSet::new() })
    }

    /// Copies what the rows of a case name.
    ///
    /// # Errors
    /// A file that is no longer what it was when the case was built.
    pub fn write(&mut self, rows: &CaseRows) -> anyhow::Result<()> {
        for row in rows.table::<MediaRow>(MEDIA)? {
            let Some(path) = row.path else { continue };
            if !self.written.insert(path.clone()) {
                continue;
            }
            let from = self.store.path(&MediaRef(row.shown_sha256.clone()))?;
            let to = self.folder.join(&path);
            std::fs::copy(&from, &to).with_context(|| format!("copying an image to {path}"))?;
            std::fs::File::open(&to)?.sync_all()?;
            let (found, _) = raw::hash_file(&to)?;
            if found != row.shown_sha256 {
                return Err(verification(format!(
                    "{}: an image of {} has changed since the build; build again",
                    from.display(),
                    row.case_id
                )));
            }
        }
        Ok(())
    }

    pub fn close(self) -> anyhow::Result<()> {
        fs::sync_dir(&self.folder.join("media"))
    }
}

/// The row of `ATTRIBUTION.csv` for a case made of a published article.
pub(super) fn cited(case_id: String, citation: Citation, licence: String, changes: &str) -> CitationRow {
    CitationRow {
        case_id,
        title: citation.title,
        authors: citation.authors.join("; "),
        journal: citation.journal,
        year: citation.year,
        doi: citation.ids.doi,
        pmid: citation.ids.pmid,
        pmcid: citation.ids.pmcid,
        version: citation.version,
        copyright: citation.copyright,
        licence_url: licence_url(&licence),
        licence,
        changes: changes.to_owned(),
    }
}

/// Where the text of a Creative Commons licence stands; empty for anything else.
fn licence_url(licence: &str) -> String {
    if licence == "CC0-1.0" {
        return "https://creativecommons.org/publicdomain/zero/1.0/".to_owned();
    }
    let Some((name, version)) = licence.strip_prefix("CC-").and_then(|rest| rest.rsplit_once('-')) else {
        return String::new();
    };
    if !version.starts_with(|c: char| c.is_ascii_digit()) || licence.contains(' ') {
        return String::new();
    }
    format!("https://creativecommons.org/licenses/{}/{version}/", name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_have_their_text_somewhere() {
        for (licence, url) in [
            ("CC-BY-NC-ND-4.0", "https://creativecommons.org/licenses/by-nc-nd/4.0/"),
            ("CC0-1.0", "https://creativecommons.org/publicdomain/zero/1.0/"),
            ("LicenseRef-CC-BY", ""),
            ("CC-BY-4.0 AND CC-BY-NC-4.0", ""),
        ] {
            assert_eq!(licence_url(licence), url);
        }
    }
}
