//! The answers of the scripts, as types.

use std::time::Duration;

use redis::{FromRedisValue, RedisError, RedisResult, Value};

use super::pushes::Message;
use lock_core::FencingToken;

/// An answer of `acquire.lua`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Acquired {
    /// Granted now, with a full lease.
    AsAsked {
        token: FencingToken,
    },
    Granted {
        token: FencingToken,
        left: Duration,
        /// Whether the lease has to be confirmed.
        provisional: bool,
        /// Whether the lease was granted now, and not before.
        new: bool,
    },
    Held {
        left: Duration,
    },
    Waiting {
        left: Duration,
        /// The server's clock.
        at: Duration,
        /// The number of waiters before this one.
        place: u32,
    },
    /// The script did as much as it may do in one run, and has to be run again.
    More,
    Full,
    Refused(Refusal),
}

/// The reason why a script grants no token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Ended,
    Missing,
    Implausible { greatest: u64 },
    Exhausted,
    BrokenCounter { why: String },
    BrokenLease,
}

/// An answer of `together.lua`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Together {
    /// Token, time left, and whether it has to be confirmed.
    Granted(Vec<(FencingToken, Duration, bool)>),
    Held {
        left: Duration,
    },
    Refused(Refusal),
}

/// The answer of `renew.lua` for each lease, and of `confirm.lua` for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RenewedWord {
    Renewed,
    NotHolder,
    Broken,
}

/// An answer of `release.lua`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReleasedWord {
    Released {
        /// The counter of the shard was lifted to the clock.
        raised: bool,
        /// The grant of a waiter of this client.
        handed: Option<Message>,
    },
    /// The lease was released. The script has to be run again to serve the queue.
    More,
    NotHolder,
}

/// An answer of `force_release.lua`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ForcedWord {
    Ended { revocation: FencingToken },
    NotHeld,
    Refused(Refusal),
}

/// An answer of `inspect.lua`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inspected {
    Held {
        waiters: u64,
        token: FencingToken,
        digest: String,
        left: Duration,
        metadata: String,
    },
    Free {
        waiters: u64,
    },
    Broken,
}

impl Acquired {
    pub(super) fn parse(answer: Value) -> RedisResult<Self> {
        if let Value::Int(token) = answer {
            let token = token.try_into().map_err(|_| unexpected())?;
            return Ok(Self::AsAsked { token });
        }
        let words = words(answer)?;
        Ok(match as_strs(&words)[..] {
            [word @ ("granted" | "again"), token, left, state] => Self::Granted {
                token: number(token)?,
                left: millis(left)?,
                provisional: state == "p",
                new: word == "granted",
            },
            ["held", left] => Self::Held {
                left: millis(left)?,
            },
            ["waiting", left, at, place] => Self::Waiting {
                left: millis(left)?,
                at: millis(at)?,
                place: number(place)?,
            },
            ["more"] => Self::More,
            ["full"] => Self::Full,
            ref other => Self::Refused(Refusal::read(other)?),
        })
    }
}

impl Refusal {
    fn read(words: &[&str]) -> RedisResult<Self> {
        match *words {
            ["ended"] => Ok(Self::Ended),
            ["missing"] => Ok(Self::Missing),
            ["implausible", greatest] => Ok(Self::Implausible {
                greatest: number(greatest)?,
            }),
            ["exhausted"] => Ok(Self::Exhausted),
            ["broken_counter", why] => Ok(Self::BrokenCounter {
                why: why.to_owned(),
            }),
            ["broken_lease"] => Ok(Self::BrokenLease),
            _ => Err(unexpected()),
        }
    }
}

impl Together {
    pub(super) fn parse(answer: Value) -> RedisResult<Self> {
        let words = words(answer)?;
        Ok(match as_strs(&words)[..] {
            ["granted", ref grants @ ..] => {
                let grants = grants.chunks(3).map(|grant| match *grant {
                    [token, left, state] => Ok((number(token)?, millis(left)?, state == "p")),
                    _ => Err(unexpected()),
                });
                Self::Granted(grants.collect::<RedisResult<_>>()?)
            }
            ["held", left] => Self::Held {
                left: millis(left)?,
            },
            ref other => Self::Refused(Refusal::read(other)?),
        })
    }
}

