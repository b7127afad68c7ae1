//! Changing a configuration as a person would: only what differs, with comments, foreign keys and the
//! order of the rest kept.

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Map, Value};

use super::parse::options;

/// The text with the difference between `old` and `new` written into it; `None` if it resists.
pub(super) fn text(text: &str, old: &Value, new: &Value) -> Option<String> {
    let root = CstRootNode::parse(text, &options()).ok()?;
    edit_object(&root.object_value()?, old.as_object()?, new.as_object()?);
    let mut edited = root.to_string();
    if !edited.ends_with('\n') {
        edited.push('\n');
    }
    Some(edited)
}

/// The same on values: foreign keys are kept, comments and order are not.
pub(super) fn value(document: &Value, old: &Value, new: &Value) -> Value {
    match (document, old, new) {
        (Value::Object(document), Value::Object(old), Value::Object(new)) => {
            Value::Object(merge_objects(document, old, new))
        }
        (Value::Array(document), Value::Array(old), Value::Array(new)) => {
            Value::Array(merge_arrays(document, old, new))
        }
        _ => new.clone(),
    }
}

fn merge_objects(
    document: &Map<String, Value>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Map<String, Value> {
    let mut merged = document.clone();
    merged.retain(|key, _| !old.contains_key(key) || new.contains_key(key));
    for (key, wanted) in new.iter().filter(|(key, wanted)| old.get(*key) != Some(*wanted)) {
        let before = old.get(key);
        let member = match (document.get(key), before) {
            (Some(found), Some(before)) => value(found, before, wanted),
            _ => difference(before, wanted),
        };
        merged.insert(key.clone(), member);
    }
    merged
}

/// Items are the same if they have the same id, wherever they moved.
fn merge_arrays(document: &[Value], old: &[Value], new: &[Value]) -> Vec<Value> {
    let (Some(old_ids), true) = (ids(old), document.len() == old.len()) else { return new.to_vec() };
    let merge = |wanted: &Value| {
        let at = id(wanted).and_then(|id| old_ids.iter().position(|old| *old == id))?;
        Some(value(document.get(at)?, old.get(at)?, wanted))
    };
    new.iter().map(|wanted| merge(wanted).unwrap_or_else(|| wanted.clone())).collect()
}

fn edit_object(object: &CstObject, old: &Map<String, Value>, new: &Map<String, Value>) {
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        if let Some(property) = object.get(key) {
            property.remove();
        }
    }
    for (key, wanted) in new.iter().filter(|(key, wanted)| old.get(*key) != Some(*wanted)) {
        match object.get(key) {
            Some(property) => edit_property(&property, old.get(key), wanted),
            None => {
                object.append(key, input(&difference(old.get(key), wanted)));
            }
        }
    }
}

fn edit_property(property: &CstObjectProp, old: Option<&Value>, wanted: &Value) {
    let found = property.value();
    match (&found, old, wanted) {
        (Some(node), Some(Value::Object(old)), Value::Object(new)) if node.as_object().is_some() => {
            if let Some(object) = node.as_object() {
                edit_object(&object, old, new);
            }
        }
        (Some(node), Some(Value::Array(old)), Value::Array(new)) => {
            let edited = node.as_array().is_some_and(|array| edit_array(&array, old, new));
            if !edited {
                let document = node.to_serde_value().unwrap_or_default();
                property.set_value(input(&value(&document, &Value::Array(old.clone()), wanted)));
            }
        }
        _ => property.set_value(input(&difference(old, wanted))),
    }
}

/// Edits items in place, which needs ids that tell them apart and an order that did not change.
fn edit_array(array: &CstArray, old: &[Value], new: &[Value]) -> bool {
    let items = array.elements();
    let (Some(old_ids), Some(new_ids)) = (ids(old), ids(new)) else { return false };
    let kept_before = old_ids.iter().filter(|id| new_ids.contains(id));
    let kept_after = new_ids.iter().filter(|id| old_ids.contains(id));
    if items.len() != old.len() || !kept_before.eq(kept_after) {
        return false;
    }
    let edited = old.iter().zip(&old_ids).zip(&items).all(|((before, id), item)| {
        let wanted = new_ids.iter().position(|new_id| new_id == id).and_then(|at| new.get(at));
        wanted.is_none_or(|wanted| edit_item(item, before, wanted))
    });
    for (item, _) in items.into_iter().zip(&old_ids).rev().filter(|(_, id)| !new_ids.contains(id)) {
        item.remove();
    }
    for (at, wanted) in
        new.iter().enumerate().filter(|(at, _)| new_ids.get(*at).is_some_and(|id| !old_ids.contains(id)))
    {
        array.insert(at, input(wanted));
    }
    edited
}

fn edit_item(item: &CstNode, old: &Value, new: &Value) -> bool {
    let (Some(object), Some(old), Some(new)) = (item.as_object(), old.as_object(), new.as_object()) else {
        return false;
    };
    edit_object(&object, old, new);
    true
}

/// What has to be written where nothing was: of an object only the members that are not as before, since
/// those were defaults that nobody wrote down.
fn difference(old: Option<&Value>, wanted: &Value) -> Value {
    match (old, wanted) {
        (Some(Value::Object(old)), Value::Object(new)) => Value::Object(
            new.iter()
                .filter(|(key, member)| old.get(*key) != Some(*member))
                .map(|(key, member)| (key.clone(), difference(old.get(key), member)))
                .collect(),
        ),
        _ => wanted.clone(),
    }
}

fn id(item: &Value) -> Option<&str> {
    item.get("id")?.as_str()
}

/// The ids of all items, if each has one of its own.
fn ids(items: &[Value]) -> Option<Vec<&str>> {
    let ids: Vec<&str> = items.iter().map(id).collect::<Option<_>>()?;
    let unique: std::collections::HashSet<&&str> = ids.iter().collect();
    (unique.len() == ids.len()).then_some(ids)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(key, member)| (key.clone(), input(member))).collect())
        }
    }
}
