//! The content of a contender's node.

use lock_core::{Holder, Metadata, Ttl};

/// The author of the node: the first word of its first line.
const MARK: &str = "palisade/1";

/// The text that clients of Palisade write into their nodes, for the next in the queue and for
/// people.
///
/// It is text, because kazoo's `contenders()` reads it as text: `palisade/1 TTL_MS FLOOR HOLDER`,
/// and on the next line the metadata, if any. HOLDER is a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// The time for which the holder may be silent.
    pub(super) ttl: Ttl,
    /// The floor. The token is the floor plus the number of the transaction that created the node.
    pub(super) floor: u64,
    pub(super) holder: String,
    pub(super) metadata: Option<Metadata>,
}

impl Note {
    pub(super) fn new(ttl: Ttl, floor: u64, holder: Holder, metadata: Option<Metadata>) -> Self {
        Self {
            ttl,
            floor,
            holder: holder.digest(),
            metadata,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let (ttl, floor, holder) = (self.ttl.as_millis(), self.floor, &self.holder);
        let note = self
            .metadata
            .as_ref()
            .map_or(String::new(), |metadata| format!("\n{}", metadata.as_str()));
        format!("{MARK} {ttl} {floor} {holder}{note}").into_bytes()
    }

    /// `None` if another library wrote it.
    pub(super) fn decode(data: &[u8]) -> Option<Self> {
        let text = str::from_utf8(data).ok()?;
        let (head, metadata) = match text.split_once('\n') {
            Some((head, metadata)) => (head, Some(Metadata::new(metadata).ok()?)),
            None => (text, None),
        };
        let mut words = head.strip_prefix(MARK)?.strip_prefix(' ')?.split(' ');
        let ttl = std::time::Duration::from_millis(words.next()?.parse().ok()?);
        let note = Self {
            ttl: Ttl::new(ttl).ok()?,
            floor: words.next()?.parse().ok()?,
            holder: words.next()?.to_owned(),
            metadata,
        };
        words.next().is_none().then_some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a note that shows the secret, so that a reader of the nodes can release a lease.
    #[test]
    fn a_written_note_is_read_and_shows_no_secret() {
        let holder = Holder::random();
        for metadata in [None, Some(Metadata::new("node 7: 100 %, é").unwrap())] {
            let note = Note::new(Ttl::millis(1500), u64::MAX, holder, metadata);
            let text = note.encode();
            assert_eq!(Note::decode(&text), Some(note));
            assert!(!String::from_utf8(text).unwrap().contains(&holder.expose()));
        }
    }

    /// Catches: data of Curator, of kazoo or of a later version that are read as a ttl.
    #[test]
    fn the_data_of_other_clients_is_no_note() {
        for foreign in [
            "",
            "192.168.0.7",
            "palisade/1",
            "palisade/1 5 0 x",
            "palisade/1 1000 -1 x",
            "palisade/1 1000 0",
            "palisade/1 1000 0 x y",
            "palisade/2 1000 0 x",
        ] {
            assert_eq!(Note::decode(foreign.as_bytes()), None, "{foreign:?}");
        }
        assert_eq!(Note::decode(&[0xff]), None);
    }
}
