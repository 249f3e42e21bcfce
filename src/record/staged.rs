//! The staged multimodal case of ClinMM-Bench (4.1.4, supplement F): what a model is told first, one image after the other,
//! and what it should come to.

use super::article::ArticleIds;
use super::model::{MadeBy, ReplyTrace};
use super::slots::Span;
use super::{Access, Hash, Provenance, RecordId, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A case report as a diagnostic dialogue: presentation, one turn an image, diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StagedCase {
    pub record_id: RecordId,
    pub provenance: Provenance,
    /// What must be named whenever the case is passed on.
    pub citation: Citation,
    /// Specialty whose query found the article; null if nobody noted one.
    pub specialty: Option<String>,
    pub english: Presentation,
    /// Filled by models only.
    pub chinese: Option<Presentation>,
    /// In the order of the dialogue.
    pub images: Vec<StagedImage>,
    /// Masked like everything below it.
    pub final_diagnosis: StagedText,
    pub final_diagnosis_chinese: Option<String>,
    /// Other names of the diagnosis in the article: abbreviations and what stands for it in the title.
    pub synonyms: Vec<String>,
    pub diagnostic_reasoning: Option<StagedText>,
    pub diagnostic_reasoning_chinese: Option<String>,
    /// Texts of the article that spans point into, by position in the article.
    pub texts: Vec<SourceText>,
    /// The whole article as plain text, for whoever judges the case; no part of a release.
    pub article_text: String,
    pub fidelity: Option<Conversion>,
    pub made_by: Vec<MadeBy>,
    pub replies: Vec<ReplyTrace>,
    /// Sorted.
    pub flags: Vec<String>,
}

impl StagedCase {
    /// Every text that points into the article.
    pub fn quoted_texts(&self) -> Vec<&StagedText> {
        let presentation = self.english.fields().into_iter().filter_map(|(_, text)| text);
        let mut texts: Vec<&StagedText> = presentation.collect();
        texts.push(&self.final_diagnosis);
        texts.extend(&self.diagnostic_reasoning);
        for image in &self.images {
            texts.extend(image.image_finding.iter().chain(&image.diagnostic_significance).chain(&image.caption));
        }
        texts
    }
}

impl Row for StagedCase {
    const NAME: &'static str = "staged_case";
    const TITLE: &'static str = "A case report as a diagnostic dialogue: presentation, images one by one, diagnosis.";
}

record_by_fields!(StagedCase);

/// The article as it is cited. Title and keywords can name the diagnosis: masked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Citation {
    pub ids: ArticleIds,
    pub version: Option<u32>,
    pub title: Option<String>,
    /// `Surname Given-names`, in order.
    pub authors: Vec<String>,
    pub journal: Option<String>,
    pub year: Option<u32>,
    pub copyright: Option<String>,
}

/// What a model is told before the first image (supplement F). No results of imaging, no morphology of pathology, endoscopy
/// or skin, and no diagnosis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Presentation {
    pub demographic_information: Option<StagedText>,
    pub chief_complaint: Option<StagedText>,
    pub history_of_present_illness: Option<StagedText>,
    pub lab_result: Option<StagedText>,
    /// Names of examinations that were done, not what they found.
    pub physical_examination: Option<StagedText>,
}

impl Presentation {
    /// The fields with their names, in the order of the paper.
    pub fn fields(&self) -> [(&'static str, Option<&StagedText>); 5] {
        [
            ("demographic_information", self.demographic_information.as_ref()),
            ("chief_complaint", self.chief_complaint.as_ref()),
            ("history_of_present_illness", self.history_of_present_illness.as_ref()),
            ("lab_result", self.lab_result.as_ref()),
            ("physical_examination", self.physical_examination.as_ref()),
        ]
    }

    /// The same, to be changed.
    pub fn fields_mut(&mut self) -> [(&'static str, &mut Option<StagedText>); 5] {
        [
            ("demographic_information", &mut self.demographic_information),
            ("chief_complaint", &mut self.chief_complaint),
            ("history_of_present_illness", &mut self.history_of_present_illness),
            ("lab_result", &mut self.lab_result),
            ("physical_examination", &mut self.physical_examination),
        ]
    }
}

/// What stands between the quotes of a field: examinations are a list, everything else is running text.
pub fn separator(field: &str) -> &'static str {
    if field == "physical_examination" { "; " } else { " " }
}

/// A text of a case, and what of the article it was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagedText {
    pub text: String,
    /// In the order of the text. By rules the text is these quotes, parted by [`separator`]; a model's words point to the
    /// sentences that support them.
    pub quotes: Vec<Quote>,
}

