//! Days relative to presentation.
//!
//! Day 0 is the day on which the patient presents; admission is taken to be the same day. Hospital day 1 is the day of
//! admission, so hospital day n is day n − 1 (a hospital day 0 is day 0 as well). A month is 365.25 / 12 days, a year
//! 365.25.

use super::age::of_words;
use super::fixed;
use crate::text::number_words::{TENS, UNITS};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use regex::{Captures, Regex};
use std::ops::Range;
use std::sync::LazyLock;

const DAYS_OF_YEAR: f64 = 365.25;
const ORDINALS: [&str; 14] = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
];

const LENGTH: &str = "(?:minutes?|mins?|hours?|hrs?|h|days?|weeks?|months?|years?)";
/// What presentation is called.
const ANCHOR: &str = concat!(
    "(?:(?:(?:the|his|her|their|this|current|present|index|initial|first|hospital|",
    "clinical)\\s+){0,3}(?:admission|presentation|hospitali[sz]ation|arrival|consultation)|",
    "(?:being\\s+|(?:he|she|they)\\s+(?:was|were)\\s+)?(?:admitted|hospitali[sz]ed)|presenting|",
    "(?:she|he|they)\\s+presented)",
);
/// Behind an anchor: another place than the hospital in which the case begins.
const ELSEWHERE: &str = concat!(
    "(?<elsewhere>\\s+(?:to|at|in)\\s+(?:(?:the|an?|our|another|his|her)\\s+)?(?:icu|intensive|",
    "another|other|different|local|outside|previous|nearby|surgical|rehabilitation|psychiatric))?",
);

static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
    let words = [TENS.join("|"), UNITS.join("|")].join("|");
    let number = format!(
        "(?:[0-9]{{1,4}}(?:\\.[0-9]{{1,2}})?|(?:{})(?:-(?:{}))?|(?:{words})|an?|several|few|couple\\s+of)",
        TENS.join("|"),
        UNITS.join("|")
    );
    let ordinal = format!("(?:[0-9]{{1,3}}(?:st|nd|rd|th)|{})", ORDINALS.join("|"));
    let pattern = format!(
        r"(?ix-u)
        # an amount of time before or after something
        (?<vague>\b(?:(?:more|less|longer|greater)\s+than|over|at\s+least|up\s+to|within|under|almost|
            nearly)\s+|(?:<|>|≥|≤|~)\s*)?
        \b(?:(?<low>[0-9]{{1,4}}(?:\.[0-9]{{1,2}})?)\s*(?:-|–|—)\s*|(?<low_word>{number})\s*(?:(?:–|—)|
            \bto\b|\bor\b)\s*)?
        (?:(?<large>{number})(?:\s|-)+(?<large_unit>{LENGTH})\s+(?:and\s+)?)?
        (?<count>{number})(?:\s|-)?(?<unit>{LENGTH})\s+
        (?:(?<before>before|prior\s+to|previous\s+to|preceding|ahead\s+of)|(?<after>after|following|post|
            into|since|from))
        \s+(?:(?<anchor>{ANCHOR})\b{ELSEWHERE}|(?<other>[[:alnum:]]+))
        # counted from what was told before
        | (?<later>\b(?:{number})(?:\s|-)?{LENGTH}\s+(?:later|earlier|ago|thereafter|afterwards?|previously|
            subsequently)\b)
        # the day itself
        | \b(?<next>the\s+day\s+(?:before|prior\s+to|after|following|of|
            preceding))\s+(?<next_anchor>{ANCHOR})\b(?<next_elsewhere>\s+to\s+(?:the\s+)?(?:icu|intensive))?
        | (?<today>\b(?:on|at|upon)\s+(?:the\s+(?:time|day|date|moment)\s+of\s+)?(?:(?:the|his|her|their|
            initial|first|hospital|clinical|emergency|emergency\s+department)\s+){{0,3}}(?:admission|
            presentation|arrival|hospitali[sz]ation))\b(?<today_elsewhere>\s+to\s+(?:the\s+)?(?:icu|
            intensive))?
        | (?<today_bare>^\s*(?:admission|presentation|arrival|baseline\s+\(admission\))(?:\s+day)?\s*$)
        # days of the stay
        | \b(?:hospital(?:i[sz]ation)?|inpatient|admission)\s+day\s*(?:\#|no\.?\s*|
            number\s+)?(?<stay>[0-9]{{1,3}}|{words})\b
        | \bHD\s?\#?(?<stay_short>[0-9]{{1,3}})\b
        | \bday\s+(?<stay_of>[0-9]{{1,3}}|{words})\s+of\s+(?:(?:the|his|her|
            their)\s+)?(?:hospital(?:i[sz]ation)?|admission|inpatient)(?:\s+(?:stay|admission|course))?\b
        | \b(?<stay_nth>{ordinal})\s+(?:hospital\s+day|(?:hospital\s+)?day\s+of\s+(?:(?:the|his|her|
            their)\s+)?(?:hospital(?:i[sz]ation|\s+stay)|admission|stay))\b
        # days that are counted from something else
        | (?<elsewhen>\b(?:post-?\s?(?:operative|op|procedure|procedural|partum|natal|
            transplant(?:ation)?)\s+(?:day|week|month)|POD|(?:day|week|month))\s*\#?(?:[0-9]{{1,4}}|
            {words})\b|\b(?:on|at|after|before)\s+(?:hospital\s+)?(?:discharge|readmission|re-admission|
            follow-up|surgery)\b)
        "
    );
    // Blanks that do not break are blanks as well. Words are of ASCII letters
    // alone: Unicode word boundaries made the search thirty times slower.
    fixed(&pattern.replace(r"\s", r"(?:\s|(?u:[\x{a0}\x{2009}\x{202f}]))"))
});

