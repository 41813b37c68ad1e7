//! The fenced store while its database fails: sessions that end, servers that are killed, and data
//! that is lost.

mod lost_marks;
