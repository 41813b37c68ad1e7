use http::HeaderValue;
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
use proptest::prelude::*;

use super::{FencingHeader, Malformed, Signature, write::longest};

const HOLDER: &str = "00112233445566778899aabbccddeeff";
const SIGNATURE: &str = "pE7gSIulWhwYF8j8gLP8PA==";

fn sequencer(token: u64, resource: &str, issuer: &str) -> Sequencer {
    Sequencer::new(
        Issuer::new(issuer).unwrap(),
        ResourceName::new(resource).unwrap(),
        FencingToken::new(token).unwrap(),
        HOLDER.parse().unwrap(),
    )
}

/// Reads a value as a server does: the form, then the names.
fn read(value: impl AsRef<[u8]>) -> Result<Sequencer, Malformed> {
    Ok(FencingHeader::parse(value.as_ref())?.to_sequencer()?)
}

fn plain(token: &str) -> String {
    format!("{token};res=\"account:42\";iss=\"redis\";hld=\"{HOLDER}\"")
}

/// Catches: a parser that wants the order in which we write.
#[test]
fn parameters_come_in_any_order() {
    let value = format!(
        "34;sig=:{SIGNATURE}:;exp=1900000000;hld=\"{HOLDER}\";kid=k2;iss=\"redis\";res=\"a\""
    );
    let header = FencingHeader::parse(value.as_bytes()).unwrap();
    assert_eq!(header.token(), FencingToken::new(34).unwrap());
    assert_eq!((header.resource(), header.issuer()), ("a", "redis"));
    assert_eq!(header.holder(), HOLDER.parse().unwrap());
    assert_eq!(header.expiry(), Some(1_900_000_000));
    let signature = header.signature().unwrap();
    assert_eq!(signature.key_id(), "k2");
    assert_eq!(signature.as_bytes()[..3], [0xa4, 0x4e, 0xe0]);
}

#[test]
fn only_the_shortest_form_of_a_number_in_range_is_a_token() {
    assert!(read(plain("1")).is_ok());
    assert!(read(plain("999999999999999")).is_ok());
    let bad = [
        "",
        "abc",
        "0",
        "00",
        "034",
        "-1",
        "+5",
        "5.0",
        "1e3",
        " 7 ",
        " 7",
        "7 ",
        "0x22",
        "\"34\"",
        "34,35",
        "34, 35",
        "34;",
        "(34)",
        "?1",
        "٣",
        "\u{feff}34",
        "1000000000000000",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
    ];
    for token in bad {
        assert!(read(plain(token)).is_err(), "{token:?}");
    }
    assert_eq!(
        read(plain("0")),
        Err(Malformed::Number { part: "the token" })
    );
}

#[test]
fn a_text_outside_of_the_grammar_is_refused() {
    let ok = plain("34");
    let bad: [(String, Malformed); 18] = [
        (String::new(), Malformed::Number { part: "the token" }),
        ("34".into(), Malformed::Missing { name: "res" }),
        ("34;res=\"a\"".into(), Malformed::Missing { name: "iss" }),
        (
            "34;res=\"a\";iss=\"b\"".into(),
            Malformed::Missing { name: "hld" },
        ),
        (format!("{ok};"), Malformed::Syntax { at: ok.len() + 1 }),
        (format!("{ok} "), Malformed::Syntax { at: ok.len() }),
        (
            format!("{ok}; exp=1"),
            Malformed::Syntax { at: ok.len() + 1 },
        ),
        (format!("{ok};exp"), Malformed::Syntax { at: ok.len() + 4 }),
        (format!("{ok};exp=0"), Malformed::Number { part: "exp" }),
        (
            format!("{ok};seq=7"),
            Malformed::UnknownParameter { at: ok.len() + 1 },
        ),
        (
            format!("{ok};exp=1.5"),
            Malformed::Syntax { at: ok.len() + 6 },
        ),
        (
            format!("{ok};aud=\"x\""),
            Malformed::UnknownParameter { at: ok.len() + 1 },
        ),
        (
            format!("{ok};res=\"b\""),
            Malformed::Repeated { name: "res" },
        ),
        (
            format!("{ok};hld=\"{HOLDER}\""),
            Malformed::Repeated { name: "hld" },
        ),
        (format!("{ok};kid=k2"), Malformed::Missing { name: "sig" }),
        (
            format!("{ok};sig=:{SIGNATURE}:"),
            Malformed::Missing { name: "kid" },
        ),
        (format!("{ok};kid=2k;sig=:{SIGNATURE}:"), Malformed::KeyId),
        (format!("{ok};kid=k2;sig=:AAAA:"), Malformed::Signature),
    ];
    for (value, why) in bad {
        assert_eq!(read(&value), Err(why), "{value:?}");
    }
}

