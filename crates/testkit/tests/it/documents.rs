//! Lists in documents that have a counterpart in the tree: the recipes of `justfile` in `CONTRIBUTING.md`, and the rows of
//! the benchmarks in `docs/benchmarks.md`.

use steno_testkit::places;

/// How the names of rows begin, of all benchmarks.
const ROWS: [&str; 16] = [
    "ATIF, ",
    "following, ",
    "harness ",
    "import again, ",
    "import, ",
    "killed, ",
    "load, ",
    "memory, ",
    "normalise ",
    "open a",
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
fn the_page_of_benchmarks_names_the_rows_that_they_print() {
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

/// Returns the words of code in the first cells of all tables.
fn first_cells(document: &str) -> Vec<String> {
    let cells = document.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Returns the texts in code that are names of rows.
fn rows(code: &str) -> Vec<String> {
    let texts = code.split('"').skip(1).step_by(2);
    texts.filter(|text| ROWS.iter().any(|begin| text.starts_with(begin))).map(str::to_owned).collect()
}

/// Tells whether a row of the document can be that of a benchmark: both have gaps, which stand for anything.
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
