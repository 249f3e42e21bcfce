//! The sample of case reports with models (ClinMM-Bench, 4.1.3 to 4.1.5): two validators, a converter and a judge on a loopback
//! server, through the command line.
//!
//! The converter says what the rules make of a report, with a Chinese text for every English one, so that what becomes of a
//! case is known; one report it converts in words of its own, and some it gets wrong. The others know every control question.

use crate::fake_model::{FakeModel, Play, Request};
use crate::scripted::{self, Asked, reply};
use crate::support::{Scratch, copy_dir, repository};
use casemill::record::release::{ReleaseLedgerRow, ReleaseReviewRow, TextRow};
use casemill::record::slots::Span;
use casemill::record::staged::{ClinmmCase, Presentation, StagedText};
use casemill::record::{Row, from_batch};
use casemill::store::parquet;
use casemill::text::sentences::sentences;
use expect_test::expect;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;

const VALIDATOR: &str = "casemill-scripted/validator";
const SECOND_VALIDATOR: &str = "casemill-scripted/second-validator";
const CONVERTER: &str = "casemill-scripted/converter";
const JUDGE: &str = "casemill-scripted/conversion-judge";
const MODELS: [&str; 4] = ["--llm", "live", "--models", "models.toml"];

/// Converted in words that are not the report's.
const REWORDED: &str = "PMC99000001";
/// The validators differ about it.
const DISPUTED: &str = "PMC99000003";
/// Its case gets a low score.
const MISJUDGED: &str = "PMC99000005";
/// The presentation of its case holds a sentence that names the diagnosis.
const NAMED: &str = "PMC99000007";
/// The presentation of its case holds a caption.
const SHOWN: &str = "PMC99000012";

/// The shipped pipeline with the sample of case reports and these models, which get one try for every request.
fn project(script: impl Fn(&Request, &Asked) -> Play + Send + Sync + 'static) -> (Scratch, FakeModel) {
    let server = scripted::start_with(move |request, asked| Some(script(request, asked)));
    let mut scratch = without_models();
    scratch.set_env(scripted::URL_VARIABLE, &server.base_url());
    let mut models = String::new();
    for (name, model) in [
        ("validator", VALIDATOR),
        ("second_validator", SECOND_VALIDATOR),
        ("converter", CONVERTER),
        ("fidelity_judge", JUDGE),
    ] {
        models += &format!(
            "[models.{name}]\nprovider = \"openai\"\nbase_url_env = \"{}\"\nmodel = \"{model}\"\nmax_tokens = 8192\n\
             price = {{ input = 0.0, output = 0.0 }}\negress = \"local\"\ntries = 1\n\n",
            scripted::URL_VARIABLE
        );
    }
    scratch.write("models.toml", models);
    (scratch, server)
}

fn without_models() -> Scratch {
    let scratch = Scratch::shipped_without_raw();
    copy_dir(&repository().join("data/sample/pmc"), &scratch.path("raw/pmc"));
    scratch
}

/// What is in a release of a build with these arguments, once it is verified.
struct Release {
    /// By PMC id.
    cases: BTreeMap<String, ClinmmCase>,
    texts: Vec<TextRow>,
    ledger: Vec<ReleaseLedgerRow>,
    review: Vec<ReleaseReviewRow>,
}

impl Release {
    fn of(scratch: &Scratch, arguments: &[&str]) -> Self {
        scratch.run_expecting(0, &[&["freeze", "clinmm", "--version", "1", "--allow-quarantine"], arguments].concat());
        let folder = "data/release/clinmm-1";
        scratch.run_expecting(0, &["verify", folder]);
        let cases: Vec<ClinmmCase> = rows(scratch, &format!("{folder}/cases/part-00000.parquet"));
        let id = |case: &ClinmmCase| case.citation.ids.pmcid.clone().expect("an id");
        Self {
            cases: cases.into_iter().map(|case| (id(&case), case)).collect(),
            texts: rows(scratch, &format!("{folder}/texts.parquet")),
            ledger: rows(scratch, &format!("{folder}/ledger.parquet")),
            review: rows(scratch, &format!("{folder}/review.parquet")),
        }
    }

