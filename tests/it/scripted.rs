//! Scripted models: a program that answers every model stage of `medrounds` the way a fair but imperfect ensemble would, so
//! that the stages, their faults and the stored replies of the sample can be had without a model.
//!
//! Each answer is a pure function of the request: chance is a hash of the model's name and the text, and the samples of one
//! question differ because their requests carry different seeds. What these replies say about medicine is worth nothing, and
//! their names say so: `casemill-scripted/…`.

use crate::fake_model::{FakeModel, Play, Request};
use crate::support::repository;
use casemill::record::Hash;
use casemill::record::slots::Slot;
use casemill::slots::extract::{Extractor, ExtractorFiles};
use casemill::slots::specialty::{Fields, Specialty, SpecialtyRules};
use casemill::text::sentences::{sentences, split_lead_in};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// The environment variable that `data/sample/models.toml` names for the address of the server.
pub const URL_VARIABLE: &str = "CASEMILL_SCRIPTED_URL";

/// What a scripted model says, and how it stops.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// To its end.
    Whole(String),
    /// Cut by the limit of tokens, whatever the limit.
    Cut(String),
    /// It declines, with these words.
    Refused(String),
}

/// A server of scripted models that does nothing else.
pub fn start() -> FakeModel {
    start_with(|_, _| None)
}

/// The same with faults: where `fault` has a play it takes the place of the script's answer.
pub fn start_with(fault: impl Fn(&Request, &Asked) -> Option<Play> + Send + Sync + 'static) -> FakeModel {
    FakeModel::start(move |request| {
        let asked = Asked::of(request);
        fault(request, &asked).unwrap_or_else(|| play(request, &answer(&asked)))
    })
}

/// A complete answer with this content, as a scripted model's server sends it.
pub fn reply(request: &Request, content: impl Into<String>) -> Play {
    play(request, &Said::Whole(content.into()))
}

/// The response's bytes are a function of the request: no clock, no counter. Its id is the hash of what was asked.
fn play(request: &Request, said: &Said) -> Play {
    let limit = request.max_tokens().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let (content, refusal, finish) = match said {
        Said::Whole(text) if n_tokens(text) > limit => {
            (Some(text.chars().take(limit.saturating_mul(TOKEN)).collect::<String>()), None, "length")
        }
        Said::Whole(text) => (Some(text.clone()), None, "stop"),
        Said::Cut(text) => (Some(text.clone()), None, "length"),
        Said::Refused(words) => (None, Some(words), "stop"),
    };
    let (n_in, n_out) =
        (n_tokens(&request.prompt()), content.as_ref().or(refusal).map_or(0, |text: &String| n_tokens(text)));
    Play::Json(
        200,
        json!({
            "id": format!("scripted-{}", Hash::of(&request.body).short()),
            "object": "chat.completion",
            "created": 0,
            "model": request.model(),
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": refusal},
                "finish_reason": finish,
            }],
            "usage": {"prompt_tokens": n_in, "completion_tokens": n_out, "total_tokens": n_in + n_out},
        }),
    )
}

/// Characters of a token: as good as any number here.
const TOKEN: usize = 4;

fn n_tokens(text: &str) -> usize {
    text.chars().count().div_ceil(TOKEN)
}

/// What a request asks for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The name of the model, `casemill-scripted/…`.
    pub model: String,
    /// The name of the reply's format: `suitability`, `slots`, `fidelity`, `specialty`, `solution`, `disagreement`,
    /// `adequacy`.
    pub format: String,
    /// Texts of the record between their borders, by name.
    pub texts: BTreeMap<String, String>,
    pub seed: u64,
    /// The reply that the prompt gives as its example.
    pub example: String,
}

impl Asked {
    pub fn of(request: &Request) -> Self {
        let body = request.json();
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let example = messages.iter().rev().find(|message| message["role"] == "assistant");
        Self {
            model: request.model().to_owned(),
            format: format_of(body).to_owned(),
            // Earlier messages hold the example's texts.
            texts: bordered(request.texts().last().copied().unwrap_or_default()),
            seed: body["seed"].as_u64().unwrap_or_default(),
            example: example.and_then(|message| message["content"].as_str()).unwrap_or("").to_owned(),
        }
    }

    /// A text between borders; empty if there is none of that name.
    pub fn text(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }

