use super::*;

fn call(id: &str, arguments: &str) -> Call {
    Call { id: id.to_owned(), name: "read_file".to_owned(), arguments: arguments.to_owned() }
}

fn asks(calls: &[Call]) -> Message {
    Message { calls: calls.to_vec(), ..Message::new(Role::Assistant, "") }
}

fn result(id: &str, text: &str) -> Message {
    Message { call_id: id.to_owned(), tool: "read_file".to_owned(), ..Message::new(Role::Tool, text) }
}

fn user(text: &str) -> Message {
    Message::new(Role::User, text)
}

#[test]
fn a_valid_history_is_untouched() {
    let history = vec![
        user("go"),
        asks(&[call("a", "{}"), call("b", "{\"path\": \"x\"}")]),
        result("a", "1"),
        result("b", "2"),
        user("guidance"),
        Message::new(Role::Assistant, "done"),
    ];
    assert_eq!(repair(history.clone()), history);
}

#[test]
fn a_missing_result_becomes_a_failure_in_its_place() {
    let repaired = repair(vec![asks(&[call("a", "{}"), call("b", "{}")]), result("b", "2"), user("next")]);
    assert_eq!(repaired.len(), 4);
    assert_eq!((repaired[1].call_id.as_str(), repaired[1].success), ("a", false));
    assert_eq!(repaired[1].tool, "read_file");
    assert!(repaired[1].text.contains("did not complete"));
    assert_eq!(repaired[2].text, "2");
    assert_eq!(repaired[3].text, "next");
}

#[test]
fn results_stand_in_the_order_of_their_calls() {
    let repaired =
        repair(vec![asks(&[call("a", "{}"), call("b", "{}")]), result("b", "2"), result("a", "1")]);
    assert_eq!(repaired.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["", "1", "2"]);
}

#[test]
fn guidance_between_a_call_and_its_result_loses_neither() {
    let repaired = repair(vec![asks(&[call("a", "{}")]), user("guidance"), result("a", "1")]);
    assert_eq!(repaired.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["", "1", "guidance"]);
    assert!(repaired[1].success);
}

#[test]
fn stray_and_repeated_results_are_dropped() {
    let stray = result("gone", "stray");
    let repaired =
        repair(vec![stray.clone(), asks(&[call("a", "{}")]), result("a", "1"), result("a", "again"), stray]);
    assert_eq!(repaired.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["", "1"]);
}

#[test]
fn an_id_that_is_used_again_later_gets_its_own_result() {
    let once = asks(&[call("call_0", "{}")]);
    let repaired = repair(vec![once.clone(), once, result("call_0", "second")]);
    assert!(!repaired[1].success);
    assert_eq!(repaired[3].text, "second");
}

#[test]
fn broken_arguments_go_back_as_json() {
    let repaired = repair(vec![asks(&[call("a", "{\"path\":\"x"), call("b", "nonsense")])]);
    assert_eq!(repaired[0].calls[0].arguments, "{\"path\":\"x\"}");
    assert!(serde_json::from_str::<serde_json::Value>(&repaired[0].calls[1].arguments).unwrap().is_object());
}

/// Small numbers that look random and are the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn id(&mut self) -> String {
        ["", "a", "b", "c"][usize::try_from(self.below(4)).unwrap()].to_owned()
    }

    fn message(&mut self, text: &str) -> Message {
        match self.below(4) {
            0 => user(text),
            1 => result(&self.id(), text),
            _ => {
                let calls: Vec<Call> = (0..self.below(4)).map(|_| call(&self.id(), "{")).collect();
                Message { text: text.to_owned(), ..asks(&calls) }
            }
        }
    }
}

/// Whether each message with calls is followed by its results, and no result stands elsewhere.
fn is_valid(history: &[Message]) -> bool {
    let mut expected: Vec<&str> = Vec::new();
    for message in history {
        if message.role == Role::Tool {
            if expected.is_empty() || expected.remove(0) != message.call_id {
                return false;
            }
        } else if !expected.is_empty() {
            return false;
        }
        expected.extend(message.calls.iter().map(|call| call.id.as_str()));
    }
    expected.is_empty()
}

#[test]
fn any_history_becomes_valid_and_loses_nothing_but_results() {
    let mut numbers = Numbers(1);
    for _ in 0..2000 {
        let length = numbers.below(14);
        let history: Vec<Message> = (0..length).map(|at| numbers.message(&format!("message {at}"))).collect();
        let repaired = repair(history.clone());
        assert!(is_valid(&repaired), "{history:#?}");
        let said = |it: &[Message]| -> Vec<String> {
            it.iter().filter(|it| it.role != Role::Tool).map(|it| it.text.clone()).collect()
        };
        assert_eq!(said(&repaired), said(&history));
        assert_eq!(repair(repaired.clone()), repaired, "a second repair changes nothing");
    }
}
