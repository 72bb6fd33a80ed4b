//! Checks which crates may use which: compares the table in `ARCHITECTURE.md` with `cargo metadata`. Also checks that
//! folders and packages have the same names, that pure crates have their bans, and that every crate has its five lines
//! in the document.

use std::env;
use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value;
use steno_testkit::places;

/// The heading above the table.
const HEADING: &str = "Who may use whom";

/// The crates that turn input into output and do nothing else.
const PURE: [&str; 6] = ["model", "adapters", "session", "views", "exports", "redact"];

/// What the `clippy.toml` of a pure crate must ban.
const BANS: [(&str, &[&str]); 4] = [
    ("clock", &["std::time::SystemTime::now", "std::time::Instant::now", "jiff::Timestamp::now"]),
    ("environment", &["std::env::var", "std::env::var_os", "std::env::vars", "std::env::current_dir"]),
    (
        "files",
        &[
            "std::fs::read",
            "std::fs::read_to_string",
            "std::fs::read_dir",
            "std::fs::write",
            "std::fs::File::open",
            "std::fs::File::create",
            "std::fs::OpenOptions",
        ],
    ),
    ("threads", &["std::thread::spawn", "std::thread::scope", "std::thread::sleep"]),
];

/// The five lines that the document has for every crate.
const LINES: [&str; 5] = ["Owns", "Does not own", "Invariants", "Entry point", "Tests"];

#[test]
fn crates_use_only_what_the_table_allows() {
    complain(&edges(&table(), &crates()));
}

#[test]
fn crates_use_only_rows_above() {
    complain(&order(&table()));
}

#[test]
fn folders_and_packages_have_the_same_names() {
    complain(&names(&crates()));
}

#[test]
fn pure_crates_ban_effects() {
    let mut found = purity(&table());
    for krate in crates().iter().filter(|krate| PURE.contains(&krate.noun())) {
        let path = format!("{}/clippy.toml", krate.folder);
        let text = std::fs::read_to_string(places::workspace_root().join(&path)).unwrap_or_default();
        found.extend(missing_bans(&path, &text));
    }
    complain(&found);
}

#[test]
fn crates_use_the_lints_of_the_workspace() {
    let manifests = crates().into_iter().map(|krate| format!("{}/Cargo.toml", krate.folder));
    let without: Vec<String> = manifests
        .filter(|path| !takes_workspace_lints(&places::read(path)))
        .map(|path| format!("`{path}` lacks `[lints]` with `workspace = true`"))
        .collect();
    complain(&without);
}

#[test]
fn document_has_five_lines_for_every_crate() {
    let text = places::read("ARCHITECTURE.md");
    complain(&crates().iter().flat_map(|krate| missing_lines(&text, krate.noun())).collect::<Vec<_>>());
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    uses: Vec<String>,
    pure: bool,
    planned: bool,
}

/// A crate as its manifest describes it.
struct Crate {
    package: String,
    /// Relative to the workspace's root.
    folder: String,
    /// The folders of our crates that it depends on outside tests.
    uses: Vec<String>,
}

impl Crate {
    fn noun(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or_default()
    }
}

#[track_caller]
fn complain(found: &[String]) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

fn table() -> Vec<Row> {
    let rows = parse_table(&places::read("ARCHITECTURE.md"));
    rows.unwrap_or_else(|error| panic!("`ARCHITECTURE.md`: {error}"))
}

fn crates() -> Vec<Crate> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]);
    let output = command.current_dir(places::workspace_root()).output().expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let crates = parse_metadata(&metadata);
    assert!(
        crates.iter().any(|krate| krate.noun() == "testkit"),
        "cargo metadata does not list this very crate"
    );
    crates
}