    /// A whole number that the model, the seed, a purpose and a text decide.
    fn draw(&self, purpose: &str, text: &str) -> u64 {
        hashed(&[&self.model, &self.seed.to_string(), purpose, text])
    }

    /// True in so many of 100 cases.
    fn chance(&self, percent: u64, purpose: &str, text: &str) -> bool {
        self.draw(purpose, text) % 100 < percent
    }
}

/// The name of the reply's format. A client that falls back to JSON without a schema names none: then the fields tell.
fn format_of(body: &Value) -> &str {
    const FIELDS: [(&str, &str); 7] = [
        ("verdict", "suitability"),
        ("Symptom-Name", "slots"),
        ("score", "fidelity"),
        ("specialty", "specialty"),
        ("final_answer", "solution"),
        ("disagreement", "disagreement"),
        ("adequacy", "adequacy"),
    ];
    let named = body.pointer("/response_format/json_schema/name").and_then(Value::as_str);
    let fields = body.pointer("/response_format/schema/properties");
    let told = FIELDS.iter().find(|(field, _)| fields.is_some_and(|fields| fields.get(field).is_some()));
    named.or(told.map(|(_, name)| *name)).unwrap_or("")
}

fn hashed(parts: &[&str]) -> u64 {
    let hash = Hash::of(parts.join("\u{1f}").as_bytes());
    u64::from_str_radix(&hash.as_str()[..16], 16).expect("hexadecimal digits")
}

/// From 0 up to 1, in thousandths.
fn unit(draw: u64) -> f64 {
    f64::from(u32::try_from(draw % 1000).expect("small")) / 1000.0
}

/// Two decimals, so that a number reads as a model would write it.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// The texts between `<<<name mark>>>` and `<<<end of name mark>>>`. A text may hold what looks like a border of its own.
fn bordered(message: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = message;
    while let Some((_, after)) = rest.split_once("<<<") {
        let border = after.split_once(">>>\n").and_then(|(head, text)| {
            let (name, mark) = head.split_once(' ')?;
            let (text, after) = text.split_once(&format!("\n<<<end of {name} {mark}>>>"))?;
            Some((name, text, after))
        });
        rest = match border {
            Some((name, text, after)) => {
                found.insert(name.to_owned(), text.to_owned());
                after
            }
            None => after,
        };
    }
    found
}

/// What the script answers.
pub fn answer(asked: &Asked) -> Said {
    match asked.format.as_str() {
        "suitability" => Said::Whole(suitability(asked)),
        "slots" => slots(asked),
        "fidelity" => Said::Whole(fidelity(asked)),
        "specialty" => specialty(asked),
        "solution" => solution(asked),
        "disagreement" => Said::Whole(disagreement(asked)),
        "adequacy" => Said::Whole(adequacy(asked)),
        other => panic!("no stage asks for `{other}`"),
    }
}

fn reasoned(reason: &str, field: &str, answer: impl Into<Value>) -> String {
    // In the order of the schema: the reason first.
    format!("{{\"reason\":{},\"{field}\":{}}}", json!(reason), answer.into())
}

