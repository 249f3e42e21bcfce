//! JSON as far as records need it, with repeated keys rejected: the usual readers keep the last of them in silence.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A JSON value. Objects keep the order of the text, and no key stands twice in one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    /// A whole number, as it is written.
    Integer(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
    /// What no record holds, by its name.
    Other(&'static str),
}

impl Node {
    /// Reads one value that takes up the whole text.
    ///
    /// # Errors
    /// What is wrong with the JSON, or which key stands twice, with the column.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| without_line(&error))
    }

    /// What the value is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Integer(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
            Self::Other(kind) => kind,
        }
    }
}

/// The message of a JSON error without its line, which counts within one line of the file.
pub(super) fn without_line(error: &serde_json::Error) -> String {
    // Some messages repeat text of the file, which may be long.
    let text = error.to_string();
    let shown = |message: &str| message.chars().take(300).collect::<String>();
    match text.rsplit_once(" at line ") {
        Some((message, _)) => format!("{}, column {}", shown(message), error.column()),
        None => shown(&text),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Other("true or false"))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Integer(number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Integer(number.to_string()))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Node, E> {
        // As a number of the machine it has lost its digits: 1.50 would become 1.5.
        Ok(Node::Other("a decimal number (write it as a string)"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut object: Vec<(String, Node)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                let key: String = key.chars().take(60).collect();
                return Err(A::Error::custom(format!("the key {key:?} stands twice, keep one of them")));
            }
            object.push((key, entries.next_value()?));
        }
        Ok(Node::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn repeated_keys_are_found_at_any_depth() {
        let check = |text: &str| match Node::parse(text) {
            Ok(node) => format!("{node:?}"),
            Err(message) => message,
        };
        let cases = [
            r#"{"a":[null,1,-2,"x",{"b":true}],"c":1.5}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a":[{"b":1,"\u0062":2}]}"#,
            r#"{"a":"#,
            "{} {}",
            "",
        ];
        expect![[r#"
            Object([("a", List([Null, Integer("1"), Integer("-2"), Text("x"), Object([("b", Other("true or false"))])])), ("c", Other("a decimal number (write it as a string)"))])
            the key "a" stands twice, keep one of them, column 10
            the key "b" stands twice, keep one of them, column 21
            EOF while parsing a value, column 5
            trailing characters, column 4
            EOF while parsing a value, column 0"#]].assert_eq(&cases.map(check).join("\n"));
        assert!(Node::parse(&"[".repeat(100_000)).is_err());
    }
}
