//! D-Bus messages, as far as method calls with strings and booleans need them
//! (D-Bus specification, "Message Protocol").

use podwire_spec::error::Error;

/// The longest answer that is read: those of firewalld are a few hundred
/// bytes.
pub(super) const MESSAGE_LIMIT: usize = 64 << 10;
/// Bytes before the header's fields.
pub(super) const FIXED: usize = 16;

const METHOD_CALL: u8 = 1;
const METHOD_RETURN: u8 = 2;
const ERROR: u8 = 3;

/// Numbers of header fields.
mod field {
    pub(super) const PATH: u8 = 1;
    pub(super) const INTERFACE: u8 = 2;
    pub(super) const MEMBER: u8 = 3;
    pub(super) const ERROR_NAME: u8 = 4;
    pub(super) const REPLY_SERIAL: u8 = 5;
    pub(super) const DESTINATION: u8 = 6;
    pub(super) const SIGNATURE: u8 = 8;
}

/// A method to be called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) destination: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
    pub(super) arguments: &'a [&'a str],
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The method's first result, if it is a string or a boolean.
    Return(Option<Value>),
    /// Its error: the name, and the text behind it.
    Error(String, String),
}

/// A value in a message's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Truth(bool),
}

impl Call<'_> {
    /// The call as bytes, little-endian.
    pub(super) fn encode(&self, serial: u32) -> Vec<u8> {
        let mut body = Vec::new();
        for argument in self.arguments {
            put_text(&mut body, argument);
        }
        let mut message = vec![b'l', METHOD_CALL, 0, 1];
        message.extend(length(&body));
        message.extend(serial.to_le_bytes());
        let mut fields = Vec::new();
        for (code, kind, text) in [
            (field::PATH, b'o', self.path),
            (field::INTERFACE, b's', self.interface),
            (field::MEMBER, b's', self.member),
            (field::DESTINATION, b's', self.destination),
        ] {
            pad(&mut fields, 8);
            fields.extend([code, 1, kind, 0]);
            put_text(&mut fields, text);
        }
        if let Ok(count) = u8::try_from(self.arguments.len())
            && count > 0
        {
            pad(&mut fields, 8);
            fields.extend([field::SIGNATURE, 1, b'g', 0, count]);
            fields.extend(self.arguments.iter().map(|_| b's'));
            fields.push(0);
        }
        message.extend(length(&fields));
        message.extend(fields);
        pad(&mut message, 8);
        message.extend(body);
        message
    }
}

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes()
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    pad(bytes, 4);
    bytes.extend(length(text.as_bytes()));
    bytes.extend(text.as_bytes());
    bytes.push(0);
}

fn pad(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

fn malformed(what: &str) -> Error {
    Error::internal(format!("the D-Bus system bus sent a malformed message: {what}"))
}

/// Reads values at their alignment.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    big_endian: bool,
}

impl<'a> Reader<'a> {
    fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(count).ok_or_else(|| malformed("a length"))?;
        let taken = self.bytes.get(self.at..end).ok_or_else(|| malformed("it ends too early"))?;
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    fn number(&mut self) -> Result<u32, Error> {
        self.align(4);
        let bytes = self.take(4)?.try_into().map_err(|_| malformed("a number"))?;
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn text(&mut self) -> Result<String, Error> {
        let length = self.number()? as usize;
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.take(1)?;
        Ok(text)
    }

    fn signature(&mut self) -> Result<&'a [u8], Error> {
        let length = usize::from(self.byte()?);
        let signature = self.take(length)?;
        self.take(1)?;
        Ok(signature)
    }
}

/// How long a message is, from its first [`FIXED`] bytes.
///
/// # Errors
/// It is no message, or one beyond [`MESSAGE_LIMIT`].
pub(super) fn total_length(fixed: &[u8]) -> Result<usize, Error> {
    let big_endian = match fixed.first() {
        Some(b'l') => false,
        Some(b'B') => true,
        _ => return Err(malformed("its byte order")),
    };
    let mut reader = Reader { bytes: fixed, at: 4, big_endian };
    let body = reader.number()? as usize;
    reader.number()?;
    let fields = reader.number()? as usize;
    let header = FIXED.saturating_add(fields);
    let total = header.checked_next_multiple_of(8).and_then(|header| header.checked_add(body));
    total.filter(|total| *total <= MESSAGE_LIMIT).ok_or_else(|| malformed("it is too long"))
}