/// The words of a text in lower case: letters and digits, everything else between them.
fn words(text: &str) -> Vec<String> {
    text.to_lowercase()
        .split(|one: char| !one.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn holds(text: &str, any: &[&str]) -> bool {
    let text = format!(" {} ", words(text).join(" "));
    any.iter().any(|one| text.contains(&format!(" {one} ")))
}

// Suitability ----------------------------------------------------------------------------------------------------------

/// The stricter of the two judges of suitability.
const SECOND_FILTER: &str = "casemill-scripted/second-filter";

/// Is a patient described, is the diagnosis asked for, is the text enough? By words alone.
fn suitability(asked: &Asked) -> String {
    const PATIENTS: [&str; 14] = [
        "year old",
        "month old",
        "week old",
        "day old",
        "man",
        "woman",
        "boy",
        "girl",
        "infant",
        "newborn",
        "patient",
        "male",
        "female",
        "child",
    ];
    const EXHIBITS: [&str; 5] = ["figure", "photograph", "image below", "is shown below", "lettered"];
    let is_second = asked.model == SECOND_FILTER;
    let text = asked.text("question");
    let stem = text.split("\n\nA. ").next().unwrap_or_default();
    let parts = split_lead_in(stem);
    let (vignette, lead_in) = (&stem[parts.vignette], &stem[parts.lead_in]);
    let n_characters = vignette.chars().count();
    let is_short = if is_second { n_characters < 250 } else { n_characters < 240 && sentences(vignette).len() < 3 };
    let (reason, verdict) = if !holds(vignette, &PATIENTS) {
        ("No patient is described.".to_owned(), false)
    } else if holds(stem, &EXHIBITS) {
        ("The question points at an exhibit that the text does not put into words.".to_owned(), false)
    } else if is_second && !holds(lead_in, &["diagnosis"]) {
        ("It asks for something else than the name of the disease.".to_owned(), false)
    } else if !holds(lead_in, &["diagnosis", "explains"]) {
        ("A patient is described, but what is asked for is not the diagnosis.".to_owned(), false)
    } else if is_short {
        (format!("{n_characters} characters tell too little to find the disease."), false)
    } else {
        ("A patient is described, and the most likely disease is asked for.".to_owned(), true)
    };
    reasoned(&reason, "verdict", if verdict { "YES" } else { "NO" })
}

// Slots ----------------------------------------------------------------------------------------------------------------

fn extractor() -> &'static Extractor {
    static EXTRACTOR: OnceLock<Extractor> = OnceLock::new();
    EXTRACTOR.get_or_init(|| {
        let read = |name: &str| std::fs::read_to_string(repository().join("pipelines/lexicon").join(name)).expect(name);
        let (lexicon, terms, context, drugs) =
            (read("slots.toml"), read("terms.csv"), read("context.toml"), read("drugs.toml"));
        let files = ExtractorFiles { lexicon: &lexicon, terms: &terms, context: &context, drugs: &drugs };
        Extractor::parse(files).expect("the shipped lexicon")
    })
}

/// A vignette longer than this is cut, with any limit: the script never comes to an end.
const LONGEST_EXTRACTED: usize = 1_345;

/// What the rules see, with the mistakes of a model: values lost, shortened, invented or changed.
fn slots(asked: &Asked) -> Said {
    let vignette = asked.text("vignette");
    if holds(vignette, &["scrotum"]) {
        return Said::Refused("I cannot fill in a form about this patient.".to_owned());
    }
    // The example is about a left knee, too.
    if holds(vignette, &["examination of the left knee"]) {
        return Said::Whole(asked.example.clone());
    }
    let mut form: BTreeMap<Slot, Vec<String>> = BTreeMap::new();
    let characters: Vec<char> = vignette.chars().collect();
    for found in extractor().extract(vignette).found {
        let value: String = characters[found.range].iter().collect();
        if let Some((slot, value)) = with_mistakes(asked, found.slot, value) {
            form.entry(slot).or_default().push(value);
        }
    }
    if asked.chance(12, "invent", vignette) {
        const INVENTED: [(Slot, &str); 4] = [
            (Slot::SymptomName, "night sweats"),
            (Slot::AllergicHistory, "allergic to penicillin"),
            (Slot::HabitTobacco, "smokes a pack of cigarettes a day"),
            (Slot::FamilyHistory, "mother has diabetes"),
        ];
        let (slot, value) = INVENTED[usize::try_from(asked.draw("which", vignette) % 4).expect("small")];
        form.entry(slot).or_default().push(value.to_owned());
    }
    let mut reply = Map::new();
    for slot in Slot::ALL.into_iter().filter(|slot| *slot != Slot::GroundTruthDiagnosis) {
        reply.insert(slot.as_str().to_owned(), json!(form.remove(&slot).unwrap_or_default()));
    }
    let text = Value::Object(reply).to_string();
    if characters.len() > LONGEST_EXTRACTED {
        let middle = (text.len() / 2..).find(|at| text.is_char_boundary(*at)).expect("the end is one");
        Said::Cut(text[..middle].to_owned())
    } else if vignette.trim_end().contains('\n') && holds(vignette, &["dl"]) {
        // Tables of laboratory values make it talk.
        Said::Whole(format!(
            "Here is the form for this patient:\n\n```json\n{text}\n```\nI copied every phrase as it stands."
        ))
    } else {
        Said::Whole(text)
    }
}

/// One value as the script writes it down; none if it forgets it.
fn with_mistakes(asked: &Asked, slot: Slot, value: String) -> Option<(Slot, String)> {
    let about = format!("{} {value}", slot.as_str());
    match asked.draw("mistake", &about) % 100 {
        0..10 => None,
        10..15 => {
            let n_words = value.split(' ').count();
            let kept: Vec<&str> = value.split(' ').take(if n_words > 4 { n_words / 2 } else { n_words }).collect();
            Some((slot, kept.join(" ")))
        }
        15..18 => {
            let wrong = match slot {
                Slot::SymptomName => Slot::PastDiagnosis,
                Slot::PastDiagnosis => Slot::FamilyHistory,
                Slot::PastMedication => Slot::ReceivingTreatment,
                other => other,
            };
            Some((wrong, value))
        }
        18..21 => Some((slot, with_another_number(&value))),
        21..25 => {
            let affirmed = ["no ", "denies ", "without ", "not "].iter().find_map(|no| value.strip_prefix(no));
            let value = affirmed.map_or_else(|| value.clone(), str::to_owned);
            Some((slot, value))
        }
        _ => Some((slot, value)),
    }
}

/// The first digit raised by one, 9 to 8.
fn with_another_number(value: &str) -> String {
    let Some((at, digit)) = value.char_indices().find(|(_, one)| one.is_ascii_digit()) else { return value.to_owned() };
    let other = if digit == '9' { '8' } else { char::from(u8::try_from(digit).expect("a digit") + 1) };
    format!("{}{other}{}", &value[..at], &value[at + 1..])
}

// Fidelity -------------------------------------------------------------------------------------------------------------

/// Words that say nothing about how much of a text a form holds.
const SMALL_WORDS: [&str; 40] = [
    "the", "and", "of", "a", "an", "in", "on", "at", "to", "is", "are", "was", "were", "has", "had", "have", "his",
    "her", "he", "she", "it", "with", "for", "from", "by", "as", "that", "this", "there", "which", "who", "or", "but",
    "not", "no", "been", "be", "patient", "comes", "because",
];

/// Counts phrases that do not stand in the vignette, and words of the vignette that the form lacks.
fn fidelity(asked: &Asked) -> String {
    let stem = asked.text("vignette");
    let vignette = words(&stem[split_lead_in(stem).vignette]);
    let text = format!(" {} ", vignette.join(" "));
    let record: BTreeMap<String, Vec<String>> = serde_json::from_str(asked.text("record")).expect("a form");
    let phrases: Vec<Vec<String>> = record.values().flatten().map(|phrase| words(phrase)).collect();
    let n_wrong = phrases.iter().filter(|phrase| !text.contains(&format!(" {} ", phrase.join(" ")))).count();
    let content = |words: &[String]| -> BTreeSet<String> {
        words.iter().filter(|word| !SMALL_WORDS.contains(&word.as_str())).cloned().collect()
    };
    let (of_vignette, of_form) = (content(&vignette), content(&phrases.concat()));
    let n_held = of_vignette.intersection(&of_form).count();
    let percent = |part: usize, whole: usize| part * 100 / whole.max(1);
    let (held, wrong) = (percent(n_held, of_vignette.len()), percent(n_wrong, phrases.len()));
    let by_words = match held {
        82.. => 5,
        70..82 => 4,
        56..70 => 3,
        25..56 => 2,
        _ => 1,
    };
    let by_phrases = match wrong {
        0 => 5,
        1..10 => 4,
        10..20 => 3,
        20..50 => 2,
        _ => 1,
    };
    let score: i64 = by_words.min(by_phrases);
    // Nobody is always of one mind.
    let score = match asked.draw("mood", stem) % 100 {
        0..6 => (score - 1).max(1),
        6..12 => (score + 1).min(5),
        _ => score,
    };
    let reason = format!(
        "{n_wrong} of {} phrases do not stand in the text, and {held} % of its words are in the form.",
        phrases.len()
    );
    reasoned(&reason, "score", score)
}

// Specialty ------------------------------------------------------------------------------------------------------------

fn specialties() -> &'static SpecialtyRules {
    static RULES: OnceLock<SpecialtyRules> = OnceLock::new();
    RULES.get_or_init(|| {
        let text = std::fs::read_to_string(repository().join("pipelines/rules/specialty.toml")).expect("the rules");
        SpecialtyRules::parse(&text).expect("the shipped rules")
    })
}

