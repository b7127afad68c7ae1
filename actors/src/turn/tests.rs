#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "test"
)]

mod cancel;
mod crash;
mod guide;

use std::sync::Arc;
use std::time::Duration;

use seekclaw_protocol::Event;
use serde_json::json;

use super::TurnArgs;
use super::faults::{self, Fault, How, When};
use crate::session::Accepted;
use crate::stage::model::{Act, Ask, Script};
use crate::stage::{Seat, Seen, Stage, until_end};

/// A file whose last line every edit of a script moves down: a repeated edit shows.
const FILE: &str = "start\nEND\n";
const EDITED: &str = "start\nline\nEND\n";

/// Does `act` when a turn of the session takes the message of `point` for the `occurrence`-th time.
fn when(
    seat: &Seat,
    point: &str,
    occurrence: usize,
    when: When,
    act: impl Fn(&TurnArgs) + Send + Sync + 'static,
) {
    let how = How::Do(Arc::new(act));
    faults::plan(&seat.key.id, Fault { point: point.to_owned(), occurrence, when, how });
}

fn edit(file: &str) -> Act {
    Act::Call("edit_file", json!({"path": file, "old_string": "END", "new_string": "line\nEND"}))
}

fn read(file: &str) -> Act {
    Act::Call("read_file", json!({"path": file}))
}

/// Says "done" after a call of `call`.
fn after_one(call: fn() -> Act) -> Script {
    Script::new(move |ask: &Ask| if ask.step == 0 { vec![call()] } else { vec![Act::Say("done")] })
}

async fn begun(script: Script) -> (Stage, Seat, Accepted, Seen) {
    let stage = Stage::new(script).await;
    let seat = stage.seat().await;
    let accepted = stage.prompt(&seat, "go").await.unwrap();
    let seen = stage.watch(&accepted);
    (stage, seat, accepted, seen)
}

fn count(seen: &Seen, fits: impl Fn(&Event) -> bool) -> usize {
    seen.lock().unwrap().iter().filter(|(_, event)| fits(event)).count()
}

#[tokio::test(start_paused = true)]
async fn a_turn_with_tools_runs_to_its_end() {
    let (stage, seat, _, seen) = begun(after_one(|| edit("a.txt"))).await;
    stage.put_file("a.txt", FILE);
    let end = until_end(&seen).await;
    stage.settled(&seat).await;
    assert_eq!(end, Event::Done { text: "done".to_owned() });
    assert_eq!(stage.file("a.txt"), EDITED);
    assert_eq!(stage.row(&seat).await.messages, 4);
    assert_eq!(seen.lock().unwrap().last().unwrap().0, Duration::ZERO, "nothing waits for a clock");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_cut_runs_no_call_and_is_continued() {
    let script = Script::new(|ask: &Ask| match ask.step {
        0 => vec![Act::Say("half "), edit("a.txt"), Act::Cap],
        _ => vec![Act::Say("done")],
    });
    let stage = Stage::new(script).await;
    stage.put_file("a.txt", FILE);
    let seat = stage.seat().await;
    let seen = stage.watch(&stage.prompt(&seat, "go").await.unwrap());
    assert_eq!(until_end(&seen).await, Event::Done { text: "done".to_owned() });
    stage.settled(&seat).await;
    let history = stage.history(&seat).await;
    let texts: Vec<_> = history.iter().map(|message| message.text.as_str()).collect();
    assert_eq!([texts[0], texts[1], texts[3]], ["go", "half ", "done"]);
    assert!(texts[2].contains("was not run") && !history[2].success, "{}", texts[2]);
    assert_eq!(stage.file("a.txt"), FILE);
}
