//! How many records of each specialty are left after every node (ClinMM-Bench, supplementary table D1): for pipelines whose
//! reader knows the specialty of a record. Counted from the ledger: what a node was given, less what left there.

use super::NodePlan;
use super::session::Session;
use super::stream::Upstream;
use crate::record::ledger::LedgerRow;
use crate::record::{RecordId, from_batch};
use crate::store::{parquet, shard};
use anyhow::ensure;
use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The column that divides the table.
const SPECIALTY: &str = "specialty";
/// Records whose specialty nobody noted, and raw records that could not be read.
pub const UNKNOWN: &str = "unknown";

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attrition {
    /// A specialty, or `unknown`.
    pub specialty: String,
    /// Raw records.
    pub n_in: u64,
    /// Nodes in order, with the records that they kept.
    pub kept: Vec<KeptByNode>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptByNode {
    pub node: String,
    pub n: u64,
}

#[derive(Deserialize)]
struct OfRecord {
    record_id: RecordId,
    specialty: Option<String>,
}

impl Upstream<'_> {
    /// The table over the committed nodes among `wanted`; empty if no reader knows a specialty.
    pub fn attrition(&self, wanted: &BTreeSet<usize>) -> anyhow::Result<Vec<Attrition>> {
        let mut of_record: BTreeMap<RecordId, String> = BTreeMap::new();
        let mut kept: BTreeMap<String, Vec<KeptByNode>> = BTreeMap::new();
        let mut n_in: BTreeMap<String, u64> = BTreeMap::new();
        let mut passed: BTreeMap<usize, BTreeMap<String, u64>> = BTreeMap::new();
        let mut knows = false;
        for index in wanted {
            let (session, Some(plan)) = (self.session, self.plans.get(*index)) else { continue };
            let Some(manifest) = committed(session, *index, plan) else { continue };
            let node = session.node(*index)?;
            let schema = node.stage.outputs.first().map(|port| (port.row.arrow_schema)()).transpose()?;
            let field = schema.as_ref().and_then(|schema| schema.field_with_name(SPECIALTY).ok());
            let is_text = field.is_some_and(|field| *field.data_type() == DataType::Utf8);
            // Later nodes are asked for ids alone: who a record was is known from its reader.
            let has_column = is_text && node.source.is_some();
            let mut now: BTreeMap<String, u64> = BTreeMap::new();
            for shard in 0..manifest.n_stream_shards {
                let columns: &[&str] = if has_column { &["record_id", SPECIALTY] } else { &["record_id"] };
                let batch = self.read_stream(*index, shard, Some(columns))?;
                for record in from_batch::<OfRecord>(&batch)? {
                    if node.source.is_some() {
                        knows |= has_column;
                        let specialty = record.specialty.unwrap_or_else(|| UNKNOWN.to_owned());
                        of_record.insert(record.record_id.clone(), specialty);
                    }
                    *now.entry(specialty_of(&of_record, &record.record_id)).or_default() += 1;
                }
            }
            let mut left: BTreeMap<String, u64> = BTreeMap::new();
            let folder = plan.build_dir.as_deref();
            for folder in folder.map(shard::shard_dirs).transpose()?.unwrap_or_default() {
                let path = folder.join(shard::LEDGER);
                if path.is_file() {
                    for row in from_batch::<LedgerRow>(&parquet::read(&path)?)? {
                        *left.entry(specialty_of(&of_record, &row.record_id)).or_default() += 1;
                    }
                }
            }
            if node.source.is_some() {
                for (specialty, n) in now.iter().chain(&left) {
                    *n_in.entry(specialty.clone()).or_default() += n;
                }
            } else if knows && manifest.counts.values().all(|counts| counts.n_split == 0) {
                // What came in is what stayed and what left, for each specialty.
                for specialty in n_in.keys() {
                    let of = |counts: &BTreeMap<String, u64>| counts.get(specialty).copied().unwrap_or_default();
                    let before: u64 = node.stream_inputs().filter_map(|input| passed.get(&input)).map(of).sum();
                    let after = of(&now) + of(&left);
                    ensure!(
                        before == after,
                        "node {} lost count of {specialty}: {before} came in, {after} are told of",
                        node.name
                    );
                }
            }
            for specialty in n_in.keys() {
                let n = now.get(specialty).copied().unwrap_or_default();
                kept.entry(specialty.clone()).or_default().push(KeptByNode { node: node.name.clone(), n });
            }
            passed.insert(*index, now);
        }
        if !knows {
            return Ok(Vec::new());
        }
        let row = |(specialty, kept): (String, Vec<KeptByNode>)| {
            let n_in = n_in.get(&specialty).copied().unwrap_or_default();
            Attrition { specialty, n_in, kept }
        };
        Ok(kept.into_iter().map(row).collect())
    }
}

fn committed<'a>(
    session: &Session,
    index: usize,
    plan: &'a NodePlan,
) -> Option<&'a crate::store::manifest::StageManifest> {
    if session.absent.contains_key(&index) { None } else { plan.manifest.as_deref() }
}

/// The specialty of a record, of the one it was split from, or of the one it repeats.
fn specialty_of(of_record: &BTreeMap<RecordId, String>, id: &RecordId) -> String {
    let before = |mark: char| id.as_str().rsplit_once(mark).map(|(parent, _)| RecordId::parse(parent));
    let known = of_record.get(id).or_else(|| of_record.get(&before('_')?)).or_else(|| of_record.get(&before('~')?));
    known.cloned().unwrap_or_else(|| UNKNOWN.to_owned())
}

/// The table as text, nodes as columns.
pub fn text(rows: &[Attrition]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let names: Vec<&str> = first.kept.iter().map(|kept| kept.node.as_str()).collect();
    let width = rows.iter().map(|row| row.specialty.len()).max().unwrap_or(0).max("specialty".len());
    let mut text = format!("attrition by specialty\n  {:width$} {:>9}", "specialty", "articles");
    for name in &names {
        text += &format!(" {name:>n$}", n = name.len().max(7));
    }
    text.push('\n');
    let mut total = (0, vec![0; names.len()]);
    let line = |name: &str, n_in: u64, kept: &[u64]| {
        let mut line = format!("  {name:width$} {n_in:>9}");
        for (name, n) in names.iter().zip(kept) {
            line += &format!(" {n:>n_width$}", n_width = name.len().max(7));
        }
        line + "\n"
    };
    for row in rows {
        let kept: Vec<u64> = row.kept.iter().map(|kept| kept.n).collect();
        total.0 += row.n_in;
        total.1.iter_mut().zip(&kept).for_each(|(sum, n)| *sum += n);
        text += &line(&row.specialty, row.n_in, &kept);
    }
    text += &line("total", total.0, &total.1);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn the_table_has_a_column_a_node() {
        let row = |specialty: &str, n_in, kept: &[u64]| Attrition {
            specialty: specialty.to_owned(),
            n_in,
            kept: kept
                .iter()
                .zip(["ingest", "filter_media"])
                .map(|(n, node)| KeptByNode { node: node.to_owned(), n: *n })
                .collect(),
        };
        expect![[r#"
            attrition by specialty
              specialty   articles  ingest filter_media
              Nephrology        12      11            7
              unknown            2       0            0
              total             14      11            7
        "#]]
        .assert_eq(&text(&[row("Nephrology", 12, &[11, 7]), row("unknown", 2, &[0, 0])]));
    }
}
