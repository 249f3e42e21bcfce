//! Who a case is about: the person, the age and the sex.

use super::{BEFORE, Case};
use std::collections::HashSet;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sex {
    Male,
    Female,
}

/// What a word says about a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A noun that states the sex.
    Sex(Sex),
    /// A relative or companion, with the sex the noun implies.
    Kin(Option<Sex>),
    Pronoun(Sex),
    Patient,
    /// A noun for a person of some age, and an adjective of age.
    StageNoun,
    StageAdjective,
    PhraseEnd,
}

/// Characters between "brings her" and the noun it means.
const NEAR: usize = 40;
/// Words read behind an age for the noun it belongs to.
const HEAD_WORDS: usize = 12;
/// Words read before a noun for the article it has.
const DETERMINER_WORDS: usize = 9;
/// Sentences at the beginning of a case in which the patient may be introduced without an age.
pub(super) const INTRODUCTION: usize = 3;

/// The person a case is about. Ranges are into the folded text.
#[derive(Clone)]
pub(super) struct Patient {
    pub(super) age: Option<Range<usize>>,
    pub(super) sex: Option<(Sex, Range<usize>)>,
    /// The phrase that introduces the person, and the index of its sentence.
    pub(super) phrase: Range<usize>,
    pub(super) sentence: usize,
    /// Named as a relative ("her husband", "his 30-year-old mother").
    pub(super) is_kin: bool,
    /// The age is said of somebody already named ("she is 45 years old").
    pub(super) is_said: bool,
}

/// The noun a phrase ends in.
#[derive(Default)]
struct Head {
    sex: Option<(Sex, Range<usize>)>,
    is_kin: bool,
    stage: Option<Range<usize>>,
    is_patient: bool,
    end: usize,
}

