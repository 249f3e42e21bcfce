//! Broken articles: changed copies of the sample's XML through the reader of JATS and the rules of staging.
//!
//! Whatever stands in a file, nothing panics, every offset points at what it says, and what is read stays in proportion to
//! the file (ARCHITECTURE, invariants 11 and 12).
//!
//! `CASEMILL_FUZZ_SECONDS` makes the test look for so long and tell what it found, each with a small input;
//! `CASEMILL_JATS_SAMPLES` names a folder with more articles to start from.

use crate::support::repository;
use casemill::record::article::{Article, Passage, PatientSegment, RunKind};
use casemill::record::staged::{StagedText, separator};
use casemill::source::jats::{self, JatsError, Limits};
use casemill::staging::diagnosis::{Located, final_diagnosis, text_of};
use casemill::staging::examinations::Examinations;
use casemill::staging::figures::findings;
use casemill::staging::masking::{Mask, MaskWords};
use casemill::staging::plain::report;
use casemill::staging::presentation::{presentation, source_texts};
use casemill::staging::reasoning::reasoning;
use casemill::staging::sections::roles;
use casemill::staging::series::series;
use casemill::staging::suitability::{CaseReportRules, REASONS, obstacles};
use casemill::staging::support::{Sentences, coverage};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{TestError, TestRunner};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Cases of a run without `CASEMILL_FUZZ_SECONDS`, and between two looks at the clock of one with it.
const CASES: u32 = 1000;
/// Changed files are no longer than this, so that a case takes milliseconds.
const MAX_BYTES: usize = 400_000;
/// Characters in the JSON of an article for each byte of its file: the smallest element that is a record, `<p/>`, is told
/// with all its fields.
const MAX_GROWTH: usize = 160;
/// What titles and captions that stand in many records, and entities, may add to that (`jats::Limits`, and the reader's own
/// budget of 16 times the file and 16 MB).
const MAX_COPIES: usize = 36 << 20;

