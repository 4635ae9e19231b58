//! One call over gRPC, on a connection of its own.
//!
//! gRPC is a `POST` over HTTP/2 whose body is a flag, a length and a protobuf message,
//! and whose trailers say how it ended.
//! See `grpc/doc/PROTOCOL-HTTP2.md` of the gRPC project.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use prost::Message;
use prost::bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use tokio::net::UnixStream;

/// The longest that any call may take: a sandbox on a loaded machine takes seconds.
const PATIENCE: Duration = Duration::from_secs(100);

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server answered so: gRPC's number of the status, and its message.
    Refused(u32, String),
    /// The server was not there, or went away during the call.
    Lost(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code, message) => write!(formatter, "status {code}: {message}"),
            Self::Lost(why) => write!(formatter, "no answer: {why}"),
        }
    }
}

/// Calls `method` of `service` at a socket and waits for its answer.
///
/// # Errors
/// When the server answers with an error, or not at all within 100 s.
pub(super) fn call<Answer: Message + Default>(
    socket: &Path,
    service: &str,
    method: &str,
    request: &impl Message,
) -> Result<Answer, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let path = format!("http://localhost/{service}/{method}");
    let exchange = exchange(socket, path, framed(request));
    let timed = async { tokio::time::timeout(PATIENCE, exchange).await };
    let body = runtime.block_on(timed).map_err(|_| lost("it takes too long"))??;
    Answer::decode(body).map_err(lost)
}

#[allow(clippy::needless_pass_by_value)] // So that errors can be mapped by its name.
fn lost(why: impl ToString) -> Failure {
    Failure::Lost(why.to_string())
}

fn framed(request: &impl Message) -> Bytes {
    let mut body = BytesMut::new();
    body.put_u8(0); // Not compressed.
    body.put_u32(u32::try_from(request.encoded_len()).unwrap());
    request.encode(&mut body).unwrap();
    body.freeze()
}

async fn exchange(socket: &Path, path: String, body: Bytes) -> Result<Bytes, Failure> {
    let stream = UnixStream::connect(socket).await.map_err(lost)?;
    let (mut client, connection) = h2::client::handshake(stream).await.map_err(lost)?;
    let answer = async {
        let request = http::Request::post(path)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let (response, mut upload) = client.send_request(request, false).map_err(lost)?;
        upload.send_data(body, true).map_err(lost)?;
        let (head, mut download) = response.await.map_err(lost)?.into_parts();
        let mut received = BytesMut::new();
        while let Some(piece) = download.data().await {
            let piece = piece.map_err(lost)?;
            download.flow_control().release_capacity(piece.len()).map_err(lost)?;
            received.extend_from_slice(&piece);
        }
        // A server that fails at once sends its trailers as the head.
        let trailers = download.trailers().await.map_err(lost)?.unwrap_or(head.headers);
        verdict(&trailers)?;
        let mut received = received.freeze();
        if received.remaining() < 5 || received.get_u8() != 0 {
            return Err(lost("the answer is not a plain message"));
        }
        let length = received.get_u32() as usize;
        if length != received.remaining() {
            return Err(lost("the answer is cut short"));
        }
        Ok(received)
    };
    // The connection moves nothing unless it is polled beside the call.
    let mut connection = std::pin::pin!(connection);
    let mut answer = std::pin::pin!(answer);
    std::future::poll_fn(|context| {
        if let std::task::Poll::Ready(answer) = answer.as_mut().poll(context) {
            return std::task::Poll::Ready(answer);
        }
        let _ = connection.as_mut().poll(context); // The call hears of its end.
        answer.as_mut().poll(context)
    })
    .await
}

fn verdict(trailers: &http::HeaderMap) -> Result<(), Failure> {
    let text = |name| trailers.get(name).and_then(|value| value.to_str().ok());
    let Some(code) = text("grpc-status").and_then(|code| code.parse().ok()) else {
        return Err(lost("no status"));
    };
    if code == 0 {
        return Ok(());
    }
    Err(Failure::Refused(code, decoded(text("grpc-message").unwrap_or_default())))
}

/// A message as it was before its special characters became `%` and two digits.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = (*first == b'%')
            .then(|| more.get(..2))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::messages::Empty;
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_meant() {
        assert_eq!(decoded("caf%C3%A9: 100%25"), "café: 100%");
        assert_eq!(decoded("50% of it%"), "50% of it%");
    }

    #[test]
    fn a_server_that_is_not_there_is_told_from_one_that_refuses() {
        let socket = Path::new("/no-such-directory/socket");
        let answer = call::<Empty>(socket, "runtime.v1.RuntimeService", "Version", &Empty {});
        assert!(matches!(answer, Err(Failure::Lost(_))), "{answer:?}");
    }
}