/// The one day that a text speaks of: "3 days before admission" is −3, "on admission" 0, "on hospital day 5" 4. None
/// where the text names no day, several different ones, or one that is counted from something else ("postoperative day
/// 2", "two weeks after discharge", "5 days later").
pub fn day(text: &str) -> Option<f64> {
    let mut days = days_in(text).into_iter().map(|(day, _)| day);
    let first = days.next()??;
    days.all(|day| day == Some(first)).then_some(first)
}

/// Every expression of time that [`day`] reads, in the order of the text; None for one that is counted from something
/// else than presentation, or that is a range or a limit.
pub fn days_in(text: &str) -> Vec<(Option<f64>, Range<usize>)> {
    EXPRESSION.captures_iter(text).filter_map(|found| Some((meaning(&found), found.get(0)?.range()))).collect()
}

fn meaning(found: &Captures<'_>) -> Option<f64> {
    let part = |name: &str| found.name(name).map(|part| part.as_str());
    let has = |name: &str| found.name(name).is_some();
    if has("today") || has("today_bare") {
        return (!has("today_elsewhere")).then_some(0.0);
    }
    if let Some(next) = part("next") {
        if has("next_elsewhere") {
            return None;
        }
        return Some(match next.to_lowercase().split_whitespace().nth(2)? {
            "of" => 0.0,
            "after" | "following" => 1.0,
            _ => -1.0,
        });
    }
    if let Some(stay) = part("stay").or(part("stay_short")).or(part("stay_of")) {
        return Some((count(stay)? - 1.0).max(0.0));
    }
    if let Some(nth) = part("stay_nth") {
        let lower = nth.to_lowercase();
        let index = ORDINALS.iter().position(|ordinal| *ordinal == lower);
        let nth = match index {
            Some(index) => f64::from(u32::try_from(index).ok()?) + 1.0,
            None => lower.trim_end_matches(char::is_alphabetic).parse().ok()?,
        };
        return Some((nth - 1.0_f64).max(0.0));
    }
    if has("vague") || has("low") || has("low_word") || has("elsewhere") || !has("anchor") {
        return None;
    }
    let mut days = count(part("count")?)? * days_of(part("unit")?)?;
    if let (Some(large), Some(unit)) = (part("large"), part("large_unit")) {
        days += count(large)? * days_of(unit)?;
    }
    Some(if has("before") { -days } else { days })
}

fn count(text: &str) -> Option<f64> {
    let lower = text.to_lowercase();
    match lower.as_str() {
        "a" | "an" => Some(1.0),
        _ if lower.starts_with(|c: char| c.is_ascii_digit()) => lower.parse().ok(),
        _ => of_words(&lower).map(f64::from),
    }
}

