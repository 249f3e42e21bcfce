//! Lines of JSON, with the reason why one cannot be read.

use super::RowFault;
use crate::text::strict_json::{is_duplicate_key, kind, parse_value};
use serde_json::{Map, Value};

/// Reasons of [`parse_object`].
pub const REASONS: &[&str] = &["invalid_utf8", "invalid_json", "duplicate_key", "not_an_object"];

/// Parses one JSON object from raw bytes. Depth is capped by serde_json at 128.
pub fn parse_object(bytes: &[u8]) -> Result<Map<String, Value>, RowFault> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        RowFault::quarantine("invalid_utf8", format!("byte {} of the line is not UTF-8", error.valid_up_to() + 1))
    })?;
    match parse_value(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(RowFault::quarantine("not_an_object", format!("the line is {}", kind(&other)))),
        Err(error) => {
            let is_duplicate = is_duplicate_key(&error);
            let message = error.to_string();
            // The text stays in the message, the line number (always 1) does not help.
            let message = message.replace(" at line 1 column ", " at column ");
            let reason = if is_duplicate { "duplicate_key" } else { "invalid_json" };
            Err(RowFault::quarantine(reason, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn faults_are_named() {
        let mut text = String::new();
        for line in [
            &br#"{"a": 1}"#[..],
            br#"{"a": 1, "b": {"c": 1, "c": 2}}"#,
            br#"{"a": "cut of"#,
            br#"[1]"#,
            b"{\"a\": \"\xff\"}",
            b"{\"a\": 1} {\"a\": 2}",
            b"{\"a\": NaN}",
            b"{\"a\": \"\\ud800\"}",
            b"",
        ] {
            match parse_object(line) {
                Ok(object) => text += &format!("ok {}\n", Value::Object(object)),
                Err(fault) => text += &format!("{}: {}\n", fault.reason, fault.detail),
            }
        }
        expect![[r#"
            ok {"a":1}
            duplicate_key: duplicate key `c` at column 26
            invalid_json: EOF while parsing a string at column 13
            not_an_object: the line is an array
            invalid_utf8: byte 8 of the line is not UTF-8
            invalid_json: trailing characters at column 10
            invalid_json: expected value at column 7
            invalid_json: unexpected end of hex escape at column 14
            invalid_json: EOF while parsing a value at column 0
        "#]]
        .assert_eq(&text);
    }
}
