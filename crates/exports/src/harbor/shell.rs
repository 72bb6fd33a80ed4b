//! The part of a shell's grammar that determines the meaning of an exit code 0: simple commands, and their operators.

/// The operator before a simple command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// None, `;` or a new line: it runs in any case.
    After,
    /// `&&`: it runs if the previous one succeeded.
    And,
    /// `||`: it runs if the previous one failed.
    Or,
    /// `|`: it reads the output of the previous one.
    Pipe,
}

/// A simple command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) joint: Joint,
    pub(super) words: Vec<String>,
    /// True if its output goes to a file.
    pub(super) writes_file: bool,
}

/// Words that begin a compound command, or that change which commands run.
const KEYWORDS: [&str; 20] = [
    "if", "for", "while", "until", "case", "select", "function", "{", "}", "!", "then", "do", "coproc",
    "alias", "eval", "exec", "exit", "return", "trap", "wait",
];

/// Splits a script into simple commands; `None` if it has anything else.
pub(super) fn split(script: &str) -> Option<Vec<Simple>> {
    // No shell can be given such a script.
    if script.contains('\0') {
        return None;
    }
    let mut reading = ShellReader::default();
    let mut rest = script.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\'' => {
                reading.word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        inside => reading.push(inside),
                    }
                }
            }
            '"' => {
                reading.word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '`' => return None,
                        '$' if rest.peek() == Some(&'(') => return None,
                        '\\' => match rest.next()? {
                            inside @ ('"' | '\\' | '$' | '`') => reading.push(inside),
                            '\n' => {}
                            other => {
                                reading.push('\\');
                                reading.push(other);
                            }
                        },
                        inside => reading.push(inside),
                    }
                }
            }
            '\\' => match rest.next()? {
                '\n' => {}
                inside => reading.push(inside),
            },
            ' ' | '\t' => reading.end_word(),
            '\n' | ';' => reading.end_command(Joint::After),
            '#' if reading.word.is_none() => while rest.next_if(|inside| *inside != '\n').is_some() {},
            '&' if rest.next_if_eq(&'&').is_some() => reading.end_command(Joint::And),
            '&' if rest.peek() == Some(&'>') => {}
            '|' if rest.next_if_eq(&'|').is_some() => reading.end_command(Joint::Or),
            '|' => {
                rest.next_if_eq(&'&');
                reading.end_command(Joint::Pipe);
            }
            '>' => {
                rest.next_if(|next| matches!(next, '>' | '|'));
                reading.redirect(Target::Output);
                if rest.next_if_eq(&'&').is_some() {
                    reading.push('&');
                }
            }
            '<' if rest.peek().is_some_and(|next| matches!(next, '<' | '(')) => return None,
            '<' => reading.redirect(Target::Input),
            '&' | '(' | ')' | '`' => return None,
            '$' if rest.peek().is_some_and(|next| matches!(next, '(' | '\'' | '"')) => return None,
            other => reading.push(other),
        }
    }
    reading.finish()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Input,
    Output,
}

#[derive(Default)]
struct ShellReader {
    done: Vec<Simple>,
    words: Vec<String>,
    word: Option<String>,
    target: Option<Target>,
    writes_file: bool,
    joint: Option<Joint>,
    is_broken: bool,
}

impl ShellReader {
    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    /// Begins a redirection. The next word is a file name, and a number before the operator is no word of the command.
    fn redirect(&mut self, target: Target) {
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.target = Some(target);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.target.take() {
            Some(Target::Output) => {
                let is_open = word.strip_prefix('&').is_some_and(|to| {
                    to == "-" || !to.is_empty() && to.bytes().all(|byte| byte.is_ascii_digit())
                });
                let is_nowhere = is_open || word == "/dev/null" || word == "/dev/stderr";
                self.writes_file |= !is_nowhere;
            }
            Some(Target::Input) => {}
            None => self.words.push(word),
        }
    }

