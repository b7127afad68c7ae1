use serde_json::{Value, json};

use super::decide::decide;
use super::*;
use crate::history::check::FailedCheck;
use crate::history::{Message, Origin, Role};
use crate::tools::ToolSpec;

const ALL: [&str; 7] = ["bash", "edit_file", "glob", "grep", "list_dir", "read_file", "write_file"];
const READING: [&str; 4] = ["glob", "grep", "list_dir", "read_file"];

fn request(messages: &[Message], tools: &[&str]) -> Request {
    let tools = tools.iter().map(|name| ToolSpec {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: json!({}),
        mutating: !["glob", "grep", "list_dir", "read_file"].contains(name),
    });
    Request {
        system: "system".to_owned(),
        messages: messages.to_vec(),
        tools: tools.collect(),
        max_output: 1000,
        temperature: None,
        reasoning: ReasoningLevel::High,
    }
}

fn next(messages: &[Message], tools: &[&str]) -> Reply {
    let request = request(messages, tools);
    reply(&request, decide(&request), &[])
}

fn user(text: &str) -> Message {
    Message::new(Role::User, text)
}

fn answered(reply: &Reply) -> Message {
    Message { calls: reply.calls.clone(), ..Message::new(Role::Assistant, reply.text.clone()) }
}

/// Plays a turn: every call is answered by `tool`, guidance is put in after the call of that number.
fn play(
    messages: &mut Vec<Message>,
    tools: &[&str],
    guidance: Option<(usize, &str)>,
    tool: impl Fn(&str, &Value) -> (bool, String),
) -> (Vec<String>, String) {
    let mut called = Vec::new();
    loop {
        let reply = next(messages, tools);
        messages.push(answered(&reply));
        let Some(call) = reply.calls.first() else { return (called, reply.text) };
        assert!(called.len() < 20, "it never ends: {called:?}");
        assert!(tools.contains(&call.name.as_str()), "{} is not offered", call.name);
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        called.push(format!("{} {arguments}", call.name));
        let (success, text) = tool(&call.name, &arguments);
        let result = Message { call_id: call.id.clone(), success, ..Message::new(Role::Tool, text) };
        messages.push(result);
        if let Some((after, text)) = guidance
            && after == called.len()
        {
            messages.push(Message { origin: Origin::Guidance, ..user(text) });
        }
    }
}

fn workspace(name: &str, _: &Value) -> (bool, String) {
    let text = match name {
        "list_dir" => "src/\n  lib.rs\n.env\nCargo.toml\nREADME.md\n",
        "read_file" => "1\t# The project\n2\tIt counts.\n",
        other => other,
    };
    (true, text.to_owned())
}

