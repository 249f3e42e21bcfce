//! Tables of short vignettes with the phrases that belong to each slot.

use super::*;
use fold::fold;

const FILES: ExtractorFiles<'static> = ExtractorFiles {
    lexicon: include_str!("../../../pipelines/lexicon/slots.toml"),
    terms: include_str!("../../../pipelines/lexicon/terms.csv"),
    context: include_str!("../../../pipelines/lexicon/context.toml"),
    drugs: include_str!("../../../pipelines/lexicon/drugs.toml"),
};

fn extractor() -> &'static Extractor {
    static EXTRACTOR: std::sync::LazyLock<Extractor> = std::sync::LazyLock::new(|| Extractor::parse(FILES).unwrap());
    &EXTRACTOR
}

/// The phrases of one slot.
fn phrases(stem: &str, slot: Slot) -> Vec<String> {
    let found = extractor().extract(stem).found;
    let of_slot = found.iter().filter(|one| one.slot == slot);
    of_slot.map(|one| stem.chars().skip(one.range.start).take(one.range.len()).collect()).collect()
}

fn check(cases: &[(&str, &[&str])], slot: Slot) {
    for (stem, expected) in cases {
        assert_eq!(phrases(stem, slot), *expected, "{} of {stem:?}", slot.as_str());
    }
}

#[test]
fn age_of_the_patient() {
    check(
        &[
            ("A 31-year-old baker has hiccups. What is next?", &["31-year-old"]),
            ("A 5 month old boy has a rash. What is next?", &["5 month old"]),
            ("A two-week-old girl does not feed. What is next?", &["two-week-old"]),
            ("A 2-day-old boy cries. What is next?", &["2-day-old"]),
            ("A 2 1/2-year-old girl limps. What is next?", &["2 1/2-year-old"]),
            ("A 40-to-50-year-old man is found in a park. What is next?", &["40-to-50-year-old"]),
            ("A woman in her 50s comes with a cough. What is next?", &["in her 50s"]),
            ("A homeless man in his mid-60s has a cough. What is next?", &["in his mid-60s"]),
            ("A man, aged 47 years, has a cough. What is next?", &["aged 47 years"]),
            ("An elderly woman fell at home. What is next?", &["elderly"]),
            ("A 52-year-woman has a cough. What is next?", &["52-year"]),
            ("A boy on day of life 3 has jaundice. What is next?", &["day of life 3"]),
            ("A woman complains of a cough. She is 38 years old. What is next?", &["38 years old"]),
            // Newborns, whose mothers have an age.
            ("A 3.1 kg (6.8 lb) newborn is blue. What is next?", &["newborn"]),
            ("A male newborn is delivered to a 25-year-old woman. What is next?", &["newborn"]),
            ("A newborn girl was born at term to a healthy 33-year-old woman. What is next?", &["newborn"]),
            ("A newborn screening test is positive in a male neonate. What is next?", &["neonate"]),
            // Two persons.
            ("A 4-year-old boy is brought by his 29-year-old mother. What is next?", &["4-year-old"]),
            ("A boy is brought by his 29-year-old mother. What is next?", &[]),
            ("A mother brings her 7-year-old daughter to the clinic. What is next?", &["7-year-old"]),
            ("A 30-year-old woman brings her 2-year-old son in. What is next?", &["2-year-old"]),
            ("The parents of a 9-year-old boy ask for advice. What is next?", &["9-year-old"]),
            ("A girl has asthma. Her 8-year-old brother is well. What is next?", &[]),
            // No age of a patient.
            ("A boy has had asthma since he was 3 years old. What is next?", &[]),
            ("A study followed patients 20 to 65 years of age. What is next?", &[]),
            ("A 20-year-old man has a cough. This 30-year-old man also has a rash. What is next?", &[]),
        ],
        Slot::PersonalAge,
    );
}

