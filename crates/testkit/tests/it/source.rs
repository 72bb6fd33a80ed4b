//! A rough parser for Rust source: which characters are code and which are comment, and from where to where the
//! functions and the test modules go. Knows strings, raw strings, characters, lifetimes and nested comments; knows
//! nothing of macros beyond their braces.

use std::ops::RangeInclusive;

/// A source text, split into layers of the same shape: every line keeps its number and its columns.
pub struct Layers {
    /// The code. Comments are spaces, the insides of strings and characters are all `x`.
    pub code: String,
    /// The comments, with spaces for everything else.
    pub comments: String,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// The line of the word `fn`, counted from 1.
    pub line: usize,
    /// How many lines between the braces hold code, as clippy's `too_many_lines` counts them.
    pub code_lines: usize,
}

/// A type that a file declares.
#[derive(Debug, PartialEq, Eq)]
pub struct TypeName {
    pub name: String,
    /// The line of the name, counted from 1.
    pub line: usize,
    /// Whether other crates can see it; `pub(crate)` and the like are not public.
    pub is_public: bool,
}

/// Splits a source text into its layers.
pub fn layers(text: &str) -> Layers {
    let mut reader =
        Reader { rest: text.chars().collect(), at: 0, code: String::new(), comments: String::new() };
    reader.read();
    Layers { code: reader.code, comments: reader.comments }
}

/// Lists the functions in a code layer, those inside others included.
pub fn functions(code: &str) -> Vec<Function> {
    let words = words(code);
    let pairs = words.iter().zip(words.iter().skip(1)).filter(|(word, _)| word.text == "fn");
    pairs
        .filter(|(word, name)| code[word.start + 2..name.start].trim().is_empty())
        .filter_map(|(word, name)| {
            let (open, close) = body(code, name.start)?;
            let lines = code[open + 1..close].split('\n');
            // The line of the opening and that of the closing brace do not count.
            let inner = lines.clone().skip(1).take(lines.count().saturating_sub(2));
            let code_lines = inner.filter(|line| !line.trim().is_empty()).count();
            Some(Function { name: name.text.to_owned(), line: line_of(code, word.start), code_lines })
        })
        .collect()
}

/// Lists the lines of the modules in a code layer that are compiled for tests only, attribute and braces included.
pub fn test_modules(code: &str) -> Vec<RangeInclusive<usize>> {
    let attributes = ["#[cfg(test)]", "#[cfg(all(test"];
    let starts = attributes.iter().flat_map(|attribute| code.match_indices(attribute));
    starts
        .filter_map(|(start, _)| {
            let item = words(&code[start..]).into_iter().find(|word| ITEMS.contains(&word.text))?;
            let (_, close) = body(code, start + item.start).filter(|_| item.text == "mod")?;
            Some(line_of(code, start)..=line_of(code, close))
        })
        .collect()
}

/// Lists the modules that a code layer declares, with their lines.
pub fn modules(code: &str) -> Vec<(usize, String)> {
    let words = words(code);
    let pairs = words.iter().zip(words.iter().skip(1)).filter(|(word, _)| word.text == "mod");
    pairs.map(|(word, name)| (line_of(code, word.start), name.text.to_owned())).collect()
}

/// Lists the types that a code layer declares, those of traits and their implementations left out.
pub fn type_names(code: &str) -> Vec<TypeName> {
    let mut found = Vec::new();
    for (at, line) in code.lines().enumerate() {
        let text = line.trim_start();
        let (is_public, item) = match text.strip_prefix("pub ") {
            Some(item) => (true, item),
            None => (
                false,
                text.strip_prefix("pub(")
                    .and_then(|rest| rest.split_once(") "))
                    .map_or(text, |(_, item)| item),
            ),
        };
        let item = item.strip_prefix("unsafe ").unwrap_or(item);
        let Some((word, rest)) = item.split_once(' ') else { continue };
        // An associated type is indented too, but has no `pub`; a private alias at the top of a file has no indent.
        let is_alias = word == "type" && (is_public || text.len() == line.len());
        if !is_alias && !["struct", "enum", "trait", "union"].contains(&word) {
            continue;
        }
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if name.starts_with(char::is_uppercase) {
            found.push(TypeName { name, line: at + 1, is_public });
        }
    }
    found
}

/// The words that begin an item, and so end its attributes.
const ITEMS: [&str; 11] =
    ["mod", "fn", "use", "struct", "enum", "impl", "const", "static", "trait", "type", "macro_rules"];

struct Word<'a> {
    start: usize,
    text: &'a str,
}

fn words(code: &str) -> Vec<Word<'_>> {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in code.char_indices().chain([(code.len(), ' ')]) {
        match (start, part_of_word(c)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                words.push(Word { start: from, text: &code[from..at] });
                start = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }
    words
}

/// Finds the braces around the body of an item that begins at `start`; `None` for an item that ends in `;`.
fn body(code: &str, start: usize) -> Option<(usize, usize)> {
    let mut open = None;
    let (mut brackets, mut braces) = (0_i32, 0_i32);
    for (at, c) in code[start..].char_indices().map(|(at, c)| (start + at, c)) {
        match c {
            '(' | '[' if open.is_none() => brackets += 1,
            ')' | ']' if open.is_none() => brackets -= 1,
            // Inside brackets it is a length, as in `[u8; 4]`.
            ';' if open.is_none() && brackets == 0 => return None,
            '{' if brackets == 0 || open.is_some() => {
                open = open.or(Some(at));
                braces += 1;
            }
            '}' if open.is_some() => {
                braces -= 1;
                if braces == 0 {
                    return open.map(|open| (open, at));
                }
            }
            _ => {}
        }
    }
    None
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    code: String,
    comments: String,
}

