//! The meaning of a failure of the client or of the servers.

use zookeeper_client::{Error as ZooKeeperError, MultiWriteError};

use lock_core::{Error, ErrorKind};

/// Why a request has no usable answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The node is not there. Nothing changed.
    NoNode,
    /// Another client has changed the node. Nothing changed.
    BadVersion,
    /// The node is there already. Nothing changed.
    NodeExists,
    /// The session is over, and its nodes are gone with it. No request of the session will still be
    /// carried out.
    SessionOver(ZooKeeperError),
    /// The servers refused. Nothing changed.
    Refused(ZooKeeperError),
    /// A floor is no number. Nothing changed.
    FloorBroken,
    /// It may have happened.
    NoAnswer(Option<ZooKeeperError>),
}

/// The error of an operation that cannot go on because of this.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let error = Self::not_applied;
        match failure {
            Failure::NoNode => {
                error(ErrorKind::Unavailable).because("a node was deleted meanwhile")
            }
            Failure::BadVersion | Failure::NodeExists => {
                error(ErrorKind::Unavailable).because("a node was changed meanwhile")
            }
            Failure::FloorBroken => {
                error(ErrorKind::CounterBroken).because("a node below `floors` is no number")
            }
            Failure::SessionOver(source) => error(ErrorKind::Unavailable)
                .because("the session is over")
                .caused_by(source),
            Failure::Refused(source) => error(ErrorKind::Refused)
                .because(advice(&source))
                .caused_by(source),
            Failure::NoAnswer(source) => {
                let error = Self::unknown(ErrorKind::Unavailable);
                match source {
                    Some(source) => error.because("the connection broke").caused_by(source),
                    None => error.because("no answer in time"),
                }
            }
        }
    }
}

impl From<ZooKeeperError> for Failure {
    fn from(error: ZooKeeperError) -> Self {
        match error {
            ZooKeeperError::NoNode => Self::NoNode,
            ZooKeeperError::BadVersion => Self::BadVersion,
            ZooKeeperError::NodeExists => Self::NodeExists,
            ZooKeeperError::SessionExpired | ZooKeeperError::ClientClosed => {
                Self::SessionOver(error)
            }
            ZooKeeperError::NoAuth
            | ZooKeeperError::AuthFailed
            | ZooKeeperError::InvalidAcl
            | ZooKeeperError::QuotaExceeded
            | ZooKeeperError::NoChildrenForEphemerals
            | ZooKeeperError::NotEmpty
            | ZooKeeperError::NotReadOnly
            | ZooKeeperError::BadArguments(_)
            | ZooKeeperError::Unimplemented => Self::Refused(error),
            error => Self::NoAnswer(Some(error)),
        }
    }
}

impl From<MultiWriteError> for Failure {
    fn from(error: MultiWriteError) -> Self {
        ZooKeeperError::from(error).into()
    }
}

fn advice(error: &ZooKeeperError) -> &'static str {
    match error {
        ZooKeeperError::NoAuth | ZooKeeperError::InvalidAcl => {
            "the user may not do that: put user and password into the URL, and see the ACLs"
        }
        ZooKeeperError::AuthFailed => "user or password is wrong",
        ZooKeeperError::QuotaExceeded => "the quota of the directory is used up",
        _ => "the servers do not do that",
    }
}