/// One change of a file. An index is a place among those that the file has when the change is made.
#[derive(Clone, Debug)]
enum Change {
    /// A byte becomes another.
    Byte(Index, u8),
    /// So many bytes are lost.
    Loss(Index, u16),
    /// The file ends.
    End(Index),
    /// Something stands between two bytes.
    Insert(Index, &'static str),
    /// Words stand so many times at the start of a text.
    Write(Index, String, u16),
    /// A number becomes another.
    Number(Index, &'static str),
    /// A start tag has an attribute.
    Attribute(Index, &'static str),
    /// An element becomes one of another kind.
    Rename(Index, &'static str),
    /// So many elements stand around another.
    Nest(Index, &'static str, u16),
    /// An element is there so many times more.
    Repeat(Index, u8),
    /// An element also stands before another.
    Copy(Index, Index),
    /// An element of another file stands before one of this.
    Graft(Index, Index, Index),
    /// An element is gone.
    Remove(Index),
    /// The tags of an element are gone.
    Unwrap(Index),
    /// A document type with entities, one of which is used.
    Entities(Index, &'static str),
}

/// Pieces that a file may hold anywhere.
const PIECES: &[&str] = &[
    "<p>",
    "</p>",
    "<sec>",
    "</sec>",
    "<p/>",
    "<",
    ">",
    "&",
    "\"",
    "'",
    "]]>",
    "<![CDATA[",
    "<![CDATA[]]>",
    "<!--",
    "<!-- - -->",
    "<?target?>",
    "<?xml version=\"1.0\" encoding=\"latin1\"?>",
    "<!DOCTYPE article>",
    "&amp;",
    "&lt;",
    "&#0;",
    "&#x110000;",
    "&#xD800;",
    "&#99999999999999999999;",
    "&#x1F9EA;",
    "&nothing;",
    "&;",
    "\u{feff}",
    "\0",
    "<a b=\"1\" b=\"2\"/>",
    "<a b/>",
    "<:a/>",
    "<x:y:z/>",
    "<article/>",
    "<xref ref-type=\"fig\" rid=\"f1 f2 F1 fig1\"><sup>1</sup></xref>",
    "<xref rid=\"\"/>",
    "<sup><sup><sub>2</sub></sup></sup>",
    "<inline-formula><alternatives><tex-math>\\frac{{{1}}{}</tex-math><mml:math><mml:msup/></mml:math></alternatives></inline-formula>",
    "<fig id=\"f1\"><label>Figure 1.</label><caption><title>T</title><p>(a) One. (b) Two. (c) Three.</p></caption><graphic xlink:href=\"a\"/><graphic xlink:href=\"b\"/></fig>",
    "<fig-group><caption><p>Group</p></caption><fig/><fig/></fig-group>",
    "<table-wrap><table><tr><td colspan=\"4294967295\" rowspan=\"4294967295\">1</td></tr><tr><td/><td rowspan=\"0\"/></tr></table></table-wrap>",
    "<table-wrap><table><tgroup cols=\"9\"><colspec colname=\"a\" colnum=\"4294967295\"/><tbody><row><entry namest=\"a\" nameend=\"b\" morerows=\"4294967295\">1</entry></row></tbody></tgroup></table></table-wrap>",
    "<def-list><def-item><term>CT</term><def><p>computed tomography</p></def></def-item></def-list>",
    "<sub-article article-type=\"translation\"><front-stub/><body><p>Otra.</p></body></sub-article>",
    "<boxed-text><caption><title>B</title><p>b</p></caption><p>c</p></boxed-text>",
    "<pub-date><year>99999999999</year><month>13</month><day>0</day></pub-date>",
    "<article-id pub-id-type=\"pmcid\">PMC99999999999999999999.99999999999</article-id>",
    "<ref><mixed-citation><person-group><etal/></person-group><year>20</year></mixed-citation></ref>",
];

/// Words that the rules of staging look for, and letters whose other case has another length.
const WORDS: &[&str] = &[
    "A 45-year-old man presented with fever. ",
    "A 99999999999-year-old woman and her 0-day-old son. ",
    "Case 1. ",
    "Patient 2: ",
    "Case XIIV – ",
    "We report three cases of ",
    "the second patient ",
    "He was diagnosed with acute İngüinal appendicitis (AIA). ",
    "The final diagnosis was ",
    " secondary to ",
    "No evidence of ",
    "CT showed (Fig. 1a–c) ",
    "(a) left, (b) right; (c, d) ",
    "a) ",
    "Blood pressure was 999/0 mmHg, haemoglobin 10⁹ g/dL (120–250). ",
    "In conclusion, ",
    "et al. [1–3, 5] ",
    "reprinted with permission ",
    "İ",
    "ẞ",
    "ﬁ",
    "K",
    "ŉ",
    "e\u{301}\u{301}",
    "\u{202e}",
    "\u{a0}",
    "🩻",
    "𝛽",
    ". ",
    "; ",
    "(",
    ")",
    "-",
    "1. ",
    "Mr. ",
];

const NUMBERS: &[&str] =
    &["", "0", "-1", "1e9", "255", "65536", "4294967295", "4294967296", "18446744073709551616", "٣"];

const ATTRIBUTES: &[&str] = &[
    " id=\"f1\"",
    " id=\"f1\" id=\"f1\"",
    " rid=\"f1\"",
    " rid=\" f1  t1 \"",
    " ref-type=\"fig\"",
    " ref-type=\"bibr\"",
    " rowspan=\"1000000\"",
    " colspan=\"1000000\"",
    " rowspan=\"0\"",
    " colspan=\"-1\"",
    " morerows=\"4294967295\"",
    " namest=\"c9\"",
    " xlink:href=\"../../../../etc/passwd\"",
    " xlink:href=\"&nothing;\"",
    " xml:lang=\"de\"",
    " article-type=\"case-report\"",
    " article-type=\"retraction\"",
    " sec-type=\"cases\"",
    " mimetype=\"video\"",
    " specific-use=''",
    " a=\"",
    " a",
];

/// Names of elements.
const NAMES: &str = "p sec title label caption fig fig-group table-wrap table tr td th thead tbody xref sup sub italic list \
    list-item def-list def-item def term boxed-text disp-quote fn ref mixed-citation abstract body back front \
    article article-meta article-title sub-article response alternatives graphic inline-graphic media \
    supplementary-material inline-formula disp-formula mml:math mml:mfrac mml:mrow tex-math abbrev ack app \
    notes floats-group permissions license contrib name kwd pub-date unknown html";

/// Internal subsets; each declares `e`.
const SUBSETS: &[&str] = &[
    "<!ENTITY e \"plain\">",
    "<!ENTITY e \"<p>A 45-year-old man.</p><sec><title>Case 1</title>\">",
    "<!ENTITY e \"<bold>İ&#38;lt;</bold> n\">",
    "<!ENTITY e \"&e;\">",
    "<!ENTITY e \"&#38;e;\">",
    "<!ENTITY e SYSTEM \"file:///etc/passwd\">",
    "<!ENTITY % p SYSTEM \"http://localhost/\"> %p; <!ENTITY e \"x\">",
    "<!ENTITY a \"0123456789012345678901234567890123456789\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\"><!ENTITY e \"&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;\">",
    "<!ENTITY a \"<p/><p/><p/><p/><p/><p/><p/><p/>\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;\"><!ENTITY e \"&d;&d;&d;&d;&d;&d;&d;&d;\">",
    "<!ENTITY e ''><!ENTITY",
];

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    let words = prop_oneof![3 => select(WORDS).prop_map(str::to_owned), 1 => "[^<&]{0,12}"];
    let times = prop_oneof![6 => Just(1_u16), 2 => 2_u16..20, 1 => 100_u16..2000];
    let depth = prop_oneof![4 => 1_u16..12, 1 => 100_u16..140, 1 => Just(2000_u16)];
    let names: Vec<&str> = NAMES.split(' ').collect();
    let breaking = prop_oneof![
        2 => (at(), any::<u8>()).prop_map(|(place, byte)| Change::Byte(place, byte)),
        1 => (at(), 1_u16..200).prop_map(|(place, length)| Change::Loss(place, length)),
        1 => at().prop_map(Change::End),
        2 => (at(), select(PIECES)).prop_map(|(place, piece)| Change::Insert(place, piece)),
    ];
    let keeping = prop_oneof![
        8 => (at(), words, times).prop_map(|(place, words, times)| Change::Write(place, words, times)),
        2 => (at(), select(PIECES)).prop_map(|(place, piece)| Change::Write(place, piece.to_owned(), 1)),
        3 => (at(), select(NUMBERS)).prop_map(|(place, number)| Change::Number(place, number)),
        5 => (at(), select(ATTRIBUTES)).prop_map(|(place, attribute)| Change::Attribute(place, attribute)),
        8 => (at(), select(names.clone())).prop_map(|(place, name)| Change::Rename(place, name)),
        3 => (at(), select(names), depth).prop_map(|(place, name, depth)| Change::Nest(place, name, depth)),
        3 => (at(), 1_u8..40).prop_map(|(place, times)| Change::Repeat(place, times)),
        5 => (at(), at()).prop_map(|(from, to)| Change::Copy(from, to)),
        5 => (at(), at(), at()).prop_map(|(file, from, to)| Change::Graft(file, from, to)),
        5 => at().prop_map(Change::Remove),
        3 => at().prop_map(Change::Unwrap),
        1 => (at(), select(SUBSETS)).prop_map(|(place, subset)| Change::Entities(place, subset)),
    ];
    // Most files stay well-formed, so that more than the reader's first look is tried.
    prop_oneof![60 => keeping, 1 => breaking]
}

/// Where an element stands, as far as a broken file has elements.
#[derive(Clone, Debug)]
struct Found {
    /// The start tag.
    tag: Range<usize>,
    /// Where the end tag begins; the end of the start tag for an empty element.
    inner_end: usize,
    end: usize,
}

impl Found {
    fn whole(&self) -> Range<usize> {
        self.tag.start..self.end
    }

    /// The name in the start tag.
    fn name(&self, bytes: &[u8]) -> Range<usize> {
        let from = self.tag.start + 1;
        let length = bytes[from..self.tag.end].iter().take_while(|byte| !b" \n\t\r/>".contains(byte)).count();
        from..from + length
    }
}

fn elements(bytes: &[u8]) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    while let Some(start) = bytes[at..].iter().position(|byte| *byte == b'<').map(|offset| at + offset) {
        let Some(end) = bytes[start..].iter().position(|byte| *byte == b'>').map(|offset| start + offset + 1) else {
            break;
        };
        match bytes.get(start + 1) {
            Some(b'/') => {
                if let Some(element) = open.pop() {
                    found[element].inner_end = start;
                    found[element].end = end;
                }
            }
            Some(byte) if byte.is_ascii_alphabetic() => {
                if bytes[end - 2] != b'/' {
                    open.push(found.len());
                }
                found.push(Found { tag: start..end, inner_end: end, end });
            }
            _ => {}
        }
        at = end;
    }
    found
}

/// Runs of digits in the text and in values of attributes.
fn numbers(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match found.last_mut() {
            _ if !byte.is_ascii_digit() => {}
            Some(last) if last.end == at => last.end += 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>, seeds: &[Seed]) {
        if bytes.is_empty() {
            return;
        }
        let mut room = MAX_BYTES.saturating_sub(bytes.len());
        let mut take = |length: usize, times: usize| {
            let times = times.min(room.checked_div(length).unwrap_or(0));
            room -= times * length;
            times
        };
        let pick = |list: &[Found], place: &Index| (!list.is_empty()).then(|| list[place.index(list.len())].clone());
        let insert = |bytes: &mut Vec<u8>, at: usize, piece: &[u8]| drop(bytes.splice(at..at, piece.iter().copied()));
        match self {
            Self::Byte(place, byte) => {
                let at = place.index(bytes.len());
                bytes[at] = *byte;
            }
            Self::Loss(place, length) => {
                let at = place.index(bytes.len());
                bytes.drain(at..(at + usize::from(*length)).min(bytes.len()));
            }
            Self::End(place) => bytes.truncate(place.index(bytes.len())),
            Self::Insert(place, piece) => {
                let at = place.index(bytes.len());
                insert(bytes, at, &piece.as_bytes()[..piece.len() * take(piece.len(), 1)]);
            }
            Self::Write(place, words, times) => {
                let starts: Vec<usize> =
                    (1..bytes.len()).filter(|at| bytes[at - 1] == b'>' && bytes[*at] != b'<').collect();
                if !starts.is_empty() {
                    let piece = words.repeat(take(words.len(), usize::from(*times)));
                    insert(bytes, starts[place.index(starts.len())], piece.as_bytes());
                }
            }
            Self::Number(place, number) => {
                let list = numbers(bytes);
                if !list.is_empty() {
                    bytes.splice(list[place.index(list.len())].clone(), number.bytes());
                }
            }
            Self::Attribute(place, attribute) => {
                if let Some(element) = pick(&elements(bytes), place) {
                    // In place of one of the same name, if there is one: two of a name are no XML.
                    let name = attribute.split_inclusive('=').next().unwrap_or_default().as_bytes();
                    let tag = &bytes[element.tag.clone()];
                    let old =
                        tag.windows(name.len()).position(|window| window == name).map(|at| element.tag.start + at);
                    let end = old.and_then(|at| {
                        let mut quotes = (at..element.tag.end).filter(|at| bytes[*at] == b'"');
                        quotes.nth(1).map(|end| end + 1)
                    });
                    let at = element.name(bytes).end;
                    bytes.splice(old.zip(end).map_or(at..at, |(old, end)| old..end), attribute.bytes());
                }
            }
            Self::Rename(place, name) => {
                if let Some(element) = pick(&elements(bytes), place) {
                    if element.inner_end < element.end {
                        bytes.splice(element.inner_end + 2..element.end - 1, name.bytes());
                    }
                    let old = element.name(bytes);
                    bytes.splice(old, name.bytes());
                }
            }
            Self::Nest(place, name, depth) => {
                if let Some(element) = pick(&elements(bytes), place) {
                    let depth = take(2 * name.len() + 5, usize::from(*depth));
                    insert(bytes, element.end, format!("</{name}>").repeat(depth).as_bytes());
                    insert(bytes, element.tag.start, format!("<{name}>").repeat(depth).as_bytes());
                }
            }
            Self::Repeat(place, times) => {
                if let Some(element) = pick(&elements(bytes), place) {
                    let copy = bytes[element.whole()].to_vec();
                    let times = take(copy.len(), usize::from(*times));
                    insert(bytes, element.end, &copy.repeat(times));
                }
            }
            Self::Copy(from, to) => {
                let list = elements(bytes);
                if let (Some(from), Some(to)) = (pick(&list, from), pick(&list, to)) {
                    let copy = bytes[from.whole()].to_vec();
                    insert(bytes, to.tag.start, &copy.repeat(take(copy.len(), 1)));
                }
            }
            Self::Graft(file, from, to) => {
                let other = &seeds[file.index(seeds.len())].bytes;
                if let (Some(from), Some(to)) = (pick(&elements(other), from), pick(&elements(bytes), to)) {
                    let copy = &other[from.whole()];
                    insert(bytes, to.tag.start, &copy.repeat(take(copy.len(), 1)));
                }
            }
            Self::Remove(place) => {
                if let Some(element) = pick(&elements(bytes), place) {
                    bytes.drain(element.whole());
                }
            }
            Self::Unwrap(place) => {
                if let Some(element) = pick(&elements(bytes), place) {
                    bytes.drain(element.inner_end..element.end);
                    bytes.drain(element.tag);
                }
            }
            Self::Entities(place, subset) => {
                if let Some(element) = pick(&elements(bytes), place) {
                    insert(bytes, element.tag.end, b"&e;");
                    let root = elements(bytes).first().map_or(0, |root| root.tag.start);
                    insert(bytes, root, format!("<!DOCTYPE article [{subset}]>").as_bytes());
                }
            }
        }
    }
}

/// A file to start from.
struct Seed {
    name: String,
    bytes: Vec<u8>,
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "xml" || extension == "nxml") {
            found.push(path);
        }
    }
    found.sort();
}

fn seeds() -> Vec<Seed> {
    let mut found = Vec::new();
    files(&repository().join("data/sample/pmc"), &mut found);
    if let Some(folder) = std::env::var_os("CASEMILL_JATS_SAMPLES") {
        files(Path::new(&folder), &mut found);
    }
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).expect("a file");
        Seed { name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(), bytes }
    };
    found.into_iter().map(read).filter(|seed| seed.bytes.len() < MAX_BYTES).collect()
}