#[test]
fn a_holder_is_32_lower_case_hex_digits() {
    let with = |holder: &str| read(format!("34;res=\"a\";iss=\"b\";hld={holder}"));
    assert!(with(&format!("\"{HOLDER}\"")).is_ok());
    let long = format!("\"{}\"", "0".repeat(256));
    let upper = format!("\"{}\"", HOLDER.to_uppercase());
    for holder in [
        "",
        "\"\"",
        "\"0\"",
        &long,
        &upper,
        &format!("\"{HOLDER}"),
        HOLDER,
    ] {
        assert!(with(holder).is_err(), "{holder:?}");
    }
    assert!(with(&format!("\"{}\0\"", &HOLDER[1..])).is_err());
}

/// Two texts for one signature would let a signed header be altered without notice.
/// Catches: a second text for one signature.
#[test]
fn a_signature_has_one_text_only() {
    let with = |sig: &str| read(format!("{};kid=k;sig={sig}", plain("34")));
    assert!(with(&format!(":{SIGNATURE}:")).is_ok());
    let bad = [
        ":pE7gSIulWhwYF8j8gLP8PB==:", // trailing bits that are not zero
        ":pE7gSIulWhwYF8j8gLP8PA=:",
        ":pE7gSIulWhwYF8j8gLP8PA:",
        ":pE7gSIulWhwYF8j8gLP8_A==:",
        ":pE7gSIul WhwYF8j8gLP8PA==:",
        ":pE7gSIulWhwYF8j8gLP8PA==",
        "::",
        "\"pE7gSIulWhwYF8j8gLP8PA==\"",
        ":pE7gSIulWhwYF8j8gLP8PDwv:", // 18 bytes
    ];
    for sig in bad {
        assert!(with(sig).is_err(), "{sig:?}");
    }
}

#[test]
fn the_longest_legal_header_is_read() {
    let sequencer = sequencer(999_999_999_999_999, &"r".repeat(256), &"i".repeat(64));
    let key_id = "k".repeat(32);
    let header = FencingHeader::new(&sequencer)
        .expires_at(999_999_999_999_999)
        .unwrap();
    for (signature, len) in [(&[0xff; 16][..], 476), (&[0xff; 64], 540)] {
        let header = header.signed(Signature::new(&key_id, signature).unwrap());
        let value = HeaderValue::try_from(header).unwrap();
        assert_eq!((value.len(), longest(signature.len())), (len, len));
        assert_eq!(FencingHeader::parse(value.as_bytes()), Ok(header));
        // With any addition, and with any signature.
        for more in [";", ";exp=1", &"0".repeat(512 - 476)] {
            assert!(read([value.as_bytes(), more.as_bytes()].concat()).is_err());
        }
    }
}

