//! Token usage as providers report it: with their names and nesting, and without sums of ours.

use std::collections::BTreeMap;

use crate::json::{Fields, JsonString, RawJson};

/// A provider's usage report. Names are the provider's own (R89).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage(Vec<(JsonString, RawJson)>);

impl Usage {
    /// Reads a usage object; `None` when the value is not an object.
    #[must_use]
    pub fn read(raw: &RawJson) -> Option<Self> {
        let fields = Fields::parse(raw.as_str()).ok()?;
        Some(Self(fields.into_extra().into_pairs()))
    }

    /// Reads a usage object and keeps each name once: at its first position, with its last value.
    #[must_use]
    pub fn read_once_each(raw: &RawJson) -> Option<Self> {
        let fields = Fields::parse(raw.as_str()).ok()?;
        if fields.duplicate().is_none() {
            return Some(Self(fields.into_extra().into_pairs()));
        }
        let mut places = BTreeMap::new();
        let mut pairs: Vec<(JsonString, RawJson)> = Vec::new();
        for (key, value) in fields.into_extra().into_pairs() {
            let place = *places.entry(key.to_text().into_owned()).or_insert(pairs.len());
            match pairs.get_mut(place) {
                Some((_, last)) => *last = value,
                None => pairs.push((key, value)),
            }
        }
        Some(Self(pairs))
    }

    /// Returns a count by its name; `None` when it is absent or not a whole number.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u64> {
        self.0.iter().rev().find(|(key, _)| key.is(name)).and_then(|(_, value)| whole(value))
    }

    /// Iterates over the counts in the provider's order; other values are left out.
    pub fn counts(&self) -> impl Iterator<Item = (&JsonString, u64)> {
        self.0.iter().filter_map(|(key, value)| Some((key, whole(value)?)))
    }

    /// Takes the larger of both counts, name by name.
    ///
    /// The records of one response repeat and refine its usage, so a sum would count it twice.
    #[must_use]
    pub fn max(mut self, other: Self) -> Self {
        // Names are compared decoded, and the last of two counts, as in `count`. An index, because a foreign report may
        // have a million names.
        let mut places: BTreeMap<String, usize> =
            self.0.iter().enumerate().map(|(place, (key, _))| (key.to_text().into_owned(), place)).collect();
        for (key, value) in other.0 {
            let place = *places.entry(key.to_text().into_owned()).or_insert(self.0.len());
            match self.0.get_mut(place) {
                None => self.0.push((key, value)),
                Some((_, kept)) if whole(&value) > whole(kept) => *kept = value,
                Some(_) => {}
            }
        }
        self
    }

    /// Returns the report as JSON, including values that are not counts.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        let fields: Vec<_> = self.0.iter().map(|(key, value)| format!("{}:{value}", key.as_raw())).collect();
        RawJson::trusted(format!("{{{}}}", fields.join(",")))
    }
}

/// Returns a value that is a whole number.
fn whole(value: &RawJson) -> Option<u64> {
    value.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(text: &str) -> Usage {
        Usage::read(&RawJson::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn names_and_nesting_of_the_provider_are_kept() {
        let text = r#"{"input_tokens":12,"cache":{"read":3},"service_tier":"standard"}"#;
        let read = usage(text);
        assert_eq!(
            (read.count("input_tokens"), read.count("cache"), read.count("x")),
            (Some(12), None, None)
        );
        assert_eq!(
            read.counts().map(|(key, count)| (key.to_string(), count)).collect::<Vec<_>>(),
            [("input_tokens".into(), 12)]
        );
        assert_eq!(read.to_json().as_str(), text);
    }

    #[test]
    fn records_of_one_response_are_not_summed() {
        let both = usage(r#"{"input_tokens":12,"output_tokens":1}"#)
            .max(usage(r#"{"output_tokens":72,"input_tokens":12,"x":1}"#));
        assert_eq!(both.to_json().as_str(), r#"{"input_tokens":12,"output_tokens":72,"x":1}"#);
    }

    #[test]
    fn usage_must_be_an_object() {
        assert_eq!(Usage::read(&RawJson::null()), None);
    }
}
