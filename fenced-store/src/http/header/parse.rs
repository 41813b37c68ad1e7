//! The parser. It borrows from the value and allocates nothing.

use base64::{Engine, engine::general_purpose::STANDARD};
use lock_core::{FencingToken, Holder};

use super::{
    FencingHeader, Malformed, Signature,
    signature::{Bytes, is_key_id_byte},
};

pub(super) fn header(value: &[u8]) -> Result<FencingHeader<'_>, Malformed> {
    if value.len() > FencingHeader::MAX_LEN {
        return Err(Malformed::TooLong);
    }
    let text = str::from_utf8(value).map_err(|e| Malformed::Syntax {
        at: e.valid_up_to(),
    })?;
    let mut reader = Reader { text, at: 0 };
    let token = reader.number("the token")?;
    let mut parameters = Parameters::default();
    while reader.at < text.len() {
        reader.eat(b';')?;
        parameters.read(&mut reader)?;
    }
    parameters.into_header(token)
}

/// Checks a number that is about to be written as strictly as one that is read.
pub(super) fn in_range(part: &'static str, number: u64) -> Result<u64, Malformed> {
    FencingToken::new(number)
        .map(FencingToken::get)
        .map_err(|_| Malformed::Number { part })
}

#[derive(Default)]
struct Parameters<'a> {
    res: Option<&'a str>,
    iss: Option<&'a str>,
    hld: Option<Holder>,
    exp: Option<FencingToken>,
    seq: Option<FencingToken>,
    kid: Option<&'a str>,
    sig: Option<Bytes>,
}

impl<'a> Parameters<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), Malformed> {
        let at = reader.at;
        let name = reader.take_while(|byte| byte.is_ascii_lowercase());
        if name.is_empty() {
            return Err(reader.unexpected());
        }
        match name {
            "res" => once("res", &mut self.res, || reader.value(Reader::string)),
            "iss" => once("iss", &mut self.iss, || reader.value(Reader::string)),
            "hld" => once("hld", &mut self.hld, || reader.value(Reader::holder)),
            "exp" => once("exp", &mut self.exp, || reader.value(|r| r.number("exp"))),
            "seq" => once("seq", &mut self.seq, || reader.value(|r| r.number("seq"))),
            "kid" => once("kid", &mut self.kid, || reader.value(Reader::key_id)),
            "sig" => once("sig", &mut self.sig, || reader.value(Reader::bytes)),
            _ => Err(Malformed::UnknownParameter { at }),
        }
    }

    fn into_header(self, token: FencingToken) -> Result<FencingHeader<'a>, Malformed> {
        let missing = |name| move || Malformed::Missing { name };
        let signature = match (self.kid, self.sig) {
            (Some(key_id), Some(bytes)) => Some(Signature::of(key_id, bytes)?),
            (None, None) => None,
            (Some(_), None) => return Err(missing("sig")()),
            (None, Some(_)) => return Err(missing("kid")()),
        };
        Ok(FencingHeader {
            token,
            resource: self.res.ok_or_else(missing("res"))?,
            issuer: self.iss.ok_or_else(missing("iss"))?,
            holder: self.hld.ok_or_else(missing("hld"))?,
            expires_at: self.exp.map(FencingToken::get),
            seq: self.seq.map(FencingToken::get),
            signature,
        })
    }
}

/// Reads a parameter unless it was read before.
fn once<T>(
    name: &'static str,
    slot: &mut Option<T>,
    read: impl FnOnce() -> Result<T, Malformed>,
) -> Result<(), Malformed> {
    if slot.is_some() {
        return Err(Malformed::Repeated { name });
    }
    *slot = Some(read()?);
    Ok(())
}

/// How far the text has been read. Every byte that it takes is ASCII, so `at` is always at the
/// start of a character.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    const fn unexpected(&self) -> Malformed {
        Malformed::Syntax { at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.bytes().position(|byte| !belongs(byte));
        let taken = &rest[..end.unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn value<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        self.eat(b'=')?;
        read(self)
    }

    /// All numbers of the header have the range and the form of a token.
    fn number(&mut self, part: &'static str) -> Result<FencingToken, Malformed> {
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        digits.parse().map_err(|_| Malformed::Number { part })
    }

    /// A string without escapes: no name needs one.
    fn string(&mut self) -> Result<&'a str, Malformed> {
        self.eat(b'"')?;
        let text =
            self.take_while(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
        self.eat(b'"')?;
        Ok(text)
    }

    fn holder(&mut self) -> Result<Holder, Malformed> {
        self.string()?.parse().map_err(|_| Malformed::Holder)
    }

    fn key_id(&mut self) -> Result<&'a str, Malformed> {
        Ok(self.take_while(is_key_id_byte))
    }

    fn bytes(&mut self) -> Result<Bytes, Malformed> {
        self.eat(b':')?;
        let text = self.take_while(|byte| byte != b':' && byte.is_ascii_graphic());
        self.eat(b':')?;
        // The decoder wants room for what the text could be at most: 66 bytes for 88 characters.
        let mut bytes = [0; Bytes::LEN_MAX + 2];
        let len = STANDARD.decode_slice(text, &mut bytes);
        len.ok()
            .and_then(|len| Bytes::of(&bytes[..len]))
            .ok_or(Malformed::Signature)
    }
}
