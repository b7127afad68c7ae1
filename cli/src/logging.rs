//! What the daemon logs: tracing to standard error, panics included.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::output::note;

/// Logs to standard error with the filter of `SEEKCLAW_LOG`, `info` if there is none.
pub(crate) fn install() {
    let wanted = std::env::var("SEEKCLAW_LOG").ok().filter(|filter| !filter.trim().is_empty());
    let parsed = wanted.as_deref().and_then(parse);
    let refused = wanted.is_some() && parsed.is_none();
    let filter = parsed.unwrap_or_else(|| EnvFilter::new("info"));
    let colour = crate::render::style::Style::of(std::io::stderr().is_terminal()).is_rich();
    let installed = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        // A closed standard error must not turn a log line into a panic.
        .log_internal_errors(false)
        .try_init();
    std::panic::set_hook(Box::new(log_panic));
    if let Err(error) = installed {
        tracing::debug!(%error, "logging was set up before");
    }
    if refused {
        tracing::warn!(filter = wanted, "{REFUSED}");
    }
}

/// Says so if `SEEKCLAW_LOG` is no filter: a daemon in the background would tell its log alone.
pub(crate) fn complain() {
    let wanted = std::env::var("SEEKCLAW_LOG").unwrap_or_default();
    if !wanted.trim().is_empty() && parse(&wanted).is_none() {
        note(&format!("warning: {REFUSED}"));
    }
}

const REFUSED: &str = "SEEKCLAW_LOG is no valid filter, using info: try debug, or info,seekclaw_actors=trace";

/// A filter, unless it is none. A lone word that is no level would name a module and silence all others, so it
/// must look like one of ours.
fn parse(filter: &str) -> Option<EnvFilter> {
    let levels = ["off", "error", "warn", "info", "debug", "trace", "0", "1", "2", "3", "4", "5"];
    let lone = |part: &&str| !part.is_empty() && !part.contains(['=', '[']);
    let known = |word: &str| {
        word.starts_with("seekclaw") || levels.iter().any(|level| level.eq_ignore_ascii_case(word))
    };
    let sensible = filter.split(',').map(str::trim).filter(lone).all(known);
    sensible.then(|| EnvFilter::try_new(filter).ok()).flatten()
}

fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    let thread = std::thread::current();
    tracing::error!(
        thread = thread.name().unwrap_or("unnamed"),
        at = panic.location().map(ToString::to_string),
        "panic: {}",
        text.as_deref().unwrap_or("no text")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_no_filter() {
        for good in ["info", "DEBUG", "warn,seekclaw_actors=trace", "seekclaw", "redb=debug, error"] {
            assert!(parse(good).is_some(), "{good}");
        }
        for wrong in ["nonsense", "info,verbose", "seekclaw=loud", "=,="] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
