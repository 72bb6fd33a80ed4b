//! Recognises answers of a model's API that report an error, by status, type of event and content. Such an answer may
//! repeat the whole request.

use std::collections::BTreeMap;

use memchr::memmem;
use serde_json::value::RawValue;

/// Tells whether an answer with this status has no content of a model.
pub(super) fn is_error_status(status: u16) -> bool {
    !(200..300).contains(&status)
}

/// Tells whether an event of a stream reports an error, by its type or its data.
pub(super) fn is_error_event(name: Option<&str>, data: &[u8]) -> bool {
    let is_error_name = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.contains("error") || name.contains("failed")
    };
    name.is_some_and(is_error_name) || is_error_content(data)
}

/// Tells whether the body of an answer, or the data of an event, reports an error: an object with a field `error` or of
/// the type `error`, also in `response` or in a list. Text that is cut or not JSON reports one if it has the word.
pub(super) fn is_error_content(content: &[u8]) -> bool {
    // Most content has no error, which a search shows quickly.
    if ["error", "Error", "ERROR"].iter().all(|word| memmem::find(content, word.as_bytes()).is_none()) {
        return false;
    }
    if content.trim_ascii_start().starts_with(b"[") {
        return serde_json::from_slice::<Vec<&RawValue>>(content)
            .map_or(true, |items| items.iter().any(|item| is_error_object(item.get().as_bytes())));
    }
    is_error_object(content)
}

/// The fields of an object, as text.
type Fields<'a> = BTreeMap<String, &'a RawValue>;

fn is_error_object(text: &[u8]) -> bool {
    let Ok(fields) = serde_json::from_slice::<Fields<'_>>(text) else { return true };
    // The last event of the Responses API has the answer in this field.
    let response = fields.get("response").filter(|response| response.get().starts_with('{'));
    has_error(&fields)
        || response.is_some_and(|response| {
            serde_json::from_str::<Fields<'_>>(response.get()).map_or(true, |fields| has_error(&fields))
        })
}

fn has_error(fields: &Fields<'_>) -> bool {
    let value = |name: &str| fields.get(name).map(|value| value.get());
    value("error").is_some_and(|error| error != "null") || value("type") == Some("\"error\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: Option<&str>, data: &str, want: bool) {
        assert_eq!(is_error_event(name, data.as_bytes()), want, "{name:?} {data}");
    }

    #[test]
    fn errors_are_recognised_by_type_and_content() {
        check(Some("error"), "overloaded", true);
        check(Some("response.failed"), "{}", true);
        check(None, r#"{"type":"error","message":"no"}"#, true);
        check(None, r#"{"error":{"message":"no"}}"#, true);
        check(None, "{\n  \"error\": \"no\"\n}", true);
        check(None, r#"[{"candidates":[]},{"error":{"code":500}}]"#, true);
        check(None, r#"{"type":"response.done","response":{"error":{"message":"no"}}}"#, true);
        check(None, r#"{"error":{"message":"n"#, true);
        check(None, "Internal Server Error", true);
    }

    #[test]
    fn ordinary_content_with_the_word_is_no_error() {
        check(Some("message_delta"), r#"{"type":"message_delta"}"#, false);
        check(None, r#"{"response":{"error":null,"output":[{"text":"an error"}]},"error":null}"#, false);
        check(None, r#"{"delta":{"partial_json":"{\"error\":1}"}}"#, false);
        check(None, r#"{"args":{"error":"x"}}"#, false);
        check(None, "[DONE]", false);
        check(None, "plain text", false);
    }

    #[test]
    fn only_statuses_of_success_are_no_errors() {
        assert!([200, 201, 299].into_iter().all(|status| !is_error_status(status)));
        assert!([101, 199, 300, 307, 400, 529].into_iter().all(is_error_status));
    }
}
