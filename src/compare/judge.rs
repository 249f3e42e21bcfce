//! A model as a judge of adequacy: how well a candidate value says, for its slot, what the reference value says, from 0 to
//! 1 (MedRoundsQA, appendix B.3, which reports its mean and has a threshold of 0.90).
//!
//! The judge sees the slot, what belongs in it ([`Slot::meaning`]) and the two texts, nothing else of the case. A pair of
//! a case and a slot is judged if both sides fill the slot. If the two texts are equal but for their form
//! ([`super::metrics::normalise`]) the score is 1 and no call is made; equal pairs of different cases or extractors are
//! one question, asked once. What is filled on one side only scores 0, and misplaced values cost what they cost in every
//! metric (see [`super::score`]).
//!
//! A question without an answer leaves its pairs without a score: they are in no average of the judge's two metrics, and
//! [`JudgeReport`] counts them with the reasons.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Serialize;
use serde_json::json;

use super::metrics::PairMetric;
use super::report::{Comparison, Rounded};
use super::score::{CompareError, filled_pairs};
use super::{CaseKey, RecordSet};
use crate::config::{Egress, ModelConfig};
use crate::record::slots::Slot;
use crate::record::{Access, Hash, LlmEgress, RecordId, Rights};
use crate::service::model::full_name;
use crate::service::model::governance::widest;
use crate::stage::ask::{Asking, reasoned};
use crate::stage::prompt::{PROMPT, Prompt, Variable};
use crate::stage::{Ask, CallResult, EGRESS_REFUSED, ModelService, Origin, Resources};

/// From which score on a candidate is adequate (MedRoundsQA, B.3).
pub const THRESHOLD: f64 = 0.9;

/// What stands for a node in the store of replies: spending on judging is counted by it.
pub const NODE: &str = "compare";

/// The field of a reply with the score, and the name of its schema.
const ADEQUACY: &str = "adequacy";

/// Two texts of one slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    slot: Slot,
    reference: String,
    candidate: String,
}

/// What is known of a question before it is asked.
#[derive(Clone, Debug)]
struct Asked {
    /// The first case with these texts.
    case: CaseKey,
    /// The strictest of all records that hold one of the two texts.
    rights: Rights,
}

/// How often an extractor has each question.
#[derive(Clone, Debug, Default)]
struct OfExtractor {
    name: String,
    /// Pairs that are equal without asking.
    n_equal: usize,
    n_by_question: BTreeMap<Question, usize>,
}

/// What a judge is to be asked about some extractors.
#[derive(Clone, Debug)]
pub struct Questions {
    asked: BTreeMap<Question, Asked>,
    extractors: Vec<OfExtractor>,
}

impl Questions {
    /// Every pair that both sides fill and whose texts differ. Records for which nobody said what may be done with them
    /// have the rights `unsaid`.
    ///
    /// # Errors
    /// Keys that do not pair the cases one to one.
    pub fn of(reference: &RecordSet, extractors: &[RecordSet], unsaid: &Rights) -> Result<Self, CompareError> {
        let mut questions = Self { asked: BTreeMap::new(), extractors: Vec::new() };
        for set in extractors {
            let mut of_extractor = OfExtractor { name: set.name.clone(), ..OfExtractor::default() };
            for pair in filled_pairs(reference, set)? {
                if pair.is_equal {
                    of_extractor.n_equal += 1;
                    continue;
                }
                let of_reference = reference.rights.get(pair.reference_case).unwrap_or(unsaid);
                let rights = strictest(of_reference, set.rights.get(pair.candidate_case).unwrap_or(unsaid));
                let question = Question { slot: pair.slot, reference: pair.reference, candidate: pair.candidate };
                *of_extractor.n_by_question.entry(question.clone()).or_default() += 1;
                questions
                    .asked
                    .entry(question)
                    .and_modify(|asked| asked.rights = strictest(&asked.rights, &rights))
                    .or_insert_with(|| Asked { case: pair.reference_case.clone(), rights });
            }
            questions.extractors.push(of_extractor);
        }
        Ok(questions)
    }

    /// The number of different questions: so many calls, if each is answered at once.
    pub fn n(&self) -> usize {
        self.asked.len()
    }

    /// How many of them may not be sent to a model of this egress, and the rights of the first of these.
    pub fn withheld(&self, egress: Egress) -> Option<(usize, &Rights)> {
        let may_not = |asked: &&Asked| widest(&asked.rights).is_none_or(|widest| egress > widest);
        let first = self.asked.values().find(may_not)?;
        Some((self.asked.values().filter(may_not).count(), &first.rights))
    }
}

