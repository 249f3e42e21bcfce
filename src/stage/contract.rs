//! What a stage is. Four shapes: a *reader* turns raw files into records, a *record stage* maps one
//! record to 0..n (a *filter* is one that only selects), a *table stage* sees flat columns of all
//! records, a *model stage* is two pure functions around model calls. A stage sees records, its
//! settings, its declared resources and its context; never paths, arguments, environment or terminal.

use crate::record::ledger::Exit;
use crate::record::model::ReplyTrace;
pub use crate::record::raw::{Cut, Piece, RawFile, RawSource, ShardLimits, Slice};
use crate::record::{Hash, Record, RecordId, Row, RowType, to_batch};
use crate::source::tables::Form;
use crate::text::excerpt;
use arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a record leaves: a word from the stage's fixed list, and the number or text that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: &'static str,
    pub detail: String,
}

impl Cause {
    /// A long detail is cut: what decided can quote a source, but not hold a whole text.
    pub fn new(reason: &'static str, detail: impl Into<String>) -> Self {
        const LONGEST: usize = 501;
        let detail: String = detail.into();
        let detail = excerpt(&detail, LONGEST);
        Self { reason, detail }
    }
}

/// What a stage decides about one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Keep,
    /// A rule decided with all facts known.
    Drop(Cause),
    /// Undecidable or unprocessable.
    Quarantine(Cause),
}

impl Verdict {
    pub fn exit(self) -> Option<(Exit, Cause)> {
        match self {
            Self::Keep => None,
            Self::Drop(cause) => Some((Exit::Dropped, cause)),
            Self::Quarantine(cause) => Some((Exit::Quarantined, cause)),
        }
    }
}

/// Raw or derived media, named by the SHA-256 of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct MediaRef(pub Hash);

/// Rows for one side port.
trait SideRows: Any + Send {
    fn to_batch(&self) -> anyhow::Result<RecordBatch>;
    fn as_any(&mut self) -> &mut dyn Any;
    fn row_name(&self) -> &'static str;
    fn len(&self) -> usize;
}

impl<R: Row> SideRows for Vec<R> {
    fn to_batch(&self) -> anyhow::Result<RecordBatch> {
        to_batch(self)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn row_name(&self) -> &'static str {
        R::NAME
    }

    fn len(&self) -> usize {
        Vec::len(self)
    }
}

/// Collects side rows and media; part of every emitter.
#[derive(Default)]
pub struct SideEmitter {
    rows: BTreeMap<&'static str, Box<dyn SideRows>>,
    media: BTreeMap<Hash, Vec<u8>>,
    misuse: Option<String>,
}

impl SideEmitter {
    /// Adds a row to a side port that the stage declares with this row type.
    pub fn side<R: Row>(&mut self, port: &'static str, row: R) {
        let rows = self.rows.entry(port).or_insert_with(|| Box::new(Vec::<R>::new()));
        let name = rows.row_name();
        match rows.as_any().downcast_mut::<Vec<R>>() {
            Some(rows) => rows.push(row),
            None => self.misuse = Some(format!("side port `{port}` got `{}` rows after `{name}` rows", R::NAME)),
        }
    }

    /// Adds derived media; records name it by the returned reference.
    pub fn media(&mut self, bytes: Vec<u8>) -> MediaRef {
        let hash = Hash::of(&bytes);
        self.media.insert(hash.clone(), bytes);
        MediaRef(hash)
    }

    /// What was collected.
    pub fn finish(self) -> anyhow::Result<Emitted> {
        if let Some(misuse) = self.misuse {
            anyhow::bail!(misuse);
        }
        let mut emitted = Emitted { sides: BTreeMap::new(), media: self.media };
        for (port, rows) in &self.rows {
            if rows.len() > 0 {
                let side = SideBatch { row_name: rows.row_name(), batch: rows.to_batch()? };
                emitted.sides.insert(port, side);
            }
        }
        Ok(emitted)
    }
}

/// Side rows by port and derived media by hash.
pub struct Emitted {
    pub sides: BTreeMap<&'static str, SideBatch>,
    pub media: BTreeMap<Hash, Vec<u8>>,
}

/// Rows of one side port.
pub struct SideBatch {
    pub row_name: &'static str,
    pub batch: RecordBatch,
}

/// Takes what a record stage makes of one record.
pub struct Emitter<'a, T> {
    pub(super) records: Vec<T>,
    pub(super) sides: &'a mut SideEmitter,
}

