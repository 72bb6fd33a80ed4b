//! The tables. `docs/format/index.md` describes them for users of SQL.

/// The version of the tables and of what their rows mean. A database with another one is replaced.
pub(crate) const VERSION: i64 = 10;

/// Makes all tables.
pub(crate) const TABLES: &str = "
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL UNIQUE,
    session INTEGER,
    parent TEXT,
    shows TEXT,
    shows_by_ids TEXT,
    source TEXT,
    provider TEXT,
    channel TEXT,
    adapter TEXT,
    directory TEXT,
    started_at TEXT,
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    seq_last INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    state TEXT NOT NULL,
    damage TEXT
);
CREATE TABLE sources (
    source TEXT PRIMARY KEY,
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    path BLOB NOT NULL,
    provider TEXT,
    role TEXT,
    session TEXT,
    runs INTEGER NOT NULL,
    seen_at TEXT,
    lost TEXT,
    lost_at TEXT,
    lost_generation INTEGER
) WITHOUT ROWID;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL,
    parent TEXT,
    forked_from TEXT,
    provider TEXT,
    name TEXT,
    kind TEXT,
    version TEXT,
    models TEXT NOT NULL,
    title TEXT,
    own_title INTEGER NOT NULL,
    directory TEXT,
    project TEXT,
    branch TEXT,
    started_at TEXT,
    started_ms INTEGER,
    last_at TEXT,
    last_ms INTEGER,
    state TEXT NOT NULL,
    prompts INTEGER NOT NULL,
    responses INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    denials INTEGER NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    cache_write_1h_tokens INTEGER,
    reasoning_tokens INTEGER,
    exact INTEGER,
    used_by_model TEXT NOT NULL,
    usage_parts TEXT,
    agent_cost TEXT,
    runs INTEGER NOT NULL,
    events INTEGER NOT NULL,
    bytes INTEGER NOT NULL
);
CREATE INDEX sessions_by_root ON sessions (root);
CREATE TABLE calls (
    session INTEGER NOT NULL,
    number INTEGER NOT NULL,
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    call_id TEXT,
    tool TEXT NOT NULL,
    class TEXT,
    outcome TEXT NOT NULL,
    exit_code INTEGER,
    at_ms INTEGER,
    duration_ms INTEGER,
    PRIMARY KEY (session, number)
) WITHOUT ROWID;
CREATE TABLE changes (
    session INTEGER NOT NULL,
    call INTEGER NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (session, call, path)
) WITHOUT ROWID;
CREATE TABLE texts (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    block INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    call INTEGER,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    crc INTEGER NOT NULL
);
CREATE INDEX texts_by_line ON texts (session, run, offset);
CREATE TABLE text_counts (
    session INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    texts INTEGER NOT NULL,
    PRIMARY KEY (session, kind)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (
    terms, parts, content = '', contentless_delete = 1, tokenize = 'ascii'
);
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_lists_every_column() {
        let page = include_str!("../../../docs/format/index.md");
        assert!(page.contains(&format!("This page describes version {VERSION}.")));
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLES).unwrap();
        let list = |statement: &str| -> Vec<String> {
            let mut query = connection.prepare(statement).unwrap();
            query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let tables = list("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'words_%'");
        assert!(tables.len() > 5, "{tables:?}");
        for table in tables {
            let section = page.split(&format!("### `{table}`\n")).nth(1);
            let section = section.unwrap_or_else(|| panic!("no section for {table}"));
            let section = section.split("\n#").next().unwrap();
            let cells: Vec<&str> = section.lines().filter_map(|line| line.split('|').nth(1)).collect();
            for column in list(&format!("SELECT name FROM pragma_table_info('{table}')")) {
                assert!(cells.iter().any(|cell| cell.contains(&format!("`{column}`"))), "{table}.{column}");
            }
        }
    }
}