fn parse_metadata(metadata: &Value) -> Vec<Crate> {
    let text = |value: &Value| value.as_str().expect("cargo metadata has a text here").to_owned();
    let list = |value: &Value| value.as_array().cloned().expect("cargo metadata has a list here");
    let root = text(&metadata["workspace_root"]);
    let folder = |package: &Value| {
        let manifest = text(&package["manifest_path"]);
        let inside = manifest.strip_prefix(&root).and_then(|path| path.strip_suffix("/Cargo.toml"));
        inside.expect("a member lies below the workspace").trim_start_matches('/').to_owned()
    };
    let packages = list(&metadata["packages"]);
    let nouns: Vec<(String, String)> = packages
        .iter()
        .map(|package| {
            (text(&package["name"]), folder(package).rsplit('/').next().unwrap_or_default().to_owned())
        })
        .collect();
    let uses = |package: &Value| {
        let needed = list(&package["dependencies"]).into_iter().filter(|needed| needed["kind"] != "dev");
        let named = needed.map(|needed| text(&needed["name"]));
        named.filter_map(|name| Some(nouns.iter().find(|(package, _)| *package == name)?.1.clone())).collect()
    };
    let crates = packages.iter();
    crates.map(|p| Crate { package: text(&p["name"]), folder: folder(p), uses: uses(p) }).collect()
}

/// Reads the first table below the heading. Columns are found by the first words of their titles.
fn parse_table(markdown: &str) -> Result<Vec<Row>, String> {
    let mut lines = markdown.lines().skip_while(|line| !(line.starts_with('#') && line.ends_with(HEADING)));
    lines.next().ok_or_else(|| format!("there is no heading `{HEADING}`"))?;
    let lines = lines.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let mut rows = lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let titles = rows.next().ok_or("there is no table below the heading")?;
    let column = |title: &str| {
        let found = titles.iter().position(|has| has.starts_with(title));
        found.ok_or_else(|| format!("the table has no column `{title}`"))
    };
    let (name, uses, effects, state) =
        (column("crate")?, column("may use")?, column("effects")?, column("state")?);
    let mut parsed = Vec::new();
    for row in rows.skip(1) {
        let cell = |at: usize| row.get(at).copied().ok_or_else(|| format!("the row {row:?} is too short"));
        let planned = match cell(state)? {
            "planned" => true,
            "here" => false,
            other => return Err(format!("`{other}` is neither `here` nor `planned`")),
        };
        let uses = cell(uses)?.split(',').map(str::trim).filter(|name| !matches!(*name, "" | "–"));
        let uses = uses.map(str::to_owned).collect();
        parsed.push(Row { name: cell(name)?.to_owned(), uses, pure: cell(effects)? == "none", planned });
    }
    if parsed.is_empty() { Err("the table has no rows".to_owned()) } else { Ok(parsed) }
}

/// Reports crates without a row, rows without a crate, and dependencies that no row allows.
fn edges(rows: &[Row], crates: &[Crate]) -> Vec<String> {
    let mut found = Vec::new();
    for krate in crates {
        let name = krate.noun();
        let Some(row) = rows.iter().find(|row| row.name == name) else {
            found.push(format!("`{name}` has no row in the table"));
            continue;
        };
        if row.planned {
            found.push(format!("`{name}` exists, and its row still says `planned`"));
        }
        for used in krate.uses.iter().filter(|used| !row.uses.contains(used)) {
            found.push(format!("`{name}` uses `{used}`, which its row does not allow"));
        }
    }
    for row in rows.iter().filter(|row| !row.planned) {
        if !crates.iter().any(|krate| krate.noun() == row.name) {
            found.push(format!("`{}` has a row that does not say `planned`, and does not exist", row.name));
        }
    }
    found
}

/// A row may use only rows above it, so there are no cycles.
fn order(rows: &[Row]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if rows[..at].iter().any(|above| above.name == row.name) {
            found.push(format!("`{}` has two rows", row.name));
        }
        for used in &row.uses {
            if !rows[..at].iter().any(|above| above.name == *used) {
                found.push(format!("`{}` may use `{used}`, which has no row above it", row.name));
            }
        }
    }
    found
}

fn names(crates: &[Crate]) -> Vec<String> {
    let mut found = Vec::new();
    for krate in crates {
        let Crate { package, folder, .. } = krate;
        let noun = krate.noun();
        let want = if noun == "cli" { "steno".to_owned() } else { format!("steno-{noun}") };
        if *package != want || *folder != format!("crates/{noun}") {
            found.push(format!("package `{package}` lies in `{folder}`, want `{want}` in `crates/{noun}`"));
        }
    }
    found
}

