//! Stages without their record types, as the engine holds them: batches in, batches out.

use super::contract::*;
use crate::record::ledger::{Exit, LedgerRow, SourceCounts};
use crate::record::raw::RawSource;
use crate::record::{Hash, Record, RecordId, Rights, from_batch, to_batch};
use crate::source::tables::Form;
use anyhow::{Context, ensure};
use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

/// A stage, built with its settings.
pub enum AnyStage {
    Reader(Box<dyn ErasedReader>),
    Record(Box<dyn ErasedRecordStage>),
    Filter(Box<dyn ErasedFilterStage>),
    Table(Box<dyn ErasedTableStage>),
    Model(Box<dyn ErasedModelStage>),
}

impl AnyStage {
    pub fn reader<S: Reader>(stage: S) -> Self {
        Self::Reader(Box::new(stage))
    }

    pub fn record<S: RecordStage>(stage: S) -> Self {
        Self::Record(Box::new(stage))
    }

    pub fn filter<S: FilterStage>(stage: S) -> Self {
        Self::Filter(Box::new(stage))
    }

    pub fn table<S: TableStage>(stage: S) -> Self {
        Self::Table(Box::new(stage))
    }

    pub fn model<S: ModelStage>(stage: S) -> Self {
        Self::Model(Box::new(stage))
    }

    pub fn shape(&self) -> Shape {
        match self {
            Self::Reader(_) => Shape::Reader,
            Self::Record(_) => Shape::Record,
            Self::Filter(_) => Shape::Filter,
            Self::Table(_) => Shape::Table,
            Self::Model(_) => Shape::Model,
        }
    }
}

/// The stream part of a shard's output.
pub enum Stream {
    Records(RecordBatch),
    /// Rows of the input shard that stay, ascending.
    Selected(Vec<u32>),
}

/// What a stage makes of one shard.
pub struct ShardOutput {
    pub stream: Stream,
    pub extras: Extras,
}

/// What a shard holds beside its stream.
#[derive(Default)]
pub struct Extras {
    pub sides: BTreeMap<&'static str, SideBatch>,
    /// Derived media.
    pub media: BTreeMap<Hash, Vec<u8>>,
    /// Raw files that records name as media: hash → path below the raw folder.
    pub raw_media: BTreeMap<Hash, String>,
    pub ledger: Vec<LedgerRow>,
    pub counts: SourceCounts,
    /// Accepted replies: key → hash of the reply.
    pub replies: BTreeMap<Hash, Hash>,
    /// Calls without an accepted reply: key → why.
    pub failed_calls: BTreeMap<Hash, String>,
}

/// Collects the ledger and the counts of one shard.
struct Tally<'a> {
    node: &'a str,
    ledger: Vec<LedgerRow>,
    counts: SourceCounts,
}

impl<'a> Tally<'a> {
    fn new(node: &'a str) -> Self {
        Self { node, ledger: Vec::new(), counts: BTreeMap::new() }
    }

    fn kept<R: Record>(&mut self, record: &R) {
        self.count(&record.provenance().source, |counts| {
            counts.n_in += 1;
            counts.kept += 1;
        });
    }

    /// So many records that a reader keeps.
    fn kept_of(&mut self, source: &str, n: u64) {
        if n > 0 {
            self.count(source, |counts| {
                counts.n_in += n;
                counts.kept += n;
            });
        }
    }

    fn split(&mut self, source: &str, n_out: u64) {
        self.count(source, |counts| {
            counts.n_in += 1;
            counts.n_split += n_out - 1;
            counts.kept += n_out;
        });
    }

    fn count(&mut self, source: &str, change: impl FnOnce(&mut crate::record::ledger::Counts)) {
        match self.counts.get_mut(source) {
            Some(counts) => change(counts),
            None => change(self.counts.entry(source.to_owned()).or_default()),
        }
    }

    fn record_exit(&mut self, id: &RecordId, provenance: &crate::record::Provenance, exit: Exit, cause: Cause) {
        let raw = RawExit {
            record_id: id.clone(),
            exit,
            cause,
            file: provenance.file.clone(),
            line: provenance.line,
            raw_sha256: provenance.raw_sha256.clone(),
        };
        self.exit(&provenance.source, raw);
    }

