//! What an image file says of itself, read from its headers alone and held against limits before any memory is taken
//! for pixels: a file of some dozens of bytes can announce gigabytes.

use std::io::{self, Read};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header;
use super::kind::Kind;

/// What an image may cost. The defaults are ours: scans of print quality pass, maps of the earth do not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Width × height.
    pub pixels: u64,
    /// Bytes that decoding holds at one time, as estimated from the header; decoders are told the same limit.
    pub decoded_bytes: u64,
    /// Frames of an animation, or pages.
    pub frames: u32,
    /// Passes over the whole picture that a progressive JPEG may ask for; time grows with them.
    pub scans: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 128 << 20, pixels: 100_000_000, decoded_bytes: 1 << 30, frames: 10_000, scans: 100 }
    }
}

/// Image formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Jpeg,
    Png,
    Gif,
    Tiff,
    Webp,
    Bmp,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::Gif => "GIF",
            Self::Tiff => "TIFF",
            Self::Webp => "WebP",
            Self::Bmp => "BMP",
        }
    }
}

/// How samples make colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ColourModel {
    Gray,
    /// Red, green and blue, or the luma and chroma that they are stored as (YCbCr).
    Rgb,
    /// The inks of print: cyan, magenta, yellow, black.
    Cmyk,
    /// CMYK whose first three are stored as luma and chroma.
    Ycck,
    /// Places in a table of colours.
    Palette,
}

/// What an image file holds, by its headers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    pub format: Format,
    /// Pixels, after the turn that the file asks for: as people see it.
    pub width: u32,
    pub height: u32,
    /// Pixels, as stored.
    pub stored_width: u32,
    pub stored_height: u32,
    /// The orientation of Exif and TIFF, 1–8 (Exif 2.32, tag 0x0112): 1 is upright, 5–8 swap width and height.
    pub orientation: u8,
    pub colour: ColourModel,
    /// Bits of one sample, 1–16; of an index, with a palette.
    pub bits: u8,
    /// Whether pixels can be transparent.
    pub alpha: bool,
    /// Whether inks are stored inverted, as Adobe programs do.
    pub inverted: bool,
    /// Whether a colour profile (ICC) is attached.
    pub profile: bool,
    /// Frames of an animation or pages, at least 1.
    pub frames: u32,
    /// Bytes that decoding the first frame to RGB takes at one time: estimated, and rather too high.
    pub decoding_bytes: u64,
}

impl Probe {
    /// Whether a side is shorter than `side` pixels. Images below 336 × 336 are of low resolution (ClinMM-Bench, 4.1.2);
    /// we read this as either side.
    pub fn is_below(&self, side: u32) -> bool {
        self.width < side || self.height < side
    }
}

/// What is wrong with an image file. Each is a fault of this file alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    #[error("the file is larger than {limit} bytes")]
    FileTooLarge { limit: u64 },
    #[error("the file is not an image but: {}", kind.name())]
    NotAnImage { kind: Kind },
    #[error("{} files are not read", kind.name())]
    FormatNotRead { kind: Kind },
    #[error("{} with {what} is not read", format.name())]
    Unsupported { format: Format, what: String },
    #[error("the {} announces {width} × {height} pixels, which is none", format.name())]
    NoPixels { format: Format, width: u64, height: u64 },
    #[error("the {} announces {width} × {height} pixels, more than {limit}", format.name())]
    TooManyPixels { format: Format, width: u64, height: u64, limit: u64 },
    #[error("a frame of the {} has {pixels} pixels, more than {limit}", format.name())]
    FrameTooLarge { format: Format, pixels: u64, limit: u64 },
    #[error("decoding the {} would take {needed} bytes, more than {limit}", format.name())]
    TooManyBytes { format: Format, needed: u64, limit: u64 },
    #[error("the {} has more than {limit} frames or pages", format.name())]
    TooManyFrames { format: Format, limit: u32 },
    #[error("the {} asks for more than {limit} passes over the picture", format.name())]
    TooManyScans { format: Format, limit: u32 },
    #[error("the {} is cut: {what}", format.name())]
    Cut { format: Format, what: &'static str },
    #[error("the {} is broken: {what}", format.name())]
    Broken { format: Format, what: String },
    /// The decoder ran into a limit that the headers did not announce.
    #[error("decoding the {} took more memory than its header announces and {limit} bytes allow", format.name())]
    DecoderLimit { format: Format, limit: u64 },
    /// The decoder stopped in a way that it should not. The file is not used; the decoder has a mistake.
    #[error("the decoder failed on the {}", format.name())]
    DecoderFailed { format: Format },
}

