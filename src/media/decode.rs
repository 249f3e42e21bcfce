//! An image's pixels as 8-bit RGB, upright, under the limits that were checked on its header.
//!
//! Print journals deliver CMYK. Its inks become light by the plain formula, `red = 255 · (1 − cyan) · (1 − black)`:
//! colours of the attached profile are not reproduced, and the profile is dropped. Adobe programs store the inks
//! inverted and say so by their marker alone; a JPEG with four components and without that marker holds them as they
//! are. Transparent pixels show white, the page behind a figure.

use std::io::{self, Cursor};
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::codecs::{bmp::BmpDecoder, gif::GifDecoder, png::PngDecoder, tiff::TiffDecoder, webp::WebPDecoder};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, RgbImage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

use super::header::tiff_palette;
use super::probe::{ColourModel, Format, Limits, Probe, ProbeError, probe};

/// What was done to come from what is stored to RGB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conversion {
    /// Only the first frame or page is there.
    FirstFrameOnly,
    InksToRgb,
    /// As [`Conversion::InksToRgb`], of inks that are stored inverted.
    InvertedInksToRgb,
    PaletteToRgb,
    GrayToRgb,
    /// 16 bits a sample to 8.
    SixteenBitsToEight,
    /// Transparent pixels over white.
    Flattened,
    ProfileDropped,
    /// Turned or mirrored as the file asks.
    Turned,
}

/// An image and what it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    pub probe: Probe,
    /// `probe.width` × `probe.height`, without any metadata.
    pub pixels: RgbImage,
    /// In the order in which they were done.
    pub conversions: Vec<Conversion>,
}

/// Probes an image and decodes its first frame or page.
///
/// # Errors
/// As [`probe`], and what decoding finds.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Decoded, ProbeError> {
    let probe = probe(bytes, limits)?;
    let format = probe.format;
    // Decoders are the work of others and meet every file there is: one that panics costs this file and not the run.
    let pixels = catch_unwind(AssertUnwindSafe(|| pixels(bytes, &probe, limits)))
        .unwrap_or(Err(ProbeError::DecoderFailed { format }))?;
    if pixels.dimensions() != (probe.width, probe.height) {
        return Err(disagreement(format));
    }
    let conversions = conversions(&probe);
    Ok(Decoded { probe, pixels, conversions })
}

fn conversions(probe: &Probe) -> Vec<Conversion> {
    let colour = match (probe.colour, probe.inverted) {
        (ColourModel::Gray, _) => Some(Conversion::GrayToRgb),
        (ColourModel::Rgb, _) => None,
        (ColourModel::Cmyk | ColourModel::Ycck, false) => Some(Conversion::InksToRgb),
        (ColourModel::Cmyk | ColourModel::Ycck, true) => Some(Conversion::InvertedInksToRgb),
        (ColourModel::Palette, _) => Some(Conversion::PaletteToRgb),
    };
    let steps = [
        (probe.frames > 1).then_some(Conversion::FirstFrameOnly),
        colour,
        (probe.bits > 8).then_some(Conversion::SixteenBitsToEight),
        probe.alpha.then_some(Conversion::Flattened),
        probe.profile.then_some(Conversion::ProfileDropped),
        (probe.orientation != 1).then_some(Conversion::Turned),
    ];
    steps.into_iter().flatten().collect()
}

fn pixels(bytes: &[u8], probe: &Probe, limits: &Limits) -> Result<RgbImage, ProbeError> {
    let format = probe.format;
    let reader = Cursor::new(bytes);
    let stored = match format {
        Format::Jpeg => jpeg(bytes, probe)?,
        Format::Tiff if probe.colour == ColourModel::Palette => palette_tiff(bytes, probe, limits)?,
        Format::Png => flat(load(PngDecoder::with_limits(reader, image_limits(limits)), probe, limits)?),
        Format::Gif => flat(load(GifDecoder::new(reader), probe, limits)?),
        Format::Tiff => flat(load(TiffDecoder::new(reader), probe, limits)?),
        Format::Webp => flat(load(WebPDecoder::new(reader), probe, limits)?),
        Format::Bmp => flat(load(BmpDecoder::new(reader), probe, limits)?),
    };
    let mut picture = DynamicImage::ImageRgb8(stored);
    picture.apply_orientation(Orientation::from_exif(probe.orientation).unwrap_or(Orientation::NoTransforms));
    Ok(picture.into_rgb8())
}

fn image_limits(limits: &Limits) -> image::Limits {
    let mut most = image::Limits::no_limits();
    most.max_alloc = Some(limits.decoded_bytes);
    most
}

/// Decodes if the decoder sees the size that was checked.
fn load<D: ImageDecoder>(
    decoder: Result<D, ImageError>,
    probe: &Probe,
    limits: &Limits,
) -> Result<DynamicImage, ProbeError> {
    let fault = |error| image_fault(probe.format, limits, error);
    let mut decoder = decoder.map_err(fault)?;
    if decoder.dimensions() != (probe.stored_width, probe.stored_height) {
        return Err(disagreement(probe.format));
    }
    decoder.set_limits(image_limits(limits)).map_err(fault)?;
    DynamicImage::from_decoder(decoder).map_err(fault)
}