/// The stricter of two sides in each respect.
fn strictest(one: &Rights, other: &Rights) -> Rights {
    let same = |first: &String, second: &String| if first == second { first.clone() } else { "unknown".to_owned() };
    Rights {
        snapshot: same(&one.snapshot, &other.snapshot),
        licence: same(&one.licence, &other.licence),
        access: one.access.max(other.access),
        llm_egress: one.llm_egress.max(other.llm_egress),
    }
}

/// What a release says of a case: who may hold it, but not which models may see it. That is as `unsaid` has it; and if
/// the release does not know who may hold it, nobody said anything.
pub fn rights_of_case(licence: String, access: Access, unsaid: &Rights) -> Rights {
    if access == Access::Unknown {
        return unsaid.clone();
    }
    Rights { snapshot: "unknown".to_owned(), licence, access, llm_egress: unsaid.llm_egress }
}

/// What rights allow, in the words of a `source.toml`.
pub fn shown_rights(rights: &Rights) -> String {
    let llm_egress = match rights.llm_egress {
        LlmEgress::Any => "any",
        LlmEgress::Zdr => "zdr",
        LlmEgress::Local => "local",
        LlmEgress::None => "none",
    };
    format!("access {}, llm_egress {llm_egress}", rights.access.as_str())
}

/// A judge, before it is asked.
pub struct Judge {
    asking: Asking,
    /// Its name under `[models]` of `pipeline`.
    name: String,
    pipeline: String,
    /// `provider/model`
    full_name: String,
    prompt_version: u32,
    prompt_sha256: Hash,
}

impl Judge {
    /// A model of a pipeline with its prompt.
    ///
    /// # Errors
    /// A prompt that is none, or has other variables than `slot`, `meaning`, `reference` and `candidate`.
    pub fn new(pipeline: &str, model: &ModelConfig, file: &str, prompt: Vec<u8>) -> anyhow::Result<Self> {
        let prompt_sha256 = Hash::of(&prompt);
        let mut resources = Resources::default();
        resources.insert(PROMPT, file, prompt);
        let schema = reasoned(ADEQUACY, json!({"type": "number", "minimum": 0.0, "maximum": 1.0}));
        let asking = Asking::new(&resources, &["slot", "meaning", "reference", "candidate"], ADEQUACY, schema)?;
        let prompt_version = Prompt::version(resources.text(PROMPT)?).with_context(|| file.to_owned())?;
        let (name, pipeline, full_name) = (model.name.clone(), pipeline.to_owned(), full_name(model));
        Ok(Self { asking, name, pipeline, full_name, prompt_version, prompt_sha256 })
    }

    /// Whether the slots of an extractor were filled by this model, as far as the set says: by its makers, or, for files,
    /// by its name. Then it would judge itself.
    pub fn made(&self, set: &RecordSet) -> bool {
        let own = self.full_name.to_lowercase();
        let model = own.split_once('/').map_or(own.as_str(), |(_, model)| model);
        let name = set.name.to_lowercase();
        set.made_by.iter().any(|maker| maker.to_lowercase() == own) || name == own || name == model
    }

    /// `provider/model`
    pub fn full_name(&self) -> &str {
        &self.full_name
    }

    /// Asks every question once, several at a time.
    ///
    /// # Errors
    /// What concerns every call, such as a budget that is spent, or a reply that a replay lacks. A single call that fails
    /// is no error.
    pub fn ask(&self, service: &dyn ModelService, questions: Questions) -> anyhow::Result<Judged> {
        let mut waiting = questions.asked.keys();
        let mut answers = BTreeMap::new();
        let mut asks = questions.asked.iter().map(|(question, asked)| self.question(question, asked));
        service.ask(&mut asks, &mut |result| {
            let question = waiting.next().context("an answer that nobody asked for")?;
            answers.insert(question.clone(), self.answer(result)?);
            Ok(())
        })?;
        Ok(Judged { answers, extractors: questions.extractors })
    }

