//! Ages as years.

use super::fixed;
use crate::text::number_words::{TENS, UNITS};
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// Longest text that is read, in bytes.
const MAX_TEXT: usize = 80;
/// Nobody is known to have lived longer than 122 years.
const MAX_YEARS: f64 = 130.0;
const DAYS_OF_YEAR: f64 = 365.25;
/// Ages above are put into one group by tables that follow the Safe Harbor rule of HIPAA (45 CFR 164.514).
const GROUPED_ABOVE: f64 = 89.0;

/// An age as a text states it.
#[derive(Clone, Debug, PartialEq)]
pub struct Age {
    /// Years; months / 12, weeks * 7 / 365.25, days / 365.25, hours and minutes as parts of a day. None for a decade, a
    /// range, a limit, an approximation or a stage of life.
    pub years: Option<f64>,
    /// As written, trimmed.
    pub text: String,
    /// More than 89 years. De-identified tables put all such ages into one group, which MIMIC-IV writes as 91: there it
    /// is no age but a bound.
    pub is_above_89: bool,
}

const NUMBER: &str = concat!(
    r"[0-9]{1,3}(?:\.[0-9]{1,2})?(?:[ -]?[½¼¾]|[ -](?:and[ -])?(?:1/2|1/4|3/4|a[ -]half))?|[½¼¾]|",
    r"WORDS(?:[ -]and[ -]a[ -]half)?",
);
const UNIT: &str = concat!(
    r"years?|yrs?\.?|y\.?/?o\.?|yr/o|y|months?|mos?|m/o|weeks?|wks?|days?|hours?|hrs?|minutes?|mins?|",
    r"ans?|mois|semaines?|jours?|heures?",
);

static AGE: LazyLock<Regex> = LazyLock::new(|| {
    let number = NUMBER.replace("WORDS", &number_words());
    fixed(&format!(
        concat!(
            r"^(?:an? |the )?(?<aged>(?:at the )?aged?(?: of| is)?:? ?)?(?<limit>(?:about|approximately|",
            r"approx\.?|around|circa|almost|nearly|over|under|above|below|older than|younger than|more than|",
            r"less than|at least)[ -]|[<>≤≥~] ?=? ?)?(?<low>{number})(?<plus>\+)?(?: ?(?:-|–|",
            r"to) ?(?<high>{number}))?(?:[ -]?(?<unit>{UNIT}))?(?:(?:,| and|",
            r",? et)?[ -]?(?<second>{number})[ -]?(?<second_unit>{UNIT}))?(?<old>[ -]?(?:old|of[ -]age|",
            r"d'âge))?$",
        ),
        number = number,
        UNIT = UNIT
    ))
});
/// Ages in words that are no number of years.
static STAGE: LazyLock<Regex> = LazyLock::new(|| {
    fixed(concat!(
        r"^(?:an? |the )?(?:(?:in |during )?(?:(?:his|her|their|the) )?(?:(?:early|mid|middle|",
        r"late)[ -])?(?:[1-9]0(?:'|’)?s|(?:twen|thir|for|fif|six|seven|eigh|nine)ties|teens)|newborn|",
        r"neonate|neonatal|infant|infancy|toddler|child|childhood|adolescent|adolescence|teenager|teenage|",
        r"adult|adulthood|middle[ -]aged?|elderly|(?:dol|day of life) ?#?[0-9]{1,3}|[0-9]{1,3}(?:st|nd|rd|",
        r"th) day of life)$",
    ))
});

/// Number words up to ninety-nine as a pattern, those that begin like others first.
fn number_words() -> String {
    let mut units = UNITS;
    units.sort_by_key(|word| std::cmp::Reverse(word.len()));
    format!("(?:(?:{})(?:[ -](?:{}))?|{})", TENS.join("|"), units.join("|"), units.join("|"))
}