#[test]
fn sex_of_the_patient() {
    check(
        &[
            ("A 31-year-old retired right-handed man has hiccups. What is next?", &["man"]),
            ("A 31-year-old, previously healthy, African American lady coughs. What is next?", &["lady"]),
            ("A 24-year-old, gravida 2, para 1, woman has cramps. What is next?", &["woman"]),
            ("A 24-year-old gravida 2 at 30 weeks has cramps. What is next?", &[]),
            ("A 6-week-old male infant vomits. What is next?", &["male"]),
            ("A mother brings her 7-year-old daughter to the clinic. What is next?", &["daughter"]),
            ("A 4-year-old boy is brought by his 29-year-old mother. What is next?", &["boy"]),
            // By a pronoun, if no noun says it.
            ("A 31-year-old baker has a cough. She feels weak. What is next?", &["She"]),
            ("A 6-week-old infant is brought by his mother. She saw a rash. What is next?", &["his"]),
            ("A 6-week-old infant is brought by the mother. She saw a rash. What is next?", &[]),
            ("A 31-year-old baker has a cough. The man feels weak. What is next?", &["man"]),
            ("A 31-year-old baker has a cough. The pharmacologist says he needs a drug. What is next?", &[]),
            // Nobody, and contradictions.
            ("A 31-year-old baker has a cough. What is next?", &[]),
            ("A 31-year-old baker has a cough. He smokes. Her lungs are clear. What is next?", &[]),
            ("A 31-year-old man has a cough. She smokes. What is next?", &[]),
            ("A 31-year-old man has a cough. The woman smokes. What is next?", &[]),
            ("A 6-week-old infant is brought by his mother. Her daughter has a rash. What is next?", &[]),
            ("A drug was tested on a male mouse. What is next?", &[]),
            ("Researchers gave a drug to 40 women. What is next?", &[]),
        ],
        Slot::PersonalSex,
    );
}

#[test]
fn complaints() {
    check(
        &[
            ("A 31-year-old man comes to the doctor because of a 4-day history of a wet cough. Why?", &["wet cough"]),
            (
                "A 31-year-old man presents with hiccups and a sore tongue for 2 weeks. Why?",
                &["hiccups", "sore tongue"],
            ),
            (
                "A 31-year-old man complains of a dull ache in his hip that began at night. Why?",
                &["dull ache in his hip"],
            ),
            (
                "A girl is taken to a clinic by her father for a rash, fever, and chills. Why?",
                &["rash", "fever", "chills"],
            ),
            (
                "A man comes in because of a 6-month history of thirst and a 1-month history of leg cramps. Why?",
                &["thirst", "leg cramps"],
            ),
            (
                "A woman presents with severe, sharp pain in her left knee. Why?",
                &["severe, sharp pain in her left knee"],
            ),
            ("A woman comes to the clinic because she is unable to whistle. Why?", &["unable to whistle"]),
            ("A boy comes with his aunt. He reports itching of both feet. Why?", &["itching of both feet"]),
            ("A man presents with bruising on his trunk and limbs. Why?", &["bruising on his trunk and limbs"]),
            ("A man comes with a cough. He denies fever, chills, or weight loss. Why?", &["cough"]),
            ("A man comes with a cough. His brother has had headaches. Why?", &["cough"]),
            ("A man comes in for a yearly check-up and has no complaints. Why?", &[]),
            ("A man comes with his wife. Why?", &[]),
            ("What is the cause in a 31-year-old man who complains of cough?", &[]),
        ],
        Slot::SymptomName,
    );
    check(
        &[
            ("A man comes to the doctor because of a 4-day history of a wet cough. Why?", &["4-day history"]),
            ("A man presents with hiccups for the past 3 weeks. Why?", &["for the past 3 weeks"]),
            ("A man presents with a lump that appeared 2 days ago. Why?", &["2 days ago"]),
            ("A man presents with sudden onset of chest pain. Why?", &["sudden onset"]),
            ("A man presents with cough. He has smoked for 30 years. Why?", &[]),
        ],
        Slot::SymptomTime,
    );
    check(
        &[
            ("A man presents with chest pain. Why?", &["chest"]),
            ("A man presents with pain in the right side of the scrotum. Why?", &["right side of the scrotum"]),
            ("A man presents with cough. Examination shows a scar on the left knee. Why?", &[]),
        ],
        Slot::SymptomPosition,
    );
    check(&[("A man presents with severe chest pain and mild nausea. Why?", &["severe", "mild"])], Slot::SymptomDegree);
}

