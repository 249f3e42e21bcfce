//! A toy project whose stages have every port shape, run through the library.
//!
//! Its raw files hold one note a line, `id<TAB>text`. The words of a text say what becomes of it, so that a
//! test can read its own expectation off the input.

use anyhow::Context;
use casemill::config::Project;
use casemill::engine::stream::Upstream;
use casemill::engine::{BuildOptions, BuildSummary, Event, Llm, NodePlan, Session, SessionOptions, State};
use casemill::record::ledger::{LedgerRow, SourceCounts};
use casemill::record::{Hash, Provenance, Record, RecordId, Row, from_batch};
use casemill::source::lines::{self, RawLine};
use casemill::stage::*;
use casemill::store::{Workspace, parquet, shard};
use polars::prelude::{LazyFrame, col};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The one record type of the toy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    pub record_id: RecordId,
    pub provenance: Provenance,
    pub text: String,
    /// Raw media.
    pub picture: Option<MediaRef>,
    /// Derived media.
    pub thumbnail: Option<MediaRef>,
    pub rank: Option<u64>,
    pub answer: Option<String>,
    pub flags: Vec<String>,
}

impl Row for Note {
    const NAME: &'static str = "note";
    const TITLE: &'static str = "A note.";
}

impl Record for Note {
    fn record_id(&self) -> &RecordId {
        &self.record_id
    }

    fn set_record_id(&mut self, id: RecordId) {
        self.record_id = id;
    }

    fn provenance(&self) -> &Provenance {
        &self.provenance
    }
}

/// Side row: how long a note is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Length {
    pub record_id: RecordId,
    pub n_chars: u64,
}

impl Row for Length {
    const NAME: &'static str = "length";
    const TITLE: &'static str = "How long a note is.";
}

/// Side row: what a note was split into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    pub record_id: RecordId,
    pub parts: Vec<String>,
}

impl Row for Parts {
    const NAME: &'static str = "parts";
    const TITLE: &'static str = "What a note was split into.";
}

/// Side row: the place of a note among all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    pub record_id: RecordId,
    /// From 1, the longest first.
    pub rank: u64,
    /// Of the length of the longest note.
    pub share: f64,
    /// The other notes with the same first letter.
    pub related: Vec<RecordId>,
}

impl Row for Rank {
    const NAME: &'static str = "rank";
    const TITLE: &'static str = "The place of a note among all.";
}

pub const STAGES: &[StageDef] =
    &[ASK_NOTES, DRAW_NOTES, FILTER_NOTES, LABEL_NOTES, LOOK_NOTES, RANK_NOTES, READ_NOTES, SPLIT_NOTES];

/// Reads notes; `@name` in a text names a raw file beside it as media.
pub const READ_NOTES: StageDef = StageDef {
    name: "read_notes",
    summary: "Reads notes, one a line",
    shape: Shape::Reader,
    revision: 1,
    inputs: &[],
    outputs: &[Port::records::<Note>("notes"), Port::side::<Length>("lengths")],
    resources: &[],
    reasons: &["no_tab", "empty_text"],
    settings: SettingsType::of::<ReadSettings>(),
    build: |arguments| Ok(AnyStage::reader(ReadNotes(arguments.settings()?))),
};

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReadSettings {
    /// Put before every text.
    prefix: String,
}

impl Settings for ReadSettings {}

struct ReadNotes(ReadSettings);

const LINE_CAP: usize = 1000;

/// The source without the files that are media.
fn texts(source: &RawSource) -> RawSource {
    let mut texts = source.clone();
    texts.files.retain(|file| file.path.ends_with(".txt"));
    texts
}

fn line_text<'a>(line: &'a RawLine<'_>) -> anyhow::Result<&'a str> {
    match line {
        RawLine::Text(bytes) => Ok(std::str::from_utf8(bytes)?),
        RawLine::TooLong { .. } => anyhow::bail!("a toy line is short"),
    }
}

fn identify(source: &str, line: &RawLine<'_>) -> anyhow::Result<RecordId> {
    Ok(match line_text(line)?.split_once('\t') {
        Some((id, _)) => RecordId::native(source, id),
        None => RecordId::from_raw_hash(source, &line.sha256()),
    })
}

impl Reader for ReadNotes {
    type Out = Note;