/// Reads a text that is nothing but an age: `54-year-old`, `54 years`, `6 months`, `2 years and 3 months`, `aged 33`,
/// `fifty-four years old`, `91`; also in French (`54 ans`). `years` is None for what states no number of years (`in her
/// 60s`, `20-30 years`, `over 50`, `newborn`, `day of life 3`: whether that day counts from 0 or 1 is not said). None
/// for a text that is no age, and for more than 130 years.
pub fn age(text: &str) -> Option<Age> {
    let text = text.trim();
    if text.len() > MAX_TEXT {
        return None;
    }
    let lower = text.to_lowercase();
    let written = |years: Option<f64>, is_above_89: bool| Some(Age { years, text: text.to_owned(), is_above_89 });
    if STAGE.is_match(&lower) {
        return written(None, false);
    }
    let found = AGE.captures(&lower)?;
    let has = |name: &str| found.name(name).is_some();
    // "3 to" and "and 5 months" without a unit before are no ages; "old" alone belongs to a unit.
    if !has("unit") && (has("second") || found.name("old").is_some_and(|old| old.as_str().contains("old"))) {
        return None;
    }
    let mut years = in_years(&found, "low", "unit")?;
    if has("second") {
        let second = in_years(&found, "second", "second_unit")?;
        // "6 months 2 years" is not one age.
        if second >= one(unit(&found, "unit"))? {
            return None;
        }
        years += second;
    }
    if has("high") {
        let high = in_years(&found, "high", "unit")?;
        return (high > years && high <= MAX_YEARS).then(|| written(None, years > GROUPED_ABOVE)).flatten();
    }
    if years > MAX_YEARS {
        return None;
    }
    let is_above_89 = match found.name("limit").map_or("", |limit| limit.as_str().trim()) {
        ">" | "over" | "above" | "older than" | "more than" => years >= GROUPED_ABOVE,
        "" | "≥" | ">=" | "> =" | "at least" => years > GROUPED_ABOVE,
        _ => false,
    };
    let is_exact = !has("limit") && !has("plus");
    written(is_exact.then_some(years), is_above_89)
}

fn unit<'t>(found: &'t Captures<'_>, name: &str) -> &'t str {
    found.name(name).map_or("years", |unit| unit.as_str())
}

fn in_years(found: &Captures<'_>, number: &str, unit_name: &str) -> Option<f64> {
    count_in_years(count(found.name(number)?.as_str())?, unit(found, unit_name))
}

fn one(unit: &str) -> Option<f64> {
    count_in_years(1.0, unit)
}

/// Divisions last, so that 12 months are 1 and 6 months 0.5 exactly.
fn count_in_years(count: f64, unit: &str) -> Option<f64> {
    Some(match unit.trim_end_matches(['.', 's']) {
        "month" | "mo" | "m/o" | "moi" => count / 12.0,
        "week" | "wk" | "semaine" => count * 7.0 / DAYS_OF_YEAR,
        "day" | "jour" => count / DAYS_OF_YEAR,
        "hour" | "hr" | "heure" => count / (24.0 * DAYS_OF_YEAR),
        "minute" | "min" => count / (24.0 * 60.0 * DAYS_OF_YEAR),
        unit if unit.starts_with('y') || unit.starts_with("an") => count,
        _ => return None,
    })
}

/// "33", "2.5", "2 1/2", "fifty-four", "two and a half".
fn count(text: &str) -> Option<f64> {
    const FRACTIONS: [(&str, f64); 8] = [
        ("1/2", 0.5),
        ("½", 0.5),
        ("a half", 0.5),
        ("a-half", 0.5),
        ("1/4", 0.25),
        ("¼", 0.25),
        ("3/4", 0.75),
        ("¾", 0.75),
    ];
    let fraction = FRACTIONS.iter().find_map(|(written, value)| Some((text.strip_suffix(written)?, *value)));
    let (whole, fraction) = fraction.unwrap_or((text, 0.0));
    let whole = whole.trim_end_matches([' ', '-']);
    let whole = whole.strip_suffix("and").unwrap_or(whole).trim_end_matches([' ', '-']);
    if whole.is_empty() {
        return (fraction > 0.0).then_some(fraction);
    }
    if whole.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(whole.parse::<f64>().ok()? + fraction);
    }
    Some(f64::from(of_words(whole)?) + fraction)
}

