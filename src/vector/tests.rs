//! Accounts of vectors made of small reports, and what holds for every report.

use super::*;
use crate::record::article::ListedDiagnosis;
use crate::record::slots::Span;
use crate::record::vector::{Descriptor, Finding, SymptomPresentation};
use crate::source::jats;
use crate::stage::testing::article_record;
use crate::staging::series::series;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::sync::LazyLock;

macro_rules! pipeline_file {
    ($name:literal) => {
        include_str!(concat!("../../pipelines/", $name))
    };
}

static WORDS: LazyLock<ReportWords> = LazyLock::new(|| {
    let files = crate::slots::extract::ExtractorFiles {
        lexicon: pipeline_file!("lexicon/slots.toml"),
        terms: pipeline_file!("lexicon/terms.csv"),
        context: pipeline_file!("lexicon/context.toml"),
        drugs: pipeline_file!("lexicon/drugs.toml"),
    };
    ReportWords {
        rules: CaseReportRules::parse("", pipeline_file!("rules/case_reports.toml")).unwrap(),
        examinations: Examinations::parse("", pipeline_file!("lexicon/examinations.toml")).unwrap(),
        masking: MaskWords::parse("", pipeline_file!("lexicon/masking.toml")).unwrap(),
        synonyms: Synonyms::parse(pipeline_file!("lexicon/synonyms.toml")).unwrap(),
        extractor: Extractor::parse(files).unwrap(),
        symptoms: SymptomTerms::parse(files.terms),
        clinical: ClinicalWords::parse("", pipeline_file!("lexicon/clinical.toml")).unwrap(),
        demographics: DemographicWords::parse("", pipeline_file!("lexicon/demographics.toml")).unwrap(),
    }
});

fn report(title: &str, body: &str, listed: &[&str]) -> ArticleRecord {
    let mut record = article_record("1", title, body);
    record.listed_diagnoses =
        (1u32..).zip(listed).map(|(rank, label)| ListedDiagnosis { rank, label: (*label).to_owned() }).collect();
    record
}

/// One record for each patient of a series, as `split_series` makes them.
fn patients(record: &ArticleRecord) -> Vec<ArticleRecord> {
    let found = series(&record.article, &roles(&record.article));
    assert!(found.assignable, "{found:?}");
    let child = |patient| ArticleRecord { patient: Some(patient), ..record.clone() };
    found.patients.into_iter().map(child).collect()
}

/// The words at a span.
fn at(vector: &PatientVector, span: &Span) -> String {
    let text = vector.texts.iter().find(|text| text.text_id == span.text_id).expect("the text is there");
    let (start, end) = (span.start as usize, span.end as usize);
    assert!(start < end && end <= text.text.chars().count(), "{span:?}");
    text.text.chars().skip(start).take(end - start).collect()
}

/// Every span is the words that its fact is told by.
fn check_spans(vector: &PatientVector) {
    let finding = |finding: &Finding| {
        assert!(!finding.spans.is_empty());
        for span in &finding.spans {
            assert!(at(vector, span).eq_ignore_ascii_case(&finding.name), "{finding:?}");
        }
    };
    let presentation = &vector.presentation;
    presentation.symptoms.iter().chain(&presentation.chief_complaint).for_each(|one| finding(&one.symptom));
    let facts = &vector.facts;
    facts.antecedents.iter().for_each(finding);
    facts.family_history.iter().flat_map(|member| &member.findings).for_each(finding);
    for narrative in &facts.narrative {
        let mut rest = narrative.text.as_str();
        for span in &narrative.spans {
            let words = at(vector, span);
            let behind =
                ["", " ", ". "].iter().find_map(|border| rest.strip_prefix(border)?.strip_prefix(words.as_str()));
            rest = behind.expect("a stretch of the text");
        }
        assert_eq!(rest, "");
    }
    for medication in &facts.medications {
        assert_eq!(at(vector, &medication.spans[0]), medication.name);
        if let Some(dose) = &medication.dose {
            assert_eq!(&at(vector, &medication.spans[1]), dose);
        }
    }
    for vital in &facts.vitals {
        assert!(vital.spans.iter().any(|span| at(vector, span).contains(&vital.raw)), "{vital:?}");
    }
    for test in &facts.tests {
        assert!(test.spans.iter().any(|span| at(vector, span).contains(&test.name)), "{test:?}");
        for words in [&test.value_text, &test.unit, &test.reference_text].into_iter().flatten() {
            assert!(test.spans.iter().any(|span| at(vector, span).contains(words.as_str())), "{words} of {test:?}");
        }
    }
    let truth = &vector.ground_truth;
    for span in truth.secondary.iter().chain([&truth.primary]).flat_map(|diagnosis| &diagnosis.spans) {
        at(vector, span);
    }
    let demographics = &facts.demographics;
    let said: Vec<String> = demographics.spans.iter().map(|span| at(vector, span)).collect();
    let words = [
        &demographics.race_ethnicity,
        &demographics.nationality,
        &demographics.insurance,
        &demographics.marital_status,
        &demographics.education,
    ];
    for word in words.into_iter().flatten() {
        assert!(said.contains(word), "{word} of {said:?}");
    }
}