#[test]
fn what_can_be_seen_felt_and_smelt() {
    check(
        &[
            ("A man presents with a rash. Examination shows erythematous plaques. Why?", &["erythematous"]),
            ("A man presents with a rash. Biopsy shows purple cells. The red blood cell count is low. Why?", &[]),
        ],
        Slot::SymptomColor,
    );
    check(
        &[("A man presents with a rash. Examination shows scaly plaques and no vesicles. Why?", &["rash", "plaques"])],
        Slot::SymptomShape,
    );
    check(
        &[("A man presents with a rash. Examination shows scaly plaques. The abdomen is soft. Why?", &["scaly"])],
        Slot::SymptomTexture,
    );
    check(&[("A woman presents with a foul-smelling discharge. Why?", &["foul-smelling"])], Slot::SymptomSmell);
    check(
        &[
            ("A man presents with cough and a 7-kg (15-lb) weight loss. Why?", &["7-kg (15-lb) weight loss"]),
            ("A man presents with cough. He has lost 6 kg. Why?", &["lost 6 kg"]),
            ("A man presents with cough. He has had no change in appetite. Why?", &[]),
        ],
        Slot::PhysicalChange,
    );
}

#[test]
fn history() {
    check(
        &[
            (
                "A man has a cough. He has hypertension and type 2 diabetes mellitus. Why?",
                &["hypertension", "type 2 diabetes mellitus"],
            ),
            ("A man has a cough. He has no history of serious illness. Why?", &["no history of serious illness"]),
            ("A man has a cough. His father has gout. Why?", &[]),
        ],
        Slot::PastDiagnosis,
    );
    check(
        &[
            ("A man has a cough. His medications are lisinopril and metformin. Why?", &["lisinopril", "metformin"]),
            ("A man has a cough. He takes no medications. Why?", &["takes no medications"]),
        ],
        Slot::PastMedication,
    );
    check(
        &[(
            "A man has a cough. He was treated with amoxicillin without improvement. Why?",
            &["treated with amoxicillin without improvement"],
        )],
        Slot::ReceivingTreatment,
    );
    check(
        &[(
            "A man has a cough. He underwent resection of the terminal ileum 7 years ago. Why?",
            &["resection of the terminal ileum"],
        )],
        Slot::TraumaSurgery,
    );
    check(
        &[
            ("A man has a cough. He is allergic to penicillin. Why?", &["allergic to penicillin"]),
            ("A man has a cough. He has no known drug allergies. Why?", &["no known drug allergies"]),
        ],
        Slot::AllergicHistory,
    );
    check(
        &[("A boy has a cough. His immunizations are up-to-date. Why?", &["immunizations are up-to-date"])],
        Slot::Preventive,
    );
    check(
        &[
            (
                "A man has a cough. His father died of colon cancer and his sister has asthma. Why?",
                &["father died of colon cancer", "sister has asthma"],
            ),
            ("A man has a cough. His father, aged 70, has gout. Why?", &["father, aged 70, has gout"]),
            ("A man has a cough. Family history is noncontributory. Why?", &["Family history is noncontributory"]),
            ("A boy has a cough. His mother says that he has asthma. Why?", &[]),
        ],
        Slot::FamilyHistory,
    );
    check(
        &[("A man has a cough. He recently returned from Thailand. Why?", &["returned from Thailand"])],
        Slot::ContactHistory,
    );
    check(
        &[
            ("A man has a cough. He does not smoke or drink alcohol. Why?", &["does not smoke"]),
            (
                "A man has a cough. He has smoked one pack of cigarettes daily for 20 years. Why?",
                &["smoked one pack of cigarettes daily for 20 years"],
            ),
            ("A man has a cough. He has never smoked. Why?", &["never smoked"]),
        ],
        Slot::HabitTobacco,
    );
    check(
        &[
            ("A man has a cough. He does not smoke or drink alcohol. Why?", &["does not smoke or drink alcohol"]),
            ("A man has a cough. He smokes and drinks two beers a day. Why?", &["drinks two beers a day"]),
        ],
        Slot::HabitWine,
    );
    check(&[("A man has a cough. He denies illicit drug use. Why?", &["denies illicit drug use"])], Slot::HabitDrug);
    check(
        &[
            ("A 45-year-old farmer has a cough. Why?", &["farmer"]),
            (
                "A man has a cough. He works as a nurse and lives with his wife. Why?",
                &["works as a nurse", "lives with his wife"],
            ),
        ],
        Slot::HabitLiving,
    );
    check(
        &[("A man has a cough. He is sexually active with two partners. Why?", &["sexually active with two partners"])],
        Slot::CoitusHistory,
    );
    check(
        &[("A man is brought to the emergency department because of a cough. Why?", &["emergency department"])],
        Slot::Department,
    );
    check(
        &[
            ("A man has a cough. His BMI is 31 kg/m2. Why?", &["BMI is 31 kg/m2"]),
            (
                "A girl has a cough. She is 168 cm (5 ft 6 in) tall and weighs 63 kg (139 lb). Why?",
                &["168 cm (5 ft 6 in) tall", "weighs 63 kg (139 lb)"],
            ),
        ],
        Slot::PersonalWeight,
    );
    check(
        &[
            (
                "A man has a cough. He denies fever, chills, or chest pain. Why?",
                &["denies fever, chills, or chest pain"],
            ),
            (
                "A 30-year-old woman, gravida 2, para 1, at 32 weeks' gestation, comes because of a cough. Why?",
                &["gravida 2, para 1", "32 weeks' gestation"],
            ),
        ],
        Slot::AdditionalNotes,
    );
}