/// The files of rules that the shipped pipeline names.
struct Rules {
    case_reports: CaseReportRules,
    examinations: Examinations,
    words: MaskWords,
}

impl Rules {
    fn read() -> Self {
        let text =
            |name: &str| std::fs::read_to_string(repository().join("pipelines").join(name)).expect("a file of rules");
        Self {
            case_reports: CaseReportRules::parse("rules", &text("rules/case_reports.toml")).expect("rules"),
            examinations: Examinations::parse("examinations", &text("lexicon/examinations.toml"))
                .expect("examinations"),
            words: MaskWords::parse("masking", &text("lexicon/masking.toml")).expect("words"),
        }
    }
}

/// What became of the cases of a run.
#[derive(Debug, Default)]
struct Account {
    n: u64,
    refused: BTreeMap<String, u64>,
    n_read: u64,
    n_series: u64,
    n_diagnoses: u64,
    n_presentations: u64,
    n_reasonings: u64,
    n_findings: u64,
    /// Characters in the JSON of an article for each byte of its file, of files of more than 4 000.
    most_growth: usize,
    slowest: Duration,
    slowest_bytes: usize,
}

/// Counts what is written.
struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// All laws for one file.
fn check(bytes: &[u8], rules: &Rules, account: &RefCell<Account>) {
    let articles = jats::read_all(bytes, Limits::default());
    if jats::identify_all(bytes, Limits::default()).is_err() {
        // What cannot even be known is not read.
        assert!(articles.is_err(), "read_all reads what identify_all refuses");
    }
    let articles = match articles {
        Ok(articles) => articles,
        Err(JatsError { fault, line, byte, detail }) => {
            assert!(line >= 1 && byte <= bytes.len() as u64 && !detail.is_empty(), "{fault:?} line {line} byte {byte}");
            *account.borrow_mut().refused.entry(format!("{fault:?}")).or_default() += 1;
            return;
        }
    };
    account.borrow_mut().n_read += 1;
    let source = std::str::from_utf8(bytes).expect("what is read is UTF-8");
    let mut weight = Counter(0);
    serde_json::to_writer(&mut weight, &articles).expect("JSON");
    let most = MAX_GROWTH * bytes.len() + MAX_COPIES;
    assert!(weight.0 <= most, "{} bytes of XML are {} bytes of JSON, more than {most}", bytes.len(), weight.0);
    // The fields of a record are more than a file of some bytes.
    if bytes.len() > 4000 {
        let known = account.borrow().most_growth;
        account.borrow_mut().most_growth = known.max(weight.0 / bytes.len());
    }
    for article in &articles {
        check_offsets(source, article);
        check_tables(article);
        check_staging(source, article, rules, account);
    }
}

