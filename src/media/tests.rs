//! Images are made here: by the encoders of `image` where it has one, else byte by byte.

use std::io::Cursor;

use expect_test::{Expect, expect};
use image::codecs::gif::GifEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, Frame, GrayImage, ImageBuffer, ImageFormat, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use proptest::prelude::*;

use super::decode::{Conversion, decode};
use super::files::{MatchError, MatchReason, match_files};
use super::hash::DifferenceHash;
use super::kind::{Claim, Group, Kind};
use super::probe::{Limits, ProbeError, probe, read};

/// What an image is and what becomes of it: its account, its conversions, and the pixels of its corners.
fn account(bytes: &[u8]) -> String {
    let probed = match probe(bytes, &Limits::default()) {
        Ok(probed) => probed,
        Err(fault) => return format!("not probed: {fault}"),
    };
    let turn = if probed.orientation == 1 { String::new() } else { format!(", turn {}", probed.orientation) };
    let marks = [(probed.alpha, ", alpha"), (probed.inverted, ", inverted"), (probed.profile, ", profile")];
    let marks: String = marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect();
    let head = format!(
        "{} {}×{} {:?} {} bits{turn}{marks}, {} frame(s)",
        probed.format.name(),
        probed.width,
        probed.height,
        probed.colour,
        probed.bits,
        probed.frames
    );
    match decode(bytes, &Limits::default()) {
        Err(fault) => format!("{head}\nnot decoded: {fault}"),
        Ok(decoded) => {
            assert_eq!(decoded.probe, probed);
            let (right, bottom) = (probed.width - 1, probed.height - 1);
            let corners = [(0, 0), (right, 0), (0, bottom), (right, bottom)];
            let corners = corners.map(|(x, y)| format!("{:?}", decoded.pixels.get_pixel(x, y).0)).join(" ");
            format!("{head}\n{:?}\n{corners}", decoded.conversions)
        }
    }
}

fn check(bytes: &[u8], expected: Expect) {
    expected.assert_eq(&account(bytes));
}

fn encode(picture: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.into().write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A baseline JPEG of one colour. Every block has its mean alone and tables quantise by 1, so values are kept exactly.
fn flat_jpeg(side: u16, samples: &[u8], ids: &[u8], adobe: Option<u8>) -> Vec<u8> {
    fn segment(bytes: &mut Vec<u8>, marker: u8, data: &[u8]) {
        bytes.extend([0xff, marker]);
        bytes.extend(u16::try_from(data.len() + 2).unwrap().to_be_bytes());
        bytes.extend(data);
    }
    let mut bytes = vec![0xff, 0xd8];
    if let Some(transform) = adobe {
        segment(&mut bytes, 0xee, &[b"Adobe\0\x64\0\0\0\0", [transform].as_slice()].concat());
    }
    segment(&mut bytes, 0xdb, &[[0].as_slice(), &[1; 64]].concat());
    let [high, low] = side.to_be_bytes();
    let count = u8::try_from(samples.len()).unwrap();
    let components: Vec<u8> = ids.iter().flat_map(|id| [*id, 0x11, 0]).collect();
    segment(&mut bytes, 0xc0, &[[8, high, low, high, low, count].as_slice(), &components].concat());
    // Means: twelve sizes in four bits each. Details: only "no more", in one bit.
    let sizes: Vec<u8> = (0..12).collect();
    segment(&mut bytes, 0xc4, &[[0, 0, 0, 0, 12].as_slice(), &[0; 12], &sizes].concat());
    segment(&mut bytes, 0xc4, &[[0x10, 1].as_slice(), &[0; 15], &[0]].concat());
    let scan: Vec<u8> = ids.iter().flat_map(|id| [*id, 0]).collect();
    segment(&mut bytes, 0xda, &[[count].as_slice(), &scan, &[0, 63, 0]].concat());
    let mut bits: Vec<bool> = Vec::new();
    let mut push = |value: u32, width: u32| bits.extend((0..width).rev().map(|place| value >> place & 1 == 1));
    for block in 0..u32::from(side).div_ceil(8).pow(2) {
        for sample in samples {
            let mean = if block == 0 { (i32::from(*sample) - 128) * 8 } else { 0 };
            let size = 32 - mean.unsigned_abs().leading_zeros();
            push(size, 4);
            push(u32::try_from(if mean < 0 { mean + (1 << size) - 1 } else { mean }).unwrap(), size);
            push(0, 1);
        }
    }
    bits.resize(bits.len().next_multiple_of(8), true);
    for eight in bits.chunks(8) {
        let byte = eight.iter().fold(0u8, |byte, bit| byte << 1 | u8::from(*bit));
        bytes.push(byte);
        if byte == 0xff {
            bytes.push(0);
        }
    }
    bytes.extend([0xff, 0xd9]);
    bytes
}

/// A page of a TIFF file, in one strip without compression.
struct Page<'a> {
    width: u16,
    height: u16,
    photometric: u16,
    bits: u16,
    samples: u16,
    data: &'a [u8],
    map: Option<Vec<u16>>,
    orientation: u16,
}

fn page(width: u16, height: u16, photometric: u16, bits: u16, samples: u16, data: &[u8]) -> Page<'_> {
    Page { width, height, photometric, bits, samples, data, map: None, orientation: 1 }
}

