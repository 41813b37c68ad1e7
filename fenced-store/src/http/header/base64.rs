//! Base64 of a MAC, straight into its bytes. Every request has one, and a decoder for texts of any
//! length takes three times as long.

use super::signature::{Bytes, MAC_LEN};

/// The bytes of a MAC, if this is the one text for so many bytes.
#[inline]
pub(super) fn decoded(text: &[u8; Bytes::MAC_TEXT_LEN]) -> Option<[u8; MAC_LEN]> {
    let ([groups @ .., [a, b, b'=', b'=']], []) = text.as_chunks() else {
        return None;
    };
    let (mut bytes, mut seen) = (0, 0);
    for group in groups {
        let [a, b, c, d] = group.map(value);
        let bits = a << 18 | b << 12 | c << 6 | d;
        seen |= bits;
        bytes = bytes << 24 | u128::from(bits.cast_unsigned());
    }
    let bits = value(*a) << 6 | value(*b);
    bytes = bytes << 8 | u128::from((bits >> 4).cast_unsigned());
    // Bits that are left over have to be zero: otherwise there would be a second text.
    (seen | bits >= 0 && bits & 0xf == 0).then_some(bytes.to_be_bytes())
}

/// Negative if it is no digit, and then so is every group that it is part of.
fn value(digit: u8) -> i32 {
    DIGITS[usize::from(digit)].into()
}

const DIGITS: [i8; 256] = {
    const ALPHABET: [u8; 64] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut digits = [-1; 256];
    let mut value = 0_u8;
    while value < 64 {
        digits[ALPHABET[value as usize] as usize] = value.cast_signed();
        value += 1;
    }
    digits
};

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use proptest::prelude::*;

    use super::*;

    fn by_the_library(text: &[u8]) -> Option<[u8; MAC_LEN]> {
        STANDARD.decode(text).ok()?.try_into().ok()
    }

    fn written(bytes: [u8; MAC_LEN]) -> [u8; Bytes::MAC_TEXT_LEN] {
        STANDARD.encode(bytes).into_bytes().try_into().unwrap()
    }

    proptest! {
        #[test]
        fn what_is_written_is_decoded(bytes: [u8; MAC_LEN]) {
            prop_assert_eq!(decoded(&written(bytes)), Some(bytes));
        }

        /// Damaged somewhere, it is understood as the library does.
        #[test]
        fn any_text_is_decoded_as_by_the_library(
            bytes: [u8; MAC_LEN],
            at in 0..Bytes::MAC_TEXT_LEN,
            with: u8,
        ) {
            let mut text = written(bytes);
            text[at] = with;
            prop_assert_eq!(decoded(&text), by_the_library(&text));
        }
    }

    #[test]
    fn the_last_digit_has_no_bits_left_over() {
        let mut good = 0;
        for last in 0..=u8::MAX {
            let mut text = written([0; MAC_LEN]);
            text[21] = last;
            assert_eq!(decoded(&text), by_the_library(&text), "{last}");
            good += usize::from(decoded(&text).is_some());
        }
        assert_eq!(good, 4);
    }

    #[test]
    fn no_other_byte_is_a_digit_anywhere() {
        for at in 0..Bytes::MAC_TEXT_LEN {
            for byte in 0..=u8::MAX {
                let mut text = written([0; MAC_LEN]);
                text[at] = byte;
                assert_eq!(decoded(&text), by_the_library(&text), "{byte} at {at}");
            }
        }
    }
}
