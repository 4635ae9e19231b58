//! `cargo xtask docs`: writes the pages that the tests keep in step with themselves.
#![allow(clippy::print_stdout, clippy::print_stderr)] // It talks to a person.

use std::process::ExitCode;

use podwire_tests::pages;

fn main() -> ExitCode {
    for page in pages::ALL {
        let path = page.path();
        if let Err(error) = std::fs::write(&path, (page.text)()) {
            eprintln!("podwire-docs: {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
        println!("{}", path.display());
    }
    ExitCode::SUCCESS
}