#[test]
fn examination_and_tests() {
    let table = "Laboratory studies show:\nHemoglobin 9.1 g/dL\nSerum\nNa+ 131 mEq/L\nGlucose 80 mg/dL";
    check(
        &[
            (
                "A man has a cough. His father had gout. On examination, he is pale. There is a scar. He smokes. Why?",
                &["On examination, he is pale", "There is a scar"],
            ),
            ("A man has a cough. His pulse is 90/min. Why?", &["His pulse is 90/min"]),
            ("A man has a cough. He has high blood pressure. Why?", &[]),
            ("A man has a cough. An MRI of the knee shows a tear. Why?", &["An MRI of the knee shows a tear"]),
            ("A man has a cough. A CT scan is ordered. Why?", &[]),
            ("A man has a cough. His medical history is notable for an abnormal ECG. Why?", &[]),
            (&format!("A man has a cough.\n{table}\nWhich is the cause?"), &[table]),
            ("A reagent was tested. Hemoglobin was 9.1 g/dL in the sample. Why?", &[]),
            ("Examination of a man shows a rash.", &[]),
        ],
        Slot::MedicalExamination,
    );
}

#[test]
fn ranges_are_those_of_the_original_text() {
    let cases = [
        "“Grüße” — naïve café: a 44-year-old man presents with “stabbing” pain for 2 days. Why?",
        "А 44-уеаr-old mаn рrеѕеntѕ wіth раіn for 2 dауѕ. Why?",
        "🩺\u{A0}A 44‑year‑old man presents with pain for 2 days. His temperature is 38 °C. Why?",
        "A 44-year-old man<br>presents with&nbsp;<b>pain</b> for 2 days. Why?",
    ];
    for stem in cases {
        let folded = |slot| -> Vec<String> {
            phrases(stem, slot).iter().map(|phrase| phrase.chars().map(fold).collect()).collect()
        };
        assert_eq!(folded(Slot::PersonalAge), ["44-year-old"], "{stem}");
        assert_eq!(folded(Slot::PersonalSex), ["man"], "{stem}");
        assert!(folded(Slot::SymptomName)[0].ends_with("pain"), "{stem}");
        assert_eq!(folded(Slot::SymptomTime), ["for 2 days"], "{stem}");
    }
}

#[test]
fn odd_texts() {
    for stem in ["", " ", "?", "A", "é", "\n\n", "67-year-old", "A 67-year-old man", "Why?", "pulse 80/min.", "man. "]
    {
        for one in extractor().extract(stem).found {
            let phrase: String = stem.chars().skip(one.range.start).take(one.range.len()).collect();
            assert!(!phrase.is_empty() && phrase.trim() == phrase && phrase != stem.trim(), "{stem:?}: {phrase:?}");
        }
    }
}

