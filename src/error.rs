//! Exit codes and the errors that decide them.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// What is told of a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Panics {
    /// Its own message on standard error, and in the error.
    Shown,
    /// Its message in the error alone: for a library on bytes that may be anything.
    Quiet,
    /// Only its place: the message of a panic can quote what was being worked on.
    PlaceOnly,
}

/// From now on no panic of this process, on whatever thread, writes its message to standard error.
pub fn hide_panic_messages() {
    install_hook();
    HIDDEN.store(true, Ordering::Relaxed);
}

/// Runs work that may panic and makes an error of the panic.
pub fn catch_panic<T>(panics: Panics, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    install_hook();
    let before = TOLD.get();
    TOLD.set(before.max(panics));
    let result = catch_unwind(AssertUnwindSafe(work));
    let told = TOLD.replace(before);
    result.unwrap_or_else(|payload| {
        if told == Panics::PlaceOnly {
            let place = PLACE.take().unwrap_or_else(|| "an unknown place".to_owned());
            return Err(anyhow::anyhow!(
                "panicked at {place}; its message is withheld, since it can quote credentialed records"
            ));
        }
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without a message");
        Err(anyhow::anyhow!("panicked: {text}"))
    })
}

fn install_hook() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map(ToString::to_string);
            PLACE.replace(place.clone());
            if HIDDEN.load(Ordering::Relaxed) {
                eprintln!("casemill: a panic at {}", place.unwrap_or_default());
            } else if TOLD.get() == Panics::Shown {
                loud(panic);
            }
        }));
    });
}

static HIDDEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    static TOLD: Cell<Panics> = const { Cell::new(Panics::Shown) };
    /// Of the last panic of this thread.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_tells_what_it_may() {
        let broken =
            |panics| catch_panic::<()>(panics, || panic!("at sea with {}", "Mr. Smith")).unwrap_err().to_string();
        assert_eq!(broken(Panics::Quiet), "panicked: at sea with Mr. Smith");
        let hidden = broken(Panics::PlaceOnly);
        assert!(hidden.starts_with("panicked at src/error.rs:") && !hidden.contains("Smith"), "{hidden}");
        // What is stricter outside holds inside.
        let nested =
            catch_panic::<()>(Panics::PlaceOnly, || catch_panic(Panics::Quiet, || panic!("at sea with Mr. Smith")));
        assert!(!format!("{:#}", nested.unwrap_err()).contains("Smith"));
    }
}
