//! A role can make the documented calls, and all rows that it leaves in the tables can be read.

mod documented;
mod stored;