/// What a patient may tell.
fn told(vector: &PatientVector) -> Vec<String> {
    let facts = &vector.facts;
    let mut words: Vec<String> = Vec::new();
    words.extend(vector.presentation.symptoms.iter().map(|one| one.symptom.name.clone()));
    words.extend(facts.antecedents.iter().map(|one| one.name.clone()));
    words.extend(facts.family_history.iter().flat_map(|member| &member.findings).map(|one| one.name.clone()));
    words.extend(facts.narrative.iter().map(|one| one.text.clone()));
    words.extend(facts.medications.iter().map(|one| one.name.clone()));
    words.extend(facts.tests.iter().map(|one| format!("{} {}", one.name, one.value_text.clone().unwrap_or_default())));
    words
}

fn account_of(result: Result<PatientVector, Refused>) -> String {
    let vector = match result {
        Ok(vector) => vector,
        Err(refused) => return format!("{}: {}\n", refused.reason, refused.detail),
    };
    check_spans(&vector);
    let mut out = String::new();
    let truth = &vector.ground_truth;
    for (rank, diagnosis) in [&truth.primary].into_iter().chain(&truth.secondary).enumerate() {
        let places: Vec<String> =
            diagnosis.spans.iter().map(|span| format!("{} `{}`", span.text_id, at(&vector, span))).collect();
        writeln!(out, "diagnosis {}: {} ({:?}) in {}", rank + 1, diagnosis.label, diagnosis.basis, places.join(", "))
            .unwrap();
    }
    let demographics = &vector.facts.demographics;
    let who = [
        demographics.age_years.map(|age| format!("{age:.2} years")),
        demographics.age_text.clone(),
        demographics.sex.map(|sex| format!("{sex:?}")),
        demographics.race_ethnicity.clone(),
        demographics.nationality.clone(),
        demographics.insurance.clone(),
        demographics.marital_status.clone(),
        demographics.education.clone(),
    ];
    writeln!(out, "who: {}", who.into_iter().flatten().collect::<Vec<_>>().join(", ")).unwrap();
    let chief: Vec<&str> = vector.presentation.chief_complaint.iter().map(|one| one.symptom.name.as_str()).collect();
    writeln!(out, "complaint: {}", chief.join("; ")).unwrap();
    for one in &vector.presentation.symptoms {
        writeln!(out, "  {}", symptom(one)).unwrap();
    }
    let finding = |one: &Finding| format!("{} {:?}", one.name, one.negation);
    for one in &vector.facts.antecedents {
        writeln!(out, "before: {}", finding(one)).unwrap();
    }
    for member in &vector.facts.family_history {
        let findings: Vec<String> = member.findings.iter().map(finding).collect();
        writeln!(out, "{}: {}", member.member, findings.join("; ")).unwrap();
    }
    for one in &vector.facts.medications {
        writeln!(out, "takes: {} {}", one.name, one.dose.as_deref().unwrap_or("-")).unwrap();
    }
    for one in &vector.facts.vitals {
        let value = one.value.map_or("-".to_owned(), |value| format!("{value} {}", one.unit));
        writeln!(out, "{:?}: {value} ({}) day {:?}", one.kind, one.raw, one.day).unwrap();
    }
    for one in &vector.facts.tests {
        let value = format!("{} {}", one.value_text.as_deref().unwrap_or("-"), one.unit.as_deref().unwrap_or("-"));
        let from: Vec<&str> = one.spans.iter().map(|span| span.text_id.as_str()).collect();
        let reference = one.reference_text.as_deref().unwrap_or("-");
        writeln!(out, "{}: {value} ({reference}) day {:?} in {}", one.name, one.day, from.join(",")).unwrap();
    }
    for one in &vector.facts.narrative {
        writeln!(out, "{:?}: {}", one.kind, one.text).unwrap();
    }
    writeln!(out, "flags: {}", vector.flags.join(", ")).unwrap();
    out
}

