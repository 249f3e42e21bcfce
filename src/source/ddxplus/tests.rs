//! A small release of our own, in both languages, and the published tables and rows where they are at hand.

use super::release::identify;
use super::*;
use crate::record::vector::PatientVector;
use crate::record::{Hash, Provenance, Rights};
use expect_test::expect;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const WORDING: &str = include_str!("../../../pipelines/lexicon/ddxplus.toml");
const CORRECTIONS: &str = include_str!("../../../pipelines/lexicon/ddxplus_icd10.toml");
const FRENCH: &str = include_str!("../../../pipelines/lexicon/ddxplus_french.toml");
const HEADER: &str = "AGE,DIFFERENTIAL_DIAGNOSIS,SEX,PATHOLOGY,EVIDENCES,INITIAL_EVIDENCE";

fn resources() -> Resources {
    Resources {
        wording: WordingRules::parse("ddxplus.toml", WORDING).unwrap(),
        codes: Codes::parse("ddxplus_icd10.toml", CORRECTIONS).unwrap(),
        french: FrenchNames::parse("ddxplus_french.toml", FRENCH).unwrap(),
    }
}

fn evidence(name: &str, group: &str, english: &str, french: &str, antecedent: bool) -> serde_json::Value {
    json!({"name": name, "code_question": group, "question_en": english, "question_fr": french, "is_antecedent": antecedent,
        "default_value": 0, "value_meaning": {}, "possible-values": [], "data_type": "B"})
}

fn with_values(
    mut evidence: serde_json::Value,
    kind: &str,
    default: &str,
    values: &[(&str, &str, &str)],
) -> serde_json::Value {
    evidence["data_type"] = kind.into();
    evidence["default_value"] = default.into();
    evidence["possible-values"] = values.iter().map(|(value, ..)| *value).collect();
    for (value, english, french) in values {
        evidence["value_meaning"][*value] = json!({"en": english, "fr": french});
    }
    evidence
}

fn scale(mut evidence: serde_json::Value) -> serde_json::Value {
    evidence["data_type"] = "C".into();
    evidence["possible-values"] = (0..=10).collect();
    evidence
}

/// The evidences of the release, in the order of its file.
fn evidences() -> String {
    let places = [
        ("V_1", "nowhere", "nulle part"),
        ("V_2", "cheek(R)", "joue(D)"),
        ("V_3", "forehead", "front"),
        ("V_4", "hip(L)", "hanche(G)"),
    ];
    let entries = [
        evidence("E_201", "E_201", "Do you have a cough?", "Avez-vous de la toux?", false),
        evidence("E_53", "E_53", "Do you have pain somewhere, wherever it is?", "Avez-vous une douleur?", false),
        with_values(
            evidence("E_54", "E_53", "Characterize your pain:", "Caractérisez votre douleur:", false),
            "M",
            "V_11",
            &[("V_11", "NA", "NA"), ("V_12", "burning", "une brûlure"), ("V_13", "sharp", "vive")],
        ),
        with_values(
            evidence("E_55", "E_53", "Do you feel pain somewhere?", "Avez-vous de la douleur quelque part?", false),
            "M",
            "V_1",
            &places,
        ),
        scale(evidence("E_56", "E_53", "How intense is the pain?", "Quelle est l’intensité de la douleur?", false)),
        with_values(
            evidence(
                "E_57",
                "E_53",
                "Does the pain radiate to another location?",
                "Est-ce que la douleur se propage vers un autre endroit?",
                false,
            ),
            "M",
            "V_1",
            &places,
        ),
        scale(evidence(
            "E_59",
            "E_53",
            "How fast did the pain appear?",
            "À quelle vitesse la douleur est-elle apparue ?",
            false,
        )),
        evidence("E_91", "E_91", "Do you have a fever?", "Avez-vous de la fièvre?", false),
        evidence("E_79", "E_79", "Do you smoke?", "Fumez-vous?", true),
        evidence(
            "E_87",
            "E_85",
            "Do you have any family members who have asthma?",
            "Avez-vous des membres de votre famille qui ont de l'asthme?",
            true,
        ),
        with_values(
            evidence(
                "E_204",
                "E_204",
                "Have you traveled in the last month?",
                "Avez-vous voyagé dans les 4 dernières semaines?",
                true,
            ),
            "C",
            "V_10",
            &[("V_10", "N", "N"), ("V_14", "North Africa", "Afrique du Nord")],
        ),
    ];
    object(entries.iter().map(|entry| (entry["name"].as_str().unwrap(), entry)))
}