impl<T> Emitter<'_, T> {
    /// Adds an output record. One output keeps the input's id; several get `_1`, `_2`, … from the engine.
    pub fn emit(&mut self, record: T) {
        self.records.push(record);
    }

    pub fn side<R: Row>(&mut self, port: &'static str, row: R) {
        self.sides.side(port, row);
    }

    pub fn media(&mut self, bytes: Vec<u8>) -> MediaRef {
        self.sides.media(bytes)
    }
}

/// Finds media by reference: the only way from a record to a file.
pub trait MediaStore: Send + Sync {
    fn path(&self, media: &MediaRef) -> anyhow::Result<PathBuf>;
}

/// The side tables at the input ports of a node.
#[derive(Default)]
pub struct SideInputs {
    pub tables: BTreeMap<&'static str, Arc<SideInput>>,
}

/// One side table, indexed by record.
pub struct SideInput {
    pub batch: RecordBatch,
    pub rows_of: BTreeMap<RecordId, Vec<u32>>,
}

/// What a stage may know beyond the record.
pub struct StageContext<'a> {
    pub pipeline: &'a str,
    pub node: &'a str,
    pub media: &'a dyn MediaStore,
    pub sides: &'a SideInputs,
}

impl StageContext<'_> {
    /// The rows that a side input port holds for one record, in table order.
    pub fn side_rows<R: Row>(&self, port: &str, id: &RecordId) -> anyhow::Result<Vec<R>> {
        let Some(table) = self.sides.tables.get(port) else { return Ok(Vec::new()) };
        let Some(rows) = table.rows_of.get(id) else { return Ok(Vec::new()) };
        let indices = arrow::array::UInt32Array::from(rows.clone());
        crate::record::from_batch(&arrow::compute::take_record_batch(&table.batch, &indices)?)
    }
}

/// One record in, 0..n out; side rows and media go through the emitter. Pure: equal input and settings
/// give equal bytes. The engine owns sharding, IO, counting and the ledger.
pub trait RecordStage: Send + Sync + 'static {
    type In: Record;
    type Out: Record;
    /// `Keep` goes with at least one emitted record, the others with none.
    fn apply(
        &self,
        record: Self::In,
        out: &mut Emitter<'_, Self::Out>,
        context: &StageContext<'_>,
    ) -> anyhow::Result<Verdict>;
}

/// A record stage that only selects: the store keeps ids, not copies.
pub trait FilterStage: Send + Sync + 'static {
    type In: Record;
    fn judge(&self, record: &Self::In, sides: &mut SideEmitter, context: &StageContext<'_>) -> anyhow::Result<Verdict>;
}

/// Sees flat columns of every record, decides every id exactly once.
pub trait TableStage: Send + Sync + 'static {
    type In: Record;
    /// Flat: scalars and strings, at most 1 KB a record together.
    type Columns: Row;
    fn columns(&self, record: &Self::In) -> anyhow::Result<Self::Columns>;
    /// `table` holds the declared columns and the engine's (see [`EngineColumns`]).
    fn decide(&self, table: polars::prelude::LazyFrame, sides: &mut SideEmitter) -> anyhow::Result<Vec<Decision>>;
}

/// Columns that the engine adds to those of a table stage.
pub struct EngineColumns;

impl EngineColumns {
    pub const RECORD_ID: &'static str = "_record_id";
    /// Input shard and row in it: the order of the stream.
    pub const SHARD: &'static str = "_shard";
    pub const ROW: &'static str = "_row";
    pub const SOURCE: &'static str = "_source";
    pub const FILE: &'static str = "_file";
    pub const LINE: &'static str = "_line";
    pub const RAW_SHA256: &'static str = "_raw_sha256";
}

/// The verdict of a table stage on one id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub record_id: RecordId,
    pub verdict: Verdict,
}

/// One request to a model. What it asks for is a pure function of the record, the settings and the prompt.
#[derive(Clone, Debug)]
pub struct Call {
    /// Name under `[models]` in the pipeline.
    pub model: String,
    pub messages: Vec<Message>,
    /// What the reply must be; without it any text will do.
    pub format: Option<Arc<ReplyFormat>>,
    /// From 0: repeated samples of one prompt differ in it.
    pub sample: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    pub role: Role,
    pub parts: Vec<Part>,
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    System,
    User,
    Assistant,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Text(String),
    /// Named by the hash of its bytes; the client finds them.
    Image {
        media: MediaRef,
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        media_type: String,
    },
}

