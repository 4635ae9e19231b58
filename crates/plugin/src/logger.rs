//! Log lines on standard error: `bridge: warning: ...`.

use std::io::Write;

struct Stderr {
    program: &'static str,
}

impl log::Log for Stderr {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Info
    }

    fn log(&self, record: &log::Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = match record.level() {
            log::Level::Error => "error: ",
            log::Level::Warn => "warning: ",
            _ => "",
        };
        let line = format!("{}: {level}{}\n", self.program, record.args());
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn flush(&self) {}
}

/// Writes what is logged to standard error, each line behind the program's name.
///
/// One logger a process, made once at start; a second call (in a test) keeps the
/// first.
pub fn log_to_stderr(program: &'static str) {
    let logger: &'static Stderr = Box::leak(Box::new(Stderr { program }));
    if log::set_logger(logger).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
}
