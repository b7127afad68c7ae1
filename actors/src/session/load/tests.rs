use super::*;

const NOW: i64 = 1_000_000_000;
const LONG_AGO: i64 = NOW - 10 * 60 * 1000;

fn row(running: bool, client_owned: bool, touched_at: i64, deaths: u32) -> TurnRow {
    TurnRow {
        session: 1,
        key: SessionKey { scope: "global".to_owned(), id: "s".to_owned() },
        turn: "t".to_owned(),
        prompt_seq: 1,
        running,
        client_owned,
        client: String::new(),
        accepted_at: touched_at,
        touched_at,
        deaths,
        mode: String::new(),
        model: String::new(),
    }
}

#[test]
fn the_fate_of_an_open_turn_depends_on_owner_policy_age_and_deaths() {
    use Fate::{Close, Resume};
    // running, client-owned, touched at, deaths so far, last sign of the session, policy, fate
    let table = [
        (true, false, NOW - 1, 0, 0, "recent", Resume),
        (false, false, NOW - 1, 0, 0, "recent", Resume),
        (true, false, LONG_AGO + 1, 0, 0, "recent", Resume),
        (true, false, LONG_AGO, 0, 0, "recent", Close),
        (true, false, LONG_AGO, 0, NOW - 1, "recent", Resume),
        (false, false, LONG_AGO, 0, 0, "recent", Close),
        (true, false, 0, 0, 0, "always", Resume),
        (false, false, 0, 0, 0, "always", Resume),
        (true, false, NOW, 0, NOW, "never", Close),
        (false, false, NOW, 0, NOW, "never", Close),
        (true, true, NOW, 0, NOW, "always", Close),
        (false, true, NOW, 0, NOW, "always", Close),
        (true, false, NOW, 1, NOW, "always", Resume),
        (true, false, NOW, 2, NOW, "always", Close),
        (true, false, NOW, 9, NOW, "always", Close),
        // One that only waited is not what the daemon died of.
        (false, false, NOW, 9, NOW, "always", Resume),
        (true, false, NOW - 1, 0, 0, "something else", Resume),
        (true, false, LONG_AGO, 0, 0, "something else", Close),
        // A clock that was set back.
        (true, false, NOW + 1_000_000, 0, 0, "recent", Resume),
    ];
    for (running, owned, touched, deaths, sign, policy, expected) in table {
        let row = row(running, owned, touched, deaths);
        assert_eq!(fate(&row, sign, policy, NOW), expected, "{row:?}, {sign}, {policy}");
    }
}
