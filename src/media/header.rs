//! The headers of image formats, read without taking memory.
//!
//! After ITU-T T.81 and Adobe Technical Note 5116 (JPEG), the PNG specification (third edition), GIF89a, TIFF 6.0 and
//! its BigTIFF form, RFC 9649 (WebP), and Microsoft's DIB headers (BMP). Every read is checked against the bytes there
//! are; what is missing makes a fault, which is told only after the announced size was held against the limits.

use std::collections::BTreeSet;

use super::probe::{ColourModel, Format, Limits, ProbeError};

/// What a header announces, unchecked.
pub struct Header {
    pub width: u64,
    pub height: u64,
    pub orientation: u8,
    pub colour: ColourModel,
    pub bits: u8,
    pub alpha: bool,
    pub inverted: bool,
    pub profile: bool,
    pub frames: u32,
    /// The largest frame; 0 where frames are the picture.
    pub frame_pixels: u64,
    /// Bytes that the decoder holds for each pixel, and besides.
    pub decoder_pixel_bytes: u64,
    pub decoder_bytes: u64,
    /// What is wrong behind the announced size.
    pub fault: Option<ProbeError>,
}

impl Header {
    fn new(width: u64, height: u64, colour: ColourModel) -> Self {
        Self {
            width,
            height,
            orientation: 1,
            colour,
            bits: 8,
            alpha: false,
            inverted: false,
            profile: false,
            frames: 1,
            frame_pixels: 0,
            decoder_pixel_bytes: 4,
            decoder_bytes: 1 << 20,
            fault: None,
        }
    }

    fn first_fault(&mut self, fault: ProbeError) {
        self.fault.get_or_insert(fault);
    }
}

fn piece(bytes: &[u8], start: usize, length: usize) -> Option<&[u8]> {
    bytes.get(start..start.checked_add(length)?)
}

fn array<const N: usize>(bytes: &[u8], start: usize) -> Option<[u8; N]> {
    piece(bytes, start, N)?.try_into().ok()
}

fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn unsupported(format: Format, what: impl Into<String>) -> ProbeError {
    ProbeError::Unsupported { format, what: what.into() }
}

fn broken(format: Format, what: impl Into<String>) -> ProbeError {
    ProbeError::Broken { format, what: what.into() }
}

fn index(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The frame header of a JPEG.
struct Frame<'a> {
    marker: u8,
    precision: u8,
    height: u16,
    width: u16,
    /// Three bytes each: id, sampling, table.
    components: &'a [u8],
}

