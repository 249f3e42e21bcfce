//! Whether bytes are what a file is expected to be. Servers answer with bot checks, log-in pages and error messages
//! under status 200, so neither the status nor the content type is believed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// What a file is expected to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileKind {
    Gzip,
    Zip,
    TarGz,
    Pdf,
    /// With one of these root elements (local names), or any but those of a page if none is given.
    Xml {
        roots: Vec<String>,
    },
    Json,
    JsonLines,
    Csv,
    Parquet,
    Png,
    Jpeg,
    /// A picture in pixels, whatever its name says: JPEG, PNG, GIF, TIFF, WebP or BMP.
    Image,
    Mp4,
    /// A picture, film, sound or document: anything but a page and an error message.
    Media,
    Html,
    /// Without NUL bytes, and not a page.
    Text,
}

impl FileKind {
    /// The kind of this name, as plans spell it; XML with any root.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "gzip" => Self::Gzip,
            "zip" => Self::Zip,
            "tar.gz" => Self::TarGz,
            "pdf" => Self::Pdf,
            "xml" => Self::Xml { roots: Vec::new() },
            "json" => Self::Json,
            "jsonl" => Self::JsonLines,
            "csv" => Self::Csv,
            "parquet" => Self::Parquet,
            "png" => Self::Png,
            "jpeg" => Self::Jpeg,
            "image" => Self::Image,
            "mp4" => Self::Mp4,
            "media" => Self::Media,
            "html" => Self::Html,
            "text" => Self::Text,
            _ => return None,
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zip => "zip",
            Self::TarGz => "tar.gz",
            Self::Pdf => "pdf",
            Self::Xml { .. } => "xml",
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Image => "image",
            Self::Mp4 => "mp4",
            Self::Media => "media",
            Self::Html => "html",
            Self::Text => "text",
        }
    }
}

/// Why a file is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It is something else; what it seems to be, with its article.
    Other(String),
    /// It begins right but its end is missing.
    Cut,
}

/// How much of a file's beginning and end is looked at.
const HEAD: usize = 64 << 10;
const TAIL: usize = 66 << 10;

/// The beginning and the end of a file; the same bytes for a small one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    head: Vec<u8>,
    tail: Vec<u8>,
    bytes: u64,
}

impl Sample {
    pub fn read(file: &mut File) -> io::Result<Self> {
        let bytes = file.seek(SeekFrom::End(0))?;
        let mut piece = |start: u64, length: usize| {
            let mut piece = Vec::new();
            file.seek(SeekFrom::Start(start))?;
            Read::by_ref(file).take(length as u64).read_to_end(&mut piece)?;
            Ok::<_, io::Error>(piece)
        };
        Ok(Self { head: piece(0, HEAD)?, tail: piece(bytes.saturating_sub(TAIL as u64), TAIL)?, bytes })
    }

    /// The same of bytes that are in memory.
    pub fn of(bytes: &[u8]) -> Self {
        let (head, tail) = (bytes.get(..HEAD).unwrap_or(bytes), bytes.len().saturating_sub(TAIL));
        let tail = bytes.get(tail..).unwrap_or_default();
        Self { head: head.to_owned(), tail: tail.to_owned(), bytes: bytes.len() as u64 }
    }

    /// The text that the head begins with, without a byte order mark and leading space. A character that the head cuts,
    /// or that is not UTF-8, becomes U+FFFD.
    fn text(&self) -> String {
        let head = self.head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.head);
        String::from_utf8_lossy(head).trim_start().to_owned()
    }

    fn is_whole(&self) -> bool {
        self.head.len() as u64 == self.bytes
    }

    /// The last byte that is not white space.
    fn last(&self) -> Option<u8> {
        self.tail.iter().rev().copied().find(|byte| !byte.is_ascii_whitespace())
    }
}

