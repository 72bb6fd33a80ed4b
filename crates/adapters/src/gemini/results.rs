//! How a call ended: its output, and its outcome by status and by the sentences that Gemini CLI writes.

use serde_json::value::RawValue;
use steno_model::json::{Fields, JsonString, RawJson};

use super::wire::Part;
use crate::emit::{Answer, Outcome, push};
use crate::patches;
use crate::repeats::hash_of;
use crate::shapes::{elements, words};
use crate::wire::{Raw, RawField as _, list, object};

/// What Gemini CLI writes in place of a result when a call was refused, as the beginning and the end of the text.
const DENIALS: [(&str, &str); 7] = [
    ("[Operation Cancelled] Reason: User denied", ""),
    ("[Operation Cancelled] Reason: User did not allow", ""),
    ("[Operation Cancelled] Reason: Denied", ""),
    ("Tool execution ", " denied by policy."),
    ("Tool execution denied by policy", ""),
    ("Tool \"", " was canceled by the user."),
    ("User denied execution", ""),
];

/// The result of a call as a record has it. Its output is copied only if it is new.
pub(super) struct CallEnd<'a> {
    pub(super) outcome: Outcome,
    /// Identifies the output.
    pub(super) hash: u64,
    error: Option<JsonString>,
    status: Raw<'a>,
    response: Option<CallResponse<'a>>,
    /// What it changed, as a patch.
    patch: Raw<'a>,
}

impl<'a> CallEnd<'a> {
    /// Adds what the call changed.
    pub(super) fn with_patch(self, patch: Raw<'a>) -> Self {
        Self { patch, ..self }
    }

    /// Returns the output.
    pub(super) fn output(&self) -> RawJson {
        self.response.as_ref().map_or_else(RawJson::null, CallResponse::output)
    }

    /// Returns the result for its event.
    pub(super) fn into_answer(self) -> Answer {
        let mut answer = Answer::new(self.output(), self.outcome);
        answer.error = self.error;
        if self.outcome == Outcome::Ok {
            push(&mut answer.extra, patches::FIELD, patches::unified(self.patch));
        }
        if self.outcome == Outcome::Unknown {
            push(&mut answer.extra, "status", self.status.json());
        }
        answer
    }
}

/// The result of a call, before it is judged.
pub(super) struct CallResponse<'a> {
    /// The parts that the model got, unless the only one is a function response.
    parts: Vec<&'a RawValue>,
    /// Whether the only part is a function response.
    is_only: bool,
    /// The value of the first function response.
    first: Raw<'a>,
    /// Its fields.
    fields: Fields<'a>,
}

impl<'a> CallResponse<'a> {
    /// Finds the parts of a call's own result. After masking, a result has the parts of its neighbours too.
    pub(super) fn read(result: Raw<'a>, call: &str) -> Option<Self> {
        let raw = result.filter(|raw| raw.get() != "null")?;
        // The usual result is one function response, and is read in one pass.
        if let Some([Some(Part { function_response: Some(response), .. })]) = list(raw).as_deref()
            && response.response.is_some()
        {
            return Some(Self::of_value(response.response));
        }
        let all = elements(result).unwrap_or_else(|| vec![raw]);
        let is_response = |raw: &&RawValue| response_in(raw).is_some();
        let parts = if all.iter().filter(|raw| is_response(raw)).count() > 1 {
            let own = |raw: &&RawValue| response_in(raw).is_some_and(|(id, _)| id.as_deref() == Some(call));
            let begin = all.iter().position(own).unwrap_or(0);
            let rest = all[begin + 1..].iter().take_while(|raw| !is_response(raw));
            std::iter::once(&all[begin]).chain(rest).copied().collect()
        } else {
            all
        };
        let first = parts.iter().find_map(|part| response_in(part)).and_then(|(_, response)| response);
        let is_only = first.is_some() && parts.len() == 1;
        Some(Self { parts, is_only, first, fields: fields_of(first) })
    }

    /// Makes the result of a function response alone.
    pub(super) fn of_value(response: Raw<'a>) -> Self {
        let is_only = response.is_some();
        Self { parts: Vec::new(), is_only, first: response, fields: fields_of(response) }
    }

    /// Returns the output: the text, if the result is nothing else; otherwise everything unchanged.
    fn output(&self) -> RawJson {
        match self.first.filter(|_| self.is_only) {
            Some(response) => RawJson::from_raw(only_field(&self.fields).unwrap_or(response)),
            None => RawJson::array(self.parts.iter().map(|part| RawJson::from_raw(part))),
        }
    }

    /// Returns the error, if there is one.
    fn error(&self) -> Option<JsonString> {
        words(self.fields.last("error"))
    }
}