    fn cut(&self, source: &RawSource, limits: ShardLimits) -> anyhow::Result<Cut> {
        lines::cut(&texts(source), limits, LINE_CAP, |_, _, line| identify(&source.name, line))
    }

    fn read(&self, source: &RawSource, slice: &Slice, out: &mut ReaderOutput<Note>) -> anyhow::Result<()> {
        lines::read(&texts(source), slice, LINE_CAP, |file, position, line, occurrence| {
            let record_id = identify(&source.name, line)?.occurrence(occurrence);
            let raw_sha256 = line.sha256();
            let text = line_text(line)?.split_once('\t').map(|(_, text)| text.trim());
            let fault = match text {
                None => Some((casemill::record::ledger::Exit::Quarantined, Cause::new("no_tab", "0 tabs"))),
                Some("") => Some((casemill::record::ledger::Exit::Dropped, Cause::new("empty_text", "0 characters"))),
                Some(_) => None,
            };
            if let Some((exit, cause)) = fault {
                let (file, line) = (file.path.clone(), position.line);
                out.exit(RawExit { record_id, exit, cause, file, line, raw_sha256 });
                return Ok(());
            }
            let text = format!("{}{}", self.0.prefix, text.unwrap_or_default());
            let name = text.split_whitespace().find_map(|word| word.strip_prefix('@'));
            let picture = match name {
                None => None,
                Some(name) => {
                    let path = format!("{}/{name}", source.name);
                    let file = source.files.iter().find(|file| file.path == path);
                    Some(out.raw_media(file.with_context(|| format!("no raw file {path}"))?))
                }
            };
            out.side("lengths", Length { record_id: record_id.clone(), n_chars: text.chars().count() as u64 });
            out.keep(Note {
                record_id,
                provenance: Provenance {
                    source: source.name.clone(),
                    file: file.path.clone(),
                    line: position.line,
                    raw_sha256,
                    rights: source.rights.clone(),
                },
                text,
                picture,
                thumbnail: None,
                rank: None,
                answer: None,
                flags: Vec::new(),
            });
            Ok(())
        })
    }
}

