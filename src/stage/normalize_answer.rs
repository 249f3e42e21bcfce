//! `normalize_answer`: key → option text → canonical `ground_truth_diagnosis` (MedRoundsQA, B.4).

use super::*;
use crate::record::question::{AnsweredQuestion, Question};
use crate::text::normalize::{for_display, for_matching};
use regex::Regex;

pub const STAGE: StageDef = StageDef {
    name: "normalize_answer",
    summary: "Maps the answer key to its option text and gives it a canonical form; the raw text stays beside",
    shape: Shape::Record,
    revision: 2,
    inputs: &[Port::records::<Question>("records")],
    outputs: &[Port::records::<AnsweredQuestion>("records")],
    resources: &[],
    reasons: &["ambiguous_key", "composite_key"],
    settings: SettingsType::of::<NoSettings>(),
    build,
};

fn build(_: &StageArguments<'_>) -> anyhow::Result<AnyStage> {
    Ok(AnyStage::record(NormalizeAnswer {
        letter: Regex::new(r"^\(?[A-Ea-e][.):]\s+")?,
        article: Regex::new(r"^(?:[Aa]n?|[Tt]he)\s+")?,
        reference: Regex::new(
            r"\s*(?:\[\d+(?:\s*[,–-]\s*\d+)*\]|\((?:[Rr]ef\.?|[Pp]p?\.|[Ff]ig\.?|[Tt]able)\s*[^()]*\))$",
        )?,
        composite: Regex::new(
            r"^(?:all|none|any|both|neither|two|some) (?:of )?(?:the )?(?:above|these|those|following|options?)\b|^(?:both )?[a-e] (?:and|or|&) [a-e]$",
        )?,
    }))
}

struct NormalizeAnswer {
    letter: Regex,
    article: Regex,
    reference: Regex,
    composite: Regex,
}

impl NormalizeAnswer {
    fn canonical(&self, raw: &str) -> String {
        let text = without_stray_quote(for_display(raw));
        let text = self.letter.replace(&text, "");
        let text = self.article.replace(&text, "");
        let mut text = text.trim();
        loop {
            let shorter = text.trim_end_matches(['.', ';', ',', ':']).trim_end();
            let shorter = self.reference.find(shorter).map_or(shorter, |found| &shorter[..found.start()]);
            if shorter.len() == text.len() {
                break;
            }
            text = shorter;
        }
        let mut characters = text.chars();
        match characters.next() {
            Some(first) => first.to_uppercase().chain(characters).collect(),
            None => String::new(),
        }
    }
}

/// Real MedQA options can end in a quotation mark that nothing opened, left over from a damaged CSV.
fn without_stray_quote(mut text: String) -> String {
    let quotes = text.chars().filter(|character| matches!(character, '"' | '“' | '”')).count();
    if !quotes.is_multiple_of(2) && text.ends_with('"') {
        text.pop();
        text.truncate(text.trim_end().len());
    }
    text
}

impl RecordStage for NormalizeAnswer {
    type In = Question;
    type Out = AnsweredQuestion;

    fn apply(
        &self,
        question: Question,
        out: &mut Emitter<'_, AnsweredQuestion>,
        _: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        let keyed = for_matching(&question.answer_text);
        let equal: Vec<&str> = question
            .options
            .iter()
            .filter(|option| for_matching(&option.text) == keyed)
            .map(|option| option.key.as_str())
            .collect();
        if equal.len() > 1 {
            return Ok(Verdict::Drop(Cause::new(
                "ambiguous_key",
                format!("options {} all say `{}`", equal.join(" and "), question.answer_text),
            )));
        }
        if self.composite.is_match(&keyed) {
            return Ok(Verdict::Drop(Cause::new(
                "composite_key",
                format!("the keyed answer is `{}`", question.answer_text),
            )));
        }
        let canonical = self.canonical(&question.answer_text);
        // A text that is nothing but a letter or a reference is kept as it is.
        let ground_truth_diagnosis = if canonical.is_empty() { for_display(&question.answer_text) } else { canonical };
        let mut flags = question.flags;
        let mut others: Vec<String> = question.options.iter().map(|option| for_matching(&option.text)).collect();
        others.sort_unstable();
        if others.windows(2).any(|pair| matches!(pair, [one, two] if one == two)) {
            flags.push("equal_options".to_owned());
        }
        out.emit(AnsweredQuestion {
            record_id: question.record_id,
            provenance: question.provenance,
            stem: question.stem,
            options: question.options,
            answer_key: question.answer_key,
            answer_text: question.answer_text,
            ground_truth_diagnosis,
            exam: question.exam,
            subject: question.subject,
            flags,
            made_by: Vec::new(),
            replies: Vec::new(),
        });
        Ok(Verdict::Keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::testing::{check, question};
    use expect_test::expect;

    #[test]
    fn canonical_forms() {
        let questions = [
            "Gout",
            "B. gout.",
            "The  mеаѕlеs [12]",
            "a 1° AV block",
            "acute gout (p. 33).",
            "C",
            "Factor V Leiden",
            "vitamin A",
        ]
        .map(|answer| question("q", answer, &[answer, "other", "third", "fourth"]));
        check(
            &STAGE,
            "",
            &questions,
            |record: &AnsweredQuestion| record.ground_truth_diagnosis.clone(),
            expect![[r#"
                keep t:q Gout
                keep t:q Gout
                keep t:q Measles
                keep t:q 1° AV block
                keep t:q Acute gout
                keep t:q C
                keep t:q Factor V Leiden
                keep t:q Vitamin A
            "#]],
        );
    }

    #[test]
    fn keys_that_do_not_stand_for_one_option() {
        check(
            &STAGE,
            "",
            &[
                question("q", "Gout", &["Gout", "gout ", "x", "y"]),
                question("q", "All of the above", &["x", "y", "z", "All of the above"]),
                question("q", "Both A and C", &["x", "y", "z", "Both A and C"]),
                question("q", "Gout", &["Gout", "x", "X", "y"]),
            ],
            |record: &AnsweredQuestion| format!("{:?}", record.flags),
            expect![[r#"
                dropped t:q ambiguous_key: options A and B all say `Gout`
                dropped t:q composite_key: the keyed answer is `All of the above`
                dropped t:q composite_key: the keyed answer is `Both A and C`
                keep t:q ["equal_options"]
            "#]],
        );
    }
}
