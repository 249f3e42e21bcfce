//! Which file of an article's package a reference in its XML means. References come without extension, with that of a
//! file which was converted since (`.tif` for a delivered `.jpg`), or in other letter case, and a package may hold a
//! small GIF beside the full picture.
//!
//! A file is meant when its whole name, or its whole name without the extension, is the reference's: a name that only
//! begins alike never is (`case.1` and `case.12.jpg`). What follows the last dot is an extension only if it is a known
//! one, since references end in numbers too (`2016-6270491.001`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Extensions of pictures in the order in which they are taken: full pictures by how surely they are read, and last
/// GIF, which packages use for small previews.
pub const PICTURE_EXTENSIONS: &[&str] = &["jpg", "jpeg", "png", "tif", "tiff", "webp", "bmp", "gif"];

/// Extensions that a reference may carry though no picture is taken by them.
const OTHER_EXTENSIONS: &[&str] = &["eps", "ps", "pdf", "svg", "ai", "psd", "emf", "wmf", "heic", "jp2"];

/// The file that a reference means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileMatch {
    /// As the package spells it.
    pub file: String,
    pub reason: MatchReason,
    /// Whether it may be a small preview: a GIF that the reference does not name.
    pub perhaps_preview: bool,
    /// What else fits, in the order in which it would have been taken.
    pub others: Vec<String>,
}

/// Why a file was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchReason {
    /// The file's name is the reference's, perhaps in another folder.
    Name,
    /// The name itself, in other letter case.
    NameInOtherCase,
    /// The reference has no extension; the file has the first that fits.
    ExtensionAdded,
    /// The reference has an extension that the package lacks.
    ExtensionReplaced,
}

/// Why no file was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    #[error("the reference `{0}` is empty, absolute, leads out of the package or holds control characters")]
    Unsafe(String),
    #[error("the reference `{0}` is an address, not a file of the package")]
    Address(String),
    #[error("the package has no file for the reference `{0}`")]
    Missing(String),
    #[error("the reference `{reference}` fits `{first}` and `{second}` alike")]
    Ambiguous { reference: String, first: String, second: String },
}

/// Finds the file of a package that a reference means. The order of `available` plays no part.
///
/// # Errors
/// When the reference is refused, fits nothing, or fits two files alike.
pub fn match_files(href: &str, available: &[&str]) -> Result<FileMatch, MatchError> {
    let reference = href.trim();
    if let Some((scheme, _)) = reference.split_once("://")
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    {
        return Err(MatchError::Address(reference.to_owned()));
    }
    if !is_safe(reference) {
        return Err(MatchError::Unsafe(reference.escape_debug().to_string()));
    }
    let (folder, name) = split_folder(reference);
    let (stem, extension) = split_extension(name);
    let mut found: Vec<(Rank, &str)> = available
        .iter()
        .filter(|file| is_safe(file))
        .filter_map(|file| Some((rank(folder, name, stem, extension, file)?, *file)))
        .collect();
    found.sort();
    found.dedup();
    let mut found = found.into_iter();
    let Some((best, file)) = found.next() else {
        return Err(MatchError::Missing(reference.to_owned()));
    };
    let rest: Vec<(Rank, &str)> = found.collect();
    if let Some((rank, second)) = rest.first()
        && *rank == best
    {
        return Err(MatchError::Ambiguous {
            reference: reference.to_owned(),
            first: file.to_owned(),
            second: (*second).to_owned(),
        });
    }
    let is_gif = split_extension(file).1.is_some_and(|extension| extension.eq_ignore_ascii_case("gif"));
    Ok(FileMatch {
        file: file.to_owned(),
        reason: best.reason,
        perhaps_preview: is_gif && best.reason >= MatchReason::ExtensionAdded,
        others: rest.into_iter().map(|(_, file)| file.to_owned()).collect(),
    })
}

/// The smaller, the better; the fields are compared in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// The reference names a folder, and this is in another.
    folder_missed: bool,
    reason: MatchReason,
    /// Place in [`PICTURE_EXTENSIONS`]; 0 for a name that fits as it is.
    extension: usize,
    /// The reference names no folder, and this is in one.
    in_folder: bool,
    stem_in_other_case: bool,
    extension_in_capitals: bool,
}

fn rank(folder: &str, name: &str, stem: &str, extension: Option<&str>, file: &str) -> Option<Rank> {
    let (file_folder, file_name) = split_folder(file);
    let folder_missed = !folder.is_empty() && file_folder != folder;
    let in_folder = folder.is_empty() && !file_folder.is_empty();
    if file_name.eq_ignore_ascii_case(name) {
        let reason = if file_name == name { MatchReason::Name } else { MatchReason::NameInOtherCase };
        return Some(Rank {
            folder_missed,
            reason,
            extension: 0,
            in_folder,
            stem_in_other_case: false,
            extension_in_capitals: false,
        });
    }
    let (file_stem, file_extension) = split_extension(file_name);
    let file_extension = file_extension?;
    let place = PICTURE_EXTENSIONS.iter().position(|known| file_extension.eq_ignore_ascii_case(known))?;
    file_stem.eq_ignore_ascii_case(stem).then_some(Rank {
        folder_missed,
        reason: if extension.is_some() { MatchReason::ExtensionReplaced } else { MatchReason::ExtensionAdded },
        extension: place,
        in_folder,
        stem_in_other_case: file_stem != stem,
        extension_in_capitals: file_extension.bytes().any(|byte| byte.is_ascii_uppercase()),
    })
}

/// A relative path below the package: no root, no drive, no parent, no backslash, no control character, and a name.
fn is_safe(path: &str) -> bool {
    let drive = matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    !drive
        && !path.contains(|c: char| c.is_control() || c == '\\')
        && path.split('/').all(|part| !part.is_empty() && part != "..")
        && path.rsplit('/').next() != Some(".")
}

/// The folder (empty at the top) and the name. A leading `./` is no folder.
fn split_folder(path: &str) -> (&str, &str) {
    let path = path.strip_prefix("./").unwrap_or(path);
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The name without its extension, and the extension if it is a known one.
fn split_extension(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once('.') {
        Some((stem, extension))
            if !stem.is_empty()
                && PICTURE_EXTENSIONS
                    .iter()
                    .chain(OTHER_EXTENSIONS)
                    .any(|known| extension.eq_ignore_ascii_case(known)) =>
        {
            (stem, Some(extension))
        }
        _ => (name, None),
    }
}