    fn exit(&mut self, source: &str, raw: RawExit) {
        self.count(source, |counts| {
            counts.n_in += 1;
            counts.exit(raw.exit, raw.cause.reason);
        });
        self.ledger.push(LedgerRow {
            record_id: raw.record_id,
            source: source.to_owned(),
            node: self.node.to_owned(),
            exit: raw.exit,
            reason: raw.cause.reason.to_owned(),
            detail: raw.cause.detail,
            file: raw.file,
            line: raw.line,
            raw_sha256: raw.raw_sha256,
        });
    }

    fn finish(self, stream: Stream, sides: SideEmitter) -> anyhow::Result<ShardOutput> {
        for (source, counts) in &self.counts {
            ensure!(counts.is_conserved(), "node `{}` lost count of source `{source}`: {counts:?}", self.node);
        }
        let emitted = sides.finish()?;
        let extras = Extras {
            sides: emitted.sides,
            media: emitted.media,
            ledger: self.ledger,
            counts: self.counts,
            ..Extras::default()
        };
        Ok(ShardOutput { stream, extras })
    }
}

/// Hands the outputs of one input record on: one output keeps the id, several get `_1`, `_2`, ….
fn settle<T: Record>(
    parent: &RecordId,
    provenance: &crate::record::Provenance,
    mut outputs: Vec<T>,
    verdict: Verdict,
    tally: &mut Tally<'_>,
    kept: &mut Vec<T>,
) -> anyhow::Result<()> {
    match verdict.exit() {
        Some((exit, cause)) => {
            ensure!(
                outputs.is_empty(),
                "{parent} was {} although {} records were emitted for it",
                exit.as_str(),
                outputs.len()
            );
            tally.record_exit(parent, provenance, exit, cause);
        }
        None => {
            ensure!(!outputs.is_empty(), "{parent} was kept although nothing was emitted for it");
            let n_out = outputs.len();
            for (position, record) in outputs.iter_mut().enumerate() {
                let id = if n_out == 1 { parent.clone() } else { parent.child(position + 1) };
                record.set_record_id(id);
            }
            tally.split(&provenance.source, n_out as u64);
            kept.append(&mut outputs);
        }
    }
    Ok(())
}

pub trait ErasedReader: Send + Sync {
    fn converts(&self, form: Form) -> bool;
    fn unpacks_zip(&self) -> bool;
    fn cut(&self, source: &RawSource, limits: ShardLimits) -> anyhow::Result<Cut>;
    fn read(&self, node: &str, source: &RawSource, slice: &Slice) -> anyhow::Result<ShardOutput>;
}

impl<S: Reader> ErasedReader for S {
    fn converts(&self, form: Form) -> bool {
        Reader::converts(self, form)
    }

    fn unpacks_zip(&self) -> bool {
        Reader::unpacks_zip(self)
    }

    fn cut(&self, source: &RawSource, limits: ShardLimits) -> anyhow::Result<Cut> {
        Reader::cut(self, source, limits)
    }

    fn read(&self, node: &str, source: &RawSource, slice: &Slice) -> anyhow::Result<ShardOutput> {
        let mut out = ReaderOutput::new();
        Reader::read(self, source, slice, &mut out)?;
        let mut tally = Tally::new(node);
        let n_batched: usize = out.batches.iter().map(RecordBatch::num_rows).sum();
        ensure!(out.records.is_empty() || n_batched == 0, "a slice gave both records and columns");
        out.records.iter().for_each(|record| tally.kept(record));
        tally.kept_of(&source.name, n_batched as u64);
        let n_raw: u64 = slice.pieces.iter().map(|piece| piece.n_records).sum();
        let n_seen = (out.records.len() + n_batched + out.exits.len()) as u64;
        ensure!(
            n_raw == n_seen,
            "the slice holds {n_raw} raw records but {n_seen} came out of it: the raw file changed while it was read"
        );
        for exit in out.exits {
            tally.exit(&source.name, exit);
        }
        let batch = match out.batches.as_slice() {
            [] => to_batch(&out.records)?,
            [one] => one.clone(),
            several => concat_batches(&crate::record::arrow_schema::<S::Out>()?, several)?,
        };
        let mut output = tally.finish(Stream::Records(batch), out.sides)?;
        output.extras.raw_media = out.raw_media;
        Ok(output)
    }
}

