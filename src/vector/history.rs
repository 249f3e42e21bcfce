//! What a patient had before: diseases, operations, habits, contacts, medications, and what runs in the family (MTDiag, B.5:
//! family history as member and findings).

use std::ops::Range;

use super::patterns;
use super::story::{Story, Texts};
use super::symptoms::{SymptomTerms, denied};
use crate::record::slots::Slot;
use crate::record::vector::{FamilyMember, Finding, FindingBasis, Medication, Negation};
use crate::slots::extract::Found;
use crate::text::context::Experiencer;

/// Characters behind a drug in which its dose stands.
const DOSE_WINDOW: usize = 60;
/// Most words of an antecedent, and of what a relative has.
const MAX_WORDS: usize = 12;

/// Slots whose values are antecedents.
const ANTECEDENTS: [Slot; 9] = [
    Slot::PastDiagnosis,
    Slot::TraumaSurgery,
    Slot::AllergicHistory,
    Slot::ContactHistory,
    Slot::HabitTobacco,
    Slot::HabitWine,
    Slot::HabitDrug,
    Slot::HabitLiving,
    Slot::Preventive,
];

patterns! {
    MEMBER_WORD = r"\b(?:(?:maternal|paternal|younger|older|elder|twin|half)[\s-]+)*(?:grandmothers?|grandfathers?|grandparents?|mother|father|parents?|brothers?|sisters?|siblings?|twin|aunts?|uncles?|cousins?|nephews?|nieces?|sons?|daughters?|children|relatives?)\b";
    /// Between a relative and what the relative has.
    HAS = r"^[\s,]*(?:(?:who|both|also|and|each|had|has|have|was|were|is|are|been|being|diagnosed|died|dead|suffer(?:ed|s|ing)?|treated|affected|known|developed|passed|away|at|the|age|with|of|from|for|by|a|an|history|to|due|positive)\b[\s,]*|\d{1,3}(?:\s*years?(?:\s+old)?)?\b[\s,]*)+";
    /// "Family history of", "family history was positive for".
    FAMILY_OF = r"\bfamily\s+history\s+(?:is|was|of|for|positive|notable|significant|remarkable|relevant|includ\w+|reveal\w+|show\w*|with|known|to|be|a|an|the|any|\s)+";
    /// What is no finding.
    NOTHING = r"^(?:unremarkable|non-?contributory|negative|positive|significant|relevant|notable|remarkable|normal|healthy|alive|well|alive and well|unknown|none|his|her|the|disease|diseases|illness|illnesses|similar (?:symptoms|disease|complaints)|history|family history|unaffected|good health|.*\b(?:unremarkable|non-?contributory))$";
    /// Behind a finding of a relative: its time, no part of its name.
    /// What is no antecedent by itself: how a complaint feels, an operation without a name, a way of life, a clause about something else.
    NO_ANTECEDENT = r"^(?:stabbing|burning|surgery|operation|procedure|trauma|injury|married|single|divorced|widowed|unmarried|alone|(?:relieved|aggravated|worsened|improved)\b.*|(?:(?:a|an|the|retired|former|his|her)\s+)*(?:[a-z-]+\s+)?(?:worker|driver|carpenter|teacher|nurse|student|clerk|librarian|courier|engineer|cook|waiter|waitress|salesman|accountant|secretary|housewife|pensioner|retiree)|night[\s-]shift|.*,\s*(?:one|two|three|and|or|which|that)|.*\b(?:health|medical) insurance)$";
    /// "Drank no alcohol".
    TAKES_NO = r"^(?:drank|drinks?|smoked?|smokes|used?|uses)\s+no\s+";
    /// "Alcohol: none".
    NONE_BEHIND = r"\s*:\s*(?:none|never)$";
    /// Before the name of an operation.
    UNDERGONE = r"^(?:(?:had|has|underwent|undergone|undergoing|received)\s+)+";
    /// Before a drug that is taken no longer: "had stopped taking her vitamin tablets".
    STOPPED = r"\b(?:stopp?ed|discontinued|quit|ceased|not|never)\s+(?:taking|using|taken|used)\b[^,;.]{0,30}$";
    AT_AGE = r",?\s+(?:at\s+(?:the\s+|an\s+)?(?:early\s+|young\s+|old\s+)?age\b|aged?\b|at\s+\d|when\b|in\s+(?:his|her|their)\b|during\b|several\b|\d+\s+years?\b)";
    LIST = r"\s*[,;]\s*(?:and\s+)?|\s+and\s+(?:an?\s+)?";
    /// What is taken by nobody: "took no medication".
    NO_DRUG = r"^(?:took|takes|taking|used|uses|using|received|on)?\s*(?:no|not|none|without|never)\b";
    /// What makes words of a list no name of a drug: "eased by rest".
    CLAUSE = r"\b(?:by|was|were|had|has|did|which|that|because|rest|stopped|she|he|it)\b";
    /// Before the name of a drug.
    BEFORE_DRUG = r"^(?:.*\b(?:relieved by|comprised|comprising|including|included|consisting of|consisted of|took|takes|taking|received)\s+|(?:weekly|daily|monthly|oral|topical|inhaled|intravenous|regular|low[\s-]dose|high[\s-]dose|an?|the|her|his|only|of|with|later|then|subsequently|also)\s+)+";
    DOSE = r"^[\s,(:]*(?:at\s+|of\s+|a\s+|the\s+|dose\s+|in\s+|an?\s+)*(?P<dose>\d[\d.,]*(?:\s*(?:-|x)\s*\d[\d.,]*)?\s*(?:mg|g|mcg|ug|ng|ml|iu|units?|u|meq|mmol|%|puffs?|tablets?|drops?)\b(?:\s*/\s*(?:kg|m2|day|d|h|hr|hour|week|dose|ml|min))*(?:[\s,]*(?:orally|po|iv|intravenously|subcutaneously))?(?:\s*(?:once|twice|thrice|three times|four times|\d times|every|each|per|a|daily|day|weekly|week|monthly|month|nightly|night|morning|at bedtime|other|bid|tid|qid|od|qd|\d+ hours|hours?|/)\b)*)";
}

