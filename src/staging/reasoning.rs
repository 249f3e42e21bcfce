//! How the diagnosis was reached (ClinMM-Bench, supplement F: `diagnostic_reasoning`), in the sentences of the authors.
//!
//! Sentences of case, discussion and conclusion count that draw a conclusion about this patient. What is said of the disease
//! in general, of the literature or of the treatment does not.

use std::collections::BTreeSet;

use super::diagnosis::{FinalDiagnosis, Located};
use super::presentation::{Sentence, body_sentences, staged_text};
use super::sections::{SectionRole, patterns};
use crate::record::article::{Article, PatientSegment};
use crate::record::staged::StagedText;
use crate::text::leakage::{Gold, Synonyms};

/// Sentences that are told at most.
const MAX_SENTENCES: usize = 12;

patterns! {
    /// Says itself that it reasons about a diagnosis.
    STRONG = r"\b(?:diagnos(?:is|ed|es|ing)|misdiagnos\w+|differential|ruled? out|ruling out|exclud(?:ed|ing|es)|consistent with|compatible with|suggest(?:ed|ing|ive)|confirm(?:ed|ing|s)|suspect(?:ed|ing)|suspicion|in keeping with|indicative of|pathognomonic|unlikely|pointed to(?:wards?)?|favou?red|raised the possibility|led (?:us )?to|concluded|was considered|were considered|we considered|identified as|proved to be|turned out)\b";
    /// Gives a reason for something; counts where the diagnosis is named or a finding is weighed.
    WEAK = r"\b(?:because|since|due to|based on|on the basis of|in view of|in light of|given (?:the|that|his|her)|therefore|thus|hence|as a result|owing to|attributed to|explain(?:ed|s)?|support(?:ed|s|ing)?|considering|in the absence of|despite|reveal(?:ed|ing)|show(?:ed|ing)|demonstrat(?:ed|ing))\b";
    /// This patient.
    OURS = r"\b(?:our (?:patient|case|child|report|index)(?:['’]s)?|(?:this|the present|present|current|the current|reported) (?:patient|case|child|infant|boy|girl|man|woman)(?:['’]s)?|in this report|the patient(?:['’]s)?|patient['’]s|we (?:considered|suspected|excluded|ruled|diagnosed|concluded|thought|believed|made|confirmed|initially)|(?:led|enabled|allowed|alerted|prompted|helped|made) us|he|she|his|her)\b";
    GENERAL = r"\b(?:patients with|in patients|is an? (?:very |extremely |relatively )?(?:rare|uncommon|common|benign|malignant|well)|are (?:rare|uncommon|common)|most common|most (?:cases|patients)|usually|typically|often|generally|in general|commonly|may be|can be|should|must|et al|has been reported|have been reported|in the literature|studies|authors|incidence|prevalence|mortality rate|prognosis|we report|we present|we describe|we recommend|to (?:the best of )?our knowledge|is defined as)\b";
    CITED = r"\[\d[\d,\s–-]*\]\s*[.;,]?";
    AFTER = r"\b(?:follow[\s-]?up|discharged|uneventful\w*|post-?operativ\w*|recurrence|was treated|treated with|treatment with|was started on|responded|recovered|consent|months later|weeks later|adverse|side effects?|was prescribed|cause of death|funding|survival)\b";
    /// A relative, or a disease of an earlier time.
    ELSEWHERE = r"\b(?:siblings?|brother|sister|grandfather|grandmother|father|mother|uncle|aunt|cousin)(?:['’]s)?\b|\bknown case of\b|\byears ago\b|\bpreviously diagnosed\b";
    DOWNRIGHT = r"\bdiagnos\w+|\bruled? out|\bexclud|\bdifferential|\bconfirm";
}

/// The sentences that tell how this patient's findings led to the diagnosis, in the order of the article; at most 12.
///
/// Of more, those that name the diagnosis and those that reason most plainly stay. None if there are none.
pub fn reasoning(
    article: &Article,
    roles: &[SectionRole],
    patient: Option<&PatientSegment>,
    diagnosis: &FinalDiagnosis,
) -> Option<StagedText> {
    let names: Vec<Gold> = std::iter::once(&diagnosis.diagnosis)
        .chain(&diagnosis.synonyms)
        .map(|name| Gold::new(name, "", &Synonyms::default()))
        .collect();
    let is_wanted = |role: SectionRole| {
        role.is_of_patient() && !matches!(role, SectionRole::Treatment | SectionRole::Outcome) || role.is_of_reasoning()
    };
    let sentences = body_sentences(article, roles, patient, is_wanted);
    // Where a paragraph of the discussion speaks of the patient, a pronoun may mean them.
    let speaking: BTreeSet<Option<u32>> =
        sentences.iter().filter(|sentence| OURS.is_match(sentence.text())).map(|sentence| sentence.paragraph).collect();
    let mut found: Vec<(usize, i32, Located)> = Vec::new();
    for (position, sentence) in sentences.iter().enumerate() {
        let is_named = names.iter().any(|gold| !gold.leaks(sentence.text()).is_empty());
        if let Some(weight) = weight(sentence, is_named, speaking.contains(&sentence.paragraph)) {
            found.push((position, weight, sentence.located()));
        }
    }
    if found.len() > MAX_SENTENCES {
        found.sort_by_key(|(position, weight, _)| (std::cmp::Reverse(*weight), *position));
        found.truncate(MAX_SENTENCES);
        found.sort_by_key(|(position, ..)| *position);
    }
    let places: Vec<Located> = found.into_iter().map(|(.., place)| place).collect();
    staged_text(article, &places)
}

