//! JPEG and PNG files without what they tell beside the picture: place, time, device and people (Exif, XMP, IPTC, comments,
//! previews). Pixels are not decoded and not changed.

/// What is kept of a PNG beside the critical chunks: how samples become colours, and the size of a pixel.
const KEPT_CHUNKS: [&[u8]; 12] =
    [b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"cICP", b"sBIT", b"bKGD", b"pHYs", b"acTL", b"fcTL", b"fdAT"];

/// The same picture without metadata. None if there is nothing to take out, or the file is not built as it should be.
pub fn without_metadata(bytes: &[u8]) -> Option<Vec<u8>> {
    let stripped = if bytes.starts_with(b"\xff\xd8") { jpeg(bytes)? } else { png(bytes)? };
    (stripped.len() < bytes.len()).then_some(stripped)
}

/// Segments up to the first scan (ITU-T T.81, annex B); from there on everything stays, up to the end of the image.
fn jpeg(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = bytes.get(..2)?.to_vec();
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        if marker == 0xff {
            // A fill byte.
            at += 1;
            continue;
        }
        let length = u16::from_be_bytes([*bytes.get(at + 2)?, *bytes.get(at + 3)?]);
        let end = at + 2 + usize::from(length);
        let segment = bytes.get(at..end)?;
        let body = segment.get(4..).unwrap_or_default();
        let is_kept = match marker {
            // JFIF (density); another APP0 is a preview.
            0xe0 => body.starts_with(b"JFIF\0"),
            // The colour profile; another APP2 tells of further pictures.
            0xe2 => body.starts_with(b"ICC_PROFILE\0"),
            // Adobe's mark of how colours are stored.
            0xee => true,
            0xe1 | 0xe3..=0xed | 0xef | 0xfe => false,
            _ => true,
        };
        if is_kept {
            out.extend_from_slice(segment);
        }
        if marker == 0xda {
            // What follows the end of the image is no part of it.
            let rest = bytes.get(end..)?;
            let stop = rest.windows(2).rposition(|pair| pair == [0xff, 0xd9]).map_or(rest.len(), |at| at + 2);
            out.extend_from_slice(rest.get(..stop)?);
            return Some(out);
        }
        at = end;
    }
}

/// Chunks (PNG, third edition, 5.3): length, type, data, check sum.
fn png(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n").and(bytes.get(..8))?.to_vec();
    let mut at = 8;
    loop {
        let length = u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
        let kind = bytes.get(at + 4..at + 8)?;
        let end = at.checked_add(12)?.checked_add(usize::try_from(length).ok()?)?;
        let chunk = bytes.get(at..end)?;
        let is_critical = kind.first().is_some_and(u8::is_ascii_uppercase);
        if is_critical || KEPT_CHUNKS.contains(&kind) {
            out.extend_from_slice(chunk);
        }
        if kind == b"IEND" {
            return Some(out);
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::decode::decode;
    use crate::media::probe::Limits;
    use image::{ImageFormat, Rgb, RgbImage};
    use proptest::prelude::*;
    use std::io::Cursor;

    fn picture(format: ImageFormat) -> Vec<u8> {
        let picture = RgbImage::from_fn(20, 12, |x, y| Rgb([(x * 12) as u8, (y * 20) as u8, 90]));
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn with_segment(jpeg: &[u8], marker: u8, body: &[u8]) -> Vec<u8> {
        let mut out = jpeg[..2].to_vec();
        out.extend([0xff, marker]);
        out.extend(u16::try_from(body.len() + 2).unwrap().to_be_bytes());
        out.extend(body);
        out.extend(&jpeg[2..]);
        out
    }

    #[test]
    fn a_jpeg_keeps_its_picture_and_loses_its_place() {
        let plain = picture(ImageFormat::Jpeg);
        assert_eq!(without_metadata(&plain), None);
        let mut told = with_segment(&plain, 0xe1, b"Exif\0\0GPS 47.1 N");
        told = with_segment(&told, 0xfe, b"Jane Doe");
        told.extend(b"trailing data");
        let stripped = without_metadata(&told).unwrap();
        assert_eq!(stripped, plain);
        let profile = with_segment(&plain, 0xe2, b"ICC_PROFILE\0profile");
        assert_eq!(without_metadata(&profile), None);
    }

    #[test]
    fn a_png_keeps_its_picture_and_loses_its_texts() {
        let plain = picture(ImageFormat::Png);
        assert_eq!(without_metadata(&plain), None);
        let mut told = plain[..33].to_vec();
        told.extend(8u32.to_be_bytes());
        told.extend(b"tEXtJane Doe");
        told.extend([0; 4]);
        told.extend(&plain[33..]);
        assert_eq!(without_metadata(&told).unwrap(), plain);
    }

    proptest! {
        #[test]
        fn nothing_panics_and_no_pixel_changes(at in 0usize..400, byte in any::<u8>(), is_png in any::<bool>()) {
            let mut bytes = picture(if is_png { ImageFormat::Png } else { ImageFormat::Jpeg });
            let place = at % bytes.len();
            bytes[place] = byte;
            if let Some(stripped) = without_metadata(&bytes)
                && let Ok(before) = decode(&bytes, &Limits::default())
                && before.probe.orientation == 1
            {
                prop_assert_eq!(decode(&stripped, &Limits::default()).unwrap().pixels, before.pixels);
            }
        }
    }
}
