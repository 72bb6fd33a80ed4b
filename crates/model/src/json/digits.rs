//! Decimal digits of a number, without the formatting code, which would cost more than writing the line.

/// The digits of one number.
pub(crate) struct Digits {
    bytes: [u8; 20],
    start: usize,
}

impl Digits {
    pub(crate) fn of(mut number: u64) -> Self {
        let mut digits = Self { bytes: [b'0'; 20], start: 20 };
        loop {
            digits.start -= 1;
            digits.bytes[digits.start] = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
            if number == 0 {
                return digits;
            }
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[self.start..]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_match_formatting() {
        for number in [0, 1, 9, 10, 99, 1_234_567_890, u64::MAX] {
            assert_eq!(Digits::of(number).as_str(), number.to_string());
        }
    }
}