/// A stretch of the article.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quote {
    /// In the texts of the case.
    pub span: Span,
    /// Titles of the sections around it, outermost first.
    pub section_path: Vec<String>,
    /// Bytes of the XML file.
    pub xml_start: u32,
    /// Exclusive.
    pub xml_end: u32,
}

/// A text of the article.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceText {
    /// `p12`: paragraph 12 of the article, from 0; `f2.0`: first passage of the caption of figure 2; `a0.1`: second paragraph
    /// of the first abstract; `title`.
    pub text_id: String,
    pub text: String,
}

/// One image of a case: one turn of the dialogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagedImage {
    /// Label in the article.
    pub image_id: String,
    /// Such as `computed tomography`; null if unknown.
    pub image_type: Option<String>,
    /// What should be seen; masked.
    pub image_finding: Option<StagedText>,
    /// What it means for the diagnosis; masked.
    pub diagnostic_significance: Option<StagedText>,
    /// The whole caption as published; masked.
    pub caption: Option<StagedText>,
    pub image_type_chinese: Option<String>,
    pub image_finding_chinese: Option<String>,
    pub diagnostic_significance_chinese: Option<String>,
    /// Of the file as it was published.
    pub sha256: Hash,
    /// Name in the package; masked, since it can name the diagnosis.
    pub file: String,
    /// Pixels, upright.
    pub width: u32,
    pub height: u32,
    /// By content.
    pub format: String,
    /// A picture made of the file, if it must be converted to be shown.
    pub derived_sha256: Option<Hash>,
    /// `png` or `jpeg`
    pub derived_format: Option<String>,
    pub conversions: Vec<String>,
    /// SPDX expression.
    pub licence: String,
    pub attribution: Option<String>,
}

/// How well a case keeps to its article (4.1.5 and SPEC section 8).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conversion {
    /// Texts of the case, and those of them that stand in the article word for word, or nearly.
    pub n_texts: u32,
    pub n_grounded: u32,
    /// Sentences about the patient in the article, and those that a quote of the case touches.
    pub n_sentences: u32,
    pub n_covered: u32,
    /// 1 to 5, by a judge; null without one.
    pub judge_score: Option<u32>,
    pub judge_reason: Option<String>,
    /// `provider/model`
    pub judge: Option<String>,
}

/// A staged case in a release. What a solver is shown is in `views/dialogue.jsonl`; everything else here can name the
/// diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClinmmCase {
    pub case_id: String,
    /// The case that this one is a variant of.
    pub parent_id: Option<String>,
    pub source: String,
    /// SPDX expression: the strictest of the article and of its images.
    pub licence: String,
    pub access: Access,
    pub specialty: Option<String>,
    pub citation: Citation,
    pub english: Presentation,
    pub chinese: Option<Presentation>,
    pub images: Vec<StagedImage>,
    pub final_diagnosis: StagedText,
    pub final_diagnosis_chinese: Option<String>,
    pub synonyms: Vec<String>,
    pub diagnostic_reasoning: Option<StagedText>,
    pub diagnostic_reasoning_chinese: Option<String>,
    /// Turns of the dialogue: presentation, one an image, diagnosis.
    pub n_turns: u32,
    pub fidelity: Option<Conversion>,
    pub made_by: Vec<MadeBy>,
    pub replies: Vec<ReplyTrace>,
    /// Named subsets it is in; no part of the case hash.
    pub subsets: Vec<String>,
    /// Sorted.
    pub flags: Vec<String>,
    /// `none`, or `pending` while a person's decision is awaited.
    pub review_state: String,
    /// SHA-256 of the canonical JSON of the case and its texts.
    pub case_hash: String,
}

impl Row for ClinmmCase {
    const NAME: &'static str = "clinmm_case";
    const TITLE: &'static str = "A case report as a diagnostic dialogue, in a release.";
}