/// Checks a file against its expected kind: magic bytes, the root element, and the end where the format has one.
///
/// # Errors
/// What it is instead, or that it is cut.
pub fn check(kind: &FileKind, sample: &Sample) -> Result<(), Misfit> {
    let head = sample.head.as_slice();
    let other = || Err(Misfit::Other(describe(sample)));
    if head.is_empty() {
        return other();
    }
    let (begins, ends) = match kind {
        FileKind::Gzip => (head.starts_with(GZIP), true),
        FileKind::TarGz => (head.starts_with(GZIP) && holds_tar(head), true),
        FileKind::Zip => (is_zip(head), contains(&sample.tail, b"PK\x05\x06")),
        // Readers take a PDF that begins within the first 1 024 bytes; some servers put line ends before it.
        FileKind::Pdf => {
            let begins = contains(head.get(..1024).unwrap_or(head), b"%PDF-") && !is_page(&sample.text());
            (begins, contains(&sample.tail, b"%%EOF"))
        }
        FileKind::Xml { roots } => {
            let text = sample.text();
            let name = root_element(&text).unwrap_or_default();
            let fits = match local(name) {
                "" => false,
                _ if roots.is_empty() => !is_page(&text),
                root => roots.iter().any(|expected| expected == root),
            };
            let closes = contains(&sample.tail, format!("</{name}").as_bytes());
            // A root element may be empty.
            let ends = closes || (sample.is_whole() && text.trim_end().ends_with("/>"));
            (fits, ends && sample.last() == Some(b'>'))
        }
        FileKind::Json => {
            let text = sample.text();
            let begins = text.starts_with(['{', '[']) && !is_json_error(sample);
            let ends = matches!(sample.last(), Some(b'}' | b']'))
                && (!sample.is_whole() || serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok());
            (begins, ends)
        }
        FileKind::JsonLines => {
            let text = sample.text();
            let line = text.lines().next().unwrap_or_default();
            let has_end = text.contains('\n') || sample.is_whole();
            let parses = !has_end || serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
            let begins = text.starts_with(['{', '[']) && !is_json_error(sample);
            (begins && parses, matches!(sample.last(), Some(b'}' | b']')))
        }
        FileKind::Csv => {
            let text = sample.text();
            (binary(head).is_none() && !text.is_empty() && !text.starts_with(['<', '{']), true)
        }
        FileKind::Parquet => (head.starts_with(b"PAR1"), head.len() >= 12 && sample.tail.ends_with(b"PAR1")),
        FileKind::Png => (head.starts_with(PNG), contains(&sample.tail, b"IEND")),
        FileKind::Jpeg => (head.starts_with(JPEG), true),
        FileKind::Image => (is_image(head), !head.starts_with(PNG) || contains(&sample.tail, b"IEND")),
        FileKind::Mp4 => (is_mp4(head), true),
        FileKind::Media => {
            let text = sample.text();
            (binary(head).is_some() || !(text.is_empty() || is_page(&text) || is_json_error(sample)), true)
        }
        FileKind::Html => {
            let text = sample.text();
            (is_page(&text) && !is_bot_check(&text), true)
        }
        FileKind::Text => {
            let text = sample.text();
            (binary(head).is_none() && !text.is_empty() && !is_page(&text) && !is_json_error(sample), true)
        }
    };
    match (begins, ends) {
        (true, true) => Ok(()),
        (true, false) => Err(Misfit::Cut),
        (false, _) => other(),
    }
}

pub(crate) const GZIP: &[u8] = b"\x1f\x8b\x08";
pub(crate) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
pub(crate) const JPEG: &[u8] = b"\xff\xd8\xff";

