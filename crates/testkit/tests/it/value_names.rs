//! The names of variables, parameters, fields and functions: a participle that hides what a value is, is not accepted.

use std::path::Path;

use steno_testkit::places;

use crate::source;

/// Words that say where a value came from, but not what it is. Use a noun: `message`, `report`, `notices`, `siblings`.
const VAGUE_VALUES: [&str; 5] = ["beside", "heard", "said", "stood", "told"];

#[test]
fn value_names_are_nouns() {
    let paths = places::files().into_iter().filter(|path| Path::new(path).extension() == Some("rs".as_ref()));
    let complaints: Vec<String> = paths.flat_map(|path| vague(&path, &places::read(&path))).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Finds declarations with a vague name in a source file of a crate. Tests may use any name.
fn vague(path: &str, text: &str) -> Vec<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let ["crates", _, "src", ..] = parts[..] else { return Vec::new() };
    if path.ends_with("tests.rs") || parts.contains(&"tests") {
        return Vec::new();
    }
    let code = source::layers(text).code;
    let tests = source::test_modules(&code);
    let lines = code.lines().enumerate().map(|(at, line)| (at + 1, line));
    let lines = lines.filter(|(number, _)| !tests.iter().any(|module| module.contains(number)));
    let complaint = |(number, line)| {
        let name = VAGUE_VALUES.iter().find(|name| declares(line, name))?;
        Some(format!("{path}:{number}: `{name}` does not say what the value is: use a noun"))
    };
    lines.filter_map(complaint).collect()
}

/// Returns true if a line of code declares this name, or gives a value to a field of this name.
fn declares(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + name.len()..]);
        let is_word = !before.ends_with(is_part) && !after.starts_with(is_part);
        let is_typed = after.starts_with(':') && !after.starts_with("::");
        let is_bound = ["let ", "mut ", "fn ", "|", "(", ", "].iter().any(|word| before.ends_with(word));
        is_word
            && (is_typed
                || (is_bound && (before.contains("let ") || before.contains("fn ") || before.contains('|'))))
    })
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, want: usize) {
        let complaints = vague(path, text);
        assert_eq!(complaints.len(), want, "{text}\n{complaints:#?}");
    }

    #[test]
    fn vague_value_names_are_found() {
        let path = "crates/a/src/one.rs";
        for name in VAGUE_VALUES {
            for text in [
                format!("let {name} = 1;"),
                format!("let mut {name} = 1;"),
                format!("let (a, {name}) = (1, 2);"),
                format!("fn {name}() {{}}"),
                format!("fn a({name}: u8) {{}}"),
                format!("f(|{name}| 1);"),
                format!("    pub {name}: u8,"),
            ] {
                check(path, &text, 1);
            }
            check(path, &format!("let un{name} = {name}_at + is_{name};"), 0);
            check(path, &format!("// let {name} = 1;\nf(\"let {name} = 1\");"), 0);
            check("crates/a/tests/it/one.rs", &format!("let {name} = 1;"), 0);
            check(path, &format!("#[cfg(test)]\nmod tests {{\n    let {name} = 1;\n}}\n"), 0);
        }
    }
}