pub fn jpeg(bytes: &[u8], limits: &Limits) -> Result<Header, ProbeError> {
    let format = Format::Jpeg;
    let mut frame: Option<Frame> = None;
    let mut adobe: Option<u8> = None;
    let (mut profile, mut ends) = (false, false);
    let (mut orientation, mut scans) = (1, 0u32);
    let mut at = 2;
    // Bytes between segments, fill bytes, and the coded picture are passed over alike: in the coded picture 0xFF is
    // followed by 0 or a restart marker.
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == 0xff)) {
        let here = at.saturating_add(found);
        let Some(marker) = byte(bytes, here + 1) else { break };
        at = match marker {
            0xff => here + 1,
            0x00 | 0x01 | 0xd0..=0xd8 => here + 2,
            0xd9 => {
                ends = true;
                break;
            }
            _ => {
                let Some(length) = be16(bytes, here + 2).map(usize::from) else { break };
                if length < 2 {
                    return Err(broken(format, "a segment is shorter than its length"));
                }
                let Some(segment) = piece(bytes, here + 4, length - 2) else { break };
                match marker {
                    0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf if frame.is_none() => {
                        frame = read_frame(marker, segment);
                        if frame.is_none() {
                            return Err(broken(format, "the frame header is too short"));
                        }
                    }
                    0xda => scans = scans.saturating_add(1),
                    0xe1 => {
                        if let Some(exif) = segment.strip_prefix(b"Exif\0\0") {
                            orientation = exif_orientation(exif).unwrap_or(orientation);
                        }
                    }
                    0xe2 if segment.starts_with(b"ICC_PROFILE\0") => profile = true,
                    0xee if segment.starts_with(b"Adobe") => adobe = byte(segment, 11).or(adobe),
                    _ => {}
                }
                here + 2 + length
            }
        };
    }
    let Some(frame) = frame else {
        return Err(ProbeError::Cut { format, what: "it has no frame header" });
    };
    let count = frame.components.len() / 3;
    let colour = match (count, adobe) {
        (1, _) => ColourModel::Gray,
        (4, Some(2)) => ColourModel::Ycck,
        (4, _) => ColourModel::Cmyk,
        _ => ColourModel::Rgb,
    };
    let mut header = Header::new(frame.width.into(), frame.height.into(), colour);
    header.orientation = orientation;
    header.bits = frame.precision;
    header.profile = profile;
    header.inverted = count == 4 && adobe.is_some();
    let samples = u64::try_from(count).unwrap_or(u64::MAX);
    // Rows of units of the picture, and all coefficients if it comes in several passes.
    let row = u64::from(frame.width).saturating_add(64).saturating_mul(samples);
    header.decoder_bytes = header.decoder_bytes.saturating_add(row.saturating_mul(512));
    header.decoder_pixel_bytes = samples.max(3);
    if frame.marker == 0xc2 || scans > 1 {
        let padded = u64::from(frame.width).next_multiple_of(32) * u64::from(frame.height).next_multiple_of(32);
        header.decoder_bytes = header.decoder_bytes.saturating_add(padded.saturating_mul(samples * 2));
    }
    match frame.marker {
        0xc0..=0xc2 => {}
        0xc3 => header.first_fault(unsupported(format, "lossless coding")),
        0xc9..=0xcb | 0xcd..=0xcf => header.first_fault(unsupported(format, "arithmetic coding")),
        _ => header.first_fault(unsupported(format, "hierarchical coding")),
    }
    if frame.precision != 8 {
        header.first_fault(unsupported(format, format!("{} bits per sample", frame.precision)));
    }
    if !matches!(count, 1 | 3 | 4) {
        header.first_fault(unsupported(format, format!("{count} components")));
    }
    if adobe.is_some_and(|transform| transform > 2) {
        header.first_fault(broken(format, "its Adobe marker names an unknown colour transform"));
    }
    if scans > limits.scans {
        header.first_fault(ProbeError::TooManyScans { format, limit: limits.scans });
    }
    if scans == 0 {
        header.first_fault(ProbeError::Cut { format, what: "it has no picture data" });
    }
    if !ends {
        header.first_fault(ProbeError::Cut { format, what: "its end marker is missing" });
    }
    Ok(header)
}

fn read_frame(marker: u8, segment: &[u8]) -> Option<Frame<'_>> {
    let count = usize::from(byte(segment, 5)?);
    Some(Frame {
        marker,
        precision: byte(segment, 0)?,
        height: be16(segment, 1)?,
        width: be16(segment, 3)?,
        components: piece(segment, 6, count * 3)?,
    })
}

pub fn png(bytes: &[u8]) -> Result<Header, ProbeError> {
    let format = Format::Png;
    let cut = |what| ProbeError::Cut { format, what };
    if piece(bytes, 8, 8) != Some(b"\0\0\0\x0dIHDR") {
        return Err(if bytes.len() < 16 {
            cut("it ends in its signature")
        } else {
            broken(format, "it does not begin with its header")
        });
    }
    let fields = |at| Some((be32(bytes, at)?, be32(bytes, at + 4)?, byte(bytes, at + 8)?, byte(bytes, at + 9)?));
    let (width, height, bits, colour_type) = fields(16).ok_or_else(|| cut("its header is not whole"))?;
    let (colour, alpha, samples) = match colour_type {
        0 => (ColourModel::Gray, false, 1),
        2 => (ColourModel::Rgb, false, 3),
        3 => (ColourModel::Palette, false, 3),
        4 => (ColourModel::Gray, true, 2),
        6 => (ColourModel::Rgb, true, 4),
        other => return Err(broken(format, format!("the colour type {other} does not exist"))),
    };
    let mut header = Header::new(width.into(), height.into(), colour);
    header.bits = bits;
    header.alpha = alpha;
    let mut at = 8usize;
    loop {
        let Some((length, name)) = be32(bytes, at).zip(array::<4>(bytes, at.saturating_add(4))) else {
            header.first_fault(cut("its end chunk is missing"));
            break;
        };
        let Some(data) = piece(bytes, at.saturating_add(8), index(length)) else {
            header.first_fault(cut("a chunk is longer than the file"));
            break;
        };
        match &name {
            b"IEND" => break,
            b"acTL" => header.frames = be32(data, 0).unwrap_or(1).max(1),
            b"tRNS" => header.alpha = true,
            b"iCCP" => header.profile = true,
            b"eXIf" => header.orientation = exif_orientation(data).unwrap_or(1),
            _ => {}
        }
        at = at.saturating_add(index(length)).saturating_add(12);
    }
    let samples = if header.alpha && colour_type != 4 { samples + u64::from(colour_type != 6) } else { samples };
    header.decoder_pixel_bytes = samples * if bits == 16 { 2 } else { 1 };
    // Two rows, and the text that a profile unpacks to.
    header.decoder_bytes = header.decoder_bytes.saturating_add(u64::from(width).saturating_mul(24));
    Ok(header)
}

