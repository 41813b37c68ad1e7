use base64::{Engine as _, engine::general_purpose::STANDARD};
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
use proptest::prelude::*;

use super::*;
use crate::{FencingHeader, Rejection, TokenVerifier};

pub(super) fn sequencer() -> Sequencer {
    let holder = "9b6c5f0e2d4a4c1f8e7d6c5b4a392817";
    Sequencer::new(
        Issuer::new("redis").unwrap(),
        ResourceName::new("account:42").unwrap(),
        FencingToken::new(34).unwrap(),
        holder.parse::<Holder>().unwrap(),
    )
}

pub(super) fn secret() -> Secret {
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
        .parse()
        .unwrap()
}

pub(super) fn accounts() -> Audience {
    Audience::new("accounts").unwrap()
}

/// A key with this id. The secret of k2 is `secret()`.
pub(super) fn key(id: &str) -> SigningKey {
    let secret = match id {
        "k2" => secret(),
        id => secret().derive(&Audience::new(id).unwrap()),
    };
    SigningKey::new(id, &secret, accounts()).unwrap()
}

pub(super) fn signed(key: &SigningKey) -> String {
    let sequencer = sequencer();
    let header = FencingHeader::new(&sequencer).expires_at(1_900_000_000);
    let value = http::HeaderValue::try_from(key.sign(header.unwrap())).unwrap();
    value.to_str().unwrap().to_owned()
}

fn verify(ring: &KeyRing, text: &str) -> Result<(), Rejection> {
    ring.verify(&FencingHeader::parse(text.as_bytes()).unwrap())
}

fn ring(keys: &[SigningKey]) -> KeyRing {
    KeyRing::new(keys.to_vec()).unwrap()
}

/// The expected value was computed with another implementation, which follows the documentation.
#[test]
fn it_signs_what_is_documented() {
    let expected = "34;res=\"account:42\";iss=\"redis\";hld=\"9b6c5f0e2d4a4c1f8e7d6c5b4a392817\";\
                    exp=1900000000;kid=k2;sig=:iyEmV/IjZ/evKE1h5HnLNQ==:";
    assert_eq!(signed(&key("k2")), expected);
    assert_eq!(
        *secret().derive(&accounts()).expose(),
        "+067WURHdXwtQm32sENOVBhI3IT08a4EZNyH6ybrlzs="
    );
}

#[test]
fn a_signature_of_another_key_or_service_is_not_authentic() {
    let ours = ring(&[key("k2")]);
    assert_eq!(verify(&ours, &signed(&key("k2"))), Ok(()));
    let other_service = SigningKey::new("k2", &secret(), Audience::new("orders").unwrap());
    let other_secret = SigningKey::new("k2", &Secret::random(), accounts());
    for forger in [key("k1"), other_service.unwrap(), other_secret.unwrap()] {
        assert_eq!(verify(&ours, &signed(&forger)), Err(Rejection::NotAccepted));
    }
    let unsigned = signed(&key("k2"));
    let unsigned = unsigned.split_once(";kid").unwrap().0;
    assert_eq!(verify(&ours, unsigned), Err(Rejection::NotAccepted));
    let relabelled = signed(&key("k2")).replace("kid=k2", "kid=k1");
    let renamed = SigningKey::new("k1", &secret(), accounts()).unwrap();
    assert_eq!(
        verify(&ring(&[renamed]), &relabelled),
        Err(Rejection::NotAccepted)
    );
}

#[test]
fn keys_are_changed_without_a_gap() {
    let (old, new) = (key("k1"), key("k2"));
    let service = ring(std::slice::from_ref(&old));
    let gateway = service.clone();
    let before = signed(&gateway.signing_key());
    service.replace([old.clone(), new.clone()]).unwrap();
    assert_eq!(gateway.signing_key().id(), "k1");
    service.replace([new.clone(), old]).unwrap();
    assert_eq!(gateway.signing_key().id(), "k2");
    let after = signed(&gateway.signing_key());
    assert_eq!(verify(&service, &before), Ok(()));
    assert_eq!(verify(&service, &after), Ok(()));
    service.replace([new]).unwrap();
    assert_eq!(verify(&service, &before), Err(Rejection::NotAccepted));
}

/// Catches: a ring in which one key hides another.
#[test]
fn a_ring_that_cannot_work_is_refused_and_changes_nothing() {
    assert_eq!(
        KeyRing::<SigningKey>::new([]).unwrap_err(),
        InvalidKey::NoKey
    );
    let ring = ring(&[key("k1")]);
    let id = "k2".to_owned();
    assert_eq!(
        ring.replace([key("k2"), key("k2")]),
        Err(InvalidKey::Repeated { id })
    );
    assert_eq!(ring.signing_key().id(), "k1");
    for id in ["", "2k", "k 2", &"k".repeat(33)] {
        let key = SigningKey::new(id, &secret(), accounts());
        assert_eq!(key.unwrap_err(), InvalidKey::Id);
    }
    for audience in ["", "a b", &"a".repeat(65), "\u{e4}"] {
        assert_eq!(Audience::new(audience), Err(InvalidKey::Audience));
    }
}

