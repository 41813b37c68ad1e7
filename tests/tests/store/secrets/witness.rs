//! A witness that keeps all outputs that a user of the store sees.

use std::{collections::BTreeSet, error::Error, fmt};

use fenced_store::FenceError;
use lock_core::Sequencer;

use crate::rule::grant_by;

const LOG: &str = "the log of the database";

/// Grants whose secrets are looked for, and texts to look in.
#[derive(Default)]
pub(crate) struct Witness {
    grants: Vec<Sequencer>,
    errors: Vec<String>,
    others: Vec<String>,
    /// The kinds of errors that there were.
    kinds: BTreeSet<String>,
}

impl Witness {
    /// Makes a grant of a fresh holder, and remembers it.
    pub(crate) fn grant(&mut self, issuer: &str, resource: &str, token: u64) -> Sequencer {
        let grant = grant_by(issuer, resource, token);
        self.remember(&grant);
        grant
    }

    pub(crate) fn remember(&mut self, grant: &Sequencer) {
        self.saw(grant);
        self.grants.push(grant.clone());
    }

    /// Notes a value that can be printed.
    pub(crate) fn saw(&mut self, what: &impl fmt::Debug) {
        self.others.push(format!("{what:?} {what:#?}"));
    }

    /// Notes an error, with its causes.
    pub(crate) fn refused<T>(&mut self, result: Result<T, FenceError>) {
        let Err(error) = result else {
            panic!("something else was expected");
        };
        let debug = format!("{error:?}");
        let kind = debug.split([' ', '(', '{']).next().unwrap_or_default();
        self.kinds.insert(kind.to_owned());
        let mut text = format!("{error} {debug} {error:#?}");
        let mut cause: Option<&dyn Error> = error.source();
        while let Some(error) = cause {
            text.push_str(&format!(" {error} {error:?}"));
            cause = error.source();
        }
        self.errors.push(text);
    }

    /// Checks that every path was taken, and that no text has a secret. `log` is the log of the
    /// database.
    ///
    /// # Panics
    /// If not.
    pub(crate) fn assert_silent(&self, kinds: &[&str], log: &str, trace: &str) {
        let expected: BTreeSet<_> = kinds.iter().copied().map(String::from).collect();
        assert_eq!(self.kinds, expected);
        let (errors, others) = (self.errors.join("\n"), self.others.join("\n"));
        for (name, text) in [
            ("an error", errors.as_str()),
            ("something printed", &others),
            (LOG, log),
            ("the trace", trace),
        ] {
            let text = text.to_lowercase();
            for grant in &self.grants {
                let holder = grant.holder();
                let bytes = holder.expose_bytes();
                let decimal = u128::from_be_bytes(bytes).to_string();
                let listed = format!("{bytes:?}");
                // A statement presents the digest, and a log of the database may have this digest.
                let presented = (name != LOG).then(|| holder.digest());
                for secret in [holder.expose(), decimal, listed]
                    .into_iter()
                    .chain(presented)
                {
                    assert!(
                        !text.contains(&secret),
                        "{name} has the secret of {grant:?}"
                    );
                }
            }
        }
        self.assert_found(&errors, log, trace);
    }

    /// Checks that no presented text of a holder leaves the process, for databases where the rule
    /// is in Rust.
    ///
    /// # Panics
    /// If it does.
    pub(crate) fn assert_not_presented(&self, log: &str, trace: &str) {
        for grant in &self.grants {
            let presented = grant.holder().digest();
            assert!(!log.contains(&presented), "{log}");
            assert!(!trace.contains(&presented), "a trace has what is presented");
        }
    }

    /// The control: checks that the search finds a text that is there.
    fn assert_found(&self, errors: &str, log: &str, trace: &str) {
        let claimed = &self.grants[0];
        let (resource, holder) = (claimed.resource().as_str(), claimed.holder());
        assert!(errors.contains(resource) && trace.contains(resource));
        let has_digest = log.contains(&holder.digest()) || log.contains(&holder.kept_digest());
        assert!(log.is_empty() || (log.contains(resource) && has_digest));
        assert!(
            self.others
                .join("")
                .contains(&claimed.holder().fingerprint())
        );
    }
}
