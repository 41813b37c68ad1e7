//! A service over HTTP: its answers are compared with the rows of its store.

use std::collections::BTreeMap;

use super::{
    Finding,
    act::{Act, Stored, WriteId},
};
use crate::edge::{Door, EDGE, Flaw};

#[derive(Debug, Default)]
pub(super) struct Edge {
    requests: BTreeMap<WriteId, Request>,
    /// Each write of the handler. A copy of a request leads to a write of its own.
    writes: BTreeMap<WriteId, Write>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    token: u64,
    flaw: Option<Flaw>,
    door: Door,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    request: WriteId,
    /// The token under which the handler writes.
    token: u64,
    is_stored: bool,
    /// The status that says that nothing was written.
    refused: Option<u16>,
}

impl Edge {
    pub(super) fn act(&mut self, act: &Act) -> Finding {
        match act {
            Act::Requests {
                request,
                token,
                flaw,
                door,
            } => {
                let (token, flaw, door) = (*token, *flaw, *door);
                let sent = Request { token, flaw, door };
                self.requests.insert(*request, sent);
                None
            }
            Act::Handles {
                request,
                write,
                about,
                resource,
                token,
            } => {
                let began = Write {
                    request: *request,
                    token: *token,
                    is_stored: false,
                    refused: None,
                };
                self.writes.insert(*write, began);
                self.may_be_handled(*request, about, resource)
            }
            Act::Answered {
                request,
                write,
                status,
                accepted,
                is_believed,
            } => self
                .is_honest(*request, *write, *status, *accepted)
                .or_else(|| self.is_read_right(*request, *status, *accepted, *is_believed)),
            _ => None,
        }
    }

    /// The handler has got a request: the layer has let it pass.
    fn may_be_handled(&self, request: WriteId, about: &str, resource: &str) -> Finding {
        if about != resource {
            let what = format!("request {request} about {about} passed with a token of {resource}");
            return Some(("http-scope", what));
        }
        let sent = self.requests.get(&request)?;
        let flaw = sent.flaw.filter(|flaw| flaw.shows(sent.door))?;
        let what = format!("request {request} passed with {flaw:?} at {:?}", sent.door);
        Some((flaw.promise(), what))
    }

    /// An answer tells the truth about its write.
    fn is_honest(
        &mut self,
        request: WriteId,
        id: Option<WriteId>,
        status: u16,
        accepted: Option<u64>,
    ) -> Finding {
        let write = id.and_then(|id| self.writes.get_mut(&id));
        if let Some(accepted) = accepted {
            let is_so = write.is_some_and(|write| write.is_stored && write.token == accepted);
            return (!is_so).then(|| {
                let what = format!("request {request} is accepted with {accepted}, and not stored");
                ("both-edge", what)
            });
        }
        // The outcome of a 500 or a 504 may be unknown.
        if !matches!(status, 400..=499 | 503) {
            return None;
        }
        let write = write?;
        write.refused = Some(status);
        write.is_stored.then(|| {
            let what = format!("request {request} is answered with {status}, and stored");
            ("G9", what)
        })
    }

    /// A client takes a write as fenced only if a 2xx accepts its own token.
    fn is_read_right(
        &self,
        request: WriteId,
        status: u16,
        accepted: Option<u64>,
        is_believed: bool,
    ) -> Finding {
        let sent = self.requests.get(&request)?;
        let is_success = (200..300).contains(&status);
        if is_believed != (is_success && accepted == Some(sent.token)) {
            let what = format!(
                "{status} for request {request}, accepted {accepted:?}, is taken \
                 for {is_believed}"
            );
            return Some(("http-client", what));
        }
        let flaw = sent.flaw.filter(|_| is_success)?;
        let what = format!("request {request} with {flaw:?} is answered with {status}");
        Some((flaw.promise(), what))
    }

    pub(super) fn stored(&mut self, stored: &Stored) -> Finding {
        match stored {
            Stored::Mark {
                resource,
                token,
                by: Some(EDGE),
            } => {
                let what = format!("a request has raised the mark of {resource} to {token}");
                Some(("both-edge", what))
            }
            Stored::Mark { .. } => None,
            Stored::Row { row, .. } => {
                let write = self.writes.get_mut(&row.write)?;
                write.is_stored = true;
                let request = write.request;
                if row.token != write.token {
                    let what = format!("request {request} is stored under {}", row.token);
                    return Some(("G3", what));
                }
                if let Some(status) = write.refused {
                    let what = format!("request {request} was answered {status}, and is stored");
                    return Some(("G9", what));
                }
                let flaw = self.requests.get(&request)?.flaw?;
                let what = format!("request {request} is stored in spite of {flaw:?}");
                Some(("G3", what))
            }
        }
    }
}
