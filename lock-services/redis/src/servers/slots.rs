//! The map of slots to the nodes of a cluster.

use std::collections::{BTreeSet, HashMap};

use redis::Value;

use super::address::Address;

/// One of the 16384 parts into which a cluster divides its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Slot(u16);

/// One node's knowledge about all nodes.
#[derive(Debug, Default)]
pub(super) struct Slots {
    ranges: Vec<Range>,
    /// Primaries and replicas.
    nodes: BTreeSet<Address>,
    /// The new owners of slots from later redirections.
    moved: HashMap<Slot, Address>,
}

#[derive(Debug)]
struct Range {
    first: Slot,
    last: Slot,
    primary: Address,
}

impl Slot {
    const COUNT: u16 = 16384;

    /// The slot of a key. If the key has a `{tag}`, the slot of the tag.
    pub(super) fn of(key: &str) -> Self {
        let tag = key
            .split_once('{')
            .and_then(|(_, rest)| rest.split_once('}'))
            .map_or(key, |(tag, _)| if tag.is_empty() { key } else { tag });
        Self(crc16(tag.as_bytes()) % Self::COUNT)
    }
}

impl Slots {
    /// Reads the answer to `CLUSTER SLOTS`. A range that cannot be read is left out, so its slots
    /// have no owner.
    pub(super) fn parse(answer: Value, said_by: &Address) -> Self {
        let mut slots = Self::default();
        let Value::Array(ranges) = answer else {
            return slots;
        };
        for range in ranges {
            let Value::Array(parts) = range else { continue };
            let [first, last, nodes @ ..] = &parts[..] else {
                continue;
            };
            let nodes: Vec<_> = nodes.iter().map(|node| address(node, said_by)).collect();
            if let (Some(first), Some(last), Some(Some(primary))) =
                (number(first), number(last), nodes.first())
            {
                slots.ranges.push(Range {
                    first: Slot(first),
                    last: Slot(last),
                    primary: primary.clone(),
                });
            }
            slots.nodes.extend(nodes.into_iter().flatten());
        }
        slots
    }

    /// The primary that has a slot.
    pub(super) fn owner(&self, slot: Slot) -> Option<&Address> {
        self.moved.get(&slot).or_else(|| {
            self.ranges
                .iter()
                .find(|range| (range.first..=range.last).contains(&slot))
                .map(|range| &range.primary)
        })
    }

    /// Notes the new owner of a slot.
    pub(super) fn moved(&mut self, slot: Slot, owner: Address) {
        self.nodes.insert(owner.clone());
        self.moved.insert(slot, owner);
    }

    /// All primaries and replicas that were heard of.
    pub(super) const fn nodes(&self) -> &BTreeSet<Address> {
        &self.nodes
    }
}

fn address(node: &Value, said_by: &Address) -> Option<Address> {
    let Value::Array(parts) = node else {
        return None;
    };
    let [host, port, ..] = &parts[..] else {
        return None;
    };
    let host = match host {
        Value::BulkString(host) => String::from_utf8_lossy(host),
        Value::SimpleString(host) => host.into(),
        Value::Nil => "".into(),
        _ => return None,
    };
    Address::of(&host, number(port)?, said_by)
}

fn number(value: &Value) -> Option<u16> {
    match value {
        Value::Int(number) => (*number).try_into().ok(),
        _ => None,
    }
}

/// CRC-16/XMODEM, by the specification of Redis Cluster.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: &str, port: i64) -> Value {
        Value::Array(vec![
            Value::BulkString(host.as_bytes().to_vec()),
            Value::Int(port),
            Value::BulkString(b"id".to_vec()),
        ])
    }

    fn answering() -> Address {
        Address {
            host: "seed".to_owned(),
            port: 6379,
        }
    }

    /// Catches: a wrong slot, which would cost a redirection each time although nothing fails.
    #[test]
    fn a_tag_decides_the_slot() {
        // From the specification, and from `CLUSTER KEYSLOT`.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(Slot::of("foo"), Slot(12182));
        assert_eq!(Slot::of("p:{7}:counter"), Slot::of("7"));
        assert_eq!(
            Slot::of("p:{}:counter"),
            Slot(crc16(b"p:{}:counter") % Slot::COUNT)
        );
    }

    /// Catches: a node that names itself with an empty host, and slots without an owner.
    #[test]
    fn a_redirection_overrules_the_map() {
        let range = |first, last, nodes: Vec<Value>| {
            let mut parts = vec![Value::Int(first), Value::Int(last)];
            parts.extend(nodes);
            Value::Array(parts)
        };
        let answer = Value::Array(vec![
            range(0, 8191, vec![node("", 7000), node("10.0.0.9", 7009)]),
            range(8192, 16383, vec![node("10.0.0.2", 7001)]),
            range(5, 5, vec![]),
            Value::Nil,
        ]);
        let mut slots = Slots::parse(answer, &answering());
        let owner = |slots: &Slots, slot| slots.owner(Slot(slot)).map(Address::to_string);
        assert_eq!(owner(&slots, 8191).as_deref(), Some("seed:7000"));
        assert_eq!(owner(&slots, 8192).as_deref(), Some("10.0.0.2:7001"));
        assert_eq!(slots.nodes().len(), 3);
        slots.moved(Slot(8192), answering());
        assert_eq!(owner(&slots, 8192).as_deref(), Some("seed:6379"));
        assert_eq!(owner(&slots, 8193).as_deref(), Some("10.0.0.2:7001"));
        assert_eq!(owner(&Slots::default(), 1), None);
    }
}