/// Reads a file of at most the allowed bytes.
///
/// # Errors
/// When reading fails; inside, [`ProbeError::FileTooLarge`].
pub fn read(reader: impl Read, limits: &Limits) -> io::Result<Result<Vec<u8>, ProbeError>> {
    let mut bytes = Vec::new();
    let read = reader.take(limits.file_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > limits.file_bytes {
        return Ok(Err(ProbeError::FileTooLarge { limit: limits.file_bytes }));
    }
    Ok(Ok(bytes))
}

/// What the image in these bytes is. Takes no memory that grows with what the file announces, and time linear in its
/// bytes.
///
/// # Errors
/// When it is none that can be decoded under these limits, as far as headers tell. Limits come before completeness: a
/// short file that announces too much is refused for what it announces.
pub fn probe(bytes: &[u8], limits: &Limits) -> Result<Probe, ProbeError> {
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limits.file_bytes {
        return Err(ProbeError::FileTooLarge { limit: limits.file_bytes });
    }
    // A page behind a comment longer than this is called text.
    let kind = Kind::of(bytes.get(..64 << 10).unwrap_or(bytes));
    let (format, header) = match kind {
        Kind::Jpeg => (Format::Jpeg, header::jpeg(bytes, limits)?),
        Kind::Png => (Format::Png, header::png(bytes)?),
        Kind::Gif => (Format::Gif, header::gif(bytes)?),
        Kind::Tiff => (Format::Tiff, header::tiff(bytes, limits)?),
        Kind::Webp => (Format::Webp, header::webp(bytes)?),
        Kind::Bmp => (Format::Bmp, header::bmp(bytes)?),
        Kind::Heif | Kind::Jp2 | Kind::Svg => return Err(ProbeError::FormatNotRead { kind }),
        kind => return Err(ProbeError::NotAnImage { kind }),
    };
    let (width, height) = (header.width, header.height);
    if width == 0 || height == 0 {
        return Err(ProbeError::NoPixels { format, width, height });
    }
    let pixels = width.saturating_mul(height);
    let too_many = ProbeError::TooManyPixels { format, width, height, limit: limits.pixels };
    if pixels > limits.pixels {
        return Err(too_many);
    }
    // A frame may be larger than the canvas that it is drawn on.
    if header.frame_pixels > limits.pixels {
        return Err(ProbeError::FrameTooLarge { format, pixels: header.frame_pixels, limit: limits.pixels });
    }
    let (Ok(stored_width), Ok(stored_height)) = (u32::try_from(width), u32::try_from(height)) else {
        return Err(too_many);
    };
    let decoding_bytes = decoding_bytes(&header, pixels, u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    if decoding_bytes > limits.decoded_bytes {
        return Err(ProbeError::TooManyBytes { format, needed: decoding_bytes, limit: limits.decoded_bytes });
    }
    if header.frames > limits.frames {
        return Err(ProbeError::TooManyFrames { format, limit: limits.frames });
    }
    if let Some(fault) = header.fault {
        return Err(fault);
    }
    let (width, height) =
        if header.orientation >= 5 { (stored_height, stored_width) } else { (stored_width, stored_height) };
    Ok(Probe {
        format,
        width,
        height,
        stored_width,
        stored_height,
        orientation: header.orientation,
        colour: header.colour,
        bits: header.bits,
        alpha: header.alpha,
        inverted: header.inverted,
        profile: header.profile,
        frames: header.frames,
        decoding_bytes,
    })
}

/// What the decoder holds, the RGB picture, what a turn and transparency need beside it, and a copy of the file.
fn decoding_bytes(header: &header::Header, pixels: u64, file: u64) -> u64 {
    let flatten = if header.alpha { 4 } else { 0 };
    let turn = if header.orientation == 1 { 0 } else { 3 };
    pixels
        .saturating_mul(header.decoder_pixel_bytes + 3 + flatten + turn)
        .saturating_add(header.decoder_bytes)
        .saturating_add(file)
}