/// A JSON Schema that a reply must fit.
#[derive(Debug)]
pub struct ReplyFormat {
    /// Letters, digits and `_`: servers want a name.
    pub name: String,
    pub schema: serde_json::Value,
    /// Of the canonical JSON of the schema.
    pub sha256: Hash,
}

impl ReplyFormat {
    pub fn new(name: &str, schema: serde_json::Value) -> anyhow::Result<Arc<Self>> {
        let sha256 = Hash::of_json(&schema)?;
        Ok(Arc::new(Self { name: name.to_owned(), schema, sha256 }))
    }
}

/// A complete reply that fits its schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What the text says in JSON; a text without a schema is a JSON string.
    pub value: serde_json::Value,
    /// Key of the call in the store of replies.
    pub key: Hash,
    /// Of the raw bytes that the server sent.
    pub sha256: Hash,
    /// `provider/model`
    pub model: String,
    /// What had to be set aside or mended to read it, such as `fence` or `trailing_comma`.
    pub repairs: Vec<String>,
}

impl Reply {
    /// What a record made from it says of it.
    pub fn trace(&self, stage: &str) -> ReplyTrace {
        ReplyTrace {
            stage: stage.to_owned(),
            model: self.model.clone(),
            call: self.key.clone(),
            sha256: self.sha256.clone(),
            repairs: self.repairs.clone(),
        }
    }
}

/// A call without an accepted reply.
#[derive(Clone, Debug)]
pub struct Failure {
    pub key: Hash,
    /// `provider/model`
    pub model: String,
    /// One of [`MODEL_REASONS`].
    pub reason: &'static str,
    pub detail: String,
}

/// What came of a call.
pub type CallResult = Result<Reply, Failure>;

/// Two pure halves; the engine sends the calls in between.
pub trait ModelStage: Send + Sync + 'static {
    type In: Record;
    type Out: Record;
    /// None for a record that is decided without a model.
    fn calls(&self, record: &Self::In, context: &StageContext<'_>) -> anyhow::Result<Vec<Call>>;
    /// What becomes of a record when its calls have ended, well or not: `results` are in the order of the calls, and as many.
    /// A stage that cannot do with less than all of its replies begins with [`complete`].
    fn read(
        &self,
        record: Self::In,
        results: Vec<CallResult>,
        out: &mut Emitter<'_, Self::Out>,
    ) -> anyhow::Result<Verdict>;
    /// Questions whose answers are known: before anything else every model of the node is asked them, and a node is not
    /// committed when one of them gets too many wrong (`min_controls` of the node).
    fn controls(&self) -> anyhow::Result<Vec<Control>> {
        Ok(Vec::new())
    }
    /// What becomes of a record when no model may be asked: what rules make of it, or the record with its model fields
    /// null and the flag `not_run`.
    fn without_model(&self, record: Self::In, out: &mut Emitter<'_, Self::Out>) -> anyhow::Result<Verdict>;
}

/// All replies, or the first failure, which puts the record in quarantine.
pub fn complete(results: Vec<CallResult>) -> Result<Vec<Reply>, Failure> {
    results.into_iter().collect()
}

impl Failure {
    /// A reply that fits and counts for nothing all the same; the reason is one that its stage declares.
    pub fn of(reply: &Reply, reason: &'static str) -> Self {
        let (key, model) = (reply.key.clone(), reply.model.clone());
        Self { key, detail: format!("by {model}"), model, reason }
    }

    pub fn quarantine(self) -> Verdict {
        Verdict::Quarantine(Cause::new(self.reason, self.detail))
    }
}

/// A question with a known answer, for one model.
pub struct Control {
    pub name: String,
    pub call: Call,
    /// The field of the reply that holds the answer.
    pub field: &'static str,
    pub expect: Expect,
}

/// Right answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// The answer as text is one of these.
    OneOf(Vec<String>),
    /// The answer is a number of this range, both ends included.
    Between(f64, f64),
}

impl Expect {
    pub fn is_met(&self, answer: &serde_json::Value) -> bool {
        match self {
            Self::OneOf(known) => known.contains(&plain_text(answer)),
            Self::Between(least, greatest) => {
                answer.as_f64().is_some_and(|number| (*least..=*greatest).contains(&number))
            }
        }
    }
}

impl std::fmt::Display for Expect {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OneOf(known) => formatter.write_str(&known.join(" or ")),
            Self::Between(least, greatest) => write!(formatter, "{least} to {greatest}"),
        }
    }
}