pub trait ErasedRecordStage: Send + Sync {
    fn run(&self, batch: &RecordBatch, context: &StageContext<'_>) -> anyhow::Result<ShardOutput>;
}

impl<S: RecordStage> ErasedRecordStage for S {
    fn run(&self, batch: &RecordBatch, context: &StageContext<'_>) -> anyhow::Result<ShardOutput> {
        let mut tally = Tally::new(context.node);
        let mut sides = SideEmitter::default();
        let mut kept = Vec::with_capacity(batch.num_rows());
        for record in from_batch::<S::In>(batch)? {
            let (id, provenance) = (record.record_id().clone(), record.provenance().clone());
            let mut emitter = Emitter { records: Vec::new(), sides: &mut sides };
            let verdict = self.apply(record, &mut emitter, context).with_context(|| format!("record {id}"))?;
            settle(&id, &provenance, emitter.records, verdict, &mut tally, &mut kept)?;
        }
        tally.finish(Stream::Records(to_batch(&kept)?), sides)
    }
}

pub trait ErasedFilterStage: Send + Sync {
    fn run(&self, batch: &RecordBatch, context: &StageContext<'_>) -> anyhow::Result<ShardOutput>;
}

impl<S: FilterStage> ErasedFilterStage for S {
    fn run(&self, batch: &RecordBatch, context: &StageContext<'_>) -> anyhow::Result<ShardOutput> {
        let mut tally = Tally::new(context.node);
        let mut sides = SideEmitter::default();
        let mut selected = Vec::with_capacity(batch.num_rows());
        for (row, record) in (0u32..).zip(from_batch::<S::In>(batch)?) {
            let verdict =
                self.judge(&record, &mut sides, context).with_context(|| format!("record {}", record.record_id()))?;
            match verdict.exit() {
                None => {
                    tally.kept(&record);
                    selected.push(row);
                }
                Some((exit, cause)) => tally.record_exit(record.record_id(), record.provenance(), exit, cause),
            }
        }
        tally.finish(Stream::Selected(selected), sides)
    }
}

pub trait ErasedTableStage: Send + Sync {
    /// The stage's columns of one input shard, and the engine's.
    fn columns(&self, batch: &RecordBatch, shard: u32) -> anyhow::Result<RecordBatch>;
    fn decide(&self, table: polars::prelude::LazyFrame, sides: &mut SideEmitter) -> anyhow::Result<Vec<Decision>>;
}

impl<S: TableStage> ErasedTableStage for S {
    fn columns(&self, batch: &RecordBatch, shard: u32) -> anyhow::Result<RecordBatch> {
        let records = from_batch::<S::In>(batch)?;
        let rows =
            records.iter().map(|record| TableStage::columns(self, record)).collect::<anyhow::Result<Vec<_>>>()?;
        let own = to_batch(&rows)?;
        let text = |value: fn(&S::In) -> &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(records.iter().map(value)))
        };
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            (EngineColumns::RECORD_ID, text(|record| record.record_id().as_str())),
            (EngineColumns::SHARD, Arc::new(UInt32Array::from_iter_values(records.iter().map(|_| shard)))),
            (EngineColumns::ROW, Arc::new(UInt32Array::from_iter_values((0u32..).zip(&records).map(|(row, _)| row)))),
            (EngineColumns::SOURCE, text(|record| &record.provenance().source)),
            (EngineColumns::FILE, text(|record| &record.provenance().file)),
            (
                EngineColumns::LINE,
                Arc::new(UInt64Array::from_iter_values(records.iter().map(|record| record.provenance().line))),
            ),
            (EngineColumns::RAW_SHA256, text(|record| record.provenance().raw_sha256.as_str())),
        ];
        let schema = own.schema();
        for (field, column) in schema.fields().iter().zip(own.columns()) {
            ensure!(
                !field.name().starts_with('_'),
                "column `{}` of a table stage begins like the engine's own",
                field.name()
            );
            ensure!(!field.data_type().is_nested(), "column `{}` of a table stage is not flat", field.name());
            columns.push((field.name(), column.clone()));
        }
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, column)| Field::new(*name, column.data_type().clone(), nullable(&schema, name)))
            .collect();
        Ok(RecordBatch::try_new(
            Arc::new(Schema::new(fields)),
            columns.into_iter().map(|(_, column)| column).collect(),
        )?)
    }

    fn decide(&self, table: polars::prelude::LazyFrame, sides: &mut SideEmitter) -> anyhow::Result<Vec<Decision>> {
        TableStage::decide(self, table, sides)
    }
}