pub fn gif(bytes: &[u8]) -> Result<Header, ProbeError> {
    let format = Format::Gif;
    let screen = || Some((le16(bytes, 6)?, le16(bytes, 8)?, byte(bytes, 10)?, byte(bytes, 12)?));
    let Some((width, height, flags, _)) = screen() else {
        return Err(ProbeError::Cut { format, what: "its header is not whole" });
    };
    let mut header = Header::new(width.into(), height.into(), ColourModel::Palette);
    let table = |flags: u8| if flags & 0x80 == 0 { 0 } else { 3usize << ((flags & 7) + 1) };
    header.bits = if flags & 0x80 == 0 { 8 } else { (flags & 7) + 1 };
    header.frames = 0;
    let whole = (u64::from(width), u64::from(height));
    let mut at = 13 + table(flags);
    let mut walk = || -> Option<()> {
        loop {
            match byte(bytes, at) {
                // Writers forget the last byte; whole blocks before it are a whole file.
                Some(0x3b) => return Some(()),
                None if header.frames > 0 && at == bytes.len() => return Some(()),
                Some(0x21) => {
                    let label = byte(bytes, at + 1)?;
                    let block = bytes.get(at + 2..)?;
                    header.alpha |= label == 0xf9 && byte(block, 1)? & 1 == 1;
                    header.profile |= label == 0xff && piece(block, 1, 8) == Some(b"ICCRGBG1");
                    at = sub_blocks(bytes, at + 2)?;
                }
                Some(0x2c) => {
                    let (left, top) = (u64::from(le16(bytes, at + 1)?), u64::from(le16(bytes, at + 3)?));
                    let (frame_width, frame_height) =
                        (u64::from(le16(bytes, at + 5)?), u64::from(le16(bytes, at + 7)?));
                    let flags = byte(bytes, at + 9)?;
                    // What a smaller first frame leaves free is transparent.
                    header.alpha |=
                        header.frames == 0 && (left, top, frame_width, frame_height) != (0, 0, whole.0, whole.1);
                    if header.frames == 0 && flags & 0x80 != 0 {
                        header.bits = (flags & 7) + 1;
                    }
                    header.frame_pixels = header.frame_pixels.max(frame_width * frame_height);
                    at = sub_blocks(bytes, at + 11 + table(flags))?;
                    header.frames = header.frames.saturating_add(1);
                }
                _ => return None,
            }
        }
    };
    let is_whole = walk().is_some();
    header.decoder_bytes = header.decoder_bytes.saturating_add(header.frame_pixels.saturating_mul(5));
    if !is_whole && at < bytes.len() && !matches!(byte(bytes, at), Some(0x21 | 0x2c)) {
        header.first_fault(broken(format, "a block of an unknown kind stands in it"));
    } else if !is_whole {
        header.first_fault(ProbeError::Cut { format, what: "a block is longer than the file" });
    } else if header.frames == 0 {
        header.first_fault(broken(format, "it has no frame"));
    }
    header.frames = header.frames.max(1);
    Ok(header)
}

/// The end of a chain of blocks with a length byte each.
fn sub_blocks(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let length = usize::from(byte(bytes, at)?);
        at += 1 + length;
        if length == 0 {
            return Some(at);
        }
    }
}