impl RenewedWord {
    /// Parses the answer of `renew.lua`: as many letters as there are leases.
    pub(super) fn parse_all(answer: Value, leases: usize) -> RedisResult<Vec<Self>> {
        let letters = word(&answer);
        if letters.len() != leases {
            return Err(unexpected());
        }
        letters
            .iter()
            .map(|letter| match letter {
                b'r' => Ok(Self::Renewed),
                b'n' => Ok(Self::NotHolder),
                b'b' => Ok(Self::Broken),
                _ => Err(unexpected()),
            })
            .collect()
    }

    /// Parses the answer of `confirm.lua`.
    pub(super) fn parse(answer: Value) -> RedisResult<Self> {
        match word(&answer) {
            b"renewed" => Ok(Self::Renewed),
            b"not_holder" => Ok(Self::NotHolder),
            b"broken" => Ok(Self::Broken),
            _ => Err(unexpected()),
        }
    }
}

impl ReleasedWord {
    pub(super) fn parse(answer: Value) -> RedisResult<Self> {
        let (answer, handed) = match &answer {
            Value::Array(parts) => match parts.as_slice() {
                [answer] => (answer, None),
                [answer, grant] => (answer, Some(Message::read(grant).ok_or_else(unexpected)?)),
                _ => return Err(unexpected()),
            },
            answer => (answer, None),
        };
        match word(answer) {
            word @ (b"released" | b"raised") => Ok(Self::Released {
                raised: word == b"raised",
                handed,
            }),
            b"more" => Ok(Self::More),
            b"not_holder" => Ok(Self::NotHolder),
            _ => Err(unexpected()),
        }
    }
}

impl ForcedWord {
    pub(super) fn parse(answer: Value) -> RedisResult<Self> {
        let words = words(answer)?;
        Ok(match as_strs(&words)[..] {
            ["ended", revocation] => Self::Ended {
                revocation: number(revocation)?,
            },
            ["not_held"] => Self::NotHeld,
            ref other => Self::Refused(Refusal::read(other)?),
        })
    }
}

impl Inspected {
    pub(super) fn parse(answer: Value) -> RedisResult<Self> {
        let words = words(answer)?;
        match as_strs(&words)[..] {
            ["held", waiters, token, digest, left, metadata] => Ok(Self::Held {
                waiters: number(waiters)?,
                token: number(token)?,
                digest: digest.to_owned(),
                left: millis(left)?,
                metadata: metadata.to_owned(),
            }),
            ["free", waiters] => Ok(Self::Free {
                waiters: number(waiters)?,
            }),
            ["broken"] => Ok(Self::Broken),
            _ => Err(unexpected()),
        }
    }
}

/// Whether `cancel.lua` has to be run again.
pub(super) fn parse_cancelled(answer: Value) -> RedisResult<bool> {
    match word(&answer) {
        b"cancelled" => Ok(false),
        b"more" => Ok(true),
        _ => Err(unexpected()),
    }
}

/// The word that is the answer. Empty if the answer is something else.
fn word(answer: &Value) -> &[u8] {
    match answer {
        Value::BulkString(word) => word,
        _ => b"",
    }
}

fn words(answer: Value) -> RedisResult<Vec<String>> {
    Ok(Vec::<String>::from_redis_value(answer)?)
}

fn as_strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn number<T: std::str::FromStr>(text: &str) -> RedisResult<T> {
    text.parse().map_err(|_| unexpected())
}

fn millis(text: &str) -> RedisResult<Duration> {
    number(text).map(Duration::from_millis)
}

fn unexpected() -> RedisError {
    (
        redis::ErrorKind::UnexpectedReturnType,
        "not an answer of this version's scripts",
    )
        .into()
}
