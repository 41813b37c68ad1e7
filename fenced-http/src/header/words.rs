//! Reads the bytes of a header eight or sixteen at a time: every request has two or three numbers,
//! and two names.

/// The number at the beginning of a text, and the count of its digits, which is at most 16. A
/// longer number, which no header may have, is read only in part.
#[inline]
pub(super) fn number(text: &[u8]) -> (u64, usize) {
    // A digit is now 0 to 9. Any other byte has one of its upper four bits set, now or after 6 is
    // added. An overflow of a sum changes only the bytes after it.
    let bytes = u128::from_le_bytes(first(text)) ^ each_of_16(b'0');
    let others = (bytes | bytes.wrapping_add(each_of_16(6))) & each_of_16(0xf0);
    let len = others.trailing_zeros() / u8::BITS;
    // Zeros are put in front, so that there are sixteen digits.
    let digits = bytes.unbounded_shl(u128::BITS - len * u8::BITS);
    let digits = digits.to_le_bytes();
    let (halves, _) = digits.as_chunks();
    let number = halves.iter().fold(0, |number, half| {
        number * 100_000_000 + of_eight_digits(u64::from_le_bytes(*half))
    });
    (number, len as usize)
}

/// The number of bytes at the beginning of a text that may be in a string: visible ones and spaces,
/// except quotes and backslashes.
#[inline]
pub(super) fn in_string(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        // The zeros behind the end of the text belong to no string.
        let word = u64::from_le_bytes(first(&text[at..]));
        let below_space = word.wrapping_sub(each(b' ')) & !word;
        let above_tilde = word.wrapping_add(each(1)) | word;
        let quotes = zeros(word ^ each(b'"'));
        let backslashes = zeros(word ^ each(b'\\'));
        let others = (below_space | above_tilde | quotes | backslashes) & each(0x80);
        at += (others.trailing_zeros() / u8::BITS) as usize;
        if others != 0 {
            return at;
        }
    }
}

/// Sets the upper bit of each byte that is zero. After the first zero byte, it may be set in other
/// bytes, too.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(each(1)) & !word
}

/// The first bytes of a text. Zeros follow if the text is shorter.
#[inline]
fn first<const LEN: usize>(text: &[u8]) -> [u8; LEN] {
    match text.first_chunk() {
        Some(bytes) => *bytes,
        None => std::array::from_fn(|at| text.get(at).copied().unwrap_or_default()),
    }
}

/// The number that has these digits, the first one in the lowest byte.
const fn of_eight_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let upper = (pairs & PAIR).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & PAIR).wrapping_mul(1 + (10_000 << 32));
    upper.wrapping_add(lower) >> 32
}

/// A word of eight equal bytes.
const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; WIDTH])
}

/// A word of sixteen equal bytes.
const fn each_of_16(byte: u8) -> u128 {
    u128::from_le_bytes([byte; 2 * WIDTH])
}

const WIDTH: usize = size_of::<u64>();

/// The first and the third of four pairs of digits.
const PAIR: u64 = 0x0000_00ff_0000_00ff;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a number digit by digit.
    fn slowly(text: &[u8]) -> (u64, usize) {
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
        let digits = digits.take(16).map(|byte| u64::from(byte - b'0'));
        digits.fold((0, 0), |(number, len), digit| {
            (number * 10 + digit, len + 1)
        })
    }

    /// Catches: a byte that is no digit, and that the arithmetic on words takes for a digit.
    #[test]
    fn digits_end_before_every_other_byte() {
        for other in 0..=u8::MAX {
            for len in 0..16 {
                let text = [&b"9876543210987654"[..len], &[other; 9]].concat();
                assert_eq!(number(&text), slowly(&text), "{text:?}");
                assert_eq!(number(&text[..=len]), slowly(&text[..=len]), "{text:?}");
            }
        }
    }

    /// Catches: a quote or a control byte inside a string.
    #[test]
    fn strings_end_before_every_other_byte() {
        let belongs = |byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        for byte in 0..=u8::MAX {
            for len in 0..20 {
                let text = [&b"~ !#[]az09~ !#[]az09"[..len], &[byte, b'"', byte]].concat();
                let expected = if belongs(byte) { len + 1 } else { len };
                assert_eq!(in_string(&text), expected, "{text:?}");
                assert_eq!(in_string(&text[..len]), len);
            }
        }
    }

    proptest! {
        /// Catches: a digit that is weighed wrongly.
        #[test]
        fn a_number_is_read_as_digit_by_digit(text in "[0-9]{0,20}[ -~]{0,9}") {
            prop_assert_eq!(number(text.as_bytes()), slowly(text.as_bytes()));
        }
    }
}
