//! What a model is told before the first image (ClinMM-Bench, supplement F): who the patient is, what brought them, their
//! history with bedside findings, laboratory values, and the names of the examinations that were done.
//!
//! Sentences and clauses are copied with their places; nothing is rephrased. The case is read in order, and each sentence
//! belongs to a topic: its own words tell which, and a sentence without such words goes on with the topic before it. So a
//! sentence behind "CT showed a mass" is one of the CT until something else begins. Reading ends where the diagnosis is
//! made, an operation is done, or the section of treatment or outcome begins.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::diagnosis::{Located, passage_of};
use super::examinations::{ExamClass, Examinations};
use super::masking::{Mask, RefusalKind, figure_references};
use super::sections::{SectionRole, patterns};
use super::series::introductions;
use crate::record::article::{Article, Cell, Passage, PatientSegment, Region, Table, TableContent};
use crate::record::slots::Span;
use crate::record::staged::{Presentation, Quote, SourceText, StagedText, separator};
use crate::text::sentences::sentences;

/// Sentences at the beginning of a case in which the complaint is looked for.
const COMPLAINT_SENTENCES: usize = 6;
/// Forms of a complaint that are tried, each shorter by a member.
const MAX_SHORTENED: usize = 12;
/// References to a table in the text that are read.
const MAX_REFERENCES: usize = 16;
/// Words of a first sentence beyond person, complaint and place that make it worth telling as a whole.
const MAX_FILLED: usize = 3;
/// Words before an age among which its article is looked for.
const MAX_WORDS_BEFORE: usize = 7;
/// Columns that one cell of a head is read for.
const MAX_SPAN: u32 = 64;
/// Rows of a table of laboratory values that are read.
const MAX_ROWS: usize = 80;

