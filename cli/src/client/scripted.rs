//! A daemon for tests: listens on a real socket and follows a script, one connection after the other.

use interprocess::local_socket::tokio::{Listener, Stream, prelude::*};
use interprocess::local_socket::{GenericFilePath, ListenerOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::place::Place;

/// The listener of a scripted daemon.
pub(crate) struct Scripted {
    listener: Listener,
}

/// One client of a scripted daemon.
pub(crate) struct Peer {
    stream: BufReader<Stream>,
}

impl Scripted {
    /// Listens in `place`.
    pub(crate) fn listen(place: &Place) -> Self {
        let socket = place.socket();
        let name = socket.as_path().to_fs_name::<GenericFilePath>().unwrap();
        Self { listener: ListenerOptions::new().name(name).create_tokio().unwrap() }
    }

    /// The next client, which has been greeted.
    pub(crate) async fn accept(&self) -> Peer {
        let mut peer = self.accept_silently().await;
        let hello = peer.request().await;
        assert_eq!(hello["method"], "client.hello");
        let ping = peer.request().await;
        assert_eq!(ping["method"], "ping");
        peer.send(&json!({"id": ping["id"], "event": "pong", "data": ""})).await;
        let data = json!({"serverVersion": "9.9", "protocol": "2.1"}).to_string();
        peer.send(&json!({"id": hello["id"], "event": "result", "data": data})).await;
        peer
    }

    /// The next client, to which nothing was said.
    pub(crate) async fn accept_silently(&self) -> Peer {
        Peer { stream: BufReader::new(self.listener.accept().await.unwrap()) }
    }
}

impl Peer {
    /// The next request; null once the client has gone.
    pub(crate) async fn request(&mut self) -> Value {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap_or_default()
    }

    /// Sends one line.
    pub(crate) async fn send(&mut self, line: &Value) {
        self.send_bytes(format!("{line}\n").as_bytes()).await;
    }

    /// Sends bytes as they are.
    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).await.unwrap();
    }
}
