//! `convert_case`: a case report to a staged case (ClinMM-Bench, 4.1.4 and supplement F): by a model, or by rules that copy
//! sentences of the article.
//!
//! Whoever converts, each text says which sentences of the article it rests on. A presentation that names the diagnosis or
//! shows what only images show is found by `check_case_leakage`; the rules leave such sentences out.

use super::ask::Asking;
use super::prompt::{COPIED_EXAMPLE, PROMPT, Variable};
use super::*;
use crate::dag::RULES;
use crate::record::article::{Article, ArticleRecord, ImageAsset, ImageState};
use crate::record::model::{add_maker, field};
use crate::record::provenance::both_licences;
use crate::record::staged::{Citation, Conversion, Presentation, StagedCase, StagedImage, StagedText};
use crate::staging::diagnosis::{FinalDiagnosis, Located, final_diagnosis};
use crate::staging::examinations::Examinations;
use crate::staging::figures::{ImageText, findings};
use crate::staging::masking::{Mask, MaskWords};
use crate::staging::plain::report;
use crate::staging::presentation::{presentation, source_texts, staged_text};
use crate::staging::reasoning::reasoning;
use crate::staging::sections::{SectionRole, roles};
use crate::staging::suitability::CaseReportRules;
use crate::staging::support::{Sentences, coverage};
use crate::text::leakage::Synonyms;
use anyhow::Context;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub const STAGE: StageDef = StageDef {
    name: "convert_case",
    summary: "Makes a staged case of a case report: presentation, images with findings, diagnosis, reasoning; by a model, or by rules that copy sentences",
    shape: Shape::Model,
    revision: 1,
    inputs: &[Port::records::<ArticleRecord>("records")],
    outputs: &[Port::records::<StagedCase>("records")],
    resources: &[
        ResourceDecl { name: "rules", summary: "how diagnoses are stated, as TOML" },
        ResourceDecl { name: "examinations", summary: "examinations and kinds of pictures by their words, as TOML" },
        ResourceDecl { name: "masking", summary: "words of findings that only images show, as TOML" },
        ResourceDecl { name: "synonyms", summary: "names of one disease, as TOML" },
        ResourceDecl { name: PROMPT, summary: "what the model is asked, as Markdown with a `report` and its `images`" },
    ],
    reasons: &["no_diagnosis", "diagnosis_unclear", NO_PRESENTATION, "no_usable_image", COPIED_EXAMPLE],
    settings: SettingsType::of::<ConversionSettings>(),
    build,
};

const NO_PRESENTATION: &str = "no_presentation";

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ConversionSettings {
    /// The model that converts, by its name under `[models]`; `rules` for none.
    model: String,
    /// Most characters of a report that the model is shown; longer ones are cut at the end of a paragraph.
    max_report_chars: u32,
}

impl Default for ConversionSettings {
    fn default() -> Self {
        Self { model: RULES.to_owned(), max_report_chars: 60_000 }
    }
}

impl Settings for ConversionSettings {
    fn models(&self) -> Vec<String> {
        vec![self.model.clone()]
    }
}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let resources = arguments.resources;
    Ok(AnyStage::model(ConvertCase {
        settings: arguments.settings()?,
        rules: CaseReportRules::parse(resources.file("rules"), resources.text("rules")?)?,
        examinations: Examinations::parse(resources.file("examinations"), resources.text("examinations")?)?,
        words: MaskWords::parse(resources.file("masking"), resources.text("masking")?)?,
        synonyms: Synonyms::parse(resources.text("synonyms")?)
            .with_context(|| resources.file("synonyms").to_owned())?,
        asking: Asking::new(resources, &["report", "images"], "staged_case", reply_schema())?,
    }))
}

struct ConvertCase {
    settings: ConversionSettings,
    rules: CaseReportRules,
    examinations: Examinations,
    words: MaskWords,
    synonyms: Synonyms,
    asking: Asking,
}

/// What the article says that its case needs, whoever converts.
struct Read<'a> {
    record: &'a ArticleRecord,
    roles: Vec<SectionRole>,
}