fn condition(name: &str, french: &str, english: &str, code: &str) -> serde_json::Value {
    json!({"condition_name": name, "cond-name-fr": french, "cond-name-eng": english, "icd10-id": code,
        "symptoms": {"E_201": {}, "E_53": {}}, "antecedents": {"E_79": {}}, "severity": 3})
}

fn conditions() -> String {
    let entries = [
        condition("Test influenza", "Grippe essai", "Test influenza", "j11.1"),
        condition("SLE", "Lupus", "SLE", "M34"),
        condition("Chagas", "Chagas", "Chagas", "B57"),
        condition("Essai's syndrome", "Syndrome d'essai", "Essai's syndrome", "b00, b01"),
    ];
    object(entries.iter().map(|entry| (entry["condition_name"].as_str().unwrap(), entry)))
}

/// In the order given: a map of JSON values would sort its keys.
fn object<'a>(entries: impl Iterator<Item = (&'a str, &'a serde_json::Value)>) -> String {
    let entries: Vec<String> = entries.map(|(key, entry)| format!("{}: {entry}", json!(key))).collect();
    format!("{{{}}}", entries.join(",\n"))
}

fn release(language: Language) -> Release {
    let resources = resources();
    let tables =
        Tables::parse(("e.json", evidences().as_bytes()), ("c.json", conditions().as_bytes()), &resources.codes)
            .unwrap();
    let names = ConditionNames::new(&tables);
    Release::new(tables, names, language, &resources, RowLimits::default())
}

fn row<'a>(pathology: &'a str, evidences: &'a str, initial: &'a str, differential: &'a str) -> PatientRow<'a> {
    PatientRow {
        age: "29".into(),
        differential: differential.into(),
        sex: "F".into(),
        pathology: pathology.into(),
        evidences: evidences.into(),
        initial_evidence: initial.into(),
    }
}

fn record(release: &Release, row: &PatientRow<'_>) -> Result<PatientVector, RowFault> {
    let found = release.look_up(row)?;
    let provenance = Provenance {
        source: "ddxplus".into(),
        file: "ddxplus/test.csv".into(),
        line: 2,
        raw_sha256: Hash::of(b""),
        rights: Rights::unknown(),
    };
    Ok(release.record(&found, release.identify("ddxplus", row), provenance, Some("test")))
}

fn shown(vector: &PatientVector) -> String {
    let mut value = serde_json::to_value(vector).unwrap();
    value.as_object_mut().unwrap().remove("provenance");
    serde_json::to_string_pretty(&without_empty(value)).unwrap()
}

/// Without nulls and empty lists, which say nothing.
fn without_empty(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(object) => {
            let object = object.into_iter().map(|(key, value)| (key, without_empty(value)));
            let is_empty = |value: &serde_json::Value| value.is_null() || *value == json!([]) || *value == json!({});
            serde_json::Value::Object(object.filter(|(_, value)| !is_empty(value)).collect())
        }
        serde_json::Value::Array(list) => serde_json::Value::Array(list.into_iter().map(without_empty).collect()),
        other => other,
    }
}

