//! Masks the values of exported variables in a shell snapshot; the names stay.
//!
//! In case of doubt, text is masked. The rest of a line after a value is masked too. In the part of a snapshot that
//! lists exports, only names stay. The rest of a snapshot, its functions and aliases, is not searched for secrets.

/// The text that replaces a value.
const MASK: &[u8] = b"\"***\"";

/// The beginning of the part that lists exports.
const EXPORTS: &[u8] = b"# exports";

/// Masks the values of exported variables. Returns the snapshot without them, and their number.
///
/// These forms are recognised at the beginning of a line: `export NAME=…`, `declare` and `typeset` with `-x`, `set -x`
/// of fish, `$env:NAME=`; after `# exports` also `NAME=…`. A value continues as long as its quotes are open, and ends
/// before the next such line.
#[must_use]
pub fn mask_exports(snapshot: &[u8]) -> (Vec<u8>, u64) {
    let mut lines = snapshot.split_inclusive(|byte| *byte == b'\n').peekable();
    let (mut masked, mut values) = (Vec::with_capacity(snapshot.len()), 0);
    let mut is_in_exports = false;
    while let Some(line) = lines.next() {
        is_in_exports |= line.starts_with(EXPORTS);
        let at = match look(line, is_in_exports) {
            LineKind::Other => {
                masked.extend_from_slice(line);
                continue;
            }
            LineKind::Value { at } => at,
        };
        values += 1;
        masked.extend_from_slice(&line[..at]);
        masked.extend_from_slice(MASK);
        let mut quotes = Quotes::default();
        quotes.read(&line[at..]);
        let mut last = line;
        while let Some(more) = lines.next_if(|more| quotes.is_open() && !begins_export(more)) {
            quotes.read(more);
            last = more;
        }
        masked.extend(last.ends_with(b"\n").then_some(b'\n'));
    }
    (masked, values)
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    /// Gives a variable a value, which begins at this byte.
    Value { at: usize },
    /// Has nothing to mask.
    Other,
}

fn begins_export(line: &[u8]) -> bool {
    line.starts_with(EXPORTS) || !matches!(statement(line), Statement::None)
}

fn look(line: &[u8], is_in_exports: bool) -> LineKind {
    match statement(line) {
        Statement::Value { at } => LineKind::Value { at },
        Statement::Name => LineKind::Other,
        Statement::None if !is_in_exports => LineKind::Other,
        Statement::None => {
            let text = line.trim_ascii();
            if text.is_empty() || text.starts_with(b"#") {
                return LineKind::Other;
            }
            // `NAME=…`, or text of unknown form: all of it may be a value.
            let is_name = |name: &[u8]| !name.is_empty() && name.iter().all(|byte| is_of_name(*byte));
            let end = line.iter().position(|byte| *byte == b'=').filter(|end| is_name(&line[..*end]));
            LineKind::Value { at: end.map_or(0, |end| end + 1) }
        }
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'(' | b')' | b'.')
}

/// A statement about exports, by the beginning of its line.
enum Statement {
    Value {
        at: usize,
    },
    /// Exports names without values.
    Name,
    None,
}

fn statement(line: &[u8]) -> Statement {
    let mut words = Words { line, at: 0 };
    let Some(command) = words.next() else { return Statement::None };
    if command.len() >= 5 && command[..5].eq_ignore_ascii_case(b"$env:") {
        let end = line.iter().position(|byte| *byte == b'=');
        return end.map_or(Statement::None, |end| Statement::Value { at: end + 1 });
    }
    let mut is_export = match command {
        b"export" => true,
        b"declare" | b"typeset" | b"local" | b"readonly" | b"set" => false,
        _ => return Statement::None,
    };
    loop {
        let before = words.at;
        match words.next() {
            None if is_export && command != b"set" => return Statement::Name,
            None => return Statement::None,
            Some(flag) if flag.starts_with(b"-") || flag.starts_with(b"+") => {
                is_export |= flag == b"--export"
                    || flag.starts_with(b"-") && !flag.starts_with(b"--") && flag.contains(&b'x');
            }
            Some(_) if !is_export => return Statement::None,
            Some(_) if command == b"set" => {
                // The value follows the name.
                let at = words.at;
                return words.next().map_or(Statement::None, |_| Statement::Value { at: at + 1 });
            }
            Some(word) => {
                if let Some(end) = word.iter().position(|byte| *byte == b'=') {
                    let begin = words.at - word.len();
                    return Statement::Value { at: begin + end + 1 };
                }
            }
        }
        debug_assert!(words.at > before, "each word is behind the one before");
    }
}

/// The words of a line, separated by blanks.
struct Words<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.line[self.at..];
        let begin = self.at + rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let word = &self.line[begin..];
        let len = word.iter().position(u8::is_ascii_whitespace).unwrap_or(word.len());
        self.at = begin + len;
        Some(&word[..len])
    }
}

/// The open quotes.
#[derive(Default)]
struct Quotes {
    open: Option<Quote>,
    /// The number of open round brackets, which lists have.
    brackets: u32,
    is_escaped: bool,
    /// True if the last line ended with a backslash.
    is_continued: bool,
    before: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    /// `'…'`, without escapes.
    Single,
    /// `"…"` and `$'…'`, in which a backslash escapes the next byte.
    Escaping(u8),
}