/// Facts of the past that a story tells.
#[derive(Default)]
pub(super) struct Past {
    pub(super) antecedents: Vec<Finding>,
    pub(super) family_history: Vec<FamilyMember>,
    pub(super) medications: Vec<Medication>,
}

/// Reads the past of a story. `is_free` says whether words may be told.
pub(super) fn past(
    story: &Story,
    found: &[Found],
    terms: &SymptomTerms,
    is_free: &dyn Fn(&str) -> bool,
    texts: &mut Texts<'_>,
) -> Past {
    let mut reader = Reader { story, terms, is_free, texts, past: Past::default() };
    for one in found {
        match one.slot {
            slot if ANTECEDENTS.contains(&slot) => reader.antecedent(&one.range, slot),
            Slot::FamilyHistory => reader.family(&one.range),
            Slot::PastMedication => reader.medications(&one.range),
            _ => {}
        }
    }
    reader.past
}

struct Reader<'a, 't, 'x> {
    story: &'a Story,
    terms: &'a SymptomTerms,
    is_free: &'a dyn Fn(&str) -> bool,
    texts: &'t mut Texts<'x>,
    past: Past,
}

impl Reader<'_, '_, '_> {
    /// A finding with its place; none if it may not be told, or is no stretch of the article.
    fn finding(&mut self, range: &Range<usize>, negation: Negation) -> Option<Finding> {
        let read = &self.story.read;
        let name = read.words(range).to_owned();
        let is_long = name.split(' ').count() > MAX_WORDS;
        if name.is_empty() || is_long || NOTHING.is_match(read.plain(range)) || !(self.is_free)(&name) {
            return None;
        }
        let span = self.texts.span(&self.story.place(range)?)?;
        Some(Finding { name, negation, basis: FindingBasis::Text, spans: vec![span], ..Finding::default() })
    }

    fn antecedent(&mut self, range: &Range<usize>, slot: Slot) {
        let read = &self.story.read;
        let said = read.scopes.at(range);
        if said.experiencer != Experiencer::Patient {
            return;
        }
        // "Denies tobacco use" is one value; "no diabetes or asthma" are two.
        let members = denied(read, range);
        let is_denied =
            said.negated || !members.is_empty() && members.iter().all(|member| read.scopes.at(member).negated);
        let ranges = if is_denied { members } else { vec![range.clone()] };
        let can_be_complaint = matches!(slot, Slot::ContactHistory | Slot::HabitLiving | Slot::Preventive);
        for range in ranges {
            let cut = UNDERGONE.find(read.plain(&range)).map_or(0, |found| found.end());
            let end = NONE_BEHIND.find(read.plain(&range)).filter(|_| is_denied);
            let end = end.map_or(range.end, |found| range.start + found.start());
            let range = read.trimmed(&(range.start + cut..end));
            if NO_ANTECEDENT.is_match(read.plain(&range)) {
                continue;
            }
            // "No headache and no travel": a complaint is told as one.
            if is_denied && can_be_complaint && self.terms.is_in(read.plain(&range), false) {
                continue;
            }
            let takes_no = TAKES_NO.find(read.plain(&range)).map(|found| found.end());
            let range = takes_no.map_or(range.clone(), |cut| read.trimmed(&(range.start + cut..range.end)));
            let is_denied = is_denied || takes_no.is_some();
            let negation = match (is_denied, said.uncertain) {
                (true, _) => Negation::Denied,
                // A habit that might be is not known to be one; neither is a disease that was suspected.
                (false, true) => Negation::NotKnown,
                (false, false) => Negation::Present,
            };
            let Some(finding) = self.finding(&range, negation) else { continue };
            let is_known = self.past.antecedents.iter().any(|known| known.name.eq_ignore_ascii_case(&finding.name));
            // "Inguinal hernia" is no antecedent of its own beside "inguinal hernia repair".
            let overlaps = |known: &Finding| {
                let (Some(one), Some(other)) = (known.spans.first(), finding.spans.first()) else { return false };
                one.text_id == other.text_id && one.start < other.end && other.start < one.end
            };
            let is_longer = |known: &Finding| known.name.len() >= finding.name.len();
            if self.past.antecedents.iter().any(|known| overlaps(known) && is_longer(known)) {
                continue;
            }
            self.past.antecedents.retain(|known| !overlaps(known));
            // A vaccine that is denied is one that was missed; it is told as the text has it.
            if !(is_known || slot == Slot::Preventive && is_denied) {
                self.past.antecedents.push(finding);
            }
        }
    }

    /// "Her mother had type 2 diabetes", "no family history of cancer".
    fn family(&mut self, range: &Range<usize>) {
        let read = &self.story.read;
        let text = read.plain(range);
        let mut members: Vec<(String, Range<usize>)> = Vec::new();
        let mut relatives = MEMBER_WORD.find_iter(text).peekable();
        if relatives.peek().is_none() {
            let of = FAMILY_OF.find(text);
            members.extend(of.map(|found| ("family".to_owned(), range.start + found.end()..range.end)));
        }
        let mut shared: Vec<String> = Vec::new();
        while let Some(relative) = relatives.next() {
            let end = relatives.peek().map_or(text.len(), |next| next.start());
            let behind = text.get(relative.end()..end).unwrap_or_default();
            // "Her father's sister" is no sister of the patient, also where the phrase begins at "sister".
            let before = read.plain(&(0..range.start + relative.start())).replace('’', "'");
            let of = ["mother's ", "father's ", "husband's ", "wife's "].into_iter().find(|of| before.ends_with(of));
            let name = format!("{}{}", of.unwrap_or_default(), relative.as_str());
            match HAS.find(behind) {
                Some(has) if has.as_str().chars().any(|c| c.is_ascii_alphabetic()) && !is_joined(behind) => {
                    let findings = range.start + relative.end() + has.end()..range.start + end;
                    for member in std::mem::take(&mut shared).into_iter().chain([name]) {
                        members.push((member, findings.clone()));
                    }
                }
                // "His mother and sister had".
                _ if is_joined(behind) => shared.push(name),
                // "Breast cancer in her mother".
                _ => {
                    let before = text.get(..relative.start()).unwrap_or_default().trim_end();
                    let owner = ["in her", "in his", "in the", "in a", "in one", "in"]
                        .iter()
                        .find_map(|words| before.strip_suffix(words));
                    if let Some(before) = owner.filter(|before| before.is_empty() || before.ends_with(' ')) {
                        let from = FAMILY_OF.find(before).map_or(0, |found| found.end());
                        members.push((name, range.start + from..range.start + before.trim_end().len()));
                    }
                }
            }
        }
        for (member, findings) in members {
            self.findings_of(&member, &findings);
        }
    }

    fn findings_of(&mut self, member: &str, range: &Range<usize>) {
        let read = &self.story.read;
        let text = read.plain(range).to_owned();
        let mut start = 0;
        let mut items: Vec<Range<usize>> = Vec::new();
        for border in LIST.find_iter(&text) {
            items.push(start..border.start());
            start = border.end();
        }
        items.push(start..text.len());
        for item in items {
            let item = read.trimmed(&(range.start + item.start..range.start + item.end));
            let end = AT_AGE.find(read.plain(&item)).map_or(item.end, |found| item.start + found.start());
            let item = read.trimmed(&(item.start..end));
            let is_denied = read.scopes.at(&item).negated;
            let parts = if is_denied { denied(read, &item) } else { vec![item] };
            for part in parts {
                let negation = if is_denied { Negation::Denied } else { Negation::Present };
                let Some(finding) = self.finding(&part, negation) else { continue };
                let members = &mut self.past.family_history;
                match members.iter_mut().find(|known| known.member == member) {
                    Some(known) => known.findings.push(finding),
                    None => members.push(FamilyMember { member: member.to_owned(), findings: vec![finding] }),
                }
            }
        }
    }

    /// The drugs of a list: "levothyroxine 75 µg daily, alendronate 70 mg weekly".
    fn medications(&mut self, range: &Range<usize>) {
        let text = self.story.read.plain(range).to_owned();
        let mut start = 0;
        for border in LIST.find_iter(&text) {
            self.medication(&(range.start + start..range.start + border.start()));
            start = border.end();
        }
        self.medication(&(range.start + start..range.end));
    }

    fn medication(&mut self, range: &Range<usize>) {
        let read = &self.story.read;
        let said = read.scopes.at(range);
        let words = read.words(range);
        let sentence_start = read.sentence_of(range.start).map_or(range.start, |(_, sentence)| sentence.start);
        if STOPPED.is_match(read.plain(&(sentence_start..range.start))) {
            return;
        }
        if said.negated || said.experiencer != Experiencer::Patient || !(self.is_free)(words) {
            return;
        }
        let limit = read.sentence_of(range.start).map_or(range.end, |(_, sentence)| sentence.end).max(range.end);
        // The value can hold the dose: "amlodipine 5 mg".
        let plain = read.plain(range);
        let digit = plain.char_indices().zip(plain.char_indices().skip(1)).find_map(|((at, space), (_, next))| {
            (space == ' ' && next.is_ascii_digit() && DOSE.is_match(plain.get(at..)?)).then_some(at)
        });
        if NO_DRUG.is_match(plain) && !plain.contains("relieved by") {
            return;
        }
        let name = range.start..digit.map_or(range.end, |at| range.start + at);
        let cut = BEFORE_DRUG.find(read.plain(&name)).map_or(0, |found| found.end());
        let name = read.trimmed(&(name.start + cut..name.end));
        // A number without a unit is of something else: "her tablets 6 weeks before".
        let bare = read.plain(&name).trim_end_matches(|character: char| character.is_ascii_digit());
        let name = if bare.ends_with(' ') { read.trimmed(&(name.start..name.start + bare.len())) } else { name };
        let behind = name.end..limit.min(name.end + DOSE_WINDOW);
        let dose = DOSE.captures(read.plain(&behind)).and_then(|captures| captures.name("dose"));
        let dose = dose.map(|dose| read.trimmed(&(name.end + dose.start()..name.end + dose.end())));
        let words = read.words(&name).to_owned();
        let is_clause = CLAUSE.is_match(read.plain(&name));
        if words.is_empty()
            || is_clause
            || self.past.medications.iter().any(|known| known.name.eq_ignore_ascii_case(&words))
        {
            return;
        }
        let Some(span) = self.story.place(&name).and_then(|place| self.texts.span(&place)) else { return };
        let mut spans = vec![span];
        let dose = dose.and_then(|dose| {
            spans.push(self.texts.span(&self.story.place(&dose)?)?);
            Some(read.words(&dose).to_owned())
        });
        self.past.medications.push(Medication { name: words, dose, spans, ..Medication::default() });
    }
}

/// Whether nothing but "and" and the like stands between two relatives.
fn is_joined(between: &str) -> bool {
    let words: Vec<&str> = between.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty()).collect();
    between.contains(',') && words.is_empty()
        || !words.is_empty() && words.iter().all(|word| matches!(*word, "and" | "his" | "her" | "both" | "a" | "one"))
}