patterns! {
    /// Other people's patients.
    OTHERS = r"\bet al\b|\b(?:in the|published|previous|available|recent|medical) literature\b|\breported cases\b|\bcases? (?:have|has) been (?:reported|described)\b|\b(?:previous|other|several|many|few|prior) (?:reports|studies|authors|cases)\b|\bpatients with\b|\bconsent\b|\bethic(?:s|al)\b";
    /// The patient does, has or tells something.
    HISTORY = r"\b(?:he|she|(?:the|our|this) (?:patient|child|boy|girl|infant|baby|neonate|newborn|man|woman|lady|gentleman)|patient|parents|mother|father|family) (?:also |then |had |has |initially |previously |subsequently |further |only |never |suddenly |was |later )*(?:complain|report|denie|deny|noticed|note[ds]? (?:a|that)|experienc|describ|present|develop|admitted to|admitted (?:using|drinking|receiving|having)|recall|gave a history|suffer|smoke|drank|drinks|work|lived?\b|lives\b|travel|resid|born|delivered|breastfed|had been|had (?:a |an |no |not |any |the )*(?:past |significant |previous |prior |known |family |medical |long |recent )*(?:histor|complain|fever|pain|cough|symptom|weight|night|dyspn|headache|vomit|nausea|seizure|episode|allerg|been)|was (?:born|previously|otherwise|well until|healthy)|lost|stated|mentioned|claimed|visited|sustained|took|takes|used\b|uses|felt|feels|avoid|was (?:referred|brought|admitted|seen)|is (?:a known|originally|married|single))|\bhistory\b|\bcomplain(?:ed|ts?|ing)\b|\bpresent(?:ed|ing) (?:to|with|at|complaints?)\b|\bsymptoms? (?:began|started|had|were|included|occurred|of)\b|\bprior to (?:admission|presentation)\b|\b(?:first|second|only) child\b|\bbirth weight\b|\bconsanguineous\b|\ballerg(?:y|ies|ic)\b|\bvaccinat|\bnon-?smoker\b|\bmedications?\b";
    /// What eye, hand, ear and bedside instruments find.
    BEDSIDE = r"\b(?:on|upon|at|physical|clinical|general|local|systemic|neurologic(?:al)?|abdominal|cardiac|cardiovascular|respiratory|oral|intraoral|intra-?oral|extra-?oral|musculoskeletal|initial) (?:physical |clinical |general |intra-?oral |extra-?oral |neurological )?(?:exam(?:ination)?|evaluation|inspection)\b|\bexamination (?:of (?:the|his|her)|was|revealed|showed|findings)\b|\bvital(?:s| signs)\b|\b(?:body )?temperature\b|\bblood pressure\b|\b(?:heart|pulse|respiratory) rate\b|\bpulse\b|\boxygen saturation\b|\bauscultat|\bpalpat|\bpercussion\b|\btender(?:ness)?\b|\bafebrile\b|\bfebrile\b|\bglasgow\b|\bGCS\b|\bconscious\b|\bmurmurs?\b|\bheart sounds\b|\bbreath sounds\b|\bcrackles\b|\bwheez|\breflexes\b|\bmuscle strength\b|\bpupils?\b|\bcranial nerves?\b|\bpallor\b|\bjaundice\b|\bcyanosis\b|\bclubbing\b|\bedema\b|\boedema\b|\brange of motion\b|\blocal rise\b|\bmm ?hg\b|\bbeats (?:per|/)\b|\bbreaths (?:per|/)\b|\bvisual acuity\b|\bintraocular pressure\b";
    /// A measured value with a unit of a laboratory.
    VALUE = r"(?-u:\b)\d[\d.,·]*\s*(?:[×x*]\s*10[⁰¹²³⁴⁵⁶⁷⁸⁹^\d]+\s*)?(?:/\s*(?:mm|µ|μ|u|c)|(?:[gmkµμunpf]?(?:g|mol|eq|l|kat)|[mµμk]?i?u|cells?|copies|mm³|mm3|fl|pg|k)\s*/\s*(?:\d*\s*)?(?:[dmµμu]?l|mm|hpf|g|kg|h|24|min)|mm/h|mm/1st|mm (?:fall|in the first)|meq|mosm|[µμ]mol|nmol|pmol)";
    /// What a laboratory measures.
    ANALYTE = r"\b(?:ha?emoglobin|ha?ematocrit|leu[ck]ocyt\w*|white (?:blood )?cells?(?: count)?|wbc|neutrophil\w*|lymphocyt\w*|eosinophil\w*|platelets?|thrombocyt\w*|creatinine|urea|bun|sodium|potassium|chloride|bicarbonate|calcium|phosph(?:ate|orus)|magnesium|glucose|albumin|bilirubin|transaminases?|aminotransferase|alt|ast|ggt|alkaline phosphatase|ldh|lactate|crp|c-reactive protein|esr|(?:erythrocyte )?sedimentation rate|procalcitonin|ferritin|troponin|d-dimer|inr|prothrombin|ck|creatin\w* (?:phospho)?kinase|tsh|t3|t4|cortisol|acth|aldosterone|renin|prolactin|parathyroid hormone|pth|hba1c|ca 19-9|ca-125|ca 125|cea|afp|psa|antibod(?:y|ies)|antigen|ana|anca|rheumatoid factor|hiv|hbsag|cd4|lft|rft|electrolytes|blood (?:count|gas|tests?|chemistry|work|cultures?)|cultures?|urinalysis|proteinuria|ha?ematuria|anemia|anaemia|leu[ck]ocytosis|thrombocytopenia|pancytopenia|hyponatr\w+|hyperkal\w+|hypercalc\w+|procalcitonin|laborator(?:y|ies)|biochemi\w+|serolog\w+|serum|renal function|liver function|thyroid function|liver enzymes|mantoux|metabolic panel|chemistry panel|toxicolog\w+|drug screen\w*|ph)\b";
    /// What a patient feels or tells, where nothing else tells what a sentence is about.
    SYMPTOM = r"\b(?:pains?|painful|aches?|fever|chills|stiffness|swelling|weakness|fatigue|malaise|vomit\w*|nausea|cough\w*|dyspn\w+|breathless\w*|headaches?|dizz\w+|diarrh\w+|constipation|weight loss|anorexia|appetite|sweats|rash|itch\w*|pruritus|numbness|paresthesia|paraesthesia|seizures?|bleeding|symptoms?|complaints?|sleep)\b";
    COMPLAINT_OF_BLOOD = r"\b(?:proteinuria|ha?ematuria|ana?emia|diabet\w+|hypertension)\b";
    /// A value that changed under treatment.
    CHANGED = r"\b(?:declin\w+|fell|fall|falling|dropp\w+|decreas\w+|increas\w+|rose|rising|after|following|subsequently|stabili[sz]ed|reached|peaked|later|then|until)\b";
    /// A clause of its own.
    NEW_CLAUSE = r"^(?:which|who|whose|for which|where|when|and|but|so|he|she|it|this|they|we|the|therefore|however|an?|although|though)\b";
    /// That the diagnosis is made, whatever it is called.
    DECIDED = r"\b(?:final|definit(?:e|ive)) diagnosis\b|\bdiagnosis (?:was|has been|is) (?:then |finally |thus |further )?(?:made|established|confirmed|reached)\b|\bconfirmed the diagnosis\b|\bdiagnosis of\b[^.]*\b(?:made|established|confirmed|reached|assigned)\b";
    ASSERTED = r"\b(?:diagnos\w+|confirm\w+|final|definit\w+|consistent with|compatible with|proved|turned out|identified|reveal\w+|show\w+|demonstrat\w+|established|detected|grew|positive)\b";
    DOUBTED = r"\b(?:suspect\w*|suspicio\w*|possib\w*|differential|rule[ds]? out|ruling out|presum\w*|provisional\w*|likely|consider\w*|initially|history of|known|concern\w*|family)\b";
    /// Told of a time before the illness, or of habits and relatives: no part of the course.
    SOFT_OUTCOME = r"(?i)^(?:improve|resol|respond|subside|complication|death|died|recurren|settled|relapse|surger|outcome|uneventful)";
    LATER = r"\b(?:necropsy|autopsy|post-?mortem|(?:after|upon|since) discharge|follow[\s-]?up|post-?operative(?:ly)?|after (?:treatment|surgery|therapy|the operation|initiation)|(?:days|weeks|months|years) (?:later|after)|at discharge|repeat(?:ed)?|control)\b";
    NOT_DONE = r"\b(?:no|not|without|refus\w+|declin\w+|recommend\w*|should|could|would|cannot|never|deferred|instead of|rather than|suggest\w* (?:a|an))\b[^,;]*$";
    NOT_DONE_BEHIND = r"^[^.;,]{0,40}?\b(?:was|were|could|has|had)\s+(?:not|never|been refused|refused|declined|deferred|advised|recommended|planned|suggested)\b";
    DETERMINER = r"^(?:an?|the|this|our|one)$";
    NO_ADJECTIVE = r"^(?:of|in|with|at|by|for|as|is|was|and|to|on|report\w*|present\w*|describ\w*)$|[.;:,)]$";
    SEX_BEHIND = r"^\s+(?:[\w-]+\s+){0,2}?(?:man|woman|boy|girl|males?|females?|gentleman|lady)\b";
    PRONOUN = r"^(?:he|she)\b|\b(?:he|she|his|her)\b";
    OCCUPATION = r"\b((?:works?|worked|working|employed)\s+(?:previously\s+)?as\s+an?\s+[a-z][a-z-]*(?:\s+[a-z][a-z-]*)?)\s*(?:[,.;]|and\b|in\b|at\b|for\b|who\b|with\b)|\b((?:an?\s+)?(?:[a-z-]+\s+){1,2}by\s+(?:profession|occupation))\b|\b(retired\s+[a-z]+)\b";
    ORIGIN = r"\b((?:of|from)\s+[a-z]+(?:\s+[a-z]+)?\s+(?:origin|descent|ethnicity|nationality|ancestry)|originally\s+from\s+[a-z]+)\b";
    /// What brought the patient, in the order in which the patterns are asked.
    CHIEF = r"\b(?:chief|main|presenting) complaints?\s+(?:(?:was|were|of|included|being|is|are)\s+)+(?P<c>.+)$";
    PRESENTED = r"\bpresent(?:ed|s|ing)?\b[^.;]{0,140}?\b(?:complaining of|complaints? of|because of|due to|owing to|with|for|following|after)\s+(?P<c>.+)$";
    COMPLAINED = r"\bcomplain(?:ed|s|ing|ts?) (?:of|about)\s+(?P<c>.+)$";
    BROUGHT = r"\b(?:referred|admitted|brought|seen|evaluated|hospitali[sz]ed|transferred|taken|attended|visited|consulted|reported)\b[^.;]{0,140}?\b(?:complaining of|complaints? of|because of|due to|owing to|with|for|following|after)\s+(?P<c>.+)$";
    WITH_HISTORY = r"\bwith (?P<c>(?:an? |the )?(?:[\w-]+ ){0,3}?(?:[\w-]*(?:hours?|days?|weeks?|months?|years?)(?:['’])?|short|long|recent|brief)(?: [\w-]+)? history of .+)$";
    WAS_FOUND = r"\bwas found\s+(?P<c>.+)$";
    NOTICED = r"\b(?:noticed|developed|experienced)\s+(?P<c>.+)$";
    /// Where a complaint ends.
    COMPLAINT_END = r"\s*(?:;|\.$|,? (?:who|which|whose|that) |,? and (?:was|were|had|has|is|he|she|there|on|underwent|received)\b|,? (?:but|where|when|without) |,? (?:in|at|on|for) (?:19|20)\d\d\b)";
    FILLER = r"^(?:an?|the|to|of|in|at|on|our|his|her|with|for|and|was|were|by|from|present\w*|refer\w*|admit\w*|hospital\w*|clinic\w*|department|emergency|room|institut\w*|unit|universit\w*|cent(?:er|re)|outpatient|ward|service|complain\w*|chief|main|medical|school|ophthalmology|dermatology|neurology|surgery|dental|facility|who|brought|seen|evaluat\w*|because|due|further|initially|ed|er)$";
    LAB_TABLE = r"\b(?:laborator\w+|blood|biochem\w+|h(?:a)?ematolog\w+|hormon\w+|endocrin\w+|serum|serolog\w+|urine|csf|cerebrospinal|investigations?|lab|tests? results?|test)\b";
    LITERATURE_TABLE = r"\b(?:literature|reported|review\w*|previous\w*|published|cases|studies|study|authors?|references?\s*\[|author|differential|criteria|classification|nomenclature)\b";
    REFERENCE_COLUMN = r"\b(?:ref(?:erence|\.)?|normal|range|unit|units|limits?)\b";
    LATER_COLUMN = r"\b(?:after|post\w*|discharge|follow\w*|months?|weeks?|years?|day (?:[2-9]|\d\d)|treatment|final|last|outcome|control)\b";
    EARLIER_COLUMN = r"\b(?:years?|months?) (?:earlier|ago|before|prior)\b|\bprevious\b";
    RESULT_COLUMN = r"\b(?:results?|values?|patient|levels?|measured|on admission|at presentation|baseline)\b";
    NAME_COLUMN = r"\b(?:test|tests|investigations?|parameters?|variables?|analyte|laboratory|item|marker|lab)\b";
    RESULT_CELL = r"\d|^(?:normal|negative|positive|reactive|non-?reactive|absent|present|nil|trace|elevated|high|low|\++|−|-)\b";
    CLAUSE_BORDER = r"[,;:]\s+(?:and\s+)?|\s+and\s+";
    ADJECTIVE_NAME = r"(?:ic|ical|ically|ological|ology-guided|-guided)$";
}

