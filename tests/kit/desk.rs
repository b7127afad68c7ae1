//! A daemon with one workspace, one session and one client: what most tests start with.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::client::Client;
use super::daemon::Daemon;
use super::events::text;
use super::home::Home;
use super::openai::Reply;
use super::provider::Provider;

/// Everything in its place. Dropped in this order: client, daemon, home, provider.
pub struct Desk {
    pub client: Client,
    pub daemon: Option<Daemon>,
    pub session: String,
    pub workspace: PathBuf,
    pub home: Home,
    pub provider: Provider,
}

impl Desk {
    /// With a client that said no hello.
    #[track_caller]
    pub fn plain(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::of(Provider::script(replies), None)
    }

    /// With a client that said hello: its turns outlive it.
    #[track_caller]
    pub fn resident(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::of(Provider::script(replies), Some("desk"))
    }

    #[track_caller]
    fn of(provider: Provider, client_id: Option<&str>) -> Self {
        let home = Home::with(&provider);
        let workspace = home.workspace("w");
        let daemon = Daemon::start(&home);
        let mut client = daemon.connect();
        if let Some(id) = client_id {
            client.hello(id);
        }
        let session = client.ok("session.new", json!({ "workspace": workspace }));
        Self { client, daemon: Some(daemon), session, workspace, home, provider }
    }

    /// The running daemon.
    pub fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("the daemon runs")
    }

    /// Kills the daemon as a crash would and starts another one; the client says hello again.
    #[track_caller]
    pub fn crash(&mut self) {
        self.daemon.take().expect("the daemon runs").kill();
        self.start();
    }

    /// Starts the daemon again.
    #[track_caller]
    pub fn start(&mut self) {
        let daemon = Daemon::start(&self.home);
        self.client = daemon.hello("desk");
        self.daemon = Some(daemon);
    }

    /// Parameters for the session, with more.
    pub fn with(&self, more: Value) -> Value {
        in_session(&self.session, &self.workspace, more)
    }

    /// Sends a chat.
    #[track_caller]
    pub fn chat(&mut self, message: &str) -> i64 {
        self.client.send("chat", in_session(&self.session, &self.workspace, json!({ "message": message })))
    }

    /// Sends a chat and waits for its end.
    #[track_caller]
    pub fn turn(&mut self, message: &str) -> Vec<Value> {
        let id = self.chat(message);
        self.client.stream_of(id)
    }

    /// `session.get`.
    #[track_caller]
    pub fn get(&mut self) -> Value {
        let params = json!({"id": self.session, "workspace": self.workspace});
        self.client.json("session.get", params)
    }

    /// Role and text of every message.
    #[track_caller]
    pub fn history(&mut self) -> Vec<(String, String)> {
        history_of(&self.get())
    }

    /// Guides the running turn; the answer line.
    #[track_caller]
    pub fn steer(&mut self, message: &str) -> Value {
        self.client.call("agent.steer", json!({"message": message, "sessionId": self.session}))
    }

    /// Guides the running turn, which must accept it.
    #[track_caller]
    pub fn steer_accepted(&mut self, message: &str) {
        let answer = self.steer(message);
        assert_eq!(answer["data"], "guidance queued", "{answer}");
        assert_eq!(answer["sessionId"], *self.session);
    }
}

/// Parameters for `session` in `workspace`, with more.
pub fn in_session(session: &str, workspace: &Path, more: Value) -> Value {
    let mut params: Map<String, Value> = more.as_object().expect("an object").clone();
    params.insert("sessionId".to_owned(), json!(session));
    params.insert("workspace".to_owned(), json!(workspace));
    Value::Object(params)
}

/// Role and text of every message of a `session.get`.
pub fn history_of(session: &Value) -> Vec<(String, String)> {
    let messages = session["messages"].as_array().expect("messages");
    messages.iter().map(|message| (text(&message["role"]), text(&message["text"]))).collect()
}

/// A history for comparison.
pub fn said(messages: &[(&str, &str)]) -> Vec<(String, String)> {
    messages.iter().map(|(role, text)| ((*role).to_owned(), (*text).to_owned())).collect()
}
