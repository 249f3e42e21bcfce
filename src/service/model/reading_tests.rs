use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;
use std::time::{Duration, Instant};

/// An object with the text `dx`; other keys are free.
fn diagnosis() -> ReplySchema {
    compile(json!({"type": "object", "required": ["dx"], "properties": {"dx": {"type": "string"}}}))
}

fn compile(schema: Value) -> ReplySchema {
    ReplySchema::compile(&schema).unwrap()
}

fn any_object() -> ReplySchema {
    compile(json!({"type": "object"}))
}

fn line(text: &str, schema: &ReplySchema) -> String {
    match read(text, schema) {
        Ok(Reading { value, repairs }) => {
            let repairs: Vec<_> = repairs.into_iter().map(Repair::as_str).collect();
            format!("{value} [{}]\n", repairs.join(" "))
        }
        Err(error) => format!("{error}\n"),
    }
}

/// Each reply as a Rust literal, and what is read from it.
fn check(replies: &[&str], expected: &Expect) {
    let schema = diagnosis();
    let lines: String = replies.iter().map(|reply| format!("{reply:?}\n    {}", line(reply, &schema))).collect();
    expected.assert_eq(&lines);
}

fn kind(text: &str) -> ReadingErrorKind {
    read(text, &diagnosis()).unwrap_err().kind
}

#[test]
fn llm_01_fence_reasoning_and_trailing_comma() {
    let reply = "<think>maybe {\"dx\":\"no\"}</think>```json\n{\"dx\":\"a ```x``` b\",}\n```";
    let reading = read(reply, &diagnosis()).unwrap();
    assert_eq!(reading.value, json!({"dx": "a ```x``` b"}));
    assert_eq!(reading.repairs, [Repair::ReasoningTags, Repair::Fence, Repair::TrailingComma]);
}

#[test]
fn llm_03_cut_replies_are_never_closed() {
    let schema = any_object();
    for reply in [r#"{"findings":["fever","cough","rig"#, r#"{"findings":["fever","cough""#] {
        for around in ["", "Here it is:\n", "```json\n", "<think>x</think>"] {
            for behind in ["", "\n```", "\n```\nDone."] {
                let text = format!("{around}{reply}{behind}");
                assert_eq!(read(&text, &schema).unwrap_err().kind, ReadingErrorKind::Unclosed, "{text}");
            }
        }
    }
}