fn check_passage(source: &str, passage: &Passage) {
    let text = &passage.text;
    assert!(
        source.get(passage.byte_start as usize..passage.byte_end as usize).is_some(),
        "a passage outside of the file"
    );
    assert!(!text.starts_with(' ') && !text.ends_with(' '), "a passage with white space around it: {text:?}");
    let mut covered = 0;
    for (position, run) in passage.runs.iter().enumerate() {
        let end = passage.runs.get(position + 1).map_or(text.len(), |next| next.text_start as usize);
        assert_eq!(run.text_start as usize, covered, "a gap between runs");
        let words = text.get(covered..end).expect("runs in order, at borders of characters");
        let from = run.byte_start as usize;
        let stands = source.get(from..from + run.byte_length as usize).expect("a run inside of the file");
        if run.kind == RunKind::Verbatim {
            assert_eq!(words, stands.replace(['\n', '\t', '\r'], " "), "a verbatim run");
        }
        covered = end;
    }
    assert!(passage.runs.is_empty() || covered == text.len());
    for mention in &passage.mentions {
        assert!(
            text.get(mention.text_start as usize..mention.text_end as usize).is_some(),
            "a mention outside of its text"
        );
    }
    if let Some(place) = passage.source_of(0..text.len()) {
        assert!(source.get(place).is_some_and(|stands| !stands.is_empty()), "a text that comes from nowhere");
    }
}

