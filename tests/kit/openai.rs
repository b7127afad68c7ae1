//! Answers in the dialect of the chat completions API, piece by piece.

use serde_json::{Value, json};

use super::gate::Gate;

/// What a provider does for one request.
#[derive(Clone, Default)]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) pieces: Vec<Piece>,
    calls: usize,
}

/// One act of a provider.
#[derive(Clone)]
pub(crate) enum Piece {
    /// Sends these bytes as one chunk.
    Bytes(Vec<u8>),
    /// Waits for the test.
    Gate(Gate),
    /// Says nothing more until the daemon hangs up, then marks the gate.
    Hang(Gate),
    /// Closes the connection without the end of the body.
    Cut,
    /// Resets the connection.
    Reset,
}

impl Reply {
    /// A stream that has not said anything yet.
    pub fn stream() -> Self {
        let headers = vec![("Content-Type".to_owned(), "text/event-stream".to_owned())];
        Self { status: 200, headers, ..Self::default() }
    }

    /// A whole answer in one delta.
    pub fn answer(text: &str) -> Self {
        Self::stream().text(text).stop()
    }

    /// One call and nothing else.
    pub fn call(id: &str, tool: &str, arguments: Value) -> Self {
        Self::stream().tool(id, tool, arguments).stop()
    }

    /// A refusal in the usual form.
    pub fn refusal(status: u16, message: &str) -> Self {
        Self::body(status, &json!({"error": {"message": message}}).to_string())
    }

    /// Any status and body.
    pub fn body(status: u16, body: &str) -> Self {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        Self { status, headers, pieces: vec![Piece::Bytes(body.into())], calls: 0 }
    }

    /// No answer at all: the connection is reset once the request is there.
    pub fn reset_at_once() -> Self {
        Self { status: 0, pieces: vec![Piece::Reset], ..Self::default() }
    }

    /// No answer at all, until the daemon hangs up; that marks `gone`.
    pub fn silence(gone: &Gate) -> Self {
        Self { status: 0, pieces: vec![Piece::Hang(gone.clone())], ..Self::default() }
    }

    /// Waits for the test before the status line is sent.
    pub fn held(mut self, gate: &Gate) -> Self {
        self.pieces.insert(0, Piece::Gate(gate.clone()));
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Bytes as they are.
    pub fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.pieces.push(Piece::Bytes(bytes.into()));
        self
    }

    /// One event.
    pub fn frame(self, frame: &Value) -> Self {
        self.bytes(format!("data: {frame}\n\n"))
    }

    fn delta(self, delta: Value) -> Self {
        self.frame(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
    }

    /// A piece of the answer.
    pub fn text(self, text: &str) -> Self {
        self.delta(json!({ "content": text }))
    }

    /// A piece of reasoning.
    pub fn thinking(self, text: &str) -> Self {
        self.delta(json!({ "reasoning_content": text }))
    }

    /// A whole call.
    pub fn tool(self, id: &str, tool: &str, arguments: Value) -> Self {
        self.raw_tool(id, tool, &arguments.to_string())
    }

    /// A call whose arguments may be anything.
    pub fn raw_tool(mut self, id: &str, tool: &str, arguments: &str) -> Self {
        let index = self.calls;
        self.calls += 1;
        let function = json!({"name": tool, "arguments": arguments});
        let call = json!({"index": index, "id": id, "type": "function", "function": function});
        self.delta(json!({ "tool_calls": [call] }))
    }

    /// The end of an answer that is complete.
    pub fn stop(self) -> Self {
        let reason = if self.calls == 0 { "stop" } else { "tool_calls" };
        self.finish(reason)
    }

    /// The end of an answer with a reason, and what it cost.
    pub fn finish(self, reason: &str) -> Self {
        self.finish_costing(reason, 900, 40)
    }

    /// The end of an answer with a reason and figures.
    pub fn finish_costing(self, reason: &str, input: u64, output: u64) -> Self {
        let usage =
            json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
        self.frame(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
            .frame(&json!({"choices": [], "usage": usage}))
            .bytes("data: [DONE]\n\n")
    }

    /// Waits for the test.
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.pieces.push(Piece::Gate(gate.clone()));
        self
    }

    /// Says nothing more until the daemon hangs up, then marks `gone`.
    pub fn hang(mut self, gone: &Gate) -> Self {
        self.pieces.push(Piece::Hang(gone.clone()));
        self
    }

    /// Closes without the end of the body.
    pub fn cut(mut self) -> Self {
        self.pieces.push(Piece::Cut);
        self
    }

    /// Resets the connection.
    pub fn reset(mut self) -> Self {
        self.pieces.push(Piece::Reset);
        self
    }
}
