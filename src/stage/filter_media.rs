//! `filter_media`: the images of an article's figures, probed and judged, and which articles are left for lack of them
//! (ClinMM-Bench, 4.1.2): no video, at least one medical image, none below 336 × 336 pixels.
//!
//! What a file is, its bytes say; names and declared types are claims. A picture that viewers do not show as it is meant
//! (inks, 16 bits, pages, a turn by Exif, or another format than JPEG and PNG) gets a PNG of its own, unless its licence
//! allows no derivatives: no pixel of such a figure is changed.

use super::*;
use crate::media::decode::{Conversion, Decoded, decode};
use crate::media::files::{MatchError, match_files};
use crate::media::hash::DifferenceHash;
use crate::media::kind::{Group, Kind};
use crate::media::probe::{self, Format, Limits};
use crate::media::strip::without_metadata;
use crate::record::Hash;
use crate::record::article::{ArticleRecord, Figure, Graphic, ImageAsset, ImageState, Passage};
use crate::record::licence::may_adapt;
use crate::record::provenance::{RESERVED, both_licences};
use crate::staging::examinations::Examinations;
use crate::staging::figures::image_id;
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read};

pub const STAGE: StageDef = StageDef {
    name: "filter_media",
    summary: "Finds, probes and judges the images of figures; drops articles with video, without a medical image or with small ones",
    shape: Shape::Record,
    revision: 1,
    inputs: &[Port::records::<ArticleRecord>("records")],
    outputs: &[Port::records::<ArticleRecord>("records")],
    resources: &[ResourceDecl { name: "examinations", summary: "kinds of pictures by the words of their captions" }],
    reasons: &[
        "video",
        "no_figure",
        "no_medical_image",
        "low_resolution",
        "image_not_licensed",
        "image_files_missing",
        "images_broken",
    ],
    settings: SettingsType::of::<MediaSettings>(),
    build,
};