impl Case<'_> {
    pub(super) fn patient(&self) -> Option<Patient> {
        let mut held: Option<Patient> = None;
        let mut relative: Option<Patient> = None;
        for (index, sentence) in self.sentences.iter().enumerate() {
            for candidate in self.people(index, sentence) {
                let brought = |first: &Patient| self.is_brought(first, &candidate, sentence);
                match &mut held {
                    None if !candidate.is_kin || relative.as_ref().is_some_and(brought) => held = Some(candidate),
                    None => relative = Some(candidate),
                    Some(first) if brought(first) => held = Some(candidate),
                    // "A patient is seen. She is 45 years old."
                    Some(first) if first.age.is_none() && candidate.is_said && !candidate.is_kin => {
                        first.age = candidate.age;
                    }
                    Some(first) if first.age.is_none() && first.sex.is_none() && !candidate.is_kin => {
                        held = Some(candidate);
                    }
                    Some(_) => {}
                }
            }
            let is_known = held.as_ref().is_some_and(|patient| patient.age.is_some());
            if is_known || (held.is_some() && index >= INTRODUCTION) {
                break;
            }
        }
        held
    }

    /// The sentence in which another patient of one's own is introduced ("A second patient, a 30-year-old man, ...").
    pub(super) fn second_patient(&self, patient: &Patient) -> Option<usize> {
        let first = patient.age.as_ref()?;
        self.sentences.iter().enumerate().skip(patient.sentence + 1).find_map(|(index, sentence)| {
            let text = self.slice(sentence.clone());
            let opening = text.get(..text.len().min(60)).unwrap_or_default();
            let other = self.people(index, sentence).into_iter().find(|other| !other.is_kin && !other.is_said)?;
            let age = other.age.clone()?;
            let introduces = opening.starts_with("a ")
                || opening.starts_with("an ")
                || opening.contains("second patient")
                || opening.contains("another patient");
            let is_other = self.slice(age.clone()) != self.slice(first.clone()) && age.start < sentence.start + 60;
            (introduces && is_other && other.sex.is_some()).then_some(index)
        })
    }

    /// Whether `first` brings `second` to be seen.
    fn is_brought(&self, first: &Patient, second: &Patient, sentence: &Range<usize>) -> bool {
        let from = first.phrase.end;
        if from < sentence.start || second.phrase.start < from || second.phrase.start - from > BEFORE {
            return false;
        }
        let between = self.slice(from..second.phrase.start);
        let verb = self.lexicon.brings.captures_iter(between).last();
        // "is brought by" is no such verb.
        verb.is_some_and(|verb| {
            let end = verb.get(0).map_or(0, |whole| whole.end());
            verb.get(1).is_none() && between.len().saturating_sub(end) <= NEAR
        })
    }

    /// Everyone a sentence introduces, in order. Kin are marked; a mother named by a birth is left out.
    fn people(&self, index: usize, sentence: &Range<usize>) -> Vec<Patient> {
        let lexicon = self.lexicon;
        let text = self.slice(sentence.clone());
        let mut people = Vec::new();
        let mut taken = sentence.start;
        let ages = lexicon.ages.find_iter(text).map(|found| (found.range(), true));
        let bare = lexicon.bare_age.captures_iter(text).filter_map(|found| Some((found.get(1)?.range(), true)));
        let nouns = lexicon.people.find_iter(text).map(|found| (found.range(), false));
        let mut mentions: Vec<(Range<usize>, bool)> =
            if index < INTRODUCTION { ages.chain(bare).chain(nouns).collect() } else { ages.chain(bare).collect() };
        mentions.sort_by_key(|(range, _)| (range.start, range.end));
        for (range, is_age) in mentions {
            let range = sentence.start + range.start..sentence.start + range.end;
            if range.start < taken {
                continue;
            }
            let before = self.before(sentence, range.start);
            let candidate = if is_age {
                self.aged_person(index, sentence, &range, before)
            } else {
                self.named_person(index, sentence, &range, before)
            };
            if let Some(candidate) = candidate {
                taken = candidate.phrase.end;
                people.push(candidate);
            }
        }
        people
    }

    fn aged_person(&self, index: usize, sentence: &Range<usize>, age: &Range<usize>, before: &str) -> Option<Patient> {
        let lexicon = self.lexicon;
        if lexicon.event_before.is_match(before) || lexicon.birth_before.is_match(before) {
            return None;
        }
        let head = self.head(sentence, age.end);
        let determiner = self.determiner(age.start);
        let is_kin = matches!(determiner, Determiner::Owned) || head.is_kin;
        // "a male 45 years of age"
        let sex = head.sex.or_else(|| self.sex_just_before(sentence, age.start));
        // "patients 20 to 65 years of age" are nobody.
        let is_said = before.ends_with(" is ") && matches!(determiner, Determiner::None);
        let is_added = is_said || before.ends_with(", ");
        let is_noun_phrase = !matches!(determiner, Determiner::None) && !self.slice(age.clone()).ends_with("age");
        if sex.is_none() && head.stage.is_none() && !is_added && !is_noun_phrase {
            return None;
        }
        let phrase = age.start..head.end.max(age.end);
        Some(Patient { age: Some(age.clone()), sex, phrase, sentence: index, is_kin, is_said })
    }

    /// The noun directly before an age: "a man aged", "a woman, 45 years old".
    fn sex_just_before(&self, sentence: &Range<usize>, at: usize) -> Option<(Sex, Range<usize>)> {
        let before = self.before(sentence, at);
        let word = self.lexicon.words(before).last()?;
        let offset = at - before.len();
        match self.lexicon.words.get(self.slice(offset + word.start..offset + word.end)) {
            Some(Word::Sex(sex)) => Some((*sex, offset + word.start..offset + word.end)),
            _ => None,
        }
    }

    fn named_person(
        &self,
        index: usize,
        sentence: &Range<usize>,
        noun: &Range<usize>,
        before: &str,
    ) -> Option<Patient> {
        let lexicon = self.lexicon;
        let word = *lexicon.words.get(self.slice(noun.clone()))?;
        let is_possessor = self.slice(noun.end..self.text.len()).starts_with("'s");
        let determiner = self.determiner(noun.start);
        let introduced = matches!(determiner, Determiner::Indefinite);
        let owned = matches!(determiner, Determiner::Owned);
        let phrase = noun.clone();
        let nobody = Patient { age: None, sex: None, phrase, sentence: index, is_kin: true, is_said: false };
        match word {
            Word::Kin(_) => return Some(nobody),
            Word::Sex(_) if owned => {}
            Word::Sex(_) | Word::StageNoun | Word::StageAdjective if introduced => {}
            Word::Patient if introduced || (index == 0 && before.trim() == "the") => {}
            _ => return None,
        }
        if is_possessor && !matches!(word, Word::Patient) {
            return None;
        }
        if lexicon.birth_before.is_match(before) {
            return None;
        }
        let mut head = self.head(sentence, noun.end);
        let plain = matches!(word, Word::Sex(_)) && head.sex.is_none();
        let plain_stage = head.sex.is_none() && head.stage.is_none();
        if head.is_kin {
            return Some(Patient { phrase: noun.start..head.end.max(noun.end), ..nobody });
        }
        if let Word::Sex(sex) = word {
            // An adjective stands before a noun that may be no person: "a female condom", "a male mouse".
            if lexicon.sex_adjectives.contains(self.slice(noun.clone()))
                && plain
                && !self.ends_phrase(sentence, noun.end)
            {
                return None;
            }
            head.sex = Some((sex, noun.clone()));
        }
        let stage = match word {
            // "a newborn screening test", "an elderly population"
            Word::StageNoun if plain_stage && !self.ends_phrase(sentence, noun.end) => return None,
            Word::StageAdjective if plain_stage && !head.is_patient => return None,
            Word::StageNoun | Word::StageAdjective => Some(noun.clone()),
            Word::Patient if !self.opens_case(index, sentence, noun) => return None,
            _ => head.stage.or_else(|| self.stage_before(sentence, noun.start)),
        };
        let end = head.end.max(noun.end);
        let late = self.late_age(sentence, end);
        let phrase = noun.start..late.as_ref().map_or(end, |range| range.end);
        Some(Patient { age: late.or(stage), sex: head.sex, phrase, sentence: index, is_kin: owned, is_said: false })
    }

    /// Whether a noun without age or sex is the subject a case opens with.
    fn opens_case(&self, index: usize, sentence: &Range<usize>, noun: &Range<usize>) -> bool {
        index == 0 && self.lexicon.words(self.slice(sentence.start..noun.start)).count() <= 12
    }

    /// A stage of life among the words before a noun: "an elderly man", "a newborn boy".
    fn stage_before(&self, sentence: &Range<usize>, at: usize) -> Option<Range<usize>> {
        let before = self.before(sentence, at);
        let offset = at - before.len();
        let tail: Vec<Range<usize>> = self.lexicon.words(before).collect();
        tail.iter().rev().take(3).find_map(|word| {
            let range = offset + word.start..offset + word.end;
            matches!(self.lexicon.words.get(self.slice(range.clone())), Some(Word::StageNoun | Word::StageAdjective))
                .then_some(range)
        })
    }

    /// Whether nothing but the end of a noun phrase follows.
    fn ends_phrase(&self, sentence: &Range<usize>, at: usize) -> bool {
        let after = self.slice(at..sentence.end.min(at + BEFORE).max(at));
        match self.lexicon.words(after).next() {
            None => true,
            Some(word) => {
                let gap = after.get(..word.start).unwrap_or_default();
                let known = after.get(word).and_then(|word| self.lexicon.words.get(word));
                gap.contains([',', '.', '('])
                    || matches!(known, Some(Word::PhraseEnd | Word::Patient | Word::StageNoun))
            }
        }
    }

    /// "aged 45" or "in her 50s" directly behind the noun of a person.
    fn late_age(&self, sentence: &Range<usize>, at: usize) -> Option<Range<usize>> {
        let after = self.slice(at..sentence.end.min(at + BEFORE).max(at));
        let found = self.lexicon.late_age.captures(after)?;
        let found = found.get(1).or_else(|| found.get(2))?;
        Some(at + found.start()..at + found.end())
    }

    /// Reads the noun phrase behind `from` up to the noun that names the person.
    fn head(&self, sentence: &Range<usize>, from: usize) -> Head {
        let window = self.slice(from..sentence.end.min(from + 2 * BEFORE).max(from));
        let mut head = Head { end: from, ..Head::default() };
        let mut last = 0;
        for word in self.lexicon.words(window).take(HEAD_WORDS) {
            let gap = window.get(last..word.start).unwrap_or_default();
            if gap.contains([';', ':', '?']) || gap.contains(". ") {
                break;
            }
            last = word.end;
            let range = from + word.start..from + word.end;
            let text = window.get(word).unwrap_or_default();
            // "male-to-female" states no sex.
            if self.slice(range.end..self.text.len()).starts_with("-to-")
                || self.slice(0..range.start).ends_with("-to-")
            {
                continue;
            }
            match self.lexicon.words.get(text) {
                Some(Word::PhraseEnd | Word::Pronoun(_)) => break,
                Some(Word::Sex(sex)) => {
                    head.end = range.end;
                    head.sex = Some((*sex, range));
                    break;
                }
                Some(Word::Kin(_)) => {
                    head.end = range.end;
                    head.is_kin = true;
                    break;
                }
                Some(Word::StageNoun | Word::StageAdjective) => {
                    head.end = range.end;
                    head.stage.get_or_insert(range);
                }
                Some(Word::Patient) => {
                    head.end = range.end;
                    head.is_patient = true;
                }
                None => {}
            }
        }
        head
    }

    /// The age of the patient, unless the case states another one for "this" patient.
    pub(super) fn age(&self, patient: &Patient) -> Option<Range<usize>> {
        let age = patient.age.clone()?;
        let said = self.slice(age.clone());
        let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).map(char::from).collect::<String>();
        let contradicted = self.lexicon.ages.find_iter(self.slice(self.vignette.clone())).any(|other| {
            let start = self.vignette.start + other.start();
            let before = self.slice(start.saturating_sub(6).max(self.vignette.start)..start);
            start > age.end && before.ends_with("this ") && digits(other.as_str()) != digits(said)
        });
        (!contradicted).then_some(age)
    }

    /// What states the sex of the patient.
    pub(super) fn sex(&self, patient: &Patient) -> Option<Range<usize>> {
        let mentions = self.mentions(patient.phrase.end);
        match &patient.sex {
            Some((sex, range)) => (!self.is_contradicted(*sex, &mentions)).then(|| range.clone()),
            None => self.sex_by_later_words(patient, &mentions),
        }
    }

    /// Every word for a person behind `from`.
    fn mentions(&self, from: usize) -> Vec<(Word, Range<usize>)> {
        let rest = self.slice(from..self.vignette.end.max(from));
        self.lexicon
            .people
            .find_iter(rest)
            .filter_map(|found| {
                let word = *self.lexicon.words.get(found.as_str())?;
                Some((word, from + found.start()..from + found.end()))
            })
            .collect()
    }

    /// The word that opens the noun phrase which goes on at `at`.
    fn determiner(&self, at: usize) -> Determiner {
        let before = self.slice(at.saturating_sub(BEFORE).max(self.vignette.start)..at);
        for word in before.split([' ', '\n']).rev().filter(|word| !word.is_empty()).take(DETERMINER_WORDS) {
            let plain = word.trim_matches(['(', '"', '\'', ',']);
            match plain {
                "the" | "this" => return Determiner::Definite,
                "a" | "an" | "another" | "one" => return Determiner::Indefinite,
                "his" | "her" | "their" | "whose" | "your" => return Determiner::Owned,
                _ if plain.ends_with("'s") => return Determiner::Owned,
                _ => {}
            }
            let ends = word.ends_with(['.', ';', ':', '?']);
            if ends || matches!(self.lexicon.words.get(plain), Some(Word::PhraseEnd | Word::Pronoun(_))) {
                break;
            }
        }
        Determiner::None
    }

    /// Whether the case speaks of the patient as of the other sex.
    fn is_contradicted(&self, sex: Sex, mentions: &[(Word, Range<usize>)]) -> bool {
        let mut same = 0_usize;
        let mut other = 0_usize;
        for (word, range) in mentions {
            match word {
                // Another person the words may mean.
                Word::Kin(_) => return false,
                Word::Sex(said) if *said != sex => {
                    // "the woman", but not "the female partner".
                    let is_noun = !self.lexicon.sex_adjectives.contains(self.slice(range.clone()));
                    return is_noun && matches!(self.determiner(range.start), Determiner::Definite);
                }
                Word::Sex(_) => same += 1,
                Word::Pronoun(said) if *said == sex => same += 1,
                Word::Pronoun(_) => other += 1,
                Word::Patient | Word::StageNoun | Word::StageAdjective | Word::PhraseEnd => {}
            }
        }
        same == 0 && other > 0
    }

    /// The sex by "the man" or, failing that, by the pronouns of a patient whom no noun describes.
    fn sex_by_later_words(&self, patient: &Patient, mentions: &[(Word, Range<usize>)]) -> Option<Range<usize>> {
        let opening = self.slice(self.vignette.start..patient.phrase.start);
        if self.lexicon.professionals.is_match(opening) {
            return None;
        }
        let sentence = self.sentences.get(patient.sentence)?;
        let mut met = HashSet::new();
        let mut pronoun: Option<(Sex, Range<usize>)> = None;
        let mut noun: Option<(Sex, Range<usize>)> = None;
        for (index, (word, range)) in mentions.iter().enumerate() {
            match word {
                Word::Kin(Some(kin)) => {
                    met.insert(*kin == Sex::Male);
                }
                Word::Sex(said) => match self.determiner(range.start) {
                    Determiner::Definite if !met.contains(&(*said == Sex::Male)) => {
                        if noun.as_ref().is_some_and(|(first, _)| first != said) {
                            return None;
                        }
                        noun.get_or_insert((*said, range.clone()));
                    }
                    Determiner::Indefinite | Determiner::Owned => {
                        met.insert(*said == Sex::Male);
                    }
                    Determiner::Definite | Determiner::None => {}
                },
                Word::Pronoun(said) => {
                    let owns_kin = mentions.get(index + 1).is_some_and(|(next, at)| {
                        matches!(next, Word::Kin(_)) && self.slice(range.end..at.start).split_whitespace().count() <= 2
                    });
                    let decisive = owns_kin && range.end <= sentence.end && met.is_empty() && pronoun.is_none();
                    if decisive {
                        // "... is brought by his mother": later words may mean the mother.
                        let contradicted = self.child_noun_after(mentions.get(index + 1..), *said);
                        return (!contradicted).then(|| range.clone());
                    }
                    if met.contains(&(*said == Sex::Male)) || self.follows_professional(range.start) {
                        continue;
                    }
                    match &pronoun {
                        Some((first, _)) if first != said => return None,
                        Some(_) => {}
                        None => pronoun = Some((*said, range.clone())),
                    }
                }
                Word::Kin(None) | Word::Patient | Word::StageNoun | Word::StageAdjective | Word::PhraseEnd => {}
            }
        }
        match (noun, pronoun) {
            (Some((noun, _)), Some((pronoun, _))) if noun != pronoun => None,
            (Some((_, range)), _) | (None, Some((_, range))) => Some(range),
            (None, None) => None,
        }
    }

    /// Whether a professional is named earlier in the sentence, whom a pronoun may mean.
    fn follows_professional(&self, at: usize) -> bool {
        let index = self.sentences.partition_point(|sentence| sentence.start <= at);
        let sentence = index.checked_sub(1).and_then(|index| self.sentences.get(index));
        sentence.is_some_and(|sentence| self.lexicon.professionals.is_match(self.before(sentence, at)))
    }

    /// Whether "her daughter" or "the girl" says the opposite of what a pronoun said.
    fn child_noun_after(&self, mentions: Option<&[(Word, Range<usize>)]>, sex: Sex) -> bool {
        mentions.unwrap_or_default().iter().any(|(word, range)| {
            matches!(word, Word::Sex(said) if *said != sex)
                && matches!(self.determiner(range.start), Determiner::Definite | Determiner::Owned)
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Determiner {
    Definite,
    Indefinite,
    Owned,
    None,
}