/// The presentation by rules, and what of the patient it does not tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    pub presentation: Presentation,
    /// Sentences about the patient that were kept back, in the order of the article.
    pub withheld: Vec<Withheld>,
}

/// A sentence that is kept back, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    pub place: Located,
    pub kind: RefusalKind,
}

/// A sentence of the article.
pub(super) struct Sentence<'a> {
    pub(super) text_id: String,
    pub(super) passage: &'a Passage,
    /// Bytes of the passage.
    pub(super) range: Range<usize>,
    pub(super) role: SectionRole,
    /// Position of the paragraph, of sentences of the body.
    pub(super) paragraph: Option<u32>,
    pub(super) opens_paragraph: bool,
}

impl Sentence<'_> {
    pub(super) fn text(&self) -> &str {
        self.passage.text.get(self.range.clone()).unwrap_or_default()
    }

    pub(super) fn located(&self) -> Located {
        self.part(&(0..self.range.len()))
    }

    /// A range of the sentence as a place of the article.
    fn part(&self, range: &Range<usize>) -> Located {
        let start = self.range.start;
        Located { text_id: self.text_id.clone(), start: start + range.start, end: start + range.end }
    }

    /// A range of the sentence without references to figures and tables in brackets.
    fn parts(&self, range: &Range<usize>) -> Vec<Located> {
        self.parts_without(range, &figure_references(self.text()))
    }

    /// As [`Self::parts`], with the references that were found before.
    fn parts_without(&self, range: &Range<usize>, cuts: &[Range<usize>]) -> Vec<Located> {
        let text = self.text();
        let mut found = Vec::new();
        let mut from = range.start;
        let first = cuts.partition_point(|cut| cut.start < range.start);
        for cut in cuts.iter().skip(first).take_while(|cut| cut.end <= range.end) {
            found.extend(trimmed(text, from..cut.start).map(|part| self.part(&part)));
            from = cut.end;
        }
        found.extend(trimmed(text, from..range.end).map(|part| self.part(&part)));
        found
    }

    /// Whether the sentence refers to a figure.
    fn shows_figure(&self) -> bool {
        let text = self.text();
        // Mentions stand in the order of the text.
        let mentions = &self.passage.mentions;
        let first = mentions.partition_point(|mention| (mention.text_start as usize) < self.range.start);
        let by_link = mentions
            .iter()
            .skip(first)
            .take_while(|mention| (mention.text_start as usize) < self.range.end)
            .any(|mention| mention.ref_type.as_deref() == Some("fig"));
        by_link
            || figure_references(text)
                .into_iter()
                .any(|range| text.get(range).is_some_and(|reference| reference.to_lowercase().contains("fig")))
    }
}

fn trimmed(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let part = text.get(range.clone())?;
    let start = range.start + part.len() - part.trim_start().len();
    let length = part.trim().len();
    (length > 0).then_some(start..start + length)
}

/// The sentences of the paragraphs of the body whose role is asked for; of one patient if one is given.
pub(super) fn body_sentences<'a>(
    article: &'a Article,
    roles: &[SectionRole],
    patient: Option<&PatientSegment>,
    is_wanted: impl Fn(SectionRole) -> bool,
) -> Vec<Sentence<'a>> {
    let own: Option<BTreeSet<u32>> = patient.map(|patient| patient.paragraphs.iter().copied().collect());
    let mut found = Vec::new();
    for (position, paragraph) in (0u32..).zip(&article.paragraphs) {
        let role = roles.get(position as usize).copied().unwrap_or_default();
        let is_own = own.as_ref().is_none_or(|own| own.contains(&position) || role.is_of_reasoning());
        if paragraph.region != Region::Body || paragraph.sub_article.is_some() || !is_own || !is_wanted(role) {
            continue;
        }
        for (index, range) in sentences(&paragraph.passage.text).into_iter().enumerate() {
            found.push(Sentence {
                text_id: format!("p{position}"),
                passage: &paragraph.passage,
                range,
                role,
                paragraph: Some(position),
                opens_paragraph: index == 0,
            });
        }
    }
    found
}

fn abstract_sentences(article: &Article) -> Vec<Sentence<'_>> {
    let Some(main) = article.main_abstract else { return Vec::new() };
    let paragraphs = article.abstracts.get(main as usize).map(|one| one.paragraphs.as_slice()).unwrap_or_default();
    let mut found = Vec::new();
    for (inner, paragraph) in paragraphs.iter().enumerate() {
        for (index, range) in sentences(&paragraph.passage.text).into_iter().enumerate() {
            found.push(Sentence {
                text_id: format!("a{main}.{inner}"),
                passage: &paragraph.passage,
                range,
                role: SectionRole::Abstract,
                paragraph: None,
                opens_paragraph: index == 0,
            });
        }
    }
    found
}

/// What a sentence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topic {
    History,
    Bedside,
    Laboratory,
    /// Something that is not told.
    Kept(RefusalKind),
}

/// Copies what may be told of a patient before the images.
///
/// `patient` is the segment of the one patient of an article about several. Takes time linear in the article.
pub fn presentation(
    article: &Article,
    roles: &[SectionRole],
    patient: Option<&PatientSegment>,
    mask: &Mask<'_>,
    examinations: &Examinations,
) -> Draft {
    let case = body_sentences(article, roles, patient, SectionRole::is_of_patient);
    let mut reader = Reader::new(mask, examinations);
    for sentence in &case {
        reader.read(sentence);
    }
    let spare = if patient.is_none() { abstract_sentences(article) } else { Vec::new() };
    let opening: Vec<&Sentence<'_>> = case.iter().filter(|sentence| !is_of_others(sentence)).collect();
    let spare: Vec<&Sentence<'_>> = spare.iter().collect();

    let person = person(&opening, mask).or_else(|| person(&spare, mask));
    let complaint = complaint(&opening, mask).or_else(|| complaint(&spare, mask));
    let history = without_first(&reader.history, &opening, person.as_deref(), complaint.as_ref());
    let mut laboratory = reader.laboratory;
    laboratory.extend(laboratory_tables(article, patient, mask));

    Draft {
        presentation: Presentation {
            demographic_information: person.and_then(|parts| staged_text(article, &parts)),
            chief_complaint: complaint.and_then(|place| staged_text(article, &[place])),
            history_of_present_illness: staged_text(article, &history),
            lab_result: staged_text(article, &laboratory),
            physical_examination: staged_field(article, &names(&opening, mask, examinations), "physical_examination"),
        },
        withheld: reader.withheld,
    }
}

fn is_of_others(sentence: &Sentence<'_>) -> bool {
    OTHERS.is_match(sentence.text())
}

/// Reads the sentences of a case in their order.
struct Reader<'a> {
    mask: &'a Mask<'a>,
    examinations: &'a Examinations,
    topic: Topic,
    /// Something else than history was told already.
    is_examined: bool,
    /// The diagnosis is made, or treatment has begun for good.
    is_over: bool,
    n_read: usize,
    history: Vec<Located>,
    laboratory: Vec<Located>,
    withheld: Vec<Withheld>,
}

