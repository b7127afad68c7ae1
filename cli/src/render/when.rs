//! Times as people say them.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// How long ago the instant in `text` was; text that is no instant is shown as it is.
pub(crate) fn ago(text: &str) -> String {
    DateTime::parse_from_rfc3339(text)
        .map_or_else(|_| text.to_owned(), |at| ago_from(at.to_utc(), Utc::now()))
}

fn ago_from(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let seconds = (now - at).num_seconds();
    match seconds {
        ..-60 => format!("in {}", span(seconds.unsigned_abs())),
        -60..10 => "just now".to_owned(),
        10..2_592_000 => format!("{} ago", span(seconds.unsigned_abs())),
        _ => at.format("%Y-%m-%d").to_string(),
    }
}

fn span(seconds: u64) -> String {
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        86_400..172_800 => "1 day".to_owned(),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A duration in milliseconds, short.
pub(crate) fn took(ms: f64) -> String {
    let duration = Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default();
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{:.1} s", duration.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_told_relative_to_now() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let at = |seconds: i64| ago_from(now - chrono::TimeDelta::seconds(seconds), now);
        assert_eq!(at(0), "just now");
        assert_eq!(at(45), "45 s ago");
        assert_eq!(at(60 * 5), "5 min ago");
        assert_eq!(at(3600 * 3), "3 h ago");
        assert_eq!(at(86_400), "1 day ago");
        assert_eq!(at(86_400 * 4), "4 days ago");
        assert_eq!(at(86_400 * 40), "2026-12-06");
        assert_eq!(at(-3600), "in 1 h");
    }

    #[test]
    fn what_is_no_instant_is_shown_as_it_is() {
        assert_eq!(ago("soon"), "soon");
        assert_eq!(ago("1999-01-01T00:00:00.1234567+00:00"), "1999-01-01");
    }

    #[test]
    fn durations_are_short() {
        assert_eq!(took(3.7), "3 ms");
        assert_eq!(took(1234.0), "1.2 s");
        assert_eq!(took(125_000.0), "2 min 5 s");
        assert_eq!(took(-1.0), "0 ms");
    }
}
