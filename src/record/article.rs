//! A published article with the files of its package, as it moves through a pipeline.
//!
//! Everything is a scalar, a text, a unit enum, a list or a struct of these, so that it can be a row; lists refer to each
//! other by position. Offsets into texts and into the file count bytes of UTF-8.

use super::model::{MadeBy, ReplyTrace};
use super::{Hash, Provenance, RecordId, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// An article of PubMed Central with what its package holds (ClinMM-Bench, 4.1.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArticleRecord {
    pub record_id: RecordId,
    /// Its rights are the strictest of the snapshot's and of what the article and the archive say of it.
    pub provenance: Provenance,
    /// Specialty whose query found the article; null if nobody noted one.
    pub specialty: Option<String>,
    /// Version of the article in the archive, where its package is named by one.
    pub version: Option<u32>,
    /// Files beside the XML in its package, sorted by name.
    pub files: Vec<PackageFile>,
    /// Graphics of the figures, in order; empty until `filter_media`.
    pub images: Vec<ImageAsset>,
    /// The one patient that the record speaks of, where an article of several was split; null otherwise.
    pub patient: Option<PatientSegment>,
    /// Final diagnoses that a curated list beside the articles gives, by rank; none without such a list.
    pub listed_diagnoses: Vec<ListedDiagnosis>,
    pub made_by: Vec<MadeBy>,
    pub replies: Vec<ReplyTrace>,
    /// What a user should know, such as `licence_disagreement` or `corrected`; sorted.
    pub flags: Vec<String>,
    pub article: Article,
}

impl Row for ArticleRecord {
    const NAME: &'static str = "article";
    const TITLE: &'static str = "A published article with the files of its package.";
}

record_by_fields!(ArticleRecord);

/// A diagnosis of a list beside the articles (Hirosawa et al. 2024 for AJCR).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedDiagnosis {
    /// From 1, the primary one.
    pub rank: u32,
    pub label: String,
}

/// A file of an article's package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PackageFile {
    /// Below the folder of the package, with forward slashes.
    pub name: String,
    pub sha256: Hash,
    pub bytes: u64,
}

/// A graphic of a figure: one image of a case, if it is usable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageAsset {
    /// Label of the figure as printed, and the number of the graphic where a figure has several: `Figure 2`, `Figure 2 (1)`.
    pub image_id: String,
    /// Position in [`Article::figures`].
    pub figure: u32,
    /// From 0, in [`Figure::graphics`].
    pub panel: u32,
    /// `xlink:href` as it stands.
    pub href: Option<String>,
    pub state: ImageState,
    /// What decided about `state`, in plain words; empty for a usable image.
    pub detail: String,
    /// Kind of picture by its caption, such as `computed tomography`; null if no rule knows it.
    pub image_type: Option<String>,
    /// Words of the caption that decided about `image_type`.
    pub image_type_evidence: Option<String>,
    /// Name in [`ArticleRecord::files`].
    pub file: Option<String>,
    /// Of the file as it was published.
    pub sha256: Option<Hash>,
    /// Pixels, upright.
    pub width: Option<u32>,
    pub height: Option<u32>,
    /// `jpeg`, `png`, `gif`, `tiff`, `webp` or `bmp`, by content.
    pub format: Option<String>,
    /// Difference hash of the picture, 16 hexadecimal digits.
    pub difference_hash: Option<String>,
    /// `image_id` of an earlier image whose hash differs in few bits. Nothing is removed for it.
    pub similar_to: Option<String>,
    /// What was done to make the derived picture, such as `inks_to_rgb`; empty if there is none.
    pub conversions: Vec<String>,
    /// A picture made of the file, where it must be converted to be shown, or holds data about people and devices, and its
    /// licence allows it.
    pub derived_sha256: Option<Hash>,
    /// `png` or `jpeg`
    pub derived_format: Option<String>,
    /// SPDX expression: the article's licence and what the figure says of itself.
    pub licence: String,
    /// What the figure says of its origin and permission.
    pub attribution: Option<String>,
}

/// Whether an image can be part of a case, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageState {
    Usable,
    /// A chart, a flow diagram, a pedigree: not an image of a patient.
    NotMedical,
    /// A side is shorter than the least.
    LowResolution,
    /// The same bytes as an earlier image of the article.
    Duplicate,
    /// The figure says that it is under other terms than the article.
    NotLicensed,
    /// The package holds no file for it, or several that fit alike.
    MissingFile,
    /// The file is there and cannot be used; what is wrong stands in the detail.
    Broken,
}