/// A TIFF structure: a TIFF file, or the Exif part of another.
struct Directories<'a> {
    bytes: &'a [u8],
    little: bool,
    big: bool,
}

/// One field of a directory: where it stands and what it says it holds.
struct Field {
    /// 1 byte, 3 short, 4 long, 16 long of 8 bytes.
    of: u16,
    count: u64,
    /// Bytes of the values, and where they are.
    length: usize,
    at: usize,
}

impl<'a> Directories<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        let little = match piece(bytes, 0, 2)? {
            b"II" => true,
            b"MM" => false,
            _ => return None,
        };
        let mut directories = Self { bytes, little, big: false };
        directories.big = match directories.short(2)? {
            42 => false,
            43 => true,
            _ => return None,
        };
        Some(directories)
    }

    fn short(&self, at: usize) -> Option<u16> {
        if self.little { le16(self.bytes, at) } else { be16(self.bytes, at) }
    }

    fn long(&self, at: usize) -> Option<u32> {
        if self.little { le32(self.bytes, at) } else { be32(self.bytes, at) }
    }

    fn long8(&self, at: usize) -> Option<u64> {
        array(self.bytes, at).map(if self.little { u64::from_le_bytes } else { u64::from_be_bytes })
    }

    /// An offset in this structure.
    fn offset(&self, at: usize) -> Option<usize> {
        if self.big { usize::try_from(self.long8(at)?).ok() } else { usize::try_from(self.long(at)?).ok() }
    }

    fn first(&self) -> Option<usize> {
        self.offset(if self.big { 8 } else { 4 })
    }

    fn fields(&self, directory: usize) -> Option<usize> {
        if self.big { usize::try_from(self.long8(directory)?).ok() } else { Some(self.short(directory)?.into()) }
    }

    /// Widths of the count of a directory, of a field, of a field's value.
    fn widths(&self) -> (usize, usize, usize) {
        if self.big { (8, 20, 8) } else { (2, 12, 4) }
    }

    /// The next directory, 0 for none.
    fn next(&self, directory: usize) -> Option<usize> {
        let (count, field, _) = self.widths();
        self.offset(directory.checked_add(count)?.checked_add(self.fields(directory)?.checked_mul(field)?)?)
    }

    /// The tags and fields of a directory, as far as they are there.
    fn all(&self, directory: usize) -> impl Iterator<Item = (u16, Field)> {
        let (count_width, field_width, value_width) = self.widths();
        let fields = self.fields(directory).unwrap_or(0);
        (0..fields).map_while(move |number| {
            let at = directory.checked_add(count_width)?.checked_add(number.checked_mul(field_width)?)?;
            let (tag, of) = (self.short(at)?, self.short(at.checked_add(2)?)?);
            let count = if self.big { self.long8(at.checked_add(4)?)? } else { self.long(at.checked_add(4)?)?.into() };
            let width: u64 = match of {
                1 | 2 | 6 | 7 => 1,
                3 | 8 => 2,
                4 | 9 | 11 | 13 => 4,
                _ => 8,
            };
            let length = usize::try_from(count.saturating_mul(width)).unwrap_or(usize::MAX);
            let value = at.checked_add(field_width - value_width)?;
            let at = if length <= value_width { value } else { self.offset(value)? };
            Some((tag, Field { of, count, length, at }))
        })
    }

    fn find(&self, directory: usize, tag: u16) -> Option<Field> {
        self.all(directory).find(|(found, _)| *found == tag).map(|(_, field)| field)
    }

    /// The value number `number` of a field of whole numbers.
    fn value(&self, field: &Field, number: usize) -> Option<u64> {
        if u64::try_from(number).ok()? >= field.count {
            return None;
        }
        let at = |width: usize| field.at.checked_add(number.checked_mul(width)?);
        match field.of {
            1 => byte(self.bytes, at(1)?).map(u64::from),
            3 => self.short(at(2)?).map(u64::from),
            4 => self.long(at(4)?).map(u64::from),
            16 => self.long8(at(8)?),
            _ => None,
        }
    }

    fn number(&self, directory: usize, tag: u16) -> Option<u64> {
        self.value(&self.find(directory, tag)?, 0)
    }

    fn orientation(&self, directory: usize) -> Option<u8> {
        let turn = u8::try_from(self.number(directory, 0x0112)?).ok()?;
        (1..=8).contains(&turn).then_some(turn)
    }
}

