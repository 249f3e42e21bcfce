//! `clinmm`: staged cases to cases, the dialogue that a model is led through, and what must hold between the rows of one.
//!
//! `views/dialogue.jsonl` has one line a case: `turns` are what a model is told, one after the other (the presentation, each
//! image, the question for the diagnosis; ClinMM-Bench, 4.1 and figure 1), and everything outside `gold` may be shown. Images
//! are named by their hash: a file name or figure label of the article can name the diagnosis.

use super::case::{CaseContext, CaseMedia, CaseRows, CaseTable, CaseType, ConvertedCase, MEDIA, finish, text_rows};
use super::media::cited;
use crate::record::model::{field, makers};
use crate::record::release::{CitationRow, MediaRow, TextRow};
use crate::record::staged::{ClinmmCase, Presentation, StagedCase, StagedImage, StagedText, separator};
use crate::record::{Record, RowType, from_batch};
use crate::text::normalize::for_matching;
use anyhow::Context;
use arrow::array::RecordBatch;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub const CASE_TYPE: CaseType = CaseType {
    record: "staged_case",
    case: RowType::of::<ClinmmCase>(),
    tables: &[CaseTable::of::<TextRow>(TEXTS)],
    views: &["views/dialogue.jsonl"],
    convert: convert_all,
    lines,
    faults,
    media: Some(media),
    citation: Some(citation),
};

const TEXTS: &str = "texts";

/// Flag of a case whose presentation names the diagnosis, where the pipeline keeps such cases.
pub const NAMES_DIAGNOSIS: &str = "names_diagnosis";

fn convert_all(batch: &RecordBatch, context: &CaseContext<'_>) -> anyhow::Result<Vec<ConvertedCase>> {
    from_batch::<StagedCase>(batch)?.into_iter().map(|record| convert(record, context)).collect()
}

fn convert(record: StagedCase, context: &CaseContext<'_>) -> anyhow::Result<ConvertedCase> {
    let case_id = record.record_id.case_id(context.pipeline);
    let (flags, review_state) = context.review_of(record.record_id(), &record.flags);
    let n_turns = u32::try_from(record.images.len())? + 2;
    let case = ClinmmCase {
        case_id: case_id.clone(),
        parent_id: None,
        source: record.provenance.source.clone(),
        licence: record.provenance.rights.licence.clone(),
        access: record.provenance.rights.access,
        specialty: record.specialty,
        citation: record.citation,
        english: record.english,
        chinese: record.chinese,
        images: record.images,
        final_diagnosis: record.final_diagnosis,
        final_diagnosis_chinese: record.final_diagnosis_chinese,
        synonyms: record.synonyms,
        diagnostic_reasoning: record.diagnostic_reasoning,
        diagnostic_reasoning_chinese: record.diagnostic_reasoning_chinese,
        n_turns,
        fidelity: record.fidelity,
        made_by: record.made_by,
        replies: record.replies,
        subsets: Vec::new(),
        flags,
        review_state,
        case_hash: String::new(),
    };
    let texts = text_rows(&case_id, record.texts);
    let mut rows = CaseRows { case: serde_json::to_value(case)?, tables: BTreeMap::new() };
    rows.put(TEXTS, &texts)?;
    finish(&CASE_TYPE, record.record_id, record.provenance, rows)
}

fn parse(case: &Value) -> anyhow::Result<ClinmmCase> {
    use serde::Deserialize;
    ClinmmCase::deserialize(case).context("a case of clinmm")
}

fn extension(image: &StagedImage) -> String {
    let format = image.derived_format.as_deref().unwrap_or(&image.format);
    match format {
        "jpeg" => "jpg",
        "tiff" => "tif",
        other => other,
    }
    .to_owned()
}

fn media(case: &Value) -> anyhow::Result<Vec<CaseMedia>> {
    let case = parse(case)?;
    let pmcid = case.citation.ids.pmcid.as_deref().unwrap_or_default();
    let version = case.citation.version.map(|version| format!(".{version}")).unwrap_or_default();
    let one = |image: &StagedImage| CaseMedia {
        image_id: image.image_id.clone(),
        sha256: image.sha256.clone(),
        shown: image.derived_sha256.clone().unwrap_or_else(|| image.sha256.clone()),
        extension: extension(image),
        width: image.width,
        height: image.height,
        licence: image.licence.clone(),
        access: case.access,
        attribution: image.attribution.clone(),
        place: format!("{pmcid}{version}/{}", image.file),
    };
    Ok(case.images.iter().map(one).collect())
}

fn citation(case: &Value) -> anyhow::Result<Option<CitationRow>> {
    let case = parse(case)?;
    let changes = "text selected and rearranged as a diagnostic dialogue; images named by hash";
    Ok(Some(cited(case.case_id, case.citation, case.licence, changes)))
}

