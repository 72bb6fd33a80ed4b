//! The usage of a session by model, as text in a column: a line for each model and length of request.
//!
//! `docs/format/index.md` describes the lines. The sums are in columns of their own.

use steno_session::usage::{ModelUsage, RequestLength};

use crate::rows::{counts_of, read_numbers};

/// Writes the lines.
pub(crate) fn to_text(list: &[ModelUsage]) -> String {
    list.iter().map(to_line).collect::<Vec<_>>().join("\n")
}

/// Writes the line of a model.
pub(crate) fn to_line(used: &ModelUsage) -> String {
    let flags = [used.length.is_sum, used.is_lower_bound].map(u64::from);
    let numbers = [used.length.above].into_iter().chain(flags).chain(counts_of(used.tokens));
    let numbers = numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
    // The name is last: it may have spaces. A line break in a name would begin another line.
    format!("{numbers} {}", used.model.replace('\n', " "))
}

/// Reads the lines; one in another form is skipped.
pub(crate) fn from_text(text: &str) -> Vec<ModelUsage> {
    text.lines().filter_map(from_line).collect()
}

/// Reads the line of a model.
pub(crate) fn from_line(line: &str) -> Option<ModelUsage> {
    let mut fields = line.splitn(10, ' ');
    let mut next = || fields.next()?.parse::<u64>().ok();
    let length = RequestLength { above: next()?, is_sum: next()? != 0 };
    let is_lower_bound = next()? != 0;
    let tokens = read_numbers(|| next().ok_or(())).ok()?;
    Some(ModelUsage { model: fields.next()?.to_owned(), length, tokens, is_lower_bound })
}

#[cfg(test)]
mod tests {
    use steno_session::usage::Tokens;

    use super::*;

    #[test]
    fn usage_is_read_back() {
        let tokens = Tokens {
            input: 1,
            output: u64::MAX,
            cache_read: 3,
            cache_write: 4,
            cache_write_1h: 2,
            reasoning: 6,
        };
        let one = ModelUsage { model: String::new(), tokens, ..ModelUsage::default() };
        let length = RequestLength { above: 200_000, is_sum: true };
        let other = ModelUsage { model: "a b".to_owned(), length, tokens, is_lower_bound: true };
        let list = vec![one, other];
        assert_eq!(from_text(&to_text(&list)), list);
        assert_eq!(from_text(""), []);
        assert_eq!(from_text("1 2 x"), []);
    }
}