/// The orientation that Exif data name, 1–8.
fn exif_orientation(exif: &[u8]) -> Option<u8> {
    let directories = Directories::open(exif)?;
    directories.orientation(directories.first()?)
}

/// What the TIFF decoder takes for one value of a field while it reads the field.
const FIELD_VALUE: u64 = 64;

pub fn tiff(bytes: &[u8], limits: &Limits) -> Result<Header, ProbeError> {
    let format = Format::Tiff;
    let cut = |what| ProbeError::Cut { format, what };
    let directories = Directories::open(bytes).ok_or_else(|| cut("its header is not whole"))?;
    let first = directories.first().ok_or_else(|| cut("its header is not whole"))?;
    if directories.next(first).is_none() {
        return Err(cut("the directory of its first page is missing"));
    }
    let number = |tag: u16, default: u64| directories.number(first, tag).unwrap_or(default);
    let (width, height) = (number(0x0100, 0), number(0x0101, 0));
    let bits = number(0x0102, 1);
    let samples = number(0x0115, 1).clamp(1, 64);
    let (colour, colours) = match number(0x0106, 1) {
        0 | 1 => (ColourModel::Gray, 1),
        2 | 6 => (ColourModel::Rgb, 3),
        3 => (ColourModel::Palette, 1),
        5 => (ColourModel::Cmyk, 4),
        other => return Err(unsupported(format, format!("the colour space of number {other}"))),
    };
    let mut header = Header::new(width, height, colour);
    header.bits = u8::try_from(bits).unwrap_or(u8::MAX);
    header.alpha = samples > colours;
    header.orientation = directories.orientation(first).unwrap_or(1);
    header.profile = directories.find(first, 0x8773).is_some();
    // The depths of up to 65 535 samples, and their telling in an error.
    header.decoder_bytes = header.decoder_bytes.saturating_add(3 << 20);
    // The samples, a strip or tile of them before they are put in place, and the picture that is made of them.
    header.decoder_pixel_bytes = samples * if bits > 8 { 2 } else { 1 } * 2 + 6;
    // The decoder makes room for as many values as fields of TIFF's own announce, before it reads them.
    for (tag, field) in directories.all(first) {
        if tag >= 0x0300 {
            continue;
        }
        if piece(bytes, field.at, field.length).is_none() {
            header.first_fault(cut("a field is longer than the file"));
        } else {
            header.decoder_bytes = header.decoder_bytes.saturating_add(field.count.saturating_mul(FIELD_VALUE));
        }
    }
    if number(0x0103, 1) == 7 {
        tiff_jpegs(&directories, first, limits, &mut header);
    }
    let is_float = number(0x0153, 1) != 1;
    if is_float || bits > 16 {
        header.first_fault(unsupported(format, "samples that are not whole numbers of at most 16 bits"));
    } else if colour == ColourModel::Palette && bits != 8 {
        header.first_fault(unsupported(format, format!("a palette of {bits} bits")));
    }
    let (mut pages, mut seen, mut page) = (0u32, BTreeSet::new(), first);
    while page != 0 {
        if !seen.insert(page) {
            header.first_fault(broken(format, "its pages form a ring"));
            break;
        }
        let Some(next) = directories.next(page) else {
            header.first_fault(cut("the directory of a page is missing"));
            break;
        };
        pages = pages.saturating_add(1);
        if pages > limits.frames {
            break;
        }
        page = next;
    }
    header.frames = pages.max(1);
    Ok(header)
}