fn tiff(pages: &[Page]) -> Vec<u8> {
    let mut bytes = b"MM\0*\0\0\0\x08".to_vec();
    for (number, page) in pages.iter().enumerate() {
        let short = |value: u16| u32::from(value) << 16;
        let fields: u16 = 10 + u16::from(page.map.is_some());
        let start = u32::try_from(bytes.len()).unwrap() + 2 + 12 * u32::from(fields) + 4;
        let many = page.samples > 2;
        let depths_at = start;
        let data_at = depths_at + if many { 2 * u32::from(page.samples) } else { 0 };
        let data_length = u32::try_from(page.data.len()).unwrap();
        let map_at = data_at + data_length + data_length % 2;
        let map_length = page.map.as_ref().map_or(0, |map| u32::try_from(map.len() * 2).unwrap());
        bytes.extend(fields.to_be_bytes());
        let mut field = |tag: u16, of: u16, count: u32, value: u32| {
            bytes.extend(tag.to_be_bytes());
            bytes.extend(of.to_be_bytes());
            bytes.extend(count.to_be_bytes());
            bytes.extend(value.to_be_bytes());
        };
        field(0x100, 3, 1, short(page.width));
        field(0x101, 3, 1, short(page.height));
        field(0x102, 3, page.samples.into(), if many { depths_at } else { short(page.bits) });
        field(0x103, 3, 1, short(1));
        field(0x106, 3, 1, short(page.photometric));
        field(0x111, 4, 1, data_at);
        field(0x112, 3, 1, short(page.orientation));
        field(0x115, 3, 1, short(page.samples));
        field(0x116, 3, 1, short(page.height));
        field(0x117, 4, 1, data_length);
        if page.map.is_some() {
            field(0x140, 3, map_length / 2, map_at);
        }
        let next = if number + 1 == pages.len() { 0 } else { map_at + map_length };
        bytes.extend(next.to_be_bytes());
        if many {
            bytes.extend((0..page.samples).flat_map(|_| page.bits.to_be_bytes()));
        }
        bytes.extend(page.data);
        bytes.resize(bytes.len().next_multiple_of(2), 0);
        bytes.extend(page.map.iter().flatten().flat_map(|value| value.to_be_bytes()));
    }
    bytes
}

/// The Exif data that ask for a turn.
fn exif(turn: u8) -> Vec<u8> {
    [b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".as_slice(), &[turn, 0, 0, 0, 0, 0, 0, 0]].concat()
}

/// A gray JPEG of 2 × 3 whose stored top left pixel is black and whose others are white, with an Exif turn.
fn turned_jpeg(turn: u8) -> Vec<u8> {
    let mut picture = GrayImage::from_pixel(2, 3, Luma([255]));
    picture.put_pixel(0, 0, Luma([0]));
    let mut plain = Vec::new();
    JpegEncoder::new_with_quality(&mut plain, 100).encode_image(&picture).unwrap();
    let data = [b"Exif\0\0".as_slice(), &exif(turn)].concat();
    let length = u16::try_from(data.len() + 2).unwrap().to_be_bytes();
    [&plain[..2], &[0xff, 0xe1], &length, &data, &plain[2..]].concat()
}

/// Half black, half white, and a border of one pixel in red at the top.
fn sample(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| match (x, y) {
        (_, 0) => Rgb([255, 0, 0]),
        (x, _) if x * 2 < width => Rgb([0, 0, 0]),
        _ => Rgb([255, 255, 255]),
    })
}

fn animation() -> Vec<u8> {
    let mut bytes = Vec::new();
    let frames = [[200, 0, 0, 255], [0, 200, 0, 255], [0, 0, 200, 255]]
        .map(|colour| Frame::new(RgbaImage::from_pixel(5, 4, Rgba(colour))));
    GifEncoder::new(&mut bytes).encode_frames(frames).unwrap();
    bytes
}

