//! Clinical values in one form: sex, age, units, vital signs, laboratory results and days relative to presentation.
//!
//! The attributes of a PatientVector (MTDiag, 4.2.1 and B.5) come from sources that write them differently: tables of
//! DDXPlus and MIMIC-IV, prose and tables of case reports. Everything here is a pure function of a text and of
//! [`ClinicalWords`], which are read once from `pipelines/lexicon/clinical.toml`. What a rule does not know stays
//! unread: no unit is guessed, no value is repaired. Units are those of UCUM; the bounds of vital signs are limits of
//! what living bodies have, given with their reasons in the lexicon.
//!
//! Ranges are bytes of the text given, and always fall on character boundaries. Negation and person ("her mother's
//! blood pressure") are not looked at here; [`crate::text::context`] does that for a range.

pub mod age;
pub mod dates;
mod numbers;
mod prose;
pub mod results;
pub mod sex;
pub mod units;
pub mod vitals;
mod words;

#[cfg(test)]
mod tests;

pub use words::ClinicalWords;

/// Compiles a pattern of this folder's modules.
fn fixed(pattern: &str) -> regex::Regex {
    // The patterns are constants, and a test of their module compiles each.
    regex::Regex::new(pattern).expect("a fixed pattern")
}
