//! What a file is by its bytes, whatever its name and its declared media type say. Articles call Windows Media video
//! `.wav` and MP4 `text/plain`, and their publishers' servers answer with pages.
//!
//! Signatures after the formats' own definitions: PNG (W3C), GIF89a, TIFF 6.0, RFC 9649 (WebP), ISO/IEC 14496-12
//! (MP4 and its relatives), ASF 1.2 (Windows Media), RFC 8794 (Matroska and WebM), RFC 3533 (Ogg), ID3v2.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::service::fetch::kinds::{GZIP, JPEG, PNG, contains, is_page, is_zip, local, root_element};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Jpeg,
    Png,
    Gif,
    Tiff,
    Webp,
    Bmp,
    /// HEIC and AVIF.
    Heif,
    /// JPEG 2000.
    Jp2,
    Svg,
    Mp4,
    /// QuickTime.
    Mov,
    Avi,
    /// Windows Media with a video stream.
    Wmv,
    Webm,
    Matroska,
    Flv,
    /// MPEG-1 and MPEG-2: program and transport streams.
    Mpeg,
    OggVideo,
    Mp3,
    Wav,
    Flac,
    /// MP4 that its brand says is audio.
    M4a,
    /// Windows Media without a video stream.
    Wma,
    OggAudio,
    Pdf,
    PostScript,
    /// Word, Excel and PowerPoint before 2007.
    OleDocument,
    /// Office documents since 2007 are zip archives too.
    Zip,
    Gzip,
    Html,
    Xml,
    /// Readable, and none of the above.
    Text,
    Empty,
    Unknown,
}

/// What a file is used as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    Image,
    Video,
    Audio,
    Document,
    Archive,
    /// Pages, XML and text.
    Text,
    Unknown,
}

/// How a declared media type compares with what a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Nothing is declared, or nothing that says anything: an empty text, `/`, `application/octet-stream`.
    Absent,
    Right,
    /// Another format of the same group.
    OtherFormat,
    Wrong,
}

impl Kind {
    /// The kind of a file that begins with these bytes; 64 KiB are enough, and 512 for all but pages behind long
    /// comments, Windows Media and Matroska.
    ///
    /// An MP4 file without video tracks whose brand does not say so counts as video, and pictures attached to audio
    /// leave it audio.
    pub fn of(head: &[u8]) -> Self {
        if head.is_empty() {
            return Self::Empty;
        }
        binary(head).unwrap_or_else(|| textual(head))
    }

