//! Ctrl-C and its like: a running ADD is told to stop and is undone, instead
//! of the program ending in the middle of it. Who presses Ctrl-C again while
//! that takes its time means it: the program ends at once. What it leaves is
//! recorded, so that `podwire del` and `podwire gc` find it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::exit::Exit;

/// The signals that ask a program to end.
pub(crate) const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// What a second Ctrl-C does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecondInterrupt {
    /// Ends the program at once, with code 130.
    Ends,
    /// Nothing more: while a command runs, Ctrl-C is the command's.
    Waits,
}

/// Whether the program was asked to end, and by which signal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interruption {
    flag: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interruption {
    /// From here on the ending signals only set this.
    ///
    /// # Errors
    /// When the kernel refuses, which it never should.
    pub(crate) fn watch(second: SecondInterrupt) -> std::io::Result<Self> {
        let interruption = Self::default();
        if second == SecondInterrupt::Ends {
            let before = Arc::new(AtomicBool::new(false));
            // In this order: the first one finds that there was none before.
            let seen = Arc::clone(&before);
            signal_hook::flag::register_conditional_shutdown(SIGINT, 128 + SIGINT, seen)?;
            signal_hook::flag::register(SIGINT, before)?;
        }
        for signal in ENDING {
            let number = usize::try_from(signal).unwrap_or_default();
            let last = Arc::clone(&interruption.signal);
            signal_hook::flag::register_usize(signal, last, number)?;
            signal_hook::flag::register(signal, Arc::clone(&interruption.flag))?;
        }
        Ok(interruption)
    }

    /// Set once the program is asked to end.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// The exit code, if the program was asked to end.
    pub(crate) fn exit(&self) -> Option<Exit> {
        let signal = self.signal.load(Ordering::Acquire);
        (self.flag.load(Ordering::Acquire) && signal != 0)
            .then(|| Exit::Code(u8::try_from(signal.saturating_add(128)).unwrap_or(u8::MAX)))
    }
}
