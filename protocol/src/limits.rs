//! Every bound a client can meet, each with its reason.

/// Longest incoming line in bytes, line break excluded: 40 MiB of images in base64 plus JSON fit (contract 1.2).
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;
/// Images of one turn (contract 2.3.1).
pub const MAX_IMAGES: usize = 10;
/// Decoded bytes of one image (contract 2.3.1).
pub const MAX_IMAGE_BYTES: usize = 10 * 1024 * 1024;
/// Decoded bytes of all images of one turn (contract 2.3.1).
pub const MAX_IMAGES_TOTAL_BYTES: usize = 40 * 1024 * 1024;
/// Bytes of UTF-8 of one message: half of what a record of the store holds.
pub const MAX_MESSAGE_BYTES: usize = 8 * 1024 * 1024;
/// Characters of a title: it is shown in lists and kept with every change of its session.
pub const MAX_TITLE_CHARS: usize = 1000;
/// Prompts that may wait behind the running turn of a session (ruling 8).
pub const MAX_QUEUED_PROMPTS: usize = 16;
/// Guidance that may wait in a turn (ruling 9).
pub const MAX_QUEUED_GUIDANCE: usize = 64;
/// Requests of one connection in work at once; the reader waits for a permit beyond it.
pub const MAX_REQUESTS_IN_FLIGHT: usize = 128;
/// Answers waiting for the writer of one connection, beside the session streams that it pulls.
pub const MAX_ANSWERS_QUEUED: usize = 256;
/// Clients connected at once; one more is answered `overloaded` and closed.
pub const MAX_CONNECTIONS: usize = 1024;
/// Events of one session that stay in memory for slow readers.
pub const RING_EVENTS: usize = 8192;
/// Bytes of one session's events that stay in memory for slow readers.
pub const RING_BYTES: usize = 4 * 1024 * 1024;
/// Lines of one write to a client.
pub const WRITE_BATCH_LINES: usize = 64;
/// Bytes of one write to a client: a batch is closed once it has this many.
pub const WRITE_BATCH_BYTES: usize = 64 * 1024;
