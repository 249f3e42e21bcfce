//! Deliberate failures of single file-system operations, for the tests of crash safety.
//!
//! `CASEMILL_FAILPOINT=rename:7:kill` ends the process (as SIGKILL would: nothing is flushed or
//! cleaned up) right before the 7th rename of this process. Operations: `create`, `write`, `fsync`,
//! `rename`. Actions: `kill`, `full` (the error of a full disk), `torn` (half of the bytes are
//! written, then the process ends; for other operations than `write` as `kill`).

use super::fs::Operation;
use crate::env;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Kill,
    Full,
    Torn,
}

struct Failpoint {
    operation: Operation,
    nth: u64,
    action: Action,
    seen: AtomicU64,
}

/// What the caller of a write has to do.
pub enum Outcome {
    Proceed,
    /// Write half of the bytes, then call [`die`].
    TearAndDie,
}

static FAILPOINT: OnceLock<Option<Failpoint>> = OnceLock::new();

fn parse(text: &str) -> Option<Failpoint> {
    let mut parts = text.split(':');
    let operation = Operation::from_name(parts.next()?)?;
    let nth = parts.next()?.parse().ok()?;
    let action = match parts.next()? {
        "kill" => Action::Kill,
        "full" => Action::Full,
        "torn" => Action::Torn,
        _ => return None,
    };
    Some(Failpoint { operation, nth, action, seen: AtomicU64::new(0) })
}

/// Called before every operation of the store.
pub fn check(operation: Operation) -> io::Result<Outcome> {
    let failpoint = FAILPOINT.get_or_init(|| env::read(env::FAILPOINT).and_then(|text| parse(&text)));
    let Some(failpoint) = failpoint else { return Ok(Outcome::Proceed) };
    if failpoint.operation != operation || failpoint.seen.fetch_add(1, Ordering::SeqCst) + 1 != failpoint.nth {
        return Ok(Outcome::Proceed);
    }
    match failpoint.action {
        Action::Full => Err(io::Error::from(io::ErrorKind::StorageFull)),
        Action::Torn if operation == Operation::Write => Ok(Outcome::TearAndDie),
        Action::Kill | Action::Torn => die(),
    }
}

/// Ends the process at once, as a kill would.
pub fn die() -> ! {
    std::process::abort()
}