/// Reports differences between the table's column of effects and the list of pure crates.
fn purity(rows: &[Row]) -> Vec<String> {
    let wrong = rows.iter().filter(|row| row.pure != PURE.contains(&row.name.as_str()));
    wrong.map(|row| format!("`{}`: the table and the list of pure crates disagree", row.name)).collect()
}

fn missing_bans(path: &str, clippy_toml: &str) -> Vec<String> {
    let lines: Vec<&str> = clippy_toml.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let mut found = Vec::new();
    for (topic, bans) in BANS {
        for ban in bans {
            let entry = format!("path = \"{ban}\"");
            if !lines.iter().any(|line| line.contains(&entry)) {
                found.push(format!("`{path}` does not ban `{ban}` ({topic})"));
            }
        }
    }
    found
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let mut below = manifest.lines().skip_while(|line| line.trim() != "[lints]").skip(1);
    below.find(|line| !line.trim().is_empty()).is_some_and(|line| line.trim() == "workspace = true")
}

/// Looks below the heading `### name` for the five labels, each at the start of an item.
fn missing_lines(markdown: &str, name: &str) -> Vec<String> {
    let heading = format!("### {name}");
    let section = markdown.lines().skip_while(|line| *line != heading).skip(1);
    let section: Vec<&str> = section.take_while(|line| !line.starts_with('#')).collect();
    let mut found = String::new();
    for label in LINES {
        if !section.iter().any(|line| line.starts_with(&format!("- **{label}**"))) {
            let _ = write!(found, " `{label}`");
        }
    }
    if found.is_empty() { Vec::new() } else { vec![format!("`{heading}` in `ARCHITECTURE.md` lacks{found}")] }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(name: &str, uses: &[&str]) -> Row {
        let uses = uses.iter().map(|used| (*used).to_owned()).collect();
        Row { name: name.to_owned(), uses, pure: false, planned: false }
    }

    fn krate(package: &str, folder: &str, uses: &[&str]) -> Crate {
        let uses = uses.iter().map(|used| (*used).to_owned()).collect();
        Crate { package: package.to_owned(), folder: folder.to_owned(), uses }
    }

    const TABLE: &str = "# A\n## Who may use whom\nText.\n\n\
        | crate | owns | may use (ours) | effects | state |\n|---|---|---|---|---|\n\
        | model | words | – | none | here |\n| vault | bytes | model, journal | disk | planned |\n\n| other |\n";

    #[test]
    fn table_is_read_to_its_end() {
        let model = Row { pure: true, ..row("model", &[]) };
        let vault = Row { planned: true, ..row("vault", &["model", "journal"]) };
        assert_eq!(parse_table(TABLE), Ok(vec![model, vault]));
    }

    #[test]
    fn table_that_cannot_be_read_is_an_error() {
        let check = |text: &str, part: &str| {
            let error = parse_table(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check("# A\n", "no heading");
        check("# Who may use whom\n", "no table");
        check("# Who may use whom\n| crate | owns |\n|---|---|\n", "no column `may use`");
        check(&TABLE.replace("planned", "soon"), "`soon` is neither");
        check(&TABLE.replace(" | planned", ""), "too short");
        check(TABLE.split("| model").next().unwrap(), "no rows");
    }

    #[test]
    fn metadata_gives_folders_and_edges_without_those_of_tests() {
        let dependency = |name: &str, kind: Value| json!({"name": name, "kind": kind});
        let metadata = json!({"workspace_root": "/x", "packages": [
            {"name": "steno-model", "manifest_path": "/x/crates/model/Cargo.toml", "dependencies": [
                dependency("serde", Value::Null), dependency("steno", json!("dev"))]},
            {"name": "steno", "manifest_path": "/x/crates/cli/Cargo.toml", "dependencies": [
                dependency("steno-model", Value::Null), dependency("steno-model", json!("build"))]},
        ]});
        let crates = parse_metadata(&metadata);
        let read: Vec<_> = crates.iter().map(|c| (c.noun(), c.folder.as_str(), c.uses.join(" "))).collect();
        let want =
            [("model", "crates/model", String::new()), ("cli", "crates/cli", "model model".to_owned())];
        assert_eq!(read, want);
    }

    #[test]
    fn edges_outside_the_table_are_found() {
        let rows = [row("model", &[]), row("views", &["model"])];
        let model = || krate("steno-model", "crates/model", &[]);
        let views = |uses| krate("steno-views", "crates/views", uses);
        let check = |crates: &[Crate], want: &[&str]| assert_eq!(edges(&rows, crates), want);
        check(&[model(), views(&["model"])], &[]);
        check(&[model(), views(&[])], &[]);
        check(
            &[krate("steno-model", "crates/model", &["views"]), views(&[])],
            &["`model` uses `views`, which its row does not allow"],
        );
        check(
            &[model(), views(&[]), krate("steno-vault", "crates/vault", &[])],
            &["`vault` has no row in the table"],
        );
        check(&[model()], &["`views` has a row that does not say `planned`, and does not exist"]);
    }

    #[test]
    fn planned_row_must_have_no_crate() {
        let rows = [Row { planned: true, ..row("vault", &[]) }];
        assert_eq!(edges(&rows, &[]), [""; 0]);
        let found = edges(&rows, &[krate("steno-vault", "crates/vault", &[])]);
        assert_eq!(found, ["`vault` exists, and its row still says `planned`"]);
    }

    #[test]
    fn rows_may_use_only_rows_above() {
        assert_eq!(order(&[row("model", &[]), row("views", &["model"])]), [""; 0]);
        let found = order(&[row("views", &["model"]), row("model", &[]), row("model", &[])]);
        assert_eq!(found, ["`views` may use `model`, which has no row above it", "`model` has two rows"]);
    }

    #[test]
    fn names_that_differ_are_found() {
        let check = |package, folder, want: usize| {
            assert_eq!(names(&[krate(package, folder, &[])]).len(), want, "{package} {folder}");
        };
        check("steno-model", "crates/model", 0);
        check("steno", "crates/cli", 0);
        check("steno-cli", "crates/cli", 1);
        check("steno-modell", "crates/model", 1);
        check("steno-model", "model", 1);
        check("model", "crates/model", 1);
        check("steno", "crates/steno", 1);
    }

    #[test]
    fn purity_of_table_and_list_must_agree() {
        assert_eq!(purity(&[Row { pure: true, ..row("model", &[]) }, row("journal", &[])]), [""; 0]);
        assert_eq!(purity(&[row("model", &[])]).len(), 1);
        assert_eq!(purity(&[Row { pure: true, ..row("journal", &[]) }]).len(), 1);
    }

    #[test]
    fn missing_or_commented_ban_is_found() {
        let all = BANS.iter().flat_map(|(_, bans)| *bans);
        let full: Vec<String> =
            all.map(|ban| format!("  {{ path = \"{ban}\", reason = \"pure\" }},")).collect();
        let full = full.join("\n");
        assert_eq!(missing_bans("c", &full), [""; 0]);
        assert_eq!(missing_bans("c", "").len(), BANS.iter().map(|(_, bans)| bans.len()).sum::<usize>());
        let commented = full.replace("  { path = \"std::env::var\",", "# { path = \"std::env::var\",");
        assert_eq!(missing_bans("c", &commented), ["`c` does not ban `std::env::var` (environment)"]);
    }

    #[test]
    fn missing_lints_are_found() {
        assert!(takes_workspace_lints("[package]\n\n[lints]\nworkspace = true\n"));
        assert!(!takes_workspace_lints("[package]\nname = \"a\"\n"));
        assert!(!takes_workspace_lints("[lints]\n[dependencies]\nworkspace = true\n"));
    }

    #[test]
    fn missing_lines_are_found() {
        let full = LINES.map(|label| format!("- **{label}** x\n")).concat();
        assert_eq!(missing_lines(&format!("### model\n{full}### views\n"), "model"), [""; 0]);
        let found = missing_lines(&format!("### model\n### views\n{full}"), "model");
        assert_eq!(found.len(), 1);
        let found = missing_lines(&format!("### model\n{}", full.replace("**Tests**", "Tests")), "model");
        assert_eq!(found, ["`### model` in `ARCHITECTURE.md` lacks `Tests`"]);
    }
}
