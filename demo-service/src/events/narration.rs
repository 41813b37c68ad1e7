use std::fmt;

use palisade_cli::duration::seconds;

use super::{ClientName, Event, Story, What};

/// The text of one event, without its time.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.client.map_or("", ClientName::for_people);
        match &self.what {
            What::AcquireRequested { .. } => write!(f, "{who} asks for the lease"),
            What::Held { .. } => write!(f, "{who} learns that the lease is held"),
            What::Granted { token, ttl_ms } => {
                write!(
                    f,
                    "{who} is granted the lease for {}, token {token}",
                    seconds(*ttl_ms)
                )
            }
            What::Claimed { token } => write!(f, "storage raises its high-water mark to {token}"),
            What::Renewed { token, .. } => write!(f, "{who} renews its lease, token {token}"),
            What::RenewRefused { token } => {
                write!(f, "{who} cannot renew: its lease has ended, token {token}")
            }
            What::LeaseExpired { token } => write!(f, "the lease of {who} expires, token {token}"),
            What::Released { token } => write!(f, "{who} releases its lease, token {token}"),
            What::LetGo => write!(f, "{who} has no lease any more, as far as it knows"),
            What::Read { balance } if self.story == Story::Jobs => match balance {
                0 => write!(f, "{who} looks: the job is not done"),
                _ => write!(f, "{who} looks: the job is done"),
            },
            What::Read { balance } => write!(f, "{who} reads the balance: {balance}"),
            What::Paused { pid } => write!(f, "{who} is stopped by SIGSTOP (pid {pid})"),
            What::Resumed { paused_ms, .. } => {
                write!(
                    f,
                    "{who} is resumed by SIGCONT after {}",
                    seconds(*paused_ms)
                )
            }
            What::Killed { pid } => write!(f, "{who} is killed by SIGKILL (pid {pid})"),
            What::WriteAccepted { .. } | What::WriteRefused { .. } => self.write_outcome(who, f),
            What::Verdict { found, .. } if self.story == Story::Jobs => match found {
                1 => write!(f, "the job was done once, as it should be"),
                times => write!(f, "the job was done {times} times"),
            },
            What::Verdict {
                expected,
                found,
                lost_update: true,
                ..
            } => {
                write!(
                    f,
                    "lost update: the balance is {found}, it should be {expected}"
                )
            }
            What::Verdict { found, .. } => {
                write!(f, "nothing lost: the balance is {found}, as it should be")
            }
        }
    }
}

impl Event {
    fn write_outcome(&self, who: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::WriteAccepted {
                token,
                status,
                before,
                after,
                ..
            } => {
                let before = before.map(|before| format!(" over {before}"));
                let token = token.map(|token| format!(", token {token}"));
                let (before, token) = (before.unwrap_or_default(), token.unwrap_or_default());
                if self.story == Story::Jobs {
                    let again = if *after > 1 { " AGAIN" } else { "" };
                    return write!(f, "{who} does the job{again}{token}: accepted ({status})");
                }
                write!(
                    f,
                    "{who} writes {after}{before}{token}: accepted ({status})"
                )
            }
            What::WriteRefused {
                token,
                status,
                high_water,
                attempted,
                problem,
            } => {
                let mark = high_water.map(|mark| format!(", the mark is {mark}"));
                let token = token.map(|token| format!(", token {token}"));
                let (mark, token) = (mark.unwrap_or_default(), token.unwrap_or_default());
                let what = match self.story {
                    Story::Deposits => format!("writes {attempted}"),
                    Story::Jobs => "does the job".to_owned(),
                };
                write!(f, "{who} {what}{token}: refused ({status} {problem}{mark})")
            }
            _ => Ok(()),
        }
    }
}
