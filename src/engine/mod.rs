//! Planning and running: the only module that knows fingerprints, shards and the order of nodes.

pub mod events;
pub mod explain;
pub mod plan;
pub mod run;
pub mod session;
pub mod stream;

pub use events::{Event, EventSink};
pub use plan::{NodePlan, State};
pub use run::{BuildOptions, BuildSummary};
pub use session::{Session, SessionOptions};