    /// What became of an article that is no case, and what of it is on the list for review.
    fn end_of(&self, id: &str) -> String {
        let row =
            self.ledger.iter().find(|row| row.file.contains(id)).unwrap_or_else(|| panic!("{id} is not in the ledger"));
        let (exit, detail) = (row.exit.as_str(), row.detail.as_deref().unwrap_or("no detail"));
        let mut told = format!("{id} {exit} by {}: {}: {detail}\n", row.node, row.reason);
        for row in self.review.iter().filter(|review| review.case_id == row.case_id) {
            told += &format!("    for review, by {}: {}: {}\n", row.node, row.reason, row.detail);
        }
        told
    }
}

fn rows<R: Row>(scratch: &Scratch, path: &str) -> Vec<R> {
    from_batch(&parquet::read(&scratch.path(path)).expect(path)).expect(path)
}

/// What the rules make of the sample, by PMC id.
fn by_rules() -> &'static BTreeMap<String, ClinmmCase> {
    static CASES: OnceLock<BTreeMap<String, ClinmmCase>> = OnceLock::new();
    CASES.get_or_init(|| {
        let scratch = without_models();
        // Broken files are in quarantine.
        scratch.run_expecting(4, &["build", "clinmm", "--quiet"]);
        Release::of(&scratch, &[]).cases
    })
}

/// The log of a build of the sample with models, and its release.
fn by_models() -> &'static (String, Release) {
    static MADE: OnceLock<(String, Release)> = OnceLock::new();
    MADE.get_or_init(|| {
        let (scratch, _server) = project(script);
        let log = scratch.run_expecting(4, &[&["build", "clinmm"], &MODELS[..]].concat()).stderr;
        let release = Release::of(&scratch, &MODELS);
        (log, release)
    })
}

/// The case of the rules that a report tells of: its first line is the title.
fn of_report(report: &str) -> Option<(&'static str, &'static ClinmmCase)> {
    let title = report.lines().next();
    let found = by_rules().iter().find(|(_, case)| title.is_some() && case.citation.title.as_deref() == title);
    found.map(|(id, case)| (id.as_str(), case))
}

#[derive(Deserialize)]
struct Controls {
    control: Vec<ControlText>,
}

#[derive(Deserialize)]
struct ControlText {
    report: String,
    #[serde(default)]
    case: String,
    expect: Vec<String>,
}

/// The right answer to a control question; none for everything else.
fn of_control(asked: &Asked) -> Option<&'static str> {
    static CONTROLS: OnceLock<Vec<ControlText>> = OnceLock::new();
    let controls = CONTROLS.get_or_init(|| {
        let read = |name: &str| -> Vec<ControlText> {
            let text = std::fs::read_to_string(repository().join("pipelines/controls").join(name)).expect(name);
            toml::from_str::<Controls>(&text).expect(name).control
        };
        ["validate_case_report.toml", "score_conversion.toml"].into_iter().flat_map(read).collect()
    });
    let case = || serde_json::from_str::<Value>(asked.text("case")).ok();
    let known = controls.iter().find(|known| {
        let is_same_case = known.case.is_empty() || serde_json::from_str::<Value>(&known.case).ok() == case();
        known.report == asked.text("report") && is_same_case
    });
    known.map(|known| known.expect[0].as_str())
}

/// What each model says.
fn script(request: &Request, asked: &Asked) -> Play {
    let id = of_report(asked.text("report")).map(|(id, _)| id);
    match asked.model.as_str() {
        VALIDATOR | SECOND_VALIDATOR => {
            let is_against = asked.model == SECOND_VALIDATOR && id == Some(DISPUTED);
            let verdict = of_control(asked).unwrap_or(if is_against { "NO" } else { "YES" });
            reply(request, json!({"reason": "So it seems.", "verdict": verdict}).to_string())
        }
        CONVERTER => reply(request, conversion(asked).to_string()),
        JUDGE => {
            let score = of_control(asked).unwrap_or(if id == Some(MISJUDGED) { "2" } else { "4" });
            let score: u32 = score.parse().expect("a number");
            reply(request, json!({"reason": "I counted the facts.", "score": score}).to_string())
        }
        other => panic!("nobody is called {other}"),
    }
}

