//! A role gets what is documented, and what it leaves in the tables can be read.

mod documented;
mod stored;