fn days_of(unit: &str) -> Option<f64> {
    Some(match unit.to_lowercase().trim_end_matches('s') {
        "minute" | "min" => 1.0 / 1440.0,
        "hour" | "hr" | "h" => 1.0 / 24.0,
        "day" => 1.0,
        "week" => 7.0,
        "month" => DAYS_OF_YEAR / 12.0,
        "year" => DAYS_OF_YEAR,
        _ => return None,
    })
}

/// A time of a table.
enum Moment {
    Date(Date),
    Clock(DateTime),
    Instant(Timestamp),
}

fn moment(text: &str) -> Option<Moment> {
    let text = text.trim();
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(Moment::Instant(instant));
    }
    let clock: DateTime = text.parse().ok()?;
    Some(if text.contains(':') { Moment::Clock(clock) } else { Moment::Date(clock.date()) })
}

/// Days from one moment to another, negative if the second is earlier: `2180-05-06 22:23:00` (MIMIC-IV), ISO 8601 with
/// `T`, with an offset from UTC, or dates alone. Two dates, or a date and a moment, differ by whole days. None if
/// either cannot be read, or if only one has an offset.
pub fn days_between(presentation: &str, moment_text: &str) -> Option<f64> {
    const SECONDS_OF_DAY: f64 = 86_400.0;
    let date = |moment: &Moment| match moment {
        Moment::Date(date) => Some(*date),
        Moment::Clock(clock) => Some(clock.date()),
        Moment::Instant(_) => None,
    };
    let (from, to) = (moment(presentation)?, moment(moment_text)?);
    match (&from, &to) {
        (Moment::Instant(from), Moment::Instant(to)) => Some(to.duration_since(*from).as_secs_f64() / SECONDS_OF_DAY),
        (Moment::Clock(from), Moment::Clock(to)) => Some(to.duration_since(*from).as_secs_f64() / SECONDS_OF_DAY),
        _ => Some(date(&to)?.duration_since(date(&from)?).as_secs_f64() / SECONDS_OF_DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;

    #[test]
    fn days_of_texts() {
        let inputs = [
            "3 days before admission",
            "two weeks prior to presentation",
            "A month before admission, he fell",
            "on hospital day 5",
            "hospital day 1",
            "HD 3",
            "HD#3",
            "on day 3 of hospitalization",
            "on the third hospital day",
            "on admission",
            "at presentation",
            "On Admission",
            "admission",
            "at the time of presentation",
            "upon arrival at our hospital",
            "the day before admission",
            "the day after admission",
            "on the day of admission",
            "24 hours after admission",
            "5 days after being admitted",
            "twenty-one days before hospitalisation",
            "2 years and 6 months before presentation",
            "six months before she was admitted",
            "1.5 days before arrival",
            "fever for 3 days before admission; on admission 39 °C",
            // no days
            "postoperative day 2",
            "POD 4",
            "on day 3",
            "two weeks after discharge",
            "5 days later",
            "3 days ago",
            "3-5 days before admission",
            "three to five days before admission",
            "more than 2 weeks before admission",
            "several days before admission",
            "3 days before ICU admission",
            "3 days before admission to the ICU",
            "3-day history",
            "at discharge",
            "on readmission",
            "",
            "3 days before surgery",
            "admissions office",
            "for 3 days",
        ];
        let account: Vec<String> = inputs.iter().map(|input| format!("{input} -> {:?}", day(input))).collect();
        expect![[r#"
            3 days before admission -> Some(-3.0)
            two weeks prior to presentation -> Some(-14.0)
            A month before admission, he fell -> Some(-30.4375)
            on hospital day 5 -> Some(4.0)
            hospital day 1 -> Some(0.0)
            HD 3 -> Some(2.0)
            HD#3 -> Some(2.0)
            on day 3 of hospitalization -> Some(2.0)
            on the third hospital day -> Some(2.0)
            on admission -> Some(0.0)
            at presentation -> Some(0.0)
            On Admission -> Some(0.0)
            admission -> Some(0.0)
            at the time of presentation -> Some(0.0)
            upon arrival at our hospital -> Some(0.0)
            the day before admission -> Some(-1.0)
            the day after admission -> Some(1.0)
            on the day of admission -> Some(0.0)
            24 hours after admission -> Some(1.0)
            5 days after being admitted -> Some(5.0)
            twenty-one days before hospitalisation -> Some(-21.0)
            2 years and 6 months before presentation -> Some(-913.125)
            six months before she was admitted -> Some(-182.625)
            1.5 days before arrival -> Some(-1.5)
            fever for 3 days before admission; on admission 39 °C -> None
            postoperative day 2 -> None
            POD 4 -> None
            on day 3 -> None
            two weeks after discharge -> None
            5 days later -> None
            3 days ago -> None
            3-5 days before admission -> None
            three to five days before admission -> None
            more than 2 weeks before admission -> None
            several days before admission -> None
            3 days before ICU admission -> None
            3 days before admission to the ICU -> None
            3-day history -> None
            at discharge -> None
            on readmission -> None
             -> None
            3 days before surgery -> None
            admissions office -> None
            for 3 days -> None"#]]
        .assert_eq(&account.join("\n"));
    }

    #[test]
    fn days_of_tables() {
        let inputs = [
            ("2180-05-06 22:23:00", "2180-05-07 22:23:00"),
            ("2180-05-06 22:23:00", "2180-05-06 10:23:00"),
            ("2180-05-06T22:23:00", "2180-05-06 22:23"),
            ("2180-05-06", "2180-05-09"),
            ("2180-05-06 22:23:00", "2180-05-07"),
            ("2180-05-06", "2180-05-06 23:00:00"),
            ("2024-02-28", "2024-03-01"),
            ("2024-01-01T00:00:00Z", "2024-01-01T06:00:00Z"),
            ("2024-01-01T00:00:00Z", "2024-01-01T06:00:00+06:00"),
            ("2024-01-01T00:00:00Z", "2024-01-01 06:00:00"),
            ("", "2024-01-01"),
            ("2024-01-01", "___"),
            ("2024-13-01", "2024-01-01"),
            ("2024-02-30", "2024-01-01"),
            ("01/02/2024", "2024-01-01"),
            ("2024-01-01", "noon"),
        ];
        let account: Vec<String> =
            inputs.iter().map(|(from, to)| format!("{from} .. {to} = {:?}", days_between(from, to))).collect();
        expect![[r#"
            2180-05-06 22:23:00 .. 2180-05-07 22:23:00 = Some(1.0)
            2180-05-06 22:23:00 .. 2180-05-06 10:23:00 = Some(-0.5)
            2180-05-06T22:23:00 .. 2180-05-06 22:23 = Some(0.0)
            2180-05-06 .. 2180-05-09 = Some(3.0)
            2180-05-06 22:23:00 .. 2180-05-07 = Some(1.0)
            2180-05-06 .. 2180-05-06 23:00:00 = Some(0.0)
            2024-02-28 .. 2024-03-01 = Some(2.0)
            2024-01-01T00:00:00Z .. 2024-01-01T06:00:00Z = Some(0.25)
            2024-01-01T00:00:00Z .. 2024-01-01T06:00:00+06:00 = Some(0.0)
            2024-01-01T00:00:00Z .. 2024-01-01 06:00:00 = None
             .. 2024-01-01 = None
            2024-01-01 .. ___ = None
            2024-13-01 .. 2024-01-01 = None
            2024-02-30 .. 2024-01-01 = None
            01/02/2024 .. 2024-01-01 = None
            2024-01-01 .. noon = None"#]]
        .assert_eq(&account.join("\n"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\PC| |[0-9]|day |days before |admission|on ){0,12}") {
            for (day, range) in days_in(&text) {
                prop_assert!(text.get(range).is_some());
                prop_assert!(day.is_none_or(f64::is_finite));
            }
            days_between(&text, "2024-01-01");
        }

        #[test]
        fn days_before_are_days_after_turned_round(days in 0_u32..4000, back in 0_i64..40_000) {
            prop_assert_eq!(day(&format!("{days} days before admission")), Some(-f64::from(days)));
            prop_assert_eq!(day(&format!("{days} days after admission")), Some(f64::from(days)));
            let start: Date = "2180-05-06".parse().unwrap();
            let other = start.saturating_sub(jiff::Span::new().days(back)).to_string();
            prop_assert_eq!(days_between("2180-05-06", &other), Some(-(back as f64)));
            prop_assert_eq!(days_between(&other, "2180-05-06"), Some(back as f64));
        }
    }
}