fn check_offsets(source: &str, article: &Article) {
    let is_there = |start: u32, end: u32| source.get(start as usize..end as usize).is_some();
    assert!(is_there(article.byte_start, article.byte_end));
    assert!(article.warnings.len() <= 100);
    let abstracts = article.abstracts.iter().chain(article.sub_articles.iter().flat_map(|part| &part.abstracts));
    abstracts.flat_map(|one| &one.paragraphs).for_each(|paragraph| check_passage(source, &paragraph.passage));
    let n_paragraphs = article.paragraphs.len();
    let anchor = |anchor: &casemill::record::article::Anchor| {
        let passage = &article.paragraphs[anchor.paragraph as usize].passage;
        assert!(passage.text.get(anchor.text_start as usize..anchor.text_end as usize).is_some(), "an anchor");
    };
    let place = |place: &casemill::record::article::Place| {
        assert!(is_there(place.byte_start, place.byte_end));
        assert!(place.sub_article.is_none_or(|at| (at as usize) < article.sub_articles.len()));
        if let (Some(paragraph), Some(offset)) = (place.paragraph, place.text_offset) {
            assert!(article.paragraphs[paragraph as usize].passage.text.is_char_boundary(offset as usize));
        }
    };
    for (position, paragraph) in article.paragraphs.iter().enumerate() {
        check_passage(source, &paragraph.passage);
        assert!(paragraph.section.is_none_or(|at| (at as usize) < article.sections.len()));
        assert!(paragraph.within.is_none_or(|at| (at as usize) < position.min(n_paragraphs)));
    }
    for figure in &article.figures {
        figure.caption.iter().chain(&figure.group_caption).for_each(|passage| check_passage(source, passage));
        figure.mentions.iter().for_each(anchor);
        place(&figure.place);
    }
    for table in &article.tables {
        let passages = table.caption.iter().chain(&table.group_caption).chain(&table.footnotes);
        passages.for_each(|passage| check_passage(source, passage));
        table.mentions.iter().for_each(anchor);
        place(&table.place);
        assert!(table.cells.iter().all(|cell| is_there(cell.byte_start, cell.byte_end)));
    }
    for supplement in &article.supplements {
        supplement.caption.iter().for_each(|passage| check_passage(source, passage));
        supplement.mentions.iter().for_each(anchor);
        place(&supplement.place);
    }
    article.loose_graphics.iter().for_each(|graphic| place(&graphic.place));
    assert!(article.references.iter().all(|reference| is_there(reference.byte_start, reference.byte_end)));
    assert!(article.main_abstract.is_none_or(|at| (at as usize) < article.abstracts.len()));
}

