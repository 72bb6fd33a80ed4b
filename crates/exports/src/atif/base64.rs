//! Base64, the encoding of pictures in records.

use std::sync::LazyLock;

use data_encoding::{BASE64_NOPAD, Encoding};

/// Base64 whose last digit may have bits that belong to no byte, because some encoders do not clear them.
static LENIENT: LazyLock<Encoding> = LazyLock::new(|| {
    let mut specification = BASE64_NOPAD.specification();
    specification.check_trailing_bits = false;
    specification.encoding().expect("base64 without the check of its last bits is an encoding")
});

/// Decodes base64 with or without padding. `None` if the text is not base64.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    LENIENT.decode(text.trim_end_matches('=').as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Option<&[u8]>) {
        assert_eq!(decode(text).as_deref(), want, "{text}");
    }

    #[test]
    fn examples_of_rfc_4648_are_decoded() {
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
    fn unused_bits_of_the_last_digit_are_ignored() {
        check("Zh==", Some(b"f"));
        check("Zm9=", Some(b"fo"));
    }

    #[test]
    fn invalid_base64_is_none() {
        for text in ["Z", "Zm9vY", "Zm 9v", "Zm9v\n", "Zm9-", "=Zg=", "é==="] {
            check(text, None);
        }
    }
}