    fn question(&self, question: &Question, asked: &Asked) -> anyhow::Result<Ask> {
        let Question { slot, reference, candidate } = question;
        let variables = BTreeMap::from([
            ("slot", Variable::Own(slot.as_str().to_owned())),
            ("meaning", Variable::Own(slot.meaning().to_owned())),
            ("reference", Variable::Source(reference.clone())),
            ("candidate", Variable::Source(candidate.clone())),
        ]);
        let origin = Origin {
            pipeline: self.pipeline.clone(),
            node: NODE.to_owned(),
            record_id: RecordId::parse(asked.case.as_str()),
        };
        let call = self.asking.call(&self.name, &variables, 0)?;
        Ok(Ask { call, rights: asked.rights.clone(), origin, images: BTreeMap::new() })
    }

    fn answer(&self, result: CallResult) -> anyhow::Result<Answer> {
        Ok(match result {
            Ok(reply) => match self.asking.fault(&reply) {
                Some(reason) => Answer::None { reason, detail: String::new() },
                None => {
                    let score = reply.value.get(ADEQUACY).and_then(serde_json::Value::as_f64);
                    Answer::Score(score.context("a reply without a number")?)
                }
            },
            Err(failure) => Answer::None { reason: failure.reason, detail: failure.detail },
        })
    }
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    /// 0 to 1.
    Score(f64),
    None {
        reason: &'static str,
        detail: String,
    },
}

/// The answers of a judge.
#[derive(Clone, Debug)]
pub struct Judged {
    answers: BTreeMap<Question, Answer>,
    extractors: Vec<OfExtractor>,
}

impl Judged {
    /// The score that every answer gives, if there are two or more and all give the same one, with the number of pairs:
    /// such a judge tells nothing apart.
    fn constant(&self) -> Option<(f64, usize)> {
        let mut scores = self.answers.values().filter_map(|answer| match answer {
            Answer::Score(score) => Some(*score),
            Answer::None { .. } => None,
        });
        let first = scores.next()?;
        let mut n_others = 0;
        for score in scores {
            if score.total_cmp(&first).is_ne() {
                return None;
            }
            n_others += 1;
        }
        let n_pairs = self.extractors.iter().map(|extractor| self.tally(extractor).0).sum();
        (n_others > 0).then_some((first, n_pairs))
    }

    /// Pairs of an extractor with a score, and those without by reason.
    fn tally(&self, extractor: &OfExtractor) -> (usize, BTreeMap<&'static str, usize>) {
        let mut n_judged = 0;
        let mut missing: BTreeMap<&'static str, usize> = BTreeMap::new();
        for (question, n) in &extractor.n_by_question {
            match self.answers.get(question) {
                Some(Answer::Score(_)) => n_judged += n,
                Some(Answer::None { reason, .. }) => *missing.entry(reason).or_default() += n,
                None => *missing.entry(EGRESS_REFUSED).or_default() += n,
            }
        }
        (n_judged, missing)
    }

    /// Pairs without a score by reason, over all extractors, as `no_reply 3, reply_refused 1`; none if each has a score.
    pub fn missing(&self) -> Option<(usize, String)> {
        let mut all: BTreeMap<&str, usize> = BTreeMap::new();
        for extractor in &self.extractors {
            for (reason, n) in self.tally(extractor).1 {
                *all.entry(reason).or_default() += n;
            }
        }
        let n: usize = all.values().sum();
        (n > 0).then(|| (n, shown_counts(all.iter().map(|(reason, n)| (*reason, *n)))))
    }

    /// What is known of the first failure.
    pub fn first_detail(&self) -> Option<&str> {
        self.answers.values().find_map(|answer| match answer {
            Answer::None { detail, .. } if !detail.is_empty() => Some(detail.as_str()),
            _ => None,
        })
    }

    /// Pairs of all extractors that both sides fill with different texts.
    pub fn n_pairs(&self) -> usize {
        self.extractors.iter().flat_map(|extractor| extractor.n_by_question.values()).sum()
    }

    /// What the scores of the judge in a comparison are over.
    pub fn report(&self, judge: &Judge, comparison: &Comparison) -> JudgeReport {
        let extractors = self.extractors.iter().map(|extractor| {
            let (n_judged, missing) = self.tally(extractor);
            let missing: BTreeMap<String, usize> =
                missing.into_iter().map(|(reason, n)| (reason.to_owned(), n)).collect();
            let n_missing: usize = missing.values().sum();
            let n_both = extractor.n_equal + n_judged + n_missing;
            let found = comparison.extractors.iter().find(|found| found.name == extractor.name);
            let n_pairs = found.map_or(n_both, |found| found.n_pairs);
            JudgedExtractor {
                name: extractor.name.clone(),
                n_pairs,
                n_in_mean: n_pairs.saturating_sub(n_missing),
                n_one_sided: n_pairs.saturating_sub(n_both),
                n_equal: extractor.n_equal,
                n_judged,
                n_missing,
                missing,
            }
        });
        JudgeReport {
            model: judge.full_name.clone(),
            prompt_version: judge.prompt_version,
            prompt_sha256: judge.prompt_sha256.clone(),
            threshold: Rounded(THRESHOLD),
            n_questions: self.answers.len(),
            constant: self.constant().map(|(score, n_pairs)| ConstantJudge { score: Rounded(score), n_pairs }),
            extractors: extractors.collect(),
        }
    }
}