/// What happens for one image that cannot be shown.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnImage {
    DropCase,
    DropImage,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnVideo {
    Drop,
    /// The article stays, with the flag `video`: for a pipeline whose cases have videos.
    Keep,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct MediaSettings {
    /// Shortest side of an image, in pixels (published: 336).
    min_side: u32,
    /// Articles with a video: `drop`, or `keep` for a pipeline whose cases have videos.
    on_video: OnVideo,
    /// A medical image with a shorter side: `drop_case` (as published) or `drop_image`.
    on_low_resolution: OnImage,
    /// A figure that is under other terms than its article: `drop_image` or `drop_case`.
    on_not_licensed: OnImage,
    /// Whether pictures that viewers show otherwise than they are meant get a PNG, where the licence allows it.
    derive: bool,
    /// Images whose difference hashes differ in so many bits or fewer are named as similar; none is removed for it.
    similar_bits: u32,
    /// Largest image file, in bytes.
    max_image_bytes: u32,
    /// Most pixels of an image.
    max_image_pixels: u32,
}

impl Default for MediaSettings {
    fn default() -> Self {
        Self {
            min_side: 336,
            on_video: OnVideo::Drop,
            on_low_resolution: OnImage::DropCase,
            on_not_licensed: OnImage::DropImage,
            derive: true,
            similar_bits: 3,
            max_image_bytes: 128 << 20,
            max_image_pixels: 100_000_000,
        }
    }
}

impl Settings for MediaSettings {
    fn check(&self) -> Result<(), String> {
        if self.similar_bits > 64 {
            return Err("similar_bits must be between 0 and 64".to_owned());
        }
        if self.max_image_bytes < 1000 || self.max_image_pixels < 1000 {
            return Err("max_image_bytes and max_image_pixels must be at least 1000".to_owned());
        }
        Ok(())
    }
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let resources = arguments.resources;
    let examinations = Examinations::parse(resources.file("examinations"), resources.text("examinations")?)?;
    let settings: MediaSettings = arguments.settings()?;
    let limits = Limits {
        file_bytes: u64::from(settings.max_image_bytes),
        pixels: u64::from(settings.max_image_pixels),
        ..Limits::default()
    };
    Ok(AnyStage::record(FilterMedia { settings, examinations, limits }))
}

struct FilterMedia {
    settings: MediaSettings,
    examinations: Examinations,
    limits: Limits,
}

/// How much of a file tells its kind.
const HEAD: u64 = 64 << 10;

impl RecordStage for FilterMedia {
    type In = ArticleRecord;
    type Out = ArticleRecord;

    fn apply(
        &self,
        mut record: ArticleRecord,
        out: &mut Emitter<'_, ArticleRecord>,
        context: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        if let Some(evidence) = video(&record, context)? {
            match self.settings.on_video {
                OnVideo::Drop => return Ok(Verdict::Drop(Cause::new("video", evidence))),
                OnVideo::Keep => record.flags.push("video".to_owned()),
            }
        }
        record.images = self.images(&record, out, context)?;
        if let Some(verdict) = self.judge(&record.images) {
            return Ok(verdict);
        }
        for (state, flag) in [
            (ImageState::LowResolution, "image_low_resolution"),
            (ImageState::NotLicensed, "image_not_licensed"),
            (ImageState::MissingFile, "image_file_missing"),
            (ImageState::Broken, "image_broken"),
        ] {
            if record.images.iter().any(|image| image.state == state) {
                record.flags.push(flag.to_owned());
            }
        }
        record.flags.sort_unstable();
        record.flags.dedup();
        out.emit(record);
        Ok(Verdict::Keep)
    }
}

/// A video of the article: by the bytes of a file, or by what the article declares where the file is not there.
fn video(record: &ArticleRecord, context: &StageContext<'_>) -> anyhow::Result<Option<String>> {
    for file in &record.files {
        let kind = Kind::of(&head(&file.sha256, context)?);
        if kind.group() == Group::Video {
            return Ok(Some(format!("{} is a {}", file.name, kind.name())));
        }
    }
    let article = &record.article;
    let files = article.supplements.iter().flat_map(|supplement| &supplement.files);
    let graphics = article.figures.iter().flat_map(|figure| &figure.graphics);
    let loose = article.loose_graphics.iter().map(|loose| &loose.graphic);
    for graphic in files.chain(graphics).chain(loose) {
        let href = graphic.href.as_deref().unwrap_or_default();
        // A file that is there was looked at.
        if record.files.iter().any(|file| file.name == href) {
            continue;
        }
        let claims_video = graphic.mime_type.as_deref().is_some_and(|declared| {
            let declared = declared.to_ascii_lowercase();
            declared.starts_with("video") || VIDEO_TYPES.iter().any(|name| declared.ends_with(&format!("/{name}")))
        });
        let extension = href.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        if claims_video || extension.is_some_and(|extension| VIDEO_EXTENSIONS.contains(&extension.as_str())) {
            let declared = graphic.mime_type.as_deref().unwrap_or("nothing");
            return Ok(Some(format!("`{href}` is declared as {declared}; the file is not there")));
        }
    }
    Ok(None)
}

/// Subtypes by which publishers declare videos under another type.
const VIDEO_TYPES: &[&str] = &["avi", "mp4", "mpeg", "quicktime", "x-msvideo", "x-ms-wmv", "wmv", "mov"];
const VIDEO_EXTENSIONS: &[&str] = &["avi", "mp4", "m4v", "mov", "mpg", "mpeg", "wmv", "webm", "flv", "mkv", "ogv"];

fn head(sha256: &Hash, context: &StageContext<'_>) -> anyhow::Result<Vec<u8>> {
    let path = context.media.path(&MediaRef(sha256.clone()))?;
    let mut head = Vec::new();
    File::open(&path).with_context(|| format!("opening media {sha256}"))?.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

impl FilterMedia {
    fn images(
        &self,
        record: &ArticleRecord,
        out: &mut Emitter<'_, ArticleRecord>,
        context: &StageContext<'_>,
    ) -> anyhow::Result<Vec<ImageAsset>> {
        let mut images: Vec<ImageAsset> = Vec::new();
        let mut hashes: Vec<(String, DifferenceHash)> = Vec::new();
        let names: Vec<&str> = record.files.iter().map(|file| file.name.as_str()).collect();
        for (position, figure) in (0u32..).zip(&record.article.figures) {
            if figure.place.sub_article.is_some() {
                continue;
            }
            let n_panels = u32::try_from(figure.graphics.len())?;
            for (panel, graphic) in (0u32..).zip(&figure.graphics) {
                let id = image_id(figure, position as usize, panel, n_panels);
                let mut image = self.describe(record, figure, position, panel, graphic, id);
                if image.state == ImageState::Usable {
                    self.find(record, graphic, &names, &mut image);
                }
                if image.state == ImageState::Usable {
                    self.look(&mut image, &mut hashes, out, context)?;
                }
                if let Some(sha256) = &image.sha256
                    && image.state == ImageState::Usable
                    && let Some(same) = images.iter().find(|other| other.sha256.as_ref() == Some(sha256))
                {
                    image.detail = format!("the same file as {}", same.image_id);
                    image.state = ImageState::Duplicate;
                }
                images.push(image);
            }
        }
        Ok(images)
    }

    /// What is known of an image before its file is looked at.
    fn describe(
        &self,
        record: &ArticleRecord,
        figure: &Figure,
        position: u32,
        panel: u32,
        graphic: &Graphic,
        image_id: String,
    ) -> ImageAsset {
        let caption = caption(figure);
        let image_type = self.examinations.image_type(&caption);
        let licence = &record.provenance.rights.licence;
        let mut image = ImageAsset {
            image_id,
            figure: position,
            panel,
            href: graphic.href.clone(),
            state: ImageState::Usable,
            detail: String::new(),
            image_type: image_type.as_ref().map(|kind| kind.name.clone()),
            image_type_evidence: image_type.as_ref().map(|kind| kind.evidence.clone()),
            file: None,
            sha256: None,
            width: None,
            height: None,
            format: None,
            difference_hash: None,
            similar_to: None,
            conversions: Vec::new(),
            derived_sha256: None,
            derived_format: None,
            licence: licence.clone(),
            attribution: attribution(figure),
        };
        if let Some(own) =
            figure.permissions.as_deref().or(figure.attribution.as_deref().filter(|text| is_reused(text)))
        {
            image.licence = both_licences(licence, RESERVED);
            image.state = ImageState::NotLicensed;
            image.detail = format!("the figure has terms of its own: {own}");
        } else if let Some(words) = is_reused(&caption).then_some(&caption) {
            image.licence = both_licences(licence, RESERVED);
            image.state = ImageState::NotLicensed;
            image.detail = format!("the caption says that the figure is used with permission: {}", excerpt_of(words));
        } else if let Some(kind) = image_type.filter(|kind| !kind.medical) {
            image.state = ImageState::NotMedical;
            image.detail = format!("{}, by the words `{}`", kind.name, kind.evidence);
        }
        image
    }

    fn find(&self, record: &ArticleRecord, graphic: &Graphic, names: &[&str], image: &mut ImageAsset) {
        let hrefs = graphic.href.iter().chain(&graphic.alternatives);
        let mut first_error = None;
        for href in hrefs {
            match match_files(href, names) {
                Ok(found) => {
                    let file = record.files.iter().find(|file| file.name == found.file);
                    image.file = Some(found.file);
                    image.sha256 = file.map(|file| file.sha256.clone());
                    return;
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        image.state = ImageState::MissingFile;
        image.detail =
            first_error.map_or_else(|| "the figure names no file".to_owned(), |error: MatchError| error.to_string());
    }

    /// Decodes an image: pixels that cannot be read cannot be shown.
    fn look(
        &self,
        image: &mut ImageAsset,
        hashes: &mut Vec<(String, DifferenceHash)>,
        out: &mut Emitter<'_, ArticleRecord>,
        context: &StageContext<'_>,
    ) -> anyhow::Result<()> {
        let Some(sha256) = &image.sha256 else { return Ok(()) };
        let path = context.media.path(&MediaRef(sha256.clone()))?;
        let file = File::open(&path).with_context(|| format!("opening media {sha256}"))?;
        let decoded = probe::read(file, &self.limits)?
            .and_then(|bytes| decode(&bytes, &self.limits).map(|decoded| (bytes, decoded)));
        let (bytes, Decoded { probe, pixels, conversions }) = match decoded {
            Ok(decoded) => decoded,
            Err(error) => {
                image.state = ImageState::Broken;
                image.detail = error.to_string();
                return Ok(());
            }
        };
        (image.width, image.height) = (Some(probe.width), Some(probe.height));
        image.format = Some(probe.format.name().to_ascii_lowercase());
        let hash = DifferenceHash::of(&pixels);
        image.difference_hash = Some(String::from(hash));
        let similar = hashes.iter().find(|(_, other)| other.distance(hash) <= self.settings.similar_bits);
        image.similar_to = similar.map(|(id, _)| id.clone());
        hashes.push((image.image_id.clone(), hash));
        if probe.is_below(self.settings.min_side) {
            image.state = ImageState::LowResolution;
            image.detail = format!("{} × {} pixels, less than {}", probe.width, probe.height, self.settings.min_side);
            return Ok(());
        }
        if !self.settings.derive || !may_adapt(&image.licence) {
            return Ok(());
        }
        if needs_picture(probe.format, &conversions) {
            let mut png = Cursor::new(Vec::new());
            pixels.write_to(&mut png, image::ImageFormat::Png).context("writing a PNG")?;
            image.derived_sha256 = Some(out.media(png.into_inner()).0);
            image.derived_format = Some("png".to_owned());
            image.conversions = conversions
                .iter()
                .map(|step| serde_json::to_value(step).map(|name| plain_text(&name)))
                .collect::<Result<_, _>>()?;
        } else if let Some(stripped) = without_metadata(&bytes) {
            image.derived_sha256 = Some(out.media(stripped).0);
            image.derived_format = image.format.clone();
            image.conversions = vec!["metadata_removed".to_owned()];
        }
        Ok(())
    }

    /// Whether the article leaves, by what became of its images.
    fn judge(&self, images: &[ImageAsset]) -> Option<Verdict> {
        let of = |state: ImageState| images.iter().filter(move |image| image.state == state);
        let named = |image: &ImageAsset| format!("{}: {}", image.image_id, image.detail);
        if images.is_empty() {
            return Some(Verdict::Drop(Cause::new("no_figure", "the article has no figure with a graphic")));
        }
        for (state, on, reason) in [
            (ImageState::LowResolution, self.settings.on_low_resolution, "low_resolution"),
            (ImageState::NotLicensed, self.settings.on_not_licensed, "image_not_licensed"),
        ] {
            if on == OnImage::DropCase
                && let Some(image) = of(state).next()
            {
                return Some(Verdict::Drop(Cause::new(reason, named(image))));
            }
        }
        if of(ImageState::Usable).next().is_some() {
            return None;
        }
        // What is not known comes first: a file that is missing could have been the image.
        for (state, reason) in [(ImageState::MissingFile, "image_files_missing"), (ImageState::Broken, "images_broken")]
        {
            if let Some(image) = of(state).next() {
                return Some(Verdict::Quarantine(Cause::new(reason, named(image))));
            }
        }
        for (state, reason) in
            [(ImageState::LowResolution, "low_resolution"), (ImageState::NotLicensed, "image_not_licensed")]
        {
            if let Some(image) = of(state).next() {
                return Some(Verdict::Drop(Cause::new(reason, named(image))));
            }
        }
        let kinds: BTreeMap<&str, usize> = images.iter().fold(BTreeMap::new(), |mut kinds, image| {
            *kinds.entry(image.image_type.as_deref().unwrap_or("unknown")).or_default() += 1;
            kinds
        });
        let shown: Vec<String> = kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
        Some(Verdict::Drop(Cause::new("no_medical_image", shown.join(", "))))
    }
}

/// Whether viewers show a file otherwise than it is meant.
fn needs_picture(format: Format, conversions: &[Conversion]) -> bool {
    !matches!(format, Format::Jpeg | Format::Png)
        || conversions.iter().any(|step| {
            matches!(
                step,
                Conversion::InksToRgb
                    | Conversion::InvertedInksToRgb
                    | Conversion::SixteenBitsToEight
                    | Conversion::Turned
                    | Conversion::FirstFrameOnly
            )
        })
}

/// Title and caption of a figure as one text.
fn caption(figure: &Figure) -> String {
    let passages = figure.caption.iter().chain(&figure.group_caption).map(|passage: &Passage| passage.text.as_str());
    let texts = figure.title.as_deref().into_iter().chain(passages).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join(" ")
}

fn attribution(figure: &Figure) -> Option<String> {
    let parts: Vec<&str> = figure.attribution.iter().chain(&figure.permissions).map(String::as_str).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Words by which captions say that a figure belongs to somebody else.
const REUSED: &[&str] = &[
    "reproduced with permission",
    "reproduced by permission",
    "reprinted with permission",
    "reprinted by permission",
    "reprinted from",
    "reproduced from",
    "used with permission",
    "adapted with permission",
    "with permission from",
    "with the permission of",
];

fn is_reused(text: &str) -> bool {
    let text = text.to_lowercase();
    REUSED.iter().any(|words| text.contains(words))
}

fn excerpt_of(text: &str) -> String {
    crate::text::excerpt(text, 200)
}
