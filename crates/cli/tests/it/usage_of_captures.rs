//! What real sessions cost, and where the record has less than the agent itself has counted.

use serde_json::Value;
use steno_testkit::{needs, shared_dir};

use crate::agents_files::lines;
use crate::kit::Steno;

/// Captures with the output tokens of each session, and whether these are all that there were.
const CAPTURES: [(&str, &[(u64, bool)]); 7] = [
    ("2.1.197/main", &[(857, true)]),
    ("2.1.325/main", &[(857, true)]),
    ("2.1.325/denied", &[(857, true)]),
    ("2.1.325/control", &[(1026, true)]),
    ("2.1.325/err400", &[(35, true)]),
    ("2.1.325/resume", &[(963, true)]),
    // The responses that made the summary are on record nowhere; the fork's own are.
    ("2.1.325/compact", &[(56, true), (963, false)]),
];

#[test]
fn a_session_is_exact_where_its_responses_are_all_that_it_cost() {
    let shared = needs!(shared_dir(), "../shared is absent");
    for (capture, want) in CAPTURES {
        let home = shared.join("captures/claude").join(capture).join("home");
        let said = Steno::new().run(&["usage", home.to_str().unwrap(), "--by", "session", "--json"]);
        let row = |row: &Value| (row["output_tokens"].as_u64().unwrap(), row["exact"] == true);
        let rows: Vec<_> = lines(&said).iter().map(row).collect();
        assert_eq!(rows, want, "{capture}");
    }
}
