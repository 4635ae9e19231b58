//! Tests with small shell scripts as children.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::*;

fn shell(script: &str) -> ChildSpec<'static> {
    let mut spec = ChildSpec::new("/bin/sh");
    spec.arguments = vec!["-c".into(), script.into()];
    spec.deadline = Some(Duration::from_secs(20));
    spec
}

/// Whether a process of this id lives (a zombie does not).
fn is_alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim()));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

/// Waits until a killed process is gone; polls because it isn't our child.
fn assert_gone(pid: &str) {
    assert!(!pid.trim().is_empty());
    let end = Instant::now() + Duration::from_secs(5);
    while is_alive(pid) {
        assert!(Instant::now() < end, "process {pid} is still there");
        std::thread::yield_now();
    }
}

#[test]
fn input_output_environment_and_status_pass() {
    let mut spec = shell("cat; echo \"$NAME ${HOME-unset}\" >&2; exit 3");
    spec.stdin = b"request";
    spec.environment = vec![("NAME".into(), "value".into())];
    spec.inherit_environment = false;
    let outcome = run(&spec).unwrap();
    assert_eq!(outcome.exit, Exit::Code(3));
    assert_eq!(outcome.exit.to_string(), "exit status 3");
    assert_eq!(outcome.stdout.text(), "request");
    assert_eq!(outcome.stderr.text(), "value unset\n");
    assert!(!outcome.is_success() && outcome.stopped.is_none());
}

#[test]
fn more_than_a_pipe_holds_passes_both_ways() {
    let input = vec![b'x'; 3 << 20];
    let mut spec = shell("cat");
    spec.stdin = &input;
    let outcome = run(&spec).unwrap();
    assert!(outcome.is_success());
    assert_eq!(outcome.stdout.bytes, input);
}

#[test]
fn a_child_that_does_not_read_its_input_is_no_error() {
    let input = vec![b'x'; 1 << 20];
    let mut spec = shell("exec 0<&-; echo done");
    spec.stdin = &input;
    assert_eq!(run(&spec).unwrap().stdout.text(), "done\n");
}

#[test]
fn output_beyond_the_limit_is_dropped_and_counted() {
    let mut spec = shell("head -c 1000000 /dev/zero; head -c 10 /dev/zero >&2");
    spec.stdout_limit = 1000;
    spec.stderr_limit = 0;
    let outcome = run(&spec).unwrap();
    assert_eq!((outcome.stdout.bytes.len(), outcome.stdout.dropped), (1000, 999_000));
    assert_eq!((outcome.stderr.bytes.len(), outcome.stderr.dropped), (0, 10));
}

#[test]
fn b041_a_grandchild_that_holds_the_pipes_is_not_waited_for() {
    let started = Instant::now();
    let outcome = run(&shell("sleep 600 & echo $! >&2; echo result")).unwrap();
    assert!(outcome.is_success());
    assert_eq!(outcome.stdout.text(), "result\n");
    assert!(started.elapsed() < Duration::from_secs(5));
    let pid = outcome.stderr.text().trim().parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}

#[test]
fn b041_a_hang_ends_at_the_deadline_with_the_whole_group() {
    let mut spec = shell("sleep 600 & echo $!; sleep 600");
    spec.deadline = Some(Duration::from_millis(300));
    let outcome = run(&spec).unwrap();
    assert_eq!(outcome.stopped, Some(Stopped::Deadline(Duration::from_millis(300))));
    assert_eq!(outcome.exit, Exit::Signal(libc::SIGTERM));
    assert_eq!(outcome.exit.to_string(), "ended by SIGTERM");
    assert!(outcome.elapsed < Duration::from_secs(2), "{:?}", outcome.elapsed);
    assert!(!outcome.is_success());
    assert_gone(&outcome.stdout.text());
}

#[test]
fn b041_who_ignores_sigterm_is_killed_after_the_grace() {
    let mut spec = shell("trap '' TERM; (sleep 600) & echo $!; while :; do sleep 600; done");
    spec.deadline = Some(Duration::from_millis(200));
    spec.grace = Duration::from_millis(200);
    let outcome = run(&spec).unwrap();
    assert_eq!(outcome.exit, Exit::Signal(libc::SIGKILL));
    assert!(outcome.elapsed >= Duration::from_millis(400));
    assert!(outcome.elapsed < Duration::from_secs(4), "{:?}", outcome.elapsed);
    assert_gone(&outcome.stdout.text());
}

