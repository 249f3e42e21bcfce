//! `casemill agreement`: labels of people against a column of a release, through the command line.

use crate::support::Scratch;
use casemill::difficulty::Band;
use casemill::record::release::TextRow;
use casemill::record::slots::Judgement;
use casemill::record::{Hash, Row, to_batch};
use casemill::store::parquet;
use expect_test::expect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The columns of a case that labels are compared with.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct SmallCase {
    case_id: String,
    specialty: Option<String>,
    judgement: Option<Judgement>,
    difficulty: Option<Band>,
    n_rejected_values: u32,
}

impl Row for SmallCase {
    const NAME: &'static str = "small_case";
    const TITLE: &'static str = "A case with few columns.";
}

/// Table 8 of MedRoundsQA as a release of 91 cases, the last without difficulty, in two parts, and as a file of labels.
fn table_8() -> Scratch {
    let scratch = Scratch::empty();
    let mut cases = Vec::new();
    let mut labels = "question_sha256,label,annotator\n".to_owned();
    for (physicians, row) in Band::ALL.into_iter().zip([[27, 3, 0], [2, 25, 3], [0, 2, 28]]) {
        for (automatic, n) in Band::ALL.into_iter().zip(row) {
            for _ in 0..n {
                let number = cases.len();
                labels += &format!("{},{},anna\n", Hash::of(format!("stem {number}").as_bytes()), physicians.as_str());
                cases.push(SmallCase {
                    case_id: format!("medrounds-{number:016x}"),
                    specialty: Some("Neurology".to_owned()),
                    judgement: Some(Judgement { score: 4, reason: "…".to_owned(), judge: "openai/x".to_owned() }),
                    difficulty: Some(automatic),
                    n_rejected_values: 0,
                });
            }
        }
    }
    let last =
        SmallCase { case_id: format!("medrounds-{:016x}", 90), difficulty: None, judgement: None, ..cases[0].clone() };
    cases.push(last);
    labels += &format!("{},,ben\n", Hash::of(b"elsewhere"));
    let text = |(number, case): (usize, &SmallCase)| TextRow {
        case_id: case.case_id.clone(),
        text_id: "stem".to_owned(),
        text: format!("stem {number}"),
    };
    let texts: Vec<TextRow> = cases.iter().enumerate().map(text).collect();
    std::fs::create_dir_all(scratch.path("release/cases")).unwrap();
    parquet::write_new(&scratch.path("release/texts.parquet"), &to_batch(&texts).unwrap()).unwrap();
    for (part, cases) in cases.chunks(50).enumerate() {
        let path = scratch.path(&format!("release/cases/part-{part:05}.parquet"));
        parquet::write_new(&path, &to_batch(cases).unwrap()).unwrap();
    }
    scratch.write("physicians.csv", labels);
    scratch
}

#[test]
fn table_8_through_the_command_line() {
    let scratch = table_8();
    let shown = scratch.run_expecting(0, &["agreement", "physicians.csv", "release"]).stdout;
    expect![[r#"
        physicians.csv against difficulty of release
        90 cases compared, 1 annotator
        not compared: 1 cases of the release without a label
        not compared: 1 rows whose label is still empty

        exact agreement      88.9 % (80 of 90)
        adjacent agreement   100.0 %
        Cohen's kappa        0.83
          linear weights     0.88
          quadratic weights  0.92

        rows: people; columns: difficulty
                easy  medium  hard
        easy      27       3     0
        medium     2      25     3
        hard       0       2    28
    "#]]
    .assert_eq(&shown);
    let json = scratch.json(&["agreement", "physicians.csv", "release"]);
    assert_eq!((json["n_compared"].as_u64(), json["agreement"]["kappa_quadratic"].as_f64()), (Some(90), Some(0.9167)));

    scratch.write("more.jsonl", "{\"case_id\": \"medrounds-0000000000000000\", \"label\": 4}\n");
    let shown = scratch.run_expecting(0, &["agreement", "more.jsonl", "release", "--column", "judgement"]).stdout;
    assert!(shown.contains("exact agreement      100.0 % (1 of 1)"), "{shown}");
    scratch.write("more.jsonl", "{\"case_id\": \"medrounds-0000000000000000\", \"label\": \"neurology\"}\n");
    let shown = scratch.run_expecting(0, &["agreement", "more.jsonl", "release", "--column", "specialty"]).stdout;
    assert!(shown.contains("100.0 % (1 of 1)") && !shown.contains("weights"), "{shown}");

    let mistakes = [
        (&["agreement", "physicians.csv", "release", "--column", "dificulty"][..], 2, "did you mean `difficulty`?"),
        (&["agreement", "physicians.csv", "release", "--column", "n_rejected_values"], 2, "holds no text"),
        (&["agreement", "physicians.csv", "nowhere"], 2, "is not the folder of a release"),
        (&["agreement", "physicians.xlsx", "release"], 2, "in a .jsonl or a .csv file"),
        (&["agreement", "nowhere.csv", "release"], 3, "nowhere.csv"),
        (&["agreement", "more.jsonl", "release"], 3, "more.jsonl:1: `neurology` is no label of difficulty"),
    ];
    for (arguments, code, message) in mistakes {
        let run = scratch.run_expecting(code, arguments);
        assert!(run.stderr.contains(message), "{arguments:?}: {}", run.stderr);
    }
}