/// As the rules would say, and sometimes the second best.
fn specialty(asked: &Asked) -> Said {
    let stem = asked.text("vignette");
    if holds(stem, &["suicidal"]) {
        return Said::Refused("I cannot help with texts about suicide.".to_owned());
    }
    let assignment = assigned(stem, asked.text("diagnosis"));
    let (first, second) = (assignment.0, assignment.1.unwrap_or(Specialty::InternalMedicine));
    let chosen = if asked.chance(10, "specialty", stem) { second } else { first };
    let reason = format!("Patients with {} are mostly seen there.", asked.text("diagnosis"));
    Said::Whole(reasoned(&reason, "specialty", chosen.as_str()))
}

/// The specialty of a text by the rules, and the one after it.
fn assigned(stem: &str, diagnosis: &str) -> (Specialty, Option<Specialty>) {
    let parts = split_lead_in(stem);
    let fields = Fields {
        vignette: &stem[parts.vignette],
        question: &stem[parts.lead_in],
        diagnosis,
        subject: None,
        age_years: None,
    };
    let assignment = specialties().assign(&fields);
    (assignment.specialty, assignment.runner_up.map(|(specialty, _)| specialty))
}

// Solutions ------------------------------------------------------------------------------------------------------------

/// The first seed of a solver: its sample `n` is asked with the seed `FIRST_SEED + n`.
pub const FIRST_SEED: u64 = 1;
/// The solver that refuses questions about the mind, and never ends with the longest one.
const LAST_SOLVER: &str = "casemill-scripted/solver-4";
const OF_THE_MIND: [&str; 4] = ["nightmares", "absurd", "hears voices", "delusions"];
const LONGEST_SOLVED: usize = 1_330;