/// The Chinese of a text, as far as this test knows Chinese.
fn in_chinese(english: &Value) -> Value {
    match english {
        Value::String(text) => json!(format!("译：{text}")),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), in_chinese(value))).collect(),
        other => other.clone(),
    }
}

fn both(english: Value) -> Value {
    json!({"chinese": in_chinese(&english), "english": english})
}

fn text(staged: Option<&StagedText>) -> Option<&str> {
    staged.map(|staged| staged.text.as_str())
}

/// The fields with their texts; a list as sentences, since every sentence is looked up in the article by itself.
fn fields(presentation: &Presentation) -> Value {
    let told = |staged: &StagedText| staged.text.replace("; ", ". ");
    presentation.fields().into_iter().map(|(name, staged)| (name.to_owned(), json!(staged.map(told)))).collect()
}

/// What the converter says of a report, one entry for each image that it is asked about.
fn conversion(asked: &Asked) -> Value {
    let report = asked.text("report");
    let images = asked.text("images").lines();
    let Some((id, case)) = of_report(report) else {
        let nothing: Value =
            Presentation::default().fields().into_iter().map(|(name, _)| (name.to_owned(), Value::Null)).collect();
        return json!({"case_presentation": both(nothing), "images": [], "final_diagnosis": both(Value::Null), "diagnostic_reasoning": both(Value::Null)});
    };
    if id == REWORDED {
        return reworded();
    }
    let mut english = fields(&case.english);
    let mut slip = |words: &str| {
        let history = english["history_of_present_illness"].as_str().unwrap_or_default().to_owned();
        english["history_of_present_illness"] = json!(format!("{history} {words}").trim());
    };
    match id {
        NAMED => {
            let diagnosis = case.final_diagnosis.text.to_lowercase();
            let body = report.split_once("\n\n").expect("a title").1;
            let all = sentences(body).into_iter().map(|range| &body[range]);
            let mut naming = all.filter(|sentence| sentence.to_lowercase().contains(&diagnosis));
            slip(naming.next().expect("a sentence that names the diagnosis"));
        }
        SHOWN => slip(text(case.images[0].image_finding.as_ref()).expect("a finding")),
        _ => {}
    }
    let images: Vec<Value> = images
        .map(|image_id| {
            let image = case.images.iter().find(|image| image.image_id == image_id).expect("an image of the case");
            let told = both(json!({
                "image_type": image.image_type,
                "image_finding": text(image.image_finding.as_ref()),
                "diagnostic_significance": text(image.diagnostic_significance.as_ref()),
            }));
            json!({"image_id": image_id, "english": told["english"], "chinese": told["chinese"]})
        })
        .collect();
    json!({
        "case_presentation": both(english),
        "images": images,
        "final_diagnosis": both(json!(case.final_diagnosis.text)),
        "diagnostic_reasoning": both(json!(text(case.diagnostic_reasoning.as_ref()))),
    })
}