/// RGB of 8 bits, over white.
fn flat(picture: DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.into_rgb8();
    }
    let with_alpha = picture.into_rgba8();
    let mut flat = RgbImage::new(with_alpha.width(), with_alpha.height());
    for (to, from) in flat.pixels_mut().zip(with_alpha.pixels()) {
        let [red, green, blue, alpha] = from.0;
        to.0 = [red, green, blue].map(|value| share(value, alpha).saturating_add(255 - alpha));
    }
    flat
}

/// `value · part / 255`, rounded.
fn share(value: u8, part: u8) -> u8 {
    u8::try_from((u32::from(value) * u32::from(part) + 127) / 255).unwrap_or(u8::MAX)
}

fn jpeg(bytes: &[u8], probe: &Probe) -> Result<RgbImage, ProbeError> {
    let format = Format::Jpeg;
    let side = |side: u32| usize::try_from(side).unwrap_or(usize::MAX);
    // The decoder takes all inks for inverted when it makes RGB of them, so plain ones are taken from it as they are.
    let output = match probe.colour {
        ColourModel::Gray => ColorSpace::Luma,
        ColourModel::Cmyk => ColorSpace::CMYK,
        ColourModel::Rgb | ColourModel::Ycck | ColourModel::Palette => ColorSpace::RGB,
    };
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(side(probe.stored_width))
        .set_max_height(side(probe.stored_height))
        .jpeg_set_out_colorspace(output);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(jpeg_fault)?;
    let samples = output.num_components();
    let needed = side(probe.stored_width).saturating_mul(side(probe.stored_height)).saturating_mul(samples);
    if decoder.dimensions() != Some((side(probe.stored_width), side(probe.stored_height)))
        || decoder.output_buffer_size() != Some(needed)
    {
        return Err(disagreement(format));
    }
    let data = decoder.decode().map_err(jpeg_fault)?;
    if data.len() != needed {
        return Err(disagreement(format));
    }
    let rgb = match output {
        ColorSpace::Luma => data.iter().flat_map(|gray| [*gray; 3]).collect(),
        ColorSpace::CMYK => inks_to_rgb(&data, probe.inverted),
        _ => data,
    };
    RgbImage::from_raw(probe.stored_width, probe.stored_height, rgb).ok_or_else(|| disagreement(format))
}

fn inks_to_rgb(data: &[u8], inverted: bool) -> Vec<u8> {
    let (pixels, _) = data.as_chunks::<4>();
    let mut rgb = Vec::with_capacity(pixels.len().saturating_mul(3));
    for inks in pixels {
        let [cyan, magenta, yellow, black] = if inverted { *inks } else { inks.map(|ink| 255 - ink) };
        rgb.extend([cyan, magenta, yellow].map(|light| share(light, black)));
    }
    rgb
}

/// The TIFF decoder knows no palettes; told that the places in the palette are gray values, it reads them.
fn palette_tiff(bytes: &[u8], probe: &Probe, limits: &Limits) -> Result<RgbImage, ProbeError> {
    let format = Format::Tiff;
    let palette =
        tiff_palette(bytes).ok_or(ProbeError::Broken { format, what: "its palette is missing or cut".to_owned() })?;
    let mut gray = bytes.to_vec();
    let one = if palette.little { 1u16.to_le_bytes() } else { 1u16.to_be_bytes() };
    if let Some(photometric) = gray.get_mut(palette.photometric_at..).and_then(|rest| rest.first_chunk_mut()) {
        *photometric = one;
    }
    let DynamicImage::ImageLuma8(places) = load(TiffDecoder::new(Cursor::new(gray)), probe, limits)? else {
        return Err(ProbeError::Unsupported { format, what: "a palette and more samples".to_owned() });
    };
    let colours =
        places.as_raw().iter().flat_map(|place| palette.colours.get(usize::from(*place)).copied().unwrap_or_default());
    RgbImage::from_raw(places.width(), places.height(), colours.collect()).ok_or_else(|| disagreement(format))
}

fn disagreement(format: Format) -> ProbeError {
    ProbeError::Broken { format, what: "its headers contradict each other about the picture's size".to_owned() }
}

fn jpeg_fault(error: DecodeErrors) -> ProbeError {
    let format = Format::Jpeg;
    match error {
        DecodeErrors::ExhaustedData | DecodeErrors::IoErrors(_) => {
            ProbeError::Cut { format, what: "the picture data end early" }
        }
        DecodeErrors::Unsupported(what) => ProbeError::Unsupported { format, what: format!("{what:?}") },
        other => ProbeError::Broken { format, what: one_line(&format!("{other:?}")) },
    }
}

fn image_fault(format: Format, limits: &Limits, error: ImageError) -> ProbeError {
    match error {
        ImageError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            ProbeError::Cut { format, what: "the picture data end early" }
        }
        ImageError::Limits(_) => ProbeError::DecoderLimit { format, limit: limits.decoded_bytes },
        ImageError::Unsupported(what) => ProbeError::Unsupported { format, what: one_line(&what.to_string()) },
        other => ProbeError::Broken { format, what: one_line(&other.to_string()) },
    }
}

/// The words of a decoder, on one line of at most 160 characters.
fn one_line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).take(160).collect()
}
