//! Numbers as clinical prose writes them.

/// Longest number that is read, in digits: more are an identifier.
const MAX_DIGITS: usize = 12;
/// Characters that stand for "less" and "more", with the comparator they mean; longer ones first.
const COMPARATORS: [(&str, &str); 15] = [
    ("<=", "<="),
    (">=", ">="),
    ("≤", "<="),
    ("≦", "<="),
    ("⩽", "<="),
    ("≥", ">="),
    ("≧", ">="),
    ("⩾", ">="),
    ("<", "<"),
    ("＜", "<"),
    (">", ">"),
    ("＞", ">"),
    ("less than ", "<"),
    ("greater than ", ">"),
    ("more than ", ">"),
];

/// The number at the beginning of a text and its length in bytes: `104`, `1.2`, `5·9`, `12,300`, `12 300` (with a thin
/// space), `5,9`. A comma in front of exactly three digits divides thousands, in front of one or two it is a decimal
/// comma. None for anything else, also for parts of dates, times and section numbers (`1.2.3`, `12:30`).
pub(super) fn number(text: &str) -> Option<(f64, usize)> {
    let whole = digits(text);
    if whole == 0 && !text.starts_with('.') {
        return None;
    }
    let mut plain = text.get(..whole)?.to_owned();
    let mut end = whole;
    while (1..=3).contains(&whole) && !plain.starts_with('0') {
        let rest = text.get(end..)?;
        let Some(separator) = rest.chars().next().filter(|c| matches!(c, ',' | '\u{2009}' | '\u{202f}')) else { break };
        let group = rest.get(separator.len_utf8()..)?;
        if digits(group) != 3 {
            break;
        }
        plain.push_str(group.get(..3)?);
        end += separator.len_utf8() + 3;
    }
    let rest = text.get(end..)?;
    if let Some(mark) = rest.chars().next().filter(|c| matches!(c, '.' | '·' | ',')) {
        let fraction = rest.get(mark.len_utf8()..)?;
        let length = digits(fraction);
        let is_decimal = match mark {
            ',' => end == whole && (matches!(length, 1 | 2) || plain == "0" && length > 0),
            _ => length > 0,
        };
        if is_decimal {
            plain.push('.');
            plain.push_str(fraction.get(..length)?);
            end += mark.len_utf8() + length;
        }
    }
    let after = text.get(end..)?;
    let goes_on = after.strip_prefix(['.', ',', ':', '·']).is_some_and(|rest| digits(rest) > 0);
    if goes_on || digits(after) > 0 || plain.len() > MAX_DIGITS + 1 || !plain.bytes().any(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    Some((plain.parse().ok()?, end))
}

/// The comparator at the beginning of a text and its length in bytes, with the blanks behind it.
pub(super) fn comparator(text: &str) -> Option<(&'static str, usize)> {
    COMPARATORS.iter().find_map(|(written, meant)| {
        let head = text.get(..written.len())?;
        if !head.eq_ignore_ascii_case(written) {
            return None;
        }
        let rest = text.get(written.len()..)?;
        Some((*meant, written.len() + rest.len() - rest.trim_start().len()))
    })
}

/// Does a number go on as a range, a fraction or a mean with its deviation: "120 to 90", "128–132", "120/80", "104 ±
/// 5"?
pub(super) fn goes_on(after: &str) -> bool {
    let after = after.trim_start();
    let rest = after
        .strip_prefix(['-', '–', '—', '−', '‐', '‑', '~', '±', '/', '→', '×', '^'])
        .or_else(|| after.strip_prefix("to "))
        .or_else(|| after.strip_prefix("or "))
        .or_else(|| after.strip_prefix("+/-"));
    rest.is_some_and(|rest| rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.'))
        || after.starts_with(['→', '±'])
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn numbers_of_prose() {
        let inputs = [
            "104 g/L",
            "1.2",
            "5·9 mmol",
            "12,300/µL",
            "1,234,567",
            "12\u{2009}300",
            "5,9",
            "0,123",
            "1,2345",
            ".04",
            ".",
            "1.2.3",
            "12:30",
            "3.",
            "3, 4",
            "1234567890123456",
            "x1",
            "",
            "12,30,40",
            "007",
        ];
        let account: Vec<String> = inputs.iter().map(|input| format!("{input} = {:?}", number(input))).collect();
        expect![[r#"
            104 g/L = Some((104.0, 3))
            1.2 = Some((1.2, 3))
            5·9 mmol = Some((5.9, 4))
            12,300/µL = Some((12300.0, 6))
            1,234,567 = Some((1234567.0, 9))
            12 300 = Some((12300.0, 8))
            5,9 = Some((5.9, 3))
            0,123 = Some((0.123, 5))
            1,2345 = None
            .04 = Some((0.04, 3))
            . = None
            1.2.3 = None
            12:30 = None
            3. = Some((3.0, 1))
            3, 4 = Some((3.0, 1))
            1234567890123456 = None
            x1 = None
             = None
            12,30,40 = None
            007 = Some((7.0, 3))"#]]
        .assert_eq(&account.join("\n"));
    }
}
