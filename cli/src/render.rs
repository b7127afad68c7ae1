//! Text for people: neutralised, styled where a terminal shows it, bounded where it could be long.

pub(crate) mod diff;
pub(crate) mod escape;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod when;
