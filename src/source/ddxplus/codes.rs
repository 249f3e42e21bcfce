//! ICD-10 codes of the conditions table: their shape, whether a category exists, and corrections with reasons
//! (`pipelines/lexicon/ddxplus_icd10.toml`). The published table has wrong, malformed and doubled codes.

use crate::error::usage;
use crate::record::vector::CodeState;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is used in place of published codes, and which categories there are.
#[derive(Clone, Debug)]
pub struct Codes {
    file: String,
    by_condition: BTreeMap<String, Correction>,
    /// First and last category of a range, compared as text.
    ranges: Vec<(String, String)>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Correction {
    condition: String,
    published: String,
    icd10: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CodesFile {
    version: u32,
    #[serde(default, rename = "correction")]
    corrections: Vec<Correction>,
    categories: Categories,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Categories {
    ranges: Vec<String>,
}

/// The code of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// With its dot, in capitals.
    pub icd10: Option<String>,
    /// As published; none where the table has none.
    pub published: Option<String>,
    pub state: CodeState,
    /// Why it is not the published one.
    pub reason: Option<String>,
}

impl Codes {
    /// Reads the file of corrections.
    ///
    /// # Errors
    /// Not TOML of this form, a condition that is corrected twice, a correction without reason or to what is no code.
    pub fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        let parsed: CodesFile = toml::from_str(text).map_err(|error| usage(format!("{file}: {error}")))?;
        if parsed.version != 1 {
            return Err(usage(format!("{file}: version is {}, 1 is expected", parsed.version)));
        }
        let mut ranges = Vec::new();
        for range in &parsed.categories.ranges {
            let ends =
                range.split_once('-').filter(|(first, last)| first.len() == 3 && last.len() == 3 && first <= last);
            let (first, last) =
                ends.ok_or_else(|| usage(format!("{file}: categories.ranges: `{range}` is not like `A00-A99`")))?;
            ranges.push((first.to_owned(), last.to_owned()));
        }
        let mut codes = Self { file: file.to_owned(), by_condition: BTreeMap::new(), ranges };
        for correction in parsed.corrections {
            let condition = correction.condition.clone();
            if codes.normal(&correction.icd10).as_deref() != Some(correction.icd10.as_str()) {
                let message = format!(
                    "{file}: `{condition}`: `{}` is not an ICD-10 code in capitals with its dot",
                    correction.icd10
                );
                return Err(usage(message));
            }
            if correction.reason.trim().is_empty() {
                return Err(usage(format!("{file}: the correction of `{condition}` gives no reason")));
            }
            if codes.by_condition.insert(condition.clone(), correction).is_some() {
                return Err(usage(format!("{file}: `{condition}` is corrected twice")));
            }
        }
        Ok(codes)
    }

    /// The code of a condition.
    ///
    /// # Errors
    /// A correction of another published code than the table has: it needs a new decision.
    pub fn of_condition(&self, table: &str, condition: &str, published: &str) -> anyhow::Result<Code> {
        let source = (!published.trim().is_empty()).then(|| published.to_owned());
        if let Some(correction) = self.by_condition.get(condition) {
            if correction.published != published {
                return Err(usage(format!(
                    "{}: the correction of `{condition}` is of the published code `{}`, but {table} has `{published}`",
                    self.file, correction.published
                )));
            }
            return Ok(Code {
                icd10: Some(correction.icd10.clone()),
                published: source,
                state: CodeState::Corrected,
                reason: Some(correction.reason.clone()),
            });
        }
        let parts: Vec<&str> =
            published.split([',', ';', '/', ' ']).map(str::trim).filter(|part| !part.is_empty()).collect();
        let (icd10, state) = match parts.as_slice() {
            [] => (None, CodeState::Missing),
            [one] => match self.normal(one) {
                Some(code) => (Some(code), CodeState::AsPublished),
                None => (None, CodeState::Malformed),
            },
            several if several.iter().all(|part| self.normal(part).is_some()) => (None, CodeState::Ambiguous),
            _ => (None, CodeState::Malformed),
        };
        Ok(Code { icd10, published: source, state, reason: None })
    }

    /// A code in capitals with its dot, if it has the shape of one and its category lies in a known range.
    fn normal(&self, code: &str) -> Option<String> {
        let code = code.trim().to_ascii_uppercase();
        let (category, rest) = match code.split_once('.') {
            Some((category, rest)) if !rest.is_empty() => (category, rest),
            Some(_) => return None,
            None => code.split_at_checked(3)?,
        };
        let [letter, digit, last] = category.as_bytes() else { return None };
        let is_shaped = letter.is_ascii_uppercase()
            && digit.is_ascii_digit()
            && last.is_ascii_alphanumeric()
            && rest.len() <= 4
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_known = self.ranges.iter().any(|(first, last)| first.as_str() <= category && category <= last.as_str());
        if !is_shaped || !is_known {
            return None;
        }
        Some(if rest.is_empty() { category.to_owned() } else { format!("{category}.{rest}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fmt::Write;

    const FILE: &str = "version = 1\n[[correction]]\ncondition = 'Lupus'\npublished = 'M34'\nicd10 = 'M32.9'\nreason = 'another disease'\n\
        [categories]\nranges = ['A00-B99', 'C00-D48', 'G00-G99', 'J00-J99', 'M00-M99']\n";

    /// Case ddx-05: one condition has the code of another disease.
    #[test]
    fn ddx_05_codes_are_checked_and_corrected_with_a_reason() {
        let codes = Codes::parse("codes.toml", FILE).unwrap();
        let mut account = String::new();
        for published in
            ["g44.009", "j40", "J4509", "j17, j18", "J18 or so", "X99", "D49", "JX0", "J18.", "", "C7A.0", "j17.12345"]
        {
            let code = codes.of_condition("t", "Other", published).unwrap();
            writeln!(account, "{published:?}: {:?} {:?}", code.icd10, code.state).unwrap();
        }
        expect![[r#"
            "g44.009": Some("G44.009") AsPublished
            "j40": Some("J40") AsPublished
            "J4509": Some("J45.09") AsPublished
            "j17, j18": None Ambiguous
            "J18 or so": None Malformed
            "X99": None Malformed
            "D49": None Malformed
            "JX0": None Malformed
            "J18.": None Malformed
            "": None Missing
            "C7A.0": Some("C7A.0") AsPublished
            "j17.12345": None Malformed
        "#]]
        .assert_eq(&account);
        let lupus = codes.of_condition("t", "Lupus", "M34").unwrap();
        assert_eq!(
            (lupus.icd10.as_deref(), lupus.published.as_deref(), lupus.state),
            (Some("M32.9"), Some("M34"), CodeState::Corrected)
        );
        let error = codes.of_condition("en/release_conditions.json", "Lupus", "M35").unwrap_err().to_string();
        assert!(error.contains("`M34`") && error.contains("`M35`"), "{error}");
        assert!(Codes::parse("codes.toml", &FILE.replace("M32.9", "m329")).is_err());
        assert!(Codes::parse("codes.toml", &FILE.replace("another disease", " ")).is_err());
    }
}