/// Reasons with their counts.
pub(super) fn shown_counts<'a>(counts: impl Iterator<Item = (&'a str, usize)>) -> String {
    counts.map(|(reason, n)| format!("{reason} {n}")).collect::<Vec<_>>().join(", ")
}

/// The judge's score of a pair as a metric.
#[derive(Clone, Copy, Debug)]
pub struct Adequacy<'a>(pub &'a Judged);

impl PairMetric for Adequacy<'_> {
    fn name(&self) -> &str {
        ADEQUACY
    }

    fn title(&self) -> &str {
        "Adequacy (judge)"
    }

    /// The judge was asked about texts of a slot: without one there is no number, unless the texts are equal.
    fn score(&self, reference: &str, candidate: &str) -> f64 {
        if super::metrics::normalise(reference) == super::metrics::normalise(candidate) { 1.0 } else { f64::NAN }
    }

    fn score_in(&self, slot: Slot, reference: &str, candidate: &str) -> Option<f64> {
        let question = Question { slot, reference: reference.to_owned(), candidate: candidate.to_owned() };
        match self.0.answers.get(&question) {
            Some(Answer::Score(score)) => Some(*score),
            Some(Answer::None { .. }) => None,
            None => Some(self.score(reference, candidate)),
        }
    }
}

/// What the scores of a judge are over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgeReport {
    /// `provider/model`
    pub model: String,
    /// The version that the prompt says it is.
    pub prompt_version: u32,
    /// Of the file of the prompt.
    pub prompt_sha256: Hash,
    /// From which score on a pair counts as adequate.
    pub threshold: Rounded,
    /// Different questions: pairs of equal texts in the same slot are one.
    pub n_questions: usize,
    /// The one score that every answer gives; none if they differ, or there are fewer than two.
    pub constant: Option<ConstantJudge>,
    /// The extractors as they were given.
    pub extractors: Vec<JudgedExtractor>,
}

/// A judge that tells nothing apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConstantJudge {
    /// What it gave.
    pub score: Rounded,
    /// To so many pairs of all extractors.
    pub n_pairs: usize,
}