/// [`REWORDED`] as a model would write it: shorter, with labels of its own, and with an image that is not there.
fn reworded() -> Value {
    let image =
        |id: &str, english: Value, chinese: Value| json!({"image_id": id, "english": english, "chinese": chinese});
    json!({
        "case_presentation": {
            "english": {
                "demographic_information": "43-year-old man, a bus driver",
                "chief_complaint": "3-day history of constant, stabbing pain in the left lower abdomen",
                "history_of_present_illness": "The pain was worse on coughing and on getting up from a chair. No fever, nausea, \
                    vomiting, diarrhoea or urinary symptoms. Hypertension treated with perindopril 4 mg daily. Tenderness was well \
                    localised in the left lower quadrant, without guarding or rebound. He keeps 11 parrots.",
                "lab_result": "White cell count 8.9 × 10⁹/L, C-reactive protein 14 mg/L",
                "physical_examination": null,
            },
            "chinese": {
                "demographic_information": "43岁男性，公交车司机",
                "chief_complaint": "左下腹持续性刺痛3天",
                "history_of_present_illness": "咳嗽及从椅子上起身时疼痛加重。无发热、恶心、呕吐、腹泻及泌尿系症状。高血压，服用培哚普利4 mg每日一次。",
                "lab_result": "白细胞计数8.9 × 10⁹/L，C反应蛋白14 mg/L",
                "physical_examination": null,
            },
        },
        "images": [
            image(
                "Fig. 2",
                json!({
                    "image_type": "CT of the abdomen",
                    "image_finding": "Ovoid lesion of fat density beside the sigmoid colon, with a hyperattenuating rim and a central dot",
                    "diagnostic_significance": "Neither diverticula nor thickening of the colonic wall: acute diverticulitis was excluded by CT",
                }),
                json!({"image_type": "腹部CT", "image_finding": "乙状结肠旁卵圆形脂肪密度病灶", "diagnostic_significance": "排除急性憩室炎"}),
            ),
            image(
                "figure 1",
                json!({"image_type": "Ultrasound", "image_finding": "Oval, non-compressible hyperechoic mass", "diagnostic_significance": null}),
                json!({"image_type": "超声", "image_finding": "卵圆形、不可压缩的高回声肿块", "diagnostic_significance": null}),
            ),
            image(
                "Figure 9",
                json!({"image_type": "Photograph", "image_finding": "A parrot", "diagnostic_significance": null}),
                json!({"image_type": "照片", "image_finding": "鹦鹉", "diagnostic_significance": null}),
            ),
        ],
        "final_diagnosis": {"english": "Primary epiploic appendagitis", "chinese": "原发性肠脂垂炎"},
        "diagnostic_reasoning": {
            "english": "Acute diverticulitis was considered unlikely because he had no fever or leucocytosis. The oval fatty lesion \
                with a rim on CT confirmed the diagnosis.",
            "chinese": "患者无发热及白细胞增多，急性憩室炎可能性小。CT所见带边缘的卵圆形脂肪病灶证实了诊断。",
        },
    })
}

/// A text of a case beside the sentences of the article that it rests on.
fn account(name: &str, staged: Option<&StagedText>, texts: &BTreeMap<&str, &str>) -> String {
    let Some(staged) = staged else { return format!("{name}: none\n") };
    let mut told = format!("{name}: {}\n", staged.text);
    for quote in &staged.quotes {
        let (start, end) = (quote.span.start as usize, quote.span.end as usize);
        let words: String = texts[quote.span.text_id.as_str()].chars().skip(start).take(end - start).collect();
        told += &format!("    {} {words}\n", quote.span.text_id);
    }
    told
}

/// The lines of a log that say what models said and what became of records.
fn told(log: &str) -> String {
    let is_told = |line: &&str| [", by ", " control questions ", " in, "].iter().any(|words| line.contains(words));
    let lines = log.lines().filter(is_told).map(|line| line.split("; 1 shards").next().unwrap_or_default());
    lines.map(|line| line.split("; for one of them").next().unwrap_or_default().to_owned() + "\n").collect()
}

