use super::*;
use crate::{
    FencingHeader, Rejection, TokenVerifier,
    signed::{
        Audience, KeyRing, SigningKey, VerifyingKey,
        tests::{accounts, key, secret, signed},
    },
};

fn pair(id: &str) -> SigningKey {
    SigningKey::ed25519(id, &secret(), accounts()).unwrap()
}

/// The half of a pair that a service with a store has.
fn public(key: &SigningKey) -> VerifyingKey {
    VerifyingKey::new(key.id(), key.public_key().unwrap(), accounts()).unwrap()
}

fn ring(keys: impl IntoIterator<Item = VerifyingKey>) -> KeyRing<VerifyingKey> {
    KeyRing::new(keys).unwrap()
}

fn verify(ring: &impl TokenVerifier, text: &str) -> Result<(), Rejection> {
    ring.verify(&FencingHeader::parse(text.as_bytes()).unwrap())
}

const REFUSED: Result<(), Rejection> = Err(Rejection::NotAccepted);

/// Computed with OpenSSL 3.0 from the documented bytes: `openssl pkeyutl -sign -rawin`.
const SIGNATURE: &str = "98X5YR2Y8J6PSeeXi8tsij9RvVatKkx+36LLuvXvpWnipAmKXGr2s/HSGTBhNKq2l5zHbrYl+\
                         wpM95xbmNOIBA==";

#[test]
fn it_signs_what_is_documented() {
    let text = signed(&pair("e1"));
    let (_, signature) = text.split_once(";kid=e1;sig=").unwrap();
    assert_eq!(signature, format!(":{SIGNATURE}:"));
    assert_eq!(
        pair("e1").public_key().unwrap().to_string(),
        "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
    );
}

/// Catches: a key of another pair or service that is accepted.
#[test]
fn a_ring_of_public_keys_accepts_what_its_pairs_have_signed_and_nothing_else() {
    let ours = ring([public(&pair("e1"))]);
    let second = SigningKey::ed25519("e2", &Secret::random(), accounts()).unwrap();
    let good = signed(&pair("e1"));
    assert_eq!(verify(&ours, &good), Ok(()));
    let both = KeyRing::new([pair("e1"), second]).unwrap();
    assert_eq!(verify(&both, &good), Ok(()));

    let orders = Audience::new("orders").unwrap();
    let other_service = SigningKey::ed25519("e1", &secret(), orders).unwrap();
    let other_pair = SigningKey::ed25519("e1", &Secret::random(), accounts()).unwrap();
    for forger in [pair("e2"), other_service, other_pair] {
        assert_eq!(verify(&ours, &signed(&forger)), REFUSED, "{forger:?}");
    }
    let (unsigned, _) = good.split_once(";kid").unwrap();
    assert_eq!(verify(&ours, unsigned), REFUSED);
    let both = ring([public(&pair("e1")), public(&pair("e2"))]);
    assert_eq!(verify(&both, &good.replace("kid=e1", "kid=e2")), REFUSED);
}

/// An attack that is known from JSON Web Tokens: a verifier takes a public key for a shared secret.
#[test]
fn the_key_says_which_algorithm_it_is_and_the_token_does_not() {
    let service = ring([public(&pair("k2"))]);
    let public_as_secret: Secret = pair("k2")
        .public_key()
        .unwrap()
        .to_string()
        .parse()
        .unwrap();
    let confused = SigningKey::new("k2", &public_as_secret, accounts()).unwrap();
    assert_eq!(verify(&service, &signed(&confused)), REFUSED);
    assert_eq!(verify(&service, &signed(&key("k2"))), REFUSED);
    let shared = KeyRing::new([key("k2")]).unwrap();
    assert_eq!(verify(&shared, &signed(&pair("k2"))), REFUSED);
}

#[test]
fn keys_of_one_kind_take_the_place_of_the_other_without_a_gap() {
    let (mac, pair) = (key("k1"), pair("e1"));
    let service = ring([mac.clone().into(), public(&pair)]);
    let gateway = KeyRing::new([mac.clone(), pair.clone()]).unwrap();
    assert_eq!(verify(&service, &signed(&gateway.signing_key())), Ok(()));
    gateway.replace([pair.clone(), mac.clone()]).unwrap();
    let after = signed(&gateway.signing_key());
    assert!(after.contains(";kid=e1;"));
    assert_eq!(verify(&service, &after), Ok(()));
    service.replace([public(&pair)]).unwrap();
    assert_eq!(verify(&service, &after), Ok(()));
    assert_eq!(verify(&service, &signed(&mac)), REFUSED);
}

/// S + L in the place of S solves the same equation. If it was accepted, one signature would have
/// two forms.
#[test]
fn a_signature_has_one_form_only() {
    let service = ring([public(&pair("e1"))]);
    let other = "AbjI8q/XVzpTJqUmtrat6FQWMnem/cc6MLCUgon/QIyxGkxiDSKoesdAaCvbvW2A4+suhZw93FrKypRrz\
                 JJoFA==";
    let forged = signed(&pair("e1")).replace(SIGNATURE, other);
    assert!(forged.contains(other));
    assert_eq!(verify(&service, &forged), REFUSED);
}

/// Catches: a point for which anybody can sign.
#[test]
fn a_text_that_is_no_public_key_is_refused() {
    let good = pair("e1").public_key().unwrap();
    assert_eq!(good.to_string().parse(), Ok(good));
    let in_base64 = |bytes: &[u8]| STANDARD.encode(bytes);
    let mut one = [0; 32];
    one[0] = 1;
    let mut not_on_the_curve = [0; 32];
    not_on_the_curve[0] = 2;
    for bad in [
        String::new(),
        good.to_string()[1..].to_owned(),
        in_base64(&[7; 31]),
        in_base64(&[7; 33]),
        in_base64(&not_on_the_curve),
        in_base64(&one), // the neutral element, for which anybody can sign
        in_base64(&[0; 32]),
    ] {
        assert_eq!(
            bad.parse::<PublicKey>(),
            Err(InvalidKey::PublicKey),
            "{bad}"
        );
    }
    assert_eq!(key("k1").public_key(), None);
    let bad_id = VerifyingKey::new("1", good, accounts());
    assert_eq!(bad_id.unwrap_err(), InvalidKey::Id);
}
