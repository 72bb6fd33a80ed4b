//! Where two receipts differ first.

use serde_json::Value;

/// A place where two receipts say different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The field, with dots and numbers.
    pub field: String,
    /// What the receipt says; `None` where it says nothing.
    pub said: Option<String>,
    /// What the record gives; `None` where it gives nothing.
    pub found: Option<String>,
}

/// Finds the first difference, in the order of what the record gives.
#[must_use]
pub fn first_difference(said: &Value, found: &Value) -> Option<Difference> {
    differ("", Some(said), Some(found))
}

fn differ(field: &str, said: Option<&Value>, found: Option<&Value>) -> Option<Difference> {
    let below = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
    match (said, found) {
        (Some(Value::Object(said)), Some(Value::Object(found))) => {
            let added = said.keys().filter(|name| !found.contains_key(*name));
            found.keys().chain(added).find_map(|name| differ(&below(name), said.get(name), found.get(name)))
        }
        (Some(Value::Array(said)), Some(Value::Array(found))) => {
            let len = said.len().max(found.len());
            (0..len).find_map(|at| differ(&below(&at.to_string()), said.get(at), found.get(at)))
        }
        (said, found) if said == found => None,
        (said, found) => {
            let text = |value: Option<&Value>| value.map(Value::to_string);
            Some(Difference { field: field.to_owned(), said: text(said), found: text(found) })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named_with_both_sides() {
        let found = json!({"a": 1, "b": {"c": [1, 2], "d": null}});
        let check = |said: Value, want: Option<(&str, Option<&str>, Option<&str>)>| {
            let difference = first_difference(&said, &found);
            let difference = difference.as_ref().map(|difference| {
                (difference.field.as_str(), difference.said.as_deref(), difference.found.as_deref())
            });
            assert_eq!(difference, want, "{said}");
        };
        check(found.clone(), None);
        check(json!({"a": 2, "b": {"c": [1, 2], "d": null}}), Some(("a", Some("2"), Some("1"))));
        check(json!({"a": 1, "b": {"c": [1], "d": null}}), Some(("b.c.1", None, Some("2"))));
        check(json!({"a": 1, "b": {"c": [1, 2], "d": null}, "x": 0}), Some(("x", Some("0"), None)));
        check(json!({"a": 1, "b": {"c": [1, 2]}}), Some(("b.d", None, Some("null"))));
    }
}