#[test]
fn case_reports_become_cases_by_models() {
    let (log, release) = by_models();
    expect![[r#"
        ingest_jats: 43 in, 40 kept, 1 dropped (older_version 1), 2 quarantined (not_article 1, not_xml 1)
        filter_media: 40 in, 29 kept, 11 dropped (low_resolution 1, no_figure 4, no_medical_image 3, video 3)
        split_series: 29 in, 27 kept, 2 dropped (case_series 2)
        validate_consensus: model second_validator answered 12 of 12 control questions right
        validate_consensus: model validator answered 12 of 12 control questions right
        validate_consensus: suitable, by openai/casemill-scripted/second-validator: NO 1, YES 19; no answer: egress_refused 1
        validate_consensus: suitable, by openai/casemill-scripted/validator: YES 20; no answer: egress_refused 1
        validate_consensus: 27 in, 19 kept, 7 dropped (adverse_reaction 1, disputed_by_models 1, not_case_report 2, retracted 2, treatment_focused 1), 1 quarantined (egress_refused 1)
        convert_case: 19 in, 16 kept, 3 quarantined (no_presentation 3)
        score_fidelity: model fidelity_judge answered 8 of 8 control questions right
        score_fidelity: fidelity, by openai/casemill-scripted/conversion-judge: 2 1, 4 15
        score_fidelity: 16 in, 15 kept, 1 dropped (low_judgement 1)
        check_leakage: 15 in, 13 kept, 2 dropped (diagnosis_leak 1, image_finding_leak 1)
    "#]].assert_eq(&told(log));
    let left = [DISPUTED, MISJUDGED, NAMED, SHOWN];
    expect![[r#"
        PMC99000003 dropped by validate_consensus: disputed_by_models: openai/casemill-scripted/validator YES: So it seems.; openai/casemill-scripted/second-validator NO: So it seems.
            for review, by validate_consensus: disputed_by_models: openai/casemill-scripted/validator YES: So it seems.; openai/casemill-scripted/second-validator NO: So it seems.
        PMC99000005 dropped by score_fidelity: low_judgement: 2 is below 3, by openai/casemill-scripted/conversion-judge: I counted the facts.
        PMC99000007 dropped by check_leakage: diagnosis_leak: history_of_present_illness: `Lemierre syndrome with septic pulmonary emboli`: … d no meningism. The final diagnosis was Lemierre syndrome with septic pulmonary emboli. …
            for review, by score_fidelity: unsupported_texts: 8 of 9 texts have support in the article
        PMC99000012 dropped by check_leakage: image_finding_leak: history_of_present_illness: a sentence that tells what an image shows, in f0.0
    "#]].assert_eq(&left.map(|id| release.end_of(id)).concat());

    let made: Vec<&String> = release.cases.keys().collect();
    let expected: Vec<&String> = by_rules().keys().filter(|id| !left.contains(&id.as_str())).collect();
    assert_eq!(made, expected);
    for (id, case) in &release.cases {
        let made_by: Vec<String> = case.made_by.iter().map(|maker| format!("{} {}", maker.field, maker.by)).collect();
        let expected = [
            format!("consensus openai/{VALIDATOR}"),
            format!("consensus openai/{SECOND_VALIDATOR}"),
            format!("conversion openai/{CONVERTER}"),
            format!("judgement openai/{JUDGE}"),
        ];
        assert_eq!(made_by, expected, "{id}");
        let asked: Vec<&str> = case.replies.iter().map(|trace| trace.stage.as_str()).collect();
        assert_eq!(asked, ["validate_articles", "validate_articles", "convert_case", "score_conversion"], "{id}");
        let fidelity = case.fidelity.as_ref().expect("a fidelity");
        assert_eq!((fidelity.judge_score, fidelity.judge.as_deref()), (Some(4), Some(&*format!("openai/{JUDGE}"))));
    }
}

/// Put together from pieces of sentences, or from a table: in no sentence of the article.
const COMPOSED: [&str; 3] = ["demographic_information", "lab_result", "physical_examination"];

/// Whether a text that is a copy of these quotes rests on the sentences of the body that hold them.
fn rests_on(made: Option<&StagedText>, copied: Option<&StagedText>) -> bool {
    let spans = |staged: Option<&StagedText>| -> Vec<Span> {
        staged.map(|staged| staged.quotes.iter().map(|quote| quote.span.clone()).collect()).unwrap_or_default()
    };
    let made = spans(made);
    let holds =
        |one: &Span, other: &Span| one.text_id == other.text_id && one.start <= other.start && other.end <= one.end;
    // The abstract says in fewer words what the body says.
    let mut of_body = spans(copied).into_iter().filter(|span| span.text_id.starts_with('p'));
    of_body.all(|copied| made.iter().any(|one| holds(one, &copied)))
}

/// The converter says what the rules make of a report, so a case differs from theirs in its Chinese half alone.
#[test]
fn every_english_text_of_a_converter_has_its_place_in_the_article_and_its_chinese_half() {
    for (id, case) in by_models().1.cases.iter().filter(|(id, _)| id.as_str() != REWORDED) {
        let ruled = &by_rules()[id];
        assert_eq!((fields(&case.english), &case.synonyms), (fields(&ruled.english), &ruled.synonyms), "{id}");
        assert_eq!(json!(case.chinese.as_ref().map(fields)), in_chinese(&fields(&case.english)), "{id}");
        assert_eq!(json!(case.final_diagnosis_chinese), in_chinese(&json!(case.final_diagnosis.text)), "{id}");
        let reasoning = json!(text(case.diagnostic_reasoning.as_ref()));
        assert_eq!(json!(case.diagnostic_reasoning_chinese), in_chinese(&reasoning), "{id}");
        assert_eq!(case.images.len(), ruled.images.len(), "{id}");
        for (image, ruled) in case.images.iter().zip(&ruled.images) {
            assert_eq!((&image.image_id, &image.sha256), (&ruled.image_id, &ruled.sha256), "{id}");
            let finding = json!(text(image.image_finding.as_ref()));
            assert_eq!(finding, json!(text(ruled.image_finding.as_ref())), "{id}");
            assert_eq!(json!(image.image_finding_chinese), in_chinese(&finding), "{id}");
            let significance = json!(text(image.diagnostic_significance.as_ref()));
            assert_eq!(significance, json!(text(ruled.diagnostic_significance.as_ref())), "{id}");
            assert_eq!(json!(image.diagnostic_significance_chinese), in_chinese(&significance), "{id}");
        }
        let presentations = case.english.fields().into_iter().zip(ruled.english.fields());
        for ((name, made), (_, ruled)) in presentations.filter(|((name, _), _)| !COMPOSED.contains(name)) {
            assert!(rests_on(made, ruled), "{id} {name}: {made:?}, a copy of {ruled:?}");
        }
        assert!(rests_on(case.diagnostic_reasoning.as_ref(), ruled.diagnostic_reasoning.as_ref()), "{id}");
        // What a caption says can stand in a paragraph, too.
        let mut findings = case.images.iter().filter_map(|image| image.image_finding.as_ref());
        assert!(findings.all(|finding| !finding.quotes.is_empty()), "{id}");
    }
}

#[test]
fn words_that_are_not_the_articles_point_to_the_sentences_that_support_them() {
    let (_, release) = by_models();
    let case = &release.cases[REWORDED];
    let texts = release.texts.iter().filter(|row| row.case_id == case.case_id);
    let texts: BTreeMap<&str, &str> = texts.map(|row| (row.text_id.as_str(), row.text.as_str())).collect();
    let account = |name: &str, staged: Option<&StagedText>| account(name, staged, &texts);
    let mut told: String = case.english.fields().into_iter().map(|(name, staged)| account(name, staged)).collect();
    for image in &case.images {
        told += &account(&format!("{} finding", image.image_id), image.image_finding.as_ref());
        told += &account(&format!("{} significance", image.image_id), image.diagnostic_significance.as_ref());
    }
    told += &account("diagnosis", Some(&case.final_diagnosis));
    told += &account("reasoning", case.diagnostic_reasoning.as_ref());
    let fidelity = case.fidelity.as_ref().expect("a fidelity");
    told += &format!(
        "{} of {} texts have support; flags: {}\n",
        fidelity.n_grounded,
        fidelity.n_texts,
        case.flags.join(", ")
    );
    let complaint = case.chinese.as_ref().and_then(|chinese| chinese.chief_complaint.as_ref());
    told += &format!(
        "{:?} {:?} {:?}\n",
        text(complaint),
        case.final_diagnosis_chinese,
        case.images[0].image_finding_chinese
    );
    expect![[r#"
        demographic_information: 43-year-old man, a bus driver
            p1 A 43-year-old man, a bus driver, presented to the emergency department with a 3-day history of constant, stabbing pain in the left lower abdomen.
        chief_complaint: 3-day history of constant, stabbing pain in the left lower abdomen
            p1 A 43-year-old man, a bus driver, presented to the emergency department with a 3-day history of constant, stabbing pain in the left lower abdomen.
        history_of_present_illness: The pain was worse on coughing and on getting up from a chair. No fever, nausea, vomiting, diarrhoea or urinary symptoms. Hypertension treated with perindopril 4 mg daily. Tenderness was well localised in the left lower quadrant, without guarding or rebound. He keeps 11 parrots.
            p1 The pain became worse on coughing and on getting up from a chair.
            p1 He had no fever, nausea, vomiting, diarrhoea or urinary symptoms, and his appetite was unchanged.
            p1 His past medical history was limited to hypertension treated with perindopril 4 mg daily.
            p2 The abdomen was soft, with well-localised tenderness in the left lower quadrant; there was no guarding, rebound or palpable mass, and bowel sounds were normal.
        lab_result: White cell count 8.9 × 10⁹/L, C-reactive protein 14 mg/L
            p3 Laboratory tests showed a white cell count of 8.9 × 10⁹/L (reference 4.0–10.0), C-reactive protein 14 mg/L (reference <5), haemoglobin 148 g/L, creatinine 81 µmol/L and lipase 32 U/L.
        physical_examination: none
        Figure 1 finding: Oval, non-compressible hyperechoic mass
            f0.0 Oval, non-compressible hyperechoic mass under the abdominal wall (2.8 cm), without internal flow.
        Figure 1 significance: none
        Figure 2 finding: Ovoid lesion of fat density beside the sigmoid colon, with a hyperattenuating rim and a central dot
            f1.0 Ovoid lesion of fat density beside the sigmoid colon with a hyperattenuating rim and a central dot.
        Figure 2 significance: Neither diverticula nor thickening of the colonic wall: acute diverticulitis was excluded by CT
            p8 It was considered unlikely because he had no fever or leucocytosis, and it was excluded by CT, which showed neither diverticula nor thickening of the colonic wall.
        diagnosis: Primary epiploic appendagitis
            p6 A diagnosis of primary epiploic appendagitis was made.
        reasoning: Acute diverticulitis was considered unlikely because he had no fever or leucocytosis. The oval fatty lesion with a rim on CT confirmed the diagnosis.
            p8 It was considered unlikely because he had no fever or leucocytosis, and it was excluded by CT, which showed neither diverticula nor thickening of the colonic wall.
            p10 The oval fatty lesion with a rim on CT confirmed the diagnosis in our patient.
        8 of 9 texts have support; flags: image_not_of_case, unsupported_texts
        Some("左下腹持续性刺痛3天") Some("原发性肠脂垂炎") Some("卵圆形、不可压缩的高回声肿块")
    "#]].assert_eq(&told);
}

#[test]
fn a_report_that_may_not_be_sent_is_in_quarantine_and_no_model_sees_a_word_of_it() {
    let (scratch, server) = project(script);
    // A second source beside the sample, whose records go nowhere: one article, of the same kind as those of the sample.
    let source = scratch.read("sources/pmc.toml").replace("name = \"pmc\"", "name = \"ward\"");
    scratch.write("sources/ward.toml", source.split("\n# Services").next().expect("a part"));
    let rights = scratch.read("raw/pmc/source.toml").replace("llm_egress = \"any\"", "llm_egress = \"none\"");
    scratch.write("raw/ward/source.toml", rights);
    for name in [&format!("{SHOWN}.1"), &format!("metadata/{SHOWN}.1.json")] {
        std::fs::create_dir_all(scratch.path("raw/ward/metadata")).expect("a folder");
        std::fs::rename(scratch.path(&format!("raw/pmc/{name}")), scratch.path(&format!("raw/ward/{name}")))
            .expect(name);
    }
    scratch.edit(
        "pipelines/clinmm.toml",
        "[sources.pmc]\n",
        "[sources.pmc]\n\n[sources.ward]\n\n[nodes.ingest_ward]\nstage = \"ingest_jats\"\nsource = \"ward\"\n",
    );
    scratch.edit("pipelines/clinmm.toml", "input = \"ingest_jats\"", "input = [\"ingest_jats\", \"ingest_ward\"]");
    scratch.edit("pipelines/clinmm.toml", "max_quarantined = 0.2\n", "max_quarantined = 1.0\n");
    scratch.run_expecting(4, &[&["build", "clinmm", "--quiet"], &MODELS[..]].concat());
    let id = format!("ward:{SHOWN}");
    let explained = scratch.run_expecting(0, &[&["explain", "clinmm", &id], &MODELS[..]].concat()).stdout;
    let explained = explained.split_once("\n\nvalidate_consensus").map_or("", |(_, rest)| rest.trim());
    let explained = explained.split("\n  judgements").next().unwrap_or_default();
    expect![[r#"
        (validate_articles): quarantined, egress_refused
          by: its source may not be sent to any model (`llm_egress` in its source.toml), and model validator is local"#]].assert_eq(explained);
    let said = String::from_utf8(server.bytes_received()).expect("UTF-8");
    assert!(said.contains("epiploic appendagitis") && !said.contains("Susac"));
}

/// Faults of the converter alone, report by report.
#[test]
fn a_converter_that_fails_loses_no_report() {
    let (scratch, _server) = project(|request, asked| {
        let id = of_report(asked.text("report")).map(|(id, _)| id);
        match id.filter(|_| asked.model == CONVERTER) {
            Some("PMC99000010") => reply(request, asked.example.clone()),
            Some("PMC99000005") => Play::Refusal("I do not write about patients.".to_owned()),
            Some("PMC99000007") => reply(request, "{\"case_presentation\":{}}"),
            Some("PMC99000009") => reply(request, conversion(asked).to_string().replace("\"Figure 2\"", "\"Table 1\"")),
            _ => script(request, asked),
        }
    });
    scratch.edit("pipelines/clinmm.toml", "max_quarantined = 0.2\n", "max_quarantined = 1.0\n");
    scratch.run_expecting(4, &[&["build", "clinmm", "--quiet"], &MODELS[..]].concat());
    let release = Release::of(&scratch, &MODELS);
    let lost = ["PMC99000010", "PMC99000005", "PMC99000007"];
    let mut told = lost.map(|id| release.end_of(id)).concat();
    let case = &release.cases["PMC99000009"];
    told += &format!("PMC99000009: {}\n", case.flags.join(", "));
    for image in &case.images {
        told += &format!("    {}: {:?}\n", image.image_id, text(image.image_finding.as_ref()));
    }
    expect![[r#"
        PMC99000010 quarantined by convert_case: copied_example: by openai/casemill-scripted/converter
        PMC99000005 quarantined by convert_case: reply_refused: the message is a refusal
        PMC99000007 quarantined by convert_case: reply_invalid: schema_mismatch: "images" is a required property; "final_diagnosis" is a required property; "diagnostic_reasoning" is a required property
        PMC99000009: image_not_of_case, image_without_finding, unsupported_texts
            Figure 1: Some("Computed tomography of the abdomen: markedly enlarged homogeneous spleen. Computed tomography of the abdomen showed a homogeneous spleen of 21\u{2009}cm and a slightly enlarged liver; there were no enlarged lymph nodes")
            Figure 2: None
    "#]].assert_eq(&told);
}
