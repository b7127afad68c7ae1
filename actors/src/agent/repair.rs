//! Makes any history one that a provider accepts (contract 5.5): behind each message with calls stands
//! exactly one result per call, in the order of the calls. Done for every request, never stored.

use super::arguments;
use crate::history::{Call, Message, Role};

/// The history with calls and results paired. Results that were separated from their calls are moved
/// back, missing ones become failures, stray ones are dropped, and arguments are valid JSON (ruling 16).
#[must_use]
pub fn repair(history: Vec<Message>) -> Vec<Message> {
    let mut repaired = Vec::with_capacity(history.len());
    let mut open = Exchange::default();
    for mut message in history {
        match message.role {
            Role::Tool => open.take_result(message),
            Role::Assistant if !message.calls.is_empty() => {
                open.close(&mut repaired);
                make_arguments_valid(&mut message.calls);
                open = Exchange::of(&message.calls);
                repaired.push(message);
            }
            Role::User | Role::Assistant => open.later.push(message),
        }
    }
    open.close(&mut repaired);
    repaired
}

/// The calls of one message, the results found so far, and what was said between or after them.
#[derive(Default)]
struct Exchange {
    calls: Vec<(Call, Option<Message>)>,
    later: Vec<Message>,
}

impl Exchange {
    fn of(calls: &[Call]) -> Self {
        Self { calls: calls.iter().map(|call| (call.clone(), None)).collect(), later: Vec::new() }
    }

    /// Ids may repeat within a message, so a result belongs to the first call that still waits.
    fn take_result(&mut self, result: Message) {
        let waiting =
            self.calls.iter_mut().find(|(call, found)| found.is_none() && call.id == result.call_id);
        if let Some((_, found)) = waiting {
            *found = Some(result);
        }
    }

    fn close(&mut self, repaired: &mut Vec<Message>) {
        repaired.extend(self.calls.drain(..).map(|(call, result)| result.unwrap_or_else(|| missing(call))));
        repaired.append(&mut self.later);
    }
}

fn make_arguments_valid(calls: &mut [Call]) {
    for call in calls {
        call.arguments = arguments::as_valid_json(&call.arguments).into_owned();
    }
}

fn missing(call: Call) -> Message {
    let text = format!(
        "{} did not complete: it was interrupted and no result was kept. Check the current state before you repeat it.",
        call.name
    );
    Message { call_id: call.id, tool: call.name, success: false, ..Message::new(Role::Tool, text) }
}

#[cfg(test)]
mod tests;
