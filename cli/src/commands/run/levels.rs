//! Values of flags, checked before anything is sent.

use std::time::Duration;

use seekclaw_protocol::{Mode, ReasoningLevel};

/// A mode by its name.
pub(crate) fn parse_mode(text: &str) -> Result<Mode, String> {
    Mode::parse(text).ok_or_else(|| "must be one of: plan, readonly, edit, auto".to_owned())
}

/// A reasoning level by its name.
pub(crate) fn parse_level(text: &str) -> Result<ReasoningLevel, String> {
    let named =
        ReasoningLevel::ALL.into_iter().find(|level| level.as_str().eq_ignore_ascii_case(text.trim()));
    named.ok_or_else(|| "must be one of: none, low, medium, high, max, xhigh, ultra".to_owned())
}

/// A time: `90`, `90s`, `1.5m`, `2h`, `500ms`; seconds if it has no unit.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("must be a time such as 90s, 5m or 1h".to_owned()),
    };
    let number: f64 = number.trim().parse().map_err(|_| "must be a time such as 90s, 5m or 1h".to_owned())?;
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("must be longer than nothing".to_owned()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("2 h"), Ok(Duration::from_secs(7200)));
        assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "s", "-1", "0", "5 weeks", "1e400", "nan"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn levels_and_modes_go_by_name_alone() {
        assert_eq!(parse_level("XHigh"), Ok(ReasoningLevel::Xhigh));
        assert!(parse_level("3").is_err());
        assert_eq!(parse_mode(" Edit"), Ok(Mode::Edit));
        assert!(parse_mode("ro").is_err());
    }
}