/// Diseases that the solvers know, by specialty; a second name of the same disease after a bar.
fn known_diseases(specialty: Specialty) -> [&'static str; 4] {
    match specialty {
        Specialty::Dermatology => {
            ["Lichen planus", "Pemphigus vulgaris", "Guttate psoriasis", "Tinea corporis|Ringworm"]
        }
        Specialty::Neurology => ["Multiple sclerosis", "Migraine", "Lambert-Eaton syndrome", "Transverse myelitis"],
        Specialty::Ophthalmology => ["Retinal detachment", "Uveitis", "Open-angle glaucoma", "Macular degeneration"],
        Specialty::Psychiatry => {
            ["Generalized anxiety disorder|GAD", "Adjustment disorder", "Panic disorder", "Dysthymia"]
        }
        Specialty::Pediatrics => {
            ["Pyloric stenosis", "Malrotation", "Kawasaki disease", "Viral gastroenteritis|Stomach flu"]
        }
        Specialty::ObstetricsGynecology => {
            ["Endometriosis", "Ovarian torsion", "Preeclampsia", "Uterine fibroids|Leiomyoma"]
        }
        Specialty::OrthopedicSurgery => ["Perthes disease", "Stress fracture", "Osteosarcoma", "Septic arthritis"],
        Specialty::Otolaryngology => {
            ["Labyrinthitis", "Acoustic neuroma|Vestibular schwannoma", "Bell palsy", "Tonsillitis"]
        }
        Specialty::Cardiology => {
            ["Myocardial infarction|Heart attack", "Myocarditis", "Aortic dissection", "Heart failure"]
        }
        Specialty::Hematology => ["Aplastic anemia", "Myelodysplastic syndrome|MDS", "Hemolytic anemia", "Amyloidosis"],
        Specialty::Rheumatology => ["Polymyalgia rheumatica|PMR", "Systemic lupus|SLE", "Rheumatoid arthritis", "Gout"],
        Specialty::Urology => ["Epididymitis", "Ureteral stone", "Hydrocele", "Prostatitis"],
        Specialty::GeneralSurgery => {
            ["Acute pancreatitis", "Bowel obstruction|Ileus", "Diverticulitis", "Acute cholecystitis"]
        }
        Specialty::EmergencyMedicine => ["Cyanide poisoning", "Heat stroke", "Septic shock", "Opioid overdose"],
        Specialty::InternalMedicine | Specialty::Pathology | Specialty::DiagnosticRadiology => {
            ["Tuberculosis|TB", "Lymphoma", "Cushing syndrome|Hypercortisolism", "Hypothyroidism"]
        }
    }
}