/// The pairs of one extractor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JudgedExtractor {
    /// Its name.
    pub name: String,
    /// Pairs: a case and a slot that is filled on either side.
    pub n_pairs: usize,
    /// Those that the judge's mean and share are over: all but `n_missing`.
    pub n_in_mean: usize,
    /// Filled on one side only: 0 without asking.
    pub n_one_sided: usize,
    /// Equal but for their form: 1 without asking.
    pub n_equal: usize,
    /// With a score of the judge.
    pub n_judged: usize,
    /// Without one.
    pub n_missing: usize,
    /// The same by reason, such as `reply_refused`.
    pub missing: BTreeMap<String, usize>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::metrics::ShareAtLeast;
    use crate::compare::{Settings, compare, table};
    use crate::config::model::parse_models;
    use crate::stage::{CallCounts, Failure, Part, Reply};
    use expect_test::expect;
    use std::sync::Mutex;

    /// Gives 0.95 where the candidate is a part of the reference, 0.5 elsewhere, and nothing where it says `secret`.
    #[derive(Default)]
    struct Scripted {
        prompts: Mutex<Vec<String>>,
        constant: Option<f64>,
    }

    impl ModelService for Scripted {
        fn ask(
            &self,
            asks: &mut dyn Iterator<Item = anyhow::Result<Ask>>,
            take: &mut dyn FnMut(CallResult) -> anyhow::Result<()>,
        ) -> anyhow::Result<()> {
            for ask in asks {
                let ask = ask?;
                let Some(Part::Text(text)) = ask.call.messages.last().and_then(|message| message.parts.last()) else {
                    panic!("a text");
                };
                let of = |name: &str| {
                    let rest = text.split_once(&format!("<<<{name} ")).unwrap().1.split_once(">>>\n").unwrap().1;
                    rest.split_once("\n<<<end").unwrap().0.to_owned()
                };
                self.prompts.lock().unwrap().push(text.clone());
                let (reference, candidate) = (of("reference"), of("candidate"));
                let key = Hash::of(text.as_bytes());
                let model = "openai/x".to_owned();
                let usual = if reference.contains(&candidate) { 0.95 } else { 0.5 };
                let score = self.constant.unwrap_or(usual);
                take(if candidate.contains("secret") {
                    Err(Failure { key, model, reason: "reply_refused", detail: "no".to_owned() })
                } else {
                    let value = match candidate.as_str() {
                        "copied" => json!({
                            "reason": "The duration is the same in other words; that it is worse at night is lost.",
                            "adequacy": 0.5
                        }),
                        _ => json!({"reason": "…", "adequacy": score}),
                    };
                    Ok(Reply { value, sha256: key.clone(), key, model, repairs: Vec::new() })
                })?;
            }
            Ok(())
        }

        fn stored(&self, _: &Hash) -> anyhow::Result<Option<Hash>> {
            Ok(None)
        }

        fn identity(&self, _: &str) -> anyhow::Result<serde_json::Value> {
            Ok(json!({}))
        }

        fn may_ask(&self) -> bool {
            true
        }

        fn counts(&self) -> CallCounts {
            CallCounts::default()
        }
    }

    fn judge() -> Judge {
        let text = "[models.j]\nprovider = 'openai'\nbase_url_env = 'U'\nmodel = 'Org/Judge-1'\negress = 'local'\n";
        let models = parse_models("models.toml", text).unwrap();
        let prompt = include_bytes!("../../pipelines/prompts/judge_adequacy.md").to_vec();
        Judge::new("p", &models["j"], "judge_adequacy.md", prompt).unwrap()
    }

    fn records(name: &str, cases: &[(&str, &[(Slot, &str)])]) -> RecordSet {
        let mut set = RecordSet::new(name);
        for (case, slots) in cases {
            let slots = slots.iter().map(|(slot, value)| (*slot, vec![(*value).to_owned()])).collect();
            set.insert(&[CaseKey::new(*case)], slots).unwrap();
        }
        set
    }

    fn rights(access: Access, llm_egress: LlmEgress) -> Rights {
        Rights { access, llm_egress, ..Rights::unknown() }
    }

    use Slot::{PersonalAge, SymptomColor, SymptomName, SymptomTime};

    fn reference() -> RecordSet {
        records(
            "reader",
            &[
                ("a", &[(SymptomName, "severe chest pain"), (SymptomTime, "for 3 days"), (PersonalAge, "40")]),
                ("b", &[(SymptomName, "severe chest pain"), (SymptomColor, "dark")]),
            ],
        )
    }

    fn extractor() -> RecordSet {
        records(
            "rules",
            &[
                ("a", &[(SymptomName, "chest pain"), (SymptomTime, "secret"), (PersonalAge, " 40")]),
                ("b", &[(SymptomName, "chest pain"), (SymptomColor, "copied"), (SymptomTime, "now")]),
            ],
        )
    }

    #[test]
    fn pairs_are_asked_once_and_failures_are_in_no_mean() {
        let (reference, sets) = (reference(), [extractor()]);
        let questions = Questions::of(&reference, &sets, &rights(Access::Open, LlmEgress::Any)).unwrap();
        assert_eq!((questions.n(), questions.withheld(Egress::Public)), (3, None));
        let (judge, service) = (judge(), Scripted::default());
        let judged = judge.ask(&service, questions).unwrap();
        assert_eq!(judged.missing(), Some((2, "copied_example 1, reply_refused 1".to_owned())));
        assert_eq!((judged.first_detail(), judged.n_pairs()), (Some("no"), 4));
        expect![[r#"
            Slot: Symptom-Name
            Meaning: what the patient complains of, or what a layperson would notice, in everyday words
            <<<reference 1763ce65193933b8>>>
            severe chest pain
            <<<end of reference 1763ce65193933b8>>>
            <<<candidate 1bce3b700f26488e>>>
            chest pain
            <<<end of candidate 1bce3b700f26488e>>>"#]]
        .assert_eq(&service.prompts.lock().unwrap()[0]);

        let (mean, share) = (Adequacy(&judged), ShareAtLeast::new(Adequacy(&judged), THRESHOLD));
        let mut comparison = compare(&reference, &sets, &[&mean, &share], Settings::default()).unwrap();
        comparison.judge = Some(judged.report(&judge, &comparison));
        let value = |place: usize| comparison.extractors[0].scores[place].estimate.unwrap().value.0;
        // 0.95 twice, 1 for the equal ages, 0 for what stands on one side; two of six pairs have no score.
        assert!((value(3) - (0.95 * 2.0 + 1.0) / 4.0).abs() < 1e-12, "{}", value(3));
        assert!((value(4) - 3.0 / 4.0).abs() < 1e-12, "{}", value(4));
        let text = table::text(&comparison);
        let from = text.find("adequacy by").unwrap();
        expect![[r#"
            adequacy by openai/Org/Judge-1, prompt of version 1: the mean, and the share of pairs of 0.90 or more
            extractor  pairs  in the mean  on one side only: 0  equal: 1  judged  no score
            rules          6            4                    1         1       2         2
            rules: pairs without a score, which are in no mean of the judge: copied_example 1, reply_refused 1"#]]
        .assert_eq(text[from..].split("\n\n").next().unwrap());
    }

    #[test]
    fn a_judge_of_one_word_is_known_by_it() {
        let words = |constant| {
            let sets = [extractor(), records("other", &[("a", &[(SymptomName, "pain"), (SymptomTime, "3 days")])])];
            let questions = Questions::of(&reference(), &sets, &rights(Access::Open, LlmEgress::Any)).unwrap();
            judge().ask(&Scripted { constant, ..Scripted::default() }, questions).unwrap().constant()
        };
        assert_eq!(words(Some(1.0)), Some((1.0, 4)));
        assert_eq!(words(None), Some((0.95, 4)), "chest pain twice, pain and 3 days");
        let one = [records("one", &[("a", &[(SymptomName, "pain")])])];
        let questions = Questions::of(&reference(), &one, &rights(Access::Open, LlmEgress::Any)).unwrap();
        assert_eq!(judge().ask(&Scripted::default(), questions).unwrap().constant(), None, "one answer is no habit");
    }

    #[test]
    fn the_strictest_rights_of_all_records_with_a_text_count() {
        let mut reference = reference();
        let mut set = extractor();
        let of = |reference: &RecordSet, set: &RecordSet, unsaid: &Rights| {
            let questions = Questions::of(reference, std::slice::from_ref(set), unsaid).unwrap();
            [Egress::Local, Egress::Zdr, Egress::Public].map(|egress| questions.withheld(egress).map_or(0, |(n, _)| n))
        };
        let (open, nobody_said) = (rights(Access::Open, LlmEgress::Any), Rights::unknown());
        assert_eq!(of(&reference, &set, &open), [0, 0, 0]);
        assert_eq!(of(&reference, &set, &nobody_said), [3, 3, 3]);
        // Both cases say the same of Symptom-Name, which is one question: what holds for the one holds for it.
        set.rights.insert(CaseKey::new("b"), rights(Access::Credentialed, LlmEgress::Any));
        assert_eq!(of(&reference, &set, &open), [0, 0, 2]);
        reference.rights.insert(CaseKey::new("a"), rights(Access::Open, LlmEgress::Local));
        assert_eq!(of(&reference, &set, &open), [0, 2, 3]);
        // What is said is not widened by what is said for the others, and does not help the other side.
        reference.rights.insert(CaseKey::new("b"), open.clone());
        assert_eq!(of(&reference, &set, &nobody_said), [2, 2, 3]);

        let of_case = |access| shown_rights(&rights_of_case("MIT".to_owned(), access, &open));
        assert_eq!(of_case(Access::Credentialed), "access credentialed, llm_egress any");
        assert_eq!(of_case(Access::Unknown), "access open, llm_egress any");
        let case = rights_of_case("MIT".to_owned(), Access::Open, &nobody_said);
        assert_eq!(shown_rights(&case), "access open, llm_egress none");
    }

    #[test]
    fn nobody_judges_their_own_work() {
        let judge = judge();
        let mut set = RecordSet::new("release");
        let mut made = |makers: &[&str], name: &str| {
            set.made_by = makers.iter().map(|maker| (*maker).to_owned()).collect();
            set.name = name.to_owned();
            judge.made(&set)
        };
        assert!(made(&["rules", "openai/org/judge-1"], "release"));
        assert!(made(&[], "OpenAI/Org/Judge-1") && made(&[], "org/judge-1"));
        assert!(!made(&["rules", "openai/org/judge-2", "anthropic/org/judge-1"], "release"));
    }
}