impl<'a> Read<'a> {
    fn of(record: &'a ArticleRecord) -> Self {
        Self { record, roles: roles(&record.article) }
    }

    fn images(&self) -> impl Iterator<Item = &'a ImageAsset> {
        self.record.images.iter().filter(|image| image.state == ImageState::Usable)
    }
}

impl ModelStage for ConvertCase {
    type In = ArticleRecord;
    type Out = StagedCase;

    /// None for an article without an image that a case can show.
    fn calls(&self, record: &ArticleRecord, _: &StageContext<'_>) -> anyhow::Result<Vec<Call>> {
        let images: Vec<&str> = Read::of(record).images().map(|image| image.image_id.as_str()).collect();
        if images.is_empty() {
            return Ok(Vec::new());
        }
        let text = report(&record.article, record.patient.as_ref(), self.settings.max_report_chars as usize);
        let variables =
            BTreeMap::from([("report", Variable::Source(text)), ("images", Variable::Source(images.join("\n")))]);
        Ok(vec![self.asking.call(&self.settings.model, &variables, 0)?])
    }

    fn read(
        &self,
        record: ArticleRecord,
        results: Vec<CallResult>,
        out: &mut Emitter<'_, StagedCase>,
    ) -> anyhow::Result<Verdict> {
        if results.is_empty() {
            return self.without_model(record, out);
        }
        let reply = match complete(results).map(|mut replies| replies.pop()) {
            Ok(reply) => reply.context("a call without a reply")?,
            Err(failure) => return Ok(failure.quarantine()),
        };
        if let Some(fault) = self.asking.fault(&reply) {
            return Ok(Failure::of(&reply, fault).quarantine());
        }
        let parsed: ReplyCase = serde_json::from_value(reply.value.clone()).context("a reply of another shape")?;
        let read = Read::of(&record);
        match self.by_reply(&read, parsed)? {
            Ok(mut case) => {
                add_maker(&mut case.made_by, field::CONVERSION, &reply.model);
                case.replies.push(reply.trace(STAGE.name));
                out.emit(case);
                Ok(Verdict::Keep)
            }
            Err(cause) => Ok(Verdict::Quarantine(cause)),
        }
    }

    fn without_model(&self, record: ArticleRecord, out: &mut Emitter<'_, StagedCase>) -> anyhow::Result<Verdict> {
        match self.by_rules(&Read::of(&record))? {
            Ok(mut case) => {
                add_maker(&mut case.made_by, field::CONVERSION, RULES);
                out.emit(case);
                Ok(Verdict::Keep)
            }
            Err(cause) => Ok(Verdict::Quarantine(cause)),
        }
    }
}

impl ConvertCase {
    fn by_rules(&self, read: &Read<'_>) -> anyhow::Result<Result<StagedCase, Cause>> {
        let (article, patient) = (&read.record.article, read.record.patient.as_ref());
        let diagnosis = match final_diagnosis(article, &read.roles, patient, &self.rules) {
            Ok(diagnosis) => diagnosis,
            Err(none) => return Ok(Err(Cause::new(none.reason, none.detail))),
        };
        if read.images().next().is_none() {
            return Ok(Err(Cause::new("no_usable_image", "")));
        }
        let mask = Mask::with_synonyms(&diagnosis, &self.examinations, &self.words, &self.synonyms);
        let draft = presentation(article, &read.roles, patient, &mask, &self.examinations);
        if let Some(cause) = lacks_presentation(&draft.presentation) {
            return Ok(Err(cause));
        }
        let final_text = staged_text(article, std::slice::from_ref(&diagnosis.quote))
            .context("a diagnosis that stands nowhere in the article")?;
        let images = read.images().map(|image| {
            let figure = article.figures.get(image.figure as usize);
            let text = figure.map(|figure| findings(article, figure, image.panel, &diagnosis, &self.examinations));
            staged_image(image, text.unwrap_or_default())
        });
        let mut case = frame(read, final_text, images.collect::<anyhow::Result<_>>()?);
        case.english = draft.presentation;
        case.diagnostic_reasoning = reasoning(article, &read.roles, patient, &diagnosis);
        case.synonyms = diagnosis.synonyms;
        if case.images.iter().any(|image| image.image_finding.is_none()) {
            case.flags.push("image_without_finding".to_owned());
        }
        if case.diagnostic_reasoning.is_none() {
            case.flags.push("no_reasoning".to_owned());
        }
        if !draft.withheld.is_empty() {
            case.flags.push("sentences_withheld".to_owned());
        }
        finish(read, &mut case, None);
        Ok(Ok(case))
    }

