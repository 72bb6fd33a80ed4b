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
    pub in_receipt: Option<String>,
    /// The value from the record, if any.
    pub in_record: Option<String>,
}

/// Finds the first difference, in the order of the record's receipt.
///
/// # Errors
/// When the receipt is not JSON.
pub fn first_difference(in_receipt: &str, in_record: &str) -> Result<Option<Difference>, serde_json::Error> {
    let (in_receipt, in_record): (&RawValue, &RawValue) =
        (serde_json::from_str(in_receipt)?, serde_json::from_str(in_record)?);
    Ok(differ("", Some(in_receipt), Some(in_record)))
}

fn differ(field: &str, in_receipt: Option<&RawValue>, in_record: Option<&RawValue>) -> Option<Difference> {
    let below = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
    if let (Some(in_receipt), Some(in_record)) = (in_receipt, in_record) {
        if let (Some(in_receipt), Some(in_record)) = (fields(in_receipt), fields(in_record)) {
            let get = |fields: &[(String, &'_ RawValue)], name: &str| {
                fields.iter().rev().find(|(known, _)| known == name).map(|(_, value)| (*value).to_owned())
            };
            let added =
                in_receipt.iter().filter(|(name, _)| !in_record.iter().any(|(known, _)| known == name));
            return in_record.iter().chain(added).find_map(|(name, _)| {
                differ(&below(name), get(&in_receipt, name).as_deref(), get(&in_record, name).as_deref())
            });
        }
        if let (Some(in_receipt), Some(in_record)) = (items(in_receipt), items(in_record)) {
            let len = in_receipt.len().max(in_record.len());
            return (0..len).find_map(|at| {
                differ(&below(&at.to_string()), in_receipt.get(at).copied(), in_record.get(at).copied())
            });
        }
    }
    let text = |value: Option<&RawValue>| value.map(|value| value.get().to_owned());
    let (in_receipt, in_record) = (text(in_receipt), text(in_record));
    (in_receipt != in_record).then(|| Difference { field: field.to_owned(), in_receipt, in_record })
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
        let check = |in_receipt: &str, want: Option<(&str, Option<&str>, Option<&str>)>| {
            let difference = first_difference(in_receipt, FOUND).unwrap();
            let difference = difference.as_ref().map(|difference| {
                (difference.field.as_str(), difference.in_receipt.as_deref(), difference.in_record.as_deref())
            });
            assert_eq!(difference, want, "{in_receipt}");
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
