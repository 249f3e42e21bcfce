//! Planning and running: the only module that knows fingerprints, shards and the order of nodes.

pub mod attrition;
mod calls;
pub mod controls;
mod decide;
pub mod events;
pub mod explain;
mod finish;
pub mod judgements;
pub mod overlap;
pub mod plan;
pub mod run;
pub mod session;
pub mod stream;
mod work;

pub use calls::NodeCost;
pub use events::{Event, EventSink};
pub use finish::show_reasons;
pub use plan::{NodePlan, State};
pub use run::{BuildOptions, BuildSummary};
pub use session::{Llm, Session, SessionOptions};
