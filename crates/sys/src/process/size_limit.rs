//! What a file size limit (`RLIMIT_FSIZE`) does to the process.

/// What becomes of a write beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeyondSizeLimit {
    /// It fails with `EFBIG`, and whoever writes can clean up.
    IsAnError,
    /// It kills the process (SIGXFSZ), as the kernel has it without further ado.
    Kills,
}

/// Chooses for this process and what it starts: a signal that is ignored stays ignored
/// over exec.
pub fn beyond_size_limit(what: BeyondSizeLimit) {
    let handler = match what {
        BeyondSizeLimit::IsAnError => libc::SIG_IGN,
        BeyondSizeLimit::Kills => libc::SIG_DFL,
    };
    // SAFETY: both values are dispositions that run no code of ours; the call can only
    // fail for a number that is no signal.
    unsafe { libc::signal(libc::SIGXFSZ, handler) };
}