#[test]
fn b041_the_group_has_its_grace_when_only_the_child_ends() {
    // The inner shell works on for a moment after SIGTERM, as an IPAM delegate that
    // undoes its reservation does; the outer one ends at once.
    let script = "sh -c 'trap \"echo undone; exit\" TERM; echo ready; while :; do sleep 0.1; done' & \
                  sleep 600";
    let mut spec = shell(script);
    spec.deadline = Some(Duration::from_millis(500));
    spec.grace = Duration::from_secs(10);
    let outcome = run(&spec).unwrap();
    assert_eq!(outcome.stdout.text(), "ready\nundone\n");
    assert!(outcome.elapsed < Duration::from_secs(5), "{:?}", outcome.elapsed);
}

#[test]
fn a_flag_and_a_descriptor_cancel() {
    let flag = AtomicBool::new(false);
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    for cancel in [Cancel::Flag(&flag), Cancel::Readable(reader.as_fd())] {
        // The child tells through a FIFO that it runs.
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
        let mut spec = shell(&format!("echo > {}; exec sleep 600", fifo.display()));
        spec.cancel = cancel;
        let outcome = std::thread::scope(|scope| {
            let running = scope.spawn(|| run(&spec).unwrap());
            assert_eq!(std::fs::read(&fifo).unwrap(), b"\n");
            match cancel {
                Cancel::Flag(flag) => flag.store(true, Ordering::Release),
                _ => assert_eq!(rustix::io::write(&writer, b"x"), Ok(1)),
            }
            running.join().unwrap()
        });
        assert_eq!(outcome.stopped, Some(Stopped::Cancelled));
        assert_eq!(outcome.exit, Exit::Signal(libc::SIGTERM));
    }
    let mut spec = shell("sleep 600");
    spec.cancel = Cancel::Flag(&flag);
    assert!(matches!(run(&spec), Err(ProcessError::NotStarted { reason: Stopped::Cancelled, .. })));
}

#[test]
fn only_the_given_descriptors_are_inherited() {
    let directory = tempfile::tempdir().unwrap();
    let open = |name: &str| std::fs::File::create(directory.path().join(name)).unwrap();
    let (kept, closed) = (open("kept"), open("closed"));
    let mut spec = shell("ls -l /proc/self/fd");
    spec.inherit = vec![kept.as_fd()];
    let text = run(&spec).unwrap().stdout.text().into_owned();
    assert!(text.contains("/kept"), "{text}");
    assert!(!text.contains("/closed"), "{text}");
    drop(closed);
}

#[test]
fn what_can_not_start_is_said_with_its_path() {
    let error = run(&ChildSpec::new("/none/here")).unwrap_err();
    assert!(error.to_string().starts_with("starting /none/here: No such file"), "{error}");
    let error = run(&ChildSpec::new("/etc/passwd")).unwrap_err();
    assert!(error.to_string().contains("Permission denied"), "{error}");
    assert!(matches!(error, ProcessError::Start { attempts: 1, .. }), "no retry");
}

fn script_at(path: &std::path::Path) -> std::fs::File {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::copy("/bin/true", path).unwrap();
    std::fs::OpenOptions::new().write(true).mode(0o755).open(path).unwrap()
}

#[test]
fn b095_a_program_that_is_being_replaced_is_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plugin");
    let writer = script_at(&path);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&ChildSpec::new(&path)).unwrap());
        // Longer than the first pauses, shorter than all of them.
        rustix::event::poll(&mut [], Some(&spawn::timespec(Duration::from_millis(100)))).unwrap();
        drop(writer);
        assert!(running.join().unwrap().is_success());
    });
}

#[test]
fn b095_a_program_that_stays_busy_is_an_error_in_bounded_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plugin");
    let writer = script_at(&path);
    let error = run(&ChildSpec::new(&path)).unwrap_err();
    assert!(error.to_string().contains("(10 tries)"), "{error}");
    assert!(error.to_string().contains("busy"), "{error}");
    let mut spec = ChildSpec::new(&path);
    spec.deadline = Some(Duration::from_millis(50));
    let started = Instant::now();
    let error = run(&spec).unwrap_err();
    assert!(matches!(error, ProcessError::NotStarted { reason: Stopped::Deadline(_), .. }));
    assert!(started.elapsed() < Duration::from_secs(1));
    drop(writer);
}