/// Splits at the separator; drops and quarantines by the first word.
pub const SPLIT_NOTES: StageDef = StageDef {
    name: "split_notes",
    summary: "Splits notes",
    shape: Shape::Record,
    revision: 1,
    inputs: &[Port::records::<Note>("notes")],
    outputs: &[Port::records::<Note>("notes"), Port::side::<Parts>("parts")],
    resources: &[],
    reasons: &["asked", "no_parts", "odd"],
    settings: SettingsType::of::<SplitSettings>(),
    build: |arguments| Ok(AnyStage::record(SplitNotes(arguments.settings()?))),
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SplitSettings {
    separator: String,
}

impl Default for SplitSettings {
    fn default() -> Self {
        Self { separator: ";".to_owned() }
    }
}

impl Settings for SplitSettings {}

struct SplitNotes(SplitSettings);

impl RecordStage for SplitNotes {
    type In = Note;
    type Out = Note;

    fn apply(&self, note: Note, out: &mut Emitter<'_, Note>, _: &StageContext<'_>) -> anyhow::Result<Verdict> {
        match note.text.split_whitespace().next() {
            Some("drop") => return Ok(Verdict::Drop(Cause::new("asked", note.text))),
            Some("odd") => return Ok(Verdict::Quarantine(Cause::new("odd", note.text))),
            _ => {}
        }
        let parts: Vec<String> = note
            .text
            .split(&self.0.separator)
            .map(|part| part.trim().to_owned())
            .filter(|part| !part.is_empty())
            .collect();
        if parts.is_empty() {
            return Ok(Verdict::Drop(Cause::new("no_parts", note.text)));
        }
        if parts.len() > 1 {
            out.side("parts", Parts { record_id: note.record_id.clone(), parts: parts.clone() });
        }
        for text in parts {
            out.emit(Note { text, ..note.clone() });
        }
        Ok(Verdict::Keep)
    }
}

/// Makes a thumbnail of every note and looks at its picture.
pub const DRAW_NOTES: StageDef = StageDef {
    name: "draw_notes",
    summary: "Makes thumbnails",
    shape: Shape::Record,
    revision: 1,
    inputs: &[Port::records::<Note>("notes")],
    outputs: &[Port::records::<Note>("notes")],
    resources: &[],
    reasons: &[],
    settings: SettingsType::of::<NoSettings>(),
    build: |_| Ok(AnyStage::record(DrawNotes)),
};

struct DrawNotes;

fn media_bytes(context: &StageContext<'_>, media: &MediaRef) -> anyhow::Result<Vec<u8>> {
    Ok(std::fs::read(context.media.path(media)?)?)
}

impl RecordStage for DrawNotes {
    type In = Note;
    type Out = Note;

    fn apply(
        &self,
        mut note: Note,
        out: &mut Emitter<'_, Note>,
        context: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        if let Some(picture) = &note.picture {
            note.flags.push(format!("picture of {} bytes", media_bytes(context, picture)?.len()));
        }
        note.thumbnail = Some(out.media(thumbnail(&note.text)));
        out.emit(note);
        Ok(Verdict::Keep)
    }
}

/// What `draw_notes` derives from a text.
pub fn thumbnail(text: &str) -> Vec<u8> {
    format!("drawn: {text}").into_bytes()
}

/// Opens the derived media that an earlier node made, and the raw media that the reader named.
pub const LOOK_NOTES: StageDef = StageDef {
    name: "look_notes",
    summary: "Looks at media",
    build: |_| Ok(AnyStage::record(LookNotes)),
    ..DRAW_NOTES
};

struct LookNotes;

impl RecordStage for LookNotes {
    type In = Note;
    type Out = Note;

    fn apply(
        &self,
        mut note: Note,
        out: &mut Emitter<'_, Note>,
        context: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        let thumbnail = note.thumbnail.as_ref().context("a note without thumbnail")?;
        note.flags.push(format!("saw {}", String::from_utf8(media_bytes(context, thumbnail)?)?));
        if let Some(picture) = &note.picture {
            note.flags.push(format!("and {}", Hash::of(&media_bytes(context, picture)?).short()));
        }
        out.emit(note);
        Ok(Verdict::Keep)
    }
}

/// Only selects: by length, and by the words of a resource.
pub const FILTER_NOTES: StageDef = StageDef {
    name: "filter_notes",
    summary: "Selects notes",
    shape: Shape::Filter,
    revision: 1,
    inputs: &[Port::records::<Note>("notes")],
    outputs: &[Port::records::<Note>("notes"), Port::side::<Length>("short")],
    resources: &[ResourceDecl { name: "words", summary: "words that drop a note, one a line" }],
    reasons: &["too_short", "bad_word", "shouts"],
    settings: SettingsType::of::<FilterSettings>(),
    build: |arguments| {
        let words = arguments.resources.text("words")?.lines().map(str::to_owned).collect();
        Ok(AnyStage::filter(FilterNotes { settings: arguments.settings()?, words }))
    },
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FilterSettings {
    min_chars: u64,
}

impl Default for FilterSettings {
    fn default() -> Self {
        Self { min_chars: 3 }
    }
}

impl Settings for FilterSettings {}

struct FilterNotes {
    settings: FilterSettings,
    words: Vec<String>,
}

impl FilterStage for FilterNotes {
    type In = Note;

    fn judge(&self, note: &Note, sides: &mut SideEmitter, _: &StageContext<'_>) -> anyhow::Result<Verdict> {
        let n_chars = note.text.chars().count() as u64;
        if n_chars < self.settings.min_chars {
            sides.side("short", Length { record_id: note.record_id.clone(), n_chars });
            return Ok(Verdict::Drop(Cause::new("too_short", n_chars.to_string())));
        }
        if let Some(word) = note.text.split_whitespace().find(|word| self.words.iter().any(|bad| bad == word)) {
            return Ok(Verdict::Drop(Cause::new("bad_word", word)));
        }
        if note.text.contains('!') {
            return Ok(Verdict::Quarantine(Cause::new("shouts", note.text.clone())));
        }
        Ok(Verdict::Keep)
    }
}

/// Drops the shortest notes of each first letter that has more; quarantines notes that begin with `?`.
pub const RANK_NOTES: StageDef = StageDef {
    name: "rank_notes",
    summary: "Ranks notes",
    shape: Shape::Table,
    revision: 1,
    inputs: &[Port::records::<Note>("notes")],
    outputs: &[Port::records::<Note>("notes"), Port::side::<Rank>("ranks")],
    resources: &[],
    reasons: &["shortest", "no_letter"],
    settings: SettingsType::of::<RankSettings>(),
    build: |arguments| Ok(AnyStage::table(RankNotes(arguments.settings()?))),
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RankSettings {
    /// So many of a letter are dropped.
    shortest: u64,
}

impl Default for RankSettings {
    fn default() -> Self {
        Self { shortest: 1 }
    }
}

impl Settings for RankSettings {}

struct RankNotes(RankSettings);

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct RankColumns {
    letter: String,
    n_chars: u64,
}

impl Row for RankColumns {
    const NAME: &'static str = "rank_columns";
    const TITLE: &'static str = "What rank_notes compares.";
}

impl RankColumns {
    pub fn of(note: &Note) -> anyhow::Result<Self> {
        Ok(Self { letter: letter(&note.text), n_chars: note.text.chars().count() as u64 })
    }
}

pub fn letter(text: &str) -> String {
    text.chars().take(1).flat_map(char::to_lowercase).collect()
}

impl TableStage for RankNotes {
    type In = Note;
    type Columns = RankColumns;

    fn columns(&self, note: &Note) -> anyhow::Result<RankColumns> {
        RankColumns::of(note)
    }

    fn decide(&self, table: LazyFrame, sides: &mut SideEmitter) -> anyhow::Result<Vec<Decision>> {
        let frame = table.select([EngineColumns::RECORD_ID, "letter", "n_chars"].map(col)).collect()?;
        let (ids, letters) = (frame.column(EngineColumns::RECORD_ID)?.str()?, frame.column("letter")?.str()?);
        let lengths = frame.column("n_chars")?.u64()?;
        let mut notes: Vec<(u64, RecordId, String)> = Vec::new();
        for row in 0..frame.height() {
            let (id, letter) = (ids.get(row).context("an id")?, letters.get(row).context("a letter")?);
            notes.push((lengths.get(row).context("a length")?, RecordId::parse(id), letter.to_owned()));
        }
        notes.sort();
        let mut by_letter: BTreeMap<&str, Vec<&RecordId>> = BTreeMap::new();
        for (_, id, letter) in &notes {
            by_letter.entry(letter).or_default().push(id);
        }
        let longest = notes.iter().map(|(n, _, _)| *n).max().unwrap_or(1);
        let mut decisions = Vec::new();
        for (place, (n_chars, id, letter)) in notes.iter().enumerate() {
            let group = by_letter.get(letter.as_str()).context("a group")?;
            let place_in_group = group.iter().position(|other| *other == id).context("in its group")? as u64;
            let verdict = if letter == "?" {
                Verdict::Quarantine(Cause::new("no_letter", "?"))
            } else if place_in_group < self.0.shortest.min(group.len() as u64 - 1) {
                Verdict::Drop(Cause::new("shortest", format!("{n_chars} of {letter}")))
            } else {
                Verdict::Keep
            };
            if letter != "?" {
                let mut related: Vec<RecordId> = group.iter().filter(|other| **other != id).copied().cloned().collect();
                related.sort();
                let (rank, share) = ((notes.len() - place) as u64, *n_chars as f64 / longest as f64);
                sides.side("ranks", Rank { record_id: id.clone(), rank, share, related });
            }
            decisions.push(Decision { record_id: id.clone(), verdict });
        }
        Ok(decisions)
    }
}

/// Reads the stream, the side table of ranks and, when it is there, a side table of hints.
pub const LABEL_NOTES: StageDef = StageDef {
    name: "label_notes",
    summary: "Labels notes",
    shape: Shape::Record,
    revision: 1,
    inputs: &[Port::records::<Note>("notes"), Port::side::<Rank>("ranks"), Port::side::<Length>("hints").optional()],
    outputs: &[Port::records::<Note>("notes")],
    resources: &[],
    reasons: &["no_rank"],
    settings: SettingsType::of::<NoSettings>(),
    build: |_| Ok(AnyStage::record(LabelNotes)),
};

struct LabelNotes;

impl RecordStage for LabelNotes {
    type In = Note;
    type Out = Note;

    fn apply(
        &self,
        mut note: Note,
        out: &mut Emitter<'_, Note>,
        context: &StageContext<'_>,
    ) -> anyhow::Result<Verdict> {
        let ranks: Vec<Rank> = context.side_rows("ranks", &note.record_id)?;
        let [rank] = ranks.as_slice() else {
            return Ok(Verdict::Quarantine(Cause::new("no_rank", ranks.len().to_string())));
        };
        note.rank = Some(rank.rank);
        note.flags.extend(rank.related.iter().map(|id| format!("beside {id}")));
        let native = note.record_id.as_str().split_once(':').map_or("", |(_, native)| native);
        for hint in context.side_rows::<Length>("hints", &RecordId::native("extra", native))? {
            note.flags.push(format!("hint {}", hint.n_chars));
        }
        out.emit(note);
        Ok(Verdict::Keep)
    }
}

/// Asks a model about the text; the reply says what becomes of the note.
pub const ASK_NOTES: StageDef = StageDef {
    name: "ask_notes",
    summary: "Asks a model",
    shape: Shape::Model,
    revision: 1,
    inputs: &[Port::records::<Note>("notes")],
    outputs: &[Port::records::<Note>("notes"), Port::side::<Length>("replies")],
    resources: &[],
    reasons: &["refused", "empty_reply"],
    settings: SettingsType::of::<AskSettings>(),
    build: |arguments| Ok(AnyStage::model(AskNotes(arguments.settings()?))),
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AskSettings {
    samples: u32,
}

impl Default for AskSettings {
    fn default() -> Self {
        Self { samples: 1 }
    }
}

impl Settings for AskSettings {
    fn models(&self) -> Vec<String> {
        vec!["judge".to_owned()]
    }
}

struct AskNotes(AskSettings);

pub fn call(text: &str, sample: u32) -> Call {
    let message = |role, text: &str| Message { role, parts: vec![Part::Text(text.to_owned())] };
    let messages = vec![message(Role::System, "Judge the note."), message(Role::User, text)];
    Call { model: "judge".to_owned(), messages, format: None, sample }
}

/// The note that a call asks about.
fn note_of(call: &Call) -> &str {
    match call.messages.last().map(|message| message.parts.as_slice()) {
        Some([Part::Text(text)]) => text,
        _ => "",
    }
}

/// The key of a call.
fn key(call: &Call) -> Hash {
    Hash::of_json(&(&call.messages, call.sample)).expect("a key")
}

impl ModelStage for AskNotes {
    type In = Note;
    type Out = Note;

    fn calls(&self, note: &Note, _: &StageContext<'_>) -> anyhow::Result<Vec<Call>> {
        Ok((0..self.0.samples).map(|sample| call(&note.text, sample)).collect())
    }

    fn read(&self, mut note: Note, results: Vec<CallResult>, out: &mut Emitter<'_, Note>) -> anyhow::Result<Verdict> {
        let replies = match complete(results) {
            Ok(replies) => replies,
            Err(failure) => return Ok(failure.quarantine()),
        };
        let texts: Vec<&str> = replies.iter().filter_map(|reply| reply.value.as_str()).collect();
        let answer = texts.join(" + ");
        out.side("replies", Length { record_id: note.record_id.clone(), n_chars: answer.chars().count() as u64 });
        if texts.contains(&"") {
            return Ok(Verdict::Quarantine(Cause::new("empty_reply", note.text)));
        }
        if texts.contains(&"no") {
            return Ok(Verdict::Drop(Cause::new("refused", answer)));
        }
        if texts.contains(&"twice") {
            out.emit(Note { answer: Some("first".to_owned()), ..note.clone() });
            note.answer = Some("second".to_owned());
        } else {
            note.answer = Some(answer);
        }
        out.emit(note);
        Ok(Verdict::Keep)
    }

    fn without_model(&self, mut note: Note, out: &mut Emitter<'_, Note>) -> anyhow::Result<Verdict> {
        note.flags.push("not_run".to_owned());
        out.emit(note);
        Ok(Verdict::Keep)
    }
}

/// A model service with scripted replies, which it stores.
#[derive(Default)]
pub struct Replies {
    stored: Mutex<BTreeMap<Hash, String>>,
    n_calls: AtomicU64,
}

impl Replies {
    /// What the model says when it is asked for the first time.
    pub fn script(call: &Call) -> String {
        let words: Vec<&str> = note_of(call).split_whitespace().collect();
        match words.as_slice() {
            words if words.contains(&"refuse") => "no".to_owned(),
            words if words.contains(&"hush") => String::new(),
            words if words.contains(&"twin") => "twice".to_owned(),
            words => format!("{} words, sample {}", words.len(), call.sample),
        }
    }

    /// How often the model was asked, since a reply was not stored.
    pub fn n_calls(&self) -> u64 {
        self.n_calls.load(Ordering::SeqCst)
    }

    pub fn n_stored(&self) -> usize {
        self.stored.lock().unwrap().len()
    }

    /// Puts another reply where one is stored.
    pub fn replace(&self, call: &Call, text: &str) {
        let old = self.stored.lock().unwrap().insert(key(call), text.to_owned());
        assert!(old.is_some_and(|old| old != text), "{} is stored with another reply", note_of(call));
    }
}

impl ModelService for Replies {
    fn ask(
        &self,
        asks: &mut dyn Iterator<Item = anyhow::Result<Ask>>,
        take: &mut dyn FnMut(CallResult) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for ask in asks {
            let call = ask?.call;
            let key = key(&call);
            let text = self
                .stored
                .lock()
                .unwrap()
                .entry(key.clone())
                .or_insert_with(|| {
                    self.n_calls.fetch_add(1, Ordering::SeqCst);
                    Self::script(&call)
                })
                .clone();
            let sha256 = Hash::of(text.as_bytes());
            take(Ok(Reply { value: text.into(), key, sha256, model: "toy/judge".to_owned(), repairs: Vec::new() }))?;
        }
        Ok(())
    }

    fn stored(&self, key: &Hash) -> anyhow::Result<Option<Hash>> {
        Ok(self.stored.lock().unwrap().get(key).map(|text| Hash::of(text.as_bytes())))
    }

    fn identity(&self, model: &str) -> anyhow::Result<serde_json::Value> {
        Ok(model.into())
    }

    fn may_ask(&self) -> bool {
        true
    }

    fn counts(&self) -> CallCounts {
        CallCounts::default()
    }
}

/// A project in a temporary folder and how to open it.
pub struct Toy {
    folder: tempfile::TempDir,
    pub stages: &'static [StageDef],
    /// Name of the data folder.
    pub data: String,
    pub jobs: usize,
    pub limit: Option<u64>,
    pub service: Option<Arc<Replies>>,
}

/// Name of the pipeline.
pub const PIPELINE: &str = "toy";

impl Toy {
    /// A project with this pipeline and the sources `a`, `b` and `extra`; no raw files.
    pub fn new(pipeline: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let toy = Self { folder, stages: STAGES, data: "data".to_owned(), jobs: 2, limit: None, service: None };
        for source in ["a", "b", "extra"] {
            toy.write(
                &format!("sources/{source}.toml"),
                format!(
                    "name = '{source}'\ntitle = 'Notes'\norigin = 'nowhere'\npublished_licence = 'CC0-1.0'\n\
                     how_to_get = 'write them'\nformat = 'notes'\nfiles = ['*.txt', '*.bin']\n"
                ),
            );
        }
        toy.write("pipelines/toy.toml", pipeline);
        toy.write("pipelines/words.txt", "bad\n");
        std::fs::create_dir(toy.path("raw")).expect("a raw folder");
        toy
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub fn read(&self, below: &str) -> String {
        std::fs::read_to_string(self.path(below)).unwrap_or_else(|error| panic!("{below}: {error}"))
    }

    pub fn write(&self, below: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{below}: {error}"));
    }

    pub fn remove(&self, below: &str) {
        std::fs::remove_file(self.path(below)).unwrap_or_else(|error| panic!("{below}: {error}"));
    }

    /// Replaces text in a file; it must be there.
    pub fn edit(&self, below: &str, from: &str, to: &str) {
        let text = self.read(below);
        assert!(text.contains(from), "{below} does not hold {from:?}");
        self.write(below, text.replace(from, to));
    }

    pub fn open(&self) -> anyhow::Result<Session> {
        let llm = self.service.clone().map_or(Llm::Off, |service| Llm::Service(service));
        let options = SessionOptions {
            project: Project { root: self.folder.path().to_owned() },
            workspace: Workspace { raw: self.path("raw"), data: self.path(&self.data) },
            stages: self.stages,
            set: Vec::new(),
            models: None,
            limit: self.limit,
            llm,
        };
        Session::open(PIPELINE, options)
    }

    /// Builds everything.
    pub fn try_build(&self) -> anyhow::Result<(BuildSummary, Vec<Event>)> {
        let session = self.open()?;
        let _lock = session.workspace.lock("testing")?;
        let mut events = Vec::new();
        let interrupted = Arc::new(AtomicBool::new(false));
        let options = BuildOptions { jobs: self.jobs, to: None, only: None, force: None, interrupted };
        let summary = session.build(&options, &mut events)?;
        Ok((summary, events))
    }

    /// Builds everything and gives the names of the nodes that ran, in order.
    pub fn build(&self) -> Vec<String> {
        let (summary, events) = self.try_build().unwrap_or_else(|error| panic!("{error:?}"));
        let ran: Vec<String> = events
            .into_iter()
            .filter_map(|event| match event {
                Event::NodeFinished { node, .. } => Some(node),
                _ => None,
            })
            .collect();
        assert_eq!(ran.len(), summary.n_run);
        ran
    }

    /// `node state: why` in name order.
    pub fn plan(&self) -> Vec<String> {
        let built = self.built();
        let mut lines: Vec<String> = built
            .session
            .graph
            .nodes
            .iter()
            .zip(&built.plans)
            .map(|(node, plan)| {
                let why = if plan.why.is_empty() { String::new() } else { format!(": {}", plan.why.join("; ")) };
                format!("{} {}{why}", node.name, plan.state.as_str())
            })
            .collect();
        lines.sort();
        lines
    }

    /// The nodes that are not fresh, as [`Self::plan`] shows them.
    pub fn not_fresh(&self) -> Vec<String> {
        self.plan().into_iter().filter(|line| !line.ends_with(" fresh")).collect()
    }

    pub fn built(&self) -> Built {
        let session = self.open().unwrap_or_else(|error| panic!("{error:?}"));
        let plans = session.plan().unwrap_or_else(|error| panic!("{error:?}"));
        Built { session, plans }
    }
}

/// What the store holds.
pub struct Built {
    pub session: Session,
    pub plans: Vec<NodePlan>,
}

impl Built {
    pub fn node(&self, name: &str) -> (usize, &NodePlan) {
        let index = self.session.find_node(name).unwrap();
        (index, &self.plans[index])
    }

    pub fn manifest(&self, name: &str) -> &casemill::store::manifest::StageManifest {
        let (_, plan) = self.node(name);
        assert_eq!(plan.state, State::Fresh, "{name}: {}", plan.why.join("; "));
        plan.manifest.as_ref().unwrap()
    }

    pub fn counts(&self, name: &str) -> &SourceCounts {
        &self.manifest(name).counts
    }

    /// Folders of the shards of a node, in order.
    pub fn shards(&self, name: &str) -> Vec<PathBuf> {
        let folder: &Path = self.node(name).1.build_dir.as_deref().unwrap();
        let n = u32::try_from(self.manifest(name).shards.len()).unwrap();
        (0..n).map(|index| shard::shard_dir(folder, index)).collect()
    }

    /// The records that a node passes on, in stream order.
    pub fn records(&self, name: &str) -> Vec<Note> {
        let upstream = Upstream { session: &self.session, plans: &self.plans };
        let index = self.node(name).0;
        (0..self.manifest(name).n_stream_shards)
            .flat_map(|shard| from_batch::<Note>(&upstream.read_stream(index, shard, None).unwrap()).unwrap())
            .collect()
    }

    /// A table of a node, all shards: `part.parquet`, `ledger.parquet`, `side-….parquet`.
    fn table<R: serde::de::DeserializeOwned>(&self, name: &str, file: &str) -> Vec<R> {
        let paths = self.shards(name).into_iter().map(|folder| folder.join(file)).filter(|path| path.is_file());
        paths.flat_map(|path| from_batch::<R>(&parquet::read(&path).unwrap()).unwrap()).collect()
    }

    pub fn side<R: Row>(&self, name: &str, port: &str) -> Vec<R> {
        self.table(name, &shard::side_file(port))
    }

    pub fn ledger(&self, name: &str) -> Vec<LedgerRow> {
        self.table(name, shard::LEDGER)
    }
}
