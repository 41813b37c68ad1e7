/// The kind of a message from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The message answers the oldest request that has no answer yet.
    Reply,
    /// The message was not requested.
    Push,
}

/// Splits the data from one end into messages of RESP. Data of another protocol, which
/// shows at once, is passed on in the pieces in which it comes.
#[derive(Debug, Default)]
pub(super) struct Frames {
    buffer: Vec<u8>,
    is_resp: Option<bool>,
}

impl Frames {
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message, once it is complete.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let &kind = self.buffer.first()?;
        let is_resp = self.is_resp.get_or_insert_with(|| {
            // A message of MySQL begins with its length, which may look like a kind, but no header
            // of RESP has a zero.
            let has_zero = self.buffer.iter().take(4).any(|byte| *byte == 0);
            KINDS.contains(&kind) && !has_zero
        });
        let end = match is_resp {
            true => end_of_message(&self.buffer, 0)?,
            false => self.buffer.len(),
        };
        let rest = self.buffer.split_off(end);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    /// The data that is left when no more comes: half a message.
    pub(super) fn rest(self) -> Vec<u8> {
        self.buffer
    }
}

/// The first bytes of the messages of RESP.
const KINDS: &[u8] = b"+-:_#,($!=*~>%|";

/// The first words of messages that come unrequested in RESP 2; in RESP 3 these have a type.
const PUSHED: [&str; 9] = [
    "message",
    "pmessage",
    "smessage",
    "subscribe",
    "psubscribe",
    "ssubscribe",
    "unsubscribe",
    "punsubscribe",
    "sunsubscribe",
];

/// The kind of a message from a server.
pub(super) fn kind(message: &[u8]) -> Kind {
    let pushed = match message.first() {
        Some(b'>') => true,
        Some(b'*') => first_word(message).is_some_and(|word| one_of(word, &PUSHED)),
        _ => false,
    };
    if pushed { Kind::Push } else { Kind::Reply }
}

/// Whether a request is answered by pushes only, because it changes the subscriptions of the
/// client.
pub(super) fn is_subscription(request: &[u8]) -> bool {
    first_word(request).is_some_and(|word| one_of(word, &PUSHED[3..]))
}

fn one_of(word: &[u8], words: &[&str]) -> bool {
    words
        .iter()
        .any(|each| word.eq_ignore_ascii_case(each.as_bytes()))
}

/// The first element of an array, if that is a string.
fn first_word(message: &[u8]) -> Option<&[u8]> {
    let header = end_of_line(message, 0)?;
    let word = end_of_line(message, header)?;
    let end = end_of_message(message, header)?;
    (message[header] == b'$').then(|| &message[word..end - 2])
}

/// Where the message that begins at `start` ends; `None` if it is not complete.
fn end_of_message(bytes: &[u8], start: usize) -> Option<usize> {
    let kind = *bytes.get(start)?;
    if !KINDS.contains(&kind) {
        return Some(bytes.len());
    }
    let body = end_of_line(bytes, start)?;
    let length = || {
        let digits = std::str::from_utf8(&bytes[start + 1..body - 2]).ok()?;
        digits.parse::<usize>().ok() // -1 is no length: there is no body
    };
    match kind {
        b'$' | b'!' | b'=' => {
            let end = length().map_or(body, |length| body + length + 2);
            (end <= bytes.len()).then_some(end)
        }
        b'*' | b'~' | b'>' => end_of_messages(bytes, body, length().unwrap_or(0)),
        b'%' => end_of_messages(bytes, body, 2 * length().unwrap_or(0)),
        // Attributes precede the message that they belong to.
        b'|' => end_of_messages(bytes, body, 2 * length().unwrap_or(0) + 1),
        _ => Some(body),
    }
}

fn end_of_messages(bytes: &[u8], start: usize, count: usize) -> Option<usize> {
    (0..count).try_fold(start, |at, _| end_of_message(bytes, at))
}

fn end_of_line(bytes: &[u8], start: usize) -> Option<usize> {
    let length = bytes[start..].windows(2).position(|pair| pair == b"\r\n")?;
    Some(start + length + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: [&str; 9] = [
        "+OK\r\n",
        "$5\r\na\r\nbc\r\n",
        "$-1\r\n",
        "*0\r\n",
        "*3\r\n$7\r\nEVALSHA\r\n:1\r\n*1\r\n$0\r\n\r\n",
        "%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n",
        "|1\r\n+ttl\r\n:3\r\n$1\r\nx\r\n",
        ">2\r\n$7\r\nmessage\r\n$1\r\nx\r\n",
        "-ERR no\r\n",
    ];

    /// Catches: a fault that hits half a message.
    #[test]
    fn messages_are_separated_wherever_the_stream_is_cut() {
        let stream = MESSAGES.concat();
        for piece in 1..stream.len() {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for bytes in stream.as_bytes().chunks(piece) {
                frames.extend(bytes);
                while let Some(message) = frames.next() {
                    found.push(String::from_utf8(message).unwrap());
                }
            }
            assert_eq!(found, MESSAGES, "in pieces of {piece}");
            assert!(frames.rest().is_empty());
        }
    }

    /// Catches: messages of another protocol that are taken for RESP.
    #[test]
    fn a_length_that_looks_like_a_kind_is_of_another_protocol() {
        let query = [&b"-\0\0\0\x03COMMIT; "[..], &[b'x'; 0x25]].concat();
        let mut frames = Frames::default();
        frames.extend(&query);
        assert_eq!(frames.next(), Some(query));
    }

    /// Catches: a lost push that is a reply in truth.
    #[test]
    fn pushes_are_distinguished_from_replies_in_both_versions() {
        let pushes = [MESSAGES[7], "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"];
        for push in pushes {
            assert_eq!(kind(push.as_bytes()), Kind::Push, "{push}");
        }
        for reply in [MESSAGES[0], MESSAGES[3], MESSAGES[4], MESSAGES[5]] {
            assert_eq!(kind(reply.as_bytes()), Kind::Reply, "{reply}");
        }
        assert!(is_subscription(b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n"));
        assert!(!is_subscription(b"*2\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n"));
    }
}
