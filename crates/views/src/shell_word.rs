//! Words of commands that people and programs give to a shell.

/// Returns a word for a shell, in quotes if it needs them.
///
/// ```
/// use steno_views::shell_word;
/// assert_eq!(shell_word("/srv/shop"), "/srv/shop");
/// assert_eq!(shell_word("it's"), r"'it'\''s'");
/// ```
#[must_use]
pub fn shell_word(word: &str) -> String {
    // An assignment before a command must not be quoted, and zsh expands `=ls`.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./=:,@%+".contains(&byte);
    if !word.is_empty() && !word.starts_with('=') && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_mean_something_to_a_shell_are_quoted() {
        for (word, want) in [
            ("/srv/shop", "/srv/shop"),
            ("FOO=1", "FOO=1"),
            ("=ls", "'=ls'"),
            ("a b", "'a b'"),
            ("$HOME", "'$HOME'"),
            ("it's", r"'it'\''s'"),
            ("größe", "'größe'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), want);
        }
    }
}
