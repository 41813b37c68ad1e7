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
    let mut reader = Reader { text, at: 0 };
    let token = reader.number("the token")?;
    let mut parameters = Parameters::default();
    while reader.at < text.len() {
        parameters.read(&mut reader)?;
    }
    if value.len() > parameters.max_len() {
        return Err(Malformed::TooLong);
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
    sig: Option<&'a [u8]>,
}

impl<'a> Parameters<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), Malformed> {
        // All names are of one length, so they are compared as numbers and not letter by letter.
        match reader.rest().first_chunk() {
            Some(b";res=") => self.res = Some(reader.once("res", &self.res)?.string()?),
            Some(b";iss=") => self.iss = Some(reader.once("iss", &self.iss)?.string()?),
            Some(b";hld=") => self.hld = Some(reader.once("hld", &self.hld)?.holder()?),
            Some(b";exp=") => self.exp = Some(reader.once("exp", &self.exp)?.number("exp")?),
            Some(b";seq=") => self.seq = Some(reader.once("seq", &self.seq)?.number("seq")?),
            Some(b";kid=") => self.kid = Some(reader.once("kid", &self.kid)?.key_id()),
            Some(b";sig=") => self.sig = Some(reader.once("sig", &self.sig)?.base64()?),
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
            seq: self.seq.map(FencingToken::get),
            signature,
        })
    }
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

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn eat(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.rest().first() != Some(&byte) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    /// Goes on behind the name of a parameter, unless that was read before.
    fn once<T>(&mut self, name: &'static str, slot: &Option<T>) -> Result<&mut Self, Malformed> {
        if slot.is_some() {
            return Err(Malformed::Repeated { name });
        }
        self.at += ";???=".len();
        Ok(self)
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        self.take(length_while(self.rest(), belongs))
    }

    /// The next bytes, which are ASCII.
    fn take(&mut self, len: usize) -> &'a str {
        let from = self.at;
        self.at += len;
        &self.text[from..self.at]
    }

    /// Why no parameter begins here.
    fn no_parameter(&mut self) -> Malformed {
        if let Err(unexpected) = self.eat(b';') {
            return unexpected;
        }
        let at = self.at;
        match self.take_while(|byte| byte.is_ascii_lowercase()) {
            "" | "res" | "iss" | "hld" | "exp" | "seq" | "kid" | "sig" => self.unexpected(),
            _ => Malformed::UnknownParameter { at },
        }
    }

    /// All numbers of the header have the range and the form of a token.
    fn number(&mut self, part: &'static str) -> Result<FencingToken, Malformed> {
        let rest = self.rest();
        let (number, len) = words::number(rest);
        if !(1..=MAX_DIGITS).contains(&len) || rest[0] == b'0' {
            return Err(Malformed::Number { part });
        }
        self.at += len;
        FencingToken::new(number).map_err(|_| Malformed::Number { part })
    }

    /// A string without escapes: no name needs one.
    fn string(&mut self) -> Result<&'a str, Malformed> {
        self.eat(b'"')?;
        let text = self.take(words::in_string(self.rest()));
        self.eat(b'"')?;
        Ok(text)
    }

    /// A string of a length that is known, so that its end need not be looked for.
    fn holder(&mut self) -> Result<Holder, Malformed> {
        let quoted = &self.rest()[..std::cmp::min(QUOTED_HOLDER_LEN, self.rest().len())];
        if !matches!(quoted, [b'"', .., b'"']) || quoted.len() < QUOTED_HOLDER_LEN {
            return self.string().and(Err(Malformed::Holder));
        }
        let quoted = self.take(QUOTED_HOLDER_LEN);
        let digits = quoted[1..QUOTED_HOLDER_LEN - 1].parse();
        digits.map_err(|_| Malformed::Holder)
    }

    fn key_id(&mut self) -> &'a str {
        self.take_while(is_key_id_byte)
    }

    fn base64(&mut self) -> Result<&'a [u8], Malformed> {
        self.eat(b':')?;
        let rest = self.rest();
        // Most signatures have this length, and then the end need not be looked for.
        let len = match rest.get(Bytes::MAC_TEXT_LEN) {
            Some(b':') => Bytes::MAC_TEXT_LEN,
            _ => length_while(rest, |byte| byte != b':' && byte.is_ascii_graphic()),
        };
        self.at += len;
        self.eat(b':')?;
        Ok(&rest[..len])
    }
}

/// How many bytes at the beginning of a text belong.
fn length_while(text: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    let end = text.iter().position(|byte| !belongs(*byte));
    end.unwrap_or(text.len())
}

/// How many digits the greatest token has.
const MAX_DIGITS: usize = 15;

/// 32 digits between quotes.
const QUOTED_HOLDER_LEN: usize = 34;
