//! Deeds of clients and of the store in words: each is the rest of a sentence that begins with the
//! name of the client or of the store.

use std::fmt;

use super::act::{Act, How, Outcome, Stored};
use crate::short::{ms, token as short};

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begins { work, task, .. } => write!(f, "begins work {work}: {task:?}"),
            Self::Asks { work, resource } => write!(f, "asks for {resource} (work {work})"),
            Self::Holds { .. } | Self::StillHolds { .. } | Self::Released { .. } => {
                self.of_lease(f)
            }
            Self::Refused { resource, token } => {
                write!(f, "is refused: {} is stale at {resource}", short(*token))
            }
            Self::Reads { resource, count } => write!(f, "reads {count} at {resource}"),
            Self::Puts { write, name } => {
                write!(f, "puts {name} into its transaction, write {write}")
            }
            Self::Writes { write, token } => {
                write!(f, "commits write {write} under token {}", short(*token))
            }
            Self::Wrote { write, outcome } => write!(f, "learns that write {write} {outcome}"),
            Self::Job { row, ran, done } => {
                let ran = if *ran { "has run" } else { "has not run" };
                match done {
                    Some(token) => write!(f, "{ran} {row}, done under token {}", short(*token)),
                    None => write!(f, "{ran} {row}, not known to be done"),
                }
            }
            Self::Leads {
                resource,
                token,
                left,
            } => {
                let (token, left) = (short(*token), ms(*left));
                write!(f, "leads {resource} in term {token}, with {left} left")
            }
            Self::Claimed { resource, token } => {
                write!(f, "has claimed token {} at {resource}", short(*token))
            }
            Self::Requests { .. } | Self::Handles { .. } | Self::Answered { .. } => self.at_edge(f),
            Self::Unfenced { resource, read } => {
                write!(
                    f,
                    "writes {} over {read} to {resource} without a fence",
                    read + 1
                )
            }
            Self::Ends { work, how } => write!(f, "ends work {work}: {how}"),
        }
    }
}

impl Act {
    fn of_lease(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds {
                work,
                resource,
                token,
                left,
                is_claimed,
                is_shared,
            } => {
                let (token, left) = (short(*token), ms(*left));
                write!(f, "holds {resource} under token {token} for {left}")?;
                f.write_str(if *is_claimed { ", claimed" } else { "" })?;
                f.write_str(if *is_shared { ", shared" } else { "" })?;
                write!(f, " (work {work})")
            }
            Self::StillHolds {
                resource,
                token,
                left,
            } => {
                let (token, left) = (short(*token), ms(*left));
                write!(f, "still holds {resource} under token {token} for {left}")
            }
            Self::Released {
                resource,
                token,
                was_held,
                saw_loss,
                is_shared,
            } => {
                f.write_str(match was_held {
                    Some(true) => "has released ",
                    Some(false) => "has not released, because it was gone, ",
                    None => "does not know whether it has released ",
                })?;
                write!(f, "{resource} under token {}", short(*token))?;
                f.write_str(if *saw_loss {
                    ", which it knew to be lost"
                } else {
                    ""
                })?;
                f.write_str(if *is_shared { ", shared" } else { "" })
            }
            _ => Ok(()),
        }
    }
}

impl Act {
    fn at_edge(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests {
                request,
                token,
                flaw,
                door,
            } => {
                let token = short(*token);
                write!(
                    f,
                    "sends HTTP request {request} with token {token} to {door:?}"
                )?;
                match flaw {
                    Some(flaw) => write!(f, ", wrong: {flaw:?}"),
                    None => Ok(()),
                }
            }
            Self::Handles {
                request,
                write,
                about,
                resource,
                token,
            } => {
                let token = short(*token);
                write!(
                    f,
                    "has its HTTP request {request} about {about} handled: write {write}"
                )?;
                write!(f, " under token {token} of {resource}")
            }
            Self::Answered {
                request,
                write,
                status,
                accepted,
                is_believed,
            } => {
                write!(f, "is answered {status} to HTTP request {request}")?;
                if let Some(write) = write {
                    write!(f, ", write {write}")?;
                }
                if let Some(token) = accepted {
                    write!(f, ", accepted under token {}", short(*token))?;
                }
                f.write_str(if *is_believed {
                    ", and believes it"
                } else {
                    ""
                })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Committed => "is committed",
            Self::Unknown => "may be committed",
            Self::Refused => "is refused",
            Self::Failed => "has failed",
        })
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Held => "another holds the lease",
            Self::Fenced => "stale, or its lease was lost",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        })
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mark {
                resource,
                token,
                by,
            } => {
                write!(f, "has the mark {} for {resource}", short(*token))?;
                match by {
                    Some(client) => write!(f, ", by client {client}"),
                    None => Ok(()),
                }
            }
            Self::Row {
                name,
                resource,
                row,
                mark,
            } => {
                let (token, mark) = (short(row.token), short(*mark));
                write!(f, "has {name} = {} by write {}", row.count, row.write)?;
                write!(f, " under token {token}; the mark of {resource} is {mark}")
            }
        }
    }
}