pub(crate) fn is_zip(head: &[u8]) -> bool {
    // The second is an archive without files.
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

/// The first bytes of TIFF, in both orders of bytes, and of its form for large files.
const TIFF: [&[u8]; 4] = [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"];

fn is_image(head: &[u8]) -> bool {
    let begins = |magic: &[u8]| head.starts_with(magic);
    let is_webp = begins(b"RIFF") && head.get(8..12) == Some(b"WEBP");
    // The size of a BMP's header follows its own size and four bytes of zero.
    let is_bmp = begins(b"BM") && head.get(6..10) == Some(&[0; 4]);
    begins(JPEG) || begins(PNG) || begins(b"GIF8") || TIFF.into_iter().any(begins) || is_webp || is_bmp
}

fn is_mp4(head: &[u8]) -> bool {
    head.get(4..8) == Some(b"ftyp")
}

/// What is not text, with its article.
fn binary(head: &[u8]) -> Option<&'static str> {
    let kinds = [
        (head.starts_with(GZIP), "a gzip file"),
        (is_zip(head), "a zip archive"),
        (head.starts_with(b"%PDF-"), "a PDF"),
        (head.starts_with(b"PAR1"), "a Parquet file"),
        (head.starts_with(PNG), "a PNG image"),
        (head.starts_with(JPEG), "a JPEG image"),
        (is_mp4(head), "an MP4 video"),
        (is_image(head), "an image"),
        (head.contains(&0), "a binary file"),
    ];
    kinds.into_iter().find(|(is, _)| *is).map(|(_, name)| name)
}

/// Whether the gzipped bytes begin with a tar header, judged by its checksum.
fn holds_tar(head: &[u8]) -> bool {
    let mut header = [0u8; 512];
    if flate2::read::GzDecoder::new(head).read_exact(&mut header).is_err() {
        return false;
    }
    let sum: u32 =
        (0..).zip(header).map(|(at, byte)| u32::from(if (148..156).contains(&at) { b' ' } else { byte })).sum();
    let written = header.get(148..156).unwrap_or_default();
    let digits: String = written.iter().map(|byte| char::from(*byte)).filter(char::is_ascii_digit).collect();
    u32::from_str_radix(&digits, 8) == Ok(sum)
}

/// An HTML page, however it begins: comments and white space may stand before it.
pub(crate) fn is_page(text: &str) -> bool {
    let mut rest = text;
    while let Some(after) = rest.strip_prefix("<!--").and_then(|comment| comment.split_once("-->")) {
        rest = after.1.trim_start();
    }
    let start: String = rest.chars().take(64).collect::<String>().to_ascii_lowercase();
    start.starts_with("<!doctype html") || root_element(text).is_some_and(|root| is_page_element(local(root)))
}

/// Elements that a page without `<html>` begins with.
pub(crate) fn is_page_element(name: &str) -> bool {
    ["html", "head", "title", "body", "script", "meta"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Words of pages that stand in the way of the real one.
const BOT_CHECKS: &[&str] = &[
    "<title>just a moment",
    "<title>attention required",
    "<title>access denied",
    "<title>checking your browser",
    "<title>are you a robot",
    "<title>pardon our interruption",
    "challenges.cloudflare.com",
    "/cdn-cgi/challenge-platform/",
    "_incapsula_resource",
    "captcha-delivery.com",
    "awswafintegration",
];

fn is_bot_check(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    BOT_CHECKS.iter().any(|words| text.contains(words))
}

/// A short JSON object whose `error` is a text or an object: what services send instead of data.
fn is_json_error(sample: &Sample) -> bool {
    sample.bytes <= 4096
        && serde_json::from_str::<serde_json::Value>(&sample.text())
            .is_ok_and(|value| value.get("error").is_some_and(|error| error.is_string() || error.is_object()))
}

/// The name of the first element, with its prefix, behind the XML declaration, comments, instructions and a document type.
pub(crate) fn root_element(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        rest = if let Some(comment) = rest.strip_prefix("<!--") {
            comment.split_once("-->")?.1
        } else if let Some(instruction) = rest.strip_prefix("<?") {
            instruction.split_once("?>")?.1
        } else if let Some(doctype) = rest.strip_prefix("<!") {
            let end = doctype.find(['>', '['])?;
            if doctype.get(end..)?.starts_with('[') {
                doctype.get(end..)?.split_once(']')?.1.split_once('>')?.1
            } else {
                doctype.get(end + 1..)?
            }
        } else {
            let name = rest.strip_prefix('<')?;
            let name = name.get(..name.find(|c: char| c.is_whitespace() || c == '>' || c == '/')?)?;
            return local(name).starts_with(|c: char| c.is_alphabetic() || c == '_').then_some(name);
        };
    }
}

/// A name without its prefix.
pub(crate) fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

pub(crate) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// What a file seems to be, with its article.
fn describe(sample: &Sample) -> String {
    if sample.head.is_empty() {
        return "an empty file".to_owned();
    }
    if let Some(name) = binary(&sample.head) {
        return name.to_owned();
    }
    let text = sample.text();
    if text.is_empty() {
        return "white space".to_owned();
    }
    if is_page(&text) {
        let what = if is_bot_check(&text) { "a bot-check page" } else { "an HTML page" };
        return match title(&text) {
            Some(title) => format!("{what} titled \"{title}\""),
            None => what.to_owned(),
        };
    }
    if let Some(root) = root_element(&text) {
        return format!("XML with the root <{}>", shorten(root));
    }
    if is_json_error(sample) {
        return format!("an error message in JSON: {}", shorten(&text));
    }
    let kind = if text.starts_with(['{', '[']) { "JSON" } else { "text" };
    format!("{kind} that begins with \"{}\"", shorten(&text))
}

/// The title of a page, on one line.
fn title(text: &str) -> Option<String> {
    // Lower case of ASCII alone keeps every byte in its place.
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower.get(start..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find('<')?;
    Some(shorten(text.get(start..end)?)).filter(|title| !title.is_empty())
}

/// At most 80 characters, on one line.
fn shorten(text: &str) -> String {
    let line: String = text.split_whitespace().take(40).collect::<Vec<_>>().join(" ");
    let plain: String = line.chars().filter(|c| !c.is_control()).collect();
    if plain.chars().count() <= 80 { plain } else { plain.chars().take(79).chain(['…']).collect() }
}