/// Catches: a new key that is the old one under another name, and a key for checks that can also
/// sign.
#[test]
fn a_ring_refuses_one_secret_under_two_names_or_for_two_kinds_of_keys() {
    let given = Secret::random();
    let mac = |id| SigningKey::new(id, &given, accounts()).unwrap();
    let derived = |id| SigningKey::derived(id, &given, accounts()).unwrap();
    let pair = |id| SigningKey::ed25519(id, &given, accounts()).unwrap();
    let kinds: [&dyn Fn(&'static str) -> SigningKey; 3] = [&mac, &derived, &pair];
    for one in kinds {
        for other in kinds {
            let shared = InvalidKey::Shared {
                id: "k2".to_owned(),
                other: "k1".to_owned(),
            };
            let keys = [one("k1"), key("k3"), other("k2")];
            assert_eq!(KeyRing::new(keys.clone()).unwrap_err(), shared);
            let checking = keys.map(VerifyingKey::from);
            assert_eq!(KeyRing::new(checking).unwrap_err(), shared);
        }
    }
    let public = pair("e1").public_key().unwrap();
    let public = ["e1", "e2"].map(|id| VerifyingKey::new(id, public, accounts()).unwrap());
    assert_eq!(KeyRing::new(public).map(drop), Ok(()), "it has no secret");
}

/// Zeros, one repeated byte, a repeated word and a sentence are refused. The test also has the
/// least entropy that passes.
#[test]
fn a_secret_without_entropy_is_refused() {
    let text = |bytes: &[u8; 32]| STANDARD.encode(bytes);
    for bytes in [
        &[0; 32],
        &[b'a'; 32],
        b"hunter2.hunter2.hunter2.hunter2.",
        b"to be or not to be, that is the ",
    ] {
        let read = text(bytes).parse::<Secret>();
        assert_eq!(read.unwrap_err(), InvalidKey::Guessable);
    }
    for different in [15_u8, 16] {
        let bytes = std::array::from_fn(|at| u8::try_from(at).unwrap() % different);
        assert_eq!(text(&bytes).parse::<Secret>().is_ok(), different == 16);
    }
    for _ in 0..10_000 {
        Secret::random().expose().parse::<Secret>().unwrap();
    }
}

/// Catches: a derived `Debug`, or an error that repeats a text which it could not read.
#[test]
fn nothing_shows_a_secret() {
    let (secret, text) = (secret(), secret().expose());
    let shown = format!("{secret:?} {:?} {:?}", key("k2"), ring(&[key("k2")]));
    assert!(
        !shown.contains(text.as_str()) && !shown.contains("[0, 1, 2"),
        "{shown}"
    );
    let typo = format!("{}!", &text[..43]);
    let error = typo.parse::<Secret>().unwrap_err();
    assert!(!format!("{error} {error:?}").contains(&typo[..8]));
    for bad in ["", "AAEC", &text[..43], &format!("{}AAAA", *text)] {
        assert_eq!(bad.parse::<Secret>().unwrap_err(), InvalidKey::Secret);
    }
}

/// One key of each kind, with its verifier.
fn keys() -> [(SigningKey, Box<dyn TokenVerifier>); 2] {
    let pair = SigningKey::ed25519("e1", &secret(), accounts()).unwrap();
    let public = VerifyingKey::new("e1", pair.public_key().unwrap(), accounts()).unwrap();
    [
        (key("k2"), Box::new(ring(&[key("k2")]))),
        (pair, Box::new(KeyRing::new([public]).unwrap())),
    ]
}

proptest! {
    #[test]
    fn each_change_of_a_signed_header_is_noticed(at in 0_usize..300, bit in 0_u8..8) {
        for (key, ring) in keys() {
            let mut bytes = signed(&key).into_bytes();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            if let Ok(header) = FencingHeader::parse(&bytes) {
                prop_assert_eq!(ring.verify(&header), Err(Rejection::NotAccepted));
            }
        }
    }

    #[test]
    fn each_signed_header_is_accepted(
        token in 1_u64..=999_999_999_999_999,
        resource in "[!#-\\[\\]-~]{1,256}",
        issuer in "[A-Za-z0-9._:-]{1,64}",
        expiry in proptest::option::of(1_u64..=999_999_999_999_999),
    ) {
        let sequencer = Sequencer::new(
            Issuer::new(issuer).unwrap(),
            ResourceName::new(resource).unwrap(),
            FencingToken::new(token).unwrap(),
            Holder::random(),
        );
        let mut header = FencingHeader::new(&sequencer);
        if let Some(expiry) = expiry {
            header = header.expires_at(expiry).unwrap();
        }
        for (key, ring) in keys() {
            let value = http::HeaderValue::try_from(key.sign(header)).unwrap();
            let read = FencingHeader::parse(value.as_bytes()).unwrap();
            prop_assert_eq!(ring.verify(&read), Ok(()));
        }
    }
}
