//! The scripts, and their answers as types.

use std::{sync::LazyLock, time::Duration};

use redis::{FromRedisValue, RedisError, RedisResult, Script, Value};

use crate::FencingToken;

pub(super) static ACQUIRE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/acquire.lua")));
pub(super) static RENEW: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/renew.lua")));
pub(super) static RELEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/release.lua")));
pub(super) static CANCEL: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/cancel.lua")));
pub(super) static INSPECT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("lua/inspect.lua")));

/// What `acquire.lua` answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Acquired {
    Granted { token: FencingToken, left: Duration },
    Held { left: Duration },
    Ended,
    Missing,
    Implausible { greatest: u64 },
    Exhausted,
    BrokenCounter { why: String },
    BrokenLease,
}

/// What `renew.lua` answers for each lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RenewedWord {
    Renewed,
    NotHolder,
    Broken,
}

/// What `inspect.lua` answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inspected {
    Held {
        token: FencingToken,
        digest: String,
        left: Duration,
    },
    Free,
    Broken,
}

impl Acquired {
    pub(super) fn parse(answer: Value) -> RedisResult<Self> {
        let words = Vec::<String>::from_redis_value(answer)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["granted", token, left] => Ok(Self::Granted {
                token: number(token)?,
                left: millis(left)?,
            }),
            ["held", left] => Ok(Self::Held {
                left: millis(left)?,
            }),
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

impl RenewedWord {
    /// As many words as there are leases.
    pub(super) fn parse_all(answer: Value, leases: usize) -> RedisResult<Vec<Self>> {
        let words = Vec::<String>::from_redis_value(answer)?;
        if words.len() != leases {
            return Err(unexpected());
        }
        words
            .iter()
            .map(|word| match word.as_str() {
                "renewed" => Ok(Self::Renewed),
                "not_holder" => Ok(Self::NotHolder),
                "broken" => Ok(Self::Broken),
                _ => Err(unexpected()),
            })
            .collect()
    }
}

impl Inspected {
    pub(super) fn parse(answer: Value) -> RedisResult<Self> {
        let words = Vec::<String>::from_redis_value(answer)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["held", token, digest, left] => Ok(Self::Held {
                token: number(token)?,
                digest: digest.to_owned(),
                left: millis(left)?,
            }),
            ["free"] => Ok(Self::Free),
            ["broken"] => Ok(Self::Broken),
            _ => Err(unexpected()),
        }
    }
}

/// Whether `release.lua` found the lease to be ours.
pub(super) fn parse_released(answer: Value) -> RedisResult<bool> {
    let words = Vec::<String>::from_redis_value(answer)?;
    match words.first().map(String::as_str) {
        Some("released") => Ok(true),
        Some("not_holder") => Ok(false),
        _ => Err(unexpected()),
    }
}

/// `cancel.lua` always succeeds.
pub(super) fn parse_cancelled(answer: Value) -> RedisResult<()> {
    let words = Vec::<String>::from_redis_value(answer)?;
    if words == ["cancelled"] {
        Ok(())
    } else {
        Err(unexpected())
    }
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