#[test]
fn img_01_inks_become_light_and_are_not_inverted_twice() {
    let plain = flat_jpeg(64, &[255, 0, 0, 0], b"CMYK", None);
    check(
        &plain,
        expect![[r#"
            JPEG 64×64 Cmyk 8 bits, 1 frame(s)
            [InksToRgb]
            [0, 255, 255] [0, 255, 255] [0, 255, 255] [0, 255, 255]"#]],
    );
    let adobe = flat_jpeg(64, &[0, 255, 255, 255], b"CMYK", Some(0));
    check(
        &adobe,
        expect![[r#"
            JPEG 64×64 Cmyk 8 bits, inverted, 1 frame(s)
            [InvertedInksToRgb]
            [0, 255, 255] [0, 255, 255] [0, 255, 255] [0, 255, 255]"#]],
    );
    // Inverted cyan as luma and chroma of (255, 0, 0), the complement of stored (0, 255, 255).
    let ycck = flat_jpeg(64, &[76, 85, 255, 255], &[1, 2, 3, 4], Some(2));
    check(
        &ycck,
        expect![[r#"
            JPEG 64×64 Ycck 8 bits, inverted, 1 frame(s)
            [InvertedInksToRgb]
            [1, 255, 255] [1, 255, 255] [1, 255, 255] [1, 255, 255]"#]],
    );
    let tiff = tiff(&[page(2, 1, 5, 8, 4, &[255, 0, 0, 0, 0, 0, 0, 255])]);
    check(
        &tiff,
        expect![[r#"
            TIFF 2×1 Cmyk 8 bits, 1 frame(s)
            [InksToRgb]
            [0, 255, 255] [0, 0, 0] [0, 255, 255] [0, 0, 0]"#]],
    );
}

#[test]
fn img_01_three_components_are_what_their_markers_say() {
    // Luma and chroma without a marker; red, green and blue by Adobe's marker; and by name alone.
    let first = |bytes: &[u8]| decode(bytes, &Limits::default()).unwrap().pixels.get_pixel(0, 0).0;
    assert_eq!(first(&flat_jpeg(8, &[76, 85, 255], &[1, 2, 3], None)), [254, 0, 0]);
    assert_eq!(first(&flat_jpeg(8, &[10, 20, 230], &[1, 2, 3], Some(0))), [10, 20, 230]);
    assert_eq!(first(&flat_jpeg(8, &[10, 20, 230], b"RGB", None)), [10, 20, 230]);
    assert_eq!(first(&flat_jpeg(8, &[90], &[1], None)), [90, 90, 90]);
}

#[test]
fn img_02_a_turn_is_applied_once() {
    check(
        &turned_jpeg(6),
        expect![[r#"
            JPEG 3×2 Gray 8 bits, turn 6, 1 frame(s)
            [GrayToRgb, Turned]
            [255, 255, 255] [3, 3, 3] [255, 255, 255] [254, 254, 254]"#]],
    );
    // Where the stored top left corner comes to lie, for each of the eight.
    let black = |turn: u8| {
        let pixels = decode(&turned_jpeg(turn), &Limits::default()).unwrap().pixels;
        let at: Vec<(u32, u32)> =
            pixels.enumerate_pixels().filter(|(_, _, pixel)| pixel.0[0] < 60).map(|(x, y, _)| (x, y)).collect();
        (pixels.dimensions(), at)
    };
    let corners = (1..=8).map(|turn| format!("{turn}: {:?}\n", black(turn))).collect::<String>();
    expect![[r#"
        1: ((2, 3), [(0, 0)])
        2: ((2, 3), [(1, 0)])
        3: ((2, 3), [(1, 2)])
        4: ((2, 3), [(0, 2)])
        5: ((3, 2), [(0, 0)])
        6: ((3, 2), [(2, 0)])
        7: ((3, 2), [(2, 1)])
        8: ((3, 2), [(0, 1)])
    "#]]
    .assert_eq(&corners);
    // Saved again, nothing asks for a turn any more.
    let decoded = decode(&turned_jpeg(6), &Limits::default()).unwrap();
    let saved = encode(decoded.pixels, ImageFormat::Png);
    let again = probe(&saved, &Limits::default()).unwrap();
    assert_eq!((again.width, again.height, again.orientation), (3, 2, 1));
    assert!(!saved.windows(4).any(|part| part == b"eXIf"));
    // TIFF and PNG ask for turns in their own ways.
    let page = Page { orientation: 8, ..page(2, 1, 1, 8, 1, &[0, 255]) };
    check(
        &tiff(&[page]),
        expect![[r#"
            TIFF 1×2 Gray 8 bits, turn 8, 1 frame(s)
            [GrayToRgb, Turned]
            [255, 255, 255] [255, 255, 255] [0, 0, 0] [0, 0, 0]"#]],
    );
    check(
        &with_chunk(&encode(sample(4, 2), ImageFormat::Png), *b"eXIf", &exif(3)),
        expect![[r#"
            PNG 4×2 Rgb 8 bits, turn 3, 1 frame(s)
            [Turned]
            [255, 255, 255] [0, 0, 0] [255, 0, 0] [255, 0, 0]"#]],
    );
}

/// A PNG with a chunk behind its header.
fn with_chunk(png: &[u8], name: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut sum = flate2::Crc::new();
    sum.update(&name);
    sum.update(data);
    let length = u32::try_from(data.len()).unwrap().to_be_bytes();
    [&png[..33], &length, &name, data, &sum.sum().to_be_bytes(), &png[33..]].concat()
}

/// 41 bytes: a signature, a header, and the start of a chunk.
fn giant_png(width: u32, height: u32) -> Vec<u8> {
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 6, 0, 0, 0]].concat();
    let plain = with_chunk(&[b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 25]].concat(), *b"IHDR", &header);
    [&plain[..8], &plain[33..], b"\0\0\0\x0aIDAT"].concat()
}

#[test]
fn img_03_announced_size_is_refused_before_memory_is_taken() {
    let giant = giant_png(8_000_000, u32::MAX);
    assert_eq!(giant.len(), 41);
    let mut gif = animation();
    gif[6..10].fill(0xff);
    let mut jpeg = flat_jpeg(8, &[90], &[1], None);
    let at = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap() + 5;
    jpeg[at..at + 4].fill(0xff);
    let mut bmp = encode(sample(4, 4), ImageFormat::Bmp);
    bmp[18..26].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0x80]);
    let giant_tiff = tiff(&[page(u16::MAX, u16::MAX, 1, 8, 1, &[0])]);
    let mut webp = encode(sample(4, 4), ImageFormat::WebP);
    let at = webp.windows(4).position(|name| name == b"VP8L").unwrap() + 9;
    webp[at..at + 4].copy_from_slice(&[0xff, 0xff, 0xff, 0x0f]);
    let faults = [giant.as_slice(), &gif, &jpeg, &bmp, &giant_tiff, &webp].map(account).join("\n");
    expect![[r#"
        not probed: the PNG announces 8000000 × 4294967295 pixels, more than 100000000
        not probed: the GIF announces 65535 × 65535 pixels, more than 100000000
        not probed: the JPEG announces 65535 × 65535 pixels, more than 100000000
        not probed: the BMP announces 2147483647 × 2147483648 pixels, more than 100000000
        not probed: the TIFF announces 65535 × 65535 pixels, more than 100000000
        not probed: the WebP announces 16384 × 16384 pixels, more than 100000000"#]]
    .assert_eq(&faults);
    // Behind modest sizes: a field of 2²⁸ values, and a frame larger than its canvas.
    let mut long_field = tiff(&[page(2, 1, 1, 8, 1, &[0, 255])]);
    long_field[74] = 0x10;
    check(&long_field, expect!["not probed: the TIFF is cut: a field is longer than the file"]);
    // A JPEG inside of a page of 8 × 8.
    let inside = |jpeg: &[u8]| {
        let mut bytes = tiff(&[page(8, 8, 1, 8, 1, jpeg)]);
        bytes[55] = 7;
        bytes
    };
    let mut inner = flat_jpeg(8, &[90], &[1], None);
    check(
        &inside(&inner),
        expect![[r#"
        TIFF 8×8 Gray 8 bits, 1 frame(s)
        [GrayToRgb]
        [90, 90, 90] [90, 90, 90] [90, 90, 90] [90, 90, 90]"#]],
    );
    let at = inner.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap() + 5;
    inner[at..at + 4].copy_from_slice(&[0x3f, 0xf8, 0x3f, 0xf8]);
    check(&inside(&inner), expect!["not probed: a frame of the TIFF has 268173376 pixels, more than 100000000"]);
    let frame = [[0; 16].as_slice(), b"VP8L\x05\0\0\0\x2f\xff\xff\xff\x0f\0"].concat();
    let mut canvas = b"RIFF\x34\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x03\0\0\x03\0\0ANMF\x1e\0\0\0".to_vec();
    canvas.extend(frame);
    check(&canvas, expect!["not probed: a frame of the WebP has 268435456 pixels, more than 100000000"]);
    check(&giant_png(u32::MAX, 0), expect!["not probed: the PNG announces 4294967295 × 0 pixels, which is none"]);
}

#[test]
fn img_03_each_limit_is_told_apart() {
    let picture = encode(sample(40, 30), ImageFormat::Png);
    let fault = |limits: Limits, bytes: &[u8]| decode(bytes, &limits).unwrap_err().to_string();
    let default = Limits::default;
    let pages: Vec<Page> = (0..3).map(|_| page(1, 1, 1, 8, 1, &[7])).collect();
    let mut scans = flat_jpeg(8, &[90], &[1], None);
    scans.truncate(scans.len() - 2);
    scans.extend([0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0].repeat(101));
    scans.extend([0xff, 0xd9]);
    let faults = [
        fault(Limits { file_bytes: 60, ..default() }, &picture),
        fault(Limits { pixels: 1199, ..default() }, &picture),
        fault(Limits { decoded_bytes: 7200, ..default() }, &picture),
        fault(Limits { frames: 2, ..default() }, &animation()),
        fault(Limits { frames: 2, ..default() }, &tiff(&pages)),
        fault(default(), &scans),
        read(picture.as_slice(), &Limits { file_bytes: 60, ..default() }).unwrap().unwrap_err().to_string(),
    ];
    expect![[r#"
        the file is larger than 60 bytes
        the PNG announces 40 × 30 pixels, more than 1199
        decoding the PNG would take 1056950 bytes, more than 7200
        the GIF has more than 2 frames or pages
        the TIFF has more than 2 frames or pages
        the JPEG asks for more than 100 passes over the picture
        the file is larger than 60 bytes"#]]
    .assert_eq(&faults.join("\n"));
    assert!(decode(&picture, &Limits { pixels: 1200, ..default() }).is_ok());
}

#[test]
fn many_frames_pages_and_bits() {
    check(
        &animation(),
        expect![[r#"
            GIF 5×4 Palette 1 bits, 3 frame(s)
            [FirstFrameOnly, PaletteToRgb]
            [200, 0, 0] [200, 0, 0] [200, 0, 0] [200, 0, 0]"#]],
    );
    let pages = [page(2, 1, 2, 8, 3, &[1, 2, 3, 4, 5, 6]), page(1, 1, 1, 8, 1, &[9])];
    check(
        &tiff(&pages),
        expect![[r#"
            TIFF 2×1 Rgb 8 bits, 2 frame(s)
            [FirstFrameOnly]
            [1, 2, 3] [4, 5, 6] [1, 2, 3] [4, 5, 6]"#]],
    );
    // White is 0, in one bit.
    check(
        &tiff(&[page(3, 1, 0, 1, 1, &[0b0010_0000])]),
        expect![[r#"
            TIFF 3×1 Gray 1 bits, 1 frame(s)
            [GrayToRgb]
            [255, 255, 255] [0, 0, 0] [255, 255, 255] [0, 0, 0]"#]],
    );
    let mut map = vec![0u16; 768];
    (map[3], map[256 + 3], map[512 + 3], map[512 + 4]) = (0x1010, 0x2020, 0xffff, 0x8080);
    let palette = Page { map: Some(map), ..page(2, 1, 3, 8, 1, &[3, 4]) };
    check(
        &tiff(&[palette]),
        expect![[r#"
            TIFF 2×1 Palette 8 bits, 1 frame(s)
            [PaletteToRgb]
            [16, 32, 255] [0, 0, 128] [16, 32, 255] [0, 0, 128]"#]],
    );
    let deep: ImageBuffer<Luma<u16>, Vec<u16>> = ImageBuffer::from_raw(3, 1, vec![0, 0x8080, 0xffff]).unwrap();
    check(
        &encode(deep.clone(), ImageFormat::Png),
        expect![[r#"
            PNG 3×1 Gray 16 bits, 1 frame(s)
            [GrayToRgb, SixteenBitsToEight]
            [0, 0, 0] [255, 255, 255] [0, 0, 0] [255, 255, 255]"#]],
    );
    assert_eq!(
        decode(&encode(deep, ImageFormat::Tiff), &Limits::default()).unwrap().pixels.into_raw(),
        [0, 0, 0, 128, 128, 128, 255, 255, 255]
    );
    let glass = RgbaImage::from_fn(2, 1, |x, _| Rgba([0, 0, 200, if x == 0 { 0 } else { 128 }]));
    check(
        &encode(glass, ImageFormat::Png),
        expect![[r#"
            PNG 2×1 Rgb 8 bits, alpha, 1 frame(s)
            [Flattened]
            [255, 255, 255] [127, 127, 227] [255, 255, 255] [127, 127, 227]"#]],
    );
    for format in [ImageFormat::Bmp, ImageFormat::WebP, ImageFormat::Tiff, ImageFormat::Png, ImageFormat::Gif] {
        let decoded = decode(&encode(DynamicImage::from(sample(9, 7)).into_rgba8(), format), &Limits::default());
        assert_eq!(decoded.unwrap().pixels, sample(9, 7), "{format:?}");
    }
}

#[test]
fn broken_files_are_named() {
    let jpeg = turned_jpeg(1);
    let png = encode(sample(40, 30), ImageFormat::Png);
    let mut wrong_sum = png.clone();
    let at = wrong_sum.len() - 20;
    wrong_sum[at] ^= 0x55;
    let tiff_file = tiff(&[page(2, 1, 1, 8, 1, &[0, 255])]);
    let mut ring = tiff_file.clone();
    let next = ring.len() - 2 - 4;
    ring[next..next + 4].copy_from_slice(&[0, 0, 0, 8]);
    let mut arithmetic = flat_jpeg(8, &[90], &[1], None);
    let at = arithmetic.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap() + 1;
    arithmetic[at] = 0xc9;
    let mut twelve = flat_jpeg(8, &[90], &[1], None);
    twelve[at + 3] = 12;
    let gif = animation();
    let webp = encode(sample(40, 30), ImageFormat::WebP);
    let bmp = encode(sample(40, 30), ImageFormat::Bmp);
    let files: [(&str, &[u8]); 15] = [
        ("JPEG without end", &jpeg[..jpeg.len() - 2]),
        ("JPEG header alone", &jpeg[..40]),
        ("arithmetic JPEG", &arithmetic),
        ("JPEG of 12 bits", &twelve),
        ("PNG without end", &png[..png.len() - 12]),
        ("PNG with a wrong sum", &wrong_sum),
        ("GIF in the second frame", &gif[..gif.len() / 2]),
        ("TIFF without its pixels", &tiff_file[..tiff_file.len() - 1]),
        ("TIFF in a ring", &ring),
        ("WebP cut", &webp[..webp.len() - 5]),
        ("BMP cut", &bmp[..bmp.len() / 2]),
        ("drawing", b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
        ("page", b"<!DOCTYPE html><title>Just a moment</title>"),
        ("PDF", b"%PDF-1.7\n"),
        ("empty", b""),
    ];
    let faults: String =
        files.iter().map(|(name, bytes)| format!("{name}: {}\n", account(bytes).replace('\n', "; "))).collect();
    expect![[r#"
        JPEG without end: not probed: the JPEG is cut: its end marker is missing
        JPEG header alone: not probed: the JPEG is cut: it has no frame header
        arithmetic JPEG: not probed: JPEG with arithmetic coding is not read
        JPEG of 12 bits: not probed: JPEG with 12 bits per sample is not read
        PNG without end: not probed: the PNG is cut: its end chunk is missing
        PNG with a wrong sum: PNG 40×30 Rgb 8 bits, 1 frame(s); not decoded: the PNG is broken: Format error decoding Png: CRC error: expected 0x62b4c8be have 0x9e67372e while decoding ChunkType { type: IDAT, critical: true, private: false, reserved: false
        GIF in the second frame: not probed: the GIF is cut: a block is longer than the file
        TIFF without its pixels: TIFF 2×1 Gray 8 bits, 1 frame(s); not decoded: the TIFF is cut: the picture data end early
        TIFF in a ring: not probed: the TIFF is broken: its pages form a ring
        WebP cut: not probed: the WebP is cut: it is shorter than it says
        BMP cut: BMP 40×30 Rgb 8 bits, 1 frame(s); not decoded: the BMP is cut: the picture data end early
        drawing: not probed: SVG drawing files are not read
        page: not probed: the file is not an image but: HTML page
        PDF: not probed: the file is not an image but: PDF document
        empty: not probed: the file is not an image but: empty file
    "#]]
    .assert_eq(&faults);
    // The last byte of a GIF alone is forgiven.
    assert_eq!(probe(&gif[..gif.len() - 1], &Limits::default()).unwrap().frames, 3);
}

#[test]
fn low_resolution_is_told_by_the_shorter_side() {
    let probe_of = |width, height| probe(&encode(sample(width, height), ImageFormat::Png), &Limits::default()).unwrap();
    assert!(!probe_of(336, 336).is_below(336));
    assert!(probe_of(335, 900).is_below(336));
    assert!(probe_of(900, 335).is_below(336));
}

#[test]
fn pmc_04_files_are_found_by_whole_stems() {
    let tell = |href: &str, available: &[&str]| match match_files(href, available) {
        Ok(found) => format!(
            "{href}: {} ({:?}{}), then {:?}\n",
            found.file,
            found.reason,
            if found.perhaps_preview { ", perhaps a preview" } else { "" },
            found.others
        ),
        Err(fault) => format!("{href}: {fault}\n"),
    };
    let mixed = ["AB-12-g001.gif", "ab-12-g001.jpg", "ab-12-g0011.jpg", "ab-12-g002.gif", "ab-12-g003.TIF"];
    let accounts = [
        tell("ab-12-g001", &mixed),
        tell("ab-12-g001.tif", &mixed),
        tell("AB-12-g001.gif", &mixed),
        tell("ab-12-g002", &mixed),
        tell("ab-12-g003.tif", &mixed),
        tell("ab-12-g00", &mixed),
        // What follows this dot is no extension.
        tell("CRI2016-62.001", &["CRI2016-62.0011.jpg", "CRI2016-62.jpg", "CRI2016-62.001.jpg"]),
        tell("PMC12.", &["PMC123.jpg", "PMC12.jpg"]),
        tell("PMC12", &["PMC123.jpg", "PMC12.xml", "PMC12.1.jpg"]),
        tell("figures/a.eps", &["other/a.jpg", "figures/a.png"]),
        tell("a", &["x/a.jpg", "a.jpg"]),
        tell("a", &["x/a.jpg", "y/a.jpg"]),
        tell("a", &["../a.jpg", "/a.jpg"]),
        tell("../../etc/x", &["etc/x", "x.jpg"]),
        tell("/etc/x", &["etc/x"]),
        tell("C:\\x.jpg", &["x.jpg"]),
        tell("https://example.org/x.jpg", &["x.jpg"]),
        tell("", &["x.jpg"]),
    ];
    expect![[r#"
        ab-12-g001: ab-12-g001.jpg (ExtensionAdded), then ["AB-12-g001.gif"]
        ab-12-g001.tif: ab-12-g001.jpg (ExtensionReplaced), then ["AB-12-g001.gif"]
        AB-12-g001.gif: AB-12-g001.gif (Name), then ["ab-12-g001.jpg"]
        ab-12-g002: ab-12-g002.gif (ExtensionAdded, perhaps a preview), then []
        ab-12-g003.tif: ab-12-g003.TIF (NameInOtherCase), then []
        ab-12-g00: the package has no file for the reference `ab-12-g00`
        CRI2016-62.001: CRI2016-62.001.jpg (ExtensionAdded), then []
        PMC12.: the package has no file for the reference `PMC12.`
        PMC12: the package has no file for the reference `PMC12`
        figures/a.eps: figures/a.png (ExtensionReplaced), then ["other/a.jpg"]
        a: a.jpg (ExtensionAdded), then ["x/a.jpg"]
        a: the reference `a` fits `x/a.jpg` and `y/a.jpg` alike
        a: the package has no file for the reference `a`
        ../../etc/x: the reference `../../etc/x` is empty, absolute, leads out of the package or holds control characters
        /etc/x: the reference `/etc/x` is empty, absolute, leads out of the package or holds control characters
        C:\x.jpg: the reference `C:\\x.jpg` is empty, absolute, leads out of the package or holds control characters
        https://example.org/x.jpg: the reference `https://example.org/x.jpg` is an address, not a file of the package
        : the reference `` is empty, absolute, leads out of the package or holds control characters
    "#]]
    .assert_eq(&accounts.concat());
}

#[test]
fn pmc_05_files_are_what_their_bytes_say() {
    let guid =
        |bytes: &str| -> Vec<u8> { bytes.split(' ').map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect() };
    let asf = guid("30 26 b2 75 8e 66 cf 11 a6 d9 00 aa 00 62 ce 6c");
    let wmv = [asf.clone(), vec![0; 60], guid("c0 ef 19 bc 4d 5b cf 11 a8 fd 00 80 5f 5c 44 2b")].concat();
    let cover =
        [b"ID3\x03\0\0\0\0\x10\0APIC\0\0\0\xf0\0\0\0image/jpeg\0\x03\0".as_slice(), b"\xff\xd8\xff\xe0"].concat();
    let files: Vec<(&str, Vec<u8>, &str)> = vec![
        ("s001.wav", wmv, "audio/wav"),
        ("s002.wma", asf, "audio/x-ms-wma"),
        ("s003.m4v", b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom".to_vec(), "text/plain"),
        ("s004", b"%PDF-1.4\n%\xe2\xe3".to_vec(), "/"),
        ("s005.mp4", b"\0\0\0\x18ftypisom\0\0\0\0isomavc1".to_vec(), "video/video/mp4"),
        ("s006.mov", b"\0\0\0\x14ftypqt  \0\0\0\0qt  ".to_vec(), "video/mp4"),
        ("s007.mp3", cover, "video"),
        ("s008.avi", b"RIFF\x24\0\0\0AVI LIST".to_vec(), "video/x-msvideo"),
        ("s009.webm", b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm".to_vec(), "video"),
        ("s010.mpg", b"\0\0\x01\xba\x44".to_vec(), "video/mpeg"),
        ("s011.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec(), "application/msword"),
        ("s012.docx", b"PK\x03\x04\x14\0".to_vec(), "application/octet-stream"),
        ("f1.tif", b"\xff\xd8\xff\xe0".to_vec(), "image/tiff"),
        ("f2.jpg", b"<html><head><title>Sign in</title>".to_vec(), "image/jpeg"),
        ("f3.svg", b"<?xml version='1.0'?>\n<!-- a --><svg:svg xmlns:svg='s'>".to_vec(), "image/svg+xml"),
        ("a.nxml", b"<?xml version='1.0'?><article>".to_vec(), "application/xml"),
        ("b.csv", b"BM,1\n2,3\n".to_vec(), "text/csv"),
        ("b.bin", b"\x01\x02\x03\x04\x05\x06".to_vec(), ""),
        ("b.dat", b"a\0b".to_vec(), "text"),
        ("b.gz", b"\x1f\x8b\x08\0".to_vec(), "application/zip"),
        ("b.txt", vec![], "text/plain"),
    ];
    let accounts: String = files
        .iter()
        .map(|(name, bytes, declared)| {
            let kind = Kind::of(bytes);
            format!("{name}, declared {declared:?}: {} ({:?}), {:?}\n", kind.name(), kind.group(), kind.claim(declared))
        })
        .collect();
    expect![[r#"
        s001.wav, declared "audio/wav": Windows Media video (Video), Wrong
        s002.wma, declared "audio/x-ms-wma": Windows Media audio (Audio), Right
        s003.m4v, declared "text/plain": MP4 video (Video), Wrong
        s004, declared "/": PDF document (Document), Absent
        s005.mp4, declared "video/video/mp4": MP4 video (Video), Right
        s006.mov, declared "video/mp4": QuickTime video (Video), OtherFormat
        s007.mp3, declared "video": MP3 audio (Audio), Wrong
        s008.avi, declared "video/x-msvideo": AVI video (Video), Right
        s009.webm, declared "video": WebM video (Video), Right
        s010.mpg, declared "video/mpeg": MPEG video (Video), Right
        s011.doc, declared "application/msword": Office document of the old form (Document), Right
        s012.docx, declared "application/octet-stream": zip archive (Archive), Absent
        f1.tif, declared "image/tiff": JPEG image (Image), OtherFormat
        f2.jpg, declared "image/jpeg": HTML page (Text), Wrong
        f3.svg, declared "image/svg+xml": SVG drawing (Image), Right
        a.nxml, declared "application/xml": XML document (Text), Right
        b.csv, declared "text/csv": text (Text), Right
        b.bin, declared "": file of an unknown kind (Unknown), Absent
        b.dat, declared "text": file of an unknown kind (Unknown), Wrong
        b.gz, declared "application/zip": gzip file (Archive), Wrong
        b.txt, declared "text/plain": empty file (Unknown), Wrong
    "#]]
    .assert_eq(&accounts);
}

/// A picture without symmetry: three soft spots on a slope of light.
fn spots(width: u32, height: u32, seed: u32) -> RgbImage {
    let (wide, high) = (f64::from(width), f64::from(height));
    let centres = [(0.2, 0.3), (0.7, 0.2), (0.5, 0.8)].map(|(x, y)| (x + f64::from(seed) * 0.11, y));
    RgbImage::from_fn(width, height, |x, y| {
        let (x, y) = (f64::from(x) / wide, f64::from(y) / high);
        let light: f64 = centres.iter().map(|(a, b)| (-((x - a).powi(2) + (y - b).powi(2)) * 30.0).exp()).sum();
        let level = (light * 150.0 + (x * 5.0 + y * 3.0).sin() * 30.0 + 60.0).clamp(0.0, 255.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped above")]
        let level = level as u8;
        Rgb([level, level / 2, 255 - level])
    })
}

#[test]
fn copies_share_their_hash_and_other_pictures_do_not() {
    let original = spots(640, 480, 0);
    let hash = DifferenceHash::of(&original);
    let half = image::imageops::resize(&original, 320, 240, image::imageops::FilterType::Triangle);
    let odd = image::imageops::resize(&original, 501, 377, image::imageops::FilterType::Lanczos3);
    let mut small = Vec::new();
    JpegEncoder::new_with_quality(&mut small, 40).encode_image(&half).unwrap();
    let recompressed = decode(&small, &Limits::default()).unwrap().pixels;
    let distances = [&half, &odd, &recompressed, &spots(640, 480, 1), &image::imageops::rotate90(&original)]
        .map(|picture| hash.distance(DifferenceHash::of(picture)));
    expect!["888c8c8403717171: [1, 0, 2, 22, 34]"].assert_eq(&format!("{hash}: {distances:?}"));
    // One step of light at a known place: the border between the fourth and the fifth of nine cells.
    let step = RgbImage::from_fn(90, 80, |x, _| Rgb([if x < 40 { 0 } else { 255 }; 3]));
    assert_eq!(DifferenceHash::of(&step).to_string(), "10".repeat(8));
    assert_eq!(DifferenceHash::of(&RgbImage::from_pixel(3, 2, Rgb([9; 3]))), DifferenceHash(0));
    assert_eq!(serde_json::to_string(&DifferenceHash(1)).unwrap(), "\"0000000000000001\"");
    assert_eq!(serde_json::from_str::<DifferenceHash>("\"0000000000000001\"").unwrap(), DifferenceHash(1));
    assert!(serde_json::from_str::<DifferenceHash>("\"1\"").is_err());
}

/// Files of every format, small.
fn seeds() -> Vec<Vec<u8>> {
    let formats = [ImageFormat::Png, ImageFormat::Tiff, ImageFormat::Bmp, ImageFormat::WebP];
    let mut seeds: Vec<Vec<u8>> = formats.map(|format| encode(sample(12, 9), format)).into();
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, 80).encode_image(&spots(20, 18, 0)).unwrap();
    let mut map = vec![0u16; 768];
    map[3] = 0x1010;
    seeds.extend([
        jpeg,
        animation(),
        turned_jpeg(6),
        flat_jpeg(16, &[255, 0, 0, 0], b"CMYK", None),
        flat_jpeg(16, &[76, 85, 255, 255], &[1, 2, 3, 4], Some(2)),
        tiff(&[page(2, 1, 5, 8, 4, &[255, 0, 0, 0, 0, 0, 0, 255]), page(1, 1, 1, 8, 1, &[9])]),
        tiff(&[Page { map: Some(map), ..page(2, 1, 3, 8, 1, &[3, 4]) }]),
        with_chunk(&encode(sample(4, 2), ImageFormat::Png), *b"eXIf", &exif(3)),
    ]);
    seeds
}

/// Whatever the bytes, decoding ends without a panic, and what it gives keeps the limits and says the same as probing.
fn holds(bytes: &[u8]) {
    let limits = Limits { pixels: 50_000, decoded_bytes: 32 << 20, frames: 20, ..Limits::default() };
    match (probe(bytes, &limits), decode(bytes, &limits)) {
        (Ok(probed), Ok(decoded)) => {
            assert_eq!(probed, decoded.probe);
            assert_eq!(decoded.pixels.dimensions(), (probed.width, probed.height));
            let stored = u64::from(probed.stored_width) * u64::from(probed.stored_height);
            assert!(stored <= limits.pixels && probed.decoding_bytes <= limits.decoded_bytes);
            assert!((1..=limits.frames).contains(&probed.frames) && (1..=8).contains(&probed.orientation));
            assert_eq!(decoded.conversions.contains(&Conversion::FirstFrameOnly), probed.frames > 1);
        }
        (Ok(_), Err(fault)) => assert!(!matches!(fault, ProbeError::NotAnImage { .. }), "{fault}"),
        (Err(first), Err(second)) => assert_eq!(first, second),
        (Err(fault), Ok(_)) => panic!("decoded though not probed: {fault}"),
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_behind_any_signature(start in 0usize..12, kept in 0usize..60, rest in prop::collection::vec(any::<u8>(), 0..300)) {
        let seed = &seeds()[start];
        holds(&[&seed[..kept.min(seed.len())], &rest].concat());
    }

    #[test]
    fn mutated_files(
        start in 0usize..12,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::weighted(0.3, any::<prop::sample::Index>()),
    ) {
        let mut bytes = seeds().swap_remove(start);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.map_or(bytes.len(), |at| at.index(bytes.len())));
        holds(&bytes);
    }

    #[test]
    fn kinds_of_images_are_images(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let kind = Kind::of(&bytes);
        prop_assert_eq!(kind.claim("/"), Claim::Absent);
        for media_type in kind.media_types() {
            prop_assert_eq!(kind.claim(media_type), Claim::Right);
        }
        prop_assert_eq!(kind.group() == Group::Image, kind.claim("image") == Claim::Right);
    }

    #[test]
    fn the_order_of_a_package_plays_no_part(
        href in "[ab]{1,2}(\\.(gif|jpg|00))?",
        files in prop::collection::btree_set("([xy]/)?[abAB]{1,3}\\.(jpg|gif|GIF|png|xml|00\\.jpg)", 0..8)
            .prop_map(|files| files.into_iter().collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let mut names: Vec<&str> = files.iter().map(String::as_str).collect();
        let found = match_files(&href, &names);
        names.sort_unstable();
        prop_assert_eq!(&found, &match_files(&href, &names));
        if let Ok(found) = found {
            // Never a name that only begins alike.
            let name = found.file.rsplit('/').next().unwrap().to_ascii_lowercase();
            let stem = href.trim_end_matches(".gif").trim_end_matches(".jpg").to_ascii_lowercase();
            prop_assert!(name == href || name.rsplit_once('.').unwrap().0 == stem, "{} for {}", name, href);
            prop_assert!(!found.others.contains(&found.file));
            prop_assert!(found.reason != MatchReason::Name || found.file.ends_with(&href));
        } else {
            prop_assert!(!matches!(found, Err(MatchError::Unsafe(_) | MatchError::Address(_))));
        }
    }
}
