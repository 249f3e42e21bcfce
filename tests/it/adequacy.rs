//! `casemill compare --judge`: a model as a judge of adequacy, through the command line.

use crate::fake_model::{FakeModel, Play, Request};
use crate::support::{Scratch, medqa_lines};
use casemill::record::Hash;
use casemill::record::slots::Slot;
use expect_test::expect;
use serde_json::{Map, Value, json};

const OPEN: &str = "snapshot = \"x\"\nlicence = \"CC0-1.0\"\naccess = \"open\"\nllm_egress = \"any\"\n";

/// What stands between the last two borders of this name.
fn bordered(request: &Request, name: &str) -> String {
    let prompt = request.prompt();
    let start = prompt.rfind(&format!("<<<{name} ")).unwrap_or_else(|| panic!("no {name}: {prompt}"));
    let text = prompt[start..].split_once(">>>\n").expect("its end").1;
    text[..text.rfind(&format!("\n<<<end of {name} ")).expect("the other border")].to_owned()
}

/// The share of the reference's words that the candidate has, but for values that make it fail.
fn fair(request: &Request) -> Play {
    let (reference, candidate) = (bordered(request, "reference"), bordered(request, "candidate"));
    if candidate.contains("unspeakable") {
        return Play::Refusal("I would rather not.".to_owned());
    }
    if candidate.contains("unreadable") {
        return Play::Reply("rather good".to_owned());
    }
    let words: Vec<&str> = reference.split_whitespace().collect();
    let n = words.iter().filter(|word| candidate.contains(**word)).count();
    Play::Reply(json!({"reason": "…", "adequacy": n as f64 / words.len() as f64}).to_string())
}

/// A model of this name on the server.
fn model(name: &str, model: &str, egress: &str) -> String {
    format!(
        "[models.{name}]\nprovider = \"openai\"\nbase_url_env = \"JUDGE_URL\"\nmodel = \"{model}\"\nmax_tokens = 64\nanswers = 2\n\
         price = {{ input = 1.0, output = 1.0 }}\negress = \"{egress}\"\n"
    )
}

const REFERENCES: &str = r#"
{"case_id": "a", "record": {"Symptom-Name": "severe chest pain", "Symptom-Time": "for 3 days", "Personal-Age": "40-year-old"}}
{"case_id": "b", "record": {"Symptom-Name": "severe chest pain", "Habit-Tobacco": "does not smoke", "Personal-Sex": "man"}}
{"case_id": "c", "record": {"Symptom-Name": "fever", "Medical-Examination": "Temperature is 38.1 °C"}}
"#;
const ONE: &str = r#"
{"case_id": "a", "record": {"Symptom-Name": "chest pain", "Symptom-Time": "for 3 days", "Personal-Age": "40-Year-Old "}}
{"case_id": "b", "record": {"Symptom-Name": "chest pain", "Habit-Tobacco": "never smoked", "Personal-Weight": "80 kg"}}
{"case_id": "c", "record": {"Symptom-Name": "fever", "Medical-Examination": "38.1 °C"}}
"#;
const OTHER: &str = r#"
{"case_id": "a", "record": {"Symptom-Name": "severe pain in the chest", "Symptom-Time": "unspeakable"}}
{"case_id": "b", "record": {"Symptom-Name": "chest pain", "Habit-Tobacco": "unreadable"}}
"#;

fn scratch(server: &FakeModel) -> Scratch {
    let mut scratch = Scratch::empty();
    scratch.set_env("JUDGE_URL", &server.base_url());
    scratch.write("references.jsonl", REFERENCES.trim());
    scratch.write("one.jsonl", ONE.trim());
    scratch.write("other.jsonl", OTHER.trim());
    scratch.write("rights.toml", OPEN);
    scratch.write("models.toml", model("judge", "judge-1", "local"));
    scratch
}

const COMPARE: [&str; 10] = [
    "compare",
    "references.jsonl",
    "--judge",
    "medrounds:judge",
    "--models",
    "models.toml",
    "--rights",
    "rights.toml",
    "--resamples",
    "50",
];