#[test]
fn the_whole_text() {
    check(
        &[
            r#"{"dx":"a"}"#,
            "\u{feff} \r\n{\"dx\": \"\\u00e9\"}\n\u{a0}",
            r#"{"dx":"says </think> and ```x```"}"#,
            "",
            " \n\u{feff}\t",
            "null",
            "42",
            r#""{\"dx\":\"a\"}""#,
            r#"[{"dx":"a"}]"#,
            r#"{"dx":1}"#,
            r#"{"answer":{"dx":"a"}}"#,
            "I cannot help with that.",
        ],
        &expect![[r#"
            "{\"dx\":\"a\"}"
                {"dx":"a"} []
            "\u{feff} \r\n{\"dx\": \"\\u00e9\"}\n\u{a0}"
                {"dx":"é"} []
            "{\"dx\":\"says </think> and ```x```\"}"
                {"dx":"says </think> and ```x```"} []
            ""
                empty: no text
            " \n\u{feff}\t"
                empty: no text
            "null"
                schema_mismatch: null is not of type "object"
            "42"
                schema_mismatch: 42 is not of type "object"
            "\"{\\\"dx\\\":\\\"a\\\"}\""
                schema_mismatch: "{\"dx\":\"a\"}" is not of type "object"
            "[{\"dx\":\"a\"}]"
                schema_mismatch: the list is not of type "object"
            "{\"dx\":1}"
                schema_mismatch: /dx: 1 is not of type "string"
            "{\"answer\":{\"dx\":\"a\"}}"
                schema_mismatch: "dx" is a required property
            "I cannot help with that."
                no_json: only text: I cannot help with that.
        "#]],
    );
}

#[test]
fn fences() {
    check(
        &[
            "```json\n{\"dx\":\"a\"}\n```",
            "```\n{\"dx\":\"a\"}```",
            "~~~json\r\n{\"dx\":\"a\"}\r\n~~~",
            "```json {\"dx\":\"a\"} ```",
            "````json\n{\"dx\":\"```\"}\n````",
            "```json\n<think>x</think>{\"dx\":\"a\"}\n```",
            "```json\n```json\n{\"dx\":\"a\"}\n```\n```",
            "```json\n{\"dx\":\"a\"}",
            "```json\n{\"dx\":\"a\"}\n```\nand\n```json\n{\"dx\":\"a\"}\n```",
            "```json\n{\"dx\":\"a\"}\n```\nand\n```json\n{\"dx\":\"b\"}\n```",
            "```json\n```",
            "```\n \n```",
            "``````",
            "```json",
            "```\nThere is no diagnosis.\n```",
        ],
        &expect![[r#"
            "```json\n{\"dx\":\"a\"}\n```"
                {"dx":"a"} [fence]
            "```\n{\"dx\":\"a\"}```"
                {"dx":"a"} [fence]
            "~~~json\r\n{\"dx\":\"a\"}\r\n~~~"
                {"dx":"a"} [fence]
            "```json {\"dx\":\"a\"} ```"
                {"dx":"a"} [fence]
            "````json\n{\"dx\":\"```\"}\n````"
                {"dx":"```"} [fence]
            "```json\n<think>x</think>{\"dx\":\"a\"}\n```"
                {"dx":"a"} [fence reasoning_tags]
            "```json\n```json\n{\"dx\":\"a\"}\n```\n```"
                {"dx":"a"} [prose]
            "```json\n{\"dx\":\"a\"}"
                {"dx":"a"} [prose]
            "```json\n{\"dx\":\"a\"}\n```\nand\n```json\n{\"dx\":\"a\"}\n```"
                {"dx":"a"} [prose copies]
            "```json\n{\"dx\":\"a\"}\n```\nand\n```json\n{\"dx\":\"b\"}\n```"
                ambiguous: two different values among the 2 that fit the schema
            "```json\n```"
                no_json: an empty code fence
            "```\n \n```"
                no_json: an empty code fence
            "``````"
                no_json: only text: ``````
            "```json"
                no_json: only text: ```json
            "```\nThere is no diagnosis.\n```"
                no_json: only text: There is no diagnosis.
        "#]],
    );
}

#[test]
fn reasoning() {
    check(
        &[
            "<think>maybe {\"dx\":\"no\"}</think>\n\n{\"dx\":\"a\"}",
            "<THINKING>\n{\"dx\": </Thinking>{\"dx\":\"a\"}",
            "<reasoning>a</reasoning><think>b</think>```json\n{\"dx\":\"a\"}\n```",
            "[THINK]a[/THINK]{\"dx\":\"a\"}",
            "<think>a <think> b</think> c</think>{\"dx\":\"a\"}",
            "maybe {\"dx\":\"no\"}\n</think>\n{\"dx\":\"a\"}",
            "[/THINK]{\"dx\":\"a\"}",
            "<|channel|>analysis<|message|>{\"dx\":\"no\"}<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>{\"dx\":\"a\"}<|return|>",
            "<|channel|>analysis<|message|>maybe {\"dx\":\"no\"}",
            "<think>maybe {\"dx\":\"no\"}",
            "<think>maybe</think>",
            "{\"dx\":\"no\"}</think>",
            "Sure. <think>maybe {\"dx\":\"no\"}</think>{\"dx\":\"a\"}",
            "{\"dx\":\"a\"} <think>is that so?</think>",
            "Here: {\"dx\":\"x</think>y\"}",
        ],
        &expect![[r#"
            "<think>maybe {\"dx\":\"no\"}</think>\n\n{\"dx\":\"a\"}"
                {"dx":"a"} [reasoning_tags]
            "<THINKING>\n{\"dx\": </Thinking>{\"dx\":\"a\"}"
                {"dx":"a"} [reasoning_tags]
            "<reasoning>a</reasoning><think>b</think>```json\n{\"dx\":\"a\"}\n```"
                {"dx":"a"} [reasoning_tags fence]
            "[THINK]a[/THINK]{\"dx\":\"a\"}"
                {"dx":"a"} [reasoning_tags]
            "<think>a <think> b</think> c</think>{\"dx\":\"a\"}"
                {"dx":"a"} [reasoning_tags]
            "maybe {\"dx\":\"no\"}\n</think>\n{\"dx\":\"a\"}"
                {"dx":"a"} [reasoning_tags]
            "[/THINK]{\"dx\":\"a\"}"
                {"dx":"a"} [reasoning_tags]
            "<|channel|>analysis<|message|>{\"dx\":\"no\"}<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>{\"dx\":\"a\"}<|return|>"
                {"dx":"a"} [reasoning_tags]
            "<|channel|>analysis<|message|>maybe {\"dx\":\"no\"}"
                unclosed: the text ends inside the reasoning after <|channel|>
            "<think>maybe {\"dx\":\"no\"}"
                unclosed: the text ends inside the reasoning after <think>
            "<think>maybe</think>"
                empty: nothing follows the reasoning
            "{\"dx\":\"no\"}</think>"
                empty: nothing follows the reasoning
            "Sure. <think>maybe {\"dx\":\"no\"}</think>{\"dx\":\"a\"}"
                ambiguous: two different values among the 2 that fit the schema
            "{\"dx\":\"a\"} <think>is that so?</think>"
                {"dx":"a"} [prose]
            "Here: {\"dx\":\"x</think>y\"}"
                {"dx":"x</think>y"} [prose]
        "#]],
    );
}

#[test]
fn objects_in_prose() {
    check(
        &[
            "The answer is {\"dx\":\"a\"}.",
            "It's 5\" wide, in {braces} and {{\"dx\":\"a } ` ``` \\\" {\"}}",
            "First {\"other\":1}, then {\"dx\":\"a\"}",
            "{\"dx\":\"a\"}\n{\"dx\":\"a\"}",
            "{\"dx\":\"a\",}{\"dx\":\"a\"}",
            "{\"dx\":\"a\",\"n\":1} or {\"n\":1,\"dx\":\"a\"}",
            "{\"dx\":\"a\"} or {\"dx\":\"b\"}",
            "{\"dx\":\"a\"} or {\"dx\":\"b\"} or {\"dx\":",
            "{\"dx\":\"a\"} and {\"dx\":\"a",
            "{\"dx\":\"a\"} and {",
            "{\"dx\":\"a\"} and [{\"dx\":\"a\"}, ",
            "[1, \"a\nb\", {\"dx\":\"a\"}, ",
            "{\"dx\":\"a\"} by [1], [2, 3] in [0, 1)",
            "Result: {\"outer\":{\"dx\":\"a\"}}",
            "Result: [{\"dx\":\"a\"}]",
            "Result: [1, {\"dx\":\"a\"}]",
            "{\"a\": 1], \"b\": {\"dx\":\"a\"}}",
            "{\"a\":[{\"x\":1}}, {\"dx\":\"a\"}]",
            "{'dx': 'a', \"b\": {\"dx\":\"a\"}}",
            "{dx: 1, b: {\"dx\":\"a\"}}",
            "{/* a */ \"b\": {\"dx\":\"a\"}}",
            "{..., \"b\": {\"dx\":\"a\"}}",
            "{“b”: {\"dx\":\"a\"}}",
            "As {'dx': …} asks: {\"dx\":\"a\"}",
        ],
        &expect![[r#"
            "The answer is {\"dx\":\"a\"}."
                {"dx":"a"} [prose]
            "It's 5\" wide, in {braces} and {{\"dx\":\"a } ` ``` \\\" {\"}}"
                {"dx":"a } ` ``` \" {"} [prose]
            "First {\"other\":1}, then {\"dx\":\"a\"}"
                {"dx":"a"} [prose]
            "{\"dx\":\"a\"}\n{\"dx\":\"a\"}"
                {"dx":"a"} [copies]
            "{\"dx\":\"a\",}{\"dx\":\"a\"}"
                {"dx":"a"} [copies]
            "{\"dx\":\"a\",\"n\":1} or {\"n\":1,\"dx\":\"a\"}"
                {"dx":"a","n":1} [prose copies]
            "{\"dx\":\"a\"} or {\"dx\":\"b\"}"
                ambiguous: two different values among the 2 that fit the schema
            "{\"dx\":\"a\"} or {\"dx\":\"b\"} or {\"dx\":"
                unclosed: the text ends inside what begins with {"dx":
            "{\"dx\":\"a\"} and {\"dx\":\"a"
                unclosed: the text ends inside what begins with {"dx":"a
            "{\"dx\":\"a\"} and {"
                unclosed: the text ends inside what begins with {
            "{\"dx\":\"a\"} and [{\"dx\":\"a\"}, "
                unclosed: the text ends inside what begins with [{"dx":"a"},
            "[1, \"a\nb\", {\"dx\":\"a\"}, "
                unclosed: the text ends inside what begins with [1, "a b", {"dx":"a"},
            "{\"dx\":\"a\"} by [1], [2, 3] in [0, 1)"
                {"dx":"a"} [prose]
            "Result: {\"outer\":{\"dx\":\"a\"}}"
                schema_mismatch: "dx" is a required property
            "Result: [{\"dx\":\"a\"}]"
                schema_mismatch: the list is not of type "object"
            "Result: [1, {\"dx\":\"a\"}]"
                schema_mismatch: the list is not of type "object"
            "{\"a\": 1], \"b\": {\"dx\":\"a\"}}"
                invalid_json: expected `,` or `}` at line 1 column 8
            "{\"a\":[{\"x\":1}}, {\"dx\":\"a\"}]"
                unclosed: the text ends inside what begins with {"a":[{"x":1}}, {"dx":"a"}]
            "{'dx': 'a', \"b\": {\"dx\":\"a\"}}"
                invalid_json: key must be a string at line 1 column 2
            "{dx: 1, b: {\"dx\":\"a\"}}"
                invalid_json: key must be a string at line 1 column 2
            "{/* a */ \"b\": {\"dx\":\"a\"}}"
                invalid_json: key must be a string at line 1 column 2
            "{..., \"b\": {\"dx\":\"a\"}}"
                invalid_json: key must be a string at line 1 column 2
            "{“b”: {\"dx\":\"a\"}}"
                invalid_json: key must be a string at line 1 column 2
            "As {'dx': …} asks: {\"dx\":\"a\"}"
                {"dx":"a"} [prose]
        "#]],
    );
}

#[test]
fn slips_of_notation() {
    check(
        &[
            "{\"dx\":\"a\",\"l\":[1,2 , \n],}",
            "{\"dx\":\"a\nb\r\nc\td \\\" \\\\\",\"e\":\"a,]\" ,\n}",
            "so: {\"dx\":\"a\n\"}",
            "{\"dx\":\"a\",,}",
            "{\"dx\":\"a\",\"l\":[,]}",
            "{,\"dx\":\"a\"}",
            "{\"dx\":\"a\",\"b\":,}",
            "{\"dx\":\"a\u{1}\"}",
            "{\"dx\":\"a\\\n\"}",
            "{\"dx\":\"a\" \"b\":1}",
        ],
        &expect![[r#"
            "{\"dx\":\"a\",\"l\":[1,2 , \n],}"
                {"dx":"a","l":[1,2]} [trailing_comma]
            "{\"dx\":\"a\nb\r\nc\td \\\" \\\\\",\"e\":\"a,]\" ,\n}"
                {"dx":"a\nb\r\nc\td \" \\","e":"a,]"} [trailing_comma raw_newline raw_tab]
            "so: {\"dx\":\"a\n\"}"
                {"dx":"a\n"} [prose raw_newline]
            "{\"dx\":\"a\",,}"
                invalid_json: key must be a string at line 1 column 11
            "{\"dx\":\"a\",\"l\":[,]}"
                invalid_json: expected value at line 1 column 16
            "{,\"dx\":\"a\"}"
                invalid_json: key must be a string at line 1 column 2
            "{\"dx\":\"a\",\"b\":,}"
                invalid_json: expected value at line 1 column 15
            "{\"dx\":\"a\u{1}\"}"
                invalid_json: control character (\u0000-\u001F) found while parsing a string at line 1 column 9
            "{\"dx\":\"a\\\n\"}"
                invalid_json: invalid escape at line 2 column 0
            "{\"dx\":\"a\" \"b\":1}"
                invalid_json: expected `,` or `}` at line 1 column 11
        "#]],
    );
}

#[test]
fn other_notations_are_refused() {
    for text in [
        r#"{"dx":"a","n":NaN}"#,
        r#"{"dx":"a","n":Infinity}"#,
        r#"{"dx":"a","n":-Infinity}"#,
        r#"{"dx":"a","n":1e999}"#,
        r#"{"dx":"a","n":01}"#,
        r#"{"dx":"a","n":+1}"#,
        r#"{"dx":"a","n":.5}"#,
        r#"{"dx":"a","n":True}"#,
        r#"{"dx":"a","n":None}"#,
        r#"{"dx":"a","n":undefined}"#,
        r#"{"dx":'a'}"#,
        r#"{'dx':"a"}"#,
        r#"{dx:"a"}"#,
        "{\"dx\":\"a\" // why\n}",
        r#"{"dx":"a" /* why */}"#,
        r##"{"dx":"a" # why
}"##,
        r#"{"dx":"\ud800"}"#,
        r#"{"dx":"\x41"}"#,
        r#"{"dx":"a";"n":1}"#,
        r#"{"dx":"a"+"b"}"#,
        r#"{"dx":("a")}"#,
    ] {
        for text in [text.to_owned(), format!("So: {text}."), format!("```json\n{text}\n```")] {
            assert_eq!(kind(&text), ReadingErrorKind::InvalidJson, "{text}");
        }
    }
}

#[test]
fn keys_that_come_twice() {
    for text in [
        r#"{"dx":"a","dx":"a"}"#,
        r#"{"dx":"a","\u0064x":"a"}"#,
        r#"{"dx":"a","l":[{"n":{"k":1,"k":1}}]}"#,
        r#"{"dx":"a","dx":"b",}"#,
        r#"Either {"dx":"a"} or {"dx":"a","dx":"b"}"#,
        r#"[{"k":1,"k":2}] and {"dx":"a"}"#,
        "```json\n{\"dx\":\"a\n\",\"dx\":\"b\"}\n```",
    ] {
        assert_eq!(kind(text), ReadingErrorKind::DuplicateKey, "{text}");
    }
    let long = format!(r#"{{"{0}":1,"{0}":2}}"#, "k".repeat(5000));
    expect![[r#"
        duplicate_key: duplicate key `kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk…` at line 1 column 10008
    "#]].assert_eq(&line(&long, &diagnosis()));
}

#[test]
fn depth_and_length_are_capped() {
    let nested = |depth: usize| format!(r#"{{"dx":"a","l":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert!(read(&nested(126), &diagnosis()).is_ok());
    assert_eq!(kind(&nested(127)), ReadingErrorKind::InvalidJson);
    assert_eq!(kind(&nested(1 << 20)), ReadingErrorKind::InvalidJson);
    let deeper: String = (0..1000).map(|depth| format!("{{\"{depth}\":")).collect();
    assert_eq!(kind(&deeper), ReadingErrorKind::Unclosed);
    assert_eq!(kind(&" ".repeat(MAX_TEXT + 1)), ReadingErrorKind::TooLong);
    assert_eq!(kind(&" ".repeat(MAX_TEXT)), ReadingErrorKind::Empty);
}

#[test]
fn lists_can_be_what_the_schema_asks() {
    let schema = compile(json!({"type": "array", "items": {"type": "string"}}));
    let replies =
        ["[\"a\"]", "```\n[\"a\",]\n```", "So: [\"a\", \"b\"]. See [1].", "[\"a\", \"b", "So: [\"a\", ", "[]", "[1]"];
    let lines: String = replies.iter().map(|reply| line(reply, &schema)).collect();
    expect![[r#"
        ["a"] []
        ["a"] [fence trailing_comma]
        ["a","b"] [prose]
        unclosed: EOF while parsing a string at line 1 column 8
        unclosed: the text ends inside what begins with ["a",
        [] []
        schema_mismatch: /0: 1 is not of type "string"
    "#]]
    .assert_eq(&lines);
}

#[test]
fn schema_problems_are_short_and_have_pointers() {
    let schema = compile(json!({
        "type": "object",
        "required": ["dx"],
        "additionalProperties": false,
        "properties": {
            "dx": {"type": "string", "maxLength": 3},
            "n": {"type": "array", "items": {"type": "integer"}},
            "m": {"propertyNames": {"maxLength": 3}},
            "o": {"enum": [1, 2]},
            "p": {"$ref": "#/$defs/p"},
        },
        "$defs": {"p": {"pattern": "^a+$"}},
    }));
    let long = "x".repeat(1000);
    let mut lines = String::new();
    for value in [
        json!({}),
        json!({"dx": "a", "n": [1, "two", 3.5, null, true]}),
        json!({"dx": long}),
        json!({"dx": "a", long.as_str(): 1, "z": 1}),
        json!({"dx": "a", "m": {long.as_str(): 1}}),
        json!({"dx": "a", "n": {long.as_str(): 1}, "o": [long], "p": long}),
        json!({"dx": "a", "p": "b"}),
        json!(long),
        json!({"dx": "a", "p": "aaa"}),
    ] {
        let problems = schema.check(&value).err().unwrap_or_default();
        assert!(problems.chars().count() <= 300 && !problems.contains(&"x".repeat(61)), "{problems}");
        lines += &format!("{problems}\n");
    }
    expect![[r#"
        "dx" is a required property
        /n/1: "two" is not of type "integer"; /n/2: 3.5 is not of type "integer"; /n/3: null is not of type "integer"
        /dx: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… is longer than 3 characters
        keys that are not allowed: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
        /m: a key is not allowed: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… is longer than 3 characters
        /n: the object is not of type "array"; /o: the list is not one of 1 or 2; /p: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… does not match "^a+$"
        /p: "b" does not match "^a+$"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… is not of type "object"

    "#]].assert_eq(&lines);
}

#[test]
fn schemas_stand_alone() {
    let mut lines = String::new();
    for schema in [
        json!({"$ref": "https://example.org/other.json"}),
        json!({"properties": {"a": [{"$ref": "file:///etc/hostname"}]}}),
        json!({"$ref": "other.json#/a"}),
        json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        json!({"$ref": "#/$defs/none"}),
        json!({"$schema": "https://example.org/dialect"}),
        json!({"type": "thing"}),
        json!({"pattern": "("}),
        json!({"pattern": "(?=a)"}),
        json!(1),
        json!({"properties": {"$ref": {"type": "string"}, "a": {"$ref": "#"}}}),
    ] {
        lines += &match ReplySchema::compile(&schema) {
            Ok(_) => "ok\n".to_owned(),
            Err(error) => format!("{error:#}\n"),
        };
    }
    expect![[r#"
        the reply schema refers to https://example.org/other.json, outside of itself
        the reply schema refers to file:///etc/hostname, outside of itself
        the reply schema refers to other.json#/a, outside of itself
        the reply schema refers to https://json-schema.org/draft/2020-12/schema, outside of itself
        the reply schema: Pointer '/$defs/none' does not exist
        the reply schema: Unknown meta-schema: 'https://example.org/dialect'. Custom meta-schemas must be registered in the registry before use
        the reply schema: "thing" is not valid under any of the schemas listed in the 'anyOf' keyword
        the reply schema: "(" is not a "regex"
        the reply schema: "(?=a)" is not a "regex"
        the reply schema: 1 is not of types "boolean", "object"
        ok
    "#]].assert_eq(&lines);
}

#[test]
fn names_are_those_of_serde() {
    use ReadingErrorKind as Kind;
    for repair in [
        Repair::Fence,
        Repair::ReasoningTags,
        Repair::Prose,
        Repair::Copies,
        Repair::TrailingComma,
        Repair::RawNewline,
        Repair::RawTab,
    ] {
        assert_eq!(json!(repair), repair.as_str());
    }
    for kind in [
        Kind::Empty,
        Kind::TooLong,
        Kind::NoJson,
        Kind::InvalidJson,
        Kind::DuplicateKey,
        Kind::SchemaMismatch,
        Kind::Ambiguous,
        Kind::Unclosed,
        Kind::Repetition,
    ] {
        assert_eq!(json!(kind), kind.as_str());
    }
}

#[test]
fn loops_at_the_end() {
    let loops = |text: &str| repetition(text).map(|found| (found.unit.to_owned(), found.times));
    let unit = "the patient has pain; ";
    assert_eq!(loops(&format!("Start. {}", unit.repeat(8))), Some((unit.to_owned(), 8)));
    assert_eq!(loops(&unit.repeat(7)), None);
    // The last occurrence may be cut, and what is repeated may be short or not ASCII.
    assert_eq!(loops(&format!("{}the pat", unit.repeat(9))), Some(("ient has pain; the pat".to_owned(), 9)));
    assert_eq!(loops(&"no ".repeat(56)), Some(("no ".repeat(7), 8)));
    assert_eq!(loops(&"no ".repeat(50)), None);
    assert_eq!(loops(&"é".repeat(160)), Some(("é".repeat(20), 8)));
    assert_eq!(loops(&"é".repeat(159)), None);
    assert_eq!(loops(&"°☃".repeat(400)), Some(("°☃".repeat(10), 40)));
    assert_eq!(loops(&format!("{}.", unit.repeat(20))), None);
    assert_eq!(loops(""), None);
    assert_eq!(loops("a"), None);

    let cut = format!(r#"{{"dx":"{}"#, unit.repeat(30));
    expect![[r#"
        repetition: EOF while parsing a string at line 1 column 666; the last " the patient has pain;" comes 29 times in a row
    "#]].assert_eq(&line(&cut, &diagnosis()));
    assert_eq!(kind(&"I see. I hear you. Yes. ".repeat(20)), ReadingErrorKind::Repetition);
    // A complete reply is one, however it repeats itself.
    assert!(read(&format!("{cut}\"}}"), &diagnosis()).is_ok());
}

#[test]
fn hostile_texts_take_linear_time() {
    let schema = diagnosis();
    let million = |unit: &str| unit.repeat((1 << 20) / unit.len());
    let mut texts: Vec<String> = [
        "{",
        "[",
        "`",
        "\"",
        "\\",
        "~",
        "<",
        "{\"",
        "\"{\"",
        "{\"a\":",
        "{\"a\":[",
        "[[{",
        "[1,",
        "{}",
        "[]",
        "{a:",
        "{ ",
        "{a",
        "{\"\"}",
        "{'a'}",
        "{\"a\",}",
        "{\"dx\":\"a\"}",
        "{\"dx\":1}",
        "{\"a\":1,\"a\":1}",
        "}",
        "]}",
        "\n",
        "```\n",
        "```json\n",
        "<think>",
        "</think>",
        "<think></think>",
        "a</think>",
        "<think></think>```\n",
        "[THINK]",
        "<|channel|>",
        "<|channel|>final<|message|>",
        "<|start|>",
        "{\"a\":\"\\",
        "\u{feff}a",
        ",\n",
        "{\"dx\":\"\n\"}",
        "é",
        "[/THINK] ",
    ]
    .into_iter()
    .map(million)
    .collect();
    texts.push(format!("{{\"dx\":\"{}\"}}", million("\n")));
    texts.push(format!("[{}]", million("1,\n")));
    texts.push(format!("{{\"dx\":\"a\",\"l\":[{}1,{}]}}", million("1,"), million(" ")));
    texts.push(format!("```\n{}\n```", million("{\"a\":1}\n")));
    texts.push(format!("```\n{}", million("</think>\n")));
    texts.push(format!("<think>{}", million("</thin")));
    for text in texts {
        let start = Instant::now();
        let _ = read(&text, &schema);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?} for {}", excerpt(&text, 20));
    }
}

const PIECES: [&str; 19] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "`",
    "```",
    "```json\n",
    "\n",
    "\t",
    ",",
    ":",
    "<think>",
    "</think>",
    "[/THINK]",
    "<|channel|>final<|message|>",
    "{\"a\":1}",
    "é",
];

/// Any JSON value, with strings that look like what surrounds replies.
fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..8).prop_map(|parts| parts.concat()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(text.clone(), inner, 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn objects() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map(any::<String>(), values(), 0..4)
        .prop_map(|entries| Value::Object(entries.into_iter().collect()))
}

/// What may stand before and after an object, and what is reported then.
const AROUND: [(&str, &str, &[Repair]); 10] = [
    ("", "", &[]),
    ("\u{feff}\n", " \n", &[]),
    ("```json\n", "\n```", &[Repair::Fence]),
    ("```\n", "```\n", &[Repair::Fence]),
    ("<think>{\"a\": </think>", "", &[Repair::ReasoningTags]),
    ("well </think>\n", "", &[Repair::ReasoningTags]),
    ("<think>x</think>\n```json\n", "\n```", &[Repair::ReasoningTags, Repair::Fence]),
    ("It's 5\" {here}: ", " (see [1]).", &[Repair::Prose]),
    ("As asked:\n```json\n", "\n```\nAnything else?", &[Repair::Prose]),
    ("<|channel|>final<|message|>", "<|return|>", &[Repair::ReasoningTags]),
];

proptest! {
    #[test]
    fn what_is_wrapped_is_read_back(value in objects(), pretty: bool, around in 0..AROUND.len()) {
        let json = if pretty { serde_json::to_string_pretty(&value)? } else { value.to_string() };
        let (before, after, repairs) = AROUND[around];
        let reading = read(&format!("{before}{json}{after}"), &any_object()).map_err(|error| error.to_string());
        prop_assert_eq!(reading, Ok(Reading { value, repairs: repairs.to_vec() }));
    }

    #[test]
    fn what_is_cut_is_never_read(value in objects(), pretty: bool, around in 0..AROUND.len(), cut: prop::sample::Index) {
        let json = if pretty { serde_json::to_string_pretty(&value)? } else { value.to_string() };
        let places: Vec<_> = json.char_indices().map(|(place, _)| place).skip(1).collect();
        let json = &json[..*cut.get(&places)];
        let (before, after, _) = AROUND[around];
        let schema = any_object();
        for text in [format!("{before}{json}"), format!("{before}{json}{after}"), format!("{{}} {before}{json}")] {
            if let Ok(reading) = read(&text, &schema) {
                prop_assert!(false, "{} from {}", reading.value, text);
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text: String) {
        let _ = read(&text, &any_object());
        let _ = repetition(&text);
    }

    #[test]
    fn any_brackets_and_tags_are_read_or_refused(
        pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..40)
    ) {
        let text = pieces.concat();
        let _ = read(&text, &any_object());
        let _ = mend(&text);
    }

    #[test]
    fn mending_keeps_what_is_right(value in objects(), pretty: bool) {
        let json = if pretty { serde_json::to_string_pretty(&value)? } else { value.to_string() };
        prop_assert_eq!(mend(&json), None);
    }
}