/// A JSON value as people write it: text without its quotes.
pub fn plain_text(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Why a record has no reply: the state of the last answer, no answer at all, or an endpoint that may not see it.
pub const MODEL_REASONS: &[&str] =
    &["reply_truncated", "reply_refused", "reply_empty", "reply_invalid", NO_REPLY, EGRESS_REFUSED];

/// No answer came; it is asked for again by the next build.
pub const NO_REPLY: &str = "no_reply";
pub const EGRESS_REFUSED: &str = "egress_refused";

/// Turns raw files into records.
pub trait Reader: Send + Sync + 'static {
    type Out: Record;
    /// Which forms of files are to be given as lines (see [`crate::source::tables`]); others are given as they are.
    fn converts(&self, _form: Form) -> bool {
        false
    }
    /// Whether a zip of one file is to be given as that file. Else it is given as it is: packages hold archives that nobody reads.
    fn unpacks_zip(&self) -> bool {
        false
    }
    /// Divides the files at record borders and finds repeated ids. One pass, at most 1 KB a record.
    fn cut(&self, source: &RawSource, limits: ShardLimits) -> anyhow::Result<Cut>;
    /// Reads one slice. Depends on the slice alone.
    fn read(&self, source: &RawSource, slice: &Slice, out: &mut ReaderOutput<Self::Out>) -> anyhow::Result<()>;
}

/// Takes what a reader makes of one slice: every raw record either becomes a record or leaves with a cause.
pub struct ReaderOutput<T> {
    pub(super) records: Vec<T>,
    /// Instead of records: the same as columns.
    pub(super) batches: Vec<RecordBatch>,
    pub(super) exits: Vec<RawExit>,
    pub(super) sides: SideEmitter,
    pub(super) raw_media: BTreeMap<Hash, String>,
}

/// A raw record that did not become one.
pub struct RawExit {
    pub record_id: RecordId,
    pub exit: Exit,
    pub cause: Cause,
    pub file: String,
    pub line: u64,
    pub raw_sha256: Hash,
}

impl<T> ReaderOutput<T> {
    pub(super) fn new() -> Self {
        Self {
            records: Vec::new(),
            batches: Vec::new(),
            exits: Vec::new(),
            sides: SideEmitter::default(),
            raw_media: BTreeMap::new(),
        }
    }

    pub fn keep(&mut self, record: T) {
        self.records.push(record);
    }

    /// Records of the source as columns of their declared schema, for readers whose records are many and alike (see
    /// [`crate::record::columns`]). A slice gives either records or columns.
    pub fn keep_batch(&mut self, batch: RecordBatch) {
        self.batches.push(batch);
    }

    pub fn exit(&mut self, exit: RawExit) {
        self.exits.push(exit);
    }

    pub fn side<R: Row>(&mut self, port: &'static str, row: R) {
        self.sides.side(port, row);
    }

    /// Names a raw file as media. It is not copied.
    pub fn raw_media(&mut self, file: &RawFile) -> MediaRef {
        self.raw_media.insert(file.sha256.clone(), file.path.clone());
        MediaRef(file.sha256.clone())
    }
}

/// What flows through a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// The stream of records; the first port.
    Records,
    /// A side table: rows about records.
    Side,
}

/// A typed input or output of a stage.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    pub name: &'static str,
    pub kind: PortKind,
    pub row: RowType,
    /// An input that may be left out, or whose node may be absent.
    pub optional: bool,
}

impl Port {
    pub const fn records<T: Record>(name: &'static str) -> Self {
        Self { name, kind: PortKind::Records, row: RowType::of::<T>(), optional: false }
    }

    pub const fn side<T: Row>(name: &'static str) -> Self {
        Self { name, kind: PortKind::Side, row: RowType::of::<T>(), optional: false }
    }

    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

/// A file that a stage reads; only declared ones can be opened.
#[derive(Clone, Copy, Debug)]
pub struct ResourceDecl {
    pub name: &'static str,
    pub summary: &'static str,
}

/// The bytes of the declared resources of one node.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    files: BTreeMap<String, (String, Vec<u8>)>,
}

impl Resources {
    pub fn insert(&mut self, name: &str, file: &str, bytes: Vec<u8>) {
        self.files.insert(name.to_owned(), (file.to_owned(), bytes));
    }

    /// The text of a declared resource.
    pub fn text(&self, name: &str) -> anyhow::Result<&str> {
        let (file, bytes) =
            self.files.get(name).ok_or_else(|| anyhow::anyhow!("resource `{name}` is not declared by this stage"))?;
        std::str::from_utf8(bytes)
            .map_err(|error| anyhow::anyhow!("{file}: not UTF-8 text at byte {}", error.valid_up_to()))
    }

