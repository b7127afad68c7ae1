//! `version`: this program and the daemon that runs, if one does.

use serde_json::{Value, json};

use crate::client::{Client, ConnectError, Hello, PROTOCOL};
use crate::commands::Context;
use crate::render::escape::neutral;
use crate::status::{Failure, Status};

/// Shows both versions; never starts a daemon.
pub(crate) async fn run(context: &Context) -> anyhow::Result<Status> {
    let (daemon, trouble) = match Client::connect(&context.place).await {
        Ok(client) => (Some(client.hello().clone()), None),
        Err(ConnectError::Absent | ConnectError::Leaving) => (None, None),
        Err(error) => (None, Some(error.into_failure(&context.place))),
    };
    let own = env!("CARGO_PKG_VERSION");
    context
        .output
        .result(&report(own, daemon.as_ref()), |_| describe(own, daemon.as_ref(), trouble.is_some()))?;
    trouble.map_or(Ok(Status::Done), |failure: Failure| Err(failure.into()))
}

fn report(own: &str, daemon: Option<&Hello>) -> Value {
    let daemon = daemon.map(|daemon| json!({"version": daemon.server_version, "protocol": daemon.protocol}));
    json!({"version": own, "protocol": PROTOCOL, "daemon": daemon})
}

fn describe(own: &str, daemon: Option<&Hello>, trouble: bool) -> String {
    let mut text = format!("seekclaw {own} (protocol {PROTOCOL})\n");
    match daemon {
        Some(daemon) => {
            text.push_str(&format!("daemon {} (protocol {})\n", daemon.server_version, daemon.protocol));
        }
        None if trouble => text.push_str("daemon unknown\n"),
        None => text.push_str("daemon not running\n"),
    }
    neutral(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_told() {
        let daemon = Hello { server_version: "9.9".into(), protocol: "2.1".into() };
        assert_eq!(
            describe("0.1", Some(&daemon), false),
            "seekclaw 0.1 (protocol 2.1)\ndaemon 9.9 (protocol 2.1)\n"
        );
        assert_eq!(describe("0.1", None, false), "seekclaw 0.1 (protocol 2.1)\ndaemon not running\n");
        assert_eq!(report("0.1", None), json!({"version": "0.1", "protocol": "2.1", "daemon": null}));
    }
}
