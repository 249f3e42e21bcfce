//! Faults of models, one stage at a time, through the command line: judges that are down, refuse, copy the prompt's example or
//! say the same to everything; models that are one and the same; and a build without any.

use crate::fake_model::{FakeModel, Play, Request};
use crate::scripted::{self, Asked, reply};
use crate::support::{Scratch, medqa_lines, repository};
use casemill::record::release::SlotRow;
use casemill::record::slots::MedroundsCase;
use casemill::release::manifest::Manifest;
use expect_test::expect;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The shipped pipeline with so many generated questions, scripted models with a fault, and one try for every request.
fn project(n: u64, fault: impl Fn(&Request, &Asked) -> Option<Play> + Send + Sync + 'static) -> (Scratch, FakeModel) {
    let server = scripted::start_with(fault);
    let mut scratch = Scratch::shipped_without_raw();
    scratch.set_env(scripted::URL_VARIABLE, &server.base_url());
    scratch.write("raw/medqa/test.jsonl", medqa_lines(n));
    scratch.write(
        "raw/medqa/source.toml",
        "snapshot = \"x\"\nlicence = \"CC0-1.0\"\naccess = \"open\"\nllm_egress = \"any\"\n",
    );
    let models = std::fs::read_to_string(repository().join("data/sample/models.toml")).unwrap();
    scratch.write("models.toml", models.replace("egress = \"local\"\n", "egress = \"local\"\ntries = 1\n"));
    (scratch, server)
}

const MODELS: [&str; 4] = ["--llm", "live", "--models", "models.toml"];

fn build(scratch: &Scratch, code: i32, arguments: &[&str]) -> String {
    scratch.run_expecting(code, &[&["build", "medrounds"], arguments, &MODELS].concat()).stderr
}

/// The lines of a log that say what models said and what became of records, of one node.
fn log_of(log: &str, node: &str) -> String {
    let told = |line: &&str| {
        let rest = line.strip_prefix(node).unwrap_or_default();
        [", by ", " control questions ", " in, ", ": failed: "].iter().any(|words| rest.contains(words))
    };
    let lines = log.lines().filter(told).map(|line| line.split("; for one of them").next().unwrap_or_default());
    let lines = lines.map(|line| line.split("; 1 shards").next().unwrap_or_default().to_owned() + "\n");
    lines.collect()
}

/// Freezes with the same arguments as the build, verifies, and gives what is in the release.
fn release(scratch: &Scratch, version: &str, arguments: &[&str]) -> (Vec<MedroundsCase>, Manifest) {
    let folder = format!("data/release/medrounds-{version}");
    let freeze = ["freeze", "medrounds", "--version", version, "--allow-quarantine"];
    scratch.run_expecting(0, &[&freeze, arguments].concat());
    scratch.run_expecting(0, &["verify", &folder]);
    let manifest = serde_json::from_str(&scratch.read(&format!("{folder}/MANIFEST.json"))).unwrap();
    let cases = casemill::store::parquet::read(&scratch.path(&format!("{folder}/cases/part-00000.parquet"))).unwrap();
    (casemill::record::from_batch(&cases).unwrap(), manifest)
}

/// No control is limited for this node, and nothing is too much in quarantine.
fn without_limits(scratch: &Scratch, node: &str) {
    let pipeline = scratch.read("pipelines/medrounds.toml").replace("max_quarantined = 0.2\n", "");
    let head = format!("[nodes.{node}]\n");
    assert!(pipeline.contains(&head));
    let pipeline = pipeline.replace(&head, &format!("{head}min_controls = 0.0\nmax_quarantined = 1.0\n"));
    scratch.write("pipelines/medrounds.toml", pipeline);
}

fn asks_of(asked: &Asked, record: u64) -> bool {
    asked.texts.values().any(|text| text.contains(&format!("Record number {record} of the clinic")))
}

fn is_control(asked: &Asked) -> bool {
    !asked.texts.values().any(|text| text.contains("Record number "))
}

