//! JSON as it stands, without silent repair: a key that comes twice is an error, not "the last one wins".

use super::RowFault;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Reasons of [`parse_object`].
pub const REASONS: &[&str] = &["invalid_utf8", "invalid_json", "duplicate_key", "not_an_object"];

/// Parses one JSON object from raw bytes. Depth is capped by serde_json at 128.
pub fn parse_object(bytes: &[u8]) -> Result<Map<String, Value>, RowFault> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        RowFault::quarantine("invalid_utf8", format!("byte {} of the line is not UTF-8", error.valid_up_to() + 1))
    })?;
    match serde_json::from_str::<Strict>(text) {
        Ok(Strict(Value::Object(object))) => Ok(object),
        Ok(Strict(other)) => Err(RowFault::quarantine("not_an_object", format!("the line is {}", kind(&other)))),
        Err(error) => {
            let message = error.to_string();
            // The text stays in the message, the line number (always 1) does not help.
            let message = message.replace(" at line 1 column ", " at column ");
            let reason = if message.contains(DUPLICATE) { "duplicate_key" } else { "invalid_json" };
            Err(RowFault::quarantine(reason, message))
        }
    }
}

/// The JSON type of a value, with its article.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

const DUPLICATE: &str = "duplicate key";

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        serde_json::Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = sequence.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(de::Error::custom(format!("{DUPLICATE} `{key}`")));
            }
            let Strict(value) = map.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
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