/// Cells stand in their table, no two in one place, and a table as text is not out of proportion.
fn check_tables(article: &Article) {
    let max_cells = Limits::default().max_table_cells;
    for table in &article.tables {
        let mut taken = BTreeSet::new();
        let mut area = 0;
        for cell in &table.cells {
            assert!(cell.row_span >= 1 && cell.column_span >= 1);
            assert!(cell.row + cell.row_span <= table.n_rows && cell.column + cell.column_span <= table.n_columns);
            area += cell.row_span as usize * cell.column_span as usize;
            if area < 20_000 {
                for row in cell.row..cell.row + cell.row_span {
                    for column in cell.column..cell.column + cell.column_span {
                        assert!(taken.insert((row, column)), "two cells at row {row}, column {column}");
                    }
                }
            }
        }
        assert!(area <= max_cells + table.cells.len(), "{area} places");
        let words: usize = table.cells.iter().map(|cell| cell.text.len()).sum();
        assert!(table.to_text().len() <= words + table.n_rows as usize + max_cells + table.cells.len());
    }
}

/// A stretch of a text of the article.
fn check_located(article: &Article, place: &Located) {
    let text = text_of(article, &place.text_id).unwrap_or_else(|| panic!("{} is no text", place.text_id));
    let words = text.get(place.start..place.end).unwrap_or_else(|| panic!("{place:?} is no part of its text"));
    assert!(!words.is_empty(), "{place:?} is empty");
}

/// By rules a text is its quotes, and each stands where it says, in its text and in the file.
fn check_staged(source: &str, article: &Article, staged: &StagedText, separator: &str) {
    let texts = source_texts(article, &[staged]);
    let mut words = Vec::new();
    for quote in &staged.quotes {
        let text = texts.iter().find(|text| text.text_id == quote.span.text_id).expect("the text of a quote");
        let (start, end) = (quote.span.start as usize, quote.span.end as usize);
        assert!(start < end && end <= text.text.chars().count(), "{quote:?} is no part of its text");
        words.push(text.text.chars().skip(start).take(end - start).collect::<String>());
        let xml = source.get(quote.xml_start as usize..quote.xml_end as usize);
        assert!(xml.is_some_and(|xml| !xml.is_empty()), "{quote:?} stands nowhere in the file");
    }
    assert_eq!(staged.text, words.join(separator), "a text that is not its quotes");
}

fn check_staging(source: &str, article: &Article, rules: &Rules, account: &RefCell<Account>) {
    let roles = roles(article);
    assert_eq!(roles.len(), article.paragraphs.len(), "a role for each paragraph");
    let found = series(article, &roles);
    let mut owned = BTreeSet::new();
    for patient in &found.patients {
        assert!(patient.paragraphs.is_sorted() && patient.figures.is_sorted());
        assert!(patient.figures.iter().all(|at| (*at as usize) < article.figures.len()));
        for at in &patient.paragraphs {
            assert!((*at as usize) < article.paragraphs.len());
            assert!(owned.insert(*at), "paragraph {at} belongs to two patients");
        }
    }
    let obstacles = obstacles(article, &roles, &found, &rules.case_reports);
    let reasons: BTreeSet<&str> = obstacles.iter().map(|obstacle| obstacle.reason).collect();
    assert_eq!(reasons.len(), obstacles.len(), "a reason is given twice");
    assert!(reasons.iter().all(|reason| REASONS.contains(reason)));
    account.borrow_mut().n_series += u64::from(!found.patients.is_empty());
    check_case(source, article, None, rules, account);
    for patient in found.patients.iter().take(3) {
        check_case(source, article, Some(patient), rules, account);
    }
}

