//! The parser. It borrows from the value and allocates nothing.

use lock_core::{FencingToken, Holder};

use super::{
    FencingHeader, Malformed, Signature, USUAL_MAX_LEN,
    signature::{Bytes, is_key_id_byte},
    words,
};

pub(super) fn header(value: &[u8]) -> Result<FencingHeader<'_>, Malformed> {
    if value.len() > FencingHeader::MAX_LEN {
        return Err(Malformed::TooLong);
    }
    let text = str::from_utf8(value).map_err(|e| Malformed::Syntax {
        at: e.valid_up_to(),
    })?;
    let mut reader = Reader { text, rest: value };
    let token = reader.number("the token")?;
    let mut parameters = Parameters::default();
    while !reader.rest.is_empty() {
        parameters.read(&mut reader)?;
    }
    if value.len() > parameters.max_len() {
        return Err(Malformed::TooLong);
    }
    parameters.into_header(token)
}

/// Checks a number before it is written, as strictly as a number that is read.
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
    kid: Option<&'a str>,
    sig: Option<&'a [u8]>,
}

impl<'a> Parameters<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), Malformed> {
        match reader.name() {
            Some(RES) => self.res = Some(reader.once("res", &self.res)?.string()?),
            Some(ISS) => self.iss = Some(reader.once("iss", &self.iss)?.string()?),
            Some(HLD) => self.hld = Some(reader.once("hld", &self.hld)?.holder()?),
            Some(EXP) => self.exp = Some(reader.once("exp", &self.exp)?.number("exp")?),
            Some(KID) => self.kid = Some(reader.once("kid", &self.kid)?.key_id()),
            Some(SIG) => self.sig = Some(reader.once("sig", &self.sig)?.base64()?),
            _ => return Err(reader.no_parameter()),
        }
        Ok(())
    }

    /// The longest value that may have these parameters, in bytes.
    fn max_len(&self) -> usize {
        match self.sig {
            Some(sig) if sig.len() == Bytes::ED25519_TEXT_LEN => FencingHeader::MAX_LEN,
            _ => USUAL_MAX_LEN,
        }
    }

    fn into_header(self, token: FencingToken) -> Result<FencingHeader<'a>, Malformed> {
        let missing = |name| move || Malformed::Missing { name };
        let signature = match (self.kid, self.sig) {
            (Some(key_id), Some(base64)) => Some(Signature::read(key_id, base64)?),
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
            signature,
        })
    }
}

/// A name and the byte after it, as a number. All names have the same length, so one comparison is
/// enough.
const fn name(text: [u8; 4]) -> u32 {
    u32::from_be_bytes(text)
}

const RES: u32 = name(*b"res=");
const ISS: u32 = name(*b"iss=");
const HLD: u32 = name(*b"hld=");
const EXP: u32 = name(*b"exp=");
const KID: u32 = name(*b"kid=");
const SIG: u32 = name(*b"sig=");

/// The part of the text that is still to be read. Every byte that the reader takes is ASCII.
struct Reader<'a> {
    text: &'a str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    const fn at(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    const fn unexpected(&self) -> Malformed {
        Malformed::Syntax { at: self.at() }
    }

    fn eat(&mut self, byte: u8) -> Result<(), Malformed> {
        match self.rest {
            [first, rest @ ..] if *first == byte => self.rest = rest,
            _ => return Err(self.unexpected()),
        }
        Ok(())
    }

    /// The name of the parameter that begins here.
    fn name(&self) -> Option<u32> {
        match self.rest {
            [b';', a, b, c, d, ..] => Some(name([*a, *b, *c, *d])),
            _ => None,
        }
    }

    /// Moves behind the name of a parameter. Fails if this parameter was read before.
    fn once<T>(&mut self, name: &'static str, slot: &Option<T>) -> Result<&mut Self, Malformed> {
        if slot.is_some() {
            return Err(Malformed::Repeated { name });
        }
        self.rest = &self.rest[";???=".len()..];
        Ok(self)
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        self.take(length_while(self.rest, belongs))
    }

    /// The next bytes, which are ASCII.
    fn take(&mut self, len: usize) -> &'a str {
        let from = self.at();
        self.rest = &self.rest[len..];
        &self.text[from..from + len]
    }

    /// The reason why no parameter begins here.
    fn no_parameter(&mut self) -> Malformed {
        if let Err(unexpected) = self.eat(b';') {
            return unexpected;
        }
        let at = self.at();
        match self.take_while(|byte| byte.is_ascii_lowercase()) {
            "" | "res" | "iss" | "hld" | "exp" | "kid" | "sig" => self.unexpected(),
            _ => Malformed::UnknownParameter { at },
        }
    }

    /// All numbers of the header have the range and the form of a token.
    fn number(&mut self, part: &'static str) -> Result<FencingToken, Malformed> {
        let (number, len) = words::number(self.rest);
        if !(1..=MAX_DIGITS).contains(&len) || self.rest[0] == b'0' {
            return Err(Malformed::Number { part });
        }
        self.rest = &self.rest[len..];
        FencingToken::new(number).map_err(|_| Malformed::Number { part })
    }

    /// A string without escapes, because no name needs an escape.
    fn string(&mut self) -> Result<&'a str, Malformed> {
        self.eat(b'"')?;
        let text = self.take(words::in_string(self.rest));
        self.eat(b'"')?;
        Ok(text)
    }

    /// A string whose length is known, so no search for its end is needed.
    fn holder(&mut self) -> Result<Holder, Malformed> {
        let Some([b'"', .., b'"']) = self.rest.first_chunk::<QUOTED_HOLDER_LEN>() else {
            return self.string().and(Err(Malformed::Holder));
        };
        let quoted = self.take(QUOTED_HOLDER_LEN);
        let digits = quoted[1..QUOTED_HOLDER_LEN - 1].parse();
        digits.map_err(|_| Malformed::Holder)
    }

    fn key_id(&mut self) -> &'a str {
        self.take_while(is_key_id_byte)
    }

    fn base64(&mut self) -> Result<&'a [u8], Malformed> {
        self.eat(b':')?;
        // Most signatures have this length, for which no search for the end is needed.
        let len = match self.rest.get(Bytes::MAC_TEXT_LEN) {
            Some(b':') => Bytes::MAC_TEXT_LEN,
            _ => length_while(self.rest, |byte| byte != b':' && byte.is_ascii_graphic()),
        };
        let (text, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.eat(b':')?;
        Ok(text)
    }
}

/// The number of bytes at the beginning of a text for which `belongs` is true.
fn length_while(text: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    let end = text.iter().position(|byte| !belongs(*byte));
    end.unwrap_or(text.len())
}

/// The number of digits of the greatest token.
const MAX_DIGITS: usize = 15;

/// 32 digits between quotes.
const QUOTED_HOLDER_LEN: usize = 34;