/// What belongs to one patient of an article about several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatientSegment {
    /// From 1, in the order of the text.
    pub number: u32,
    /// How the article calls the patient, such as `Case 2`.
    pub label: Option<String>,
    /// Positions of paragraphs, ascending.
    pub paragraphs: Vec<u32>,
    /// Positions of figures, ascending. One that several patients use belongs to each of them.
    pub figures: Vec<u32>,
    /// Positions of tables, ascending; likewise.
    pub tables: Vec<u32>,
    /// Positions of figures that belong to no patient in particular (MTDiag, B.3: the general block); the same for every patient.
    pub general_figures: Vec<u32>,
    /// Positions of tables that belong to no patient in particular.
    pub general_tables: Vec<u32>,
}

/// A JATS article (ANSI/NISO Z39.96), Archiving, Publishing or Authoring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Article {
    /// `article-type`, such as `case-report`.
    pub article_type: Option<String>,
    /// `xml:lang`
    pub language: Option<String>,
    pub ids: ArticleIds,
    pub title: Option<String>,
    pub subtitle: Option<String>,
    /// Titles in other languages.
    pub translated_titles: Vec<String>,
    /// Headings such as `Case Report`, from `article-categories`.
    pub subjects: Vec<String>,
    pub abstract_state: AbstractState,
    /// Position of the abstract to read; none unless `abstract_state` is `present`.
    pub main_abstract: Option<u32>,
    pub abstracts: Vec<Abstract>,
    pub contributors: Vec<Contributor>,
    pub journal: Journal,
    pub dates: Vec<ArticleDate>,
    pub keywords: Vec<Keyword>,
    pub permissions: Permissions,
    pub editorial: EditorialState,
    /// What decided `editorial`.
    pub editorial_evidence: Vec<String>,
    pub related_articles: Vec<RelatedArticle>,
    pub body: BodyState,
    pub sections: Vec<Section>,
    /// Of body, back matter and sub-articles, in document order.
    pub paragraphs: Vec<Paragraph>,
    pub definitions: Vec<Definition>,
    /// Of the whole article, wherever the publisher put them.
    pub figures: Vec<Figure>,
    pub tables: Vec<Table>,
    /// Images in the running text, beside figures and tables.
    pub loose_graphics: Vec<LooseGraphic>,
    pub supplements: Vec<Supplement>,
    pub references: Vec<Reference>,
    pub sub_articles: Vec<SubArticle>,
    /// Bytes of the article in the file.
    pub byte_start: u32,
    pub byte_end: u32,
    /// At most 100.
    pub warnings: Vec<Warning>,
}

/// Ids of the article, in one notation whatever the spelling in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArticleIds {
    /// `PMC` and digits.
    pub pmcid: Option<String>,
    /// The version, where a versioned id is given (`PMC123.2`).
    pub pmcid_version: Option<u32>,
    /// Digits.
    pub pmid: Option<String>,
    pub doi: Option<String>,
    /// All as they stand, also those above.
    pub stated: Vec<StatedId>,
}

/// An `article-id` as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatedId {
    /// `pub-id-type`
    pub id_type: String,
    pub value: String,
}