impl<'a> Reader<'a> {
    fn new(mask: &'a Mask<'a>, examinations: &'a Examinations) -> Self {
        Self {
            mask,
            examinations,
            topic: Topic::History,
            is_examined: false,
            is_over: false,
            n_read: 0,
            history: Vec::new(),
            laboratory: Vec::new(),
            withheld: Vec::new(),
        }
    }

    fn read(&mut self, sentence: &Sentence<'_>) {
        let text = sentence.text();
        if is_of_others(sentence) {
            return;
        }
        if sentence.opens_paragraph {
            self.enter(sentence.role);
        }
        self.n_read += 1;
        let refusal = self.mask.refusal(text).map(|refusal| (refusal.kind, refusal.evidence));
        if self.is_over {
            let kind = refusal.map_or(RefusalKind::Outcome, |(kind, _)| kind);
            self.withhold(sentence, kind);
            return;
        }
        // Treatment and relief before the first examination are history.
        let is_history_of_treatment = !self.is_examined
            && self.topic == Topic::History
            && refusal.as_ref().is_some_and(|(kind, evidence)| match kind {
                RefusalKind::Treatment => !self.mask.is_operation(text),
                RefusalKind::Outcome => SOFT_OUTCOME.is_match(evidence),
                _ => false,
            });
        match refusal {
            Some((kind, _)) if !is_history_of_treatment => self.refused(sentence, kind),
            _ => self.told(sentence),
        }
    }

    fn enter(&mut self, role: SectionRole) {
        match role {
            SectionRole::History => self.topic = Topic::History,
            SectionRole::Examination => self.topic = Topic::Bedside,
            SectionRole::Laboratory | SectionRole::Investigations => self.topic = Topic::Laboratory,
            SectionRole::Imaging => self.topic = Topic::Kept(RefusalKind::ImagingResult),
            SectionRole::Pathology => self.topic = Topic::Kept(RefusalKind::PathologyResult),
            SectionRole::Treatment | SectionRole::Outcome => self.is_over = true,
            _ => {}
        }
        self.is_examined |= self.topic != Topic::History && role != SectionRole::Case;
    }

    fn withhold(&mut self, sentence: &Sentence<'_>, kind: RefusalKind) {
        self.withheld.push(Withheld { place: sentence.located(), kind });
    }

    /// A sentence that may be told: where it belongs.
    fn told(&mut self, sentence: &Sentence<'_>) {
        let text = sentence.text();
        let topic = self.own_topic(text).unwrap_or(match self.topic {
            // What is no value is not told among values.
            Topic::Laboratory if SYMPTOM.is_match(text) => Topic::History,
            Topic::Laboratory => Topic::Kept(RefusalKind::Conclusion),
            other => other,
        });
        self.topic = topic;
        if self.is_examined && LATER.is_match(text) {
            self.withhold(sentence, RefusalKind::Outcome);
            return;
        }
        self.is_examined |= matches!(topic, Topic::Bedside | Topic::Laboratory);
        match topic {
            Topic::Kept(kind) => self.withhold(sentence, kind),
            Topic::Bedside | Topic::Laboratory if sentence.shows_figure() => {
                // What is seen in a figure is told by the figure.
                self.withhold(sentence, RefusalKind::FigureReference);
            }
            Topic::Laboratory => self.laboratory.extend(sentence.parts(&(0..text.len()))),
            Topic::History | Topic::Bedside => self.history.extend(sentence.parts(&(0..text.len()))),
        }
    }

    /// The topic that a sentence states itself: the one whose words come first.
    fn own_topic(&self, text: &str) -> Option<Topic> {
        let laboratory = self
            .examinations
            .mentions(text)
            .into_iter()
            .find(|mention| mention.class == ExamClass::Laboratory)
            .map(|mention| mention.start);
        let value = VALUE.find(text).map(|found| found.start());
        let analyte = ANALYTE.find(text).map(|found| found.start());
        let history = HISTORY.find(text).map(|found| found.start());
        let bedside = BEDSIDE.find(text).map(|found| found.start());
        // A complaint or a disease of the blood in the history is no value.
        let is_complaint =
            self.topic == Topic::History && (SYMPTOM.is_match(text) || COMPLAINT_OF_BLOOD.is_match(text));
        let analyte = if value.is_some() || history.is_none() && !is_complaint { analyte } else { None };
        [(laboratory.or(analyte).or(value), Topic::Laboratory), (bedside, Topic::Bedside), (history, Topic::History)]
            .into_iter()
            .filter_map(|(at, topic)| Some((at?, topic)))
            .min_by_key(|(at, _)| *at)
            .map(|(_, topic)| topic)
    }

    /// A sentence that may not be told as a whole: what of it may, and what it begins.
    fn refused(&mut self, sentence: &Sentence<'_>, kind: RefusalKind) {
        let text = sentence.text();
        let shows = self.examinations.mentions(text).into_iter().any(|mention| {
            matches!(
                mention.class,
                ExamClass::Imaging
                    | ExamClass::Pathology
                    | ExamClass::Endoscopy
                    | ExamClass::Skin
                    | ExamClass::Electrical
            )
        });
        self.withhold(sentence, kind);
        if kind != RefusalKind::Outcome {
            self.rescue(sentence, kind);
        }
        let is_new = self.n_read > 1;
        let is_named = kind == RefusalKind::NamesDiagnosis && ASSERTED.is_match(text) && !DOUBTED.is_match(text);
        let is_decided = DECIDED.is_match(text) && !DOUBTED.is_match(text);
        if is_new && (is_named || is_decided || self.mask.is_operation(text) && self.is_examined) {
            self.is_over = true;
        }
        if kind == RefusalKind::OperativeFinding && self.is_examined {
            self.is_over = true;
        }
        let is_seen = shows || kind.is_finding() && kind != RefusalKind::OperativeFinding;
        // An earlier doctor's opinion or treatment does not end the history.
        if is_seen || self.is_examined {
            self.topic = Topic::Kept(kind);
        }
        self.is_examined |= is_seen;
    }

    /// Laboratory values and vital signs of a sentence that tells other things too, and the history with which it begins.
    fn rescue(&mut self, sentence: &Sentence<'_>, kind: RefusalKind) {
        let text = sentence.text();
        let pieces = clauses(text);
        let is_free = |range: &Range<usize>| {
            let piece = text.get(range.clone()).unwrap_or_default();
            self.mask.refusal(piece).is_none()
        };
        // The longest beginning that may be told and says something of the patient.
        let mut told_until = 0;
        if self.topic == Topic::History || self.topic == Topic::Bedside {
            let n_free = pieces.iter().take_while(|piece| is_free(piece)).count();
            let first = n_free.checked_sub(1).and_then(|last| pieces.get(last)).map(|piece| 0..piece.end);
            let next = pieces.get(n_free);
            if let (Some(first), Some(next)) = (first, next)
                && text.get(first.end..next.start).is_some_and(|border| border.contains([',', ';']))
                && text.get(next.clone()).is_some_and(|words| NEW_CLAUSE.is_match(words))
                && text.get(first.clone()).is_some_and(|part| HISTORY.is_match(part) && part.split(' ').count() > 4)
                && is_free(&first)
            {
                told_until = first.end;
                let parts = sentence.parts(&first);
                self.history.extend(parts);
            }
        }
        let mut laboratory: Vec<Range<usize>> = Vec::new();
        for piece in pieces.iter().filter(|piece| piece.start >= told_until) {
            let words = text.get(piece.clone()).unwrap_or_default();
            let is_changed = kind == RefusalKind::Treatment && CHANGED.is_match(words);
            let is_value = VALUE.is_match(words) && ANALYTE.is_match(words);
            if !is_value || is_changed || !is_free(piece) || BEDSIDE.is_match(words) {
                continue;
            }
            match laboratory.last_mut() {
                Some(last) if text.get(last.end..piece.start).is_some_and(|gap| gap.len() <= 6) => last.end = piece.end,
                _ => laboratory.push(piece.clone()),
            }
        }
        let cuts = figure_references(text);
        for range in laboratory {
            self.laboratory.extend(sentence.parts_without(&range, &cuts));
        }
    }
}