impl Quotes {
    fn read(&mut self, bytes: &[u8]) {
        self.is_continued = false;
        for &byte in bytes {
            let is_escaped = std::mem::take(&mut self.is_escaped);
            let before = std::mem::replace(&mut self.before, byte);
            match (self.open, byte) {
                (Some(Quote::Single), b'\'') => self.open = None,
                (Some(Quote::Single), _) => {}
                _ if is_escaped => self.is_continued = byte == b'\n',
                (_, b'\\') => self.is_escaped = true,
                (Some(Quote::Escaping(end)), byte) if byte == end => self.open = None,
                (None, b'\'') if before == b'$' => self.open = Some(Quote::Escaping(b'\'')),
                (None, b'\'') => self.open = Some(Quote::Single),
                (None, b'"') => self.open = Some(Quote::Escaping(b'"')),
                (None, b'(') => self.brackets += 1,
                (None, b')') => self.brackets = self.brackets.saturating_sub(1),
                (Some(Quote::Escaping(_)) | None, _) => {}
            }
        }
    }

    /// Returns true if the text continues in the next line.
    fn is_open(&self) -> bool {
        self.open.is_some() || self.brackets > 0 || self.is_continued
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(from: &str, want: &str, values: u64) {
        let (masked, found) = mask_exports(from.as_bytes());
        assert_eq!((String::from_utf8_lossy(&masked).as_ref(), found), (want, values), "{from}");
    }

    #[test]
    fn exports_of_every_shell_lose_values_and_keep_names() {
        for (from, want) in [
            ("declare -x KEY=\"sk-1\"\n", "declare -x KEY=\"***\"\n"),
            ("declare -x KEY=\"a \\\" b\"\n", "declare -x KEY=\"***\"\n"),
            ("declare -rx KEY=$'a\\nb'", "declare -rx KEY=\"***\""),
            ("declare -ax LIST=([0]=\"a b\" [1]=\"c\")\n", "declare -ax LIST=\"***\"\n"),
            ("export KEY=sk-1\n", "export KEY=\"***\"\n"),
            ("export KEY='it'\\''s'\n", "export KEY=\"***\"\n"),
            ("  export A=1 B=2; echo\n", "  export A=\"***\"\n"),
            ("export A B=2\n", "export A B=\"***\"\n"),
            ("typeset -gx KEY=1\n", "typeset -gx KEY=\"***\"\n"),
            ("typeset -g -x KEY=1\n", "typeset -g -x KEY=\"***\"\n"),
            ("export -T LD ld=( a b )\n", "export -T LD ld=\"***\"\n"),
            ("set -gx KEY sk-1 more\n", "set -gx KEY \"***\"\n"),
            ("$env:KEY='sk ''1'''\r\n", "$env:KEY=\"***\"\n"),
        ] {
            check(from, want, 1);
        }
    }

    #[test]
    fn lines_without_exports_are_unchanged() {
        for text in [
            "",
            "declare -x NAME\n",
            "export -f name\n",
            "declare -f name\n",
            "declare -i NUMBER=\"3\"\n",
            "typeset -g KEY=1\n",
            "set -o braceexpand\nset -x\n",
            "shopt -s xpg_echo\n",
            "alias k='export KEY=1'\n",
            "exported=1\n",
            "f () \n{ \n    echo \"x\"\n}\n",
            "\u{fffd}\0\n",
        ] {
            check(text, text, 0);
        }
    }

    #[test]
    fn value_over_several_lines_is_masked() {
        check("export A='1\n2\n3'\nalias x=y\n", "export A=\"***\"\nalias x=y\n", 1);
        check("declare -x A=\"1\n\\\"2\n3\" ; rest\nx\n", "declare -x A=\"***\"\nx\n", 1);
        // Programs that write snapshots line by line cut such values and leave their quotes open.
        check(
            "export A='1\nexport B='2 3'\nexport C=4\n",
            "export A=\"***\"\nexport B=\"***\"\nexport C=\"***\"\n",
            3,
        );
        check("export A='1\n2", "export A=\"***\"", 1);
        check("export A=1\\\n2\nx\n", "export A=\"***\"\nx\n", 1);
    }

    #[test]
    fn export_section_keeps_only_names() {
        let from = "x=1\n# exports 3\nKEY=sk 1\nProgramFiles(x86)=C:\\p\ndeclare -x B=\"2\"\ndeclare -x C\nstray secret\n\n# end\n";
        let want = "x=1\n# exports 3\nKEY=\"***\"\nProgramFiles(x86)=\"***\"\ndeclare -x B=\"***\"\ndeclare -x C\n\"***\"\n\n# end\n";
        check(from, want, 4);
    }

    #[test]
    fn masking_is_idempotent() {
        let from = b"export A='1\n2'\n# exports\nB=\xff\xfe\ndeclare -x C=\"\\\"\"\n";
        let (once, values) = mask_exports(from);
        assert_eq!(mask_exports(&once), (once.clone(), values));
        assert_eq!(values, 3);
    }
}
