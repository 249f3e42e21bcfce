//! Names of French patient files that the evidences table does not have (`pipelines/lexicon/ddxplus_french.toml`).

use crate::error::usage;
use serde::Deserialize;
use std::collections::BTreeMap;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// French names of evidences, and values that do not read like their meaning.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrenchNames {
    version: u32,
    /// Name → code of the evidences table.
    pub evidences: BTreeMap<String, String>,
    /// Code of an evidence → value as written → value of the table.
    #[serde(default)]
    pub values: BTreeMap<String, BTreeMap<String, String>>,
}

impl FrenchNames {
    /// Reads the file of names.
    ///
    /// # Errors
    /// Not TOML of this form, or two names of one code.
    pub fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        let names: Self = toml::from_str(text).map_err(|error| usage(format!("{file}: {error}")))?;
        if names.version != 1 {
            return Err(usage(format!("{file}: version is {}, 1 is expected", names.version)));
        }
        let mut by_code = BTreeMap::new();
        for (name, code) in &names.evidences {
            if let Some(other) = by_code.insert(code, name) {
                return Err(usage(format!("{file}: `{other}` and `{name}` are both `{code}`")));
            }
        }
        Ok(names)
    }
}

/// A value as French files write it: small letters without accents, each run of anything but letters and digits as `_`.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for character in text.nfd().filter(|character| !is_combining_mark(*character)).flat_map(char::to_lowercase) {
        match character {
            'œ' => folded.push_str("oe"),
            'æ' => folded.push_str("ae"),
            _ if character.is_alphanumeric() => folded.push(character),
            _ if !folded.ends_with('_') => folded.push('_'),
            _ => {}
        }
    }
    folded
}
