//! The requests that a client makes, right ones and those with a flaw.

use bytes::Bytes;
use fenced_http::{FENCING_TOKEN, client::Credential};
use http::{HeaderValue, Request};
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};

use super::{Me, me::named};
use crate::edge::{Body, Door, Flaw, Manner};
use crate::store::Ledger;

/// The properties of a request that a client wants to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) door: Door,
    pub(super) manner: Manner,
    pub(super) flaw: Option<Flaw>,
    /// The token is claimed before the first request.
    pub(super) is_claimed: bool,
    /// The request is sent once more after the release.
    pub(super) is_repeated: bool,
}

/// A request with its token.
pub(super) struct Presented {
    pub(super) credential: Credential,
    wish: Wish,
    /// The resource in the path.
    about: String,
}

impl Wish {
    /// Leases of every kind use the two lowest bits of the choice, too.
    pub(super) fn of(choice: u8) -> Self {
        let door = match choice & 2 {
            0 => Door::Open,
            _ => Door::Signed,
        };
        let right = Self {
            door,
            manner: Manner::Fenced,
            flaw: None,
            is_claimed: true,
            is_repeated: false,
        };
        match choice >> 3 {
            0..=7 => right,
            8..=11 => Self {
                is_repeated: true,
                ..right
            },
            12..=15 => Self {
                is_claimed: false,
                ..right
            },
            16 => Self {
                manner: Manner::Boasting,
                ..right
            },
            17 => Self {
                manner: Manner::MixedUp,
                ..right
            },
            flawed => Self {
                flaw: Flaw::ALL.get(usize::from(flawed) - 18).copied(),
                ..right
            },
        }
    }
}

impl Presented {
    pub(super) fn new<S: Ledger>(me: &Me<S>, sequencer: &Sequencer, wish: Wish) -> Self {
        let name = sequencer.resource().as_str();
        let other = if name == "r0" { "r1" } else { "r0" };
        let about = match wish.flaw {
            Some(Flaw::OtherPath | Flaw::OtherResource) => other.to_owned(),
            Some(Flaw::LongerPath) => format!("{name}0"),
            Some(Flaw::ShorterPath) => name[..1].to_owned(),
            Some(Flaw::ParentPath) => String::new(),
            _ => name.to_owned(),
        };
        let shown = shown(me, sequencer, wish.flaw, &named(other));
        let gateway = me.edge().gateway();
        let credential = match (wish.door, wish.flaw) {
            (_, Some(Flaw::OtherSignature)) => gateway.sign_elsewhere(&shown),
            (Door::Signed, Some(Flaw::NoSignature)) => unsigned(&shown),
            (Door::Signed, _) | (_, Some(Flaw::NoSignature)) => gateway.sign(sequencer, &shown),
            (Door::Open, _) => unsigned(&shown),
        };
        Self {
            credential,
            wish,
            about,
        }
    }

    /// The token that the request shows.
    pub(super) const fn token(&self) -> u64 {
        self.credential.token().get()
    }

    pub(super) fn request(&self, body: Body) -> Request<Bytes> {
        let Wish {
            door, manner, flaw, ..
        } = self.wish;
        let path = [door.path(), &self.about, manner.path()].concat();
        let mut request = Request::new(body.write());
        *request.method_mut() = http::Method::PUT;
        *request.uri_mut() = path.parse().expect("a path of ours is valid");
        let headers = request.headers_mut();
        self.credential.put_on(headers);
        match flaw {
            Some(Flaw::NoToken) => drop(headers.remove(&FENCING_TOKEN)),
            Some(Flaw::TwoTokens) => {
                headers.append(&FENCING_TOKEN, self.credential.value().clone());
            }
            Some(Flaw::Garbled) => {
                let text = format!(" {}", self.credential.expose());
                let value = HeaderValue::try_from(text).expect("it has no control characters");
                headers.insert(&FENCING_TOKEN, value);
            }
            _ => {}
        }
        request
    }
}

fn unsigned(sequencer: &Sequencer) -> Credential {
    Credential::new(sequencer).expect("a sequencer has no bytes that no header may have")
}

/// The grant that the token shows, which is another grant if that is the flaw.
fn shown<S: Ledger>(
    me: &Me<S>,
    own: &Sequencer,
    flaw: Option<Flaw>,
    other: &ResourceName,
) -> Sequencer {
    let (mut issuer, mut resource) = (own.issuer().clone(), own.resource().clone());
    let (mut token, mut holder) = (own.token(), own.holder());
    match flaw {
        Some(Flaw::OtherNumber) => token = token.next().unwrap_or(FencingToken::MIN),
        Some(Flaw::TooGreat) => token = FencingToken::MAX,
        Some(Flaw::OtherResource) => resource = other.clone(),
        Some(Flaw::OtherHolder) => holder = Holder::draw(me.runtime()),
        Some(Flaw::OtherIssuer) => issuer = Issuer::new("elsewhere").expect("a valid name"),
        _ => {}
    }
    Sequencer::new(issuer, resource, token, holder)
}