    fn by_reply(&self, read: &Read<'_>, reply: ReplyCase) -> anyhow::Result<Result<StagedCase, Cause>> {
        let (article, patient) = (&read.record.article, read.record.patient.as_ref());
        let sentences = Sentences::of(article, patient);
        let mut grounded = Grounded { article, sentences, n_texts: 0, n_grounded: 0 };
        let english = grounded.presentation(reply.case_presentation.english);
        if let Some(cause) = lacks_presentation(&english) {
            return Ok(Err(cause));
        }
        let Some(final_text) = grounded.text(reply.final_diagnosis.english) else {
            return Ok(Err(Cause::new("no_diagnosis", "the model found none")));
        };
        let mut described: BTreeMap<String, ReplyImage> =
            reply.images.into_iter().map(|image| (image_key(&image.image_id), image)).collect();
        let mut images = Vec::new();
        let mut without_finding = false;
        for image in read.images() {
            let Some(told) = described.remove(&image_key(&image.image_id)) else {
                without_finding = true;
                images.push(staged_image(image, ImageText::default())?);
                continue;
            };
            let text = ImageText {
                image_finding: grounded.text(told.english.image_finding),
                diagnostic_significance: grounded.text(told.english.diagnostic_significance),
                caption: None,
            };
            let mut staged = staged_image(image, text)?;
            staged.image_type = known(told.english.image_type).or(staged.image_type);
            staged.image_type_chinese = known(told.chinese.image_type);
            staged.image_finding_chinese = known(told.chinese.image_finding);
            staged.diagnostic_significance_chinese = known(told.chinese.diagnostic_significance);
            without_finding |= staged.image_finding.is_none();
            images.push(staged);
        }
        let mut case = frame(read, final_text, images);
        case.english = english;
        case.chinese = Some(plain_presentation(reply.case_presentation.chinese));
        case.diagnostic_reasoning = grounded.text(reply.diagnostic_reasoning.english);
        case.final_diagnosis_chinese = known(reply.final_diagnosis.chinese);
        case.diagnostic_reasoning_chinese = known(reply.diagnostic_reasoning.chinese);
        // What gives the model's diagnosis away is what gives away the one that the rules find, where both mean the same.
        if let Ok(FinalDiagnosis { diagnosis, synonyms, .. }) =
            final_diagnosis(article, &read.roles, patient, &self.rules)
        {
            case.synonyms = synonyms;
            if diagnosis != case.final_diagnosis.text {
                case.synonyms.insert(0, diagnosis);
            }
        }
        if without_finding {
            case.flags.push("image_without_finding".to_owned());
        }
        if !described.is_empty() {
            case.flags.push("image_not_of_case".to_owned());
        }
        let counts = (grounded.n_texts, grounded.n_grounded);
        if counts.0 > counts.1 {
            case.flags.push("unsupported_texts".to_owned());
        }
        finish(read, &mut case, Some(counts));
        Ok(Ok(case))
    }
}

/// A case needs a complaint or a history.
fn lacks_presentation(presentation: &Presentation) -> Option<Cause> {
    let has_story = presentation.chief_complaint.is_some() || presentation.history_of_present_illness.is_some();
    (!has_story).then(|| Cause::new(NO_PRESENTATION, "neither a chief complaint nor a history of the present illness"))
}

