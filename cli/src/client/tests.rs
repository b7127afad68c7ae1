use serde_json::json;

use super::scripted::Scripted;
use super::*;

fn place() -> (tempfile::TempDir, Place) {
    let temp = tempfile::tempdir().unwrap();
    let place = Place::at(temp.path());
    (temp, place)
}

#[tokio::test]
async fn a_greeted_client_gets_its_own_answer_among_others() {
    let (_temp, place) = place();
    let daemon = Scripted::listen(&place);
    let serve = async {
        let mut peer = daemon.accept().await;
        let request = peer.request().await;
        assert_eq!(request["method"], "lock.list");
        let id = request["id"].as_i64().unwrap();
        peer.send(&json!({"id": 0, "event": "schedule.updated", "data": "x"})).await;
        peer.send(&json!({"id": id - 1, "event": "result", "data": "not yours"})).await;
        peer.send(&json!({"id": id, "event": "result", "data": "[]"})).await;
        peer
    };
    let ask = async {
        let mut client = Client::connect(&place).await.unwrap();
        assert_eq!(client.hello().server_version, "9.9");
        assert_eq!(client.peer_pid(), i32::try_from(std::process::id()).ok());
        client.call("list the locks", "lock.list", json!({})).await.unwrap()
    };
    let (_peer, answer) = tokio::join!(serve, ask);
    assert_eq!(answer.data, "[]");
}

#[tokio::test]
async fn refusals_carry_the_status_of_their_code() {
    let (_temp, place) = place();
    let daemon = Scripted::listen(&place);
    let serve = async {
        let mut peer = daemon.accept().await;
        for code in ["not_found", "shutting_down"] {
            let request = peer.request().await;
            let details = json!({"code": code, "retryable": false});
            peer.send(&json!({"id": request["id"], "event": "error", "data": "Session x not found", "details": details}))
                .await;
        }
        peer
    };
    let ask = async {
        let mut client = Client::connect(&place).await.unwrap();
        let unknown = client.call_on_session("show it", "session.get", json!({"id": "x"})).await.unwrap_err();
        let stopping = client.call("list", "session.list", json!({})).await.unwrap_err();
        (unknown, stopping)
    };
    let (_peer, (unknown, stopping)) = tokio::join!(serve, ask);
    assert_eq!(unknown.status, Status::Usage);
    assert_eq!(stopping.status, Status::Stopped);
}

#[tokio::test]
async fn nobody_there_and_a_stale_socket_are_absent() {
    let (_temp, place) = place();
    assert!(matches!(Client::connect(&place).await, Err(ConnectError::Absent)));
    // A file that nobody listens on, as after a kill.
    let stale = std::os::unix::net::UnixListener::bind(place.socket()).unwrap();
    drop(stale);
    assert!(matches!(Client::connect(&place).await, Err(ConnectError::Absent)));
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_does_not_answer_is_silent() {
    let (_temp, place) = place();
    let daemon = Scripted::listen(&place);
    let (peer, outcome) = tokio::join!(daemon.accept_silently(), Client::connect(&place));
    let Err(error) = outcome else { panic!("connected") };
    drop(peer);
    assert!(matches!(error, ConnectError::Silent), "{error:?}");
    let failure = error.into_failure(&place);
    assert_eq!(failure.status, Status::Unreachable);
    assert!(failure.to_string().contains("did not answer within 2 s"), "{failure}");
}

#[tokio::test]
async fn another_major_version_and_an_unknown_hello_are_a_mismatch() {
    let old = json!({"event": "error", "data": "Unknown method: client.hello", "details": {"code": "unknown_method"}});
    let new = json!({"event": "result", "data": r#"{"serverVersion":"9","protocol":"3.0"}"#});
    for mut answer in [old, new] {
        let (_temp, place) = place();
        let daemon = Scripted::listen(&place);
        let serve = async {
            let mut peer = daemon.accept_silently().await;
            answer["id"] = peer.request().await["id"].clone();
            peer.send(&answer).await;
            peer
        };
        let (_peer, outcome) = tokio::join!(serve, Client::connect(&place));
        let Err(ConnectError::Failed(failure)) = outcome else { panic!("connected") };
        assert_eq!(failure.status, Status::Mismatch);
    }
}

#[tokio::test]
async fn a_daemon_that_leaves_during_the_greeting_or_later_is_unreachable() {
    let (_temp, place) = place();
    let daemon = Scripted::listen(&place);
    let leave = async { drop(daemon.accept_silently().await) };
    let ((), outcome) = tokio::join!(leave, Client::connect(&place));
    assert!(matches!(outcome, Err(ConnectError::Leaving)));
    let serve = async {
        let mut peer = daemon.accept().await;
        peer.request().await;
    };
    let ask = async {
        let mut client = Client::connect(&place).await.unwrap();
        client.ask("lock.list", json!({})).await.unwrap_err()
    };
    let ((), failure) = tokio::join!(serve, ask);
    assert_eq!(failure.status, Status::Unreachable);
}

#[tokio::test]
async fn the_last_word_before_a_close_is_heard() {
    let (_temp, place) = place();
    let daemon = Scripted::listen(&place);
    let serve = async {
        let mut peer = daemon.accept().await;
        peer.request().await;
        let details = json!({"code": "line_too_long"});
        peer.send(&json!({"id": 0, "event": "error", "data": "too long", "details": details})).await;
    };
    let ask = async {
        let mut client = Client::connect(&place).await.unwrap();
        client.ask("chat", json!({})).await.unwrap()
    };
    let ((), line) = tokio::join!(serve, ask);
    assert_eq!(line.code(), Some(ErrorCode::LineTooLong));
}