#[test]
fn a_general_question_looks_twice_and_answers_from_what_it_saw() {
    let mut messages = vec![user("What is in this folder?")];
    let (called, text) = play(&mut messages, &READING, None, workspace);
    assert_eq!(called, ["list_dir {\"path\":\".\"}", "read_file {\"path\":\"README.md\"}"]);
    for part in ["no language model", "Cargo.toml", "It counts.", "seekclaw provider add"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn without_a_readme_another_text_is_read_and_never_a_secret() {
    let mut messages = vec![user("explain this project")];
    let listing = |name: &str, _: &Value| {
        (true, if name == "list_dir" { ".env\nid_rsa\nmain.rs\n" } else { "x" }.to_owned())
    };
    let (called, _) = play(&mut messages, &READING, None, listing);
    assert_eq!(called.last().unwrap(), "read_file {\"path\":\"main.rs\"}");

    let mut messages = vec![user("explain this project")];
    let (called, _) = play(&mut messages, &READING, None, |_, _| (true, "(empty directory)".to_owned()));
    assert_eq!(called.last().unwrap(), "glob {\"pattern\":\"**/*\"}");
}

#[test]
fn steps_are_made_in_order_and_each_once() {
    let mut messages = vec![user("replace a with b in x.txt and then run cat x.txt")];
    let (called, text) = play(&mut messages, &ALL, None, |name, _| (true, format!("result of {name}")));
    let edit = json!({ "path": "x.txt", "old_string": "a", "new_string": "b", "replace_all": true });
    assert_eq!(called, [format!("edit_file {edit}"), "bash {\"command\":\"cat x.txt\"}".to_owned()]);
    assert!(text.contains("All 2 calls") && text.contains("result of bash"), "{text}");
    let ids: Vec<&str> =
        messages.iter().flat_map(|message| &message.calls).map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["offline_1", "offline_2"]);
}

#[test]
fn what_is_not_offered_is_said_and_not_called() {
    let mut messages = vec![user("list files and run rm -rf x")];
    let (called, text) = play(&mut messages, &READING, None, workspace);
    assert_eq!(called.len(), 1);
    assert!(text.contains("`bash` is not offered in this mode. Plan mode"), "{text}");

    let mut messages = vec![user("run ls")];
    let (_, text) = play(&mut messages, &["write_file"], None, workspace);
    assert!(text.contains("`bash` is not offered here.") && text.contains("I did nothing"), "{text}");
}

#[test]
fn a_failed_result_is_reported_as_failed() {
    let mut messages = vec![user("read nope.txt")];
    let (_, text) = play(&mut messages, &ALL, None, |_, _| (false, "File not found: /w/nope.txt".to_owned()));
    assert!(text.contains("The call failed.") && text.contains("File not found: /w/nope.txt"), "{text}");
}

#[test]
fn guidance_adds_steps_or_is_noted() {
    let mut messages = vec![user("list files")];
    let (called, _) = play(&mut messages, &ALL, Some((1, "also find TODO")), workspace);
    assert_eq!(called, ["list_dir {\"path\":\".\"}", "grep {\"pattern\":\"TODO\"}"]);

    let mut messages = vec![user("list files and read a.txt")];
    let (called, text) = play(&mut messages, &ALL, Some((1, "be brief")), workspace);
    assert_eq!(called.len(), 2, "the plan goes on");
    assert!(text.contains("be brief"), "{text}");
}

#[test]
fn a_restarted_turn_goes_on_where_it_was() {
    let mut messages = vec![user("list files then read a.txt")];
    let first = next(&messages, &ALL);
    assert_eq!(next(&messages, &ALL), first, "the same conversation, the same answer");
    messages.push(answered(&first));
    let call = first.calls.first().unwrap();
    let lost = Message { call_id: call.id.clone(), success: false, ..Message::new(Role::Tool, "uncertain") };
    messages.push(lost);
    assert_eq!(next(&messages, &ALL).calls.first().unwrap().name, "read_file");
}

#[test]
fn only_the_first_answer_introduces_itself() {
    let mut messages = vec![user("hello")];
    let (called, text) = play(&mut messages, &ALL, None, workspace);
    assert!(called.is_empty() && text.contains("`run COMMAND`") && text.contains("provider add"), "{text}");
    messages.push(user("list files"));
    let (called, text) = play(&mut messages, &ALL, None, workspace);
    assert_eq!(called.len(), 1);
    assert!(text.starts_with("(builtin/offline)") && !text.contains("provider add"), "{text}");
}

#[test]
fn notes_of_ours_are_no_requests() {
    let mut messages = vec![user("list files"), Message::note("read secret.txt")];
    let (called, _) = play(&mut messages, &ALL, None, workspace);
    assert_eq!(called, ["list_dir {\"path\":\".\"}"]);
}

#[test]
fn long_results_are_shortened_and_cannot_leave_their_fence() {
    let mut messages = vec![user("read a.md")];
    let long = format!("````\n{}", "ü\n".repeat(500));
    let (_, text) = play(&mut messages, &ALL, None, |_, _| (true, long.clone()));
    assert!(text.contains("\n`````\n````\n") && text.contains("more lines"), "{text}");
    assert!(text.len() < 4000);
}

#[test]
fn a_server_on_this_machine_is_offered_by_name() {
    let request = request(&[user("hello")], &ALL);
    let server = LocalServer {
        name: "Ollama".to_owned(),
        base_url: "http://127.0.0.1:11434/v1".to_owned(),
        models: Vec::new(),
    };
    let text = reply(&request, decide(&request), &[server]).text;
    assert!(text.contains("Ollama") && text.contains("http://127.0.0.1:11434/v1"), "{text}");
}

#[tokio::test]
async fn the_answer_streams_in_pieces_that_make_it_up() {
    let mut heard = Vec::new();
    let request = request(&[user("list files and then read README.md and find x in src")], &ALL);
    let reply = answer(&request, &mut |chunk| heard.push(chunk)).await;
    let text: String = heard
        .iter()
        .filter_map(|chunk| if let Chunk::Text(text) = chunk { Some(text.as_str()) } else { None })
        .collect();
    let thoughts = heard.iter().filter(|chunk| matches!(chunk, Chunk::Thinking(_))).count();
    assert_eq!(text, reply.text);
    assert!(thoughts > 1 && heard.last() == Some(&Chunk::CallStarted), "{heard:?}");
    assert!(reply.usage.input_tokens > 0 && reply.usage.output_tokens > 0);
}

#[test]
fn what_a_cancelled_turn_left_undone_stays_undone() {
    let mut messages = vec![user("list files, then read a.txt and then run rm x")];
    let first = next(&messages, &ALL);
    messages.push(answered(&first));
    let id = first.calls.first().unwrap().id.clone();
    messages.push(Message { call_id: id, success: false, ..Message::new(Role::Tool, "cancelled") });
    messages.push(user("find TODO"));
    let (called, text) = play(&mut messages, &ALL, None, workspace);
    assert_eq!(called, ["grep {\"pattern\":\"TODO\"}"]);
    assert!(text.contains("The call succeeded.") && !text.contains("rm x"), "{text}");
}

#[test]
fn a_failed_check_is_told_and_not_repaired() {
    let mut messages = vec![user("replace a with b in x.txt")];
    play(&mut messages, &ALL, None, workspace);
    let tail = "Exit code 1\n\nerror: x is gone\n".to_owned() + &"more\n".repeat(100);
    let note = FailedCheck { command: "make check", tail: &tail }.note();
    messages.push(Message::note(note));
    let (called, text) = play(&mut messages, &ALL, None, workspace);
    assert!(called.is_empty(), "{called:?}");
    for part in
        ["check `make check` failed", "cannot repair", "error: x is gone", "The call succeeded", "x.txt"]
    {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(text.matches("more").count() < 10 && !text.contains("provider add"), "{text}");
}

#[test]
fn what_is_not_understood_is_no_success() {
    for ask in ["delete README.md", "fix the typo"] {
        let mut messages = vec![user(ask)];
        let thinking = next(&messages, &ALL).thinking;
        assert!(thinking.contains("do not understand") && !thinking.contains("**/*"), "{thinking}");
        let (called, text) = play(&mut messages, &ALL, None, workspace);
        assert_eq!(called, ["list_dir {\"path\":\".\"}", "read_file {\"path\":\"README.md\"}"]);
        assert!(text.contains("I did not understand") && text.contains("looked around instead"), "{text}");
        assert!(text.contains("`run COMMAND`") && !text.contains("succeeded"), "{text}");
    }
    let mut messages = vec![user("hi there")];
    let (called, text) = play(&mut messages, &ALL, None, workspace);
    assert!(called.is_empty() && text.contains("`run COMMAND`"), "{text}");

    let mut messages = vec![user("list files and delete README.md")];
    let (called, text) = play(&mut messages, &ALL, None, workspace);
    assert_eq!(called.len(), 1);
    assert!(text.contains("I did not understand \"delete README.md\""), "{text}");
}

#[test]
fn one_call_is_no_plural() {
    let thinking = next(&[user("list files")], &ALL).thinking;
    assert_eq!(thinking, "The request comes to 1 tool call: list `.`.\n");
}

#[test]
fn a_request_that_was_trimmed_away_is_not_guessed() {
    let mut messages = vec![user("list files then read a.txt")];
    play(&mut messages, &ALL, None, workspace);
    messages.drain(..2);
    messages.pop();
    messages.insert(0, Message::note("[Earlier history was trimmed]\nlist files then read a.txt"));
    let (called, text) = play(&mut messages, &ALL, None, workspace);
    assert!(called.is_empty() && text.contains("no longer fits"), "{text}");
}