/// What `convert_case` does by rules.
fn check_case(
    source: &str,
    article: &Article,
    patient: Option<&PatientSegment>,
    rules: &Rules,
    account: &RefCell<Account>,
) {
    let roles = roles(article);
    let text = report(article, patient, 60_000);
    assert!(text.chars().count() <= 60_100, "a report of {} bytes", text.len());
    let Ok(diagnosis) = final_diagnosis(article, &roles, patient, &rules.case_reports) else { return };
    account.borrow_mut().n_diagnoses += 1;
    assert!(!diagnosis.diagnosis.trim().is_empty());
    diagnosis.support.iter().chain([&diagnosis.quote]).for_each(|place| check_located(article, place));
    assert!(diagnosis.support.contains(&diagnosis.quote), "the quote is no support");
    let mask = Mask::new(&diagnosis, &rules.examinations, &rules.words);
    let draft = presentation(article, &roles, patient, &mask, &rules.examinations);
    draft.withheld.iter().for_each(|withheld| check_located(article, &withheld.place));
    let mut staged: Vec<(StagedText, &str)> = Vec::new();
    for (name, text) in draft.presentation.fields() {
        let Some(text) = text else { continue };
        for quote in source_texts(article, &[text]) {
            assert!(!quote.text.is_empty(), "{name}");
        }
        staged.push((text.clone(), separator(name)));
    }
    account.borrow_mut().n_presentations += u64::from(!staged.is_empty());
    let reasons = reasoning(article, &roles, patient, &diagnosis);
    account.borrow_mut().n_reasonings += u64::from(reasons.is_some());
    staged.extend(reasons.map(|text| (text, " ")));
    for figure in article.figures.iter().take(40) {
        for panel in 0..u32::try_from(figure.graphics.len()).expect("few").min(30) {
            let image = findings(article, figure, panel, &diagnosis, &rules.examinations);
            account.borrow_mut().n_findings += u64::from(image.image_finding.is_some());
            let texts = [image.image_finding, image.diagnostic_significance, image.caption];
            staged.extend(texts.into_iter().flatten().map(|text| (text, " ")));
        }
    }
    staged.iter().for_each(|(text, separator)| check_staged(source, article, text, separator));
    let texts: Vec<&StagedText> = staged.iter().map(|(text, _)| text).collect();
    let (n_sentences, n_covered) = coverage(article, &roles, patient, &texts);
    assert!(n_covered <= n_sentences);
    let support = Sentences::of(article, patient).support(&diagnosis.diagnosis);
    support.iter().flatten().for_each(|place| check_located(article, place));
}

/// Files that are one small thing over and over, which nobody's article is: what is read of them stays in proportion, too.
#[test]
fn files_of_one_element_stay_in_proportion() {
    const BYTES: usize = 300_000;
    let longest = "x".repeat(256);
    let body = |content: String| format!("<article><body>{content}</body></article>");
    let meta = |content: String| format!("<article><front><article-meta>{content}</article-meta></front></article>");
    let many = |piece: &str| piece.repeat(BYTES / piece.len());
    let nested = |open: &str, close: &str, depth: usize| {
        body(format!("{}<p>{}</p>{}", open.repeat(depth), many("word "), close.repeat(depth)))
    };
    let files = [
        ("paragraphs", body(many("<p/>"))),
        ("figures", body(many("<fig/>"))),
        ("graphics", body(format!("<fig>{}</fig>", many("<graphic/>")))),
        ("cells", body(format!("<table-wrap><table><tr>{}</tr></table></table-wrap>", many("<td/>")))),
        ("rows", body(format!("<table-wrap><table>{}</table></table-wrap>", many("<tr><td colspan=\"1000\"/></tr>")))),
        ("tables", body(format!("<table-wrap><caption><p>{longest}</p></caption>{}</table-wrap>", many("<table/>")))),
        (
            "references",
            format!(
                "<article><back><ref-list><ref id=\"{longest}\">{}</ref></ref-list></back></article>",
                many("<mixed-citation/>")
            ),
        ),
        ("runs", body(format!("<p>{}</p>", many("&lt;a")))),
        ("mentions", body(format!("<p><xref ref-type=\"{longest}\" rid=\"{}\">1</xref></p>", many("a ")))),
        (
            "affiliations",
            meta(format!(
                "<contrib-group><contrib><xref ref-type=\"aff\" rid=\"{}\"/></contrib></contrib-group><aff id=\"a\">{longest}</aff>",
                many("a ")
            )),
        ),
        (
            "keywords",
            meta(format!(
                "<kwd-group kwd-group-type=\"{longest}\" xml:lang=\"{longest}\">{}</kwd-group>",
                many("<kwd>a</kwd>")
            )),
        ),
        ("dates", meta(format!("<history><event event-type=\"{longest}\">{}</event></history>", many("<date/>")))),
        ("titles", body(format!("<sec><title>{longest}</title>{}</sec>", many("<p/>")))),
        ("figures in captions", nested("<fig><caption><p>", "</p></caption></fig>", 40)),
        ("terms in definitions", nested("<def-list><def-item><def>", "</def></def-item></def-list>", 40)),
        ("lists in lists", nested("<list><list-item>", "</list-item></list>", 60)),
        ("entities", format!("<!DOCTYPE article [<!ENTITY e \"{}\">]>{}", "<p/>".repeat(60), body(many("&e;")))),
    ];
    let mut refused = Vec::new();
    for (name, file) in files {
        let Ok(articles) = jats::read_all(file.as_bytes(), Limits::default()) else {
            refused.push(name);
            continue;
        };
        let mut weight = Counter(0);
        serde_json::to_writer(&mut weight, &articles).expect("JSON");
        eprintln!("{name}: {} times", weight.0 / file.len());
        let most = 200 * file.len() + (1 << 20);
        assert!(weight.0 <= most, "{name}: {} bytes of XML are {} bytes of JSON", file.len(), weight.0);
        articles.iter().for_each(|article| check_offsets(&file, article));
    }
    assert_eq!(refused, ["affiliations", "entities"]);
}