    /// As plans and accounts spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "JPEG image",
            Self::Png => "PNG image",
            Self::Gif => "GIF image",
            Self::Tiff => "TIFF image",
            Self::Webp => "WebP image",
            Self::Bmp => "BMP image",
            Self::Heif => "HEIF image",
            Self::Jp2 => "JPEG 2000 image",
            Self::Svg => "SVG drawing",
            Self::Mp4 => "MP4 video",
            Self::Mov => "QuickTime video",
            Self::Avi => "AVI video",
            Self::Wmv => "Windows Media video",
            Self::Webm => "WebM video",
            Self::Matroska => "Matroska video",
            Self::Flv => "Flash video",
            Self::Mpeg => "MPEG video",
            Self::OggVideo => "Ogg video",
            Self::Mp3 => "MP3 audio",
            Self::Wav => "WAVE audio",
            Self::Flac => "FLAC audio",
            Self::M4a => "MPEG-4 audio",
            Self::Wma => "Windows Media audio",
            Self::OggAudio => "Ogg audio",
            Self::Pdf => "PDF document",
            Self::PostScript => "PostScript document",
            Self::OleDocument => "Office document of the old form",
            Self::Zip => "zip archive",
            Self::Gzip => "gzip file",
            Self::Html => "HTML page",
            Self::Xml => "XML document",
            Self::Text => "text",
            Self::Empty => "empty file",
            Self::Unknown => "file of an unknown kind",
        }
    }

    pub fn group(self) -> Group {
        match self {
            Self::Jpeg
            | Self::Png
            | Self::Gif
            | Self::Tiff
            | Self::Webp
            | Self::Bmp
            | Self::Heif
            | Self::Jp2
            | Self::Svg => Group::Image,
            Self::Mp4
            | Self::Mov
            | Self::Avi
            | Self::Wmv
            | Self::Webm
            | Self::Matroska
            | Self::Flv
            | Self::Mpeg
            | Self::OggVideo => Group::Video,
            Self::Mp3 | Self::Wav | Self::Flac | Self::M4a | Self::Wma | Self::OggAudio => Group::Audio,
            Self::Pdf | Self::PostScript | Self::OleDocument => Group::Document,
            Self::Zip | Self::Gzip => Group::Archive,
            Self::Html | Self::Xml | Self::Text => Group::Text,
            Self::Empty | Self::Unknown => Group::Unknown,
        }
    }

    /// Its media types, the registered one first.
    pub fn media_types(self) -> &'static [&'static str] {
        match self {
            Self::Jpeg => &["image/jpeg", "image/jpg", "image/pjpeg"],
            Self::Png => &["image/png", "image/x-png"],
            Self::Gif => &["image/gif"],
            Self::Tiff => &["image/tiff", "image/tif"],
            Self::Webp => &["image/webp"],
            Self::Bmp => &["image/bmp", "image/x-ms-bmp"],
            Self::Heif => &["image/heif", "image/heic", "image/avif"],
            Self::Jp2 => &["image/jp2", "image/jpx"],
            Self::Svg => &["image/svg+xml"],
            Self::Mp4 => &["video/mp4", "video/x-m4v", "video/3gpp"],
            Self::Mov => &["video/quicktime"],
            Self::Avi => &["video/vnd.avi", "video/x-msvideo", "video/avi", "video/msvideo"],
            Self::Wmv => &["video/x-ms-wmv", "video/x-ms-asf", "application/vnd.ms-asf"],
            Self::Webm => &["video/webm"],
            Self::Matroska => &["video/matroska", "video/x-matroska"],
            Self::Flv => &["video/x-flv"],
            Self::Mpeg => &["video/mpeg", "video/mp2t"],
            Self::OggVideo => &["video/ogg", "application/ogg"],
            Self::Mp3 => &["audio/mpeg", "audio/mp3"],
            Self::Wav => &["audio/vnd.wave", "audio/wav", "audio/x-wav"],
            Self::Flac => &["audio/flac"],
            Self::M4a => &["audio/mp4", "audio/x-m4a"],
            Self::Wma => &["audio/x-ms-wma", "application/vnd.ms-asf"],
            Self::OggAudio => &["audio/ogg", "application/ogg"],
            Self::Pdf => &["application/pdf"],
            Self::PostScript => &["application/postscript"],
            Self::OleDocument => &["application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"],
            Self::Zip => &[
                "application/zip",
                "application/x-zip-compressed",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
                "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            ],
            Self::Gzip => &["application/gzip", "application/x-gzip"],
            Self::Html => &["text/html", "application/xhtml+xml"],
            Self::Xml => &["application/xml", "text/xml"],
            Self::Text => &["text/plain", "text/csv"],
            Self::Empty | Self::Unknown => &[],
        }
    }

    /// How a declared media type compares with the kind. A type without its subtype (`video`) declares the group alone;
    /// a subtype that repeats the type (`video/video/mp4`, from JATS written two ways) is read once.
    pub fn claim(self, declared: &str) -> Claim {
        let plain = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let mut parts: Vec<&str> = plain.split('/').map(str::trim).filter(|part| !part.is_empty()).collect();
        parts.dedup();
        let declared = parts.join("/");
        if declared.is_empty() || declared == "application/octet-stream" {
            return Claim::Absent;
        }
        if self.media_types().contains(&declared.as_str()) {
            return Claim::Right;
        }
        let group = match parts.first().copied() {
            Some("image") => Some(Group::Image),
            Some("video") => Some(Group::Video),
            Some("audio") => Some(Group::Audio),
            Some("text") => Some(Group::Text),
            _ => None,
        };
        match (group == Some(self.group()), parts.len()) {
            (true, 1) => Claim::Right,
            (true, _) => Claim::OtherFormat,
            (false, _) => Claim::Wrong,
        }
    }
}

/// ASF header object, and the stream type "video media", as they stand in files (the first three fields little-endian).
const ASF_HEADER: &[u8] = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c";
const ASF_VIDEO: &[u8] = b"\xc0\xef\x19\xbc\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b";

