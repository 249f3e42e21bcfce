//! Tests of the module.

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::collections::BTreeSet;

const DRUGS: &str = include_str!("../../../pipelines/lexicon/drugs.toml");

static BOUNDARIES: LazyLock<BoundaryRules> = LazyLock::new(|| BoundaryRules::parse(DRUGS).unwrap());

/// Values of `slot` that belong to `better`: certainly, or perhaps.
fn check(slot: Slot, rule: &'static str, better: Slot, certain: &[&str], uncertain: &[&str]) {
    let expected = |certain| Some(Misplaced { rule, better: Some(better), certain });
    check_each(slot, certain, expected(true));
    check_each(slot, uncertain, expected(false));
}

fn check_right(slot: Slot, values: &[&str]) {
    check_each(slot, values, None);
}

fn check_each(slot: Slot, values: &[&str], expected: Option<Misplaced>) {
    let mut wrong = String::new();
    for value in values {
        let found = BOUNDARIES.check(slot, value);
        if found != expected {
            wrong.push_str(&format!("{value:?}: {found:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{} should be {expected:?}\n{wrong}", slot.as_str());
}

#[test]
fn person() {
    use Slot::{PersonalAge as Age, PersonalSex as Sex, PersonalWeight as Weight};
    check(
        Weight,
        "age_in_weight",
        Age,
        &["31-year-old", "3 days old", "47 years of age", "in her 50s", "31 years"],
        &["born when his mother was aged 30"],
    );
    check(Age, "weight_in_age", Weight, &["BMI is 31 kg/m2", "70 kg", "weighs 3.2 kg (7 lb)"], &["31-year-old, 70 kg"]);
    check(Age, "sex_in_age", Sex, &["male", "a woman"], &["31-year-old man"]);
    check(Sex, "age_in_sex", Age, &["31-year-old"], &["31-year-old man"]);
    check_right(Age, &["31-year-old", "newborn", "2 weeks", "elderly", "40-to-50-year-old", "in her 50s", ""]);
    check_right(
        Weight,
        &["weighs 3.2 kg at 2 weeks of age", "BMI 31 kg/m²", "50th percentile for age", "5 ft 9 in tall"],
    );
    check_right(Sex, &["man", "female", "transgender woman"]);
}

#[test]
fn allergies_and_medication() {
    use Slot::{AllergicHistory as Allergy, PastDiagnosis as Diagnosis, PastMedication as Medication};
    check(
        Allergy,
        "drug_in_allergies",
        Medication,
        &["takes lisinopril", "metformin 500 mg twice daily"],
        &["penicillin", "metformin and Lipitor"],
    );
    check_right(
        Allergy,
        &[
            "allergic to penicillin",
            "rash after amoxicillin",
            "anaphylaxis with cefazolin",
            "no known drug allergies",
            "lactose intolerance",
            "peanuts",
            "hypersensitivity to aspirin",
        ],
    );
    check(
        Medication,
        "allergy_elsewhere",
        Allergy,
        &[
            "allergic to penicillin",
            "no known drug allergies",
            "has a penicillin allergy",
            "NKDA",
            "no allergies",
            "Allergies include peanuts",
        ],
        &["dust and peanut allergies", "his allergy to sulfa"],
    );
    check(Diagnosis, "allergy_elsewhere", Allergy, &["allergic to peanuts", "allergy to sulfa drugs"], &[]);
    check_right(
        Medication,
        &[
            "takes no medications and has no allergies",
            "cetirizine for seasonal allergies",
            "allergy shots",
            "metformin",
            "no medications",
            "multivitamin",
            "insulin for type 1 diabetes mellitus",
            "antihypertensive medication",
            "penicillin prophylaxis after splenectomy",
            "lisinopril for hypertension",
            "herbal remedies",
        ],
    );
    check_right(Diagnosis, &["allergic rhinitis", "lactose intolerance", "seasonal allergies"]);
}

#[test]
fn histories() {
    use Slot::{
        PastDiagnosis as Diagnosis, PastMedication as Medication, SymptomName as Name, TraumaSurgery as Surgery,
    };
    check(
        Medication,
        "operation_elsewhere",
        Surgery,
        &[
            "appendectomy",
            "underwent total thyroidectomy",
            "coronary artery bypass grafting",
            "cholecystectomy 5 years ago",
            "knee replacement",
        ],
        &["splenectomy after a car accident"],
    );
    check(
        Diagnosis,
        "operation_elsewhere",
        Surgery,
        &["appendectomy at age 12", "cesarean section", "bilateral mastectomy"],
        &["appendicitis treated with appendectomy"],
    );
    check_right(Medication, &["phlebotomy therapy", "steroids after kidney transplantation, prednisone"]);
    check(
        Medication,
        "diagnosis_in_medication",
        Diagnosis,
        &["hypertension", "type 2 diabetes mellitus", "hypertension and asthma"],
        &["peptic ulcer disease", "hypertension since 2005"],
    );
    check(
        Diagnosis,
        "drug_in_diagnosis",
        Medication,
        &[
            "metformin",
            "lisinopril 10 mg daily",
            "takes Lipitor and aspirin",
            "current medications include captopril and metformin",
        ],
        &["hypertension treated with lisinopril", "current medications include glucosamine"],
    );
    check(Name, "drug_in_diagnosis", Medication, &[], &["ibuprofen"]);
    check_right(
        Diagnosis,
        &[
            "heparin-induced thrombocytopenia",
            "lithium toxicity",
            "opioid use disorder",
            "hypertension",
            "methicillin-resistant Staphylococcus aureus infection",
            "iron deficiency anemia",
            "vitamin D deficiency",
            "alcohol use disorder",
            "alcoholic cirrhosis",
            "acetaminophen overdose",
            "surgical site",
            "no history of serious illness",
        ],
    );
}

#[test]
fn family() {
    use Slot::{ContactHistory as Contact, FamilyHistory as Family, PastDiagnosis as Diagnosis, SymptomName as Name};
    check(
        Diagnosis,
        "family_elsewhere",
        Family,
        &[
            "father died of colon cancer",
            "family history of breast cancer",
            "no family history of seizures",
            "his mother has diabetes",
            "two older brothers have asthma",
            "maternal grandmother had a stroke",
        ],
        &["mother had gestational diabetes", "hypertension; father with gout"],
    );
    check(Name, "family_elsewhere", Family, &["father has similar-looking moles"], &[]);
    check(Diagnosis, "family_elsewhere", Contact, &[], &["sister has had a cold"]);
    check_right(
        Name,
        &[
            "mother reports a fever",
            "mother has noticed a rash",
            "his wife says he snores",
            "parents are concerned about a cough",
            "mother states that he has been vomiting",
            "headache",
        ],
    );
    check_right(Family, &["father died of colon cancer"]);
}

#[test]
fn habits() {
    use Slot::{
        CoitusHistory as Coitus, HabitDrug as Drug, HabitLiving as Living, HabitTobacco as Tobacco, HabitWine as Wine,
    };
    check(
        Wine,
        "tobacco_elsewhere",
        Tobacco,
        &["smoked one pack of cigarettes daily for 20 years", "does not smoke", "20-pack-year smoking history"],
        &[],
    );
    check(
        Drug,
        "tobacco_elsewhere",
        Tobacco,
        &["smokes cigarettes", "chewing tobacco"],
        &["does not smoke or drink alcohol"],
    );
    check(
        Living,
        "tobacco_elsewhere",
        Tobacco,
        &["does not smoke", "smokes a pack a day", "uses e-cigarettes and vapes", "is a current smoker"],
        &["does not smoke or drink alcohol"],
    );
    check(
        Tobacco,
        "alcohol_elsewhere",
        Wine,
        &["drinks two beers a day", "does not drink alcohol", "drinks socially"],
        &[],
    );
    check(Living, "alcohol_elsewhere", Wine, &["drinks a glass of wine with dinner", "drinks heavily"], &[]);
    check(
        Tobacco,
        "drug_use_elsewhere",
        Drug,
        &["smokes marijuana", "uses cocaine", "does not use illicit drugs"],
        &[],
    );
    check(Living, "drug_use_elsewhere", Drug, &["injects heroin"], &[]);
    check(
        Living,
        "sexual_activity_elsewhere",
        Coitus,
        &["sexually active with two male partners", "uses condoms inconsistently"],
        &[],
    );
    check(Slot::ContactHistory, "sexual_activity_elsewhere", Coitus, &[], &["unprotected sex with a new partner"]);
    check(Slot::PastDiagnosis, "tobacco_elsewhere", Tobacco, &[], &["smoked one pack daily"]);
    for slot in [Tobacco, Wine] {
        check_right(slot, &["does not smoke or drink alcohol", "smokes a pack and drinks three beers daily"]);
    }
    check_right(
        Drug,
        &["smokes marijuana", "does not smoke or use illicit drugs", "uses intravenous drugs", "abuses heroin"],
    );
    check_right(Tobacco, &["smoked one pack of cigarettes daily", "never smoked", "vapes"]);
    check_right(Wine, &["drinks two beers a day", "social drinker", "no alcohol"]);
    check_right(
        Living,
        &[
            "works in a tobacco factory",
            "works as a bartender serving wine",
            "lives with his wife",
            "drinks three cups of coffee daily",
            "exposed to cigarette smoke",
            "follows a vegan diet",
            "eats smoked fish",
            "lives with wife and smokes a pack daily",
            "farmer",
        ],
    );
}

#[test]
fn vaccinations() {
    use Slot::Preventive;
    check(
        Slot::PastMedication,
        "vaccination_elsewhere",
        Preventive,
        &["immunizations are up-to-date", "has not received any vaccinations", "up to date on vaccinations"],
        &["yearly influenza vaccine"],
    );
    check(Slot::HabitLiving, "vaccination_elsewhere", Preventive, &["unvaccinated", "flu shot last year"], &[]);
    check(Slot::AdditionalNotes, "vaccination_elsewhere", Preventive, &[], &["immunizations are up-to-date"]);
    check_right(Slot::SymptomName, &["fever after vaccination", "rash following the measles vaccine"]);
    check_right(Preventive, &["immunizations are up-to-date"]);
}

#[test]
fn symptoms() {
    use Slot::{
        SymptomColor as Color, SymptomDegree as Degree, SymptomName as Name, SymptomPosition as Position,
        SymptomShape as Shape, SymptomSmell as Smell, SymptomTexture as Texture, SymptomTime as Time,
    };
    check(
        Name,
        "measurement_in_symptom",
        Slot::MedicalExamination,
        &[
            "blood pressure is 120/80 mm Hg",
            "pulse 110/min",
            "hemoglobin of 8 g/dL",
            "leukocyte count is 15,000/mm3",
            "heart rate 120",
        ],
        &["temperature is 38.3°C (101°F)"],
    );
    check(
        Name,
        "examination_in_symptom",
        Slot::MedicalExamination,
        &[],
        &["physical examination shows a mass", "chest x-ray shows infiltrates"],
    );
    check(Name, "denied_in_symptom", Slot::AdditionalNotes, &[], &["no fever or chills", "denies chest pain"]);
    check(
        Name,
        "time_elsewhere",
        Time,
        &[
            "3-day history",
            "for the past 2 weeks",
            "two days ago",
            "sudden onset",
            "since yesterday",
            "twice a day",
            "several months",
        ],
        &["chronic", "progressively worsening"],
    );
    check(Degree, "time_elsewhere", Time, &["for 3 weeks"], &["intermittent"]);
    check(Shape, "color_elsewhere", Color, &["dark red", "yellow", "erythematous", "pink and white"], &[]);
    check(Name, "color_elsewhere", Color, &["yellowish-green"], &[]);
    check(Color, "shape_elsewhere", Shape, &["rash", "papules and plaques"], &[]);
    check(Color, "texture_elsewhere", Texture, &["scaly", "thick, sticky"], &[]);
    check(Name, "texture_elsewhere", Texture, &["watery"], &[]);
    check(Texture, "smell_elsewhere", Smell, &["foul-smelling", "fruity odor"], &[]);
    check(Position, "degree_elsewhere", Degree, &["severe", "8/10 in severity", "mild to moderate"], &[]);
    check(
        Degree,
        "position_elsewhere",
        Position,
        &["left knee", "right upper quadrant", "chest", "face and neck"],
        &[],
    );
    check(Name, "position_elsewhere", Position, &[], &["left knee"]);
    check_right(
        Name,
        &[
            "fever",
            "fever of 39°C",
            "dry cough",
            "sharp pain in his left knee",
            "rash",
            "yellow eyes",
            "swelling",
            "pain during intercourse",
            "2-cm nodule",
            "10 stools per day",
            "chest tightness",
            "severe headache",
            "no longer able to walk",
        ],
    );
    check_right(Time, &["3-day history", "sudden onset", "progressively worsening"]);
    check_right(Position, &["left knee", "chest", "abdominal"]);
    check_right(Degree, &["severe", "8/10", "profuse"]);
    check_right(Color, &["dark", "erythematous", "pale"]);
    check_right(Shape, &["rash", "annular plaques", "2-cm nodule"]);
    check_right(Texture, &["scaly", "firm"]);
    check_right(Smell, &["foul-smelling"]);
    let long = "a large lesion that began on the left cheek and then spread over the whole face within a few weeks";
    assert_eq!(
        BOUNDARIES.check(Position, long),
        Some(Misplaced { rule: "long_descriptor", better: None, certain: false })
    );
}

#[test]
fn known_wrong() {
    use Slot::{FamilyHistory as Family, PastDiagnosis as Diagnosis, SymptomName as Name};
    // FIXME: "the mother" may be the patient of an obstetric case.
    check(Diagnosis, "family_elsewhere", Family, &["the mother has preeclampsia"], &[]);
    // FIXME: a parent who is not said to have anything is not found.
    check_right(Diagnosis, &["colon cancer in his father"]);
    // FIXME: a contact who is ill is not told from a relative with a disease of the family.
    check(Name, "family_elsewhere", Family, &["his brother has a fever"], &[]);
    // FIXME: an allergen of one word is taken for a drug that is taken; it is left to a person.
    check(Slot::AllergicHistory, "drug_in_allergies", Slot::PastMedication, &[], &["penicillin"]);
    // FIXME: a disease of several words that is not listed is not certain.
    check(Slot::PastMedication, "diagnosis_in_medication", Diagnosis, &[], &["systemic lupus syndrome"]);
}

#[test]
fn departments() {
    check(
        Slot::AdditionalNotes,
        "department_elsewhere",
        Slot::Department,
        &["emergency department", "the dermatology clinic", "Cardiology", "department of internal medicine"],
        &["brought to the emergency department"],
    );
    check(Slot::HabitLiving, "department_elsewhere", Slot::Department, &["emergency room"], &[]);
    check_right(Slot::Department, &["emergency department"]);
    check_right(Slot::HabitLiving, &["works in the emergency department"]);
    check_right(Slot::MedicalExamination, &["In the emergency department, his temperature is 38.3°C"]);
}

#[test]
fn drugs_are_found_at_word_boundaries() {
    for (text, expected) in [
        ("takes lisinopril, metformin and aspirin", "lisinopril|metformin|aspirin"),
        ("trimethoprim-sulfamethoxazole", "trimethoprim|sulfamethoxazole"),
        ("valproic acid", "valproic acid"),
        ("insulin glargine 10 units", "insulin glargine"),
        ("beta-blockers and an ace inhibitor", "beta-blockers|ace inhibitor"),
        ("isosorbide  dinitrate", ""),
        ("newdrugolol and otherximab", "newdrugolol|otherximab"),
        ("olol pril", ""),
        ("april, imidazole", ""),
        ("aspirins aspirinx xaspirin", ""),
        ("aspirin-induced", "aspirin"),
        ("éaspirin aspirin日", ""),
        ("日 aspirin", "aspirin"),
        ("calcium and iron and cholesterol", ""),
        ("oral contraceptive pills", "oral contraceptive pills"),
        ("", ""),
    ] {
        let found: Vec<&str> = BOUNDARIES.find_drugs(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found.join("|"), expected, "{text}");
    }
    for (text, expected) in
        [("aspirin", true), (" folic acid ", true), ("aspirin 81 mg", false), ("", false), ("april", false)]
    {
        assert_eq!(BOUNDARIES.is_drug(text), expected, "{text}");
    }
}

#[test]
fn rules_are_named_once_and_patterns_compile() {
    let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len());
    assert!(
        RULES
            .iter()
            .all(|rule| !rule.summary.is_empty() && rule.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
    );
    assert!(PATTERNS.iter().all(|pattern| !pattern.as_str().is_empty()));
    for class in CLASSES {
        let words: Vec<&str> = class.split_ascii_whitespace().collect();
        assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len(), "{class}");
    }
}

#[test]
fn there_are_enough_names() {
    let file: DrugsFile = toml::from_str(DRUGS).unwrap();
    assert!(file.generic.len() >= 400, "{}", file.generic.len());
}

/// The drug file with one change, and the error.
fn check_error(from: &str, to: &str, expected: Expect) {
    assert!(DRUGS.contains(from), "{from}");
    let error = BoundaryRules::parse(&DRUGS.replacen(from, to, 1)).unwrap_err().to_string();
    // A syntax error quotes the line before it names the key.
    expected.assert_eq(error.trim_end().lines().last().unwrap());
}

#[test]
fn faulty_files() {
    check_error("version = 1", "version = 7", expect!["drugs: version: 7 is not known, it must be 1"]);
    check_error(
        "version = 1",
        "version = 1\ndrugs = []",
        expect!["unknown field `drugs`, expected one of `version`, `generic`, `brand`, `class`, `stems`, `exceptions`"],
    );
    check_error(
        "brand = [",
        "brands = [",
        expect![
            "unknown field `brands`, expected one of `version`, `generic`, `brand`, `class`, `stems`, `exceptions`"
        ],
    );
    check_error(
        "\"abacavir\"",
        "\"Abacavir\"",
        expect![[r#"drugs: generic: "Abacavir": the term must be lower-case ASCII"#]],
    );
    check_error("\"abacavir\"", "\"abatacept\"", expect![[r#"drugs: generic: "abatacept": the term is given twice"#]]);
    check_error("\"abilify\"", "\"abacavir\"", expect![[r#"drugs: brand: "abacavir": the term is given twice"#]]);
    check_error("\"mab\"", "\"ab\"", expect![[r#"drugs: stems: "ab": the stem is too short"#]]);
    check_error("\"mongrel\"", "\"april\"", expect![[r#"drugs: exceptions: "april": no stem would find the word"#]]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_value_can_be_checked(
        slot in proptest::sample::select(Slot::ALL.to_vec()),
        value in "\\PC{0,40}|(?s).{0,60}",
    ) {
        if let Some(found) = BOUNDARIES.check(slot, &value) {
            prop_assert_ne!(found.better, Some(slot));
            prop_assert!(found.better.is_some() || !found.certain);
        }
    }

    #[test]
    fn drugs_are_whole_words(
        text in "([a-z]{1,4}(pril|olol|mab)|aspirin|valproic|acid|insulin|é|日| |-|/|,){0,12}",
    ) {
        let mut end = 0;
        for range in BOUNDARIES.find_drugs(&text) {
            prop_assert!(range.start >= end && !range.is_empty());
            prop_assert!(!text[..range.start].ends_with(char::is_alphanumeric));
            prop_assert!(!text[range.end..].starts_with(char::is_alphanumeric));
            prop_assert!(BOUNDARIES.is_drug(&text[range.clone()]));
            end = range.end;
        }
    }
}
