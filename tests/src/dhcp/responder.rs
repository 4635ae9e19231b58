//! A server of a test's own making, which answers whatever it likes.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use podwire_sys::packet::PacketSocket;
use podwire_testkit::Netns;
use rustix::event::{PollFd, PollFlags, poll};

use super::wire::Request;

/// It answers until it goes.
#[derive(Debug)]
pub struct Responder {
    /// Closed to end it.
    running: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    seen: Arc<AtomicUsize>,
}

impl Responder {
    /// Listens on `eth0` of the namespace; `answer` makes frames of a client's
    /// message.
    #[track_caller]
    pub fn start(
        netns: &Netns,
        mut answer: impl FnMut(&Request) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Self {
        let index = netns.ip_json(&["link", "show", "eth0"])[0]["ifindex"].as_u64().unwrap();
        let index = u32::try_from(index).unwrap();
        let socket = netns.run(|| PacketSocket::open_udp(index, 67)).unwrap();
        let (end, running) = rustix::pipe::pipe().unwrap();
        let seen = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            loop {
                let mut events =
                    [PollFd::new(&socket, PollFlags::IN), PollFd::new(&end, PollFlags::IN)];
                poll(&mut events, None).unwrap();
                if !events[1].revents().is_empty() {
                    return;
                }
                while let Some(frame) = socket.receive(&mut buffer).unwrap() {
                    let Some(request) = Request::read(frame) else { continue };
                    counter.fetch_add(1, Ordering::Relaxed);
                    for frame in answer(&request) {
                        // A full queue drops frames, as a network does.
                        let _ = socket.send(&frame);
                    }
                }
            }
        });
        Self { running: Some(running), thread: Some(thread), seen }
    }

    /// How many messages of clients it saw.
    pub fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.running = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
