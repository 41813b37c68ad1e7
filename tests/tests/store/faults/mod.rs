//! The fenced store while its database fails: sessions that end, servers that are killed, and what
//! is lost for good.

mod lost_marks;
