//! Step paths: names joined by dots, a dot inside a name written `\.` and a backslash `\\`.

use std::fmt;

/// The path of a step in its run: names from the outermost inwards; none at run level.
///
/// ```
/// use steno_session::StepPath;
/// let path = StepPath::parse(r"build.v1\.2");
/// assert_eq!(path.names(), ["build", "v1.2"]);
/// assert_eq!(path.to_string(), r"build.v1\.2");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepPath(Vec<String>);

impl StepPath {
    /// How many names a path is split into; the rest stays in the last one.
    ///
    /// A line of 64 MB could otherwise be a path of 32 million names.
    pub const NAMES_MAX: usize = 1024;

    /// Splits a path. Every text is valid: a backslash before anything but a dot or a backslash is literal.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        let mut names = Vec::new();
        let mut name = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '.' if names.len() + 1 < Self::NAMES_MAX => names.push(std::mem::take(&mut name)),
                '\\' => name.push(chars.next_if(|next| matches!(next, '.' | '\\')).unwrap_or('\\')),
                other => name.push(other),
            }
        }
        names.push(name);
        Self(names)
    }

    /// Returns the names, outermost first, without escapes.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

impl<S: Into<String>> FromIterator<S> for StepPath {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }
}

impl fmt::Display for StepPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            if index > 0 {
                out.write_str(".")?;
            }
            out.write_str(&name.replace('\\', r"\\").replace('.', r"\."))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, want: &[&str]) {
        assert_eq!(StepPath::parse(text).names(), want, "{text}");
    }

    #[test]
    fn parse_splits_at_unescaped_dots() {
        check("", &[]);
        check("a", &["a"]);
        check("loop.body", &["loop", "body"]);
        check(r"a\.b.c", &["a.b", "c"]);
        check(r"a\\.b", &[r"a\", "b"]);
        check(r"a\\\.b", &[r"a\.b"]);
    }

    #[test]
    fn strange_paths_keep_every_character() {
        check(".", &["", ""]);
        check("a..b", &["a", "", "b"]);
        check(r"C:\dir\", &[r"C:\dir\"]);
        check("é.日本", &["é", "日本"]);
    }

    #[test]
    fn parse_stops_at_the_name_limit() {
        let path = StepPath::parse(&"a.".repeat(StepPath::NAMES_MAX + 1));
        assert_eq!(path.names().len(), StepPath::NAMES_MAX);
        assert_eq!(path.names().last().unwrap(), "a.a.");
    }

    proptest! {
        #[test]
        fn names_survive_a_round_trip(names in prop::collection::vec(r"[a-c.\\]{1,4}", 0..5)) {
            let path: StepPath = names.iter().map(String::as_str).collect();
            prop_assert_eq!(StepPath::parse(&path.to_string()), path);
        }
    }
}