#[test]
fn a_judge_of_the_consensus_that_is_down_loses_no_record() {
    const ALL_DOWN: u8 = 0;
    const TWO_DOWN: u8 = 1;
    const UP: u8 = 2;
    let state = Arc::new(AtomicU8::new(ALL_DOWN));
    let (scratch, server) = {
        let state = state.clone();
        project(12, move |_, asked| {
            let is_down = match state.load(Ordering::SeqCst) {
                ALL_DOWN => !is_control(asked),
                TWO_DOWN => asks_of(asked, 3) || asks_of(asked, 7),
                _ => false,
            };
            (asked.model == "casemill-scripted/second-filter" && is_down).then_some(Play::Status(503))
        })
    };
    let to = ["--to", "validate_consensus"];
    let mut text = log_of(&build(&scratch, 3, &to), "validate_consensus");
    assert_eq!(scratch.plan(&MODELS).iter().filter(|line| line.starts_with("validate_consensus fresh")).count(), 0);
    // What one judge said is kept; only what has no answer is asked for again.
    let n_asked = server.total().received;
    state.store(TWO_DOWN, Ordering::SeqCst);
    text += &log_of(&build(&scratch, 4, &to), "validate_consensus");
    assert_eq!(server.total().received - n_asked, 12);
    let plan = scratch.plan(&MODELS);
    let line = plan.iter().find(|line| line.starts_with("validate_consensus")).unwrap();
    assert_eq!(line, "validate_consensus stale: 2 calls have no answer yet");
    state.store(UP, Ordering::SeqCst);
    text += &log_of(&build(&scratch, 0, &to), "validate_consensus");
    assert_eq!(server.total().received - n_asked, 14);
    expect![[r#"
        validate_consensus: model filter answered 8 of 8 control questions right
        validate_consensus: model second_filter answered 8 of 8 control questions right
        validate_consensus: failed: it is not committed: quarantined 12 of 12 records of source medqa (100.0 %, max_quarantined is 20.0 %): no_reply 12; raise the limit under [nodes.validate_consensus] in pipelines/medrounds.toml if that is right
        validate_consensus: model filter answered 8 of 8 control questions right
        validate_consensus: model second_filter answered 8 of 8 control questions right
        validate_consensus: suitable, by openai/casemill-scripted/filter: YES 12
        validate_consensus: suitable, by openai/casemill-scripted/second-filter: YES 10; no answer: no_reply 2
        validate_consensus: 12 in, 10 kept, 2 quarantined (no_reply 2)
        validate_consensus: model filter answered 8 of 8 control questions right
        validate_consensus: model second_filter answered 8 of 8 control questions right
        validate_consensus: suitable, by openai/casemill-scripted/filter: YES 12
        validate_consensus: suitable, by openai/casemill-scripted/second-filter: YES 12
        validate_consensus: 12 in, 12 kept
    "#]].assert_eq(&text);
}

#[test]
fn a_model_that_does_not_answer_control_questions_is_not_asked_about_records() {
    let (scratch, server) =
        project(12, |_, asked| (asked.model == "casemill-scripted/second-filter").then_some(Play::Status(503)));
    let log = log_of(&build(&scratch, 3, &["--to", "validate_consensus"]), "validate_consensus");
    expect![[r#"
        validate_consensus: model filter answered 8 of 8 control questions right
        validate_consensus: model second_filter answered 0 of 8 control questions right
        validate_consensus: failed: it is not run: model second_filter answered 0 of 8 control questions right (0.0 %, min_controls is 75.0 %): croup: no_reply where YES is right, parkinson_disease: no_reply where YES is right, kidney_stone: no_reply where YES is right, plaque_psoriasis: no_reply where YES is right, management_of_thrombosis: no_reply where NO is right, recall_of_a_vitamin: no_reply where NO is right, x_ray_in_a_figure: no_reply where NO is right, organism_of_a_tick_bite: no_reply where NO is right; name another model under [models], or set min_controls under [nodes.validate_consensus] in pipelines/medrounds.toml
    "#]].assert_eq(&log);
    let about_records = |request: &Request| {
        let asked = Asked::of(request);
        asked.model == "casemill-scripted/second-filter" && !is_control(&asked)
    };
    assert!(!server.requests().iter().any(about_records));
}

/// The three rules for a question that one of four models does not answer.
#[test]
fn a_solver_that_refuses_one_kind_of_question() {
    let (scratch, _server) = project(21, |request, asked| {
        let is_kind = asked.format == "solution" && asked.text("question").contains("severe headache");
        (is_kind && asked.model == "casemill-scripted/solver-4")
            .then(|| Play::Json(200, refusal(request, "I do not speak of headaches.")))
    });
    let log = build(&scratch, 0, &[]);
    let (cases, manifest) = release(&scratch, "1", &MODELS);
    let n_all = u64::try_from(cases.len()).unwrap();
    let mut n_refused = 0;
    for case in &cases {
        if case.ground_truth_diagnosis == "Migraine" {
            n_refused += 1;
            assert_eq!(case.difficulty_missing, ["olmo_3_1_32b_think: reply_refused 6"]);
            assert_eq!((case.difficulty, case.difficulty_score), (None, None));
        } else {
            assert!(case.difficulty.is_some() && case.difficulty_missing.is_empty(), "{case:?}");
        }
    }
    assert!(n_refused >= 2 && n_all >= 6 + n_refused, "{n_refused} of {n_all}\n{log}");
    let difficulty = manifest.difficulty.unwrap();
    assert_eq!((difficulty.n_scored, difficulty.n_unscored), (n_all - n_refused, n_refused));

    let leave_out = [&["--set", "estimate_difficulty.missing=\"leave_out_model\""], &MODELS[..]].concat();
    build(&scratch, 0, &leave_out[..2]);
    let (cases, manifest) = release(&scratch, "2", &leave_out);
    assert!(cases.iter().all(|case| case.difficulty.is_some()));
    assert_eq!(cases.iter().filter(|case| !case.difficulty_missing.is_empty()).count() as u64, n_refused);
    let difficulty = manifest.difficulty.unwrap();
    assert_eq!((difficulty.n_scored, difficulty.n_unscored), (n_all, 0));
    assert_eq!(difficulty.clusters.iter().map(|cluster| cluster.n).sum::<usize>() as u64, n_all);

    let pipeline = scratch.read("pipelines/medrounds.toml");
    let head = "[nodes.estimate_difficulty]\n";
    scratch.write("pipelines/medrounds.toml", pipeline.replace(head, &format!("{head}max_quarantined = 0.5\n")));
    let quarantine = [&["--set", "estimate_difficulty.missing=\"quarantine\""], &MODELS[..]].concat();
    let log = build(&scratch, 4, &quarantine[..2]);
    assert!(log.contains(&format!("{n_refused} quarantined (difficulty_model_missing {n_refused})")), "{log}");
    let (cases, manifest) = release(&scratch, "3", &quarantine);
    assert_eq!(cases.len() as u64, n_all - n_refused);
    assert!(cases.iter().all(|case| case.difficulty.is_some()));
    assert_eq!(manifest.difficulty.unwrap().n_unscored, n_refused);
}

/// A complete answer that declines.
fn refusal(request: &Request, words: &str) -> serde_json::Value {
    let message = serde_json::json!({"role": "assistant", "content": null, "refusal": words});
    serde_json::json!({
        "model": request.model(),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
}

#[test]
fn answers_without_a_judgement_of_them_leave_a_question_without_a_band() {
    let (scratch, _server) = project(7, |request, asked| {
        let is_hit = asked.format == "disagreement" && asks_of(asked, 4);
        is_hit.then(|| Play::Json(200, refusal(request, "No.")))
    });
    let log = build(&scratch, 0, &[]);
    let (cases, _) = release(&scratch, "1", &MODELS);
    let hit: Vec<&MedroundsCase> = cases.iter().filter(|case| !case.difficulty_missing.is_empty()).collect();
    assert_eq!(hit.len(), 1, "{log}");
    assert_eq!((hit[0].ground_truth_diagnosis.as_str(), hit[0].difficulty), ("Gout", None));
    expect![[r#"
        deepseek_r1: not_judged 1
        qwq_32b: not_judged 1
        phi_4_reasoning: not_judged 1
        olmo_3_1_32b_think: not_judged 1"#]]
    .assert_eq(&hit[0].difficulty_missing.join("\n"));
}

#[test]
fn a_filter_that_says_yes_to_everything_is_stopped_by_its_controls() {
    let (scratch, _server) = project(12, |request, asked| {
        let yes = "{\"reason\":\"It is fine.\",\"verdict\":\"YES\"}";
        (asked.model == "casemill-scripted/filter").then(|| reply(request, yes))
    });
    let to = ["--to", "filter_vignette"];
    let mut text = log_of(&build(&scratch, 3, &to), "filter_vignette");
    without_limits(&scratch, "filter_vignette");
    text += &log_of(&build(&scratch, 0, &to), "filter_vignette");
    expect![[r#"
        filter_vignette: model filter answered 4 of 8 control questions right
        filter_vignette: failed: it is not run: model filter answered 4 of 8 control questions right (50.0 %, min_controls is 75.0 %): management_of_thrombosis: YES where NO is right, recall_of_a_vitamin: YES where NO is right, x_ray_in_a_figure: YES where NO is right, organism_of_a_tick_bite: YES where NO is right; name another model under [models], or set min_controls under [nodes.filter_vignette] in pipelines/medrounds.toml
        filter_vignette: model filter answered 4 of 8 control questions right
        filter_vignette: suitable, by openai/casemill-scripted/filter: YES 12
        filter_vignette: 12 in, 12 kept
    "#]].assert_eq(&text);
}

#[test]
fn a_judge_that_always_says_five_is_stopped_by_its_controls() {
    let (scratch, _server) = project(12, |request, asked| {
        let five = "{\"reason\":\"Nothing is wrong.\",\"score\":5}";
        (asked.format == "fidelity").then(|| reply(request, five))
    });
    expect![[r#"
        score_fidelity: model fidelity_judge answered 3 of 6 control questions right
        score_fidelity: failed: it is not run: model fidelity_judge answered 3 of 6 control questions right (50.0 %, min_controls is 75.0 %): broken_other_patient: 5 where 1 or 2 is right, broken_nearly_empty: 5 where 1 or 2 is right, broken_numbers_sides_and_negations: 5 where 1 or 2 is right; name another model under [models], or set min_controls under [nodes.score_fidelity] in pipelines/medrounds.toml
    "#]].assert_eq(&log_of(&build(&scratch, 3, &["--to", "score_fidelity"]), "score_fidelity"));
}

/// Whoever repeats the prompt's example has read nothing, whatever the stage.
#[test]
fn copies_of_the_prompts_example_count_for_nothing() {
    let copies = |format: &'static str, model: &'static str| {
        project(12, move |request, asked| {
            let is_copier = asked.format == format && (model.is_empty() || asked.model == model);
            is_copier.then(|| reply(request, asked.example.clone()))
        })
    };
    // An extractor has no controls.
    let (scratch, _server) = copies("slots", "");
    let mut text = log_of(&build(&scratch, 3, &["--to", "extract_slots"]), "extract_slots");
    // A judge is found by its controls, and record by record if these are set aside.
    let (scratch, _server) = copies("fidelity", "");
    text += &log_of(&build(&scratch, 3, &["--to", "score_fidelity"]), "score_fidelity");
    without_limits(&scratch, "score_fidelity");
    text += &log_of(&build(&scratch, 4, &["--to", "score_fidelity"]), "score_fidelity");
    // The other three solvers answer; the question has no band.
    let (scratch, _server) = copies("solution", "casemill-scripted/solver-1");
    build(&scratch, 0, &[]);
    let (cases, manifest) = release(&scratch, "1", &MODELS);
    let n_missing = |said: &str| cases.iter().filter(|case| case.difficulty_missing == [said]).count();
    assert_eq!(n_missing("deepseek_r1: copied_example 6"), cases.len());
    assert_eq!(manifest.difficulty.map(|difficulty| difficulty.n_scored), Some(0));
    assert!(!manifest.made_by.iter().any(|maker| maker.by.ends_with("/solver-1")));
    expect![[r#"
        extract_slots: failed: it is not committed: quarantined 12 of 12 records of source medqa (100.0 %, max_quarantined is 20.0 %): copied_example 12; raise the limit under [nodes.extract_slots] in pipelines/medrounds.toml if that is right
        score_fidelity: model fidelity_judge answered 0 of 6 control questions right
        score_fidelity: failed: it is not run: model fidelity_judge answered 0 of 6 control questions right (0.0 %, min_controls is 75.0 %): faithful_cluster_headache: 3 where 4 or 5 is right, faithful_bacterial_vaginosis: 3 where 4 or 5 is right, faithful_hand_foot_and_mouth_disease: 3 where 4 or 5 is right, broken_other_patient: 3 where 1 or 2 is right, broken_nearly_empty: 3 where 1 or 2 is right, broken_numbers_sides_and_negations: 3 where 1 or 2 is right; name another model under [models], or set min_controls under [nodes.score_fidelity] in pipelines/medrounds.toml
        score_fidelity: model fidelity_judge answered 0 of 6 control questions right
        score_fidelity: fidelity, by openai/casemill-scripted/fidelity-judge: no answer: copied_example 12
        score_fidelity: 12 in, 0 kept, 12 quarantined (copied_example 12)
    "#]].assert_eq(&text);
}

#[test]
fn judges_are_other_models_than_those_they_judge() {
    let (scratch, server) = project(3, |_, _| None);
    let mut text = String::new();
    for (name, other) in [
        ("fidelity-judge", "extractor"),
        ("second-filter", "filter"),
        ("solver-2", "Solver-1"),
        ("disagreement-judge", "solver-3"),
    ] {
        let models = scratch.read("models.toml");
        scratch.edit(
            "models.toml",
            &format!("\"casemill-scripted/{name}\""),
            &format!("\"casemill-scripted/{other}\""),
        );
        let refused = build(&scratch, 2, &[]);
        // The line of the node is that of the pipeline of today.
        let (file, problem) = refused.split_once("medrounds.toml:").unwrap();
        text += &format!("{file}medrounds.toml:…:{}", problem.split_once(':').unwrap().1);
        scratch.write("models.toml", models);
    }
    // One voice less is no consensus of two, and rules have none.
    scratch.edit(
        "models.toml",
        "[models.second_filter]\nprovider = \"openai\"",
        "[models.second_filter]\nprovider = \"rules\"",
    );
    let refused = build(&scratch, 2, &[]);
    let problem = refused.split_once("medrounds.toml:").unwrap().1;
    text += &format!("casemill: pipelines/medrounds.toml:…:{}", problem.split_once(':').unwrap().1);
    assert_eq!(server.total().received, 0);
    expect![[r#"
        casemill: pipelines/medrounds.toml:…: nodes.score_fidelity.settings: the judge `fidelity_judge` is casemill-scripted/extractor, which makes what it judges in node extract_slots: name another model, or `rules` for no judge
        casemill: pipelines/medrounds.toml:…: nodes.validate_consensus.settings: `filter` and `second_filter` are both casemill-scripted/filter: two opinions of one model are one; name another model
        casemill: pipelines/medrounds.toml:…: nodes.sample_answers.settings: `deepseek_r1` and `qwq_32b` are both casemill-scripted/Solver-1: two opinions of one model are one; name another model
        casemill: pipelines/medrounds.toml:…: nodes.judge_disagreement.settings: the judge `disagreement_judge` is casemill-scripted/solver-3, which makes what it judges in node sample_answers: name another model, or `rules` for no judge
        casemill: pipelines/medrounds.toml:…: nodes.validate_consensus.settings: names `second_filter`, which is no model but rules, beside `filter`: take it out of the list
    "#]].assert_eq(&text);
}

#[test]
fn a_build_without_models_says_so_for_every_field() {
    let (scratch, server) = project(12, |_, _| None);
    scratch.run_expecting(0, &["build", "medrounds", "--quiet"]);
    let (cases, manifest) = release(&scratch, "1", &[]);
    assert_eq!(server.connections(), 0);
    assert!(manifest.models.is_empty() && manifest.difficulty.is_none());
    assert!(cases.iter().all(|case| case.judgement.is_none() && case.difficulty.is_none() && case.replies.is_empty()));
    let makers: Vec<String> =
        manifest.made_by.iter().map(|maker| format!("{} {} {}", maker.field, maker.by, maker.n_cases)).collect();
    expect![[r#"
        consensus not_run 12
        difficulty not_run 12
        judgement not_run 12
        slots rules 12
        specialty rules 12
        vignette rules 12"#]]
    .assert_eq(&makers.join("\n"));
}

/// Under `flag` nothing is taken out: what the text does not say stays with its verdict, and the release verifies.
#[test]
fn unsupported_values_are_removed_or_flagged() {
    let (scratch, _server) = project(12, |_, _| None);
    let mut shares = Vec::new();
    for unsupported in ["remove", "flag"] {
        let set = format!("score_fidelity.unsupported={unsupported}");
        let arguments = [&MODELS[..], &["--set", &set]].concat();
        scratch.run(&[&["build", "medrounds", "--quiet"], &arguments[..]].concat());
        let (cases, _) = release(&scratch, unsupported, &arguments);
        let slots = scratch.path(&format!("data/release/medrounds-{unsupported}/slots.parquet"));
        let slots: Vec<SlotRow> =
            casemill::record::from_batch(&casemill::store::parquet::read(&slots).unwrap()).unwrap();
        let n_unsupported = slots.iter().filter(|row| !row.grounding.is_grounded()).count();
        let n_rejected: u32 = cases.iter().map(|case| case.n_rejected_values).sum();
        assert_eq!((n_unsupported == 0, n_rejected == 0), (unsupported == "remove", unsupported == "flag"));
        let report = scratch.json(&[&["report", "medrounds"], &arguments[..]].concat());
        shares.push(report["grounding"].clone());
    }
    assert_eq!(shares[0], shares[1], "what the texts support does not depend on what is done about the rest");
    let names: Vec<&str> = shares[0].as_array().unwrap().iter().map(|row| row["slot"].as_str().unwrap()).collect();
    assert!(
        names.contains(&"Symptom-Name") && names.is_sorted_by_key(|name| casemill::record::slots::Slot::parse(name))
    );
    let share = |row: &serde_json::Value| row["grounded_share"].as_f64().unwrap();
    assert!(shares[0].as_array().unwrap().iter().any(|row| share(row) < 1.0), "the scripted extractor invents values");
}

#[test]
fn a_report_counts_what_was_judged() {
    let (scratch, _server) = project(12, |_, _| None);
    assert!(scratch.run_expecting(0, &["report", "medrounds"]).stdout.contains("has judged anything yet"));
    scratch.run(&[&["build", "medrounds", "--quiet"], &MODELS[..]].concat());
    let text = scratch.run_expecting(0, &[&["report", "medrounds"], &MODELS[..]].concat()).stdout;
    for expected in [
        "control questions\n  filter_vignette: model filter: 8 of 8 right\n",
        "\njudgements\n  filter_vignette: suitable, by openai/casemill-scripted/filter: ",
        "  validate_consensus: openai/casemill-scripted/filter and openai/casemill-scripted/second-filter say the same of ",
        "\nvalues in their texts\n",
        "\ndifficulty\n  source               easy   medium     hard     none\n  medqa ",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}
