//! Base64 of signatures, straight into an array. Every request has one, and a decoder for texts of
//! any length takes three times as long.

/// The bytes of a text in padded base64, if it is the one text of so many bytes. Their number is
/// one more than a multiple of three, as it is with all signatures.
#[inline]
pub(super) fn decoded<const LEN: usize>(text: &[u8]) -> Option<[u8; LEN]> {
    const { assert!(LEN % 3 == 1, "the last group has one byte") };
    let (groups, []) = text.as_chunks::<4>() else {
        return None;
    };
    let (last, whole) = groups.split_last()?;
    let mut bytes = [0; LEN];
    let (places, _) = bytes.as_chunks_mut::<3>();
    if places.len() != whole.len() {
        return None;
    }
    let mut seen = 0;
    for (place, group) in places.iter_mut().zip(whole) {
        let [a, b, c, d] = group.map(value);
        let bits = a << 18 | b << 12 | c << 6 | d;
        seen |= bits;
        [_, _, _, _, _, place[0], place[1], place[2]] = bits.to_be_bytes();
    }
    let [a, b, b'=', b'='] = *last else {
        return None;
    };
    let bits = value(a) << 6 | value(b);
    // Bits that are left over have to be zero: otherwise there would be a second text.
    [.., bytes[LEN - 1]] = (bits >> 4).to_be_bytes();
    ((seen | bits) & NO_DIGITS == 0 && bits << 60 == 0).then_some(bytes)
}

fn value(digit: u8) -> u64 {
    DIGITS[usize::from(digit)].into()
}

/// A bit that no digit has, wherever in a group it is.
const NO_DIGIT: u32 = 1 << 24;

/// Where those bits are.
const NO_DIGITS: u64 = !((1 << 24) - 1);

const DIGITS: [u32; 256] = {
    const ALPHABET: [u8; 64] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 64 {
        digits[ALPHABET[value as usize] as usize] = value;
        value += 1;
    }
    digits
};

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use proptest::prelude::*;

    use super::*;

    fn by_the_library<const LEN: usize>(text: &str) -> Option<[u8; LEN]> {
        STANDARD.decode(text).ok()?.try_into().ok()
    }

    proptest! {
        #[test]
        fn what_is_written_is_decoded(
            short: [u8; 16],
            long in prop::array::uniform32(any::<u8>()),
        ) {
            prop_assert_eq!(decoded(STANDARD.encode(short).as_bytes()), Some(short));
            let long: [u8; 64] = std::array::from_fn(|at| long[at % 32] ^ short[at % 16]);
            prop_assert_eq!(decoded(STANDARD.encode(long).as_bytes()), Some(long));
        }

        /// Damaged somewhere, or of another length, it is understood as the library does.
        #[test]
        fn any_text_is_decoded_as_by_the_library(
            bytes: [u8; 16],
            at in 0_usize..24,
            with in "[ -~]",
        ) {
            let mut text = STANDARD.encode(bytes);
            text.replace_range(at..=at, &with);
            prop_assert_eq!(decoded::<16>(text.as_bytes()), by_the_library::<16>(&text));
            text.truncate(at);
            prop_assert_eq!(decoded::<16>(text.as_bytes()), None);
        }
    }

    #[test]
    fn the_last_digit_has_no_bits_left_over() {
        let mut good = 0;
        for last in 0..=u8::MAX {
            let text = format!("{}{}==", "A".repeat(21), char::from(last));
            assert_eq!(
                decoded::<16>(text.as_bytes()),
                by_the_library::<16>(&text),
                "{text}"
            );
            good += usize::from(decoded::<16>(text.as_bytes()).is_some());
        }
        assert_eq!(good, 4);
    }
}
