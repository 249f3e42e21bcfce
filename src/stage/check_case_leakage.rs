//! `check_case_leakage`: the diagnosis, its other names, or what only an image shows, in what is told before the images
//! (ClinMM-Bench, 4.1.4 and supplement F). Captions, titles and file names are shown to no solver; see `release::clinmm`.

use super::leak::OnLeak;
use super::*;
use crate::record::ledger::ReviewRow;
use crate::record::slots::Span;
use crate::record::staged::{Quote, StagedCase, StagedText};
use crate::staging::diagnosis::{FinalDiagnosis, Located};
use crate::staging::examinations::Examinations;
use crate::staging::masking::{Mask, MaskWords, RefusalKind};
use crate::text::leakage::{Gold, Leak, LeakKind, Synonyms};
use crate::text::sentences::sentences;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const STAGE: StageDef = StageDef {
    name: "check_case_leakage",
    summary: "Finds the diagnosis, its other names, and what only images show in the presentation of staged cases",
    shape: Shape::Filter,
    revision: 1,
    inputs: &[Port::records::<StagedCase>("records")],
    outputs: &[Port::records::<StagedCase>("records"), Port::side::<ReviewRow>("review")],
    resources: &[
        ResourceDecl { name: "synonyms", summary: "names of one disease, as TOML" },
        ResourceDecl { name: "examinations", summary: "examinations and kinds of pictures by their words, as TOML" },
        ResourceDecl { name: "masking", summary: "words of findings that only images show, as TOML" },
    ],
    reasons: &["diagnosis_leak", "synonym_leak", "image_finding_leak"],
    settings: SettingsType::of::<CaseLeakageSettings>(),
    build,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct CaseLeakageSettings {
    /// What happens when the presentation names the diagnosis: `drop` or `review`.
    diagnosis: OnLeak,
    /// What happens when it holds another name or an abbreviation of it.
    synonym: OnLeak,
    /// What happens when it tells what only an image shows.
    image_finding: OnLeak,
}

impl Default for CaseLeakageSettings {
    fn default() -> Self {
        Self { diagnosis: OnLeak::Drop, synonym: OnLeak::Drop, image_finding: OnLeak::Drop }
    }
}

impl Settings for CaseLeakageSettings {}

fn build(arguments: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    let resources = arguments.resources;
    Ok(AnyStage::filter(CheckCaseLeakage {
        settings: arguments.settings()?,
        synonyms: leak::synonyms(arguments)?,
        examinations: Examinations::parse(resources.file("examinations"), resources.text("examinations")?)?,
        words: MaskWords::parse(resources.file("masking"), resources.text("masking")?)?,
    }))
}

struct CheckCaseLeakage {
    settings: CaseLeakageSettings,
    synonyms: Synonyms,
    examinations: Examinations,
    words: MaskWords,
}

/// The field that holds the names of examinations.
const EXAMINATIONS: &str = "physical_examination";

/// A place in the presentation that should not be there.
struct Found {
    reason: &'static str,
    detail: String,
}

impl FilterStage for CheckCaseLeakage {
    type In = StagedCase;

    fn judge(&self, case: &StagedCase, sides: &mut SideEmitter, _: &StageContext<'_>) -> anyhow::Result<Verdict> {
        let found = self.find(case);
        for (reason, action) in [
            ("diagnosis_leak", self.settings.diagnosis),
            ("synonym_leak", self.settings.synonym),
            ("image_finding_leak", self.settings.image_finding),
        ] {
            let details: Vec<&str> =
                found.iter().filter(|found| found.reason == reason).map(|found| found.detail.as_str()).collect();
            if details.is_empty() {
                continue;
            }
            if let Some(verdict) = action.act(reason, details.join("; "), &case.record_id, sides) {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Keep)
    }
}

impl CheckCaseLeakage {
    fn find(&self, case: &StagedCase) -> Vec<Found> {
        let mut found = Vec::new();
        let names = Gold::new(&case.final_diagnosis.text, "", &self.synonyms);
        let others: Vec<Gold> = case.synonyms.iter().map(|name| Gold::new(name, "", &self.synonyms)).collect();
        let diagnosis = FinalDiagnosis {
            diagnosis: case.final_diagnosis.text.clone(),
            quote: Located { text_id: String::new(), start: 0, end: 0 },
            support: Vec::new(),
            synonyms: case.synonyms.clone(),
            rule: String::new(),
        };
        let mask = Mask::new(&diagnosis, &self.examinations, &self.words);
        let shown = case.english.fields().into_iter().filter_map(|(name, text)| Some((name, text?)));
        let findings: Vec<&Quote> = case
            .images
            .iter()
            .flat_map(|image| [&image.image_finding, &image.diagnostic_significance])
            .flatten()
            .flat_map(|text| &text.quotes)
            .collect();
        for (name, text) in shown {
            let leaks = names.leaks(&text.text);
            for leak in &leaks {
                let is_name = matches!(leak.kind, LeakKind::Diagnosis | LeakKind::OptionText);
                let reason = if is_name { "diagnosis_leak" } else { "synonym_leak" };
                found.push(Found { reason, detail: describe(name, text, leak) });
            }
            for leak in others.iter().flat_map(|other| other.leaks(&text.text)) {
                if !leaks.iter().any(|known| known.range == leak.range) {
                    found.push(Found { reason: "synonym_leak", detail: describe(name, text, &leak) });
                }
            }
            let names_only = name == EXAMINATIONS;
            let told = text.quotes.iter().find(|quote| findings.iter().any(|other| overlap(&quote.span, &other.span)));
            if let Some(quote) = told.filter(|_| !names_only) {
                let detail = format!("{name}: a sentence that tells what an image shows, in {}", quote.span.text_id);
                found.push(Found { reason: "image_finding_leak", detail });
                continue;
            }
            for sentence in sentences(&text.text).into_iter().filter_map(|range| text.text.get(range)) {
                let of_image = |sentence: &str| {
                    // A reference to a figure alone tells nothing.
                    let refusal = mask.refusal(sentence);
                    refusal.filter(|refusal| refusal.kind.is_finding() && refusal.kind != RefusalKind::FigureReference)
                };
                let Some(refusal) = of_image(sentence) else { continue };
                // The names of examinations without a verb are what belongs there.
                if names_only && of_image(&format!("{} was performed.", sentence.trim_end_matches('.'))).is_none() {
                    continue;
                }
                let detail = format!("{name}: {} by `{}`", refusal.kind.name(), refusal.evidence);
                found.push(Found { reason: "image_finding_leak", detail });
            }
        }
        found
    }
}

fn overlap(one: &Span, other: &Span) -> bool {
    one.text_id == other.text_id && one.start < other.end && other.start < one.end
}

fn describe(name: &str, text: &StagedText, leak: &Leak) -> String {
    const AROUND: u32 = 40;
    let (start, end) = (leak.range.start.saturating_sub(AROUND), leak.range.end.saturating_add(AROUND));
    let words: String = text.text.chars().skip(start as usize).take((end - start) as usize).collect();
    format!("{name}: `{}`: … {} …", leak.term, words.trim())
}
