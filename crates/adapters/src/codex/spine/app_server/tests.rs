//! Tests of whole connections: the records made from each message, and the spine that each goes to.

use super::*;

fn place(offset: u64) -> LinePlace {
    LinePlace { offset, length: 99 }
}

/// Folds messages to the agent (`>`) and from it (`<`). Returns thread, type and payload of each record.
fn fold(fold: &mut ConnectionFold, lines: &[&str]) -> Vec<(String, SpineType, String)> {
    let time = Timestamp::parse("2026-05-01T10:00:00.000Z").unwrap();
    let mut records = Vec::new();
    for (ticket, said) in (1..).zip(lines) {
        let lane = if said.starts_with('>') { Lane::ToAgent } else { Lane::FromAgent };
        let (time, place) = (&time, place(ticket * 100));
        let captured = CapturedMessage { lane, ticket, time, place, line: &said.as_bytes()[1..] };
        records.extend(fold.message(captured));
    }
    records.extend(fold.finish().0);
    let shown = |(thread, made): (ThreadId, SpineMade)| {
        (thread.to_string(), made.record_type, made.payload.as_str().to_owned())
    };
    records.into_iter().map(shown).collect()
}

fn connection() -> ConnectionFold {
    ConnectionFold::new(ThreadId::parse("connection").unwrap())
}

const BEGIN: [&str; 4] = [
    r#">{"method":"initialize","id":1,"params":{"clientInfo":{"name":"editor"}}}"#,
    r#"<{"id":1,"result":{"userAgent":"x"}}"#,
    r#">{"method":"thread/start","id":2,"params":{}}"#,
    r#"<{"id":2,"result":{"thread":{"id":"p","cwd":"/w","path":"/r.jsonl","gitInfo":null},"model":"m","approvalPolicy":"untrusted"}}"#,
];

