//! Tests of the module.

use super::*;

use expect_test::expect;
use proptest::prelude::*;

const RULES: &str = include_str!("../../../pipelines/rules/specialty.toml");

fn rules() -> &'static SpecialtyRules {
    static RULES_READ: std::sync::OnceLock<SpecialtyRules> = std::sync::OnceLock::new();
    RULES_READ.get_or_init(|| SpecialtyRules::parse(RULES).unwrap())
}

fn fields<'a>(vignette: &'a str, diagnosis: &'a str) -> Fields<'a> {
    Fields { vignette, question: "What is the most likely diagnosis?", diagnosis, ..Fields::default() }
}

const INVENTED: &[(&str, &str, Specialty)] = {
    use Specialty::*;
    &[
        // Internal Medicine.
        ("A 58-year-old farmer coughs up rusty sputum and shivers.", "Lobar pneumonia", InternalMedicine),
        (
            "A 44-year-old clerk sweats, trembles and loses weight; her neck is thick.",
            "Graves disease",
            InternalMedicine,
        ),
        (
            "A 63-year-old man has a swollen belly, red palms and yellow eyes.",
            "Cirrhosis of the liver",
            InternalMedicine,
        ),
        (
            "A 29-year-old woman has loose stools and cramps; the terminal ileum is ulcerated.",
            "Crohn’s disease",
            InternalMedicine,
        ),
        ("A 51-year-old man has foamy urine and swollen legs.", "Membranous glomerulonephritis", InternalMedicine),
        ("A 36-year-old aid worker has fever every other day since her return.", "Malaria", InternalMedicine),
        (
            "A 47-year-old woman wakes at night with burning behind the breastbone.",
            "Gastro-oesophageal reflux disease",
            InternalMedicine,
        ),
        ("A 66-year-old man feels his calves cramp after two blocks.", "Peripheral arterial disease", InternalMedicine),
        ("A 40-year-old man is tired; nothing else is found.", "Unnameable malady", InternalMedicine),
        // Pediatrics.
        ("A 9-month-old boy draws up his legs and passes jelly-like stool.", "Intussusception", Pediatrics),
        ("A 3-year-old girl barks like a seal when she coughs.", "Croup", Pediatrics),
        ("A newborn turns blue when feeding.", "Transposition of the great arteries", Pediatrics),
        ("A 7-year-old boy wheezes after football.", "Asthma", Pediatrics),
        ("A 5-year-old girl is pale and bruises; lymphoblasts are seen.", "Acute lymphoblastic leukemia", Pediatrics),
        (
            "An 11-year-old girl has swollen knees and a murmur after a sore throat.",
            "Acute rheumatic fever",
            Pediatrics,
        ),
        ("A 6-week-old boy vomits in a jet after each feed.", "Hypertrophic pyloric stenosis", Pediatrics),
        (
            "A 13-year-old boy is shorter than his classmates and loses sight at the sides.",
            "Craniopharyngioma",
            Pediatrics,
        ),
        // Emergency Medicine.
        (
            "A 24-year-old man is carried into the emergency department after a motorcycle crash, trachea aside.",
            "Tension pneumothorax",
            EmergencyMedicine,
        ),
        (
            "A 31-year-old woman is found on the floor beside an empty pill bottle.",
            "Acetaminophen poisoning",
            EmergencyMedicine,
        ),
        ("A 52-year-old man cannot breathe minutes after a bee sting.", "Anaphylaxis", EmergencyMedicine),
        ("A 70-year-old woman was found in an unheated flat in January.", "Accidental hypothermia", EmergencyMedicine),
        ("A family of four has headaches since the stove was lit.", "Carbon monoxide poisoning", EmergencyMedicine),
        ("A 19-year-old woman collapsed on the marathon course, hot and confused.", "Heat stroke", EmergencyMedicine),
        (
            "A 27-year-old man was stabbed and is brought by paramedics; heart sounds are faint.",
            "Something undefined",
            EmergencyMedicine,
        ),
        // Neurology.
        ("A 72-year-old man cannot lift his right arm or find words since breakfast.", "Ischaemic stroke", Neurology),
        ("A 33-year-old woman lost sight in one eye and later had numb legs.", "Multiple sclerosis", Neurology),
        ("A 68-year-old man walks with small steps and his hand shakes at rest.", "Parkinson's disease", Neurology),
        (
            "A 26-year-old man has weak legs rising to the arms after a bout of diarrhoea.",
            "Guillain–Barré syndrome",
            Neurology,
        ),
        ("A 41-year-old woman has throbbing one-sided headaches with zigzag lines.", "Migraine with aura", Neurology),
        ("A 77-year-old woman gets lost in her street.", "Alzheimer dementia", Neurology),
        // Obstetrics & Gynecology.
        (
            "A 30-year-old woman in her 34th week has a pressure of 170/110 and sees spots.",
            "Severe pre-eclampsia",
            ObstetricsGynecology,
        ),
        (
            "A 22-year-old woman missed a period and has pain low on the left.",
            "Ectopic pregnancy",
            ObstetricsGynecology,
        ),
        ("A 45-year-old woman soaks pads; the womb is large and knobbly.", "Uterine leiomyoma", ObstetricsGynecology),
        (
            "A 16-year-old girl has never menstruated; the vagina ends blindly.",
            "Müllerian agenesis",
            ObstetricsGynecology,
        ),
        ("A 19-year-old woman has a frothy green vaginal discharge.", "Trichomoniasis", ObstetricsGynecology),
        (
            "A 28-year-old primigravida at 30 weeks' gestation has itching palms and painless vaginal bleeding.",
            "Not yet known",
            ObstetricsGynecology,
        ),
        // Psychiatry.
        ("A 21-year-old student hears voices and thinks his food is drugged.", "Schizophreniform disorder", Psychiatry),
        ("A 15-year-old girl diets, runs and counts calories; her weight is low.", "Anorexia nervosa", Psychiatry),
        ("A 38-year-old man has not slept for days and bought three cars.", "Bipolar I disorder", Psychiatry),
        ("A 34-year-old woman checks the stove forty times.", "Obsessive-compulsive disorder", Psychiatry),
        ("A 50-year-old widow has cried daily for four months.", "Major depressive disorder", Psychiatry),
        // Dermatology.
        ("A 37-year-old man has silvery plaques on both elbows.", "Psoriasis vulgaris", Dermatology),
        ("A 61-year-old sailor has a pearly bump beside the nose.", "Basal cell carcinoma", Dermatology),
        ("A 20-year-old woman has purple, flat, itchy bumps on the wrists.", "Lichen planus", Dermatology),
        ("A 55-year-old woman has flaccid blisters and sores in the mouth.", "Pemphigus vulgaris", Dermatology),
        // General Surgery.
        (
            "A 25-year-old man has pain that moved from the navel to the right lower quadrant.",
            "Acute appendicitis",
            GeneralSurgery,
        ),
        ("A 49-year-old woman has colic and fever after fatty meals.", "Acute cholecystitis", GeneralSurgery),
        (
            "A 67-year-old man has a bulge in the groin that no longer goes back.",
            "Incarcerated inguinal hernia",
            GeneralSurgery,
        ),
        ("An 80-year-old woman has a bloated abdomen and no flatus.", "Sigmoid volvulus", GeneralSurgery),
        // Urology.
        ("A 71-year-old man gets up five times a night to pass little urine.", "Benign prostatic hyperplasia", Urology),
        ("A 35-year-old man writhes with pain from flank to groin.", "Ureteral stone", Urology),
        ("A 23-year-old man has a hard lump in one testicle.", "Seminoma", Urology),
        ("A 64-year-old smoker has red urine without pain.", "Urothelial carcinoma of the bladder", Urology),
        // Ophthalmology.
        (
            "A 69-year-old woman has a painful red eye and sees rings around lamps.",
            "Acute angle-closure glaucoma",
            Ophthalmology,
        ),
        ("A 57-year-old man saw flashes, then a curtain.", "Retinal detachment", Ophthalmology),
        ("A 75-year-old man finds headlights dazzling; his lenses are cloudy.", "Senile cataract", Ophthalmology),
        // Otolaryngology.
        ("A 46-year-old woman has spells of spinning with a roaring, dull ear.", "Ménière’s disease", Otolaryngology),
        (
            "A 28-year-old man cannot open his mouth and speaks as with a hot potato.",
            "Peritonsillar abscess",
            Otolaryngology,
        ),
        ("A 53-year-old man has a slow lump before the ear.", "Parotid pleomorphic adenoma", Otolaryngology),
        // Orthopedic Surgery.
        ("An 82-year-old woman fell; her leg is short and turned out.", "Femoral neck fracture", OrthopedicSurgery),
        (
            "A 32-year-old skier felt a pop and the knee gives way.",
            "Anterior cruciate ligament tear",
            OrthopedicSurgery,
        ),
        ("A 43-year-old painter cannot lift the arm above the head.", "Rotator cuff tear", OrthopedicSurgery),
        // Rheumatology.
        ("A 48-year-old woman has stiff, swollen knuckles every morning.", "Rheumatoid arthritis", Rheumatology),
        ("A 59-year-old man wakes with a red-hot big toe.", "Gout", Rheumatology),
        (
            "A 27-year-old woman has a rash on both cheeks, sore joints and protein in the urine.",
            "Systemic lupus erythematosus",
            Rheumatology,
        ),
        // Cardiology.
        (
            "A 60-year-old man has tightness of the chest spreading to the jaw.",
            "Acute myocardial infarction",
            Cardiology,
        ),
        ("A 74-year-old man faints on stairs; a harsh murmur is heard.", "Aortic stenosis", Cardiology),
        ("A 65-year-old woman has an irregularly irregular pulse.", "Atrial fibrillation", Cardiology),
        // Hematology.
        ("A 70-year-old man has back pain, anemia and punched-out bones.", "Multiple myeloma", Hematology),
        ("A 39-year-old woman chews ice and is pale.", "Iron deficiency anaemia", Hematology),
        ("A 22-year-old man has a large neck node and itches after beer.", "Hodgkin lymphoma", Hematology),
    ]
};