/// The JPEG pieces of a TIFF page, and their shared tables: each announces a size of its own, and the decoder makes room
/// for it.
fn tiff_jpegs(directories: &Directories, page: usize, limits: &Limits, header: &mut Header) {
    let format = Format::Tiff;
    // Strips, tiles.
    let pieces = [(0x0111, 0x0117), (0x0144, 0x0145)]
        .map(|(offsets, lengths)| directories.find(page, offsets).zip(directories.find(page, lengths)));
    let mut read = 0usize;
    let mut look = |jpeg_bytes: &[u8]| {
        // Overlapping pieces would be read again and again.
        read = read.saturating_add(jpeg_bytes.len());
        if read > directories.bytes.len() {
            header.first_fault(broken(format, "its pieces overlap"));
            return false;
        }
        if let Ok(inner) = jpeg(jpeg_bytes, limits) {
            let pixels = inner.width.saturating_mul(inner.height);
            let needed = pixels.saturating_mul(inner.decoder_pixel_bytes).saturating_add(inner.decoder_bytes);
            header.frame_pixels = header.frame_pixels.max(pixels);
            header.decoder_bytes = header.decoder_bytes.max(needed);
            if let Some(fault @ (ProbeError::TooManyScans { .. } | ProbeError::Unsupported { .. })) = inner.fault {
                header.first_fault(fault);
            }
        }
        true
    };
    if let Some(tables) = directories.find(page, 0x015b)
        && let Some(tables) = piece(directories.bytes, tables.at, tables.length)
    {
        look(tables);
    }
    for (offsets, lengths) in pieces.into_iter().flatten() {
        for number in 0..usize::try_from(offsets.count).unwrap_or(usize::MAX) {
            let value = |field| directories.value(field, number).and_then(|value| usize::try_from(value).ok());
            let Some((start, length)) = value(&offsets).zip(value(&lengths)) else { break };
            let bytes = directories.bytes.get(start..).unwrap_or_default();
            if !look(bytes.get(..length).unwrap_or(bytes)) {
                return;
            }
        }
    }
}

/// The colours of a TIFF with a palette of 8 bits, and where the short that says so stands: red, green and blue of 256
/// entries in 16 bits, as TIFF 6.0 orders them.
pub struct TiffPalette {
    pub colours: Vec<[u8; 3]>,
    pub photometric_at: usize,
    pub little: bool,
}

pub fn tiff_palette(bytes: &[u8]) -> Option<TiffPalette> {
    let directories = Directories::open(bytes)?;
    let first = directories.first()?;
    let photometric = directories.find(first, 0x0106)?;
    let map = directories.find(first, 0x0140)?;
    if photometric.of != 3 || map.of != 3 || map.count != 768 {
        return None;
    }
    let colour = |number: usize| directories.value(&map, number).and_then(|value| u8::try_from(value >> 8).ok());
    let entry = |entry: usize| Some([colour(entry)?, colour(256 + entry)?, colour(512 + entry)?]);
    let colours: Option<Vec<[u8; 3]>> = (0..256).map(entry).collect();
    Some(TiffPalette { colours: colours?, photometric_at: photometric.at, little: directories.little })
}

pub fn webp(bytes: &[u8]) -> Result<Header, ProbeError> {
    let format = Format::Webp;
    let cut = |what| ProbeError::Cut { format, what };
    let data = bytes.get(20..).unwrap_or_default();
    let first = match array::<4>(bytes, 12).as_ref() {
        Some(b"VP8 ") => lossy_webp(data),
        Some(b"VP8L") => lossless_webp(data),
        Some(b"VP8X") => extended_webp(data),
        Some(_) => return Err(broken(format, "it does not begin with a picture")),
        None => None,
    };
    let mut header = first.ok_or_else(|| cut("its header is not whole"))?;
    let announced = le32(bytes, 4).map_or(usize::MAX, index).saturating_add(8);
    if announced > bytes.len() {
        header.first_fault(cut("it is shorter than it says"));
    }
    let mut frames = 0u32;
    let is_whole = webp_chunks(bytes.get(12..).unwrap_or_default(), &mut |name, data| match name {
        b"ANMF" => {
            frames = frames.saturating_add(1);
            let is_whole = webp_chunks(data.get(16..).unwrap_or_default(), &mut |name, data| {
                webp_picture(&mut header, name, data);
            });
            if !is_whole {
                header.first_fault(cut("a frame is longer than its chunk"));
            }
        }
        b"ICCP" => header.profile = true,
        b"EXIF" => {
            let exif = data.strip_prefix(b"Exif\0\0").unwrap_or(data);
            header.orientation = exif_orientation(exif).unwrap_or(1);
        }
        name => webp_picture(&mut header, name, data),
    });
    if !is_whole {
        header.first_fault(cut("a chunk is longer than the file"));
    }
    header.frames = frames.max(1);
    // The decoder keeps the picture, its planes and a transformed copy.
    header.decoder_pixel_bytes = 12;
    header.decoder_bytes = header.decoder_bytes.saturating_add(header.frame_pixels.saturating_mul(12));
    Ok(header)
}