/// Returns the fields of a function response's value; none if it is not an object.
fn fields_of(response: Raw<'_>) -> Fields<'_> {
    response.and_then(|response| Fields::parse(response.get()).ok()).unwrap_or_default()
}

/// Returns the id and the value of a function response.
fn response_in(raw: &RawValue) -> Option<(Option<String>, Raw<'_>)> {
    let response = object::<Part<'_>>(raw)?.function_response?;
    Some((response.id.text().map(std::borrow::Cow::into_owned), response.response))
}

/// Returns the only field of an object, if it is the output or the error.
fn only_field<'a>(fields: &Fields<'a>) -> Option<&'a RawValue> {
    let mut all = fields.iter();
    let (key, value) = all.next().filter(|_| fields.iter().nth(1).is_none())?;
    (key.is("error") || key.is("output")).then_some(value)
}

/// Judges the end of a call by its status and its result; `None` if it has not ended.
pub(super) fn end_of<'a>(status: Raw<'a>, response: Option<CallResponse<'a>>) -> Option<CallEnd<'a>> {
    let word = status.text();
    let is_over = matches!(word.as_deref(), Some("success" | "error" | "cancelled" | "canceled"));
    if response.is_none() && !is_over {
        return None;
    }
    let error = response.as_ref().and_then(CallResponse::error);
    let is_denied = error.as_ref().is_some_and(|error| is_denial(&error.to_text()));
    let outcome = match word.as_deref() {
        _ if is_denied => Outcome::Denied,
        // A function response has no status.
        None if error.is_some() => Outcome::Failed,
        Some("success") | None => Outcome::Ok,
        Some("error") => Outcome::Failed,
        Some("cancelled" | "canceled") => Outcome::Interrupted,
        Some(_) => Outcome::Unknown,
    };
    let first = response.as_ref().and_then(|response| response.first);
    let mut end = CallEnd { outcome, hash: 0, error, status, response, patch: None };
    end.hash = first.map_or_else(|| hash_of(end.output().as_str()), |first| hash_of(first.get()));
    Some(end)
}

/// Tells whether a text says that a call was refused.
pub(super) fn is_denial(text: &str) -> bool {
    let text = text.trim();
    DENIALS.iter().any(|(begin, end)| text.starts_with(begin) && text.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: &str, result: &str, want: Option<(&str, &str)>) {
        let raw = |text| serde_json::from_str::<&RawValue>(text).unwrap();
        let status = Some(raw(status));
        let response = CallResponse::read(Some(raw(result)), "b");
        let got = end_of(status, response)
            .map(|end| (end.outcome.as_str(), end.into_answer().output.as_str().to_owned()));
        assert_eq!(got, want.map(|(outcome, output)| (outcome, output.to_owned())), "{result}");
    }

    #[test]
    fn outcomes_come_from_status_and_refusals() {
        let part = |response: &str| format!(r#"[{{"functionResponse":{{"id":"b","response":{response}}}}}]"#);
        check(r#""success""#, &part(r#"{"output":"x"}"#), Some(("ok", r#""x""#)));
        check(
            r#""success""#,
            &part(r#"{"output":"x","more":1}"#),
            Some(("ok", r#"{"output":"x","more":1}"#)),
        );
        check(r#""error""#, &part(r#"{"error":"no"}"#), Some(("failed", r#""no""#)));
        check(
            r#""cancelled""#,
            &part(r#"{"error":"[Operation Cancelled] Reason: User cancelled"}"#),
            Some(("interrupted", r#""[Operation Cancelled] Reason: User cancelled""#)),
        );
        for refusal in [
            "[Operation Cancelled] Reason: User denied execution.",
            "Tool execution for \\\"X\\\" denied by policy.",
            "Tool \\\"x\\\" was canceled by the user.",
        ] {
            let text = part(&format!(r#"{{"error":"{refusal}"}}"#));
            check(r#""error""#, &text, Some(("denied", &format!("\"{refusal}\""))));
        }
        check(r#""executing""#, "null", None);
        check(r#""cancelled""#, "null", Some(("interrupted", "null")));
        check(r#""dreaming""#, &part(r#"{"output":1}"#), Some(("unknown", "1")));
        check("null", &part(r#"{"output":""}"#), Some(("ok", r#""""#)));
    }

    #[test]
    fn a_result_with_its_neighbours_is_cut_to_its_own_parts() {
        let of =
            |id: &str| format!(r#"{{"functionResponse":{{"id":"{id}","response":{{"output":"{id}"}}}}}}"#);
        let all = format!(r#"[{},{},{{"inlineData":{{}}}},{}]"#, of("a"), of("b"), of("c"));
        let own = format!(r#"[{},{{"inlineData":{{}}}}]"#, of("b"));
        check(r#""success""#, &all, Some(("ok", &own)));
        check(r#""success""#, &format!("[{},{}]", of("a"), of("b")), Some(("ok", r#""b""#)));
        check(r#""success""#, r#"{"functionResponse":{"response":{"output":"x"}}}"#, Some(("ok", r#""x""#)));
        check(r#""success""#, r#""plain""#, Some(("ok", r#"["plain"]"#)));
    }
}
