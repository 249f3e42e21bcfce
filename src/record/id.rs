//! Record ids, case ids and hashes (SPEC section 3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

/// SHA-256 of some bytes as 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Hash(String);

impl Hash {
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_digest(Sha256::digest(bytes).into())
    }

    pub fn from_digest(digest: [u8; 32]) -> Self {
        Self(hex(&digest))
    }

    /// Takes 64 lower-case hexadecimal digits as they are: the caller has checked them.
    pub fn parse(digits: &str) -> Self {
        Self(digits.to_owned())
    }

    /// Hash of the canonical JSON (RFC 8785) of a value.
    pub fn of_json<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<Self> {
        Ok(Self::of(&canonical_json(value)?))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 16 digits, as used in ids and folder names.
    pub fn short(&self) -> &str {
        self.0.get(..16).unwrap_or(&self.0)
    }

    /// The 32 bytes, or `None` when the text is not 64 hexadecimal digits (a value read from a file).
    pub fn to_bytes(&self) -> Option<[u8; 32]> {
        let digits = self.0.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            *byte = (hex_value(*high)? << 4) | hex_value(*low)?;
        }
        Some(bytes)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Canonical JSON (RFC 8785) of a value, as UTF-8 bytes.
pub fn canonical_json<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<Vec<u8>> {
    Ok(serde_json_canonicalizer::to_vec(&value)?)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS[usize::from(nibble)]));
        }
    }
    text
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// `<source>:<native id>`, or `<source>:<16 hex>` where the source has none; `~2`, `~3` mark
/// repeats in (file, position) order, `_1`, `_2` the children of a split record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RecordId(String);

impl RecordId {
    /// Takes a finished id as it is: one that was read from a store file or typed by a person.
    pub fn parse(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn native(source: &str, native_id: &str) -> Self {
        Self(format!("{source}:{native_id}"))
    }

    /// Id of a record without a native id: from the canonical JSON of its raw identity fields.
    pub fn from_identity<T: Serialize + ?Sized>(source: &str, identity: &T) -> anyhow::Result<Self> {
        Ok(Self(format!("{source}:{}", Hash::of_json(identity)?.short())))
    }

    /// Id of input that cannot be parsed: from the hash of its raw bytes.
    pub fn from_raw_hash(source: &str, raw: &Hash) -> Self {
        Self(format!("{source}:{}", raw.short()))
    }

    /// The `n`-th occurrence of this id in (file, position) order; the first keeps the plain id.
    #[must_use]
    pub fn occurrence(&self, n: u32) -> Self {
        if n < 2 { self.clone() } else { Self(format!("{}~{n}", self.0)) }
    }

    /// The `n`-th child (from 1) of a record that was split.
    #[must_use]
    pub fn child(&self, n: usize) -> Self {
        Self(format!("{}_{n}", self.0))
    }

    /// The id without what [`Self::occurrence`] added: equal for records that are told apart by nothing else.
    #[must_use]
    pub fn first_occurrence(&self) -> Self {
        let repeats = self.0.rsplit_once('~').filter(|(_, n)| n.bytes().all(|digit| digit.is_ascii_digit()));
        Self(repeats.map_or(self.0.as_str(), |(first, _)| first).to_owned())
    }

    /// The part before the first colon.
    pub fn source(&self) -> &str {
        self.0.split_once(':').map_or("", |(source, _)| source)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id under which a release shows the record: opaque, since native ids can name the
    /// diagnosis or be credentialed.
    pub fn case_id(&self, pipeline: &str) -> String {
        format!("{pipeline}-{}", Hash::of(self.0.as_bytes()).short())
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_hex_and_come_back_as_bytes() {
        let hash = Hash::of(b"");
        assert_eq!(hash.as_str(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(hash.short(), "e3b0c44298fc1c14");
        assert_eq!(hash.to_bytes().map(Hash::from_digest), Some(hash));
        assert_eq!(Hash("xyz".into()).to_bytes(), None);
    }

    #[test]
    fn repeats_know_their_first() {
        let id = RecordId::native("s", "a~b");
        assert_eq!(id.occurrence(12).first_occurrence(), id);
        assert_eq!(id.first_occurrence(), id);
    }

    #[test]
    fn identity_does_not_depend_on_key_order() {
        let one = serde_json::json!({"b": 1, "a": "é"});
        let two: serde_json::Value = serde_json::from_str(r#"{"a":"\u00e9","b":1.0}"#).unwrap();
        assert_eq!(RecordId::from_identity("s", &one).unwrap(), RecordId::from_identity("s", &two).unwrap());
    }

    #[test]
    fn repeats_and_children_extend_the_id() {
        let id = RecordId::native("pmc", "PMC7");
        assert_eq!(id.occurrence(1).as_str(), "pmc:PMC7");
        assert_eq!(id.occurrence(3).child(2).as_str(), "pmc:PMC7~3_2");
        assert_eq!(id.occurrence(3).source(), "pmc");
        assert!(id.case_id("clinmm").starts_with("clinmm-"));
        assert_eq!(id.case_id("clinmm").len(), "clinmm-".len() + 16);
    }
}