#[test]
fn what_a_person_should_know_is_flagged() {
    let long = "A 30-year-old man has pain and goes on with words and words of the story ".repeat(12);
    for (stem, expected) in [
        ("A 30-year-old man has a cough. Why?", &[][..]),
        (
            "Ein 30-jähriger Mann klagt seit drei Tagen über Fieber, Husten und Schmerzen in der Brust. Warum?",
            &["not_english"],
        ),
        (
            "Un hombre de 30 años acude por fiebre y tos de tres días de evolución con dolor en el pecho. ¿Por qué?",
            &["not_english"],
        ),
        ("A 30-year-old man<br/>has a cough. Why?", &["html_remnants"]),
        ("A 20-year-old man has a cough. This 30-year-old man also has a rash. What is next?", &["contradictory_age"]),
        (
            "A 30-year-old man has a cough. He smokes. A 45-year-old woman, his neighbor, comes with a rash. Why?",
            &["two_patients"],
        ),
        ("A study of cough was made. Why?", &["no_patient"]),
        (&long, &["no_punctuation"]),
    ] {
        assert_eq!(extractor().extract(stem).flags, expected, "{stem}");
    }
    // Of two patients only the first is read; a text that is not English is not read at all.
    let two = "A 30-year-old man has a cough. He smokes. A 45-year-old woman, his neighbor, comes with a rash. Why?";
    assert_eq!(phrases(two, Slot::SymptomName), ["cough"]);
    assert!(
        extractor()
            .extract(
                "Ein 30-jähriger Mann klagt seit drei Tagen über Fieber, Husten und Schmerzen in der Brust. Warum?"
            )
            .found
            .is_empty()
    );
    for flag in FLAGS.windows(2) {
        assert!(flag[0].0 < flag[1].0, "sorted, each once");
    }
}

#[test]
fn long_texts_take_linear_time() {
    let units = [
        "a",
        "1 ",
        "\n",
        "a 45-year-old man presents with fever for 2 days and ",
        "A man presents with pain. ",
        "His pulse is 80/min. ",
        "hemoglobin 9 g/dl\n",
        "е 2-",
        "she said he ",
        "no fever, ",
        "and his left knee and ",
        "<br>&nbsp;",
        "takes aspirin and ",
    ];
    for unit in units {
        let body: String = unit.chars().cycle().take(100_000).collect();
        let stem = format!("{body}. A 20-year-old baker coughs. What is next?");
        let started = std::time::Instant::now();
        extractor().extract(&stem);
        // Quadratic time would be minutes.
        assert!(started.elapsed().as_secs() < 20, "{unit:?}: {:?}", started.elapsed());
    }
}

#[test]
fn faults_of_the_files_name_the_place() {
    let lexicon = FILES.lexicon;
    let cases = [
        (lexicon.replacen("version = 1", "version = 2", 1), "version"),
        (lexicon.replacen("version = 1", "version = 1\nextra = 3", 1), "extra"),
        (lexicon.replacen("[time]", "[time]\nclocks = [\"noon\"]", 1), "clocks"),
        (lexicon.replacen("bring_verbs =", "carry_verbs =", 1), "carry_verbs"),
        (lexicon.replacen("adjectives = [\"male\", \"female\"]", "adjectives = []", 1), "sex.adjectives"),
        (lexicon.replacen("adjectives = [\"male\", \"female\"]", "adjectives = [\"a\", \"a\"]", 1), "twice"),
        ("not toml".to_owned(), "toml"),
    ];
    for (text, key) in cases {
        assert_ne!(text, lexicon);
        let message = Extractor::parse(ExtractorFiles { lexicon: &text, ..FILES }).err().map(|error| error.to_string());
        assert!(message.as_ref().is_some_and(|message| message.contains(key)), "{key}: {message:?}");
    }
    let terms = "term,slot,variants,source\ncough,Symptom,,clinical english\n";
    let message = Extractor::parse(ExtractorFiles { terms, ..FILES }).err().map(|error| error.to_string());
    assert_eq!(
        message.as_deref(),
        Some("term list: line 2: \"cough\": \"Symptom\" is no slot of Table 6 and not \"-\"")
    );
}
