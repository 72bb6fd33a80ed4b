//! Lists in documents that have a counterpart in the tree: the recipes of `justfile` in `CONTRIBUTING.md`, the rows of the
//! benchmarks in `docs/benchmarks.md`, the tests in `docs/promises.md`, and code and tests in `docs/adapters/writing.md`.
//! Also the form of the pages in `docs/format`, and of titles in `docs/decisions`.

use std::path::Path;

use steno_testkit::places;

use crate::source;

/// The documents whose promises have tests, besides the pages about formats.
const PROMISING: [&str; 8] = [
    "README.md",
    "docs/commands.md",
    "SECURITY.md",
    "docs/privacy.md",
    "docs/verify.md",
    "docs/api.md",
    "docs/settings.md",
    "docs/receipts/README.md",
];

/// The headings of a page about a format, in their order.
const FORMAT_HEADINGS: [&str; 8] = [
    "Purpose",
    "Where it is",
    "Layout",
    "Fields",
    "Rules for writers",
    "Rules for readers",
    "Example",
    "Versions",
];

/// The prefixes of benchmark row names.
const ROWS: [&str; 19] = [
    "ATIF, ",
    "following, ",
    "harness ",
    "history, ",
    "import again, ",
    "import and index, ",
    "import, ",
    "killed, ",
    "load, ",
    "memory, ",
    "normalise ",
    "open a",
    "reading, ",
    "record ",
    "seal what",
    "spine validate",
    "subscribers ",
    "usage, ",
    "verify",
];

#[test]
fn contributing_lists_every_recipe() {
    let listed = first_cells(&places::read("CONTRIBUTING.md"));
    let listed: Vec<_> = listed.iter().filter_map(|name| name.strip_prefix("just ")).collect();
    assert_eq!(listed, recipes(&places::read("justfile")));
}

#[test]
fn benchmarks_page_names_every_row() {
    let is_bench = |path: &String| path.contains("/benches/");
    let printed: Vec<_> = places::files()
        .iter()
        .filter(|path| is_bench(path))
        .flat_map(|path| rows(&places::read(path)))
        .collect();
    let listed = first_cells(&places::read("docs/benchmarks.md"));
    let unlisted: Vec<_> = printed.iter().filter(|name| !listed.iter().any(|row| fits(row, name))).collect();
    let unprinted: Vec<_> = listed.iter().filter(|row| !printed.iter().any(|name| fits(row, name))).collect();
    assert!(printed.len() >= 30, "{printed:?}");
    assert!(
        unlisted.is_empty() && unprinted.is_empty(),
        "not listed {unlisted:?}, not printed {unprinted:?}"
    );
}

/// The page about new adapters, and the adapter that it explains.
const WRITING: (&str, &str) = ("docs/adapters/writing.md", "crates/adapters/src/example.rs");

#[test]
fn page_on_adapters_shows_the_example_and_names_existing_tests() {
    let page = places::read(WRITING.0);
    let blocks: Vec<&str> =
        page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let example = places::read(WRITING.1);
    assert!(!blocks.is_empty(), "{} shows no code", WRITING.0);
    for block in blocks {
        assert!(example.contains(block), "{} has another text than this:\n{block}", WRITING.1);
    }
    let files = places::files();
    let read = |path: &str| files.iter().any(|file| file == path).then(|| places::read(path));
    let tests: Vec<_> = first_cells(&page).into_iter().filter(|cell| cell.contains("::")).collect();
    assert!(tests.len() >= 8, "{tests:?}");
    let absent: Vec<_> = tests.iter().filter(|test| !is_test(test, &read)).collect();
    assert!(absent.is_empty(), "no {absent:?}");
}