#[test]
fn invented_cases_go_where_they_belong() {
    assert!(INVENTED.len() >= 60);
    let mut wrong: Vec<String> = Vec::new();
    for &(vignette, diagnosis, expected) in INVENTED {
        let assignment = rules().assign(&fields(vignette, diagnosis));
        if assignment.specialty != expected {
            wrong.push(format!("{diagnosis}: expected {expected}, got {assignment:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn evidence_names_the_words() {
    let vignette = "A 4-year-old girl is brought to the emergency department after she ingested antifreeze.";
    let assignment = rules().assign(&fields(vignette, "Ethylene glycol poisoning"));
    let mut lines =
        format!("{} {} {:?} {}\n", assignment.specialty, assignment.score, assignment.runner_up, assignment.confident);
    for evidence in &assignment.evidence {
        let text = match evidence.field {
            Field::Diagnosis => "Ethylene glycol poisoning",
            _ => vignette,
        };
        lines += &format!(
            "{} | {} | {:?} | {} | {}\n",
            evidence.specialty,
            evidence.term,
            evidence.field,
            &text[evidence.range.clone()],
            evidence.weight
        );
    }
    expect![[r#"
        Emergency Medicine 120 Some((Pediatrics, 64)) true
        Emergency Medicine | ethylene glycol* | Diagnosis | Ethylene glycol | 50
        Emergency Medicine | poison* | Diagnosis | poisoning | 50
        Emergency Medicine | emergency_department_and_poison | Vignette | ingested | 45
        Emergency Medicine | emergency department | Vignette | emergency department | 5
        Emergency Medicine | ingested | Vignette | ingested | 5
        Emergency Medicine | antifreeze | Vignette | antifreeze | 5
        Pediatrics | age below 12 | Age | 4-year-old | 60
        Pediatrics | girl | Vignette | girl | 4
    "#]]
    .assert_eq(&lines);
}

#[test]
fn nothing_found_is_the_default_and_says_so() {
    let assignment = rules().assign(&fields("A man of 40 is tired.", "Unknown"));
    assert_eq!((assignment.specialty, assignment.confident), (Specialty::InternalMedicine, false));
    let last = assignment.evidence.last().unwrap();
    assert_eq!((last.field, last.range.clone(), last.weight), (Field::Default, 0..0, 0));
    assert_eq!(last.term, "default: no specialty reached 20");
    assert_eq!(rules().assign(&Fields::default()).score, 0);
}

#[test]
fn age_decides_between_child_and_adult() {
    let at = |age_years: Option<f64>| {
        rules()
            .assign(&Fields { age_years, ..fields("The patient has a murmur.", "Ventricular septal defect") })
            .specialty
    };
    assert_eq!(at(Some(2.0)), Specialty::Pediatrics);
    assert_eq!(at(Some(17.9)), Specialty::Pediatrics);
    assert_ne!(at(Some(18.0)), Specialty::Pediatrics);
    // Not known: the diagnosis is one of children.
    for unknown in [None, Some(f64::NAN), Some(f64::INFINITY), Some(-1.0)] {
        assert_eq!(at(unknown), Specialty::Pediatrics);
    }
}

#[test]
fn age_is_read_from_the_vignette() {
    let age = |text: &str| Folded::new(text).age().map(|(years, range)| (years, text[range].to_owned()));
    assert_eq!(age("Seen: a 45‑year‑old man"), Some((45.0, "45‑year‑old".to_owned())));
    assert_eq!(age("A 6-month-old boy"), Some((0.5, "6-month-old".to_owned())));
    assert_eq!(age("60 yr male with pain"), Some((60.0, "60 yr male".to_owned())));
    assert_eq!(age("a 3 year history of pain"), None);
    assert_eq!(age("9999 years old"), None);
    assert_eq!(age("A four-year-old girl"), Some((4.0, "four-year-old".to_owned())));
    assert_eq!(age("A one-day-old of a 30-year-old"), Some((1.0 / 365.0, "one-day-old".to_owned())));
    assert_eq!(age("old"), None);
}

#[test]
fn given_age_and_subject_count() {
    let plain = Fields { vignette: "The belly hurts.", diagnosis: "Unknown", ..Fields::default() };
    let assign = |age_years, subject| rules().assign(&Fields { age_years, subject, ..plain }).specialty;
    assert_eq!(assign(Some(5.0), None), Specialty::Pediatrics);
    assert_eq!(assign(Some(50.0), Some("Gynaecology & Obstetrics")), Specialty::ObstetricsGynecology);
    assert_eq!(assign(Some(50.0), Some("PATHOLOGY")), Specialty::Pathology);
    assert_eq!(assign(Some(50.0), Some("Radiology")), Specialty::DiagnosticRadiology);
    assert_eq!(assign(Some(50.0), Some("Anatomy")), Specialty::InternalMedicine);
}

#[test]
fn question_about_tissue_is_pathology() {
    let assignment = rules().assign(&Fields {
        vignette: "A 50-year-old man died suddenly. The pathologist notes a bulky, waxy organ on cut section.",
        question: "What is the most likely histopathological diagnosis?",
        diagnosis: "Unknown",
        subject: Some("Pathology"),
        age_years: None,
    });
    assert_eq!(assignment.specialty, Specialty::Pathology);
}

#[test]
fn pregnancy_of_the_mother_does_not_count_for_the_newborn() {
    let vignette = "A 3-day-old boy, born at 38 weeks' gestation to a gravida 2 after uncomplicated prenatal care.";
    assert_eq!(rules().assign(&fields(vignette, "Unknown")).specialty, Specialty::Pediatrics);
    let vignette = "A woman, pregnant, in labor at 38 weeks' gestation, gravida 2.";
    assert_eq!(rules().assign(&fields(vignette, "Unknown")).specialty, Specialty::ObstetricsGynecology);
}

#[test]
fn words_match_whole_and_however_written() {
    let score = |diagnosis: &str| rules().assign(&fields("", diagnosis)).specialty;
    for diagnosis in ["Guillain-Barré", "GUILLAIN BARRE", "guillain\u{2013}barre\u{301} syndrome"] {
        assert_eq!(score(diagnosis), Specialty::Neurology, "{diagnosis}");
    }
    for diagnosis in ["Anaemia", "anæmia", "Leukaemias", "Haemolytic anemia"] {
        assert_eq!(score(diagnosis), Specialty::Hematology, "{diagnosis}");
    }
    assert_eq!(score("Brain tumours"), Specialty::Neurology);
    // "early", "penicillin" and "stable" only begin like terms.
    for diagnosis in ["Early something", "Penicillin", "Stable", "Analgesic", "Migout"] {
        assert_eq!(rules().assign(&fields("", diagnosis)).score, 0, "{diagnosis}");
    }
}

#[test]
fn ranges_lie_in_the_text_that_was_written() {
    let diagnosis = "«Séver», fœtal — İstanbul; oesophageal\u{a0}tumour, ß, Crohn’s";
    let assignment = rules().assign(&fields("", diagnosis));
    let found: Vec<&str> = assignment
        .evidence
        .iter()
        .filter(|evidence| evidence.field == Field::Diagnosis)
        .map(|evidence| &diagnosis[evidence.range.clone()])
        .collect();
    assert!(found.contains(&"oesophageal") && found.contains(&"Crohn") && found.contains(&"fœtal"), "{found:?}");
}

#[test]
fn names_and_ids_agree_with_serde() {
    for (index, specialty) in Specialty::ALL.into_iter().enumerate() {
        assert_eq!(specialty.index(), index);
        let name = serde_json::to_value(specialty).unwrap();
        assert_eq!(name, specialty.as_str());
        assert_eq!(serde_json::from_value::<Specialty>(name).unwrap(), specialty);
        assert!(specialty.id().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
    }
    let ids: std::collections::BTreeSet<&str> = Specialty::ALL.iter().map(|specialty| specialty.id()).collect();
    assert_eq!(ids.len(), 17);
    assert_eq!(rules().broader(Specialty::Cardiology), Specialty::InternalMedicine);
    assert_eq!(rules().broader(Specialty::Urology), Specialty::Urology);
}

#[test]
fn equal_scores_follow_the_order() {
    let tied = fields("", "Psoriasis and gout");
    let assignment = rules().assign(&tied);
    assert_eq!((assignment.specialty, assignment.confident), (Specialty::Dermatology, false));
    assert_eq!(assignment.runner_up, Some((Specialty::Rheumatology, assignment.score)));
    let turned = RULES.replacen("\"Dermatology\",\n", "\n", 1).replacen(
        "\"Diagnostic Radiology\",\n]",
        "\"Diagnostic Radiology\", \"Dermatology\",\n]",
        1,
    );
    assert_eq!(SpecialtyRules::parse(&turned).unwrap().assign(&tied).specialty, Specialty::Rheumatology);
}

#[test]
fn vignette_is_capped_and_evidence_too() {
    let vignette = "murmur, gallop, palpitation, orthopnea, chest pain, S3, S4, opening snap, ejection click, \
         troponin, BNP, friction rub, QRS, bounding pulse, cardiomegaly in a 50-year-old man";
    let assignment = rules().assign(&fields(vignette, "Depression"));
    assert_eq!(assignment.specialty, Specialty::Psychiatry);
    assert_eq!(assignment.runner_up, Some((Specialty::Cardiology, 40)));
    let assignment = rules().assign(&fields(vignette, "Unknown"));
    assert_eq!((assignment.specialty, assignment.score), (Specialty::Cardiology, 40));
    assert_eq!(assignment.evidence.len(), WINNER_EVIDENCE);
}

#[test]
fn faulty_rules_are_refused() {
    let refused = |from: &str, to: &str| {
        assert!(RULES.contains(from), "{from}");
        SpecialtyRules::parse(&RULES.replacen(from, to, 1)).unwrap_err().to_string()
    };
    for (from, to, told) in [
        ("threshold = 20", "threshold = 20\nthreshhold = 3", "threshhold"),
        ("threshold = 20", "threshold = 0", "`threshold`"),
        ("version = 1", "version = 2", "`version`"),
        ("multipliers]", "multipliers]\nsubject = 1", "subject"),
        ("\"kawasaki*\", ", "\"kawasaki*\", \"Croup\", ", "not lower case"),
        (
            "\"kawasaki*\", ",
            "\"kawasaki*\", \"kawasaki*\", ",
            "`specialty[0].terms[0].terms`: `kawasaki*` is there twice",
        ),
        ("\"kawasaki*\", ", "\"kawasaki*\", \"kawa*saki\", ", "* may only"),
        ("\"kawasaki*\", ", "\"kawasaki*\", \" croup\", ", "spaces to spare"),
        ("\"kawasaki*\", ", "\"kawasaki*\", \"--\", ", "no letter or digit"),
        ("\"kawasaki*\", ", "\"kawasaki*\", \"blood pressure\", ", "ignored as well"),
        ("order = [\n  \"Pediatrics\", ", "order = [\n  ", "`order`: lacks Pediatrics"),
        ("order = [\n  \"Pediatrics\", ", "order = [\n  \"Pediatrics\", \"Pediatrics\", ", "twice"),
        ("order = [\n  \"Pediatrics\", ", "order = [\n  \"Paediatrics\", ", "Paediatrics"),
        ("below_years = 12", "below_years = 1", "age.bands[1].below_years"),
        ("min_age = 9", "minimum_age = 9", "minimum_age"),
        ("fields = [\"diagnosis\"]", "fields = [\"diagnosis\", \"diagnosis\"]", "names a text twice"),
        ("fields = [\"diagnosis\"]", "fields = [\"subject\"]", "subject"),
    ] {
        let error = refused(from, to);
        assert!(error.contains(told), "{told}: {error}");
    }
    assert!(SpecialtyRules::parse("").is_err());
}

#[test]
fn long_texts_take_linear_time() {
    let sentence = "A man with chest pain, non-productive cough and weakness in the left arm was seen; ";
    let time = |length: usize| {
        let vignette: String = sentence.chars().cycle().take(length).collect();
        let mut best = std::time::Duration::MAX;
        for _ in 0..20 {
            let start = std::time::Instant::now();
            std::hint::black_box(rules().assign(&fields(&vignette, "Gout")));
            best = best.min(start.elapsed());
        }
        best
    };
    let (short, long) = (time(1_000), time(100_000));
    eprintln!("1 000 characters {short:?}, 100 000 characters {long:?}");
    assert!(long < 400 * short, "{short:?} {long:?}");
    // One word without end that terms begin.
    let word = format!("psychiatr{}", "a".repeat(100_000));
    let start = std::time::Instant::now();
    std::hint::black_box(rules().assign(&fields(&word, &word)));
    assert!(start.elapsed() < std::time::Duration::from_millis(200));
}

fn text() -> impl Strategy<Value = String> {
    let words = vec![
        "pregnant",
        "fœtal",
        "oedema",
        "murmur",
        "4-year-old",
        "emergency department",
        "overdose",
        "Ménière",
        "ae",
        "our",
        "\u{301}",
        "\u{200b}",
        "İ",
        "ß",
        "ﬁ",
        "𝒜",
        "s",
        "es",
        " ",
        "-",
        "’",
        "newborn",
        "psychiatr",
        "ou",
        "r",
    ];
    prop_oneof![
        any::<String>(),
        proptest::collection::vec(
            prop_oneof![proptest::sample::select(words).prop_map(str::to_owned), "\\PC{0,3}"],
            0..40
        )
        .prop_map(|parts| parts.concat()),
    ]
}

proptest! {
    #[test]
    fn any_text_is_safe(
        [vignette, question, diagnosis, subject] in [text(), text(), text(), text()],
        age in any::<f64>(),
    ) {
        let fields = Fields {
            vignette: &vignette,
            question: &question,
            diagnosis: &diagnosis,
            subject: Some(&subject),
            age_years: Some(age),
        };
        for fields in [fields, Fields { age_years: None, ..fields }] {
            let assignment = rules().assign(&fields);
            prop_assert_eq!(&assignment, &rules().assign(&fields));
            prop_assert!(!assignment.evidence.is_empty());
            for evidence in &assignment.evidence {
                let text = match evidence.field {
                    Field::Diagnosis => &diagnosis,
                    Field::Question => &question,
                    Field::Subject => &subject,
                    Field::Vignette | Field::Age => &vignette,
                    Field::Default => "",
                };
                prop_assert!(text.get(evidence.range.clone()).is_some(), "{:?}", evidence);
            }
            let of_winner = assignment.evidence.iter().filter(|one| one.specialty == assignment.specialty).count();
            prop_assert!(of_winner <= WINNER_EVIDENCE);
            prop_assert!(assignment.evidence.len() <= WINNER_EVIDENCE + RUNNER_UP_EVIDENCE);
            if let Some((second, points)) = assignment.runner_up {
                prop_assert!(second != assignment.specialty && points > 0);
                let default = assignment.evidence.iter().any(|one| one.field == Field::Default);
                prop_assert!(points <= assignment.score || default);
            }
        }
    }

    #[test]
    fn punctuation_and_case_do_not_matter(words in proptest::collection::vec("[a-z]{1,8}|[0-9]{1,3}", 0..30)) {
        let plain = words.join(" ");
        let dashed = format!("¡{}!", words.join(" \u{2014} ")).to_uppercase();
        let one = rules().assign(&Fields { vignette: &plain, diagnosis: &plain, ..Fields::default() });
        let other = rules().assign(&Fields { vignette: &dashed, diagnosis: &dashed, ..Fields::default() });
        prop_assert_eq!((one.specialty, one.score, one.runner_up), (other.specialty, other.score, other.runner_up));
    }
}