    fn end_command(&mut self, next: Joint) {
        self.end_word();
        self.is_broken |= self.target.take().is_some();
        let words = std::mem::take(&mut self.words);
        let writes_file = std::mem::take(&mut self.writes_file);
        if words.is_empty() {
            // An empty command ends nothing: a blank line, or `;` at the end of a line.
            let is_nothing = next == Joint::After && self.joint.is_none_or(|joint| joint == Joint::After);
            self.is_broken |= !is_nothing || writes_file;
            return;
        }
        self.is_broken |= KEYWORDS.contains(&words[0].as_str());
        let joint = self.joint.replace(next).unwrap_or(Joint::After);
        self.done.push(Simple { joint, words, writes_file });
    }

    fn finish(mut self) -> Option<Vec<Simple>> {
        let is_waiting = self.word.is_none() && self.words.is_empty();
        let hangs = is_waiting && self.joint.is_some_and(|joint| joint != Joint::After);
        self.end_command(Joint::After);
        (!self.is_broken && !hangs && !self.done.is_empty()).then_some(self.done)
    }
}

#[cfg(test)]
mod tests {
    use steno_views::shell_word;

    use super::*;

    #[track_caller]
    fn check(script: &str, want: &[(Joint, &[&str])]) {
        let found = split(script).unwrap_or_else(|| panic!("{script}: not taken apart"));
        let found: Vec<(Joint, Vec<&str>)> = found
            .iter()
            .map(|simple| (simple.joint, simple.words.iter().map(String::as_str).collect()))
            .collect();
        let want: Vec<(Joint, Vec<&str>)> =
            want.iter().map(|(joint, words)| (*joint, words.to_vec())).collect();
        assert_eq!(found, want, "{script}");
    }

    #[test]
    fn split_returns_simple_commands() {
        use Joint::{After, And, Or, Pipe};
        check("cargo test", &[(After, &["cargo", "test"])]);
        check("cd 'a b' && cargo test;", &[(After, &["cd", "a b"]), (And, &["cargo", "test"])]);
        check(
            "a | b |& c || d\n\ne # f",
            &[(After, &["a"]), (Pipe, &["b"]), (Pipe, &["c"]), (Or, &["d"]), (After, &["e"])],
        );
        check(r#"x "a \"b\" \n" c\ d ''"#, &[(After, &["x", r#"a "b" \n"#, "c d", ""])]);
        check("a \\\n b", &[(After, &["a", "b"])]);
        check(
            "python3 -c 'import a; assert a.b == 1'",
            &[(After, &["python3", "-c", "import a; assert a.b == 1"])],
        );
    }

    #[test]
    fn redirections_are_not_words() {
        for (script, writes) in [
            ("a 2>&1", false),
            ("a >/dev/null 2>&1", false),
            ("a &> /dev/null", false),
            ("a > out.txt", true),
            ("a >> out.txt b", true),
            ("a < in.txt", false),
            ("echo 2 > x", true),
            ("a >&-", false),
            ("a >&out.txt", true),
        ] {
            let found = split(script).unwrap_or_else(|| panic!("{script}"));
            assert_eq!(found[0].writes_file, writes, "{script}");
            assert!(
                found[0].words.iter().all(|word| !word.contains("txt") && !word.contains("null")),
                "{script}"
            );
        }
        assert_eq!(split("a 2>&1").unwrap()[0].words, ["a"]);
    }

    #[test]
    fn split_refuses_other_syntax() {
        for script in [
            "if a; then b; fi",
            "for i in 1; do a; done",
            "(a)",
            "a $(b)",
            "a `b`",
            "a \"$(b)\"",
            "a &",
            "cat <<X\nX",
            "{ a; }",
            "! a",
            "a 'b",
            "a &&",
            "a | ",
            "&& a",
            "",
            "  ",
            "diff <(a) <(b)",
            "a >",
            "a \\",
            "a $'it\\'s'",
            "a $\"x\"",
            "a \0 b",
            "exit 0",
            "a; exit 0",
            "trap 'exit 0' EXIT; a",
            "eval a",
            "alias a=true; a",
        ] {
            assert_eq!(split(script), None, "{script}");
        }
    }

    #[test]
    fn quoted_words_round_trip() {
        for word in ["a", "a b", "it's", "", "$x", "a\nb", "`b`", "\\"] {
            assert_eq!(split(&format!("x {}", shell_word(word))).unwrap()[0].words[1], word);
        }
    }
}