#[test]
fn recipes_rows_and_gaps_are_found() {
    let justfile =
        "[private]\ndefault:\n    @just\n\n# Says so\nfuzz seconds=\"60\":\n    a: b\n\ndoc:\n    c\n";
    assert_eq!(recipes(justfile), ["fuzz", "doc"]);
    assert_eq!(first_cells("| a | b |\n|---|---|\n| `x`, `y …` | `z` |\n"), ["x", "y …"]);
    let code = "take(Row::new(format!(\"load, {n} a second\"), 1.0, \"s\")); skip(\"load\");";
    assert_eq!(rows(code), ["load, {n} a second"]);
    for (row, name, want) in [
        ("record written … B, R × T", "record {level} {} B, {runs} × {threads}", true),
        ("load, events", "load, events", true),
        ("load, events", "load, event", false),
        ("import … of other", "import, CPU", false),
        ("following, N files", "following, {files} files", true),
    ] {
        assert_eq!(fits(row, name), want, "{row}, {name}");
    }
}

#[test]
fn format_pages_have_one_form() {
    let pages = format_pages();
    assert!(pages.len() > 5, "{pages:?}");
    let faults =
        pages.iter().filter_map(|path| Some(format!("{path}: {}", form_fault(&places::read(path))?)));
    assert_eq!(faults.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn format_pages_of_another_form_are_found() {
    let page = |headings: &[&str], statement: &str| {
        let sections = headings.iter().map(|heading| format!("\n## {heading}\n\n### Part\n"));
        format!("# A\n\n{statement}\n{}", sections.collect::<String>())
    };
    let normative = "This page is\nnormative.";
    let mut swapped = FORMAT_HEADINGS;
    swapped.swap(2, 3);
    for (text, is_found) in [
        (page(&FORMAT_HEADINGS, normative), false),
        (page(&FORMAT_HEADINGS, "A page."), true),
        (page(&FORMAT_HEADINGS[1..], normative), true),
        (page(&swapped, normative), true),
        (page(&[&FORMAT_HEADINGS[..], &["Other"]].concat(), normative), true),
    ] {
        assert_eq!(form_fault(&text).is_some(), is_found, "{text}");
    }
}

/// Returns what is wrong with the form of a page about a format.
fn form_fault(page: &str) -> Option<String> {
    let headings: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    if headings != FORMAT_HEADINGS {
        return Some(format!("has the headings {headings:?}, not {FORMAT_HEADINGS:?}"));
    }
    let words: Vec<_> = page.split_whitespace().collect();
    let is_normative = words.join(" ").contains("This page is normative");
    (!is_normative).then(|| "does not say that it is normative".to_owned())
}

#[test]
fn titles_of_decisions_are_instructions() {
    let files = places::files();
    let decisions: Vec<_> = files.iter().filter(|path| path.starts_with("docs/decisions/")).collect();
    assert!(decisions.len() > 20, "{decisions:?}");
    let faulty = decisions.into_iter().filter(|path| !is_instruction(path, &places::read(path)));
    assert_eq!(faulty.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn other_titles_of_decisions_are_found() {
    for (title, want) in [
        ("# 0009: Keep this", true),
        ("# 0009: Do not keep this", true),
        ("# 0008: Keep this", false),
        ("# 0009: The keeping of this", false),
        ("# 0009: Keeping this", false),
        ("# Keep this", false),
    ] {
        assert_eq!(is_instruction("docs/decisions/0009-this.md", title), want, "{title}");
    }
}

/// Returns true if a decision has its number and an instruction as title. A verb that is missing here is added.
fn is_instruction(path: &str, page: &str) -> bool {
    const VERBS: &str = "Accept Compress Compute Derive Do End Forget Index Keep Make Merge Name Put Read Recognise Record Rewrite \
                         Share Store Sync Treat Write";
    let title = page.lines().next().and_then(|line| line.strip_prefix("# ")?.split_once(": "));
    title.is_some_and(|(number, words)| {
        path.starts_with(&format!("docs/decisions/{number}-"))
            && words.split(' ').next().is_some_and(|word| VERBS.split(' ').any(|verb| verb == word))
    })
}

#[test]
fn every_promise_names_an_existing_test() {
    let files = places::files();
    let formats = format_pages();
    let documents: Vec<&str> = PROMISING.into_iter().chain(formats.iter().map(String::as_str)).collect();
    assert!(documents.len() > PROMISING.len() + 5, "{documents:?}");
    let read = |path: &str| files.iter().any(|file| file == path).then(|| places::read(path));
    let gaps = promise_gaps(&places::read("docs/promises.md"), &documents, &read);
    assert!(gaps.is_empty(), "\n{}", gaps.join("\n"));
}

#[test]
fn promises_without_a_test_are_found() {
    let read = |path: &str| {
        let text = match path {
            "a.md" => "# A\n\n## It `holds`\n",
            "b.md" => "# B\n",
            "crates/cli/tests/it/kill.rs" => {
                "#[test]\nfn lives() {}\nfn helps() {}\n// #[test]\n// fn rests() {}\n"
            }
            "crates/cli/tests/it/privacy/mod.rs" => "#[test]\n#[cfg(unix)]\nfn hides() {}\n",
            "crates/journal/src/pause.rs" => "mod tests {\n    #[test]\n    fn ends() {}\n}\n",
            "scripts/x.py" => "def cut():\n    pass\n",
            "scripts/x.sh" => "",
            _ => return None,
        };
        Some(text.to_owned())
    };
    let page = |rows: &str| format!("# Promises\n\n## a.md\n\n| p | h | t |\n|---|---|---|\n{rows}");
    let good = "| p | It `holds` | `cli::kill::lives`, `cli::privacy::hides` |\n\
                | p | A | `journal::pause::tests::ends`, `scripts/x.py: cut`, `scripts/x.sh: all` |\n";
    assert_eq!(promise_gaps(&page(good), &["a.md"], &read), Vec::<String>::new());
    assert_eq!(promise_gaps(&page(good), &["a.md", "b.md"], &read), ["b.md: no table"]);
    assert_eq!(promise_gaps(&page(""), &["a.md"], &read), ["a.md: no table"]);
    for (row, want) in [
        ("| p | Gone | `cli::kill::lives` |", "a.md: no heading `Gone`"),
        ("| p | A | by hand |", "a.md: `p` has no test"),
        ("| p | A |", "a.md: `p` does not have three cells"),
        ("| p | A | `cli::kill::dies` |", "a.md: no `cli::kill::dies`"),
        ("| p | A | `cli::kill::helps` |", "a.md: no `cli::kill::helps`"),
        ("| p | A | `cli::kill::rests` |", "a.md: no `cli::kill::rests`"),
        ("| p | A | `cli::lives` |", "a.md: no `cli::lives`"),
        ("| p | A | `journal::kill::lives` |", "a.md: no `journal::kill::lives`"),
        ("| p | A | `scripts/x.py: burn` |", "a.md: no `scripts/x.py: burn`"),
        ("| p | A | `scripts/y.sh: all` |", "a.md: no `scripts/y.sh: all`"),
    ] {
        assert_eq!(promise_gaps(&page(row), &["a.md"], &read), [want], "{row}");
    }
}

/// Reports problems of a page of promises: documents without a table, missing headings and tests.
fn promise_gaps(page: &str, documents: &[&str], read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut gaps = Vec::new();
    for document in documents {
        let section = page.split("\n## ").find_map(|part| part.strip_prefix(&format!("{document}\n")));
        let table = section.unwrap_or_default().lines().filter_map(|line| line.strip_prefix('|'));
        // The first two lines are the head.
        let rows: Vec<_> = table.skip(2).collect();
        if rows.is_empty() {
            gaps.push(format!("{document}: no table"));
        }
        let text = read(document).unwrap_or_default();
        let headings: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(|line| line.trim_start_matches('#').trim())
            .collect();
        for row in rows {
            let cells: Vec<_> = row.trim_end().trim_end_matches('|').split('|').map(str::trim).collect();
            let [promise, heading, tests] = cells[..] else {
                gaps.push(format!("{document}: `{}` does not have three cells", cells[0]));
                continue;
            };
            if !headings.contains(&heading) {
                gaps.push(format!("{document}: no heading `{heading}`"));
            }
            let tests: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
            if tests.is_empty() {
                gaps.push(format!("{document}: `{promise}` has no test"));
            }
            let absent = tests.iter().filter(|test| !is_test(test, read));
            gaps.extend(absent.map(|test| format!("{document}: no `{test}`")));
        }
    }
    gaps
}

/// Returns true if a test exists: `crate::module::name`, or a function of a script, `scripts/x.py: name`.
fn is_test(test: &str, read: &dyn Fn(&str) -> Option<String>) -> bool {
    if let Some((script, name)) = test.split_once(": ") {
        let is_function = |text: &str| !ends_in(script, "py") || text.contains(&format!("def {name}("));
        return script.starts_with("scripts/") && read(script).is_some_and(|text| is_function(&text));
    }
    let parts: Vec<_> = test.split("::").collect();
    let [folder, modules @ .., name] = &parts[..] else { return false };
    let path = modules.join("/");
    let around = path.strip_suffix("/tests").unwrap_or(&path);
    let below = [format!("tests/it/{path}"), format!("src/{path}"), format!("src/{around}")];
    let files =
        below.iter().flat_map(|file| ["", "/mod"].map(|more| format!("crates/{folder}/{file}{more}.rs")));
    files.filter_map(|file| read(&file)).any(|text| test_names(&text).iter().any(|found| found == name))
}

/// Returns the paths of the pages about formats.
fn format_pages() -> Vec<String> {
    places::files()
        .into_iter()
        .filter(|path| path.starts_with("docs/format/") && ends_in(path, "md"))
        .collect()
}

fn ends_in(path: &str, ending: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == ending)
}

/// Returns the names of the tests in a source file.
fn test_names(text: &str) -> Vec<String> {
    let code = source::layers(text).code;
    let tests =
        code.split("#[test]").skip(1).filter_map(|after| after.split_once("fn ")?.1.split('(').next());
    tests.map(str::to_owned).collect()
}

/// Returns the recipes of a `justfile` that a user may run.
fn recipes(justfile: &str) -> Vec<String> {
    let lines: Vec<_> = justfile.lines().collect();
    let mut recipes = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let is_private = index > 0 && lines[index - 1] == "[private]";
        if line.starts_with(|first: char| first.is_ascii_lowercase()) && line.ends_with(':') && !is_private {
            recipes.extend(line.trim_end_matches(':').split(' ').next().map(str::to_owned));
        }
    }
    recipes
}

/// Returns the code words in the first cells of all tables.
fn first_cells(document: &str) -> Vec<String> {
    let cells = document.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Returns the texts in code that are names of rows.
fn rows(code: &str) -> Vec<String> {
    let texts = code.split('"').skip(1).step_by(2);
    texts.filter(|text| ROWS.iter().any(|begin| text.starts_with(begin))).map(str::to_owned).collect()
}

/// Returns true if a row of the document matches a benchmark's row: gaps in both match any text.
fn fits(row: &str, name: &str) -> bool {
    let row = row.replace("R × T", "… × …").replace(" N ", " … ");
    let mut name: Vec<char> = name.chars().collect();
    while let Some(from) = name.iter().position(|letter| *letter == '{') {
        let len = name[from..].iter().position(|letter| *letter == '}').unwrap_or(0);
        name.splice(from..=from + len, ['…']);
    }
    meet(&row.chars().collect::<Vec<_>>(), &name)
}

fn meet(one: &[char], other: &[char]) -> bool {
    const GAP: char = '…';
    match (one, other) {
        ([], []) => true,
        ([GAP, rest @ ..], _) if meet(rest, other) => true,
        (_, [GAP, rest @ ..]) if meet(one, rest) => true,
        ([GAP, ..], [_, rest @ ..]) => meet(one, rest),
        ([_, rest @ ..], [GAP, ..]) => meet(rest, other),
        ([first, one @ ..], [second, other @ ..]) => first == second && meet(one, other),
        ([], [_, ..]) | ([_, ..], []) => false,
    }
}