    /// The file name of a resource, for messages.
    pub fn file<'a>(&'a self, name: &'a str) -> &'a str {
        self.files.get(name).map_or(name, |(file, _)| file)
    }
}

/// What `build` gets: settings as declared (defaults filled in) and the resources.
pub struct StageArguments<'a> {
    pub settings: toml::Table,
    pub resources: &'a Resources,
    /// The format of the source and its `[options]`, for readers.
    pub format: Option<&'a str>,
    pub source_options: toml::Table,
}

impl StageArguments<'_> {
    /// The settings as the stage's struct.
    pub fn settings<T: serde::de::DeserializeOwned>(&self) -> anyhow::Result<T> {
        Ok(toml::Value::Table(self.settings.clone()).try_into()?)
    }
}

/// Shape of a stage's settings: a struct with `#[serde(default, deny_unknown_fields)]`.
#[derive(Clone, Copy)]
pub struct SettingsType {
    /// Names, with their types and docs.
    pub json_schema: fn() -> serde_json::Value,
    /// All settings with the given ones filled in; fails on an unknown name or a wrong type.
    pub complete: fn(toml::Table) -> Result<toml::Table, String>,
    /// The models that complete settings name.
    pub models: fn(&toml::Table) -> Vec<String>,
    pub demands: ModelDemands,
}

/// What must hold between the models of a node, and between them and those of other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelDemands {
    /// No two of them are the same model.
    pub distinct: bool,
    /// None of them is a model that a node of one of these stages asks, above this one: nobody judges their own work.
    pub unlike: &'static [&'static str],
}

/// A stage's settings.
pub trait Settings: Serialize + serde::de::DeserializeOwned + Default + schemars::JsonSchema {
    /// Checks what types cannot say, such as ranges. The message names the setting.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// The models that a model stage asks, by their names under `[models]`.
    fn models(&self) -> Vec<String> {
        Vec::new()
    }

    const DEMANDS: ModelDemands = ModelDemands { distinct: false, unlike: &[] };
}

/// No settings.
#[derive(Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NoSettings {}

impl Settings for NoSettings {}

impl SettingsType {
    pub const fn of<T: Settings>() -> Self {
        Self {
            json_schema: settings_schema::<T>,
            complete: complete_settings::<T>,
            models: models_of::<T>,
            demands: T::DEMANDS,
        }
    }

    /// Names of the settings, sorted.
    pub fn names(&self) -> Vec<String> {
        let schema = (self.json_schema)();
        schema
            .get("properties")
            .and_then(|value| value.as_object())
            .map(|map| map.keys().cloned().collect())
            .unwrap_or_default()
    }
}

fn settings_schema<T: Settings>() -> serde_json::Value {
    schemars::schema_for!(T).to_value()
}

fn complete_settings<T: Settings>(given: toml::Table) -> Result<toml::Table, String> {
    let settings: T =
        toml::Value::Table(given).try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
    settings.check()?;
    toml::Table::try_from(settings).map_err(|error| error.to_string())
}

fn models_of<T: Settings>(settings: &toml::Table) -> Vec<String> {
    // Complete settings were made from the type; anything else names no model.
    T::deserialize(settings.clone()).map(|settings| settings.models()).unwrap_or_default()
}

/// What a stage does with the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Reader,
    Record,
    /// A record stage that only selects.
    Filter,
    Table,
    Model,
}

impl Shape {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Record => "record stage",
            Self::Filter => "filter",
            Self::Table => "table stage",
            Self::Model => "model stage",
        }
    }

    /// The store keeps ids of its input, not copies of records.
    pub fn only_selects(self) -> bool {
        matches!(self, Self::Filter | Self::Table)
    }
}

/// A stage in the registry.
pub struct StageDef {
    /// verb_object
    pub name: &'static str,
    pub summary: &'static str,
    pub shape: Shape,
    /// Bump when unchanged input would give different bytes.
    pub revision: u32,
    pub inputs: &'static [Port],
    /// The first is the record port.
    pub outputs: &'static [Port],
    pub resources: &'static [ResourceDecl],
    /// Every reason that a verdict or a review row of this stage can carry.
    pub reasons: &'static [&'static str],
    pub settings: SettingsType,
    /// Fails on settings or resources that do not make sense; the message names the resource's file.
    pub build: fn(&StageArguments<'_>) -> anyhow::Result<super::erased::AnyStage>,
}
