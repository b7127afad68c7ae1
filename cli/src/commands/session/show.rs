//! `session show`: a conversation as text.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::Scope;
use crate::commands::session::{Header, with};
use crate::commands::{Context, document};
use crate::render::diff;
use crate::render::escape::{keep_indent, neutral, one_line};
use crate::render::style::{Style, Tone};
use crate::render::when::ago;
use crate::status::Status;

/// Lines of one tool's output that are shown.
const TOOL_LINES: usize = 6;
/// Columns of one line of tool output.
const TOOL_COLUMNS: usize = 160;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Conversation {
    #[serde(flatten)]
    header: Header,
    messages: Vec<Message>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Message {
    role: String,
    text: String,
    images: Vec<Named>,
    thinking: Option<String>,
    model_ref: Option<String>,
    tool_name: Option<String>,
    tool_success: bool,
    tool_diff: Option<String>,
    tool_file_path: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

/// Shows one session.
pub(super) async fn run(context: &Context, scope: &Scope, id: &str) -> anyhow::Result<Status> {
    let params = with(scope, [("id", json!(id))])?;
    let mut client = context.connect().await?;
    let answer = client.call_on_session("show the session", "session.get", params).await?;
    let raw: Value = document(&answer, "the session")?;
    let conversation: Conversation = document(&answer, "the session")?;
    context.output.result(&raw, |style| render(&conversation, style))?;
    Ok(Status::Done)
}

fn render(conversation: &Conversation, style: Style) -> String {
    let header = &conversation.header;
    let title = one_line(header.title.as_deref().unwrap_or("untitled"), TOOL_COLUMNS);
    let mut text = format!("{}\n", style.paint(Tone::Bold, &title));
    let mut facts = vec![neutral(&header.id), format!("updated {}", ago(&header.updated_at))];
    facts.push(format!("reasoning {}", neutral(&header.reasoning_level)));
    facts.push(format!("{} in, {} out tokens", header.total_input_tokens, header.output_tokens));
    if header.archived {
        facts.push("archived".to_owned());
    }
    line(&mut text, &style.paint(Tone::Dim, &facts.join(" · ")));
    for message in &conversation.messages {
        match message.role.as_str() {
            "tool" => tool(&mut text, message, style),
            _ => spoken(&mut text, message, style),
        }
    }
    text
}

fn spoken(text: &mut String, message: &Message, style: Style) {
    let who = match (message.role.as_str(), &message.model_ref) {
        ("user", _) => "you".to_owned(),
        (role, Some(model)) => format!("{} ({})", neutral(role), one_line(model, TOOL_COLUMNS)),
        (role, None) => neutral(role),
    };
    line(text, "");
    line(text, &style.paint(Tone::Cyan, &who));
    for image in &message.images {
        line(text, &style.paint(Tone::Dim, &format!("[image {}]", one_line(&image.name, TOOL_COLUMNS))));
    }
    if let Some(thinking) = message.thinking.as_deref().filter(|thinking| !thinking.trim().is_empty()) {
        for thought in neutral(thinking.trim_end()).lines() {
            line(text, &style.paint(Tone::Dim, &format!("  {thought}")));
        }
    }
    if !message.text.trim().is_empty() {
        line(text, neutral(&message.text).trim_end());
    }
}

fn tool(text: &mut String, message: &Message, style: Style) {
    let (mark, tone) = if message.tool_success { ("✓", Tone::Green) } else { ("✗", Tone::Red) };
    let name = one_line(message.tool_name.as_deref().unwrap_or("tool"), TOOL_COLUMNS);
    let path = message.tool_file_path.as_deref().map(|path| format!(" {}", one_line(path, TOOL_COLUMNS)));
    line(text, &format!("{} {name}{}", style.paint(tone, mark), path.unwrap_or_default()));
    if let Some(diff) = message.tool_diff.as_deref().filter(|diff| !diff.is_empty()) {
        text.push_str(&diff::render(diff, style));
        return;
    }
    for output in message.text.lines().take(TOOL_LINES) {
        line(text, &style.paint(Tone::Dim, &format!("  {}", keep_indent(output, TOOL_COLUMNS))));
    }
    let hidden = message.text.lines().skip(TOOL_LINES).count();
    if hidden > 0 {
        line(text, &style.paint(Tone::Dim, &format!("  … {hidden} more lines")));
    }
}

fn line(text: &mut String, content: &str) {
    if writeln!(text, "{content}").is_err() {
        tracing::debug!("text cannot grow");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_reads_from_top_to_bottom() {
        let conversation: Conversation = serde_json::from_value(json!({
            "id": "s1", "title": "rename foo", "updatedAt": "1999-01-01T00:00:00Z", "reasoningLevel": "high",
            "totalInputTokens": 900, "outputTokens": 40,
            "messages": [
                {"role": "user", "text": "rename foo", "images": [{"id": "i", "name": "shot.png"}]},
                {"role": "assistant", "text": "", "thinking": "look first", "modelRef": "p/m"},
                {"role": "tool", "text": "1\n  2  =  b\n3\n4\n5\n6\n7\n8", "toolName": "read_file", "toolSuccess": true},
                {"role": "tool", "text": "x", "toolName": "edit_file", "toolSuccess": false,
                 "toolFilePath": "a.txt", "toolDiff": "@@ -1 +1 @@\n-foo\n+bar\n"},
                {"role": "assistant", "text": "Renamed\u{1b}[2J.", "modelRef": null},
            ],
        }))
        .unwrap();
        let expected = "rename foo\ns1 · updated 1999-01-01 · reasoning high · 900 in, 40 out tokens\n\n\
            you\n[image shot.png]\nrename foo\n\nassistant (p/m)\n  look first\n✓ read_file\n  1\n    2  =  b\n  3\n  4\n  5\n  6\n  \
            … 2 more lines\n✗ edit_file a.txt\n@@ -1 +1 @@\n-foo\n+bar\n\nassistant\nRenamed␛[2J.\n";
        assert_eq!(render(&conversation, Style::PLAIN), expected);
    }
}
