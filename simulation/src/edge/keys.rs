use std::sync::Arc;

use fenced_http::{
    FencingHeader, Unsigned,
    client::Credential,
    signed::{Audience, KeyRing, Secret, SigningKey},
};
use lock_core::{Issuer, Plausibility, Sequencer};

use crate::{service::SimBackend, world::Process};

/// Signs the tokens of clients, and has the key of the service that checks them.
pub(crate) struct Gateway {
    ring: KeyRing,
    /// The key of another service, whose tokens this service refuses.
    elsewhere: KeyRing,
}

/// 32 bytes in base64 that protect nothing: a secret that is drawn would differ in each run.
const SECRET: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Accepts the tokens of the simulated lock service as they are.
pub(super) fn open(process: &Process) -> Unsigned {
    let clock = Arc::new(process.clone());
    let issuer = Issuer::new(SimBackend::KIND).expect("a name of ours is valid");
    Unsigned::new(issuer).plausibility(Plausibility::by(clock))
}

impl Gateway {
    pub(super) fn new() -> Self {
        Self {
            ring: ring("rows"),
            elsewhere: ring("elsewhere"),
        }
    }

    pub(super) fn verifier(&self) -> KeyRing {
        self.ring.clone()
    }

    /// The token of `shown` with the signature of `signed`, which may be another one.
    pub(crate) fn sign(&self, signed: &Sequencer, shown: &Sequencer) -> Credential {
        of_ring(&self.ring, signed, shown)
    }

    /// A token that is signed for another service.
    pub(crate) fn sign_elsewhere(&self, signed: &Sequencer) -> Credential {
        of_ring(&self.elsewhere, signed, signed)
    }
}

fn ring(audience: &str) -> KeyRing {
    let secret: Secret = SECRET.parse().expect("it has 32 bytes");
    let audience = Audience::new(audience).expect("an audience of ours is valid");
    let key = SigningKey::derived("k1", &secret, audience).expect("an id of ours is valid");
    KeyRing::new([key]).expect("there is one key")
}

fn of_ring(ring: &KeyRing, signed: &Sequencer, shown: &Sequencer) -> Credential {
    let key = ring.signing_key();
    let header = key.sign(FencingHeader::new(signed));
    let signature = *header.signature().expect("it was signed");
    let shown = FencingHeader::new(shown).signed(signature);
    Credential::of(shown).expect("a sequencer has no other bytes")
}