/// Is there an abstract to read?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbstractState {
    Present,
    /// None in the article.
    #[default]
    Missing,
    /// Only graphical ones, highlights, summaries for other readers, or translations.
    OtherKindsOnly,
    /// One that holds no text.
    Empty,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Abstract {
    /// `abstract-type`; none for the abstract proper.
    pub abstract_type: Option<String>,
    pub language: Option<String>,
    /// From `trans-abstract`.
    pub is_translation: bool,
    pub title: Option<String>,
    pub paragraphs: Vec<AbstractParagraph>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AbstractParagraph {
    /// Titles of the sections of a structured abstract, outermost first.
    pub section_path: Vec<String>,
    pub passage: Passage,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Contributor {
    /// `contrib-type`, such as `author` or `editor`.
    pub contrib_type: Option<String>,
    pub surname: Option<String>,
    pub given_names: Option<String>,
    pub suffix: Option<String>,
    /// A group, or a name that is not divided.
    pub collab: Option<String>,
    /// The four groups of an ORCID, without address.
    pub orcid: Option<String>,
    pub is_corresponding: bool,
    pub affiliations: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Journal {
    pub title: Option<String>,
    /// `nlm-ta`
    pub nlm_title: Option<String>,
    /// `iso-abbrev`
    pub iso_title: Option<String>,
    pub publisher: Option<String>,
    pub issns: Vec<String>,
    pub volume: Option<String>,
    pub issue: Option<String>,
    pub first_page: Option<String>,
    pub last_page: Option<String>,
    pub elocation_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArticleDate {
    /// What happened: `date-type`, `pub-type` or `event-type` as it stands.
    pub date_type: Option<String>,
    /// `publication-format`
    pub publication_format: Option<String>,
    pub year: Option<u32>,
    /// 1 to 12.
    pub month: Option<u32>,
    /// 1 to 31.
    pub day: Option<u32>,
    pub season: Option<String>,
    /// `YYYY-MM-DD`, `YYYY-MM` or `YYYY`, as far as known.
    pub iso: Option<String>,
    /// The text of the element.
    pub stated: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Keyword {
    /// `kwd-group-type`
    pub group_type: Option<String>,
    pub language: Option<String>,
    pub text: String,
}

/// What the block `permissions` states. Nothing outside of it counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Permissions {
    pub copyright_statements: Vec<String>,
    pub copyright_year: Option<String>,
    pub copyright_holder: Option<String>,
    /// `license-type` as it stands.
    pub license_type: Option<String>,
    /// Addresses in `license`, `ali:license_ref` and the links of its paragraphs.
    pub links: Vec<String>,
    pub text: Option<String>,
    /// Licence by address.
    pub by_link: License,
    /// Licence by the words of `license` or, without one, of the copyright statement.
    pub by_text: License,
    /// Licence by `license-type`.
    pub by_metadata: License,
    /// All that the three demand; unknown when none is known.
    pub license: License,
    /// Two of the three are known and differ.
    pub is_disagreement: bool,
}

/// A licence as its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct License {
    pub family: LicenseFamily,
    /// Commercial use is not allowed.
    pub non_commercial: bool,
    /// Changed versions may not be passed on.
    pub no_derivatives: bool,
    /// Changed versions must have the same licence.
    pub share_alike: bool,
    /// Such as `4.0`.
    pub version: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LicenseFamily {
    /// Nothing is stated, or nothing that can be read: closed.
    #[default]
    Unknown,
    PublicDomain,
    Cc0,
    /// Creative Commons Attribution, with what the flags say.
    CcBy,
    /// Rights are reserved in so many words.
    Reserved,
}

/// Does the article stand?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditorialState {
    #[default]
    Standing,
    /// Stands, with a later correction.
    Corrected,
    /// Stands, with a later expression of concern.
    OfConcern,
    /// Withdrawn.
    Retracted,
    /// Says that another article is withdrawn.
    RetractionNotice,
    /// Corrects another article.
    CorrectionNotice,
    /// Expresses concern about another article.
    ConcernNotice,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RelatedArticle {
    /// `related-article-type`
    pub relation: Option<String>,
    /// `ext-link-type`, such as `doi` or `pubmed`.
    pub link_type: Option<String>,
    pub href: Option<String>,
    pub text: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BodyState {
    /// No body: metadata only.
    #[default]
    Missing,
    /// A body that holds nothing.
    Empty,
    /// A body with elements, but without a paragraph: what it holds is unknown, which is not nothing.
    WithoutParagraphs,
    Full,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Section {
    pub id: Option<String>,
    /// `sec-type`; of other titled parts the name of the element, such as `ack` or `app`.
    pub sec_type: Option<String>,
    pub label: Option<String>,
    pub title: Option<String>,
    /// Position of the section around it.
    pub parent: Option<u32>,
    pub region: Region,
    pub byte_start: u32,
    pub byte_end: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Region {
    #[default]
    Body,
    Back,
    Floats,
    /// Of a sub-article, response or translation.
    SubArticle,
}

/// Where in the article a paragraph stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParagraphKind {
    #[default]
    Running,
    ListItem,
    BoxedText,
    Definition,
    Quotation,
    Footnote,
    Statement,
}

/// The element that a paragraph was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParagraphElement {
    #[default]
    P,
    DispFormula,
    Preformat,
    VerseLine,
    Attrib,
    Speaker,
    /// Text that stands in an element that should hold paragraphs.
    Stray,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paragraph {
    pub id: Option<String>,
    pub region: Region,
    pub sub_article: Option<u32>,
    /// Position of the innermost section.
    pub section: Option<u32>,
    /// Titles of all sections and boxes around it, outermost first; untitled ones are left out.
    pub section_path: Vec<String>,
    pub kind: ParagraphKind,
    pub element: ParagraphElement,
    /// Label of the list item or footnote; the term that is defined.
    pub label: Option<String>,
    /// Position of the paragraph that this one stands in, and the offset in its text where it does.
    pub within: Option<u32>,
    pub within_offset: Option<u32>,
    pub passage: Passage,
}

/// A text that knows where in the file it stands.
///
/// The text is the same whatever the inline markup is. White space of XML is one space and none at the ends; other spaces
/// stay. Superscripts are the Unicode ones (10⁹) or follow `^`; digits of subscripts are the Unicode ones; markers of
/// citations that are superscript, or that follow a letter or digit without a space, stand in brackets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Passage {
    pub text: String,
    /// Bytes of the element in the file.
    pub byte_start: u32,
    pub byte_end: u32,
    /// In the order of the text, without gaps.
    pub runs: Vec<SourceRun>,
    pub mentions: Vec<Mention>,
}

/// A stretch of text, up to the next run, and the bytes of the file that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceRun {
    pub text_start: u32,
    pub byte_start: u32,
    /// As many bytes as the text has when it is verbatim; none for what was put in.
    pub byte_length: u32,
    pub kind: RunKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// Byte for byte, but that a line break or tab is a space.
    Verbatim,
    /// The whole text stands for all of the bytes: a reference, or a raised or lowered character.
    Replaced,
    /// Put in between.
    Inserted,
}

/// A cross reference (`xref`) in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mention {
    /// `ref-type`, such as `fig`, `table` or `bibr`.
    pub ref_type: Option<String>,
    /// Id of the element that is meant.
    pub rid: String,
    /// Offsets in the text of the passage; brackets put around a marker are included.
    pub text_start: u32,
    pub text_end: u32,
}

impl Passage {
    /// The bytes of the file that a span of the text comes from; markup between its first and last byte is included.
    /// None when the span is empty, is not within the text, or holds only what was put in.
    pub fn source_of(&self, span: Range<usize>) -> Option<Range<usize>> {
        if span.start >= span.end || span.end > self.text.len() {
            return None;
        }
        let first = self.runs.partition_point(|run| run.text_start as usize <= span.start).checked_sub(1)?;
        let mut source: Option<Range<usize>> = None;
        for (position, run) in self.runs.iter().enumerate().skip(first) {
            let run_start = run.text_start as usize;
            if run_start >= span.end {
                break;
            }
            let run_end = self.runs.get(position + 1).map_or(self.text.len(), |next| next.text_start as usize);
            let (byte_start, byte_length) = (run.byte_start as usize, run.byte_length as usize);
            let bytes = match run.kind {
                RunKind::Verbatim => {
                    let from = byte_start + (span.start.max(run_start) - run_start);
                    from..byte_start + (span.end.min(run_end) - run_start)
                }
                RunKind::Replaced => byte_start..byte_start + byte_length,
                RunKind::Inserted => continue,
            };
            source =
                Some(source.map_or(bytes.clone(), |so_far| so_far.start.min(bytes.start)..so_far.end.max(bytes.end)));
        }
        source
    }
}

/// Where a paragraph mentions something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Anchor {
    /// Position of the paragraph.
    pub paragraph: u32,
    pub text_start: u32,
    pub text_end: u32,
}

/// Where something stands that is not part of the running text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    pub region: Region,
    pub sub_article: Option<u32>,
    pub section_path: Vec<String>,
    /// Position of the paragraph that it stands in, and the offset in its text.
    pub paragraph: Option<u32>,
    pub text_offset: Option<u32>,
    pub byte_start: u32,
    pub byte_end: u32,
}

/// A term with what is said of it, from a list of definitions or an abbreviation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Definition {
    pub term: String,
    pub text: String,
    pub byte_start: u32,
    pub byte_end: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    pub id: Option<String>,
    pub label: Option<String>,
    /// Title of the caption.
    pub title: Option<String>,
    pub caption: Vec<Passage>,
    /// Id, label and caption of the `fig-group` around it.
    pub group_id: Option<String>,
    pub group_label: Option<String>,
    pub group_caption: Vec<Passage>,
    /// Panels in order; what `alternatives` offers counts once.
    pub graphics: Vec<Graphic>,
    pub alt_text: Option<String>,
    /// `attrib`
    pub attribution: Option<String>,
    /// Words of a `permissions` block of its own: not under the licence of the article.
    pub permissions: Option<String>,
    pub mentions: Vec<Anchor>,
    pub place: Place,
}

