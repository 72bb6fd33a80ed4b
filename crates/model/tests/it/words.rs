//! Words, ids and messages as people and programs see them, and transcripts of earlier versions, which stay readable.

use steno_model::{
    BlockType, CallId, Epoch, Error, EventType, ExchangeEvent, Fidelity, Role, RunId, Seq, SpineType,
    ThreadId, Vocabulary, Word,
};
use steno_testkit::places;

use crate::kit::{OTHER_RUN, RUN, other_run, run, token};

/// Lists a vocabulary and finds each word by its spelling.
#[track_caller]
fn check<V: Vocabulary + std::fmt::Debug + std::fmt::Display>(want: &[&str]) {
    let spelled: Vec<_> = V::ALL.iter().map(|word| word.as_str()).collect();
    assert_eq!(spelled, want);
    for word in V::ALL {
        assert_eq!((V::find(word.as_str()), word.to_string().as_str()), (Some(*word), word.as_str()));
        assert_eq!(Word::<V>::read(word.as_str().into()), Word::Known(*word));
        assert_eq!(Word::Known(*word).to_string(), word.as_str());
    }
    for stranger in ["", " ", "hologram", &want[0].to_uppercase()] {
        assert_eq!((V::find(stranger), Word::<V>::read(stranger.into()).known()), (None, None));
    }
}

#[test]
fn vocabularies_have_exactly_these_words() {
    check::<EventType>(&[
        "run.started",
        "run.completed",
        "step.started",
        "step.completed",
        "step.call_workflow.started",
        "step.call_workflow.completed",
        "message.user",
        "message.assistant",
        "tool.call",
        "tool.result",
    ]);
    check::<BlockType>(&["text", "thinking", "tool_use", "tool_result", "command", "stream"]);
    check::<Fidelity>(&["router", "agent_emitted"]);
    check::<Role>(&["user", "assistant"]);
    check::<SpineType>(&[
        "session_meta",
        "turn_context",
        "submission",
        "event",
        "artifact_ref",
        "compaction_boundary",
        "bridge",
    ]);
}

#[test]
fn unknown_word_is_shown_decoded_and_kept_raw() {
    let word = Word::<Role>::read(token(r#""r\u006fbot\ud800""#));
    assert_eq!(
        (word.to_string().as_str(), word.to_json()),
        ("robot\u{fffd}", token(r#""r\u006fbot\ud800""#))
    );
}

#[test]
fn start_events_are_recognized() {
    let starts: Vec<_> = EventType::ALL.iter().filter(|event_type| event_type.is_start()).collect();
    assert_eq!(starts, [&EventType::RunStarted, &EventType::StepStarted, &EventType::CallWorkflowStarted]);
}

#[test]
fn ids_are_shown_and_written_as_their_text() {
    assert_eq!(serde_json::to_string(&run()).unwrap(), format!("\"{RUN}\""));
    assert_eq!(RUN.parse::<RunId>(), Ok(RunId::from_uuid(run().uuid())));
    assert_eq!(format!("{:?}", run()), format!("RunId({RUN})"));
    assert_eq!(serde_json::to_string(&Seq::new(7)).unwrap(), "7");
    assert_eq!((Seq::FIRST.to_string(), Epoch(3).to_string()), ("1".to_owned(), "3".to_owned()));
    assert_eq!(CallId::from("c\n").to_string(), "c\n");
    assert_eq!(ThreadId::parse("thread_1").unwrap().to_string(), "thread_1");
}

#[test]
fn errors_say_what_is_wrong() {
    let event_type = EventType::ToolCall;
    for (error, want) in [
        (Error::NotJson { reason: "EOF".into() }, "not JSON: EOF"),
        (Error::NotUtf8 { offset: 7 }, "not UTF-8 at byte 7"),
        (Error::Empty, "empty line"),
        (Error::TooLong { bytes: 67_108_865 }, "line of 67108865 bytes is longer than 67108864 bytes"),
        (Error::TooDeep { depth: 126 }, "nested 126 levels deep, more than 125 below the envelope"),
        (Error::NotAnObject, "not a JSON object"),
        (Error::MissingField { field: "type" }, "field `type` is missing"),
        (Error::WrongField { field: "path", wanted: "a string" }, "field `path` is not a string"),
        (Error::DuplicateField { field: "path".into() }, "field `path` occurs twice"),
        (
            Error::ForbiddenField { field: "seq", reason: "it is ours" },
            "field `seq` must not be set by the sender: it is ours",
        ),
        (
            Error::OtherRun { wanted: run(), found: other_run() },
            &format!("event of run {OTHER_RUN} sent to run {RUN}"),
        ),
        (Error::UnknownEventType { found: "run.paused".into() }, "unknown event type run.paused"),
        (Error::UnknownBlockType { found: "hologram".into() }, "unknown block type hologram"),
        (Error::UnknownWord { vocabulary: "role", found: "robot".into() }, "unknown role robot"),
        (Error::WrongPayload { event_type, wanted: "an object" }, "payload of `tool.call` is not an object"),
        (RunId::parse("../x").unwrap_err(), "`../x` is not a UUID like 550e8400-e29b-41d4-a716-446655440000"),
    ] {
        assert_eq!(error.to_string(), want);
    }
}

#[test]
fn transcripts_of_every_version_stay_readable() {
    // A version is added here together with its file; a file that is here is never edited.
    for (file, events) in [("transcript-v1.jsonl", 12)] {
        let text = places::read(format!("crates/model/tests/fixtures/{file}"));
        for (seq, line) in (1..).zip(text.lines()) {
            let event = ExchangeEvent::parse_strict(line.as_bytes()).unwrap();
            assert_eq!((event.seq.get(), event.to_line().as_str()), (seq, line));
        }
        assert_eq!(text.lines().count(), events);
    }
}