/// The clauses and members of lists of a sentence: parts between commas, semicolons and "and" outside of brackets.
fn clauses(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    let mut depth = 0usize;
    let mut counted = 0;
    for border in CLAUSE_BORDER.find_iter(text) {
        for byte in text.get(counted..border.start()).unwrap_or_default().bytes() {
            match byte {
                b'(' | b'[' => depth += 1,
                b')' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        counted = border.start();
        if depth == 0 {
            found.extend(trimmed(text, from..border.start()));
            from = border.end();
        }
    }
    let end = text.trim_end_matches(['.', ' ']).len().max(from);
    found.extend(trimmed(text, from..end));
    found
}

// ------------------------------------------------------------------------------------------- person and complaint

/// Age, sex, origin and occupation, each as short as the text has it.
fn person(case: &[&Sentence<'_>], mask: &Mask<'_>) -> Option<Vec<Located>> {
    let (sentence, introduced) = case.iter().find_map(|sentence| {
        let found = introductions(sentence.text()).into_iter().find(|person| person.age.is_some())?;
        Some((sentence, found))
    })?;
    let text = sentence.text();
    let from = determiner(text, introduced.range.start);
    let behind =
        text.get(introduced.range.end..).and_then(|behind| SEX_BEHIND.find(behind)).map_or(0, |found| found.end());
    let is_free = |range: &Range<usize>| text.get(range.clone()).is_some_and(|words| mask.refusal(words).is_none());
    let whole = from..introduced.range.end + behind;
    let range = if is_free(&whole) { whole } else { introduced.range.clone() };
    if !is_free(&range) {
        return None;
    }
    let mut parts = vec![sentence.part(&range)];
    if introduced.sex.is_none() && behind == 0 {
        // The noun says nothing of it; the first pronoun does.
        let pronoun = case.iter().find_map(|other| {
            let found = PRONOUN.find(other.text())?;
            Some(other.part(&found.range()))
        });
        parts.extend(pronoun);
    }
    for pattern in [&*ORIGIN, &*OCCUPATION] {
        let found = case.iter().take(COMPLAINT_SENTENCES * 2).find_map(|other| {
            let captures = pattern.captures(other.text())?;
            let found = captures.iter().skip(1).flatten().next()?;
            let is_new = other.text_id != sentence.text_id
                || other.range.start + found.start() >= sentence.range.start + range.end
                || other.range.start + found.end() <= sentence.range.start + range.start;
            (is_new && mask.refusal(found.as_str()).is_none()).then(|| other.part(&found.range()))
        });
        parts.extend(found);
    }
    Some(parts)
}

/// The nearest article among the few words before `at`; `at` if there is none.
fn determiner(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let mut start = at;
    for word in before.rsplit(' ').filter(|word| !word.is_empty()).take(MAX_WORDS_BEFORE) {
        start = before.get(..start).and_then(|part| part.rfind(word)).unwrap_or(start);
        if DETERMINER.is_match(word) {
            return start;
        }
        if NO_ADJECTIVE.is_match(word) {
            break;
        }
    }
    at
}

/// What brought the patient: the clause behind "presented with".
fn complaint(case: &[&Sentence<'_>], mask: &Mask<'_>) -> Option<Located> {
    let window = case.get(..case.len().min(COMPLAINT_SENTENCES)).unwrap_or_default();
    let plain: [&regex::Regex; 5] = [&CHIEF, &PRESENTED, &COMPLAINED, &BROUGHT, &WITH_HISTORY];
    let loose: [&regex::Regex; 2] = [&WAS_FOUND, &NOTICED];
    for patterns in [plain.as_slice(), loose.as_slice()] {
        for (sentence, pattern) in
            window.iter().flat_map(|sentence| patterns.iter().map(move |pattern| (sentence, pattern)))
        {
            let text = sentence.text();
            let Some(found) = pattern.captures(text).and_then(|captures| captures.name("c")) else { continue };
            let cut = figure_references(text).into_iter().map(|cut| cut.start).find(|at| *at > found.start());
            let limit = cut.unwrap_or(text.len()).min(found.end());
            let clause = text.get(found.start()..limit).unwrap_or_default();
            let end = COMPLAINT_END.find(clause).map_or(clause.trim_end_matches(['.', ' ']).len(), |end| end.start());
            // Without its last members, while it may not be told.
            let clause = clause.get(..end).unwrap_or_default();
            let mut ends: Vec<usize> = clauses(clause).into_iter().map(|part| part.end).collect();
            ends.reverse();
            let told = ends.into_iter().take(MAX_SHORTENED).find(|end| {
                let words = clause.get(..*end).unwrap_or_default();
                mask.refusal(words).is_none_or(|refusal| refusal.kind == RefusalKind::Treatment)
            });
            if let Some(end) = told
                && clause.get(..end).is_some_and(|words| {
                    words.chars().filter(|c| c.is_alphabetic()).count() >= 4 && !VALUE.is_match(words)
                })
            {
                return Some(sentence.part(&(found.start()..found.start() + end)));
            }
        }
    }
    None
}

/// The history without its first sentence, if person and complaint are all that it tells.
fn without_first(
    history: &[Located],
    case: &[&Sentence<'_>],
    person: Option<&[Located]>,
    complaint: Option<&Located>,
) -> Vec<Located> {
    let mut kept = history.to_vec();
    let (Some(person), Some(complaint)) = (person.and_then(|parts| parts.first()), complaint) else { return kept };
    let Some(sentence) = case.iter().find(|sentence| {
        sentence.text_id == complaint.text_id
            && sentence.range.contains(&complaint.start)
            && complaint.text_id == person.text_id
    }) else {
        return kept;
    };
    let mut rest = String::new();
    for (at, character) in sentence.text().char_indices() {
        let at = sentence.range.start + at;
        let is_told = (person.start..person.end).contains(&at) || (complaint.start..complaint.end).contains(&at);
        rest.push(if is_told { ' ' } else { character });
    }
    let n_words = rest
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty() && !FILLER.is_match(word))
        .count();
    if n_words <= MAX_FILLED && sentence.range.contains(&person.start) {
        kept.retain(|part| part.text_id != sentence.text_id || !sentence.range.contains(&part.start));
    }
    kept
}

// -------------------------------------------------------------------------------------------- names of examinations

/// The names of examinations that were done, each once; none of tests whose values are told.
fn names(case: &[&Sentence<'_>], mask: &Mask<'_>, examinations: &Examinations) -> Vec<Located> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut found = Vec::new();
    for sentence in case {
        if matches!(sentence.role, SectionRole::Treatment | SectionRole::Outcome) {
            continue;
        }
        let text = sentence.text();
        if LATER.is_match(text) {
            continue;
        }
        for mention in examinations.mentions(text) {
            let before = text.get(..mention.start).unwrap_or_default();
            let behind = text.get(mention.end..).unwrap_or_default();
            let is_done = !NOT_DONE.is_match(before) && !NOT_DONE_BEHIND.is_match(behind);
            let name = mention.name.to_lowercase();
            let is_name = mention.class != ExamClass::Laboratory && !ADJECTIVE_NAME.is_match(&name);
            if !is_done || !is_name || mask.named(mention.name).is_some() {
                continue;
            }
            let is_known =
                seen.iter().any(|known| known.contains(&name)) || seen.contains(&mention.kind) && name == mention.kind;
            if !is_known {
                seen.insert(name);
                found.push(sentence.part(&(mention.start..mention.end)));
            }
        }
    }
    found
}

// ---------------------------------------------------------------------------------------------- tables of values

/// The rows of tables of laboratory values of the patient: name, first value and reference.
fn laboratory_tables(article: &Article, patient: Option<&PatientSegment>, mask: &Mask<'_>) -> Vec<Located> {
    let mut found = Vec::new();
    for (position, table) in article.tables.iter().enumerate() {
        let is_own = patient.is_none_or(|patient| {
            !table.mentions.is_empty()
                && table.mentions.iter().all(|anchor| patient.paragraphs.contains(&anchor.paragraph))
        });
        // A table that the text speaks of as one of a later time.
        let is_later = !table.mentions.is_empty()
            && table.mentions.iter().take(MAX_REFERENCES).all(|anchor| {
                let text =
                    article.paragraphs.get(anchor.paragraph as usize).map(|paragraph| paragraph.passage.text.as_str());
                text.is_some_and(|text| {
                    sentences(text)
                        .into_iter()
                        .find(|sentence| sentence.contains(&(anchor.text_start as usize)))
                        .and_then(|sentence| text.get(sentence))
                        .is_some_and(|sentence| LATER.is_match(sentence))
                })
            });
        if table.content == TableContent::Grid && table.place.sub_article.is_none() && is_own && !is_later {
            found.extend(table_rows(&format!("t{position}"), table, mask));
        }
    }
    found
}

fn table_rows(text_id: &str, table: &Table, mask: &Mask<'_>) -> Vec<Located> {
    let heading: Vec<&str> = table
        .title
        .iter()
        .map(String::as_str)
        .chain(table.caption.iter().map(|passage| passage.text.as_str()))
        .collect();
    let heading = heading.join(" ");
    let (_, places) = table.to_placed_text();
    let mut rows: BTreeMap<u32, Vec<(&Cell, Range<usize>)>> = BTreeMap::new();
    for (cell, place) in table.cells.iter().zip(places) {
        rows.entry(cell.row).or_default().push((cell, place));
    }
    let first: Vec<&Cell> =
        rows.values().next().map(|row| row.iter().map(|(cell, _)| *cell).collect()).unwrap_or_default();
    // The words above each column, of all rows of the head.
    let n_head = rows.values().take_while(|row| row.iter().any(|(cell, _)| cell.is_header)).count().max(1);
    let mut heads: BTreeMap<u32, String> = BTreeMap::new();
    for (cell, _) in rows.values().take(n_head).flatten() {
        let end = cell.column.saturating_add(cell.column_span.clamp(1, MAX_SPAN));
        for column in cell.column..end {
            let head = heads.entry(column).or_default();
            head.push_str(&cell.text);
            head.push(' ');
        }
    }
    let head = heads.values().map(String::as_str).collect::<Vec<_>>().join(" | ");
    if LITERATURE_TABLE.is_match(&heading)
        || LITERATURE_TABLE.is_match(&head)
        || !LAB_TABLE.is_match(&format!("{heading} {head}"))
    {
        return Vec::new();
    }
    let is_reference = |column: u32| heads.get(&column).is_some_and(|head| REFERENCE_COLUMN.is_match(head));
    // The first column of values that is of the time when the patient came.
    let is_of_now = |column: &u32| {
        *column > 0
            && !is_reference(*column)
            && heads.get(column).is_none_or(|head| !LATER_COLUMN.is_match(head) && !EARLIER_COLUMN.is_match(head))
    };
    let is_result = |column: &u32| heads.get(column).is_some_and(|head| RESULT_COLUMN.is_match(head));
    let columns = || heads.keys().copied().filter(is_of_now);
    let Some(value) = columns().find(is_result).or_else(|| columns().next()) else { return Vec::new() };
    let is_wanted = |cell: &Cell| cell.column == 0 || cell.column == value || is_reference(cell.column);
    let has_head = first
        .iter()
        .any(|cell| cell.is_header || NAME_COLUMN.is_match(&cell.text) || REFERENCE_COLUMN.is_match(&cell.text));
    let (mut n_rows, mut n_values) = (0usize, 0usize);
    let mut found = Vec::new();
    for (index, row) in rows.values().enumerate().take(MAX_ROWS) {
        let cells: Vec<&(&Cell, Range<usize>)> = row
            .iter()
            .filter(|(cell, place)| is_wanted(cell) && !place.is_empty() && !cell.text.trim().is_empty())
            .collect();
        let is_head = index < n_head && has_head;
        let words = cells.iter().map(|(cell, _)| cell.text.as_str()).collect::<Vec<_>>().join(" ");
        let result = cells.iter().find(|(cell, _)| cell.column == value).map(|(cell, _)| cell.text.trim());
        if !is_head {
            let is_value = result.is_some_and(|text| RESULT_CELL.is_match(text) && text.chars().count() <= 60);
            n_rows += usize::from(result.is_some());
            n_values += usize::from(is_value);
            let has_name = cells.first().is_some_and(|(cell, _)| cell.column == 0);
            if !is_value || !has_name {
                continue;
            }
        }
        if mask
            .refusal(&words)
            .is_some_and(|refusal| refusal.kind == RefusalKind::NamesDiagnosis || refusal.kind.is_finding())
        {
            continue;
        }
        for (_, place) in cells {
            found.push(Located { text_id: text_id.to_owned(), start: place.start, end: place.end });
        }
    }
    // Text in most cells: no table of values.
    if n_values == 0 || n_values * 2 < n_rows { Vec::new() } else { found }
}

// ------------------------------------------------------------------------------------------------------- quotes

/// A text made of stretches of the article, in the order given, parted by a space. None if there is nothing to tell.
///
/// Stretches that are no part of a text of the article are left out. The title has no offsets into the file: its quotes
/// name the bytes of the whole article; those of a title of a caption name the bytes of the figure.
pub fn staged_text(article: &Article, parts: &[Located]) -> Option<StagedText> {
    staged_field(article, parts, "")
}

/// The same for a field, which has a separator of its own.
fn staged_field(article: &Article, parts: &[Located], field: &str) -> Option<StagedText> {
    let mut texts: BTreeMap<&str, Option<Cow<'_, str>>> = BTreeMap::new();
    // Byte and character that were counted last, by text.
    let mut counted: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut words: Vec<&str> = Vec::new();
    let mut quotes = Vec::new();
    for part in parts {
        texts.entry(&part.text_id).or_insert_with(|| source_text(article, &part.text_id));
    }
    for part in parts {
        let Some(Some(text)) = texts.get(part.text_id.as_str()) else { continue };
        let Some(quoted) = text.get(part.start..part.end).filter(|quoted| !quoted.is_empty()) else { continue };
        let (byte, n_chars) =
            counted.get(part.text_id.as_str()).copied().filter(|(byte, _)| *byte <= part.start).unwrap_or_default();
        let start = n_chars + text.get(byte..part.start).map_or(0, |between| between.chars().count());
        counted.insert(&part.text_id, (part.start, start));
        let (section_path, xml) = origin(article, part);
        let (Ok(start), Ok(end), Ok(xml_start), Ok(xml_end)) = (
            u32::try_from(start),
            u32::try_from(start + quoted.chars().count()),
            u32::try_from(xml.start),
            u32::try_from(xml.end),
        ) else {
            continue;
        };
        quotes.push(Quote {
            span: Span { text_id: part.text_id.clone(), start, end },
            section_path,
            xml_start,
            xml_end,
        });
        words.push(quoted);
    }
    (!quotes.is_empty()).then(|| StagedText { text: words.join(separator(field)), quotes })
}

/// The texts that quotes point into, each once: title, abstracts, paragraphs, captions, tables, each by position.
pub fn source_texts(article: &Article, texts: &[&StagedText]) -> Vec<SourceText> {
    let ids: BTreeSet<(usize, Vec<u32>, &str)> = texts
        .iter()
        .flat_map(|text| &text.quotes)
        .map(|quote| {
            let id = quote.span.text_id.as_str();
            let numbers = id.split(|character: char| !character.is_ascii_digit());
            let numbers = numbers.filter_map(|number| number.parse().ok()).collect();
            let kind =
                if id == "title" { 0 } else { "apft".find(id.get(..1).unwrap_or_default()).map_or(9, |at| at + 1) };
            (kind, numbers, id)
        })
        .collect();
    ids.into_iter()
        .filter_map(|(_, _, id)| {
            Some(SourceText { text_id: id.to_owned(), text: source_text(article, id)?.into_owned() })
        })
        .collect()
}

/// The text that an id names; beside those of [`Located`] also `t3`, the cells of table 3 as [`Table::to_text`] gives them,
/// and `f2.title`, the title of the caption of figure 2.
pub(super) fn source_text<'a>(article: &'a Article, text_id: &str) -> Option<Cow<'a, str>> {
    if let Some(table) = table_of(article, text_id) {
        return Some(Cow::Owned(table.to_text()));
    }
    if let Some(position) = title_of_caption(text_id) {
        return article.figures.get(position)?.title.as_deref().map(Cow::Borrowed);
    }
    super::diagnosis::text_of(article, text_id).map(Cow::Borrowed)
}

fn table_of<'a>(article: &'a Article, text_id: &str) -> Option<&'a Table> {
    article.tables.get(text_id.strip_prefix('t')?.parse::<usize>().ok()?)
}