fn symptom(one: &SymptomPresentation) -> String {
    let mut parts = vec![format!("{} {:?}", one.symptom.name, one.symptom.negation)];
    let experience = &one.experience;
    let list = |name: &str, words: &[Descriptor]| {
        let words: Vec<&str> = words.iter().map(|word| word.name.as_str()).collect();
        (!words.is_empty()).then(|| format!("{name}: {}", words.join(", ")))
    };
    let time = &experience.temporality;
    let text = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}: {value}"));
    let known = [
        text("onset", &time.onset),
        text("lasts", &time.duration),
        text("often", &time.frequency),
        time.duration_days.map(|days| format!("days: {days}")),
        list("where", &experience.locality),
        list("to", &experience.radiation),
        experience.characterization.severity.map(|points| format!("severity: {points}")),
        list("how", &experience.characterization.descriptors),
        list("worse", &experience.aggravating_factors),
        list("better", &experience.relieving_factors),
    ];
    parts.extend(known.into_iter().flatten());
    parts.join(" | ")
}

fn check(record: &ArticleRecord, expected: Expect) {
    expected.assert_eq(&account_of(patient_vector(record, &WORDS)));
}

const CASE: &str = r#"<sec><title>Background</title><p>Giant cell arteritis is a vasculitis of the elderly.</p></sec><sec><title>Case Report</title>
    <p>A married 72-year-old Japanese woman of Asian descent presented to our hospital with a 3-week history of headache and jaw pain, and blurred vision for 2 days. The headache was throbbing, 8/10 in severity, radiated to the neck, was worse with chewing and was relieved by rest. She denied fever, chills, or weight loss. She had a history of hypertension and took amlodipine 5 mg daily. She had no history of diabetes. Her mother had type 2 diabetes and her father died of colon cancer. She did not smoke. She was uninsured.</p>
    <p>On examination, her temperature was 37.1 °C, blood pressure was 138/82 mmHg, and the scalp was tender (Figure 1). Visual acuity was reduced in the left eye. Laboratory tests showed C-reactive protein of 62 mg/L and haemoglobin of 104 g/L (reference range, 120–160).</p>
    <p>Giant cell arteritis was suspected. Temporal artery biopsy showed giant cells. She was diagnosed with giant cell arteritis. Prednisone was given. On hospital day 5, C-reactive protein was 8 mg/L.</p></sec>
    <fig id="f1"><label>Figure 1</label><caption><p>The scalp.</p></caption></fig>
    <table-wrap id="t1"><label>Table 1</label><caption><p>Laboratory results</p></caption><table>
    <thead><tr><th>Test</th><th>On admission</th><th>Reference</th></tr></thead>
    <tbody><tr><td>Platelets</td><td>512 × 10⁹/L</td><td>150–400</td></tr><tr><td>Creatinine</td><td>71 µmol/L</td><td>45–90</td></tr></tbody></table></table-wrap>"#;