/// Calls `each` with the name and the data of every whole chunk; whether all are whole.
fn webp_chunks<'a>(bytes: &'a [u8], each: &mut dyn FnMut(&[u8; 4], &'a [u8])) -> bool {
    let mut at = 0usize;
    while let Some((name, length)) = array::<4>(bytes, at).zip(le32(bytes, at.saturating_add(4))) {
        let Some(data) = piece(bytes, at.saturating_add(8), index(length)) else { return false };
        each(&name, data);
        at = at.saturating_add(8).saturating_add(index(length)).saturating_add(index(length & 1));
    }
    true
}

/// A picture within may announce another size than the file.
fn webp_picture(header: &mut Header, name: &[u8; 4], data: &[u8]) {
    let picture = match name {
        b"VP8 " => lossy_webp(data),
        b"VP8L" => lossless_webp(data),
        _ => return,
    };
    if let Some(picture) = picture {
        header.frame_pixels = header.frame_pixels.max(picture.width.saturating_mul(picture.height));
        header.decoder_bytes = header.decoder_bytes.max(picture.decoder_bytes);
    }
}

fn lossy_webp(data: &[u8]) -> Option<Header> {
    (piece(data, 3, 3)? == b"\x9d\x01\x2a").then_some(())?;
    let side = |at| le16(data, at).map(|value| u64::from(value & 0x3fff));
    let mut header = Header::new(side(6)?, side(8)?, ColourModel::Rgb);
    // The decoder makes room for a partition by its announced length, of 24 bits, before it reads it.
    header.decoder_bytes = header.decoder_bytes.saturating_add(1 << 24);
    Some(header)
}

fn lossless_webp(data: &[u8]) -> Option<Header> {
    (byte(data, 0)? == 0x2f).then_some(())?;
    let fields = le32(data, 1)?;
    let side = |shift: u32| u64::from((fields >> shift) & 0x3fff) + 1;
    let mut header = Header::new(side(0), side(14), ColourModel::Rgb);
    header.alpha = fields >> 28 & 1 == 1;
    Some(header)
}

fn extended_webp(data: &[u8]) -> Option<Header> {
    let flags = byte(data, 0)?;
    let side = |at| array::<3>(data, at).map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0])) + 1);
    let mut header = Header::new(side(4)?, side(7)?, ColourModel::Rgb);
    header.alpha = flags & 0x10 != 0;
    header.profile = flags & 0x20 != 0;
    Some(header)
}

pub fn bmp(bytes: &[u8]) -> Result<Header, ProbeError> {
    let format = Format::Bmp;
    let fields = || {
        let size = le32(bytes, 14)?;
        Some(match size {
            12 => (u64::from(le16(bytes, 18)?), u64::from(le16(bytes, 20)?), le16(bytes, 24)?),
            _ => {
                // A negative height means rows from the top.
                let side = |at| le32(bytes, at).map(|value| u64::from(value.cast_signed().unsigned_abs()));
                (side(18)?, side(22)?, le16(bytes, 28)?)
            }
        })
    };
    let (width, height, bits) = fields().ok_or(ProbeError::Cut { format, what: "its header is not whole" })?;
    let (colour, of_sample) = match bits {
        1 | 2 | 4 | 8 => (ColourModel::Palette, bits),
        16 => (ColourModel::Rgb, 5),
        24 | 32 => (ColourModel::Rgb, 8),
        other => return Err(unsupported(format, format!("{other} bits per pixel"))),
    };
    let mut header = Header::new(width, height, colour);
    header.bits = u8::try_from(of_sample).unwrap_or(8);
    // Only headers of 56 bytes and more can give the fourth byte a meaning, by a mask.
    header.alpha = bits == 32 && le32(bytes, 14) >= Some(56) && le32(bytes, 66).is_some_and(|mask| mask != 0);
    Ok(header)
}
