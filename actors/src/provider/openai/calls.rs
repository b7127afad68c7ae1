//! Calls put together from their pieces. Servers disagree about what identifies a call: the index, the
//! id, both repeated in every piece, the same index for all, or nothing at all.

use serde_json::Value;

use crate::agent::arguments::is_object;
use crate::history::Call;

/// Calls of one answer; a model that asks for more is out of its mind.
const MAX_CALLS: usize = 256;

/// The calls of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Slot>);

#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes one piece; returns how many bytes it added, or nothing if there are too many calls.
    pub(super) fn add(&mut self, piece: &Value) -> Option<usize> {
        if !piece.is_object() {
            return Some(0);
        }
        let index = piece.get("index").and_then(Value::as_u64);
        let id = piece.get("id").and_then(Value::as_str).unwrap_or_default();
        let function = piece.get("function").unwrap_or(piece);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let at = match self.slot_for(index, id, name) {
            Some(at) => at,
            None if self.0.len() >= MAX_CALLS => return None,
            None => {
                self.0.push(Slot { index, ..Slot::default() });
                self.0.len() - 1
            }
        };
        let slot = self.0.get_mut(at)?;
        let before = slot.arguments.len();
        if slot.id.is_empty() {
            id.clone_into(&mut slot.id);
        }
        slot.take_name(name);
        slot.take_arguments(function.get("arguments"));
        Some(slot.arguments.len().saturating_sub(before))
    }

    /// Which open call a piece belongs to.
    fn slot_for(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        if !id.is_empty()
            && let Some(at) = self.0.iter().rposition(|slot| slot.id == id)
        {
            // The same id under another index, with a name, after whole arguments: a call of its own.
            let slot = self.0.get(at)?;
            let another = index.is_some() && slot.index.is_some() && index != slot.index;
            let begins = another && !name.is_empty() && is_object(&slot.arguments);
            return (!begins).then_some(at);
        }
        let at = match index {
            Some(_) => self.0.iter().rposition(|slot| slot.index == index)?,
            None if !id.is_empty() => return None,
            None => self.0.len().checked_sub(1)?,
        };
        let slot = self.0.get(at)?;
        // A new name after whole arguments begins another call, whatever its index says: some servers
        // give index 0 to all. Without a new id only a piece that lacks an index can mean that.
        let another = (!id.is_empty() && !slot.id.is_empty()) || index.is_none();
        let begins = another && !name.is_empty() && is_object(&slot.arguments);
        (!begins).then_some(at)
    }

    /// The finished calls, or the position of one that never got a name.
    pub(super) fn finish(self) -> Result<Vec<Call>, usize> {
        let mut calls: Vec<Call> = Vec::with_capacity(self.0.len());
        for (position, slot) in self.0.into_iter().enumerate() {
            if slot.name.is_empty() {
                return Err(position);
            }
            let index = slot.index.unwrap_or(position as u64);
            let mut id = if slot.id.is_empty() { format!("call_{index}") } else { slot.id };
            if calls.iter().any(|call| call.id == id) {
                id = format!("{id}_{position}");
            }
            let empty = slot.arguments.trim().is_empty() || slot.arguments.trim() == "null";
            let arguments = if empty { "{}".to_owned() } else { slot.arguments };
            calls.push(Call { id, name: slot.name, arguments });
        }
        Ok(calls)
    }
}

impl Slot {
    /// A name may be repeated in every piece, and may grow; only before the arguments may it come in parts.
    fn take_name(&mut self, name: &str) {
        if name.starts_with(&self.name) {
            name.clone_into(&mut self.name);
        } else if !name.is_empty() && self.arguments.is_empty() {
            self.name.push_str(name);
        }
    }

