//! A stopped thread of a traced process: its system call, registers and memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// `PTRACE_GET_SYSCALL_INFO`, include/uapi/linux/ptrace.h (Linux 5.3).
#[cfg(target_env = "musl")]
const PTRACE_GET_SYSCALL_INFO: libc::c_int = 0x420e;
#[cfg(not(target_env = "musl"))]
const PTRACE_GET_SYSCALL_INFO: libc::c_uint = 0x420e;
/// The `op` of a stop before the call is made.
const ENTRY: u8 = 1;
/// The `op` of a stop after it was made.
const EXIT: u8 = 2;

/// Why a thread is stopped.
pub(super) enum Stop {
    /// It is about to make a call.
    Entry { number: u64, arguments: [u64; 6] },
    /// Its call has returned.
    Exit { returned: i64 },
    /// Something else, or it was killed meanwhile.
    Other,
}

/// The head of `struct ptrace_syscall_info` and of its `entry` part; an `exit` part
/// has the returned value in place of the number.
#[repr(C)]
struct SyscallInfo {
    op: u8,
    pad: [u8; 3],
    arch: u32,
    instruction_pointer: u64,
    stack_pointer: u64,
    number: u64,
    arguments: [u64; 6],
}

/// A stopped thread, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Thread(pub(super) libc::pid_t);

impl Thread {
    pub(super) fn stop(self) -> io::Result<Stop> {
        let mut info = std::mem::MaybeUninit::<SyscallInfo>::zeroed();
        // SAFETY: the kernel writes at most the given number of bytes to a buffer of
        // that size; every bit pattern is a valid value.
        let (written, info) = unsafe {
            let size = size_of::<SyscallInfo>();
            let written = libc::ptrace(PTRACE_GET_SYSCALL_INFO, self.0, size, info.as_mut_ptr());
            (written, info.assume_init())
        };
        if written < 0 {
            // ESRCH: killed meanwhile.
            let error = io::Error::last_os_error();
            let is_killed = error.raw_os_error() == Some(libc::ESRCH);
            return if is_killed { Ok(Stop::Other) } else { Err(error) };
        }
        Ok(match info.op {
            ENTRY => Stop::Entry { number: info.number, arguments: info.arguments },
            EXIT => Stop::Exit { returned: info.number.cast_signed() },
            _ => Stop::Other,
        })
    }

    /// Has the call that the thread is about to make not be made.
    pub(super) fn skip_call(self) -> io::Result<()> {
        set_call_number(self.0, u64::MAX)
    }

    /// Has the call that just ended return another value.
    pub(super) fn set_returned(self, value: i64) -> io::Result<()> {
        set_returned(self.0, value.cast_unsigned())
    }

    pub(super) fn read(self, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.memory()?.read_exact_at(&mut bytes, address)?;
        Ok(bytes)
    }

    pub(super) fn write(self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory()?.write_all_at(bytes, address)
    }

    fn memory(self) -> io::Result<File> {
        File::options().read(true).write(true).open(format!("/proc/{}/mem", self.0))
    }
}

#[cfg(target_arch = "x86_64")]
fn set_call_number(pid: libc::pid_t, number: u64) -> io::Result<()> {
    with_registers(pid, |registers| registers.orig_rax = number)
}

#[cfg(target_arch = "x86_64")]
fn set_returned(pid: libc::pid_t, value: u64) -> io::Result<()> {
    with_registers(pid, |registers| registers.rax = value)
}

#[cfg(target_arch = "aarch64")]
fn set_call_number(pid: libc::pid_t, number: u64) -> io::Result<()> {
    /// `NT_ARM_SYSTEM_CALL` (include/uapi/linux/elf.h): the number alone, an int.
    const SYSTEM_CALL: i32 = 0x404;
    let mut number = u32::try_from(number & u64::from(u32::MAX)).map_err(io::Error::other)?;
    // SAFETY: an int is what this register set is.
    unsafe { register_set(libc::PTRACE_SETREGSET, pid, SYSTEM_CALL, &raw mut number) }
}

#[cfg(target_arch = "aarch64")]
fn set_returned(pid: libc::pid_t, value: u64) -> io::Result<()> {
    with_registers(pid, |registers| registers.regs[0] = value)
}

/// `NT_PRSTATUS` (include/uapi/linux/elf.h): the general registers.
const GENERAL: i32 = 1;

fn with_registers(
    pid: libc::pid_t,
    change: impl FnOnce(&mut libc::user_regs_struct),
) -> io::Result<()> {
    // SAFETY: every bit pattern is a valid value of the registers' structure, and it is
    // what this register set is.
    unsafe {
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        register_set(libc::PTRACE_GETREGSET, pid, GENERAL, &raw mut registers)?;
        change(&mut registers);
        register_set(libc::PTRACE_SETREGSET, pid, GENERAL, &raw mut registers)
    }
}

#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

/// Reads or writes a register set.
///
/// # Safety
/// `value` points to a live value of the type that the set has.
unsafe fn register_set<T>(
    request: Request,
    pid: libc::pid_t,
    set: i32,
    value: *mut T,
) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: value.cast(), iov_len: size_of::<T>() };
    // SAFETY: the caller's value is live; the kernel reads or writes no more than its size.
    let result = unsafe { libc::ptrace(request, pid, set, &raw mut part) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