#[test]
fn a_report_of_one_patient() {
    check(
        &report(
            "Headache and jaw pain: a case of giant cell arteritis",
            CASE,
            &["Giant cell arteritis", "Scalp necrosis"],
        ),
        expect![[r#"
            diagnosis 1: Giant cell arteritis (Listed) in title `giant cell arteritis`, p3 `giant cell arteritis`
            diagnosis 2: Scalp necrosis (Listed) in 
            who: 72.00 years, Female, Asian, Japanese, uninsured, married
            complaint: headache; jaw pain; blurred vision
              headache Present | lasts: 3-week history | days: 21 | to: neck | severity: 8 | how: throbbing | worse: chewing | better: rest
              jaw pain Present | lasts: 3-week history | days: 21 | where: jaw
              blurred vision Present | lasts: for 2 days | days: 2
              fever Denied
              chills Denied
              weight loss Denied
            before: hypertension Present
            before: diabetes Denied
            before: smoke Denied
            mother: type 2 diabetes Present
            father: colon cancer Present
            takes: amlodipine 5 mg daily
            Temperature: 37.1 Cel (37.1 °C) day None
            SystolicBloodPressure: 138 mm[Hg] (138/82 mmHg) day None
            DiastolicBloodPressure: 82 mm[Hg] (138/82 mmHg) day None
            C-reactive protein: 62 mg/L (-) day None in p2
            haemoglobin: 104 g/L (120–160) day None in p2
            C-reactive protein: 8 mg/L (-) day Some(4.0) in p3
            Platelets: 512 × 10⁹/L (150–400) day Some(0.0) in t0,t0,t0
            Creatinine: 71 µmol/L (45–90) day Some(0.0) in t0,t0,t0
            HistoryOfPresentIllness: The headache was throbbing, 8/10 in severity, radiated to the neck, was worse with chewing and was relieved by rest. She denied fever, chills, or weight loss. She had a history of hypertension and took amlodipine 5 mg daily. She had no history of diabetes. Her mother had type 2 diabetes and her father died of colon cancer. She did not smoke. She was uninsured.
            PhysicalExamination: On examination, her temperature was 37.1 °C, blood pressure was 138/82 mmHg, and the scalp was tender Visual acuity was reduced in the left eye.
            flags: 
        "#]],
    );
}

#[test]
fn without_a_list_the_article_says_what_is_true() {
    check(
        &report("Headache and jaw pain: a case of giant cell arteritis", CASE, &[]),
        expect![[r#"
            diagnosis 1: giant cell arteritis (Stated) in p3 `giant cell arteritis`, title `giant cell arteritis`, p3 `giant cells`
            who: 72.00 years, Female, Asian, Japanese, uninsured, married
            complaint: headache; jaw pain; blurred vision
              headache Present | lasts: 3-week history | days: 21 | to: neck | severity: 8 | how: throbbing | worse: chewing | better: rest
              jaw pain Present | lasts: 3-week history | days: 21 | where: jaw
              blurred vision Present | lasts: for 2 days | days: 2
              fever Denied
              chills Denied
              weight loss Denied
            before: hypertension Present
            before: diabetes Denied
            before: smoke Denied
            mother: type 2 diabetes Present
            father: colon cancer Present
            takes: amlodipine 5 mg daily
            Temperature: 37.1 Cel (37.1 °C) day None
            SystolicBloodPressure: 138 mm[Hg] (138/82 mmHg) day None
            DiastolicBloodPressure: 82 mm[Hg] (138/82 mmHg) day None
            C-reactive protein: 62 mg/L (-) day None in p2
            haemoglobin: 104 g/L (120–160) day None in p2
            C-reactive protein: 8 mg/L (-) day Some(4.0) in p3
            Platelets: 512 × 10⁹/L (150–400) day Some(0.0) in t0,t0,t0
            Creatinine: 71 µmol/L (45–90) day Some(0.0) in t0,t0,t0
            HistoryOfPresentIllness: The headache was throbbing, 8/10 in severity, radiated to the neck, was worse with chewing and was relieved by rest. She denied fever, chills, or weight loss. She had a history of hypertension and took amlodipine 5 mg daily. She had no history of diabetes. Her mother had type 2 diabetes and her father died of colon cancer. She did not smoke. She was uninsured.
            PhysicalExamination: On examination, her temperature was 37.1 °C, blood pressure was 138/82 mmHg, and the scalp was tender Visual acuity was reduced in the left eye.
            flags: not_in_list
        "#]],
    );
}

const SERIES: &str = r#"<sec><title>CASE REPORT 1:</title>
    <p>A 34-year-old man presented with cough and fever for 5 days (Figure 1A). He had no chest pain. His pulse was 112 beats/min.</p>
    <p>Sputum culture grew Legionella. He was diagnosed with legionellosis and received levofloxacin.</p></sec>
    <sec><title>CASE REPORT 2:</title>
    <p>A 58-year-old woman came because of shortness of breath and swelling of the left leg for 1 day. She had a history of asthma. D-dimer was raised (Table 1, Figure 1B). Legionellosis was ruled out.</p>
    <p>CT confirmed pulmonary embolism. Heparin was given.</p></sec>
    <sec><title>Discussion</title><p>Both are common (Figure 2).</p></sec>
    <fig id="f1"><label>Figure 1</label><caption><p>Chest films.</p></caption></fig><fig id="f2"><label>Figure 2</label><caption><p>A diagram.</p></caption></fig>
    <table-wrap id="t1"><label>Table 1</label><caption><p>Laboratory results</p></caption><table>
    <thead><tr><th>Test</th><th>Result</th></tr></thead><tbody><tr><td>Creatinine</td><td>71 µmol/L</td></tr></tbody></table></table-wrap>"#;

fn check_series(title: &str, body: &str, listed: &[&str], expected: Expect) {
    let record = report(title, body, listed);
    let mut out = String::new();
    for one in patients(&record) {
        let patient = one.patient.as_ref().unwrap();
        writeln!(
            out,
            "{} {}: p{:?} f{:?} t{:?} general f{:?} t{:?}",
            patient.number,
            patient.label.as_deref().unwrap_or_default(),
            patient.paragraphs,
            patient.figures,
            patient.tables,
            patient.general_figures,
            patient.general_tables
        )
        .unwrap();
        let account = account_of(patient_vector(&one, &WORDS));
        let wanted = ["diagnosis", "complaint", "who", "Creatinine", "flags", "no_"];
        for line in account.lines().filter(|line| wanted.iter().any(|start| line.starts_with(start))) {
            writeln!(out, "  {line}").unwrap();
        }
    }
    expected.assert_eq(&out);
}

#[test]
fn diagnoses_of_a_series_belong_to_the_patients_whose_texts_name_them() {
    check_series(
        "Two cases of dyspnoea",
        SERIES,
        &["Pulmonary embolism", "Legionellosis"],
        expect![[r#"
        1 CASE REPORT 1:: p[0, 1] f[0] t[] general f[1] t[]
          diagnosis 1: Legionellosis (Listed) in p1 `legionellosis`
          who: 34.00 years, Male
          complaint: cough; fever
          flags: 
        2 CASE REPORT 2:: p[2, 3] f[0] t[0] general f[1] t[]
          diagnosis 1: Pulmonary embolism (Listed) in p3 `pulmonary embolism`
          who: 58.00 years, Female
          complaint: shortness of breath
          Creatinine: 71 µmol/L (-) day None in t0,t0
          flags: 
    "#]],
    );
}

#[test]
fn a_diagnosis_that_is_nobodys_is_not_guessed() {
    check_series(
        "Two cases of dyspnoea",
        SERIES,
        &["Pulmonary embolism"],
        expect![[r#"
        1 CASE REPORT 1:: p[0, 1] f[0] t[] general f[1] t[]
          diagnosis_not_assigned: patient 1; listed: Pulmonary embolism; nothing in text, headings and captions of patient 1; Pulmonary embolism by text of patient 2
        2 CASE REPORT 2:: p[2, 3] f[0] t[0] general f[1] t[]
          diagnosis 1: Pulmonary embolism (Listed) in p3 `pulmonary embolism`
          who: 58.00 years, Female
          complaint: shortness of breath
          Creatinine: 71 µmol/L (-) day None in t0,t0
          flags: 
    "#]],
    );
    check_series(
        "Two cases of sarcoidosis",
        SERIES,
        &["Sarcoidosis"],
        expect![[r#"
        1 CASE REPORT 1:: p[0, 1] f[0] t[] general f[1] t[]
          diagnosis 1: Sarcoidosis (Listed) in title `sarcoidosis`
          who: 34.00 years, Male
          complaint: cough; fever
          flags: 
        2 CASE REPORT 2:: p[2, 3] f[0] t[0] general f[1] t[]
          diagnosis 1: Sarcoidosis (Listed) in title `sarcoidosis`
          who: 58.00 years, Female
          complaint: shortness of breath
          Creatinine: 71 µmol/L (-) day None in t0,t0
          flags: 
    "#]],
    );
    check_series(
        "Two cases of dyspnoea",
        SERIES,
        &["Sarcoidosis"],
        expect![[r#"
        1 CASE REPORT 1:: p[0, 1] f[0] t[] general f[1] t[]
          diagnosis_not_assigned: patient 1; listed: Sarcoidosis; nothing in text, headings and captions of patient 1; nothing in text, headings and captions of patient 2; the title does not name it
        2 CASE REPORT 2:: p[2, 3] f[0] t[0] general f[1] t[]
          diagnosis_not_assigned: patient 2; listed: Sarcoidosis; nothing in text, headings and captions of patient 1; nothing in text, headings and captions of patient 2; the title does not name it
    "#]],
    );
    check_series(
        "Two cases of dyspnoea",
        SERIES,
        &[],
        expect![[r#"
        1 CASE REPORT 1:: p[0, 1] f[0] t[] general f[1] t[]
          diagnosis_unclear: one place alone: "legionellosis"
        2 CASE REPORT 2:: p[2, 3] f[0] t[0] general f[1] t[]
          diagnosis_unclear: only weak statements
    "#]],
    );
}

#[test]
fn what_nobody_speaks_of_is_not_denied() {
    let body = "<sec><title>Case</title><p>A 25-year-old man was admitted with abdominal pain and vomiting. There was no diarrhea or fever. The pain was worse on walking, was not relieved by ibuprofen and eased by rest. He reported nausea without headache. His brother had a cough. He had a history of asthma but denied smoking. He drinks alcohol occasionally.</p></sec>";
    check(
        &report("Pain", body, &["Appendicitis"]),
        expect![[r#"
            diagnosis 1: Appendicitis (Listed) in 
            who: 25.00 years, Male
            complaint: abdominal pain; vomiting
              abdominal pain Present | where: abdominal | worse: walking | better: rest
              vomiting Present
              diarrhea Denied
              fever Denied
              nausea Present
              headache Denied
            before: asthma Present
            before: smoking Denied
            before: drinks alcohol occasionally Present
            brother: cough Present
            takes: ibuprofen -
            HistoryOfPresentIllness: There was no diarrhea or fever. The pain was worse on walking, was not relieved by ibuprofen and eased by rest. He reported nausea without headache. His brother had a cough. He had a history of asthma but denied smoking. He drinks alcohol occasionally.
            flags: 
        "#]],
    );
}

#[test]
fn what_runs_in_the_family_is_told_by_member() {
    let body = "<sec><title>Case</title><p>A 40-year-old African American woman presented with palpitations. Her mother and sister had hypothyroidism. Her father died of stroke at the age of 60 years. There was a family history of breast cancer in her aunt. Her brother was healthy. She had no family history of sudden death. She is a widow with private insurance.</p></sec>";
    check(
        &report("Palpitations", body, &["Graves disease"]),
        expect![[r#"
        diagnosis 1: Graves disease (Listed) in 
        who: 40.00 years, Female, African American, private insurance, widow
        complaint: palpitations
          palpitations Present
        mother: hypothyroidism Present
        sister: hypothyroidism Present
        father: stroke Present
        aunt: breast cancer Present
        family: sudden death Denied
        HistoryOfPresentIllness: Her mother and sister had hypothyroidism. Her father died of stroke at the age of 60 years. There was a family history of breast cancer in her aunt. Her brother was healthy. She had no family history of sudden death. She is a widow with private insurance.
        flags: 
    "#]],
    );
}

#[test]
fn what_names_the_diagnosis_is_left_out() {
    let body = "<sec><title>Case</title><p>A 50-year-old man with gout presented with pain in the right knee for 2 days. He had been treated for gout and hypertension. His father had gout. He took allopurinol 100 mg once daily and aspirin. The knee was swollen and red.</p><p>Gout was diagnosed again.</p></sec>";
    check(
        &report("A knee", body, &["Gout"]),
        expect![[r#"
            diagnosis 1: Gout (Listed) in p0 `gout`, p1 `Gout`
            who: 50.00 years, Male
            complaint: pain in the right knee
              pain in the right knee Present | lasts: for 2 days | days: 2 | where: right knee
            takes: allopurinol 100 mg once daily
            takes: aspirin -
            HistoryOfPresentIllness: He took allopurinol 100 mg once daily and aspirin. The knee was swollen and red.
            flags: masked_diagnosis
        "#]],
    );
}

#[test]
fn what_is_said_of_something_else_is_no_fact_of_the_patient() {
    let body = "<sec><title>Case</title><p>A 31-year-old unmarried man, a truck driver, presented with weakness in both legs for 3 days. Weakness was worse in the thighs than in the feet. The pain in the back was stabbing, was worse at night and on standing, was relieved by nitroglycerin 0.4 mg, and was not relieved by rest. Watery diarrhea began 1 day after an oral examination. Vomiting was worse after solid food. He noticed fever up to 39.4°C and itching that kept him awake. At the age of 14 years he had a swollen lip. He kept 3 dogs, one of which had skin sores. He took no diuretics, laxatives, or herbal medicines. He had stopped taking his vitamin tablets. He had undergone inguinal hernia repair. He had no health insurance. He drank no alcohol. His past medical history was unremarkable, and he took no medication.</p></sec>";
    check(
        &report("Weak legs", body, &["Thyrotoxic periodic paralysis"]),
        expect![[r#"
            diagnosis 1: Thyrotoxic periodic paralysis (Listed) in 
            who: 31.00 years, Male, no health insurance, unmarried
            complaint: weakness in both legs
              weakness in both legs Present | lasts: for 3 days | days: 3 | where: both legs
              Watery diarrhea Present | how: Watery
              fever Present
              itching Present
            before: inguinal hernia repair Present
            before: alcohol Denied
            HistoryOfPresentIllness: Weakness was worse in the thighs than in the feet. The pain in the back was stabbing, was worse at night and on standing, was relieved by nitroglycerin 0.4 mg, and was not relieved by rest. Watery diarrhea began 1 day after an oral examination. Vomiting was worse after solid food. He noticed fever up to 39.4°C and itching that kept him awake. At the age of 14 years he had a swollen lip. He kept 3 dogs, one of which had skin sores. He took no diuretics, laxatives, or herbal medicines. He had stopped taking his vitamin tablets. He had undergone inguinal hernia repair. He had no health insurance. He drank no alcohol. His past medical history was unremarkable, and he took no medication.
            flags: 
        "#]],
    );
}

#[test]
fn one_sentence_that_names_the_diagnosis_takes_no_other() {
    let body = "<sec><title>Case</title><p>A 23-year-old woman presented with severe abdominal pain for 14 hours.</p><p>A school physician had suspected hereditary angioedema before. She had undergone appendectomy 18 months ago. She did not smoke. Her mother had asthma. Her brother had a myocardial infarction at the age of 59 years.</p><p>On examination, her temperature was 36.8°C. Her height was 171 cm and her weight 63 kg. The abdomen was tender.</p></sec>";
    check(
        &report("An acute abdomen", body, &["Hereditary angioedema"]),
        expect![[r#"
            diagnosis 1: Hereditary angioedema (Listed) in p1 `hereditary angioedema`
            who: 23.00 years, Female
            complaint: severe abdominal pain
              severe abdominal pain Present | lasts: for 14 hours | days: 0 | where: abdominal | how: severe
            before: appendectomy Present
            before: smoke Denied
            mother: asthma Present
            brother: myocardial infarction Present
            Temperature: 36.8 Cel (36.8°C) day None
            Height: 171 cm (171 cm) day None
            Weight: 63 kg (63 kg) day None
            HistoryOfPresentIllness: She had undergone appendectomy 18 months ago. She did not smoke. Her mother had asthma. Her brother had a myocardial infarction at the age of 59 years. Her height was 171 cm and her weight 63 kg.
            PhysicalExamination: On examination, her temperature was 36.8°C. The abdomen was tender.
            flags: masked_diagnosis
        "#]],
    );
}

#[test]
fn a_title_is_no_other_name_of_the_diagnosis() {
    let body = "<sec><title>Case</title><p>A 38-year-old woman presented with headache and palpitations. A clinic had given her metoclopramide 10 mg for nausea. She drank no alcohol. Her mother had hypertension.</p><p>On examination, her pulse rate was 88 beats/min.</p><p>The patient was diagnosed with pheochromocytoma.</p></sec>";
    check(
        &report("Pheochromocytoma Unmasked by Metoclopramide in a Woman", body, &["Pheochromocytoma"]),
        expect![[r#"
            diagnosis 1: Pheochromocytoma (Listed) in title `Pheochromocytoma`, p2 `pheochromocytoma`
            who: 38.00 years, Female
            complaint: headache; palpitations
              headache Present
              palpitations Present
              nausea Present
            before: alcohol Denied
            mother: hypertension Present
            HeartRate: 88 /min (88 beats/min) day None
            HistoryOfPresentIllness: A clinic had given her metoclopramide 10 mg for nausea. She drank no alcohol. Her mother had hypertension.
            PhysicalExamination: On examination, her pulse rate was 88 beats/min.
            flags: 
        "#]],
    );
}

#[test]
fn heads_of_tables_say_whose_and_when_values_are() {
    let table = "<table-wrap id=\"t1\"><label>Table 1</label><caption><p>Laboratory results.</p></caption><table><thead><tr><th colspan=\"2\">Test</th><th>Value</th><th>Unit</th></tr></thead><tbody><tr><td rowspan=\"2\">Blood</td><td>Hemoglobin</td><td>118</td><td>g/L</td></tr><tr><td>Potassium</td><td>3.9</td><td>mmol/L</td></tr></tbody></table></table-wrap><table-wrap id=\"t2\"><label>Table 2</label><caption><p>Course.</p></caption><table><thead><tr><th></th><th>On admission</th><th>Hospital day 8</th><th>Father</th></tr></thead><tbody><tr><th>Creatinine, µmol/L</th><td>118</td><td>104</td><td>92</td></tr></tbody></table></table-wrap>";
    let body = format!("<sec><title>Case</title><p>A 61-year-old man presented with cough (Table 1).</p>{table}</sec>");
    check(
        &report("A cough", &body, &["Pertussis"]),
        expect![[r#"
        diagnosis 1: Pertussis (Listed) in 
        who: 61.00 years, Male
        complaint: cough
          cough Present
        Hemoglobin: 118 g/L (-) day None in t0,t0,t0
        Potassium: 3.9 mmol/L (-) day None in t0,t0,t0
        Creatinine: 118 µmol/L (-) day Some(0.0) in t1,t1
        Creatinine: 104 µmol/L (-) day Some(7.0) in t1,t1
        flags: 
    "#]],
    );
    let table = "<table-wrap id=\"t1\"><label>Table 1</label><caption><p>Laboratory results.</p></caption><table><thead><tr><th>Test</th><th>Unit</th><th>Case 1</th><th>Case 2</th></tr></thead><tbody><tr><td>Sodium</td><td>mmol/L</td><td>137</td><td>134</td></tr></tbody></table></table-wrap>";
    let body = format!(
        "<sec><title>Case 1</title><p>A 29-year-old woman presented with cough. Sodium was low (Table 1). Pertussis was diagnosed.</p></sec><sec><title>Case 2</title><p>A 41-year-old man presented with fever. Sodium was low (Table 1). Pertussis was diagnosed.</p>{table}</sec>"
    );
    let tests = |record: &ArticleRecord| {
        let vector = patient_vector(record, &WORDS).unwrap();
        check_spans(&vector);
        vector.facts.tests.iter().map(|test| format!("{} {:?}\n", test.name, test.value)).collect::<String>()
    };
    let records = patients(&report("Pertussis: a report of 2 cases", &body, &["Pertussis"]));
    let accounts: Vec<String> = records.iter().map(tests).collect();
    expect![[r#"
        Sodium Some(137.0)
        --
        Sodium Some(134.0)
    "#]]
    .assert_eq(&accounts.join("--\n"));
}

/// Articles of the sample, as the reader gives them.
fn sample() -> Vec<ArticleRecord> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/sample/pmc");
    let mut packages: Vec<std::path::PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    packages.sort();
    let mut records = Vec::new();
    for package in packages.iter().filter(|path| path.is_dir()) {
        let xml = std::fs::read_dir(package).unwrap().map(|entry| entry.unwrap().path());
        for path in xml.filter(|path| path.extension().is_some_and(|ending| ending == "xml")) {
            let Ok(article) = jats::read(&std::fs::read(&path).unwrap(), jats::Limits::default()) else { continue };
            records.push(ArticleRecord { article, ..article_record("1", "", "") });
        }
    }
    assert!(records.len() > 20, "{}", records.len());
    records
}

/// Pages of the sample with what their list says, one record a patient where they are told apart.
fn pages() -> Vec<ArticleRecord> {
    use crate::source::ajcr::{PageLimits, list::read_list, page, selectors::sample_rules};
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/sample/ajcr");
    let rules = sample_rules();
    let mut files: Vec<std::path::PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let has = |path: &std::path::Path, ending: &str| path.extension().is_some_and(|found| found == ending);
    let lists = files.iter().filter(|path| has(path, "csv"));
    let listed: Vec<_> =
        lists.flat_map(|path| read_list("cases.csv", &std::fs::read(path).unwrap()).unwrap()).collect();
    let mut records = Vec::new();
    for path in files.iter().filter(|path| has(path, "html")) {
        let Ok(page) = page::read(&std::fs::read(path).unwrap(), &rules, PageLimits::default()) else { continue };
        let diagnoses = listed.iter().find(|one| one.ajcr_id == page.ajcr_id).map(|one| one.diagnoses.clone());
        let diagnoses = diagnoses.unwrap_or_default();
        let diagnoses: Vec<&str> = diagnoses.iter().map(String::as_str).collect();
        let mut record = report("", "", &diagnoses);
        record.article = page.article;
        record.record_id = crate::record::RecordId::native("ajcr", &page.ajcr_id);
        if series(&record.article, &roles(&record.article)).assignable {
            records.extend(patients(&record));
        } else {
            records.push(record);
        }
    }
    records
}

/// What holds for whatever a report says.
fn check_laws(record: &ArticleRecord) -> bool {
    let Ok(vector) = patient_vector(record, &WORDS) else { return false };
    check_spans(&vector);
    let complaints = &vector.presentation.chief_complaint;
    assert!(!complaints.is_empty());
    assert!(complaints.iter().all(|one| vector.presentation.symptoms.contains(one)));
    assert!(complaints.iter().all(|one| one.symptom.negation == crate::record::vector::Negation::Present));
    let truth = &vector.ground_truth;
    for diagnosis in truth.secondary.iter().chain([&truth.primary]) {
        let gold = crate::text::leakage::Gold::new(&diagnosis.label, "", &WORDS.synonyms);
        for words in told(&vector) {
            assert_eq!(gold.leaks(&words), [], "{words}");
        }
    }
    true
}

#[test]
fn the_sample_has_vectors() {
    let records = sample();
    let n_vectors = records.iter().filter(|record| check_laws(record)).count();
    expect!["26 of 41"].assert_eq(&format!("{n_vectors} of {}", records.len()));
}

#[test]
fn the_pages_of_the_sample_have_vectors() {
    let records = pages();
    assert!(records.iter().filter(|record| check_laws(record)).count() > 0, "{}", records.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn laws_hold_on_changed_articles(
        chosen in 0usize..1000,
        edits in proptest::collection::vec((0usize..1000, 0usize..4000, 0usize..12, "é|α| no |, |\\. |\\(Figure 1\\)|10⁹|She denied |Her mother had |’s |[a-z]{1,6} "), 0..24),
        label in proptest::option::of("[A-Z][a-z]{3,9} (arteritis|fever|of the knee)|Gout|Sarcoidosis"),
    ) {
        static SAMPLE: LazyLock<Vec<ArticleRecord>> = LazyLock::new(|| sample().into_iter().chain(pages()).collect());
        let mut record = SAMPLE[chosen % SAMPLE.len()].clone();
        let n_paragraphs = record.article.paragraphs.len();
        for (paragraph, at, removed, inserted) in edits {
            if n_paragraphs == 0 {
                break;
            }
            let text = &mut record.article.paragraphs[paragraph % n_paragraphs].passage.text;
            let mut characters: Vec<char> = text.chars().collect();
            let at = at % (characters.len() + 1);
            let end = (at + removed).min(characters.len());
            characters.splice(at..end, inserted.chars());
            *text = characters.into_iter().collect();
        }
        record.listed_diagnoses = label.into_iter().map(|label| ListedDiagnosis { rank: 1, label }).collect();
        check_laws(&record);
    }
}