/// Easy questions get short, equal, sure answers, and hard ones long, unlike and unsure ones. How hard one is depends on its
/// length and on a hash; the answers are names of diseases of its specialty and need not be right.
fn solution(asked: &Asked) -> Said {
    let stem = asked.text("question");
    let n_characters = u32::try_from(stem.chars().count()).expect("a short text");
    if asked.model == LAST_SOLVER && holds(stem, &OF_THE_MIND) {
        return Said::Refused("I cannot answer questions about mental health.".to_owned());
    }
    let hardness = 0.85 * unit(hashed(&["hardness", stem])) + 0.15 * (f64::from(n_characters) / 1_400.0).min(1.0);
    // How much hardness disturbs this solver: 0.6 to 1.
    let weakness = 0.6 + 0.4 * unit(hashed(&["weakness", &asked.model]));
    let known = known_diseases(assigned(stem, "").0);
    let first = usize::try_from(hashed(&["answer", stem]) % 4).expect("small");
    let strays = unit(asked.draw("stray", stem)) < hardness * weakness;
    let other = usize::try_from(asked.draw("other", stem) % 4).expect("small");
    let entry = known[if strays { other } else { first }];
    let answer = spelled(entry, asked.draw("spelling", stem));
    let n_steps = 2 + (hardness * 6.0).round() as u64 + asked.draw("steps", stem) % 3;
    let name = entry.split('|').next().unwrap_or_default();
    let steps: Vec<String> = (1..=n_steps).map(|number| step(number, n_steps, name, &known)).collect();
    let confidence =
        rounded(0.97 - 0.5 * hardness - 0.1 * unit(asked.draw("doubt", stem)) - if strays { 0.1 } else { 0.0 });
    let text = format!(
        "{{\"steps\":{},\"final_answer\":{},\"confidence\":{}}}",
        json!(steps),
        json!(answer),
        json!(confidence.max(0.05))
    );
    if asked.model == LAST_SOLVER && n_characters as usize > LONGEST_SOLVED {
        Said::Cut(text[..text.len() / 2].to_owned())
    } else if asked.chance(4, "thinking aloud", stem) {
        Said::Whole(format!("<think>Is it {name}? It may be.</think>\n{text}"))
    } else {
        Said::Whole(text)
    }
}

fn step(number: u64, n_steps: u64, name: &str, known: &[&str; 4]) -> String {
    let other = known[usize::try_from(number % 4).expect("small")].split('|').next().unwrap_or_default();
    match number {
        1 => "1. Complaint, history and findings are put together.".to_owned(),
        last if last == n_steps => format!("{last}. {name} explains most of them."),
        between if other == name => format!("{between}. {name} would fit the course of time."),
        between => format!("{between}. {other} is less likely by what was found."),
    }
}

/// A name as it is written this time: another case, a blank behind, its second name.
fn spelled(entry: &str, draw: u64) -> String {
    let mut names = entry.split('|');
    let first = names.next().unwrap_or_default();
    match draw % 8 {
        0 => first.to_lowercase(),
        1 => format!("{first} "),
        2 => names.next().unwrap_or(first).to_owned(),
        _ => first.to_owned(),
    }
}

// Disagreement ---------------------------------------------------------------------------------------------------------

/// Names that the judge of disagreement knows to be one disease.
const SYNONYMS: [&[&str]; 13] = [
    &["gastroesophageal reflux disease", "gastro oesophageal reflux disease", "acid reflux disease", "gerd", "gord"],
    &["tinea corporis", "ringworm"],
    &["generalized anxiety disorder", "gad"],
    &["viral gastroenteritis", "stomach flu"],
    &["uterine fibroids", "leiomyoma"],
    &["acoustic neuroma", "vestibular schwannoma"],
    &["myocardial infarction", "heart attack"],
    &["myelodysplastic syndrome", "mds"],
    &["polymyalgia rheumatica", "pmr"],
    &["systemic lupus", "sle"],
    &["bowel obstruction", "ileus"],
    &["tuberculosis", "tb"],
    &["cushing syndrome", "hypercortisolism"],
];

