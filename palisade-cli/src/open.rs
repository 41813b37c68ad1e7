//! Connects to the servers that options name.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use fenced_store::{Dialect, FencedLocks, FencedStore};
use lock_core::{ErrorKind, InitialToken, Issuer, LockManager};
use palisade_gateway::{Gateway, Setup};
use tokio::{net::TcpListener, time::timeout};

use crate::{
    address::Address,
    database::{self, AnyStore, Tables},
    failure::{Failure, with_sources},
};

/// The address to listen on, unless the user names another one.
const USUAL_ADDR: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// How long the lock service may take to answer at the start.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// Connects to lock service and store, creates missing tables, and makes a gateway to them. The
/// issuer is the name of the lock service in the store, if that is not its kind. New counters of
/// the lock service start at the initial token.
///
/// # Errors
/// [`Failure::Usage`] for an address that is invalid, [`Failure::Unreachable`] for a server that
/// does not answer or does not let us in.
///
/// # Cancel safety
/// Cancel safe: tables may have been created.
pub async fn gateway(
    lock: &Address,
    store_address: &Address,
    issuer: Option<&Issuer>,
    initial_token: InitialToken,
    setup: Setup,
) -> Result<(Gateway, AnyStore), Failure> {
    let (locks, store) = both(
        lock,
        store_address,
        issuer,
        initial_token,
        Tables::OfGateway,
    )
    .await?;
    let is_one = lock == store_address;
    let gateway = match store.clone() {
        AnyStore::MySql(store) => Gateway::new(pair(locks, store, is_one), setup),
        AnyStore::Postgres(store) => Gateway::new(pair(locks, store, is_one), setup),
        AnyStore::Sqlite(store) => Gateway::new(pair(locks, store, is_one), setup),
    };
    Ok((gateway, store))
}

/// Connects to lock service and store, and creates missing tables.
///
/// # Errors
/// As [`gateway`].
///
/// # Cancel safety
/// As [`gateway`].
pub(crate) async fn both(
    lock: &Address,
    store: &Address,
    issuer: Option<&Issuer>,
    initial_token: InitialToken,
    tables: Tables,
) -> Result<(LockManager, AnyStore), Failure> {
    let locks = lock_service("lock", lock, issuer, initial_token);
    if lock.is_database() {
        // The store creates the schema, or the file, that both need.
        let store = database::open(store, tables).await?;
        Ok((locks.await?, store))
    } else {
        // The user learns of a mistake in one address even if the other server is down.
        Ok((locks.await?, database::open(store, tables).await?))
    }
}

/// A lock service and a store; `is_one` if they are the same database.
pub(crate) fn pair<DB: Dialect>(
    locks: LockManager,
    store: FencedStore<DB>,
    is_one: bool,
) -> FencedLocks<DB> {
    match is_one {
        true => FencedLocks::in_one_database(locks, store),
        false => FencedLocks::new(locks, store),
    }
}

/// Listens on the named address. If none is named, listens on the usual address, or on another port
/// if the usual port is in use.
///
/// # Errors
/// [`Failure::CannotListen`] if the address is in use, or is not an address of this machine.
///
/// # Cancel safety
/// Cancel safe.
pub async fn listen(named: Option<SocketAddr>) -> Result<TcpListener, Failure> {
    let addr = named.unwrap_or(USUAL_ADDR);
    match TcpListener::bind(addr).await {
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::AddrInUse => {
            TcpListener::bind((addr.ip(), 0)).await
        }
        bound => bound,
    }
    .map_err(|source| Failure::CannotListen { addr, source })
}

/// Connects to the lock service that an option names. The issuer is the name of the lock service in
/// the store, if that is not its kind. New counters of the lock service start at the initial token.
///
/// # Errors
/// [`Failure::Usage`] for an address that is invalid, [`Failure::Unreachable`] for a server
/// that does not answer or does not let us in.
pub(crate) async fn lock_service(
    option: &'static str,
    address: &Address,
    issuer: Option<&Issuer>,
    initial_token: InitialToken,
) -> Result<LockManager, Failure> {
    let mut connecting = palisade::connect(address.secret()).initial_token(initial_token);
    if let Some(issuer) = issuer {
        connecting = connecting.issuer(issuer.clone());
    }
    let unreachable = |why: String| Failure::Unreachable {
        role: "lock service",
        option,
        address: address.clone(),
        why,
    };
    match timeout(CONNECT_TIME_MAX, connecting).await {
        Ok(Ok(locks)) => Ok(locks),
        Ok(Err(error)) => Err(match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::Unsupported => {
                Failure::Usage(format!("--{option} {address}: {error}"))
            }
            _ => unreachable(with_sources(&error)),
        }),
        Err(_) => Err(unreachable(format!(
            "no answer within {CONNECT_TIME_MAX:?}"
        ))),
    }
}
