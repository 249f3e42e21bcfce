//! Exit codes and the errors that decide them.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// What the process returns (SPEC section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Done = 0,
    Internal = 1,
    Usage = 2,
    Input = 3,
    Quarantine = 4,
    Verification = 5,
    Interrupted = 130,
}

/// An error whose kind decides the exit code. Any other error is internal.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A pipeline, source or argument is wrong.
    #[error("{0}")]
    Usage(String),
    /// Raw data is missing, broken or lost too much.
    #[error("{0}")]
    Input(String),
    /// A release does not verify or may not be made.
    #[error("{0}")]
    Verification(String),
    /// Ctrl-C or SIGTERM; finished shards are kept.
    #[error("interrupted; finished shards are kept, run the same command again to go on")]
    Interrupted,
    /// A limit that the curator set, such as a budget; what is done is kept.
    #[error("{0}")]
    Stopped(String),
}

pub fn usage(message: impl fmt::Display) -> anyhow::Error {
    Fault::Usage(message.to_string()).into()
}

pub fn input(message: impl fmt::Display) -> anyhow::Error {
    Fault::Input(message.to_string()).into()
}

pub fn verification(message: impl fmt::Display) -> anyhow::Error {
    Fault::Verification(message.to_string()).into()
}

/// The exit code of an error: that of the first [`Fault`] in its chain.
pub fn code_of(error: &anyhow::Error) -> Code {
    for cause in error.chain() {
        if let Some(fault) = cause.downcast_ref::<Fault>() {
            return match fault {
                Fault::Usage(_) => Code::Usage,
                Fault::Input(_) => Code::Input,
                Fault::Verification(_) => Code::Verification,
                Fault::Interrupted | Fault::Stopped(_) => Code::Interrupted,
            };
        }
        if cause.downcast_ref::<crate::config::Problems>().is_some() {
            return Code::Usage;
        }
    }
    Code::Internal
}

/// Runs work that may panic, such as a library on a damaged file, and makes an error of the panic. `quiet` keeps the
/// panic's own message off standard error: for bytes that may be anything. A panic of our own code stays loud.
pub fn catch_panic<T>(quiet: bool, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                loud(panic);
            }
        }));
    });
    let before = QUIET.replace(quiet || QUIET.get());
    let result = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    result.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without a message");
        Err(anyhow::anyhow!("panicked: {text}"))
    })
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}
