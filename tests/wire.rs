//! The wire: framing, envelopes, error texts, the lines of a turn (contract 1–3, appendix A).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test")]

#[path = "kit/lib.rs"]
mod kit;

#[path = "wire/framing.rs"]
mod framing;
#[path = "wire/lines.rs"]
mod lines;
#[path = "wire/methods.rs"]
mod methods;
#[path = "wire/refusals.rs"]
mod refusals;