fn title_of_caption(text_id: &str) -> Option<usize> {
    text_id.strip_prefix('f')?.strip_suffix(".title")?.parse().ok()
}

/// Titles of the sections around a stretch, and the bytes of the file that it comes from.
fn origin(article: &Article, part: &Located) -> (Vec<String>, Range<usize>) {
    let whole = article.byte_start as usize..article.byte_end as usize;
    if let Some(table) = table_of(article, &part.text_id) {
        let (_, places) = table.to_placed_text();
        let mut bytes: Option<Range<usize>> = None;
        for (cell, place) in table.cells.iter().zip(places) {
            if place.start < part.end && part.start < place.end {
                let cell = cell.byte_start as usize..cell.byte_end as usize;
                bytes =
                    Some(bytes.map_or(cell.clone(), |so_far| so_far.start.min(cell.start)..so_far.end.max(cell.end)));
            }
        }
        let place = &table.place;
        let bytes = bytes.unwrap_or(place.byte_start as usize..place.byte_end as usize);
        return (place.section_path.clone(), bytes);
    }
    let numbers: Vec<usize> = part
        .text_id
        .split(|character: char| !character.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect();
    let section_path = match (part.text_id.get(..1), numbers.as_slice()) {
        (Some("p"), [position]) => article.paragraphs.get(*position).map(|paragraph| paragraph.section_path.clone()),
        (Some("a"), [outer, inner]) => article
            .abstracts
            .get(*outer)
            .and_then(|one| one.paragraphs.get(*inner))
            .map(|paragraph| paragraph.section_path.clone()),
        (Some("f"), [position, ..]) => article.figures.get(*position).map(|figure| figure.place.section_path.clone()),
        _ => None,
    };
    let bytes = match passage_of(article, &part.text_id) {
        Some(passage) => {
            passage.source_of(part.start..part.end).unwrap_or(passage.byte_start as usize..passage.byte_end as usize)
        }
        None => title_of_caption(&part.text_id)
            .and_then(|position| article.figures.get(position))
            .map_or(whole, |figure| figure.place.byte_start as usize..figure.place.byte_end as usize),
    };
    (section_path.unwrap_or_default(), bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::diagnosis::FinalDiagnosis;
    use super::super::masking::tests::{diagnosis, examinations, mask_words};
    use super::super::sections::roles;
    use super::*;
    use crate::source::jats::{Limits, read};
    use expect_test::expect;
    use proptest::prelude::*;

    pub(in crate::staging) fn article(body: &str) -> (String, Article) {
        let xml = format!(
            "<article article-type=\"case-report\"><front><article-meta><title-group><article-title>Flank pain after a walk</article-title></title-group></article-meta></front><body>{body}</body></article>"
        );
        let article = read(xml.as_bytes(), Limits::default()).unwrap_or_else(|error| panic!("{error}\n{xml}"));
        (xml, article)
    }

    fn draft(article: &Article, diagnosis: &FinalDiagnosis) -> Draft {
        let mask = Mask::new(diagnosis, examinations(), mask_words());
        presentation(article, &roles(article), None, &mask, examinations())
    }

    fn account(article: &Article, diagnosis: &FinalDiagnosis) -> String {
        let draft = draft(article, diagnosis);
        for (field, text) in draft.presentation.fields() {
            check_joined(article, text.as_slice(), separator(field));
        }
        let mut lines: Vec<String> = draft
            .presentation
            .fields()
            .into_iter()
            .map(|(name, text)| format!("{name}: {}\n", text.map_or("-", |text| text.text.as_str())))
            .collect();
        lines.extend(draft.withheld.iter().map(|withheld| {
            let text = source_text(article, &withheld.place.text_id).unwrap();
            format!("- {}: {}\n", withheld.kind.name(), &text[withheld.place.start..withheld.place.end])
        }));
        lines.concat()
    }

    /// Every quote stands at its place, and the text is its quotes.
    pub(in crate::staging) fn check(article: &Article, texts: &[&StagedText]) {
        check_joined(article, texts, " ");
    }

    fn check_joined(article: &Article, texts: &[&StagedText], separator: &str) {
        let sources = source_texts(article, texts);
        for text in texts {
            let quoted: Vec<String> = text
                .quotes
                .iter()
                .map(|quote| {
                    let span = &quote.span;
                    let source =
                        sources.iter().find(|source| source.text_id == span.text_id).expect("the text is there");
                    assert!(span.start < span.end && quote.xml_start < quote.xml_end, "{quote:?}");
                    assert!(quote.xml_end <= article.byte_end, "{quote:?}");
                    source.text.chars().skip(span.start as usize).take((span.end - span.start) as usize).collect()
                })
                .collect();
            assert_eq!(quoted.join(separator), text.text);
        }
    }

    const CASE: &str = r#"<sec><title>Case report</title>
        <p>A 52-year-old woman of Maltese origin, a baker by profession, came to our clinic complaining of pain in the left flank for 3 days. She had no fever. Gallstones had been removed 8 years ago and she took ramipril. On examination her temperature was 36.9 °C and the left flank was tender (<xref ref-type="fig" rid="f1">Figure 1</xref>). Blood pressure was 150/90 mmHg. Haemoglobin was 121 g/L, creatinine was 88 µmol/L, and a chest radiograph was normal. Values are listed in <xref ref-type="table" rid="t1">Table 1</xref>.</p>
        <p>CT of the abdomen was requested and showed a wedge-shaped defect of the kidney. It did not enhance. An echocardiogram was not done. She was diagnosed with renal infarction. Heparin was given. Potassium was 4.1 mmol/L.</p></sec>
        <fig id="f1"><label>Figure 1</label><caption><p>The left flank.</p></caption></fig>
        <table-wrap id="t1"><label>Table 1</label><caption><p>Laboratory results</p></caption><table>
        <thead><tr><th>Test</th><th>On admission</th><th>After treatment</th><th>Reference</th></tr></thead>
        <tbody><tr><td>LDH</td><td>1180 U/L</td><td>240 U/L</td><td>120–250</td></tr>
        <tr><td>CT of the abdomen</td><td>normal</td><td>normal</td><td/></tr></tbody></table></table-wrap>"#;

    #[test]
    fn the_story_is_told_up_to_the_images() {
        let (_, article) = article(CASE);
        expect![[r#"
            demographic_information: A 52-year-old woman of Maltese origin a baker by profession
            chief_complaint: pain in the left flank for 3 days
            history_of_present_illness: A 52-year-old woman of Maltese origin, a baker by profession, came to our clinic complaining of pain in the left flank for 3 days. She had no fever. Gallstones had been removed 8 years ago and she took ramipril. Blood pressure was 150/90 mmHg.
            lab_result: Haemoglobin was 121 g/L, creatinine was 88 µmol/L Test On admission Reference LDH 1180 U/L 120–250
            physical_examination: chest radiograph; CT of the abdomen
            - figure_reference: On examination her temperature was 36.9 °C and the left flank was tender (Figure 1).
            - imaging_result: Haemoglobin was 121 g/L, creatinine was 88 µmol/L, and a chest radiograph was normal.
            - figure_reference: Values are listed in Table 1.
            - imaging_result: CT of the abdomen was requested and showed a wedge-shaped defect of the kidney.
            - imaging_result: It did not enhance.
            - imaging_result: An echocardiogram was not done.
            - names_diagnosis: She was diagnosed with renal infarction.
            - treatment: Heparin was given.
            - outcome: Potassium was 4.1 mmol/L.
        "#]].assert_eq(&account(&article, &diagnosis("renal infarction", &[])));
    }

    #[test]
    fn a_sentence_behind_a_result_is_one_of_the_result() {
        let (_, article) = article(
            "<sec><title>Case</title><p>A 30-year-old man presented with cough. Ultrasound showed a cyst. The wall was thin. There was nothing in it. He had no allergies. Urea was 4 mmol/L.</p></sec>",
        );
        expect![[r#"
            demographic_information: A 30-year-old man
            chief_complaint: cough
            history_of_present_illness: He had no allergies.
            lab_result: Urea was 4 mmol/L.
            physical_examination: Ultrasound
            - imaging_result: Ultrasound showed a cyst.
            - imaging_result: The wall was thin.
            - imaging_result: There was nothing in it.
        "#]]
        .assert_eq(&account(&article, &diagnosis("hydatidosis", &[])));
    }

    #[test]
    fn a_first_sentence_that_names_the_diagnosis_still_gives_the_person() {
        let (_, article) = article(
            "<sec><title>Case</title><p>A 7-month-old infant with hydatidosis was brought with vomiting for 2 days. He was pale. His father smokes.</p></sec>",
        );
        expect![[r#"
            demographic_information: A 7-month-old infant He
            chief_complaint: vomiting for 2 days
            history_of_present_illness: He was pale. His father smokes.
            lab_result: -
            physical_examination: -
            - names_diagnosis: A 7-month-old infant with hydatidosis was brought with vomiting for 2 days.
        "#]]
        .assert_eq(&account(&article, &diagnosis("hydatidosis", &[])));
    }

    #[test]
    fn relief_before_the_first_examination_is_history_and_after_it_is_not() {
        let (_, article) = article(
            "<sec><title>Case</title><p>A man aged 61 presented with knee pain for a month. Ibuprofen therapy brought no change. The knee was swollen on examination. Colchicine therapy was begun. He slept well.</p></sec>",
        );
        expect![[r#"
            demographic_information: A man aged 61
            chief_complaint: knee pain for a month
            history_of_present_illness: Ibuprofen therapy brought no change. The knee was swollen on examination.
            lab_result: -
            physical_examination: -
            - treatment: Colchicine therapy was begun.
            - treatment: He slept well.
        "#]]
        .assert_eq(&account(&article, &diagnosis("gout", &[])));
    }

    #[test]
    fn quotes_point_into_the_file() {
        let (xml, article) =
            article("<sec><title>Case</title><p>Älter: a 30-year-old <italic>man</italic> coughed.</p></sec>");
        let text = article.paragraphs[0].passage.text.clone();
        let start = text.find("30").unwrap();
        let parts = [
            Located { text_id: "p0".to_owned(), start, end: text.len() },
            Located { text_id: "title".to_owned(), start: 0, end: 5 },
            Located { text_id: "p9".to_owned(), start: 0, end: 5 },
            Located { text_id: "p0".to_owned(), start: 1, end: 3 },
        ];
        let staged = staged_text(&article, &parts).unwrap();
        check(&article, &[&staged]);
        assert_eq!(staged.text, "30-year-old man coughed. Flank");
        let quote = &staged.quotes[0];
        assert_eq!(quote.span.start as usize, text[..start].chars().count());
        assert_eq!(&xml[quote.xml_start as usize..quote.xml_end as usize], "30-year-old <italic>man</italic> coughed.");
        assert_eq!(staged_text(&article, &[]), None);
    }

    #[test]
    fn places_of_cells_are_those_of_the_text_of_the_table() {
        let (xml, article) = article(
            "<sec><table-wrap><table><tr><td rowspan=\"2\">é</td><td>b</td></tr><tr><td/><td>c d</td></tr></table></table-wrap></sec>",
        );
        let (text, places) = article.tables[0].to_placed_text();
        assert_eq!(text, article.tables[0].to_text());
        let cells: Vec<&str> = places.iter().map(|place| &text[place.clone()]).collect();
        assert_eq!(cells, ["é", "b", "", "c d"]);
        let part = Located { text_id: "t0".to_owned(), start: places[3].start, end: places[3].end };
        let staged = staged_text(&article, &[part]).unwrap();
        check(&article, &[&staged]);
        assert!(xml[staged.quotes[0].xml_start as usize..staged.quotes[0].xml_end as usize].contains("c d"));
    }

    proptest! {
        #[test]
        fn quotes_are_copies_and_no_text_makes_it_fail(text in
            "(A 30-year-old man |presented with |cough|CT showed |he had |on examination |12 g/L |haemoglobin |\\(Figure 1\\)|\\(|\\)|é|gout |was diagnosed with |, |\\. |and |[a-z]{1,5} ){0,40}") {
            let (_, article) = article(&format!("<sec><title>Case report</title><p>{text}</p><p>{text}</p></sec>"));
            let diagnosis = diagnosis("gout", &[]);
            let draft = draft(&article, &diagnosis);
            let told: Vec<&StagedText> = draft.presentation.fields().into_iter().filter_map(|(_, text)| text).collect();
            check(&article, &told);
            let mask = Mask::new(&diagnosis, examinations(), mask_words());
            for text in told {
                prop_assert_eq!(mask.named(&text.text), None, "{}", text.text);
            }
        }
    }
}
