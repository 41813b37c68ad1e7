use std::time::Duration;

use bytes::Bytes;
use fenced_http::Scope;
use http::HeaderName;

use crate::judge::act::WriteId;

/// The header of an answer with the number of the write that the handler has tried.
pub(crate) static WRITE_ID: HeaderName = HeaderName::from_static("write-id");

/// A way into the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// Tokens have no signature.
    Open,
    /// The gateway has signed all tokens.
    Signed,
}

/// How the handler does its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It writes under the token of the request.
    Fenced,
    /// It writes nothing, and claims by hand that it was accepted.
    Boasting,
    /// By mistake it writes under the token of the request before.
    MixedUp,
}

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The path is that of another resource.
    OtherPath,
    /// The name of the resource in the path goes on after that of the token.
    LongerPath,
    /// The name of the resource in the path is the beginning of that of the token.
    ShorterPath,
    /// The path is the parent of the right path.
    ParentPath,
    NoToken,
    TwoTokens,
    /// The token is malformed.
    Garbled,
    /// The number of the token is greater by one.
    OtherNumber,
    /// The token is for the resource of the path, and was granted for another resource.
    OtherResource,
    OtherHolder,
    /// The token is of another lock service.
    OtherIssuer,
    /// No lock service can have issued the token.
    TooGreat,
    /// The signature is for another service, or there is a signature where none is checked.
    OtherSignature,
    /// The token has no signature where a signature is checked, or a wrong one where none is
    /// checked.
    NoSignature,
}

/// The body of a request: its number, and how the handler takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    /// The number of the request.
    pub(crate) request: WriteId,
    /// How long the handler takes before its transaction, and within it.
    pub(crate) takes: [Duration; 2],
}

impl Door {
    pub(super) fn scope(self) -> Scope {
        Scope::path(self.path(), "")
    }

    /// The beginning of the paths behind this door.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Open => "/open/",
            Self::Signed => "/signed/",
        }
    }

    pub(super) fn of(path: &str) -> Option<Self> {
        let mut doors = [Self::Open, Self::Signed].into_iter();
        doors.find(|door| path.starts_with(door.path()))
    }
}

impl Manner {
    const ALL: [Self; 3] = [Self::Fenced, Self::Boasting, Self::MixedUp];

    /// The part of the path after the resource.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Fenced => "",
            Self::Boasting => "/boast",
            Self::MixedUp => "/mix-up",
        }
    }

    /// Splits the rest of a path into the resource and the manner.
    pub(super) fn of(path: &str) -> Option<(&str, Self)> {
        let name = path.split('/').next()?;
        let rest = &path[name.len()..];
        let manner = Self::ALL.into_iter().find(|manner| manner.path() == rest)?;
        Some((name, manner))
    }
}

impl Flaw {
    pub(crate) const ALL: [Self; 14] = [
        Self::OtherPath,
        Self::LongerPath,
        Self::ShorterPath,
        Self::ParentPath,
        Self::NoToken,
        Self::TwoTokens,
        Self::Garbled,
        Self::OtherNumber,
        Self::OtherResource,
        Self::OtherHolder,
        Self::OtherIssuer,
        Self::TooGreat,
        Self::OtherSignature,
        Self::NoSignature,
    ];

    /// Whether the layer can see the flaw. Otherwise only the store can.
    pub(crate) const fn shows(self, door: Door) -> bool {
        match self {
            Self::OtherNumber | Self::OtherResource | Self::OtherHolder => {
                matches!(door, Door::Signed)
            }
            _ => true,
        }
    }
}

impl Flaw {
    /// The promise that a request with this flaw is refused.
    pub(crate) const fn promise(self) -> &'static str {
        match self {
            Self::OtherPath | Self::LongerPath | Self::ShorterPath | Self::ParentPath => {
                "http-scope"
            }
            Self::NoToken | Self::TwoTokens | Self::Garbled | Self::TooGreat => "http-form",
            _ => "http-tamper",
        }
    }
}

impl Body {
    pub(crate) fn write(self) -> Bytes {
        let [before, within] = self.takes.map(|takes| takes.as_millis());
        Bytes::from(format!("{} {before} {within}", self.request))
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut numbers = text.split(' ').map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        let request = next()?;
        let takes = [next()?, next()?].map(Duration::from_millis);
        Some(Self { request, takes })
    }
}