#[test]
fn an_english_row_becomes_a_patient() {
    let evidences = "['E_53', 'E_54_@_V_13', 'E_54_@_V_12', 'E_55_@_V_2', 'E_56_@_4', 'E_57_@_V_1', 'E_59_@_0', 'E_79', 'E_87', 'E_201', 'E_204_@_V_14']";
    let row = row("SLE", evidences, "E_201", "[['Test influenza', 0.25], ['SLE', 0.5], ['Chagas', 0.25]]");
    let vector = record(&release(Language::English), &row).unwrap();
    expect![[r#"
        {
          "facts": {
            "absent_antecedents": {
              "basis": "closed_world"
            },
            "antecedents": [
              {
                "basis": "recorded",
                "code": "E_79",
                "name": "smoking",
                "negation": "present",
                "statement": "I smoke."
              },
              {
                "basis": "recorded",
                "code": "E_204",
                "name": "travel in the last month",
                "negation": "present",
                "statement": "I have traveled in the last month.",
                "values": [
                  {
                    "code": "E_204",
                    "meaning": "North Africa",
                    "name": "travel in the last month",
                    "value": "V_14"
                  }
                ]
              }
            ],
            "demographics": {
              "age_years": 29.0,
              "sex": "female"
            },
            "family_history": [
              {
                "findings": [
                  {
                    "basis": "recorded",
                    "code": "E_87",
                    "name": "asthma",
                    "negation": "present",
                    "statement": "I have family members who have asthma."
                  }
                ],
                "member": "family"
              }
            ]
          },
          "ground_truth": {
            "differential": [
              {
                "icd10": "M32.9",
                "label": "SLE",
                "probability": 0.5,
                "provenance_tier": "ddxplus_gold",
                "rank": 1
              },
              {
                "icd10": "J11.1",
                "label": "Test influenza",
                "probability": 0.25,
                "provenance_tier": "ddxplus_gold",
                "rank": 2
              },
              {
                "icd10": "B57",
                "label": "Chagas",
                "probability": 0.25,
                "provenance_tier": "ddxplus_gold",
                "rank": 3
              }
            ],
            "primary": {
              "basis": "labelled",
              "icd10": "M32.9",
              "icd10_source": "M34",
              "icd10_state": "corrected",
              "label": "SLE",
              "label_english": "SLE",
              "provenance_tier": "ddxplus_gold",
              "severity": 3
            }
          },
          "origin": {
            "dataset": "ddxplus",
            "language": "en",
            "stratum": "test"
          },
          "presentation": {
            "absent_symptoms": {
              "basis": "closed_world",
              "codes": [
                "E_91"
              ],
              "names": [
                "fever"
              ]
            },
            "chief_complaint": [
              {
                "symptom": {
                  "basis": "recorded",
                  "code": "E_201",
                  "name": "cough",
                  "negation": "present",
                  "statement": "I have a cough."
                }
              }
            ],
            "symptoms": [
              {
                "experience": {
                  "characterization": {
                    "descriptors": [
                      {
                        "code": "V_13",
                        "name": "sharp"
                      },
                      {
                        "code": "V_12",
                        "name": "burning"
                      }
                    ],
                    "severity": 4
                  },
                  "locality": [
                    {
                      "code": "V_2",
                      "name": "right cheek"
                    }
                  ]
                },
                "symptom": {
                  "basis": "recorded",
                  "code": "E_53",
                  "name": "pain",
                  "negation": "present",
                  "statement": "I have pain somewhere, wherever it is."
                }
              },
              {
                "symptom": {
                  "basis": "recorded",
                  "code": "E_201",
                  "name": "cough",
                  "negation": "present",
                  "statement": "I have a cough."
                }
              }
            ]
          },
          "record_id": "ddxplus:e1b21299b48572ae"
        }"#]]
    .assert_eq(&shown(&vector));
}

#[test]
fn a_french_row_becomes_a_patient() {
    let evidences = "['douleurxx', 'douleurxx_carac_@_une_brûlure', 'douleurxx_endroitducorps_@_joue_D_', 'douleurxx_intens_@_4', 'toux', 'trav1_@_N']";
    let row = row("Syndrome d'essai", evidences, "toux", "[[\"Syndrome d'essai\", 1.0]]");
    let vector = record(&release(Language::French), &row).unwrap();
    expect![[r#"
        {
          "facts": {
            "absent_antecedents": {
              "basis": "closed_world",
              "codes": [
                "E_79",
                "E_87",
                "E_204"
              ],
              "names": [
                "tabac",
                "asthme (famille)",
                "voyage dans les 4 dernières semaines"
              ]
            },
            "demographics": {
              "age_years": 29.0,
              "sex": "female"
            }
          },
          "ground_truth": {
            "differential": [
              {
                "label": "Syndrome d'essai",
                "probability": 1.0,
                "provenance_tier": "ddxplus_gold",
                "rank": 1
              }
            ],
            "primary": {
              "basis": "labelled",
              "icd10_source": "b00, b01",
              "icd10_state": "ambiguous",
              "label": "Syndrome d'essai",
              "label_english": "Essai's syndrome",
              "provenance_tier": "ddxplus_gold",
              "severity": 3
            }
          },
          "origin": {
            "dataset": "ddxplus",
            "language": "fr",
            "stratum": "test"
          },
          "presentation": {
            "absent_symptoms": {
              "basis": "closed_world",
              "codes": [
                "E_91"
              ],
              "names": [
                "fièvre"
              ]
            },
            "chief_complaint": [
              {
                "symptom": {
                  "basis": "recorded",
                  "code": "E_201",
                  "name": "toux",
                  "negation": "present",
                  "statement": "J'ai de la toux."
                }
              }
            ],
            "symptoms": [
              {
                "experience": {
                  "characterization": {
                    "descriptors": [
                      {
                        "code": "V_12",
                        "name": "une brûlure"
                      }
                    ],
                    "severity": 4
                  },
                  "locality": [
                    {
                      "code": "V_2",
                      "name": "joue à droite"
                    }
                  ]
                },
                "symptom": {
                  "basis": "recorded",
                  "code": "E_53",
                  "name": "douleur",
                  "negation": "present",
                  "statement": "J'ai une douleur."
                }
              },
              {
                "symptom": {
                  "basis": "recorded",
                  "code": "E_201",
                  "name": "toux",
                  "negation": "present",
                  "statement": "J'ai de la toux."
                }
              }
            ]
          },
          "record_id": "ddxplus:8a77b03cfc7debff"
        }"#]]
    .assert_eq(&shown(&vector));
}

/// Case ddx-02: a token whose value equals the default is no finding; statements are of true findings alone.
#[test]
fn ddx_02_a_default_value_says_no() {
    let release = release(Language::English);
    let evidences = "['E_53', 'E_54_@_V_11', 'E_55_@_V_1', 'E_55_@_V_3', 'E_56_@_0', 'E_204_@_V_10']";
    let vector = record(&release, &row("SLE", evidences, "E_53", "[['SLE', 1.0]]")).unwrap();
    let [pain] = vector.presentation.symptoms.as_slice() else { panic!("{:?}", vector.presentation.symptoms) };
    let places: Vec<&str> = pain.experience.locality.iter().map(|place| place.name.as_str()).collect();
    assert_eq!(places, ["forehead"]);
    assert_eq!(pain.experience.characterization, Default::default());
    assert!(pain.symptom.values.is_empty() && vector.facts.antecedents.is_empty());
    let text = serde_json::to_string(&vector).unwrap();
    assert!(!text.contains("\"NA\"") && !text.contains("nowhere") && !text.contains("\"N\""), "{text}");
    // Not denied, but negative in a closed world; details and scales are in neither list.
    let absent = vector.presentation.absent_symptoms.unwrap();
    assert_eq!(absent.codes, ["E_201", "E_91"]);
    assert_eq!(vector.facts.absent_antecedents.unwrap().codes, ["E_79", "E_87", "E_204"]);
    assert_eq!(release.evidences()[9].name(), "asthma in the family");
    // The patient cannot come with what is not there.
    let fault = record(&release, &row("SLE", evidences, "E_204", "[['SLE', 1.0]]")).unwrap_err();
    assert_eq!(fault.reason, "initial_not_listed");
}

/// Case ddx-05: names in either language lead to one condition; the severity counts downward; the code is the corrected one.
#[test]
fn ddx_05_rows_are_joined_by_the_names_of_their_language() {
    let french = release(Language::French);
    let vector = record(&french, &row("Grippe essai", "['toux']", "toux", "[['Grippe essai', 1.0]]")).unwrap();
    let primary = &vector.ground_truth.primary;
    assert_eq!((primary.label.as_str(), primary.label_english.as_deref()), ("Grippe essai", Some("Test influenza")));
    assert_eq!((primary.icd10.as_deref(), primary.severity), (Some("J11.1"), Some(3)));
    let vector = record(&french, &row("Lupus", "['toux']", "toux", "[['Lupus', 1.0]]")).unwrap();
    let primary = &vector.ground_truth.primary;
    assert_eq!((primary.icd10.as_deref(), primary.icd10_source.as_deref()), (Some("M32.9"), Some("M34")));
    let fault = french.look_up(&row("Grippe", "['toux']", "toux", "[]")).unwrap_err();
    assert_eq!((fault.reason, fault.detail.as_str()), ("unknown_pathology", "`Grippe` is no condition of the table"));
    // The differential is in the truth alone.
    let facts = serde_json::to_string(&(&vector.facts, &vector.presentation)).unwrap();
    assert!(!facts.contains("Lupus"));
    // A name of two conditions is refused.
    let resources = resources();
    let twice = conditions().replace("\"cond-name-fr\":\"Lupus\"", "\"cond-name-fr\":\"Grippe essai\"");
    let tables = Tables::parse(("e", evidences().as_bytes()), ("c", twice.as_bytes()), &resources.codes).unwrap();
    let names = ConditionNames::new(&tables);
    let release = Release::new(tables, names, Language::French, &resources, RowLimits::default());
    let fault = release.look_up(&row("Grippe essai", "['toux']", "toux", "[]")).unwrap_err();
    assert!(fault.detail.contains("several conditions"), "{}", fault.detail);
}

/// Case ddx-01: what is not in the tables is an error that names it, never an empty text.
#[test]
fn ddx_01_faults_of_rows_are_named() {
    let release = release(Language::English);
    let one = "[['SLE', 1.0]]";
    let mut account = String::new();
    let mut tell = |row: &PatientRow<'_>| match record(&release, row) {
        Ok(vector) => writeln!(account, "kept {:?}", vector.flags).unwrap(),
        Err(fault) => writeln!(account, "{} {}: {}", fault.exit.as_str(), fault.reason, fault.detail).unwrap(),
    };
    for evidences in [
        "['E_1', 'E_201']",
        "['E_201', 'E_55_@_V_9']",
        "['E_201', 'E_56_@_11']",
        "['E_201_@_V_1']",
        "['E_201', 'E_55']",
        "__import__('os').getcwd()",
        "[['E_201']]",
        "['E_91']",
        "['E_201', 'E_201']",
        "['E_201', 'E_55_@_V_2']",
        "['E_201', 'E_204_@_V_14', 'E_56_@_3', 'E_56_@_4', 'E_53']",
    ] {
        tell(&row("SLE", evidences, "E_201", one));
    }
    for differential in
        ["[['SLE', 0.5]]", "[['Chagas', 1.0]]", "[['SLE', 1.5]]", "[['Sle', 1.0]]", "[['SLE']]", "['SLE', 1.0]", "[]"]
    {
        tell(&row("SLE", "['E_201']", "E_201", differential));
    }
    for initial in ["E_79", "E_204_@_V_14", "E_55", "nothing"] {
        tell(&row("SLE", "['E_201', 'E_79', 'E_204_@_V_14', 'E_53', 'E_55_@_V_2']", initial, one));
    }
    for (age, sex) in [("140", "F"), ("-1", "F"), ("29.5", "F"), ("", "F"), ("0", "f")] {
        let row = PatientRow { age: age.into(), sex: sex.into(), ..row("SLE", "['E_201']", "E_201", one) };
        tell(&row);
    }
    expect![[r#"
        quarantined unknown_evidence: `E_1` is no evidence of the table
        quarantined unknown_value: `E_55_@_V_9`: `V_9` is no value of `E_55`
        quarantined unknown_value: `E_56_@_11`: `11` is no value of `E_56`
        quarantined value_of_binary: `E_201_@_V_1` has a value, though its evidence is binary
        quarantined missing_value: `E_55` has no value, though its evidence is not binary
        quarantined invalid_literal: EVIDENCES, character 1: a list is expected, not `__import__('os').getcwd…`
        quarantined invalid_literal: EVIDENCES, character 2: a text in quotes is expected, not `['E_201']]`
        quarantined initial_not_listed: INITIAL_EVIDENCE is `E_201`, which EVIDENCES do not have as present
        kept ["repeated_token"]
        kept ["child_without_parent"]
        kept ["several_values"]
        kept ["probabilities_do_not_sum"]
        kept ["pathology_not_in_differential"]
        quarantined invalid_probability: the probability of `SLE` is 1.5
        quarantined unknown_pathology: `Sle` is no condition of the table
        quarantined invalid_literal: DIFFERENTIAL_DIAGNOSIS, character 9: a number is expected, not `]`
        quarantined invalid_literal: DIFFERENTIAL_DIAGNOSIS, character 2: a pair is expected, not `'SLE', 1.0]`
        kept ["pathology_not_in_differential", "probabilities_do_not_sum"]
        kept ["complaint_is_antecedent"]
        kept ["complaint_is_antecedent", "initial_not_binary"]
        kept ["initial_not_binary"]
        quarantined unknown_evidence: `nothing` is no evidence of the table
        quarantined invalid_age: AGE is `140`, not a whole number from 0 to 130
        quarantined invalid_age: AGE is `-1`, not a whole number from 0 to 130
        quarantined invalid_age: AGE is `29.5`, not a whole number from 0 to 130
        quarantined invalid_age: AGE is ``, not a whole number from 0 to 130
        quarantined invalid_sex: SEX is `f`, not M or F
    "#]]
    .assert_eq(&account);
}

#[test]
fn details_without_their_parent_stand_alone() {
    let release = release(Language::English);
    let vector = record(&release, &row("SLE", "['E_55_@_V_4', 'E_56_@_3']", "E_55", "[['SLE', 1.0]]")).unwrap();
    assert_eq!(vector.flags, ["child_without_parent", "initial_not_binary"]);
    let names: Vec<&str> = vector.presentation.symptoms.iter().map(|symptom| symptom.symptom.name.as_str()).collect();
    assert_eq!(names, ["place of the pain", "intensity of the pain"]);
    assert_eq!(vector.presentation.symptoms[0].experience.locality[0].name, "left hip");
    // Somebody told of a pain, so that the closed world does not deny it.
    assert_eq!(vector.presentation.absent_symptoms.unwrap().codes, ["E_201", "E_91"]);
}

#[test]
fn tables_that_differ_are_refused_with_file_and_key() {
    let codes = resources().codes;
    let mut account = String::new();
    for (from, to) in [
        ("\"default_value\":\"V_1\"", "\"default_value\":\"V_99\""),
        ("\"data_type\":\"M\"", "\"data_type\":\"X\""),
        ("\"name\":\"E_53\"", "\"name\":\"E_52\""),
        ("\"E_201\": {", "\"E_53\": {"),
        ("\"code_question\":\"E_53\",\"data_type\":\"M\"", "\"code_question\":\"E_52\",\"data_type\":\"M\""),
        ("\"V_3\":{", "\"V_33\":{"),
    ] {
        let changed = evidences().replacen(from, to, 1);
        assert_ne!(changed, evidences(), "{from}");
        let error = Tables::parse(("en/e.json", changed.as_bytes()), ("en/c.json", conditions().as_bytes()), &codes);
        writeln!(account, "{}", error.unwrap_err()).unwrap();
    }
    for (from, to) in [("\"E_79\":{}", "\"E_80\":{}"), ("\"severity\":3", "\"severity\":0"), ("M34", "M35")] {
        let changed = conditions().replacen(from, to, 1);
        let error = Tables::parse(("en/e.json", evidences().as_bytes()), ("en/c.json", changed.as_bytes()), &codes);
        writeln!(account, "{}", error.unwrap_err()).unwrap();
    }
    expect![[r#"
        en/e.json: `E_55`: default_value "V_99" is none of the possible-values
        en/e.json: `E_54`: data_type is `X`, not B, C or M
        en/e.json: `E_53`: name is `E_52`, not its key
        en/e.json: the key `E_53` stands twice at line 2 column 6
        en/e.json: `E_54`: code_question `E_52` is no evidence of the table
        en/e.json: `E_55`: value_meaning does not say what `V_3` means
        en/c.json: `Test influenza`: the symptom or antecedent `E_80` is no evidence of the table
        en/c.json: `Test influenza`: severity is 0, not 1 to 5
        ddxplus_icd10.toml: the correction of `SLE` is of the published code `M34`, but en/c.json has `M35`
    "#]]
    .assert_eq(&account);
}

#[test]
fn ids_are_those_of_the_canonical_identity() {
    let row = row("Syndrome d'essai", "['E_201',\t\"l'eau\"]", "E_201\u{1}\u{8}\u{c}\\", "[[\"é\", 1.0]]\r\n");
    let identity = json!({"age": row.age, "sex": row.sex, "pathology": row.pathology, "evidences": row.evidences,
        "initial_evidence": row.initial_evidence, "differential": row.differential, "language": "fr"});
    let expected = RecordId::from_identity("ddxplus", &identity).unwrap();
    assert_eq!(identify("ddxplus", &row, Language::French), expected);
    assert_ne!(identify("ddxplus", &row, Language::English), expected);
}

#[test]
fn names_of_files_tell_the_split() {
    for (path, split) in [
        ("d/en/release_train_patients.zip", Some("train")),
        ("d/validate.csv.gz", Some("validate")),
        ("d/release_test_patients", Some("test")),
        ("d/release_test_patients_head1500.csv", Some("test")),
        ("d/latest.csv", None),
        ("d/train_test.csv", None),
    ] {
        assert_eq!(split_of(path), split, "{path}");
    }
}

/// A source of files in a folder of their own.
fn source(folder: &Path, files: &[(&str, &[u8])]) -> RawSource {
    let mut raw = Vec::new();
    for (name, bytes) in files {
        let readable = folder.join(name);
        std::fs::create_dir_all(readable.parent().unwrap()).unwrap();
        std::fs::write(&readable, bytes).unwrap();
        let sha256 = Hash::of(bytes);
        raw.push(RawFile { path: format!("ddxplus/{name}"), sha256, bytes: bytes.len() as u64, readable });
    }
    RawSource { name: "ddxplus".into(), rights: Rights::unknown(), files: raw }
}

fn cut_all(source: &RawSource) -> anyhow::Result<Cut> {
    let limits = ShardLimits { records: 2, bytes: 1 << 20, limit: None };
    cut(source, limits, 10_000, |files| Ok(Arc::new(files.load(&resources(), RowLimits::default())?)))
}

#[test]
fn releases_are_cut_by_folder_and_mixed_ones_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (evidences, conditions) = (evidences(), conditions());
    let tables = |name: &str| {
        [
            (format!("{name}/release_evidences.json"), evidences.clone()),
            (format!("{name}/release_conditions.json"), conditions.clone()),
        ]
    };
    let english =
        format!("{HEADER}\n3,\"[['SLE', 1.0]]\",F,SLE,['E_201'],E_201\n3,\"[['SLE', 1.0]]\",F,SLE,['E_201'],E_201\n");
    let french = format!(
        "{HEADER}\r\n3,\"[['Chagas', 1.0]]\",F,Chagas,['toux'],toux\r\n3,\"[['Lupus', 1.0]]\",F,Lupus,['toux'],toux\r\n"
    );
    let mut files: Vec<(String, String)> = tables("en").into_iter().chain(tables("fr")).collect();
    files.push(("en/release_test_patients.csv".into(), english.clone()));
    files.push(("en/release_train_patients".into(), english.clone()));
    files.push(("fr/train.csv".into(), french.clone()));
    fn borrow(files: &[(String, String)]) -> Vec<(&str, &[u8])> {
        files.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect()
    }
    let all = source(folder.path(), &borrow(&files));
    let cut = cut_all(&all).unwrap();
    let mut account = String::new();
    for piece in cut.slices.iter().flat_map(|slice| &slice.pieces) {
        writeln!(
            account,
            "{} line {} {} rows, repeats {:?}",
            piece.file, piece.first_line, piece.n_records, piece.repeats
        )
        .unwrap();
    }
    expect![[r#"
        ddxplus/en/release_test_patients.csv line 2 2 rows, repeats {3: 2}
        ddxplus/en/release_train_patients line 2 2 rows, repeats {2: 3, 3: 4}
        ddxplus/fr/train.csv line 2 2 rows, repeats {}
    "#]]
    .assert_eq(&account);

    let refused = |name: &str, text: &str| {
        let mut files = files.clone();
        files.retain(|(known, _)| known != name);
        files.push((name.to_owned(), text.to_owned()));
        cut_all(&source(folder.path(), &borrow(&files))).unwrap_err().to_string()
    };
    let mixed = english.clone() + "3,\"[['Lupus', 1.0]]\",F,Lupus,['E_201'],E_201\n";
    let renamed = "age,top5_diagnoses,sex,diagnosis,features,feature_id\n";
    let errors = [
        refused("en/release_test_patients.csv", &mixed),
        refused("en/release_test_patients.csv", renamed),
        refused("en/release_test_patients.csv", &format!("{english}3,\"[['SLE', 1.0")),
        refused("en/release_test_patients", &english),
        refused("en/other.json", "{}"),
        refused("test.csv", &english),
    ];
    expect![[r#"
        ddxplus/en/release_test_patients.csv:4: `Lupus` is French and the first patients of ddxplus/en are English: each language needs a folder of its own, with its tables
        ddxplus/en/release_test_patients.csv:1: the header is `age,top5_diagnoses,sex,diagnosis,features,feature_id`, without AGE, DIFFERENTIAL_DIAGNOSIS, SEX, PATHOLOGY, EVIDENCES, INITIAL_EVIDENCE; patients of DDXPlus have the columns AGE,DIFFERENTIAL_DIAGNOSIS,SEX,PATHOLOGY,EVIDENCES,INITIAL_EVIDENCE. A file with other names is not read, since nothing says that they mean the same
        ddxplus/en/release_test_patients.csv:4: a quote in the record that begins here is never closed; everything after it would be read as one field
        ddxplus/en/release_test_patients.csv and ddxplus/en/release_test_patients are the same patients in two forms; keep one
        ddxplus/en/other.json: it is neither release_evidences.json nor release_conditions.json, and patients are CSV or Parquet
        ddxplus has patients but no release_evidences.json: a release is read with its own tables
    "#]].assert_eq(&(errors.join("\n") + "\n"));
}

fn samples() -> Option<PathBuf> {
    let folder = std::env::var_os("CASEMILL_DDXPLUS_SAMPLES").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: CASEMILL_DDXPLUS_SAMPLES names no folder with the published tables and rows");
    }
    folder
}

/// The published tables load whole, and every question has a statement and a name in both languages.
#[test]
fn the_published_tables_load_whole() {
    let Some(folder) = samples() else { return };
    let resources = resources();
    let read = |name: &str| std::fs::read(folder.join("en").join(name)).unwrap();
    let (evidences, conditions) = (read("release_evidences.json"), read("release_conditions.json"));
    for language in [Language::English, Language::French] {
        let tables = Tables::parse(("e", &evidences), ("c", &conditions), &resources.codes).unwrap();
        let count = |kind| tables.evidences.iter().filter(|evidence| evidence.evidence_type == kind).count();
        use tables::EvidenceType::{Binary, Categorical, MultiChoice};
        assert_eq!((count(Binary), count(Categorical), count(MultiChoice)), (208, 10, 5));
        assert_eq!(tables.conditions.len(), 49);
        assert!(tables.conditions.iter().all(|condition| condition.code.icd10.is_some()));
        let names = ConditionNames::new(&tables);
        let release = Release::new(tables, names, language, &resources, RowLimits::default());
        assert_eq!(release.without_statement, Vec::<String>::new());
        let mut seen = BTreeSet::new();
        for evidence in release.evidences() {
            let (male, female) = evidence.statements();
            println!("{} {} | {male:?} | {female:?}", evidence.code(), evidence.name());
            assert!(!evidence.name().contains('?'), "{}", evidence.name());
            seen.insert(evidence.name().to_owned());
        }
        println!("{} names of {} evidences", seen.len(), release.evidences().len());
    }
}

/// Every token of the published French rows is accounted for.
#[test]
fn the_published_french_rows_convert() {
    let Some(folder) = samples() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let files = [
        ("release_evidences.json", read("en/release_evidences.json")),
        ("release_conditions.json", read("en/release_conditions.json")),
        ("release_test_patients_head1500.csv", read("fr/release_test_patients_head1500.csv")),
        ("release_validate_patients_head500.csv", read("fr/release_validate_patients_head500.csv")),
    ];
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    let source = source(scratch.path(), &files);
    let releases = releases(&source).unwrap();
    let [files] = releases.as_slice() else { panic!("one release") };
    let release = files.load(&resources(), RowLimits::default()).unwrap();
    assert_eq!(release.language, Language::French);
    let (mut n_rows, mut n_tokens, mut n_no, mut n_shown, mut n_flags) = (0, 0, 0, 0, 0);
    for file in &files.patients {
        let mut rows = PatientFile::open(file, None, 1 << 20).unwrap();
        let form = rows.form();
        while let Some((position, line)) = rows.next_row(file).unwrap() {
            let row = form.row(&line, 1 << 20).unwrap();
            let written = row.evidences.matches("', '").count() + 1;
            let found = release.look_up(&row).unwrap_or_else(|fault| panic!("line {}: {fault:?}", position.line));
            let no = found.listed.iter().filter(|listed| !listed.is_present()).count();
            assert_eq!(found.listed.len(), written, "line {}", position.line);
            let vector = record(&release, &row).unwrap();
            let mut shown = vector.facts.antecedents.iter().map(|finding| finding.values.len().max(1)).sum::<usize>();
            shown += vector.facts.family_history.iter().map(|member| member.findings.len()).sum::<usize>();
            for symptom in &vector.presentation.symptoms {
                let experience = &symptom.experience;
                let character = &experience.characterization;
                shown += 1 + symptom.symptom.values.len() + experience.locality.len() + experience.radiation.len();
                shown +=
                    character.descriptors.len() + character.severity.iter().len() + character.precision.iter().len();
                shown += experience.temporality.onset_speed.iter().len();
                // A detail that stands alone is its symptom and its value.
                let has_own = symptom.symptom.code.as_deref().is_some_and(|code| {
                    release.evidences().iter().any(|evidence| evidence.code() == code && !evidence.values.is_empty())
                });
                shown -= usize::from(has_own);
            }
            assert_eq!(shown + no, written, "line {}", position.line);
            (n_rows, n_tokens, n_no, n_shown) = (n_rows + 1, n_tokens + written, n_no + no, n_shown + shown);
            n_flags += usize::from(!vector.flags.is_empty());
        }
    }
    println!("{n_rows} rows, {n_tokens} tokens: {n_shown} shown, {n_no} say no; {n_flags} rows with flags");
    assert_eq!((n_rows, n_tokens), (2000, 19_537));
}