#[test]
fn without_the_long_signature_nothing_of_more_than_512_bytes_is_read() {
    for filler in ["0", ";", "x", "=", "\\"] {
        for ok in [
            plain("34"),
            format!("{};kid=k2;sig=:{SIGNATURE}:", plain("34")),
        ] {
            let value = format!("{ok}{}", filler.repeat(513 - ok.len()));
            assert!(read(&value).is_err(), "{value}");
        }
    }
    let with_name_of = |len| plain("34").replace("account:42", &"x".repeat(len));
    let others = with_name_of(0).len();
    let (fits, too_long) = (with_name_of(512 - others), with_name_of(513 - others));
    assert!(FencingHeader::parse(fits.as_bytes()).is_ok());
    assert_eq!(
        FencingHeader::parse(too_long.as_bytes()),
        Err(Malformed::TooLong)
    );
    assert!(read(&fits).is_err(), "that is no name");
}

/// Catches: a header that our own servers refuse.
#[test]
fn an_expiry_that_could_not_be_read_is_not_written() {
    let sequencer = sequencer(1, "a", "b");
    for number in [0, 1_000_000_000_000_000, u64::MAX] {
        let header = FencingHeader::new(&sequencer);
        assert_eq!(
            header.expires_at(number),
            Err(Malformed::Number { part: "exp" })
        );
    }
    for key_id in ["", "1", "-k", "k k", "k;", "kä", &"k".repeat(33)] {
        assert_eq!(
            Signature::new(key_id, &[0; 16]),
            Err(Malformed::KeyId),
            "{key_id:?}"
        );
    }
    for bytes in [&[][..], &[0; 15], &[0; 17], &[0; 32], &[0; 63], &[0; 65]] {
        assert_eq!(Signature::new("k", bytes), Err(Malformed::Signature));
    }
}

/// Catches: a derived `Debug`.
#[test]
fn no_debug_text_or_error_shows_the_holder_or_the_signature() {
    let value = format!("{};kid=k2;sig=:{SIGNATURE}:", plain("34"));
    let header = FencingHeader::parse(value.as_bytes()).unwrap();
    let shown = format!("{header:?} {:?}", HeaderValue::try_from(header).unwrap());
    assert!(
        !shown.contains(HOLDER) && !shown.contains(SIGNATURE),
        "{shown}"
    );
    assert!(
        !shown.contains("164, 78"),
        "the bytes of the signature: {shown}"
    );
    let error = read(format!("{};{HOLDER}", plain("34"))).unwrap_err();
    assert!(!format!("{error} {error:?}").contains(&HOLDER[..8]));
}

fn any_header() -> impl Strategy<Value = (Sequencer, Option<u64>, Option<Vec<u8>>)> {
    let number = 1..=FencingToken::MAX.get();
    let names = ("[!#-\\[\\]-~]{1,256}", "[A-Za-z0-9._:-]{1,64}");
    let sequencer = (number.clone(), names).prop_map(|(token, (resource, issuer))| {
        let (issuer, resource) = (Issuer::new(issuer), ResourceName::new(resource));
        let token = FencingToken::new(token).unwrap();
        Sequencer::new(issuer.unwrap(), resource.unwrap(), token, Holder::random())
    });
    let number = proptest::option::of(number);
    let bytes = |len| proptest::collection::vec(any::<u8>(), len);
    let signature = proptest::option::of(prop_oneof![bytes(16), bytes(64)]);
    (sequencer, number, signature)
}

proptest! {
    #[test]
    fn a_written_header_is_read_back((sequencer, exp, sig) in any_header()) {
        let mut header = FencingHeader::new(&sequencer);
        if let Some(exp) = exp {
            header = header.expires_at(exp).unwrap();
        }
        if let Some(bytes) = sig {
            header = header.signed(Signature::new("k.1", &bytes).unwrap());
        }
        let value = HeaderValue::try_from(header).unwrap();
        prop_assert!(value.is_sensitive());
        let parsed = FencingHeader::parse(value.as_bytes()).unwrap();
        prop_assert_eq!(parsed, header);
        prop_assert_eq!(parsed.to_sequencer().unwrap(), sequencer);
    }

    #[test]
    fn no_bytes_make_it_panic(value in proptest::collection::vec(any::<u8>(), 0..600)) {
        let accepted = read(&value).is_ok();
        prop_assert!(!accepted || value.is_ascii());
    }
}