/// Does the check fail, and how? A panic is told by its first line.
fn fault(bytes: &[u8], rules: &Rules) -> Option<String> {
    let failed = catch_unwind(AssertUnwindSafe(|| check(bytes, rules, &RefCell::default()))).err()?;
    let text = failed.downcast_ref::<String>().cloned();
    let text = text.or_else(|| failed.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
    Some(text.lines().next().unwrap_or_default().to_owned())
}

/// A fault without its numbers and quotations, so that one mistake is one.
fn kind_of(fault: &str) -> String {
    fault.chars().filter(|c| !c.is_ascii_digit()).take(40).collect()
}

/// The smallest file that taking away finds and that has the same fault.
fn reduce(bytes: &[u8], rules: &Rules) -> Vec<u8> {
    let Some(wanted) = fault(bytes, rules).map(|fault| kind_of(&fault)) else { return bytes.to_vec() };
    let started = Instant::now();
    let is_same = |bytes: &[u8]| fault(bytes, rules).is_some_and(|fault| kind_of(&fault) == wanted);
    let mut least = bytes.to_vec();
    let mut before = usize::MAX;
    while least.len() < before && started.elapsed() < Duration::from_secs(60) {
        before = least.len();
        // Elements from the outermost in, then their tags, then bytes.
        for is_whole in [true, false] {
            let mut position = 0;
            while let Some(element) = elements(&least).get(position).cloned() {
                let mut shorter = least.clone();
                if is_whole {
                    shorter.drain(element.whole());
                } else {
                    shorter.drain(element.inner_end..element.end);
                    shorter.drain(element.tag);
                }
                if is_same(&shorter) {
                    least = shorter
                } else {
                    position += 1
                }
                if started.elapsed() > Duration::from_secs(60) {
                    break;
                }
            }
        }
        let mut length = least.len() / 2;
        while length > 0 && started.elapsed() < Duration::from_secs(60) {
            let mut at = 0;
            while at + length <= least.len() {
                let mut shorter = least.clone();
                shorter.drain(at..at + length);
                if is_same(&shorter) { least = shorter } else { at += length }
            }
            length /= 2;
        }
    }
    least
}

#[test]
fn changed_articles_are_read_or_refused() {
    let seeds = seeds();
    let rules = Rules::read();
    let seconds = std::env::var("CASEMILL_FUZZ_SECONDS").ok().map(|text| text.parse().expect("a number of seconds"));
    let account = RefCell::new(Account::default());
    for seed in &seeds {
        check(&seed.bytes, &rules, &account);
    }
    // Where a run ends without a word (a stack that is too small, a kill), its last input is here.
    let last = seconds.map(|_: u64| std::env::temp_dir().join("casemill-fuzz-last.xml"));
    let slow = std::env::temp_dir().join("casemill-fuzz-slowest.xml");
    let strategy = (any::<Index>(), proptest::collection::vec(change(), 1..12));
    let changed = |place: &Index, changes: &[Change]| {
        let mut bytes = seeds[place.index(seeds.len())].bytes.clone();
        changes.iter().for_each(|change| change.apply(&mut bytes, &seeds));
        bytes
    };
    let started = Instant::now();
    let mut faults: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let config = ProptestConfig {
            cases: CASES,
            failure_persistence: None,
            max_shrink_time: 60_000,
            ..ProptestConfig::default()
        };
        let outcome = TestRunner::new(config).run(&strategy, |(place, changes)| {
            let bytes = changed(&place, &changes);
            if let Some(last) = &last {
                std::fs::write(last, &bytes).expect("a temporary file");
            }
            let begun = Instant::now();
            check(&bytes, &rules, &account);
            let mut account = account.borrow_mut();
            account.n += 1;
            if begun.elapsed() > account.slowest {
                account.slowest = begun.elapsed();
                account.slowest_bytes = bytes.len();
                if last.is_some() {
                    std::fs::write(&slow, &bytes).expect("a temporary file");
                }
            }
            Ok(())
        });
        match outcome {
            Ok(()) => {}
            Err(TestError::Fail(reason, (place, changes))) => {
                let least = reduce(&changed(&place, &changes), &rules);
                let reason = reason.to_string();
                let seed = &seeds[place.index(seeds.len())].name;
                let input = String::from_utf8_lossy(&least).into_owned();
                let told = format!("{reason}\n  {seed} after {changes:?}\n  smallest ({} bytes): {input}", least.len());
                eprintln!("{told}");
                faults.entry(kind_of(&reason)).or_insert(told);
            }
            Err(TestError::Abort(reason)) => panic!("{reason}"),
        }
        if seconds.is_none_or(|seconds| started.elapsed().as_secs() >= seconds) {
            break;
        }
    }
    let account = account.into_inner();
    eprintln!("{account:#?}\n{:.0} s", started.elapsed().as_secs_f64());
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.into_values().collect::<Vec<_>>().join("\n"));
    // A run in which nearly nothing is read would prove nothing.
    assert!(account.n_read * 2 > account.n && account.n_presentations * 20 > account.n, "{account:?}");
    assert!(!account.refused.is_empty());
}