fn with(arguments: &[&'static str]) -> Vec<&'static str> {
    [&COMPARE[..], arguments].concat()
}

/// The part of the output about the judge.
fn about_judge(stdout: &str) -> &str {
    let start = stdout.find("adequacy by").unwrap_or_else(|| panic!("no judge: {stdout}"));
    stdout[start..].split("\n\n").next().unwrap()
}

#[test]
fn scores_come_out_and_a_replay_gives_the_same_bytes() {
    let server = FakeModel::start(fair);
    let scratch = scratch(&server);
    let nothing = scratch.run_expecting(3, &with(&["one.jsonl"])).stderr;
    assert!(nothing.contains("no reply is stored for call") && nothing.contains("node compare"), "{nothing}");
    assert_eq!(server.connections(), 0, "without --llm nothing is sent");

    let live = scratch.run_expecting(0, &with(&["one.jsonl", "--llm", "live"]));
    assert!(
        live.stderr.contains("0 replies from the store, 3 from the model, 0 failed; 3 requests"),
        "{}",
        live.stderr
    );
    expect![[r#"
        adequacy by openai/judge-1, prompt of version 1: the mean, and the share of pairs of 0.90 or more
        extractor  pairs  in the mean  on one side only: 0  equal: 1  judged  no score
        one            9            9                    2         3       4         0"#]]
    .assert_eq(about_judge(&live.stdout));
    let json = scratch.run_expecting(0, &with(&["one.jsonl", "--json", "--quiet"]));
    assert_eq!(json.stderr, "");
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    let scores = document["extractors"][0]["scores"].as_array().unwrap();
    let value = |name: &str| {
        let score = scores.iter().find(|score| score["metric"] == name).unwrap_or_else(|| panic!("{name}: {scores:?}"));
        score["estimate"]["value"].as_f64().unwrap()
    };
    // Nine pairs: three are equal, two are on one side only; 2/3 twice for the chest pain, 1/3 for the habit, 1/2 for the fever.
    assert!((value("adequacy") - (3.0 + 4.0 / 3.0 + 1.0 / 3.0 + 0.5) / 9.0).abs() < 1e-4, "{}", value("adequacy"));
    assert!((value("adequacy>=0.90") - 3.0 / 9.0).abs() < 1e-4);
    assert_eq!(document["judge"]["extractors"][0]["n_in_mean"], 9);
    assert_eq!(document["judge"]["constant"], Value::Null);
    // What was asked names the slot and its meaning, and quotes the values between borders.
    let asked = server.requests();
    let prompt = asked.iter().map(Request::prompt).find(|prompt| prompt.contains("never smoked")).unwrap();
    assert!(prompt.contains(&format!("Slot: Habit-Tobacco\nMeaning: {}\n", Slot::HabitTobacco.meaning())), "{prompt}");
    assert_eq!(asked.len(), 3, "two cases with the same texts are one question, and equal texts are none");

    drop(server);
    let replay = scratch.run_expecting(0, &with(&["one.jsonl", "--llm", "replay"]));
    assert_eq!(replay.stdout, live.stdout);
    assert_eq!(scratch.run_expecting(0, &with(&["one.jsonl", "--json"])).stdout, json.stdout);
    let spending = scratch.run_expecting(0, &["replies", "spending", "medrounds"]).stdout;
    assert!(spending.contains("compare") && spending.contains("complete 3"), "{spending}");
}

#[test]
fn failing_calls_are_counted_and_in_no_mean() {
    let server = FakeModel::start(fair);
    let scratch = scratch(&server);
    let refused = scratch.run_expecting(3, &with(&["one.jsonl", "other.jsonl", "--llm", "live"]));
    let message = "the judge has no score for 2 of 8 pairs (reply_invalid 1, reply_refused 1; the first: ";
    assert!(refused.stderr.contains(message) && refused.stdout.is_empty(), "{}", refused.stderr);
    let sent = server.total().received;
    let skip = with(&["one.jsonl", "other.jsonl", "--llm", "live", "--judge-missing", "skip"]);
    let live = scratch.run_expecting(0, &skip);
    assert_eq!(server.total().received, sent, "refused and unreadable answers are stored, too");
    expect![[r#"
        adequacy by openai/judge-1, prompt of version 1: the mean, and the share of pairs of 0.90 or more
        extractor  pairs  in the mean  on one side only: 0  equal: 1  judged  no score
        one            9            9                    2         3       4         0
        other          8            6                    4         0       2         2
        other: pairs without a score, which are in no mean of the judge: reply_invalid 1, reply_refused 1"#]]
    .assert_eq(about_judge(&live.stdout));
    let json = scratch.json(&skip);
    // Of eight pairs two have no score, two say it in part, four are on one side only.
    let score = &json["extractors"][1]["scores"][3];
    assert_eq!(score["metric"], "adequacy");
    assert!((score["estimate"]["value"].as_f64().unwrap() - (1.0 + 2.0 / 3.0) / 6.0).abs() < 1e-4, "{score}");
    let slots = json["extractors"][1]["slots"].as_array().unwrap();
    let habit = slots.iter().find(|slot| slot["slot"] == "Habit-Tobacco").unwrap();
    assert_eq!((&habit["n_pairs"], &habit["scores"][3]["score"]), (&json!(1), &Value::Null), "neither 0 nor 1");

    drop(server);
    let replay = with(&["one.jsonl", "other.jsonl", "--llm", "replay", "--judge-missing", "skip"]);
    assert_eq!(scratch.run_expecting(0, &replay).stdout, live.stdout);

    // A server that is down is no judgement: nothing of it is stored, and a replay has nothing to go by.
    let down = FakeModel::start(|_| Play::Status(503));
    let mut scratch = self::scratch(&down);
    scratch.write("models.toml", model("judge", "judge-1", "local") + "tries = 1\n");
    let failed = scratch.run_expecting(3, &with(&["one.jsonl", "--llm", "live"])).stderr;
    assert!(failed.contains("no score for 4 of 4 pairs (no_reply 4"), "{failed}");
    let up = FakeModel::start(fair);
    scratch.set_env("JUDGE_URL", &up.base_url());
    scratch.run_expecting(0, &with(&["one.jsonl", "--llm", "live"]));
}

#[test]
fn a_judge_that_always_says_the_same_is_named() {
    let server = FakeModel::start(|_| Play::Reply(json!({"reason": "fine", "adequacy": 1.0}).to_string()));
    let scratch = scratch(&server);
    let text = scratch.run_expecting(0, &with(&["one.jsonl", "--llm", "live"])).stdout;
    assert!(text.contains("the judge gave 1.0 to all 4 pairs: it tells nothing apart"), "{text}");
    // One that repeats the example of the prompt has read nothing.
    let example =
        r#"{"reason":"The duration is the same in other words; that it is worse at night is lost.","adequacy":0.5}"#;
    let server = FakeModel::start(move |_| Play::Reply(example.to_owned()));
    let scratch = self::scratch(&server);
    let refused = scratch.run_expecting(3, &with(&["one.jsonl", "--llm", "live"])).stderr;
    assert!(refused.contains("no score for 4 of 4 pairs (copied_example 4)"), "{refused}");
}

#[test]
fn what_nobody_allowed_is_not_sent() {
    let server = FakeModel::start(fair);
    let scratch = scratch(&server);
    let without: Vec<&str> =
        COMPARE.into_iter().filter(|word| !word.ends_with("rights") && *word != "rights.toml").collect();
    let live = ["one.jsonl", "--llm", "live"];
    let refused = scratch.run_expecting(2, &[&without[..], &live].concat()).stderr;
    let message = "nothing was sent to the judge: 3 of 3 questions may not go to model judge (egress local), the first since its records have access unknown, llm_egress none";
    assert!(refused.contains(message) && refused.contains("--rights FILE says"), "{refused}");
    for (access, llm_egress, egress) in [
        ("open", "none", "local"),
        ("unknown", "any", "local"),
        ("open", "local", "public"),
        ("credentialed", "any", "public"),
    ] {
        scratch.write("rights.toml", format!("access = \"{access}\"\nllm_egress = \"{llm_egress}\"\n"));
        scratch.write("models.toml", model("judge", "judge-1", egress));
        for mode in ["live", "record", "replay"] {
            let skip = ["one.jsonl", "--judge-missing", "skip", "--llm", mode];
            let refused = scratch.run_expecting(2, &[&COMPARE[..], &skip].concat()).stderr;
            assert!(refused.contains(&format!("have access {access}, llm_egress {llm_egress}")), "{refused}");
        }
    }
    assert_eq!(server.connections(), 0);
    scratch.write("rights.toml", "acess = \"open\"\n");
    let refused = scratch.run_expecting(2, &with(&["one.jsonl"])).stderr;
    assert!(refused.contains("rights.toml:1: acess: unknown key; did you mean `access`?"), "{refused}");
}

#[test]
fn mistakes_and_limits_are_told_before_anything_is_sent() {
    let server = FakeModel::start(fair);
    let scratch = scratch(&server);
    let mistakes = [
        (&["compare", "references.jsonl", "one.jsonl", "--llm", "live"][..], "--judge"),
        (&["compare", "references.jsonl", "one.jsonl", "--judge", "judge"], "write it as PIPELINE:MODEL"),
        (&["compare", "references.jsonl", "one.jsonl", "--judge", "medround:extractor"], "did you mean `medrounds`"),
        (&["compare", "references.jsonl", "one.jsonl", "--judge", "medrounds:extracter"], "did you mean `extractor`"),
        (
            &["compare", "references.jsonl", "one.jsonl", "--judge", "medrounds:extractor", "--budget", "1"],
            "--llm live",
        ),
        (&["compare", "references.jsonl", "one.jsonl", "--judge", "medrounds:extractor", "--budget=-1"], "at least 0"),
    ];
    for (arguments, message) in mistakes {
        let run = scratch.run_expecting(2, arguments);
        assert!(run.stderr.contains(message), "{arguments:?}: {}", run.stderr);
    }
    let spent = scratch.run_expecting(130, &with(&["one.jsonl", "--llm", "live", "--budget", "0.0000001"])).stderr;
    assert!(spent.contains("budget"), "{spent}");
    assert_eq!(server.total().received, 0);
}

/// Builds and releases say who made their slots and what may be done with them.
#[test]
fn builds_and_releases_speak_for_themselves() {
    let server = FakeModel::start(|request| {
        if request.model() == "judge-1" {
            return fair(request);
        }
        let vignette = bordered(request, "vignette");
        let mut reply: Map<String, Value> = Slot::ALL
            .into_iter()
            .filter(|slot| *slot != Slot::GroundTruthDiagnosis)
            .map(|slot| (slot.as_str().to_owned(), json!([])))
            .collect();
        let complaint = vignette.split_once("history of ").unwrap().1.split_once(". ").unwrap().0;
        reply.insert("Symptom-Name".to_owned(), json!([complaint]));
        reply.insert("Personal-Age".to_owned(), json!([vignette.split_whitespace().nth(1).unwrap()]));
        Play::Reply(Value::Object(reply).to_string())
    });
    let mut scratch = scratch(&server);
    scratch.set_env("EXTRACTOR_URL", &server.base_url());
    scratch.set_env("EXTRACTOR_KEY", "none");
    scratch.write("raw/medqa/test.jsonl", medqa_lines(6));
    scratch.write("raw/medqa/source.toml", OPEN);
    let references: String = medqa_lines(6)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["question"].as_str().unwrap().to_owned())
        .map(|stem| json!({"question_sha256": Hash::of(stem.as_bytes()), "record": {"Symptom-Name": "a severe complaint of pain"}}))
        .map(|record| format!("{record}\n"))
        .collect();
    scratch.write("references.jsonl", references);
    scratch.run_expecting(0, &["build", "medrounds", "--llm", "live", "--quiet"]);
    scratch.run_expecting(0, &["freeze", "medrounds", "--version", "1", "--llm", "live", "--quiet"]);
    let built = with(&["medrounds:extract_slots", "--llm", "live"]);
    let release = with(&["data/release/medrounds-1", "--llm", "live"]);
    let of_build = scratch.run_expecting(0, &built).stdout;
    let of_release = scratch.run_expecting(0, &release).stdout;
    let counts = |text: &str| {
        text.lines().find(|line| line.starts_with("medrounds")).unwrap().split_once("6/6").unwrap().1.to_owned()
    };
    assert_eq!(counts(&of_build), counts(&of_release));

    // The extractor as its own judge, by its provider and name in the records; a file names it.
    let before = server.total().received;
    scratch.write("models.toml", model("judge", "Fake", "local"));
    scratch
        .write("own.jsonl", "{\"case_id\": \"a\", \"extractor\": \"fake\", \"record\": {\"Symptom-Name\": \"pain\"}}");
    for (records, name) in
        [(&built, "medrounds:extract_slots"), (&release, "medrounds-1"), (&with(&["own.jsonl"]), "fake")]
    {
        let refused = scratch.run_expecting(2, records).stderr;
        let message =
            format!("{name}: its slots were filled by openai/Fake, which is the judge: nobody judges their own work");
        assert!(refused.contains(&message), "{refused}");
    }

    // Whatever is said of the reference, a source that may not leave does not: of a build …
    scratch.write("models.toml", model("judge", "judge-1", "public"));
    scratch.write("raw/medqa/source.toml", OPEN.replace("\"any\"", "\"local\""));
    scratch.run_expecting(0, &["build", "medrounds", "--llm", "live", "--quiet"]);
    let refused = scratch.run_expecting(2, &built).stderr;
    assert!(refused.contains("have access open, llm_egress local, by the stricter of"), "{refused}");
    // … and of a release, which knows who may hold its cases.
    scratch.write("raw/medqa/source.toml", OPEN.replace("\"open\"", "\"credentialed\""));
    scratch.run_expecting(0, &["build", "medrounds", "--llm", "live", "--quiet"]);
    scratch.run_expecting(0, &["freeze", "medrounds", "--version", "2", "--llm", "live", "--profile", "credentialed"]);
    let refused = scratch.run_expecting(2, &with(&["data/release/medrounds-2", "--llm", "live"])).stderr;
    assert!(refused.contains("have access credentialed, llm_egress any"), "{refused}");
    let judged = |from: u64| {
        let later = server.requests().into_iter().skip(usize::try_from(from).unwrap());
        later.filter(|request| request.model() != "fake").count()
    };
    assert_eq!((judged(0), judged(before)), (6, 0));
}
