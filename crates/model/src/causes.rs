//! Errors with their causes, as one line.

use std::error::Error;
use std::fmt::Write as _;

/// Returns an error's message with the messages of its causes, each after a colon.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(text, ": {error}").expect("a string takes everything");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Failed(&'static str, Option<Box<Failed>>);

    impl std::fmt::Display for Failed {
        fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str(self.0)
        }
    }

    impl Error for Failed {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn error_text_lists_its_causes_in_order() {
        let cause = Failed("the file is torn", Some(Box::new(Failed("the disk was full", None))));
        let error = Failed("cannot read", Some(Box::new(cause)));
        assert_eq!(with_causes(&error), "cannot read: the file is torn: the disk was full");
    }
}
