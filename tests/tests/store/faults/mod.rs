//! The fenced store while its database fails: sessions that end, servers that are killed, and what
//! is lost for good.

pub(super) mod grant;
mod lost_marks;
