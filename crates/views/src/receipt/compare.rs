//! Finds the first difference of two receipts.
//!
//! They are compared token by token, so that huge numbers and lone surrogates compare exactly.

use serde_json::value::RawValue;
use steno_model::json::Fields;

/// A field in which two receipts differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The field, with dots and numbers.
    pub field: String,
    /// The value in the receipt, if any.
    pub said: Option<String>,
    /// The value from the record, if any.
    pub found: Option<String>,
}

/// Finds the first difference, in the order of the record's receipt.
///
/// # Errors
/// When the receipt is not JSON.
pub fn first_difference(said: &str, found: &str) -> Result<Option<Difference>, serde_json::Error> {
    let (said, found): (&RawValue, &RawValue) = (serde_json::from_str(said)?, serde_json::from_str(found)?);
    Ok(differ("", Some(said), Some(found)))
}

fn differ(field: &str, said: Option<&RawValue>, found: Option<&RawValue>) -> Option<Difference> {
    let below = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
    if let (Some(said), Some(found)) = (said, found) {
        if let (Some(said), Some(found)) = (fields(said), fields(found)) {
            let get = |fields: &[(String, &'_ RawValue)], name: &str| {
                fields.iter().rev().find(|(known, _)| known == name).map(|(_, value)| (*value).to_owned())
            };
            let added = said.iter().filter(|(name, _)| !found.iter().any(|(known, _)| known == name));
            return found.iter().chain(added).find_map(|(name, _)| {
                differ(&below(name), get(&said, name).as_deref(), get(&found, name).as_deref())
            });
        }
        if let (Some(said), Some(found)) = (items(said), items(found)) {
            let len = said.len().max(found.len());
            return (0..len).find_map(|at| {
                differ(&below(&at.to_string()), said.get(at).copied(), found.get(at).copied())
            });
        }
    }
    let text = |value: Option<&RawValue>| value.map(|value| value.get().to_owned());
    let (said, found) = (text(said), text(found));
    (said != found).then(|| Difference { field: field.to_owned(), said, found })
}

/// Returns the fields of an object, in order.
fn fields(value: &RawValue) -> Option<Vec<(String, &RawValue)>> {
    let fields = Fields::parse(value.get()).ok()?;
    Some(fields.iter().map(|(key, value)| (key.text().into_owned(), value)).collect())
}

/// Returns the items of an array.
fn items(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_difference_has_both_values() {
        const FOUND: &str = r#"{"z":1,"b":{"c":[1,2],"d":null,"e":1e400},"s":"\ud800"}"#;
        let check = |said: &str, want: Option<(&str, Option<&str>, Option<&str>)>| {
            let difference = first_difference(said, FOUND).unwrap();
            let difference = difference.as_ref().map(|difference| {
                (difference.field.as_str(), difference.said.as_deref(), difference.found.as_deref())
            });
            assert_eq!(difference, want, "{said}");
        };
        check(FOUND, None);
        check(r#"{ "s":"\ud800", "b":{"d":null,"e":1e400,"c":[1, 2]},"z":1}"#, None);
        check(&FOUND.replace("\"z\":1", "\"z\":2").replace("null", "7"), Some(("z", Some("2"), Some("1"))));
        check(&FOUND.replace("[1,2]", "[1]"), Some(("b.c.1", None, Some("2"))));
        check(&FOUND.replace("1e400", "1e401"), Some(("b.e", Some("1e401"), Some("1e400"))));
        check(&FOUND.replace("{\"z\"", "{\"x\":0,\"z\""), Some(("x", Some("0"), None)));
        check(&FOUND.replace("\"d\":null,", ""), Some(("b.d", None, Some("null"))));
        check(&FOUND.replace("[1,2]", "{}"), Some(("b.c", Some("{}"), Some("[1,2]"))));
        assert!(first_difference("{", FOUND).is_err());
    }
}
