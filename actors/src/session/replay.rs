//! What a reader missed, from the store: the same events that the ring held, with the streamed text cut
//! out of the answers at exactly the cursor.

use std::ops::ControlFlow;
use std::sync::Arc;

use seekclaw_protocol::{Event, Timestamp, TurnId};
use seekclaw_storage::record::log::{Answer, Body, Entry, Streamed};
use seekclaw_storage::store::{ReadError, Reader};

use super::log::Published;
use super::record;

/// Events of one page; a page ends at a record behind which no earlier text can follow.
const PAGE_EVENTS: usize = 512;

/// Reads a page of what was shown after `cursor` and up to `until`, and the cursor after it. Blocks.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn page(
    reader: &Reader,
    uid: u64,
    cursor: u64,
    until: u64,
) -> Result<(Vec<Arc<Published>>, u64), ReadError> {
    let mut page = Page { events: Vec::new(), cursor, until };
    let mut reached = until;
    // Text is stored with its answer, which may come after `until`: the read goes on to where no more of it
    // can follow.
    reader.log(uid, cursor, &mut |entry| {
        page.take(&entry);
        if !settles_text(&entry.body) {
            return ControlFlow::Continue(());
        }
        if entry.seq < until && page.events.len() < PAGE_EVENTS {
            return ControlFlow::Continue(());
        }
        reached = entry.seq.min(until);
        ControlFlow::Break(())
    })?;
    page.events.sort_by_key(|event| event.seq);
    Ok((page.events, reached))
}

struct Page {
    events: Vec<Arc<Published>>,
    cursor: u64,
    until: u64,
}

impl Page {
    fn take(&mut self, entry: &Entry) {
        if let Body::Answer(answer) = &entry.body {
            self.take_text(entry, answer);
        } else if entry.seq <= self.until
            && let Some(event) = record::event_of(&entry.body)
        {
            self.push(entry.seq, entry, event);
        }
    }

    fn take_text(&mut self, entry: &Entry, answer: &Answer) {
        let (mut thinking, mut text) = (answer.thinking.as_str(), answer.text.as_str());
        for mark in &answer.marks {
            let length = usize::try_from(mark.bytes).unwrap_or(usize::MAX);
            let rest = match mark.kind {
                Streamed::Thinking => &mut thinking,
                Streamed::Text => &mut text,
            };
            let Some((piece, after)) = rest.split_at_checked(length) else { return };
            *rest = after;
            if mark.seq > self.cursor && mark.seq <= self.until {
                let text = piece.to_owned();
                let event = match mark.kind {
                    Streamed::Thinking => Event::Thinking { text },
                    Streamed::Text => Event::Delta { text },
                };
                self.push(mark.seq, entry, event);
            }
        }
    }

    fn push(&mut self, seq: u64, entry: &Entry, event: Event) {
        let turn = TurnId::from_text(&entry.turn);
        self.events.push(Arc::new(Published::new(seq, Timestamp(entry.at), turn, event)));
    }
}

/// Whether no text with a lower number can follow: the running turn recorded this while nothing streamed.
fn settles_text(body: &Body) -> bool {
    matches!(body, Body::Answer(_) | Body::Result(_) | Body::Applied(_) | Body::Note(_))
}

#[cfg(test)]
mod tests;