/// How an article is cited.
pub(super) fn citation(record: &ArticleRecord) -> Citation {
    let article = &record.article;
    let name = |contributor: &crate::record::article::Contributor| match (&contributor.surname, &contributor.collab) {
        (Some(surname), _) => Some(format!("{surname} {}", contributor.given_names.as_deref().unwrap_or_default())),
        (None, collab) => collab.clone(),
    };
    let authors =
        article.contributors.iter().filter(|one| one.contrib_type.as_deref().is_none_or(|kind| kind == "author"));
    let year = article.dates.iter().filter_map(|date| date.year).min();
    Citation {
        ids: article.ids.clone(),
        version: record.version,
        title: article.title.clone(),
        authors: authors.filter_map(name).map(|name| name.trim().to_owned()).collect(),
        journal: article.journal.title.clone(),
        year,
        copyright: article.permissions.copyright_statements.first().cloned(),
    }
}

/// The case without what the converter fills in.
fn frame(read: &Read<'_>, final_diagnosis: StagedText, images: Vec<StagedImage>) -> StagedCase {
    let record = read.record;
    let article = &record.article;
    let mut provenance = record.provenance.clone();
    provenance.rights.licence =
        images.iter().fold(provenance.rights.licence, |licence, image| both_licences(&licence, &image.licence));
    StagedCase {
        record_id: record.record_id.clone(),
        provenance,
        citation: citation(record),
        specialty: record.specialty.clone(),
        english: Presentation::default(),
        chinese: None,
        images,
        final_diagnosis,
        final_diagnosis_chinese: None,
        synonyms: Vec::new(),
        diagnostic_reasoning: None,
        diagnostic_reasoning_chinese: None,
        texts: Vec::new(),
        article_text: report(article, record.patient.as_ref(), usize::MAX),
        fidelity: None,
        made_by: record.made_by.clone(),
        replies: record.replies.clone(),
        flags: record.flags.clone(),
    }
}

/// Texts, counts and flags, once everything else is there. Without counts every text is a copy.
fn finish(read: &Read<'_>, case: &mut StagedCase, counts: Option<(u32, u32)>) {
    let article = &read.record.article;
    let texts = case.quoted_texts();
    let n_texts = u32::try_from(texts.len()).unwrap_or(u32::MAX);
    let (n_texts, n_grounded) = counts.unwrap_or((n_texts, n_texts));
    let (n_sentences, n_covered) = coverage(article, &read.roles, read.record.patient.as_ref(), &texts);
    let sources = source_texts(article, &texts);
    case.texts = sources;
    case.fidelity = Some(Conversion {
        n_texts,
        n_grounded,
        n_sentences,
        n_covered,
        judge_score: None,
        judge_reason: None,
        judge: None,
    });
    case.flags.sort_unstable();
    case.flags.dedup();
}

fn staged_image(image: &ImageAsset, text: ImageText) -> anyhow::Result<StagedImage> {
    Ok(StagedImage {
        image_id: image.image_id.clone(),
        image_type: image.image_type.clone(),
        image_finding: text.image_finding,
        diagnostic_significance: text.diagnostic_significance,
        caption: text.caption,
        image_type_chinese: None,
        image_finding_chinese: None,
        diagnostic_significance_chinese: None,
        sha256: image.sha256.clone().context("a usable image without a hash")?,
        file: image.file.clone().context("a usable image without a file")?,
        width: image.width.context("a usable image without a width")?,
        height: image.height.context("a usable image without a height")?,
        format: image.format.clone().context("a usable image without a format")?,
        derived_sha256: image.derived_sha256.clone(),
        derived_format: image.derived_format.clone(),
        conversions: image.conversions.clone(),
        licence: image.licence.clone(),
        attribution: image.attribution.clone(),
    })
}