#[test]
fn each_message_is_one_record() {
    let more = [
        r#">{"method":"turn/start","id":3,"params":{"threadId":"p","model":"m2","n":1e400}}"#,
        r#"<{"method":"turn/started","params":{"threadId":"p","turn":{"id":"u1","rootTurnId":"u1"}}}"#,
        r#"<{"method":"turn/started","params":{"threadId":"p","turn":{"id":"u2","rootTurnId":"u1"}}}"#,
        r#"<{"method":"configWarning","params":{}}"#,
        "<no JSON",
    ];
    let lines: Vec<&str> = BEGIN.into_iter().chain(more).collect();
    let records = fold(&mut connection(), &lines);
    assert!(records.iter().all(|(thread, ..)| thread == "p"));
    let said = |record_type: SpineType| records.iter().filter(move |(_, kind, _)| *kind == record_type);
    assert_eq!((said(SpineType::Submission).count(), said(SpineType::Event).count()), (3, 6));
    let meta = &said(SpineType::SessionMeta).next().unwrap().2;
    assert!(meta.starts_with(r#"{"id":"p","cwd":"/w","rollout_path":"/r.jsonl","originator":"editor","spine_source":{"kind":"app_server","#), "{meta}");
    // The settings of a turn inside another turn are not known.
    assert_eq!(said(SpineType::TurnContext).count(), 1);
    assert_eq!(
        said(SpineType::TurnContext).next().unwrap().2,
        r#"{"turn_id":"u1","context":{"approval_policy":"untrusted","model":"m2"}}"#
    );
    let op = &said(SpineType::Submission).nth(2).unwrap().2;
    assert_eq!(
        op,
        r#"{"id":"3","op":{"method":"turn/start","id":3,"params":{"threadId":"p","model":"m2","n":1e400}},"rpc":{"dir":"c2s","kind":"request","ticket":5}}"#
    );
}

const CHILD: [&str; 4] = [
    r#"<{"method":"item/commandExecution/requestApproval","id":0,"params":{"threadId":"c","turnId":"cu","itemId":"cc"}}"#,
    r#">{"id":0,"result":{"decision":"accept"}}"#,
    r#"<{"method":"item/completed","params":{"threadId":"p","turnId":"pu","item":{"type":"collabAgentToolCall","id":"pc","tool":"spawnAgent","senderThreadId":"p","receiverThreadIds":["c"]}}}"#,
    r#"<{"method":"serverRequest/resolved","params":{"threadId":"c"}}"#,
];

#[test]
fn answer_by_the_parent_is_a_bridge_with_six_ids() {
    let want = r#"{"bridge_kind":"exec_approval","parent_thread_id":"p","parent_turn_id":"pu","parent_call_id":"pc","sub_agent_thread_id":"c","sub_agent_turn_id":"cu","sub_agent_call_id":"cc","decision":"accept"}"#;
    // The message that names the parent may come before or after the answer.
    for order in [[0, 1, 2, 3], [2, 0, 1, 3], [0, 2, 1, 3]] {
        let lines: Vec<&str> = BEGIN.into_iter().chain(order.map(|at| CHILD[at])).collect();
        let records = fold(&mut connection(), &lines);
        let bridges: Vec<_> =
            records.iter().filter(|(_, record_type, _)| *record_type == SpineType::Bridge).collect();
        let threads: Vec<&str> = bridges.iter().map(|(thread, ..)| thread.as_str()).collect();
        assert_eq!(threads, ["p", "c"], "{order:?}");
        assert!(bridges.iter().all(|(.., payload)| payload == want), "{bridges:?}");
    }
}

#[test]
fn answer_by_the_thread_itself_is_not_a_bridge() {
    let own = CHILD[0].replace("\"c\"", "\"p\"");
    let mut folded = connection();
    let lines: Vec<&str> = BEGIN.into_iter().chain([own.as_str(), CHILD[1], CHILD[2]]).collect();
    let records = fold(&mut folded, &lines);
    assert!(records.iter().all(|(_, record_type, _)| *record_type != SpineType::Bridge));
    assert_eq!(folded.finish().1, 0, "and none is missing");
}

#[test]
fn unanswered_request_is_not_a_bridge_and_user_input_is_kept_whole() {
    let ask = r#"<{"method":"item/tool/requestUserInput","id":7,"params":{"threadId":"c","turnId":"cu","itemId":"cc"}}"#;
    let answer = r#">{"id":7,"result":{"answers":{"q":{"answers":["Red"]}}}}"#;
    let lines: Vec<&str> = BEGIN.into_iter().chain([CHILD[2], ask]).collect();
    let bridges = |lines: &[&str]| {
        let records = fold(&mut connection(), lines);
        records
            .into_iter()
            .filter(|(_, record_type, _)| *record_type == SpineType::Bridge)
            .collect::<Vec<_>>()
    };
    assert_eq!(bridges(&lines), []);
    let lines: Vec<&str> = lines.into_iter().chain([answer]).collect();
    assert!(
        bridges(&lines)[0].2.ends_with(r#""user_input_response":{"answers":{"q":{"answers":["Red"]}}}}"#)
    );
}

/// Returns the spine of each message, in ticket order.
fn places(lines: &[&str]) -> Vec<String> {
    let records = fold(&mut connection(), lines);
    let mut places: Vec<(u64, String)> = Vec::new();
    for (thread, _, payload) in records {
        let ticket = payload.split(r#""ticket":"#).nth(1).and_then(|rest| rest.strip_suffix("}}"));
        places.extend(ticket.map(|ticket| (ticket.parse().unwrap(), thread)));
    }
    places.sort();
    assert!(places.iter().zip(1..).all(|((ticket, _), want)| *ticket == want), "{places:?}");
    assert_eq!(places.len(), lines.len(), "each message is one record");
    places.into_iter().map(|(_, thread)| thread).collect()
}

#[test]
fn thread_named_only_by_the_client_has_no_spine() {
    let more = [
        r#">{"method":"turn/start","id":3,"params":{"threadId":"typo"}}"#,
        r#"<{"error":{"code":-32600,"message":"thread not found"},"id":3}"#,
        r#">{"method":"thread/read","id":4,"params":{"threadId":"archived"}}"#,
        r#"<{"id":4,"result":{"thread":{"id":"archived","turns":[]}}}"#,
        r#">{"method":"thread/resume","id":5,"params":{"threadId":"gone"}}"#,
        r#"<{"error":{"code":-32600},"id":5}"#,
        r#">{"method":"x","params":{"threadId":"typo"}}"#,
    ];
    let lines: Vec<&str> = BEGIN.into_iter().chain(more).collect();
    assert!(places(&lines).iter().all(|thread| thread == "p"));
    // Without any thread they belong to the connection.
    assert!(
        places(&[&BEGIN[..2], &["<{}"], &more[4..]].concat()[..]).iter().all(|thread| thread == "connection")
    );
}

#[test]
fn thread_has_a_spine_once_the_server_names_it() {
    let more = [
        r#">{"method":"thread/resume","id":5,"params":{"threadId":"r"}}"#,
        // Sent before the answer.
        r#">{"method":"turn/start","id":6,"params":{"threadId":"r","model":"m9"}}"#,
        r#"<{"id":5,"result":{"thread":{"id":"r"},"model":"m"}}"#,
        r#"<{"id":6,"result":{"turn":{"id":"u"}}}"#,
        r#"<{"method":"turn/started","params":{"threadId":"k","turn":{"id":"u"}}}"#,
        r#">{"method":"turn/interrupt","id":7,"params":{"threadId":"k"}}"#,
        r#"<{"error":{"code":1},"id":7}"#,
    ];
    let lines: Vec<&str> = BEGIN.into_iter().chain(more).collect();
    assert_eq!(places(&lines)[4..], ["p", "p", "r", "r", "k", "k", "k"]);
    // Messages that waited for the first thread are in its spine, whatever thread they name.
    let lines: Vec<&str> = BEGIN[..2].iter().chain(&more[..4]).copied().collect();
    assert!(places(&lines).iter().all(|thread| thread == "r"));
    let child = r#">{"method":"turn/steer","id":8,"params":{"threadId":"c"}}"#;
    let lines: Vec<&str> = BEGIN.into_iter().chain([child, CHILD[2], child]).collect();
    assert_eq!(places(&lines)[4..], ["p", "p", "c"]);
}

#[test]
fn every_spine_records_missing_messages_at_their_place() {
    let mut folded = connection();
    let time = Timestamp::parse("2026-05-01T10:00:00.000Z").unwrap();
    let missing = Missing::between(3, 4);
    // Without a thread the note waits for the first one.
    assert_eq!(folded.missing(&missing, &time, place(7)).len(), 0);
    let records = fold(&mut folded, &BEGIN.into_iter().chain([CHILD[2], CHILD[3]]).collect::<Vec<_>>());
    let is_missing = |payload: &String| payload.contains(r#""msg":{"type":"missing""#);
    assert_eq!(records.iter().filter(|(.., payload)| is_missing(payload)).count(), 1);
    let made = folded.missing(&missing, &time, place(9000));
    let threads: Vec<&str> = made.iter().map(|(thread, _)| thread.as_str()).collect();
    assert_eq!(threads, ["p", "c"]);
    let want = r#"{"id":"","msg":{"type":"missing","first_ticket":3,"last_ticket":4,"messages":2,"reason":"unknown"}}"#;
    assert!(made.iter().all(|(_, made)| made.payload.as_str() == want), "{made:?}");
    // A message at the same place has a later position.
    let line = br#"{"method":"warning","params":{"threadId":"p"}}"#;
    let captured =
        CapturedMessage { lane: Lane::FromAgent, ticket: 5, time: &time, place: place(9000), line };
    let next = folded.message(captured);
    assert!(next[0].1.position > made[1].1.position, "{next:?}");
}

#[test]
fn compactions_are_reported_once_with_the_current_path() {
    let mut folded = connection();
    let done = r#"<{"method":"item/completed","params":{"threadId":"p","turnId":"u9","item":{"type":"contextCompaction","id":"k"}}}"#;
    fold(&mut folded, &BEGIN.into_iter().chain([done]).collect::<Vec<_>>());
    let want = CompactionNotice {
        thread: ThreadId::parse("p").unwrap(),
        turn: "u9".to_owned(),
        path: Some("/r.jsonl".to_owned()),
    };
    assert_eq!((folded.compacted(), folded.compacted()), (vec![want.clone()], Vec::new()));
    // After a revert the thread continues in another file.
    let revert = [
        r#">{"method":"thread/revert","id":8,"params":{"threadId":"p","beforeTurnId":"u7"}}"#,
        r#"<{"id":8,"result":{"thread":{"id":"p","path":"/r_2.jsonl"}}}"#,
        done,
    ];
    fold(&mut folded, &revert);
    assert_eq!(folded.compacted(), [CompactionNotice { path: Some("/r_2.jsonl".to_owned()), ..want }]);
}

#[test]
fn connection_without_threads_keeps_its_messages() {
    let records = fold(&mut connection(), &BEGIN[..2]);
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|(thread, ..)| thread == "connection"));
}