fn text(staged: Option<&StagedText>) -> Value {
    staged.map_or(Value::Null, |staged| json!(staged.text))
}

fn shown(presentation: &Presentation) -> Value {
    presentation.fields().into_iter().map(|(name, staged)| (name.to_owned(), text(staged))).collect()
}

fn lines(rows: &CaseRows) -> anyhow::Result<Vec<String>> {
    let case = parse(&rows.case)?;
    let media: Vec<MediaRow> = rows.table(MEDIA)?;
    anyhow::ensure!(media.len() == case.images.len(), "{}: media.parquet has other images than the case", case.case_id);
    let mut turns = vec![json!({
        "turn": 1,
        "kind": "presentation",
        "english": shown(&case.english),
        "chinese": case.chinese.as_ref().map(shown),
    })];
    for (turn, image) in (2..).zip(&media) {
        turns.push(json!({
            "turn": turn,
            "kind": "image",
            "path": image.path,
            "sha256": image.shown_sha256,
            "width": image.width,
            "height": image.height,
        }));
    }
    turns.push(json!({ "turn": case.n_turns, "kind": "diagnosis" }));
    let images = case.images.iter().map(|image| {
        json!({
            "image_id": image.image_id,
            "image_type": image.image_type,
            "image_finding": text(image.image_finding.as_ref()),
            "diagnostic_significance": text(image.diagnostic_significance.as_ref()),
            "chinese": {
                "image_type": image.image_type_chinese,
                "image_finding": image.image_finding_chinese,
                "diagnostic_significance": image.diagnostic_significance_chinese,
            },
        })
    });
    let gold = json!({
        "final_diagnosis": case.final_diagnosis.text,
        "final_diagnosis_chinese": case.final_diagnosis_chinese,
        "synonyms": case.synonyms,
        "diagnostic_reasoning": text(case.diagnostic_reasoning.as_ref()),
        "diagnostic_reasoning_chinese": case.diagnostic_reasoning_chinese,
        "images": images.collect::<Vec<_>>(),
    });
    let line = json!({ "case_id": case.case_id, "specialty": case.specialty, "turns": turns, "gold": gold });
    Ok(vec![serde_json::to_string(&line)?])
}

/// All texts of a case that have quotes, with their names.
fn staged_texts(case: &ClinmmCase) -> Vec<(String, &StagedText)> {
    let presentation = case.english.fields();
    let mut all: Vec<(String, &StagedText)> =
        presentation.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect();
    all.push(("final_diagnosis".to_owned(), &case.final_diagnosis));
    all.extend(case.diagnostic_reasoning.iter().map(|text| ("diagnostic_reasoning".to_owned(), text)));
    for image in &case.images {
        for (name, text) in [
            ("image_finding", &image.image_finding),
            ("diagnostic_significance", &image.diagnostic_significance),
            ("caption", &image.caption),
        ] {
            all.extend(text.iter().map(|text| (format!("{name} of {}", image.image_id), text)));
        }
    }
    all
}

/// Quotes are what the texts say at their places, and the presentation does not name the diagnosis.
fn faults(id: &str, rows: &CaseRows) -> anyhow::Result<Vec<String>> {
    let case = parse(&rows.case)?;
    let texts: Vec<TextRow> = rows.table(TEXTS)?;
    let texts: BTreeMap<&str, &str> = texts.iter().map(|row| (row.text_id.as_str(), row.text.as_str())).collect();
    let is_by_rules = makers(&case.made_by, field::CONVERSION).eq(["rules"]);
    let mut faults = Vec::new();
    for (name, staged) in staged_texts(&case) {
        let mut quoted = Vec::new();
        for quote in &staged.quotes {
            let span = &quote.span;
            let copied: Option<String> = texts.get(span.text_id.as_str()).and_then(|text| {
                let n = text.chars().count();
                (span.start < span.end && span.end as usize <= n)
                    .then(|| text.chars().skip(span.start as usize).take((span.end - span.start) as usize).collect())
            });
            match copied {
                Some(copied) => quoted.push(copied),
                None => faults.push(format!(
                    "cases: {id} {name}: a quote at {}..{} of text `{}`, which is not in texts.parquet",
                    span.start, span.end, span.text_id
                )),
            }
        }
        if is_by_rules && quoted.join(separator(&name)) != staged.text {
            faults.push(format!("cases: {id} {name}: the text is not that of its quotes"));
        }
    }
    if !case.flags.iter().any(|flag| flag == NAMES_DIAGNOSIS) {
        let diagnosis = for_matching(&case.final_diagnosis.text);
        for (name, staged) in case.english.fields() {
            let is_named = staged.is_some_and(|staged| for_matching(&staged.text).contains(&diagnosis));
            if is_named && !diagnosis.is_empty() {
                faults.push(format!("cases: {id} {name}: it names the diagnosis"));
            }
        }
    }
    Ok(faults)
}