fn nullable(schema: &Schema, name: &str) -> bool {
    schema.field_with_name(name).is_ok_and(|field| field.is_nullable() || field.data_type() == &DataType::Null)
}

/// A call with everything that its client must know of the record behind it.
pub struct Ask {
    pub call: Call,
    /// What decides whether the call may be sent.
    pub rights: Rights,
    pub origin: Origin,
    /// The files of the images in the messages.
    pub images: BTreeMap<Hash, PathBuf>,
}

/// What a call is for: spending is counted by it.
#[derive(Clone, Debug)]
pub struct Origin {
    pub pipeline: String,
    pub node: String,
    pub record_id: RecordId,
}

/// Calls since the service was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct CallCounts {
    /// Accepted from the store.
    pub replayed: u64,
    /// Accepted from the model.
    pub answered: u64,
    /// Ended without an accepted reply.
    pub failed: u64,
    /// Requests sent, repeated ones included.
    pub requests: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Money, for models with a price.
    pub spent: f64,
}

impl CallCounts {
    /// What was counted since an earlier time.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            replayed: self.replayed - before.replayed,
            answered: self.answered - before.answered,
            failed: self.failed - before.failed,
            requests: self.requests - before.requests,
            input_tokens: self.input_tokens - before.input_tokens,
            output_tokens: self.output_tokens - before.output_tokens,
            spent: self.spent - before.spent,
        }
    }
}

/// Gets replies for calls; the engine's only way to a model.
pub trait ModelService: Send + Sync {
    /// Answers calls in their order. It asks for the next ones while earlier ones are on their way, and fails on what
    /// concerns every call: no key, no budget left, a provider that is down, a miss in a replay.
    fn ask(
        &self,
        asks: &mut dyn Iterator<Item = anyhow::Result<Ask>>,
        take: &mut dyn FnMut(CallResult) -> anyhow::Result<()>,
    ) -> anyhow::Result<()>;
    /// The hash of the accepted reply that the store holds now.
    fn stored(&self, key: &Hash) -> anyhow::Result<Option<Hash>>;
    /// What of a model is part of a fingerprint; an error if there is no model of this name.
    fn identity(&self, model: &str) -> anyhow::Result<serde_json::Value>;
    /// Whether calls that had no answer are to be asked again.
    fn may_ask(&self) -> bool;
    fn counts(&self) -> CallCounts;
}

pub trait ErasedModelStage: Send + Sync {
    /// Without a service the stage does what it does without a model.
    fn run(
        &self,
        batch: &RecordBatch,
        service: Option<&dyn ModelService>,
        context: &StageContext<'_>,
    ) -> anyhow::Result<ShardOutput>;

    fn controls(&self) -> anyhow::Result<Vec<Control>>;

    /// The calls that the records of a shard need.
    fn each_ask(
        &self,
        batch: &RecordBatch,
        context: &StageContext<'_>,
        take: &mut dyn FnMut(Ask) -> anyhow::Result<()>,
    ) -> anyhow::Result<()>;
}

/// A record whose calls are on their way.
struct Waiting<T> {
    record: T,
    n_calls: usize,
    results: Vec<CallResult>,
}

/// What a model stage makes of a shard while its answers come in.
struct Gathering<'a, S: ModelStage> {
    stage: &'a S,
    waiting: VecDeque<Waiting<S::In>>,
    tally: Tally<'a>,
    sides: SideEmitter,
    kept: Vec<S::Out>,
    replies: BTreeMap<Hash, Hash>,
    failed_calls: BTreeMap<Hash, String>,
}

impl<'a, S: ModelStage> Gathering<'a, S> {
    fn new(stage: &'a S, node: &'a str) -> Self {
        Self {
            stage,
            waiting: VecDeque::new(),
            tally: Tally::new(node),
            sides: SideEmitter::default(),
            kept: Vec::new(),
            replies: BTreeMap::new(),
            failed_calls: BTreeMap::new(),
        }
    }

    fn take(&mut self, result: CallResult) -> anyhow::Result<()> {
        self.settle_complete()?;
        match &result {
            Ok(reply) => drop(self.replies.insert(reply.key.clone(), reply.sha256.clone())),
            Err(failure) => {
                ensure!(MODEL_REASONS.contains(&failure.reason), "`{}` is no reason of a call", failure.reason);
                if failure.reason != EGRESS_REFUSED {
                    self.failed_calls.insert(failure.key.clone(), failure.reason.to_owned());
                }
            }
        }
        self.waiting.front_mut().context("an answer that nobody asked for")?.results.push(result);
        self.settle_complete()
    }