/// A number below hundred in words: "seven", "fifty", "fifty-four".
pub(super) fn of_words(text: &str) -> Option<u32> {
    let mut words = text.split([' ', '-']);
    let first = words.next()?;
    let value = match TENS.iter().position(|ten| *ten == first) {
        Some(index) => {
            let one = words.next().map_or(Some(0), |one| UNITS.iter().position(|word| *word == one))?;
            (one < 10).then_some((index + 2) * 10 + one)?
        }
        None => UNITS.iter().position(|word| *word == first)?,
    };
    words.next().is_none().then(|| u32::try_from(value).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;

    #[test]
    fn ages_of_texts() {
        let inputs = [
            "54-year-old",
            "a 54-year-old",
            "54 years",
            "54 years old",
            "54 yo",
            "54 y/o",
            "54",
            "91",
            "89",
            "6 months",
            "18-month-old",
            "10-day-old",
            "3 weeks",
            "36 hours",
            "2 years and 3 months",
            "2 1/2 years",
            "2½ years",
            "two and a half years",
            "fifty-four years old",
            "fifty-four-year-old",
            "aged 33",
            "aged 33 years",
            "at the age of 33",
            "age: 7",
            "54 ans",
            "6 mois",
            "1.5 years",
            "0",
            "0 days",
            // no number of years
            "in her 60s",
            "in his early seventies",
            "60's",
            "20-30 years",
            "20 to 30 years",
            "over 50",
            "about 60 years",
            "> 89",
            "90+",
            "newborn",
            "middle-aged",
            "day of life 3",
            // no ages
            "",
            "old",
            "131",
            "400 years",
            "year",
            "54-year",
            "54 kg",
            "3/12",
            "54 old",
            "6 months 2 years",
            "12:30",
            "one hundred years",
            "54 M",
            "five-year plan",
            "-5",
        ];
        let account: Vec<String> = inputs
            .iter()
            .map(|input| match age(input) {
                None => format!("{input} -> no age"),
                Some(age) => {
                    let years = age.years.map_or_else(|| "not a number".to_owned(), |years| format!("{years:.6}"));
                    format!("{input} -> {years}{}", if age.is_above_89 { " (above 89)" } else { "" })
                }
            })
            .collect();
        expect![[r#"
            54-year-old -> 54.000000
            a 54-year-old -> 54.000000
            54 years -> 54.000000
            54 years old -> 54.000000
            54 yo -> 54.000000
            54 y/o -> 54.000000
            54 -> 54.000000
            91 -> 91.000000 (above 89)
            89 -> 89.000000
            6 months -> 0.500000
            18-month-old -> 1.500000
            10-day-old -> 0.027379
            3 weeks -> 0.057495
            36 hours -> 0.004107
            2 years and 3 months -> 2.250000
            2 1/2 years -> 2.500000
            2½ years -> 2.500000
            two and a half years -> 2.500000
            fifty-four years old -> 54.000000
            fifty-four-year-old -> 54.000000
            aged 33 -> 33.000000
            aged 33 years -> 33.000000
            at the age of 33 -> 33.000000
            age: 7 -> 7.000000
            54 ans -> 54.000000
            6 mois -> 0.500000
            1.5 years -> 1.500000
            0 -> 0.000000
            0 days -> 0.000000
            in her 60s -> not a number
            in his early seventies -> not a number
            60's -> not a number
            20-30 years -> not a number
            20 to 30 years -> not a number
            over 50 -> not a number
            about 60 years -> not a number
            > 89 -> not a number (above 89)
            90+ -> not a number (above 89)
            newborn -> not a number
            middle-aged -> not a number
            day of life 3 -> not a number
             -> no age
            old -> no age
            131 -> no age
            400 years -> no age
            year -> no age
            54-year -> 54.000000
            54 kg -> no age
            3/12 -> no age
            54 old -> no age
            6 months 2 years -> no age
            12:30 -> no age
            one hundred years -> no age
            54 M -> no age
            five-year plan -> no age
            -5 -> no age"#]]
        .assert_eq(&account.join("\n"));
    }

    proptest! {
        #[test]
        fn any_text_has_an_age_of_a_human_or_none(text in "\\PC{0,40}") {
            if let Some(age) = age(&text) {
                prop_assert!(age.years.is_none_or(|years| (0.0..=MAX_YEARS).contains(&years)));
                prop_assert_eq!(age.text, text.trim());
            }
        }

        #[test]
        fn a_number_in_words_is_the_number(years in 1_u32..100) {
            let word = match (years / 10, years % 10) {
                (0 | 1, _) => UNITS[years as usize].to_owned(),
                (ten, 0) => TENS[ten as usize - 2].to_owned(),
                (ten, one) => format!("{}-{}", TENS[ten as usize - 2], UNITS[one as usize]),
            };
            let written = age(&format!("{word}-year-old")).unwrap();
            prop_assert_eq!(written.years, Some(f64::from(years)));
            prop_assert_eq!(age(&format!("{years}-year-old")).unwrap().years, written.years);
            prop_assert_eq!(age(&format!("{} months", years * 12)).and_then(|age| age.years), (years < 84).then_some(f64::from(years)));
        }
    }
}