/// Models write `Fig. 2` for `Figure 2`: the letters and digits after the word decide.
fn image_key(id: &str) -> String {
    let lower = id.to_lowercase();
    let rest = ["figure", "fig", "image"].iter().find_map(|word| lower.strip_prefix(word)).unwrap_or(&lower);
    rest.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// A text that is there.
fn known(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Texts of a model with the sentences of the article that support them.
struct Grounded<'a> {
    article: &'a Article,
    sentences: Sentences,
    n_texts: u32,
    n_grounded: u32,
}

impl Grounded<'_> {
    fn text(&mut self, text: Option<String>) -> Option<StagedText> {
        let text = known(text)?;
        let support = self.sentences.support(&text);
        self.n_texts += 1;
        self.n_grounded += u32::from(support.iter().all(Option::is_some));
        let mut places: Vec<Located> = Vec::new();
        for place in support.into_iter().flatten() {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let quotes = staged_text(self.article, &places).map(|staged| staged.quotes).unwrap_or_default();
        Some(StagedText { text, quotes })
    }

    fn presentation(&mut self, reply: ReplyPresentation) -> Presentation {
        Presentation {
            demographic_information: self.text(reply.demographic_information),
            chief_complaint: self.text(reply.chief_complaint),
            history_of_present_illness: self.text(reply.history_of_present_illness),
            lab_result: self.text(reply.lab_result),
            physical_examination: self.text(reply.physical_examination),
        }
    }
}

/// A presentation in another language has no places in the article.
fn plain_presentation(reply: ReplyPresentation) -> Presentation {
    let plain = |text: Option<String>| known(text).map(|text| StagedText { text, quotes: Vec::new() });
    Presentation {
        demographic_information: plain(reply.demographic_information),
        chief_complaint: plain(reply.chief_complaint),
        history_of_present_illness: plain(reply.history_of_present_illness),
        lab_result: plain(reply.lab_result),
        physical_examination: plain(reply.physical_examination),
    }
}

/// A reply, as [`reply_schema`] demands it.
#[derive(Deserialize)]
struct ReplyCase {
    case_presentation: Bilingual<ReplyPresentation>,
    images: Vec<ReplyImage>,
    final_diagnosis: Bilingual<Option<String>>,
    diagnostic_reasoning: Bilingual<Option<String>>,
}

#[derive(Deserialize)]
struct Bilingual<T> {
    english: T,
    chinese: T,
}

#[derive(Deserialize)]
struct ReplyPresentation {
    demographic_information: Option<String>,
    chief_complaint: Option<String>,
    history_of_present_illness: Option<String>,
    lab_result: Option<String>,
    physical_examination: Option<String>,
}

#[derive(Deserialize)]
struct ReplyImage {
    image_id: String,
    english: ReplyFinding,
    chinese: ReplyFinding,
}

#[derive(Deserialize)]
struct ReplyFinding {
    image_type: Option<String>,
    image_finding: Option<String>,
    diagnostic_significance: Option<String>,
}

/// The structure of supplement F; a text that the report does not hold is null.
fn reply_schema() -> Value {
    let text = json!({"type": ["string", "null"]});
    let object = |fields: &[&str], kind: &Value| {
        let properties: serde_json::Map<String, Value> =
            fields.iter().map(|name| ((*name).to_owned(), kind.clone())).collect();
        json!({"type": "object", "properties": properties, "required": fields, "additionalProperties": false})
    };
    let both = |kind: &Value| object(&["english", "chinese"], kind);
    let presentation = object(
        &[
            "demographic_information",
            "chief_complaint",
            "history_of_present_illness",
            "lab_result",
            "physical_examination",
        ],
        &text,
    );
    let finding = object(&["image_type", "image_finding", "diagnostic_significance"], &text);
    let image = json!({
        "type": "object",
        "properties": {"image_id": {"type": "string"}, "english": finding, "chinese": finding},
        "required": ["image_id", "english", "chinese"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {
            "case_presentation": both(&presentation),
            "images": {"type": "array", "items": image},
            "final_diagnosis": both(&text),
            "diagnostic_reasoning": both(&text),
        },
        "required": ["case_presentation", "images", "final_diagnosis", "diagnostic_reasoning"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_may_write_labels_their_way() {
        for (one, other) in [("Figure 2", "Fig. 2"), ("Figure 2 (1)", "figure 2(1)"), ("FIGURE 3.", "Figure 3")] {
            assert_eq!(image_key(one), image_key(other));
        }
        assert_ne!(image_key("Figure 1"), image_key("Figure 11"));
    }
}
