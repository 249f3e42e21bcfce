//! Tests of reading: what comes out of a file, or the message of its first fault.

use std::io::{BufReader, Read};

use expect_test::{Expect, expect};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::references::{MAX_LINE_BYTES, MAX_SLOT_CHARS, ReadError, Source, read_csv, read_jsonl};
use super::{RecordSet, Split, SplitFilter};

const STEM: &str = "A 31-year-old man has fièvre 🤒 and cough.";

fn hash_of(stem: &str) -> String {
    Sha256::digest(stem.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn source(split: SplitFilter) -> Source<'static> {
    Source { file: "records.jsonl", name: "records", split }
}

fn find(hash: &str) -> Option<String> {
    (hash == hash_of(STEM)).then(|| STEM.to_owned())
}

fn shown(result: Result<Vec<RecordSet>, ReadError>) -> String {
    let sets = match result {
        Ok(sets) => sets,
        Err(error) => return format!("{error}\n"),
    };
    let mut text = String::new();
    for set in sets {
        for (key, slots) in &set.cases {
            let aliases: Vec<&str> =
                set.aliases.iter().filter(|(_, first)| *first == key).map(|(alias, _)| alias.as_str()).collect();
            let short: String = key.as_str().chars().take(8).collect();
            let slots: Vec<String> =
                slots.iter().map(|(slot, values)| format!("{}={values:?}", slot.as_str())).collect();
            text += format!("{} {short} {aliases:?} {}", set.name, slots.join(" ")).trim_end();
            text.push('\n');
        }
    }
    text
}

/// Each text is a file of its own; HASH stands for the hash of the stem.
fn check_jsonl(files: &[&str], expect: Expect) {
    let read = |text: &&str| {
        let text = text.replace("HASH", &hash_of(STEM));
        shown(read_jsonl(text.as_bytes(), source(SplitFilter::All), &find))
    };
    expect.assert_eq(&files.iter().map(read).collect::<String>());
}

fn check_csv(files: &[&str], expect: Expect) {
    let read = |text: &&str| {
        let source = Source { file: "records.csv", ..source(SplitFilter::All) };
        shown(read_csv(text.as_bytes(), source).map(|set| vec![set]))
    };
    expect.assert_eq(&files.iter().map(read).collect::<String>());
}

#[test]
fn offsets_count_characters() {
    check_jsonl(
        &[
            r#"{"reference_id":"m1","question_sha256":"HASH","split":"tuning","specialty":"x","values":[{"slot":"Personal-Age","start":2,"end":13},{"slot":"Symptom-Name","start":22,"end":28,"text":"fièvre"},{"slot":"Symptom-Name","start":35,"end":40}]}"#,
            r#"{"reference_id":"m1","question_sha256":"HASH","values":[]}"#,
        ],
        expect![[r#"
            records 32bbf378 ["m1"] Symptom-Name=["fièvre", "cough"] Personal-Age=["31-year-old"]
            records 32bbf378 ["m1"]
        "#]],
    );
}

#[test]
fn faults_of_offsets() {
    let with = |value: &str| {
        format!(r#"{{"reference_id":"m1","question_sha256":"HASH","split":"tuning","values":[{value}]}}"#)
    };
    let values = [
        r#"{"slot":"Symptom-Name","start":22,"end":22}"#,
        r#"{"slot":"Symptom-Name","start":28,"end":22}"#,
        r#"{"slot":"Symptom-Name","start":22,"end":42}"#,
        r#"{"slot":"Symptom-Name","start":1,"end":2}"#,
        r#"{"slot":"Symptom-Name","start":18446744073709551615,"end":22}"#,
        r#"{"slot":"Symptom-Name","start":-1,"end":22}"#,
        r#"{"slot":"Symptom-Name","start":35,"end":40},{"slot":"Symptom-Name","start":22,"end":28}"#,
        r#"{"slot":"Symptom-Name","start":35,"end":40},{"slot":"Symptom-Name","start":35,"end":40}"#,
        r#"{"slot":"Symptom-Name","start":35,"end":40,"text":"fever"}"#,
        r#"{"slot":"Symptom Name","start":35,"end":40}"#,
        r#"{"slot":"Symptom-Name","start":35,"end":40,"note":"x"}"#,
    ];
    let mut files: Vec<String> = values.iter().map(|value| with(value)).collect();
    files.push(with("").replace("HASH", &"0".repeat(64)));
    files.push(with("").replace("HASH", "abc"));
    files.push(with("").replace("tuning", "test"));
    files.push(format!("{}\n\n{}", with(""), with("")));
    check_jsonl(
        &files.iter().map(String::as_str).collect::<Vec<_>>(),
        expect![[r#"
        records.jsonl, line 1: Symptom-Name from 22 to 22 is no range in a stem of 41 characters; count Unicode scalar values from 0, the end excluded
        records.jsonl, line 1: Symptom-Name from 28 to 22 is no range in a stem of 41 characters; count Unicode scalar values from 0, the end excluded
        records.jsonl, line 1: Symptom-Name from 22 to 42 is no range in a stem of 41 characters; count Unicode scalar values from 0, the end excluded
        records.jsonl, line 1: Symptom-Name from 1 to 2 is no range in a stem of 41 characters; count Unicode scalar values from 0, the end excluded
        records.jsonl, line 1: Symptom-Name from 18446744073709551615 to 22 is no range in a stem of 41 characters; count Unicode scalar values from 0, the end excluded
        records.jsonl, line 1: not a record in JSON: invalid value: integer `-1`, expected u64, column 166
        records.jsonl, line 1: Symptom-Name at 22 does not come after the one at 35; list the values of a slot in the order of the text, each once
        records.jsonl, line 1: Symptom-Name at 35 does not come after the one at 35; list the values of a slot in the order of the text, each once
        records.jsonl, line 1: Symptom-Name from 35 to 40 is "cough" in the stem, not "fever"; correct the offsets or the text
        records.jsonl, line 1: "Symptom Name" is no slot or field of a record; the nearest name is "Symptom-Name"
        records.jsonl, line 1: not a record in JSON: unknown field `note`, expected one of `slot`, `start`, `end`, `text`, column 182
        records.jsonl, line 1: no question with the SHA-256 0000000000000000000000000000000000000000000000000000000000000000; give the raw files that hold it
        records.jsonl, line 1: "abc" is no SHA-256; give the 64 hex digits of the question's stem
        records.jsonl, line 1: "test" is no split; write tuning or held_out
        records.jsonl, line 3: the case "32bbf378a33dd3e777629976a33606743e8cc2fa5b5e94ee99d6ca643729b663" stands in an earlier line; keep one record for each case and extractor
    "#]],
    );
    let wrong = |_: &str| Some("another stem".to_owned());
    let text = with("").replace("HASH", &"0".repeat(64));
    expect![[r#"
        records.jsonl, line 1: the stem found for the SHA-256 0000000000000000000000000000000000000000000000000000000000000000 hashes to e20963b8e36e033a4a13b6db8c5941e1eb856fb2845395809c42b93f93e46184; look questions up by the hash of their raw stem
    "#]].assert_eq(&shown(read_jsonl(text.as_bytes(), source(SplitFilter::All), &wrong)));
}

#[test]
fn records_with_text() {
    check_jsonl(
        &[
            r#"{"case_id":"c1","question_sha256":"HASH","extractor":"gpt","record":{"Symptom-Name":"fever, dry cough","Past-Medication":[],"Personal-Age":55,"Preventive":"NA","Department":null,"Habit-Wine":""}}
               {"record_id":"r2","Symptom-Name":["fever"," dry cough ","NA",null],"record":{}}"#,
            "\u{feff}{\"case_id\":\"c1\"}\r\n\r\n{\"case_id\":\"c2\",\"split\":null}",
            r#"{"case_id":"c1","extractor":"b"}
               {"case_id":"c1","extractor":"a"}"#,
        ],
        expect![[r#"
            gpt 32bbf378 ["c1"] Symptom-Name=["fever, dry cough"] Personal-Age=["55"]
            records r2 [] Symptom-Name=["fever", "dry cough"]
            records c1 []
            records c2 []
            a c1 []
            b c1 []
        "#]],
    );
}

#[test]
fn faults_of_records() {
    let long = format!(r#"{{"case_id":"c","Symptom-Name":"{}"}}"#, "x".repeat(MAX_SLOT_CHARS + 1));
    let long_key = format!(r#"{{"case_id":"{}"}}"#, "x".repeat(201));
    let long_line = format!("{{\"case_id\":\"c\"}}\n{}", " ".repeat(MAX_LINE_BYTES + 1));
    check_jsonl(
        &[
            r#"{"case_id":"c","record":{"Symptom-Nmae":"x"}}"#,
            r#"{"case_id":"c","past_medication":"x"}"#,
            r#"{"case_id":"c","caseid":"x"}"#,
            r#"{"case_id":"c","record":{"Symptom-Name":"x","Symptom-Name":"y"}}"#,
            r#"{"case_id":"c","record":{"Symptom-Name":"x"},"Symptom-Name":"NA"}"#,
            r#"{"case_id":"c","record":{"Symptom-Name":true}}"#,
            r#"{"case_id":"c","record":{"Symptom-Name":[["x"]]}}"#,
            r#"{"case_id":"c","record":{"Personal-Weight":70.50}}"#,
            r#"{"case_id":"c","record":"x"}"#,
            r#"{"case_id":["c"]}"#,
            r#"{"case_id":" ","record":{}}"#,
            r#"{"question_sha256":"HASH0"}"#,
            r#"[1]"#,
            "{",
            "",
            "{\"case_id\":\"c\"}\n{\"record_id\":\"c\"}",
            &long,
            &long_key,
            &long_line,
        ],
        expect![[r#"
            records.jsonl, line 1: "Symptom-Nmae" is no slot or field of a record; the nearest name is "Symptom-Name"
            records.jsonl, line 1: "past_medication" is no slot or field of a record; the nearest name is "Past-Medication"
            records.jsonl, line 1: "caseid" is no slot or field of a record; the nearest name is "case_id"
            records.jsonl, line 1: not a record in JSON: the key "Symptom-Name" stands twice, keep one of them, column 58
            records.jsonl, line 1: "Symptom-Name" stands in "record" and beside it; keep one of them
            records.jsonl, line 1: "Symptom-Name" is true or false; give a string, a list of strings or null
            records.jsonl, line 1: "Symptom-Name" is a list; give a string, a list of strings or null
            records.jsonl, line 1: "Personal-Weight" is a decimal number (write it as a string); give a string, a list of strings or null
            records.jsonl, line 1: "record" is a string; give an object of slots
            records.jsonl, line 1: "case_id" is a list; give a string or null
            records.jsonl, line 1: no key; give question_sha256, case_id or record_id
            records.jsonl, line 1: "32bbf378a33dd3e777629976a33606743e8cc2fa5b5e94ee99d6ca643729b6630" is no SHA-256; give the 64 hex digits of the question's stem
            records.jsonl, line 1: not a record in JSON: it is a list, not an object
            records.jsonl, line 1: not a record in JSON: EOF while parsing an object, column 1
            records.jsonl: no records to compare; check the file and the split
            records.jsonl, line 2: the case "c" stands in an earlier line; keep one record for each case and extractor
            records.jsonl, line 1: the values of Symptom-Name have more than 20000 characters; give phrases of the text
            records.jsonl, line 1: the key in case_id has more than 200 characters; give an id
            records.jsonl, line 2: longer than 1048576 bytes; write one record a line and close every quote
        "#]],
    );
    let result = read_jsonl(&b"{\"case_id\":\"\xff\"}"[..], source(SplitFilter::All), &find);
    expect![[r#"
        records.jsonl, line 1: not UTF-8; save the file as UTF-8
    "#]]
    .assert_eq(&shown(result));
}

#[test]
fn a_split_is_read_alone() {
    let text = r#"{"case_id":"t","split":"tuning"}
        {"case_id":"h","split":"held_out"}
        {"case_id":"n"}"#;
    let keys = |filter| {
        let sets = read_jsonl(text.as_bytes(), source(filter), &find).unwrap();
        sets[0].cases.keys().map(|key| key.as_str().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let all = [SplitFilter::All, SplitFilter::Only(Split::Tuning), SplitFilter::Only(Split::HeldOut)];
    expect![[r#"
        h n t
        t
        h"#]]
    .assert_eq(&all.map(keys).join("\n"));
    // The stems of the other split are not even looked for, but its keys count as taken.
    let other =
        format!(r#"{{"reference_id":"m","question_sha256":"{}","split":"held_out","values":[]}}"#, "0".repeat(64));
    let tuning = SplitFilter::Only(Split::Tuning);
    expect![[r#"
        records.jsonl: no records to compare; check the file and the split
    "#]]
    .assert_eq(&shown(read_jsonl(other.as_bytes(), source(tuning), &|_| panic!("asked"))));
    let twice = format!("{other}\n{}", other.replace("held_out", "tuning")).replace(&"0".repeat(64), &hash_of(STEM));
    expect![[r#"
        records.jsonl, line 2: the case "32bbf378a33dd3e777629976a33606743e8cc2fa5b5e94ee99d6ca643729b663" stands in an earlier line; keep one record for each case and extractor
    "#]].assert_eq(&shown(read_jsonl(twice.as_bytes(), source(tuning), &find)));
}

#[test]
fn csv_of_either_kind() {
    check_csv(
        &[
            "\u{feff}case_id,Symptom-Name,Personal-Age,split\r\nc1,\"fever, dry cough\",NA,tuning\r\nc2,,31,\r\n",
            "\u{feff}\"id\",\"additional_notes\"\n\"x\",\"two\nlines\"\n",
            "Symptom-Name,record_id,case_id\nfever,r1,c1\n",
        ],
        expect![[r#"
            records c1 [] Symptom-Name=["fever, dry cough"]
            records c2 [] Personal-Age=["31"]
            records x [] additional_notes=["two\nlines"]
            records c1 ["r1"] Symptom-Name=["fever"]
        "#]],
    );
}

#[test]
fn faults_of_csv() {
    let open_quote = format!("id,Symptom-Name\na,x\nb,\"{}", "x\n".repeat(MAX_LINE_BYTES));
    check_csv(
        &[
            "id,Symptom\nx,y\n",
            "Symptom-Name\nfever\n",
            "id,Symptom-Name,Symptom-Name\nx,a,b\n",
            "id,Symptom-Name\nx,a\n\nx,b\n",
            "id,Symptom-Name\nx,a,b\n",
            "id,Symptom-Name\r\nx,a\r\nx,b\r\n",
            "id,Symptom-Name\r\nx,\"a\r\nb\"\r\n\r\n\r\ny,c\r\nx,b",
            "\u{feff}id,additional_notes\nx,5\" tall\ny,\"z",
            "id,Symptom-Name\n,a\n",
            "id,split\nx,train\n",
            "question_sha256\nxyz\n",
            "id,Symptom-Name\n",
            "",
            &open_quote,
        ],
        expect![[r#"
            records.csv, line 1: "Symptom" is no slot or field of a record; the nearest name is "Symptom-Time"
            records.csv, line 1: no key; give question_sha256, case_id or record_id
            records.csv, line 1: not a record in CSV: column 3 repeats an earlier one; keep one of them
            records.csv, line 4: the case "x" stands in an earlier line; keep one record for each case and extractor
            records.csv, line 2: not a record in CSV: 3 cells where the header has 2; quote cells that hold commas
            records.csv, line 3: the case "x" stands in an earlier line; keep one record for each case and extractor
            records.csv, line 7: the case "x" stands in an earlier line; keep one record for each case and extractor
            records x [] additional_notes=["5\" tall"]
            records y [] additional_notes=["z"]
            records.csv, line 2: no key; give question_sha256, case_id or record_id
            records.csv, line 2: "train" is no split; write tuning or held_out
            records.csv, line 2: "xyz" is no SHA-256; give the 64 hex digits of the question's stem
            records.csv: no records to compare; check the file and the split
            records.csv, line 1: no key; give question_sha256, case_id or record_id
            records.csv, line 3: longer than 1048576 bytes; write one record a line and close every quote
        "#]],
    );
    let source = Source { file: "records.csv", ..source(SplitFilter::All) };
    expect!["records.csv, line 3: not UTF-8; save the file as UTF-8"]
        .assert_eq(&read_csv(&b"id,Symptom-Name\nx,a\ny,\xff\n"[..], source).unwrap_err().to_string());
}

#[test]
fn long_files_of_short_records_are_no_long_record() {
    let rows: String = (0..60_000).map(|n| format!("{n},some words for a row\n")).collect();
    let text = format!("id,Symptom-Name\n{rows}");
    assert!(text.len() > MAX_LINE_BYTES);
    let source = Source { file: "records.csv", ..source(SplitFilter::All) };
    assert_eq!(read_csv(text.as_bytes(), source).unwrap().cases.len(), 60_000);
}

#[test]
fn an_endless_line_is_not_held() {
    let endless = BufReader::new(std::io::repeat(b'x').take(1 << 40));
    let error = read_jsonl(endless, source(SplitFilter::All), &find).unwrap_err();
    expect!["records.jsonl, line 1: longer than 1048576 bytes; write one record a line and close every quote"]
        .assert_eq(&error.to_string());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}\":,a-z0-9NA\\\\ \n-]{0,80}") {
        for input in [bytes.as_slice(), text.as_bytes()] {
            let _ = read_jsonl(input, source(SplitFilter::All), &find);
            let _ = read_csv(input, source(SplitFilter::All));
        }
    }

    #[test]
    fn offsets_give_the_characters_between_them(stem in "\\PC{1,40}", start in 0_usize..45, end in 0_usize..45) {
        let line = format!(
            r#"{{"reference_id":"m","question_sha256":"{}","values":[{{"slot":"Symptom-Name","start":{start},"end":{end}}}]}}"#,
            hash_of(&stem)
        );
        let result = read_jsonl(line.as_bytes(), source(SplitFilter::All), &|_| Some(stem.clone()));
        let expected: String = stem.chars().skip(start).take(end.saturating_sub(start)).collect();
        let fits = start < end && end <= stem.chars().count() && !expected.trim().is_empty();
        prop_assert_eq!(result.is_ok(), fits);
        if let Ok(sets) = result {
            let values: Vec<&String> = sets[0].cases.values().flat_map(|slots| slots.values().flatten()).collect();
            prop_assert_eq!(values, vec![&expected]);
        }
    }
}