/// Reads a whole message; `None` if it is not the answer to the call with
/// this serial (signals come in between).
///
/// # Errors
/// It breaks the format.
pub(super) fn decode(message: &[u8], serial: u32) -> Result<Option<Answer>, Error> {
    let total = total_length(message)?;
    let mut reader = Reader { bytes: message, at: 1, big_endian: message.first() == Some(&b'B') };
    let kind = reader.byte()?;
    if total != message.len() {
        return Err(malformed("its length"));
    }
    reader.at = FIXED - 4;
    let end = FIXED + reader.number()? as usize;
    let (mut replies_to, mut name, mut signature) = (None, String::new(), Vec::new());
    loop {
        reader.align(8);
        if reader.at >= end {
            break;
        }
        let code = reader.byte()?;
        match (code, reader.signature()?) {
            (field::REPLY_SERIAL, b"u") => replies_to = Some(reader.number()?),
            (_, b"u") => drop(reader.number()?),
            (field::ERROR_NAME, b"s") => name = reader.text()?,
            (_, b"s" | b"o") => drop(reader.text()?),
            (field::SIGNATURE, b"g") => signature = reader.signature()?.to_vec(),
            (_, b"g") => drop(reader.signature()?),
            _ => return Err(malformed("a header field")),
        }
    }
    if replies_to != Some(serial) {
        return Ok(None);
    }
    reader.at = end.next_multiple_of(8);
    let value = match signature.first() {
        Some(b's') => Some(Value::Text(reader.text()?)),
        Some(b'b') => Some(Value::Truth(reader.number()? != 0)),
        _ => None,
    };
    match (kind, value) {
        (METHOD_RETURN, value) => Ok(Some(Answer::Return(value))),
        (ERROR, Some(Value::Text(text))) => Ok(Some(Answer::Error(name, text))),
        (ERROR, _) => Ok(Some(Answer::Error(name, String::new()))),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call<'static> = Call {
        destination: "org.example.Bus",
        path: "/a",
        interface: "org.example.I",
        member: "Do",
        arguments: &["trusted", "10.1.0.2/32"],
    };

    /// An answer as a bus sends it, in either byte order.
    fn answer(kind: u8, serial: u32, signature: &[u8], body: &[u8], big: bool) -> Vec<u8> {
        let number = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut fields = vec![field::REPLY_SERIAL, 1, b'u', 0];
        fields.extend(number(serial));
        fields.extend([field::ERROR_NAME, 1, b's', 0]);
        fields.extend(number(3));
        fields.extend(b"a.b\0");
        pad(&mut fields, 8);
        fields.extend([field::SIGNATURE, 1, b'g', 0, u8::try_from(signature.len()).unwrap()]);
        fields.extend(signature);
        fields.push(0);
        let mut message = vec![if big { b'B' } else { b'l' }, kind, 0, 1];
        message.extend(number(u32::try_from(body.len()).unwrap()));
        message.extend(number(9));
        message.extend(number(u32::try_from(fields.len()).unwrap()));
        message.extend(fields);
        pad(&mut message, 8);
        message.extend(body);
        message
    }

    #[test]
    fn a_call_is_laid_out_as_the_specification_says() {
        let message = CALL.encode(7);
        assert_eq!(message[..4], [b'l', 1, 0, 1]);
        assert_eq!(total_length(&message).unwrap(), message.len());
        // "trusted" and its NUL, then the second string at the next multiple
        // of four.
        let body = &message[message.len() - 28..];
        assert_eq!(body[..4], 7_u32.to_le_bytes());
        assert_eq!(&body[12..16], 11_u32.to_le_bytes());
        assert_eq!(&body[16..], b"10.1.0.2/32\0");
        // A call is no answer.
        assert_eq!(decode(&message, 7).unwrap(), None);
    }

    #[test]
    fn answers_are_read_in_both_byte_orders() {
        for big in [false, true] {
            let truth = if big { 1_u32.to_be_bytes() } else { 1_u32.to_le_bytes() };
            let message = answer(METHOD_RETURN, 7, b"b", &truth, big);
            assert_eq!(
                decode(&message, 7).unwrap(),
                Some(Answer::Return(Some(Value::Truth(true))))
            );
            assert_eq!(decode(&message, 8).unwrap(), None, "another's");
            let length = if big { 2_u32.to_be_bytes() } else { 2_u32.to_le_bytes() };
            let message = answer(ERROR, 7, b"s", &[&length[..], b"no\0"].concat(), big);
            let expected = Answer::Error("a.b".into(), "no".into());
            assert_eq!(decode(&message, 7).unwrap(), Some(expected));
        }
        let empty = answer(METHOD_RETURN, 7, b"", b"", false);
        assert_eq!(decode(&empty, 7).unwrap(), Some(Answer::Return(None)));
    }

    #[test]
    fn whatever_a_bus_sends_is_an_error_or_an_answer_never_a_panic() {
        let length = 2_u32.to_le_bytes();
        let good = answer(ERROR, 7, b"s", &[&length[..], b"no\0"].concat(), false);
        for end in 0..good.len() {
            assert!(decode(&good[..end], 7).is_err(), "cut at {end}");
        }
        let mut seed = 1_u32;
        for round in 0..20_000 {
            let mut message = good.clone();
            for _ in 0..=round % 4 {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = (seed >> 8) as usize % message.len();
                message[at] = u8::try_from(seed >> 24).unwrap();
            }
            // It returns.
            let _ = decode(&message, 7);
        }
        assert!(total_length(&[0; FIXED]).is_err());
        let mut huge = good;
        huge[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(total_length(&huge).is_err());
    }
}
