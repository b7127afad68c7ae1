//! Commands that a daemon left running when it was killed. Their mark names the home, and the instance lock
//! says that no earlier daemon of this home lives: what carries the mark and is not ours is an orphan.

use std::path::Path;

use super::group::{MARK, end_survivors};
use super::table;
use crate::tools::text;

/// Characters of the hash that stands for a home.
const TAG_CHARS: usize = 16;

/// The value of the mark of call number `call` of this process.
pub(super) fn mark(home: &Path, call: u64) -> String {
    format!("{}-{}-{call}", tag(home), std::process::id())
}

/// Ends what earlier daemons of `home` left running, however deep it hides; returns how many processes.
pub async fn end_orphans(home: &Path) -> usize {
    let (all, own) =
        (format!("{MARK}={}-", tag(home)), format!("{MARK}={}-{}-", tag(home), std::process::id()));
    let found = tokio::task::spawn_blocking(move || table::marked(&all, &own)).await;
    let orphans = found.unwrap_or_default();
    for orphan in &orphans {
        tracing::warn!(
            pid = orphan.pid,
            command = orphan.command,
            "an earlier daemon left this running: ended"
        );
    }
    let count = orphans.len();
    if count > 0 {
        end_survivors(orphans).await;
    }
    count
}

fn tag(home: &Path) -> String {
    text::hash(home.as_os_str().as_encoded_bytes()).chars().take(TAG_CHARS).collect()
}