fn binary(head: &[u8]) -> Option<Kind> {
    let is = |signature: &[u8]| head.starts_with(signature);
    let at = |start: usize, part: &[u8]| head.get(start..).is_some_and(|rest| rest.starts_with(part));
    Some(match () {
        () if is(JPEG) => Kind::Jpeg,
        () if is(PNG) => Kind::Png,
        () if is(b"GIF87a") || is(b"GIF89a") => Kind::Gif,
        () if is(b"II*\0") || is(b"MM\0*") || is(b"II+\0\x08\0") || is(b"MM\0+\0\x08") => Kind::Tiff,
        () if is(b"RIFF") && at(8, b"WEBP") => Kind::Webp,
        () if is(b"RIFF") && at(8, b"AVI ") => Kind::Avi,
        () if (is(b"RIFF") || is(b"RF64")) && at(8, b"WAVE") => Kind::Wav,
        // Two letters are little: the reserved fields and the size of the second header must fit too.
        () if is(b"BM") && at(6, &[0; 4]) && at(15, &[0; 3]) => Kind::Bmp,
        () if is(b"\0\0\0\x0cjP  \r\n\x87\n") || is(b"\xff\x4f\xff\x51") => Kind::Jp2,
        () if at(4, b"ftyp") => media_brand(head),
        () if ["moov", "mdat", "wide", "free", "skip", "pnot"].iter().any(|name| at(4, name.as_bytes())) => Kind::Mov,
        () if is(ASF_HEADER) && contains(head, ASF_VIDEO) => Kind::Wmv,
        () if is(ASF_HEADER) => Kind::Wma,
        () if is(b"\x1a\x45\xdf\xa3") && contains(head.get(..512).unwrap_or(head), b"webm") => Kind::Webm,
        () if is(b"\x1a\x45\xdf\xa3") => Kind::Matroska,
        () if is(b"FLV\x01") => Kind::Flv,
        () if is(b"\0\0\x01\xba") || is(b"\0\0\x01\xb3") || is_transport_stream(head) => Kind::Mpeg,
        () if is(b"OggS") && contains(head.get(..512).unwrap_or(head), b"\x80theora") => Kind::OggVideo,
        () if is(b"OggS") => Kind::OggAudio,
        () if is(b"fLaC") => Kind::Flac,
        () if is(b"ID3") || is_mp3_frame(head) => Kind::Mp3,
        () if is(b"%!PS") || is(b"\xc5\xd0\xd3\xc6") => Kind::PostScript,
        () if is(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") => Kind::OleDocument,
        () if is_zip(head) => Kind::Zip,
        () if is(GZIP) => Kind::Gzip,
        // Readers take a PDF that begins within the first 1 024 bytes.
        () if contains(head.get(..1024).unwrap_or(head), b"%PDF-") && !is_page(&lossy(head)) => Kind::Pdf,
        () => return None,
    })
}

/// The kind that the major brand of a file type box names; ISO/IEC 14496-12, section 4.3.
fn media_brand(head: &[u8]) -> Kind {
    match head.get(8..12).unwrap_or_default() {
        b"qt  " => Kind::Mov,
        b"M4A " | b"M4B " | b"M4P " => Kind::M4a,
        b"heic" | b"heix" | b"heim" | b"heis" | b"mif1" | b"msf1" | b"avif" | b"avis" => Kind::Heif,
        b"jp2 " | b"jpx " => Kind::Jp2,
        _ => Kind::Mp4,
    }
}

/// Three sync bytes at the distance of packets.
fn is_transport_stream(head: &[u8]) -> bool {
    [0, 188, 376].iter().all(|at| head.get(*at) == Some(&0x47))
}

/// The header of an MPEG audio frame, layer 3, without reserved values.
fn is_mp3_frame(head: &[u8]) -> bool {
    matches!(head.get(..3), Some([0xff, second, third])
        if matches!(second & 0xfe, 0xfa | 0xf2 | 0xe2) && third >> 4 != 0 && third >> 4 != 15 && third & 0x0c != 0x0c)
}

fn textual(head: &[u8]) -> Kind {
    if head.contains(&0) {
        return Kind::Unknown;
    }
    let text = lossy(head);
    if is_page(&text) {
        return Kind::Html;
    }
    match root_element(&text).map(local) {
        Some("svg") => Kind::Svg,
        Some(_) => Kind::Xml,
        None if text.starts_with("<?xml") => Kind::Xml,
        None if is_readable(&text) => Kind::Text,
        None => Kind::Unknown,
    }
}

/// The text without a byte order mark and leading space.
fn lossy(head: &[u8]) -> String {
    String::from_utf8_lossy(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head)).trim_start().to_owned()
}

/// Text in an old encoding leaves replacement characters here and there, bytes of a program leave control characters.
fn is_readable(text: &str) -> bool {
    let strange = text.chars().filter(|c| *c == '\u{fffd}' || (c.is_control() && !c.is_whitespace())).count();
    strange.saturating_mul(20) <= text.chars().count()
}
