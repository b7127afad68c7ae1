use super::*;
use crate::history::{Call, Image};

fn user(text: impl Into<String>) -> Message {
    Message::new(Role::User, text)
}

fn answer(text: impl Into<String>) -> Message {
    Message::new(Role::Assistant, text)
}

fn exchange(results: usize, text: &str) -> Vec<Message> {
    let calls: Vec<Call> = (0..results)
        .map(|at| Call { id: format!("call_{at}"), name: "grep".to_owned(), arguments: "{}".to_owned() })
        .collect();
    let results = calls.iter().map(|call| Message {
        call_id: call.id.clone(),
        tool: "grep".to_owned(),
        ..Message::new(Role::Tool, text)
    });
    let results: Vec<Message> = results.collect();
    [vec![Message { calls, ..answer("") }], results].concat()
}

fn total(messages: &[Message]) -> u64 {
    messages.iter().map(message_estimate).sum()
}

#[test]
fn a_message_counts_its_text_thinking_calls_and_images() {
    assert_eq!(message_estimate(&user("")), 8);
    assert_eq!(message_estimate(&user("a".repeat(401))), 8 + 101);
    let call = Call { id: "ignored".to_owned(), name: "bash".to_owned(), arguments: "{\"a\":1} ".to_owned() };
    let thoughtful = Message { thinking: "t".repeat(40), calls: vec![call], ..answer("") };
    assert_eq!(message_estimate(&thoughtful), 8 + 10 + 1 + 2);
    let image =
        Image { id: String::new(), name: String::new(), media_type: String::new(), size: 1, bytes: None };
    assert_eq!(message_estimate(&Message { images: vec![image.clone(), image], ..user("") }), 8 + 2400);
}

#[test]
fn tools_count_with_their_schemas() {
    let tool = ToolSpec {
        name: "bash".to_owned(),
        description: "d".repeat(40),
        parameters: serde_json::json!({"type": "object"}),
        mutating: true,
    };
    assert_eq!(tools_estimate(&[tool.clone(), tool]), 2 * (1 + 10 + 5 + 8));
}

#[test]
fn the_budget_is_what_is_left_and_half_of_the_window_if_nothing_is() {
    assert_eq!(budget(128_000, 8192, 2000), 128_000 - 8192 - 2000 - 1500);
    assert_eq!(budget(11_692, 8192, 2000), 5846);
    assert_eq!(budget(4096, 8192, 2000), 2048);
    assert_eq!(budget(0, u64::MAX, u64::MAX), 0);
}

#[test]
fn a_history_that_fits_is_untouched() {
    let history = vec![user("a"), answer("b"), user("c")];
    let fitted = fit(history.clone(), total(&history));
    assert_eq!(fitted, Fitted { messages: history, dropped: 0 });
}

#[test]
fn no_more_is_dropped_than_needed() {
    let history: Vec<Message> = (0..20).map(|at| user(format!("{at:04}").repeat(100))).collect();
    let fitted = fit(history.clone(), total(&history) - 1);
    assert_eq!(fitted.dropped, 1);
    assert_eq!(fitted.messages[1..], history[1..]);
}

#[test]
fn a_long_history_keeps_the_newest_six_and_a_note() {
    let history: Vec<Message> = (0..40).map(|at| user(format!("{at} {}", "x".repeat(4000)))).collect();
    let fitted = fit(history.clone(), 100);
    assert_eq!(fitted.messages.len(), 7);
    assert_eq!(fitted.dropped, 34);
    assert_eq!(fitted.messages[0].role, Role::User);
    assert!(fitted.messages[0].text.contains("Earlier history was trimmed"));
    assert!(fitted.messages[0].text.contains("34 messages"));
    assert_eq!(fitted.messages[1..], history[34..]);
}

#[test]
fn no_result_stands_at_the_head() {
    let mut history = vec![user("old")];
    for _ in 0..10 {
        history.extend(exchange(3, &"r".repeat(400)));
    }
    history.push(answer("done"));
    for budget in 0..total(&history) {
        let fitted = fit(history.clone(), budget);
        let head = if fitted.dropped == 0 { 0 } else { 1 };
        assert_ne!(fitted.messages[head].role, Role::Tool, "budget {budget}");
    }
}

#[test]
fn the_exchange_that_the_model_is_in_is_kept_whole() {
    let mut history = vec![user("count the files"), answer("first"), user("and the lines")];
    history.extend(exchange(9, "short"));
    let fitted = fit(history.clone(), 10);
    assert_eq!(fitted.dropped, 3);
    assert_eq!(fitted.messages[1..], history[3..]);
}

#[test]
fn a_long_turn_keeps_its_request() {
    let mut history = vec![user("rename foo to bar everywhere"), Message::note("The check `x` failed.")];
    for _ in 0..10 {
        history.extend(exchange(1, &"r".repeat(400)));
    }
    let fitted = fit(history, 10);
    assert_eq!(fitted.messages.len(), 7);
    assert!(fitted.messages[0].text.ends_with("\nrename foo to bar everywhere"));
    assert_eq!(fitted.messages[0].origin, Origin::Note);
}

#[test]
fn results_too_large_for_the_window_are_shortened() {
    let mut history = vec![user("read it all")];
    history.extend(exchange(8, &"r".repeat(40_000)));
    let budget = 20_000;
    let fitted = fit(history, budget);
    assert!(total(&fitted.messages) <= budget + RESERVE_TOKENS, "{}", total(&fitted.messages));
    assert!(
        fitted.messages.iter().filter(|it| it.role == Role::Tool).all(|it| it.text.contains("left out here"))
    );
}

#[test]
fn preparing_repairs_before_it_fits() {
    let history = exchange(1, "kept").into_iter().take(1).collect();
    let fitted = prepare(history, "system", &[], &Model::default());
    assert_eq!(fitted.messages.len(), 2);
    assert!(fitted.messages[1].text.contains("did not complete"));
}