/// A file that shows something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Graphic {
    /// `xlink:href` as it stands, often without extension.
    pub href: Option<String>,
    pub element: GraphicElement,
    /// `mimetype/mime-subtype` as claimed.
    pub mime_type: Option<String>,
    /// Further `xlink:href` of the same `alternatives`.
    pub alternatives: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphicElement {
    #[default]
    Graphic,
    InlineGraphic,
    Media,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LooseGraphic {
    pub graphic: Graphic,
    pub place: Place,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    pub id: Option<String>,
    /// From 0: the how-many-th grid of the same `table-wrap`.
    pub part: u32,
    pub label: Option<String>,
    pub title: Option<String>,
    pub caption: Vec<Passage>,
    pub group_id: Option<String>,
    pub group_label: Option<String>,
    pub group_caption: Vec<Passage>,
    pub content: TableContent,
    pub n_rows: u32,
    pub n_columns: u32,
    /// In document order: by row, then column.
    pub cells: Vec<Cell>,
    /// Images of the table, also beside a grid.
    pub graphics: Vec<Graphic>,
    pub footnotes: Vec<Passage>,
    pub attribution: Option<String>,
    pub permissions: Option<String>,
    pub mentions: Vec<Anchor>,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TableContent {
    Grid,
    /// Only an image.
    Image,
    /// Neither cells nor image.
    #[default]
    Nothing,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// From 0.
    pub row: u32,
    /// From 0.
    pub column: u32,
    /// At least 1, and clipped to the rows of its `thead`, `tbody` or table.
    pub row_span: u32,
    /// At least 1.
    pub column_span: u32,
    /// `th`, or within `thead`.
    pub is_header: bool,
    pub text: String,
    pub byte_start: u32,
    pub byte_end: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Supplement {
    pub id: Option<String>,
    pub label: Option<String>,
    pub title: Option<String>,
    pub caption: Vec<Passage>,
    /// Files, with the types that are claimed.
    pub files: Vec<Graphic>,
    pub mentions: Vec<Anchor>,
    pub place: Place,
}

/// A cited work. A `ref` that lists several gives one for each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    pub id: Option<String>,
    pub label: Option<String>,
    /// `publication-type`
    pub publication_type: Option<String>,
    /// Family name, then given names; groups as they stand.
    pub authors: Vec<String>,
    pub has_more_authors: bool,
    pub title: Option<String>,
    pub source: Option<String>,
    pub year: Option<String>,
    pub volume: Option<String>,
    pub issue: Option<String>,
    pub first_page: Option<String>,
    pub last_page: Option<String>,
    pub doi: Option<String>,
    pub pmid: Option<String>,
    pub pmcid: Option<String>,
    pub sub_article: Option<u32>,
    /// All words of the citation.
    pub text: String,
    pub byte_start: u32,
    pub byte_end: u32,
}

/// A part with a front of its own: a reply, a decision letter, a translation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubArticle {
    pub id: Option<String>,
    pub kind: SubArticleKind,
    pub article_type: Option<String>,
    pub language: Option<String>,
    pub title: Option<String>,
    pub doi: Option<String>,
    /// Position of the sub-article around it.
    pub parent: Option<u32>,
    pub abstracts: Vec<Abstract>,
    pub byte_start: u32,
    pub byte_end: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubArticleKind {
    #[default]
    SubArticle,
    Response,
    /// A `sub-article` with the type `translation`.
    Translation,
}

/// Something that a reader of the article should know of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    pub kind: WarningKind,
    pub detail: String,
    /// From 1.
    pub line: u64,
    pub byte: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// An entity that is not known; U+FFFD stands in its place.
    UnknownEntity,
    /// A part of the document type declaration that is not used.
    SubsetIgnored,
    /// Two ids of one kind differ.
    IdConflict,
    /// A body with elements, but without a paragraph.
    BodyWithoutParagraphs,
    /// A formula none of whose forms has text.
    FormulaWithoutText,
    /// Spans of a table go beyond its limits and are not expanded.
    TableSpans,
    /// A date that no calendar has.
    Date,
}