    /// Reads the answers of the first records that have all of theirs.
    fn settle_complete(&mut self) -> anyhow::Result<()> {
        while self.waiting.front().is_some_and(|waiting| waiting.results.len() == waiting.n_calls) {
            let Some(waiting) = self.waiting.pop_front() else { break };
            self.settle(waiting.record, |stage, record, out| stage.read(record, waiting.results, out))?;
        }
        Ok(())
    }

    fn settle(
        &mut self,
        record: S::In,
        read: impl FnOnce(&S, S::In, &mut Emitter<'_, S::Out>) -> anyhow::Result<Verdict>,
    ) -> anyhow::Result<()> {
        let (id, provenance) = (record.record_id().clone(), record.provenance().clone());
        let mut emitter = Emitter { records: Vec::new(), sides: &mut self.sides };
        let verdict = read(self.stage, record, &mut emitter).with_context(|| format!("record {id}"))?;
        settle(&id, &provenance, emitter.records, verdict, &mut self.tally, &mut self.kept)
    }

    fn finish(mut self) -> anyhow::Result<ShardOutput> {
        self.settle_complete()?;
        ensure!(self.waiting.is_empty(), "{} records got no answer to all of their calls", self.waiting.len());
        let mut output = self.tally.finish(Stream::Records(to_batch(&self.kept)?), self.sides)?;
        output.extras.replies = self.replies;
        output.extras.failed_calls = self.failed_calls;
        Ok(output)
    }
}

impl<S: ModelStage> ErasedModelStage for S {
    fn run(
        &self,
        batch: &RecordBatch,
        service: Option<&dyn ModelService>,
        context: &StageContext<'_>,
    ) -> anyhow::Result<ShardOutput> {
        let mut gathering = Gathering::new(self, context.node);
        let records = from_batch::<S::In>(batch)?;
        let Some(service) = service else {
            for record in records {
                gathering.settle(record, |stage, record, out| stage.without_model(record, out))?;
            }
            return gathering.finish();
        };
        // Calls are made when the service wants the next one, and answers are read when the first record has all of
        // its own: both from this thread, never one inside the other.
        let gathering = RefCell::new(gathering);
        let wait_for = |record: S::In| -> anyhow::Result<Vec<Ask>> {
            let asks = asks_of(self, &record, context)?;
            let waiting = Waiting { record, n_calls: asks.len(), results: Vec::new() };
            gathering.borrow_mut().waiting.push_back(waiting);
            Ok(asks)
        };
        let mut asks = records.into_iter().flat_map(|record| match wait_for(record) {
            Ok(asks) => asks.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        });
        service.ask(&mut asks, &mut |result| gathering.borrow_mut().take(result))?;
        drop(asks);
        gathering.into_inner().finish()
    }

    fn controls(&self) -> anyhow::Result<Vec<Control>> {
        ModelStage::controls(self)
    }

    fn each_ask(
        &self,
        batch: &RecordBatch,
        context: &StageContext<'_>,
        take: &mut dyn FnMut(Ask) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for record in from_batch::<S::In>(batch)? {
            asks_of(self, &record, context)?.into_iter().try_for_each(&mut *take)?;
        }
        Ok(())
    }
}

/// The calls of one record, with what their client must know of it.
fn asks_of<S: ModelStage>(stage: &S, record: &S::In, context: &StageContext<'_>) -> anyhow::Result<Vec<Ask>> {
    let record_id = record.record_id();
    let calls = ModelStage::calls(stage, record, context).with_context(|| format!("record {record_id}"))?;
    let ask = |call: Call| -> anyhow::Result<Ask> {
        let mut images = BTreeMap::new();
        for part in call.messages.iter().flat_map(|message| &message.parts) {
            if let Part::Image { media, .. } = part {
                images.insert(media.0.clone(), context.media.path(media)?);
            }
        }
        let origin = Origin {
            pipeline: context.pipeline.to_owned(),
            node: context.node.to_owned(),
            record_id: record_id.clone(),
        };
        Ok(Ask { call, images, rights: record.provenance().rights.clone(), origin })
    };
    calls.into_iter().map(ask).collect()
}
