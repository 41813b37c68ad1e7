//! The conformance cases.
