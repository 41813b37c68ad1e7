use crate::{Error, ErrorKind, InitialToken, Operation};

/// Settings of a lock service on etcd.
#[derive(Clone, Debug)]
#[must_use]
pub struct EtcdOptions {
    pub(super) prefix: String,
    pub(super) initial_token: InitialToken,
}

impl EtcdOptions {
    /// What all keys begin with, before a `/`. Defaults to `palisade`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Where tokens start when there is no floor yet. Defaults to the clock of the first client.
    pub const fn initial_token(mut self, initial: InitialToken) -> Self {
        self.initial_token = initial;
        self
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        if (1..=64).contains(&self.prefix.len()) && self.prefix.bytes().all(plain) {
            return Ok(());
        }
        Err(
            Error::not_applied(ErrorKind::InvalidInput, Operation::Connect, super::KIND)
                .because("a prefix is 1 to 64 ASCII letters, digits or -._:"),
        )
    }
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            prefix: "palisade".to_owned(),
            initial_token: InitialToken::default(),
        }
    }
}