/// How plainly a sentence reasons about the patient; none if it does not.
fn weight(sentence: &Sentence<'_>, is_named: bool, paragraph_speaks_of_patient: bool) -> Option<i32> {
    let text = sentence.text();
    let is_strong = STRONG.is_match(text);
    let is_weak = WEAK.is_match(text);
    let is_ours = OURS.is_match(text);
    let is_case = sentence.role.is_of_patient();
    if text.split_whitespace().count() < 4 || !(is_strong || is_weak && is_named) {
        return None;
    }
    if !(is_case || is_ours && paragraph_speaks_of_patient) {
        return None;
    }
    // A citation or a general statement carries what does not speak of the patient.
    let is_general = GENERAL.is_match(text) || CITED.is_match(text);
    let speaks_plainly = text.to_lowercase().contains("our ")
        || text.to_lowercase().contains("this patient")
        || text.to_lowercase().contains("present case");
    let is_of_patient = speaks_plainly || is_case && !CITED.is_match(text);
    if is_general && !(is_strong && is_of_patient) {
        return None;
    }
    if ELSEWHERE.is_match(text) && !text.to_lowercase().contains("family history") && !(is_named && is_ours) {
        return None;
    }
    let is_late = AFTER.is_match(text);
    if is_late && !(is_named && DOWNRIGHT.is_match(text)) {
        return None;
    }
    let mut weight = 0;
    weight += if is_strong { 2 } else { 0 };
    weight += if is_weak { 1 } else { 0 };
    weight += if is_named { 2 } else { 0 };
    weight += if DOWNRIGHT.is_match(text) { 1 } else { 0 };
    weight += if is_general || is_late { -1 } else { 0 };
    Some(weight)
}

#[cfg(test)]
mod tests {
    use super::super::masking::tests::diagnosis;
    use super::super::presentation::tests::{article, check};
    use super::super::sections::roles;
    use super::*;
    use expect_test::expect;
    use proptest::prelude::*;

    fn told(body: &str) -> String {
        let (_, article) = article(body);
        let text = reasoning(&article, &roles(&article), None, &diagnosis("hydatidosis", &[]));
        check(&article, &text.iter().collect::<Vec<_>>());
        text.map_or_else(|| "-".to_owned(), |text| text.text)
    }

    #[test]
    fn reasons_for_this_patient_are_told_and_the_literature_is_not() {
        let found = told(
            "<sec><title>Case report</title><p>A 30-year-old man presented with cough. An abscess was suspected first. Serology ruled out amoebiasis. His sister was diagnosed with asthma. Hydatidosis was diagnosed based on the double wall. He recovered and was discharged.</p></sec>
             <sec><title>Discussion</title><p>Hydatidosis is a rare disease. Hydatidosis is confirmed by serology in most patients [3]. In our patient the absence of fever made an abscess unlikely. Smith et al. excluded a tumour by CT. Our patient was treated with albendazole.</p></sec>
             <sec><title>Conclusion</title><p>In this case the double wall confirmed the diagnosis.</p></sec>",
        );
        expect!["An abscess was suspected first. Serology ruled out amoebiasis. Hydatidosis was diagnosed based on the double wall. In our patient the absence of fever made an abscess unlikely. In this case the double wall confirmed the diagnosis."].assert_eq(&found);
    }

    #[test]
    fn of_many_sentences_the_plainest_stay_in_their_order() {
        let weak: String = (0..20).map(|n| format!("Test {n} suggested an infection of the liver. ")).collect();
        let found = told(&format!(
            "<sec><title>Case report</title><p>{weak}Hydatidosis was confirmed by the double wall. A tumour was excluded by the biopsy of it.</p></sec>"
        ));
        assert_eq!(found.matches('.').count(), MAX_SENTENCES);
        assert!(found.starts_with("Test 0 "), "{found}");
        assert!(found.ends_with("double wall. A tumour was excluded by the biopsy of it."), "{found}");
        assert_eq!(told("<sec><title>Case report</title><p>He was well and went home by bus.</p></sec>"), "-");
    }

    proptest! {
        #[test]
        fn quotes_are_copies_and_no_text_makes_it_fail(text in
            "(because |our patient |hydatidosis |was diagnosed |é|[a-z]{1,6} |\\. |\\[3\\] |ruled out ){0,40}") {
            told(&format!("<sec><title>Case report</title><p>{text}</p></sec><sec><title>Discussion</title><p>{text}</p></sec>"));
        }
    }
}
