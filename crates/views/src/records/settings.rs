//! The settings of a turn, and the flags of 003 that follow from them.

use steno_model::json::RawJson;
use steno_model::records::TurnSettings;
use steno_session::PayloadFields;

/// Reads the settings of a turn.
pub(super) fn of(settings: Option<&RawJson>) -> TurnSettings {
    let fields = PayloadFields::parse(settings.map_or("null", RawJson::as_str));
    let text = |name: &str| fields.text(name).map(std::borrow::Cow::into_owned);
    TurnSettings {
        model: text("model"),
        mode: text("permission_mode").or_else(|| text("mode")),
        approval_policy: text("approval_policy"),
        sandbox_policy: fields.json("sandbox_policy").filter(|policy| !policy.is_null()),
    }
}

/// The flags of a thread that follow from a turn's settings. Unknown words give `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Whether everything was approved without a request.
    pub auto_approve: Option<bool>,
    /// Whether the agent could leave its directory.
    pub trust_mode: Option<bool>,
}

impl Flags {
    /// Reads the flags.
    #[must_use]
    pub fn of(settings: &TurnSettings) -> Self {
        let by_policy = settings.approval_policy.as_deref().and_then(|policy| match policy {
            "never" => Some(true),
            "untrusted" | "on-request" | "on-failure" | "onRequest" | "onFailure" => Some(false),
            _ => None,
        });
        let by_mode = settings.mode.as_deref().and_then(|mode| match mode {
            "bypassPermissions" => Some(true),
            "default" | "plan" | "acceptEdits" => Some(false),
            _ => None,
        });
        let sandbox = settings.sandbox_policy.as_ref().and_then(|policy| {
            let named = PayloadFields::parse(policy.as_str());
            let name = named.text("type").or_else(|| named.text("mode")).map(std::borrow::Cow::into_owned);
            name.or_else(|| policy.read().ok())
        });
        let trust_mode = sandbox.and_then(|name: String| match &*name {
            "danger-full-access" | "dangerFullAccess" => Some(true),
            "workspace-write" | "workspaceWrite" | "read-only" | "readOnly" => Some(false),
            _ => None,
        });
        Self { auto_approve: by_policy.or(by_mode), trust_mode }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(settings: &str, auto_approve: Option<bool>, trust_mode: Option<bool>) {
        let read = of(Some(&RawJson::parse(settings).unwrap()));
        assert_eq!(Flags::of(&read), Flags { auto_approve, trust_mode }, "{settings}");
    }

    #[test]
    fn flags_follow_from_known_words_only() {
        check("{}", None, None);
        check(r#"{"permission_mode":"bypassPermissions"}"#, Some(true), None);
        check(r#"{"permission_mode":"acceptEdits"}"#, Some(false), None);
        check(r#"{"permission_mode":"someday"}"#, None, None);
        check(
            r#"{"approval_policy":"never","sandbox_policy":{"type":"danger-full-access"}}"#,
            Some(true),
            Some(true),
        );
        check(
            r#"{"approval_policy":"on-request","sandbox_policy":{"type":"workspaceWrite"}}"#,
            Some(false),
            Some(false),
        );
        check(
            r#"{"approval_policy":{"granular":{}},"sandbox_policy":{"mode":"read-only"}}"#,
            None,
            Some(false),
        );
        check(r#"{"sandbox_policy":"danger-full-access"}"#, None, Some(true));
        check(r#"{"sandbox_policy":null}"#, None, None);
    }
}