impl Reader {
    fn read(&mut self) {
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('/')) => self.line_comment(),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.quoted('"'),
                ('\'', _) if self.at_character() => self.quoted('\''),
                ('r', Some('"' | '#')) => self.raw(),
                _ => self.take_code(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    /// Moves on by one character, and puts `code` and `comment` into the layers unless it ends the line.
    fn take_as(&mut self, code: char, comment: char) {
        let c = self.rest[self.at];
        self.at += 1;
        self.code.push(if c == '\n' { c } else { code });
        self.comments.push(if c == '\n' { c } else { comment });
    }

    fn take_code(&mut self) {
        self.take_as(self.rest[self.at], ' ');
    }

    fn take_comment(&mut self) {
        self.take_as(' ', self.rest[self.at]);
    }

    fn take_text(&mut self) {
        self.take_as('x', ' ');
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.take_comment();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    self.take_comment();
                    continue;
                }
            }
            self.take_comment();
            self.take_comment();
            if depth == 0 {
                return;
            }
        }
    }

    /// Returns true if the current quote opens a character and not a lifetime.
    fn at_character(&self) -> bool {
        self.peek(1) == Some('\\') || self.peek(2) == Some('\'')
    }

    fn quoted(&mut self, quote: char) {
        self.take_code();
        while let Some(c) = self.peek(0) {
            if c == quote {
                self.take_code();
                return;
            }
            if c == '\\' && self.peek(1).is_some() {
                self.take_text();
            }
            self.take_text();
        }
    }

    /// Takes a raw string, or only its `r` if a raw identifier follows.
    fn raw(&mut self) {
        let hashes = self.rest[self.at + 1..].iter().take_while(|c| **c == '#').count();
        self.take_code();
        if self.peek(hashes) != Some('"') {
            return;
        }
        for _ in 0..=hashes {
            self.take_code();
        }
        while self.peek(0).is_some() {
            let closed = self.peek(0) == Some('"') && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#'));
            if closed {
                for _ in 0..=hashes {
                    self.take_code();
                }
                return;
            }
            self.take_text();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_code(text: &str, want: &str) {
        let layers = layers(text);
        assert_eq!(layers.code, want, "{text}");
        assert_eq!(layers.comments.chars().count(), text.chars().count(), "{text}");
    }

    #[test]
    fn strings_and_characters_are_not_code() {
        check_code(r#"f("a { \" b", 'c', '\'', b'{')"#, r#"f("xxxxxxxx", 'x', 'xx', b'x')"#);
        check_code("\"a\nb\" c", "\"x\nx\" c");
        check_code(r##"r#"a " {"# + r"\" + br"{""##, r##"r#"xxxxx"# + r"x" + br"x""##);
        check_code("r#fn + 'é'", "r#fn + 'x'");
        check_code("\"never closed", "\"xxxxxxxxxxxx");
    }

    #[test]
    fn lifetimes_are_code() {
        check_code("fn f<'a>(x: &'a str) { 'b: loop {} }", "fn f<'a>(x: &'a str) { 'b: loop {} }");
    }

    #[test]
    fn comments_are_not_code() {
        let text = "a // b \"\nc /* d /* e */ f */ g \"// h\"";
        check_code(text, "a       \nc                   g \"xxxx\"");
        assert_eq!(layers(text).comments, "  // b \"\n  /* d /* e */ f */         ");
    }

    #[track_caller]
    fn check_functions(text: &str, want: &[(&str, usize, usize)]) {
        let found = functions(&layers(text).code);
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.code_lines)).collect();
        assert_eq!(found, want, "{text}");
    }

    #[test]
    fn functions_are_measured_between_braces() {
        check_functions("fn a() {}", &[("a", 1, 0)]);
        check_functions("fn a() {\n    b();\n\n    // why\n    c();\n}\n", &[("a", 1, 2)]);
        check_functions(
            "\npub fn a<T>(x: [u8; 4])\nwhere T: B {\n  \"}\";\n}\nfn c() {\n}",
            &[("a", 2, 1), ("c", 6, 0)],
        );
        check_functions("trait A {\n fn a();\n fn b() { c() }\n}", &[("b", 3, 0)]);
        check_functions("fn a() {\n fn b() {\n  c();\n }\n}", &[("a", 1, 3), ("b", 2, 1)]);
    }

    #[test]
    fn function_pointers_are_not_functions() {
        check_functions("type A = fn(u8) -> u8;\nlet x: fn() = y;", &[]);
    }

    #[test]
    fn test_modules_are_found_with_their_attribute() {
        let check = |text: &str, want: &[RangeInclusive<usize>]| {
            assert_eq!(test_modules(&layers(text).code), want, "{text}");
        };
        check("a\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nc", &[2..=5]);
        check("#[cfg(all(test, feature = \"mod\"))]\n#[expect(x)]\nmod tests {\n}", &[1..=4]);
        check("#[cfg(test)]\nmod tests;\nfn a() {}", &[]);
        check("#[cfg(test)]\nuse a::b;\nmod c {}", &[]);
        check("// #[cfg(test)]\nmod tests {}", &[]);
    }

    #[test]
    fn modules_are_listed() {
        assert_eq!(modules("mod a;\npub mod b {\n}"), [(1, "a".to_owned()), (2, "b".to_owned())]);
    }
}