/// The share of pairs of answers that name different diseases.
fn disagreement(asked: &Asked) -> String {
    let named: Vec<String> = asked
        .text("answers")
        .lines()
        .map(|line| line.split_once(". ").map_or("", |(_, answer)| answer))
        .map(|answer| words(answer.split('(').next().unwrap_or_default()).join(" "))
        .map(|name| match SYNONYMS.iter().find(|names| names.contains(&name.as_str())) {
            Some(names) => names[0].to_owned(),
            None => name,
        })
        .collect();
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &named {
        *groups.entry(name).or_default() += 1;
    }
    let n = named.len();
    let n_pairs = n * n.saturating_sub(1) / 2;
    let n_equal: usize = groups.values().map(|size| size * (size - 1) / 2).sum();
    let share = (n_pairs - n_equal) as f64 / n_pairs.max(1) as f64;
    let largest = groups.iter().max_by_key(|(_, size)| **size).map_or("nothing", |(name, _)| *name);
    let reason = format!("{n} answers name {} diseases; most name {largest}.", groups.len());
    reasoned(&reason, "disagreement", rounded(share))
}

// Adequacy -------------------------------------------------------------------------------------------------------------

/// 1 for equal words, or else the F1 of their words.
fn adequacy(asked: &Asked) -> String {
    let (reference, candidate) = (words(asked.text("reference")), words(asked.text("candidate")));
    let mut left = reference.clone();
    let mut n_common = 0;
    for word in &candidate {
        if let Some(at) = left.iter().position(|one| one == word) {
            left.swap_remove(at);
            n_common += 1;
        }
    }
    let score = match reference.len() + candidate.len() {
        0 => 1.0,
        n => rounded(2.0 * f64::from(n_common) / n as f64),
    };
    let reason = format!("{n_common} of {} words of the reference are there.", reference.len());
    reasoned(&reason, "adequacy", score)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    /// A request's parts as a stage would send them.
    fn asked(model: &str, format: &str, texts: &[(&str, &str)]) -> Asked {
        Asked {
            model: format!("casemill-scripted/{model}"),
            format: format.to_owned(),
            texts: texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(),
            seed: FIRST_SEED,
            example: "{}".to_owned(),
        }
    }

    fn said(asked: &Asked) -> String {
        match answer(asked) {
            Said::Whole(text) => text,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn texts_are_taken_from_between_their_own_borders() {
        let message = "<<<vignette 01>>>\nFever.\n<<<end of vignette 02>>>\n<<<record 9>>>\n<<<end of vignette 01>>>\nand\n\
            <<<record 03>>>\n{}\n<<<end of record 03>>>\nend";
        assert_eq!(
            bordered(message).into_iter().collect::<Vec<_>>(),
            [
                ("record".to_owned(), "{}".to_owned()),
                ("vignette".to_owned(), "Fever.\n<<<end of vignette 02>>>\n<<<record 9>>>".to_owned()),
            ]
        );
    }

    #[test]
    fn samples_of_a_hard_question_differ_and_those_of_an_easy_one_do_not() {
        let mut by_hardness = Vec::new();
        for number in 0..200 {
            let stem = format!("A {number}-year-old man has a rash. What is the most likely diagnosis?");
            let answers: BTreeSet<String> = (0..6)
                .map(|sample| {
                    let mut asked = asked("solver-1", "solution", &[("question", &stem)]);
                    asked.seed = FIRST_SEED + sample;
                    let text = said(&asked);
                    let reply: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
                    words(reply["final_answer"].as_str().unwrap()).join(" ")
                })
                .collect();
            by_hardness.push((unit(hashed(&["hardness", &stem])), answers.len()));
        }
        by_hardness.sort_by(|one, other| one.0.total_cmp(&other.0));
        let n_answers = |part: &[(f64, usize)]| part.iter().map(|(_, n)| n).sum::<usize>();
        let (easy, hard) = (n_answers(&by_hardness[..50]), n_answers(&by_hardness[150..]));
        assert!(easy * 3 < hard * 2, "{easy} of the easiest, {hard} of the hardest");
    }

    #[test]
    fn adequacy_is_the_share_of_common_words() {
        let score = |reference, candidate| {
            said(&asked("adequacy-judge", "adequacy", &[("reference", reference), ("candidate", candidate)]))
        };
        expect![[r#"
            {"reason":"2 of 2 words of the reference are there.","adequacy":1.0}
            {"reason":"2 of 3 words of the reference are there.","adequacy":0.67}
            {"reason":"0 of 3 words of the reference are there.","adequacy":0.0}"#]]
        .assert_eq(
            &[
                score("Fever, cough", "fever; cough"),
                score("for 3 weeks", "since 3 weeks"),
                score("for 3 weeks", "yesterday"),
            ]
            .join("\n"),
        );
    }
}
