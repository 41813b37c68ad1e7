use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{
    ArgAction, Args,
    builder::{BoolishValueParser, RangedU64ValueParser},
};
use fenced_http::signed::Audience;
use palisade_gateway::{AdminToken, HostNames, Limits};

use super::{
    IssuerName, Lock,
    secret::{SecretParser, secrets},
};
use crate::{address::Address, duration::within, telemetry::LogFormat};

/// The sections of the help about settings, secrets, signals and exit codes.
pub const NOTES: &str = concat!(
    "\
Settings:
  Every option can also be set in the environment; the names are above. An option of the command
  line overrides the environment, and the environment overrides the default.

",
    secrets!(),
    "

Several gateways over one Redis and one Postgres are one service if they have the same
--signing-keys (`palisade signing-key` makes one) and --audience.

Signals:
  SIGTERM, Ctrl-C  finish requests under way, refuse those that wait for a lease, and end; if sent
                   again: end at once
  SIGHUP           read the signing keys again; without --signing-keys as SIGTERM

Exit codes:
  0  ended by a signal; every request is done, and answered if its client read within 20 s
  2  arguments or settings are wrong           4  cannot listen on the address
  3  a server cannot be reached, or refuses us
  5  a file of this machine failed, or requests did not end in time"
);

/// Arguments for serving a gateway.
#[derive(Args, Debug)]
pub struct ServeArgs {
    #[command(flatten)]
    pub(crate) lock: Lock,
    /// Store: `sqlite:FILE`, `postgres://[user[:password]@]HOST[:PORT]/DATABASE`, or the same with
    /// `mysql` or `mariadb` [default: a SQLite file in the user's data folder, with the key that
    /// signs tokens beside it]
    #[arg(id = "store", long = "store", value_name = "URL")]
    #[arg(env = "PALISADE_STORE", hide_env_values = true)]
    pub store: Option<Address>,
    #[command(flatten)]
    pub(crate) issuer: IssuerName,
    #[command(flatten)]
    pub(crate) signing: SigningArgs,
    /// Address to listen on; port 0 picks a free port [default: 127.0.0.1:8080, or another port if
    /// 8080 is taken]
    #[arg(long, value_name = "IP:PORT", env = "PALISADE_ADDR")]
    #[arg(value_parser = address_to_listen_on)]
    pub addr: Option<SocketAddr>,
    /// Names, with commas between them, under which the gateway answers, such as the name of a
    /// proxy that passes `Host` on; the gateway also answers under localhost, 127.0.0.1 and ::1,
    /// and refuses all other names, except for /healthz and /readyz on an address that is not
    /// loopback [default: on a loopback address no further names, on another address any name]
    #[arg(long, value_name = "NAMES", env = "PALISADE_ALLOWED_HOSTS")]
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) allowed_hosts: HostNames,
    /// How long a request may take to arrive, and then how long its service may take without the
    /// wait for a lease (100ms to 5m); a write that takes longer is answered with 504 and still
    /// runs to its end
    #[arg(long, value_name = "DURATION", env = "PALISADE_REQUEST_TIMEOUT")]
    #[arg(default_value = "15s", value_parser = request_timeout)]
    pub(crate) request_timeout: Duration,
    /// How many requests may wait for a lease at the same time; further ones are answered with 503
    #[arg(long, value_name = "N", env = "PALISADE_MAX_WAITING")]
    #[arg(default_value_t = Limits::default().waiting)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(0..=100_000))]
    pub(crate) max_waiting: usize,
    /// How many connections may be open at the same time; further ones wait until one is closed; a
    /// connection without a request is closed after 15 s
    #[arg(long, value_name = "N", env = "PALISADE_MAX_CONNECTIONS")]
    #[arg(default_value_t = Limits::default().connections)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub(crate) max_connections: usize,
    /// How long a connection may be idle, how long the head of a request may take to arrive, and
    /// how long a client may read nothing of its answer; for tests
    #[arg(long, hide = true, value_name = "DURATION", default_value = "15s")]
    #[arg(value_parser = request_timeout)]
    pub(crate) silence: Duration,
    /// The token that operators send as `Authorization: Bearer TOKEN` to /v1/admin: at least 16
    /// visible ASCII characters, 8 of them different [default: /v1/admin does not exist]
    #[arg(
        long,
        value_name = "TOKEN",
        env = "PALISADE_ADMIN_TOKEN",
        hide_env_values = true,
        value_parser = SecretParser::<AdminToken>::new()
    )]
    pub(crate) admin_token: Option<AdminToken>,
    /// Forget the marks of resources that were not locked for this time (1h or more), or `never`;
    /// the role of the gateway has to own the tables, or needs the right to call the functions
    #[arg(long, value_name = "DURATION", env = "PALISADE_FORGET_AFTER")]
    #[arg(default_value = "24h", value_parser = forget_after)]
    pub(crate) forget_after: ForgetAfter,
    /// The lines to log, on stderr: a level, or levels per module, such as `info,sqlx=debug`
    #[arg(long, value_name = "FILTER", env = "RUST_LOG")]
    #[arg(default_value = "info,sqlx=warn")]
    pub log: String,
    /// Format of the log: text for people, or one JSON object per line
    #[arg(long, value_name = "FORMAT", env = "PALISADE_LOG_FORMAT")]
    #[arg(default_value = "text")]
    pub log_format: LogFormat,
}

impl ServeArgs {
    /// Whether these settings show that there is a proxy in front of the gateway, or that there are
    /// operators.
    #[must_use]
    pub fn has_neighbours(&self) -> bool {
        !self.allowed_hosts.is_empty() || self.admin_token.is_some()
    }
}

/// Arguments for the signing of tokens.
#[derive(Args, Debug)]
pub(crate) struct SigningArgs {
    /// File of keys that sign tokens, one `ID SECRET` per line; the first key signs, all keys are
    /// accepted; on SIGHUP the file is read again [default: without --store and --lock a key beside
    /// the store, otherwise a key that is lost when the process ends]
    #[arg(long, value_name = "FILE", env = "PALISADE_SIGNING_KEYS")]
    pub(crate) signing_keys: Option<PathBuf>,
    /// The service for which tokens are signed; tokens for another service are not accepted
    #[arg(long, value_name = "NAME", env = "PALISADE_AUDIENCE")]
    #[arg(default_value = "palisade")]
    pub(crate) audience: Audience,
    /// Neither sign tokens nor require signatures: for trusted clients
    #[arg(long, env = "PALISADE_UNSIGNED", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    #[arg(
        default_value = "false",
        default_missing_value = "true",
        hide_default_value = true
    )]
    #[arg(value_parser = BoolishValueParser::new())]
    pub(crate) unsigned: bool,
}

fn address_to_listen_on(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse();
    address.map_err(|_| "an IP address and a port, such as 127.0.0.1:8080 or [::1]:8080".to_owned())
}

/// The age at which idle marks are forgotten; `None` is never.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForgetAfter(pub(crate) Option<Duration>);

fn forget_after(text: &str) -> Result<ForgetAfter, String> {
    match text {
        "never" => Ok(ForgetAfter(None)),
        text => within(text, "1h", "100000h").map(|age| ForgetAfter(Some(age))),
    }
}

fn request_timeout(text: &str) -> Result<Duration, String> {
    within(text, "100ms", "5m")
}
