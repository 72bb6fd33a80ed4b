//! The bytes of base64, which is how records carry pictures.

/// Decodes base64 with its padding, or without. `None` when it is none.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    // One digit alone is less than a byte.
    if digits.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (quads, rest) = digits.as_chunks::<4>();
    for quad in quads {
        let [one, two, three, four] = quad.map(|digit| VALUES[usize::from(digit)]);
        if (one | two | three | four) & INVALID != 0 {
            return None;
        }
        bytes.extend_from_slice(&[one << 2 | two >> 4, two << 4 | three >> 2, three << 6 | four]);
    }
    let mut last = [0; 4];
    for (value, digit) in last.iter_mut().zip(rest) {
        *value = VALUES[usize::from(*digit)];
        if *value & INVALID != 0 {
            return None;
        }
    }
    let [one, two, three, _] = last;
    bytes.extend([one << 2 | two >> 4, two << 4 | three >> 2].iter().take(rest.len().saturating_sub(1)));
    Some(bytes)
}

/// The mark of a byte that is no digit.
const INVALID: u8 = 0x80;
/// The value of each digit.
const VALUES: [u8; 256] = values();

const fn values() -> [u8; 256] {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = [INVALID; 256];
    let mut place = 0_u8;
    while place < 64 {
        values[DIGITS[place as usize] as usize] = place;
        place += 1;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Option<&[u8]>) {
        assert_eq!(decode(text).as_deref(), want, "{text}");
    }

    #[test]
    fn the_examples_of_rfc_4648_are_decoded() {
        check("", Some(b""));
        check("Zg==", Some(b"f"));
        check("Zm8=", Some(b"fo"));
        check("Zm9v", Some(b"foo"));
        check("Zm9vYg", Some(b"foob"));
        check("Zm9vYmE=", Some(b"fooba"));
        check("Zm9vYmFy", Some(b"foobar"));
        check("+/+/", Some(&[0xfb, 0xff, 0xbf]));
    }

    #[test]
    fn what_is_no_base64_is_none() {
        for text in ["Z", "Zm9vY", "Zm 9v", "Zm9v\n", "Zm9-", "=Zg=", "é==="] {
            check(text, None);
        }
    }
}