    fn take_arguments(&mut self, arguments: Option<&Value>) {
        match arguments {
            Some(Value::String(text)) => self.arguments.push_str(text),
            Some(whole @ Value::Object(_)) => self.arguments = whole.to_string(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(pieces: &[&str]) -> Vec<(String, String, String)> {
        let mut calls = Calls::default();
        for piece in pieces {
            calls.add(&serde_json::from_str(piece).unwrap()).unwrap();
        }
        calls.finish().unwrap().into_iter().map(|call| (call.id, call.name, call.arguments)).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn pieces_with_an_index_are_merged_by_it_even_when_interleaved() {
        let got = merged(&[
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":""}}"#,
            r#"{"index":1,"id":"b","function":{"name":"y","arguments":"{"}}"#,
            r#"{"index":0,"function":{"arguments":"{\"p\":1}"}}"#,
            r#"{"index":1,"function":{"arguments":"}"}}"#,
        ]);
        assert_eq!(got, [call("a", "x", "{\"p\":1}"), call("b", "y", "{}")]);
    }

    #[test]
    fn without_an_index_the_id_counts_and_then_the_last_open_call() {
        let got = merged(&[
            r#"{"id":"a","function":{"name":"x","arguments":"{\"p\":"}}"#,
            r#"{"function":{"arguments":"1}"}}"#,
            r#"{"id":"b","function":{"name":"x","arguments":"{"}}"#,
            r#"{"id":"a","function":{"arguments":" "}}"#,
            r#"{"function":{"arguments":"}"}}"#,
        ]);
        assert_eq!(got, [call("a", "x", "{\"p\":1} "), call("b", "x", "{}")]);
    }

    #[test]
    fn an_id_and_a_name_in_every_piece_are_not_concatenated() {
        let got = merged(&[
            r#"{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":"{"}}"#,
            r#"{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":"}"}}"#,
        ]);
        assert_eq!(got, [call("a", "read", "{}")]);
    }

    #[test]
    fn the_same_index_with_another_id_is_another_call() {
        let got = merged(&[
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"x","arguments":"{\"p\":2}"}}"#,
        ]);
        assert_eq!(got, [call("a", "x", "{}"), call("b", "x", "{\"p\":2}")]);
    }

    #[test]
    fn an_id_that_changes_with_every_piece_does_not_tear_a_call() {
        let got = merged(&[
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{\"p\":"}}"#,
            r#"{"index":0,"id":"b","function":{"arguments":"1}"}}"#,
        ]);
        assert_eq!(got, [call("a", "x", "{\"p\":1}")]);
    }

    #[test]
    fn whole_calls_without_index_and_id_stay_apart() {
        let got = merged(&[
            r#"{"function":{"name":"x","arguments":"{}"}}"#,
            r#"{"function":{"name":"y","arguments":{"p":[1]}}}"#,
        ]);
        assert_eq!(got, [call("call_0", "x", "{}"), call("call_1", "y", "{\"p\":[1]}")]);
    }

    #[test]
    fn arguments_may_be_an_object_null_or_missing() {
        let got = merged(&[
            r#"{"index":0,"function":{"name":"x","arguments":{"a":1}}}"#,
            r#"{"index":1,"function":{"name":"y","arguments":null}}"#,
            r#"{"index":2,"function":{"name":"z"}}"#,
        ]);
        assert_eq!(
            got,
            [call("call_0", "x", "{\"a\":1}"), call("call_1", "y", "{}"), call("call_2", "z", "{}")]
        );
    }

    #[test]
    fn equal_ids_of_different_calls_are_told_apart() {
        let got = merged(&[
            r#"{"index":3,"function":{"name":"x","arguments":"{}"}}"#,
            r#"{"index":7,"id":"call_3","function":{"name":"y","arguments":"{}"}}"#,
        ]);
        assert_eq!(got, [call("call_3", "x", "{}"), call("call_3_1", "y", "{}")]);
    }

    #[test]
    fn a_call_without_a_name_is_not_finished() {
        let mut calls = Calls::default();
        calls.add(&serde_json::json!({"index": 0, "id": "a", "function": {"arguments": "{}"}})).unwrap();
        assert_eq!(calls.finish(), Err(0));
    }

    #[test]
    fn the_number_of_calls_is_bounded() {
        let mut calls = Calls::default();
        let refused = (0..1000).find(|index| {
            calls.add(&serde_json::json!({"index": index, "function": {"name": "x"}})).is_none()
        });
        assert_eq!(refused, Some(MAX_CALLS as u64));
    }
}
