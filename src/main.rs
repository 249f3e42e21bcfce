//! The `casemill` binary: arguments in, exit code out.

use casemill::error::{Code, code_of};
use clap::Parser;
use std::process::ExitCode;

mod cli;

fn main() -> ExitCode {
    let arguments = match cli::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are not errors; a closed pipe is nobody's fault.
            let _ = error.print();
            return exit(if error.use_stderr() { Code::Usage } else { Code::Done });
        }
    };
    match cli::run(arguments) {
        Ok(code) => exit(code),
        Err(error) => {
            eprintln!("casemill: {error:#}");
            exit(code_of(&error))
        }
    }
}

fn exit(code: Code) -> ExitCode {
    ExitCode::from(code as u8)
}
