//! What the nodes are, as they and their servers say.

use std::time::Duration;

use futures_util::future::join_all;

use super::{
    call::Call,
    marker::{Marker, MarkerState},
    node::Node,
    nodes::Nodes,
    options::invalid,
    trouble::Trouble,
};
use lock_core::Error;

/// How long all nodes are waited for when somebody connects, or wants to know.
const PATIENCE: Duration = Duration::from_secs(3);

/// What one node is.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// As it was read, to compare with.
    pub(super) text: Option<String>,
    pub(super) marker: Option<Marker>,
    /// The present run of its server.
    pub(super) run_id: String,
}

impl Look {
    /// What keeps it from serving.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        let Some(marker) = &self.marker else {
            return Some(match self.text {
                Some(_) => Trouble::NotServing(None),
                None => Trouble::NoState,
            });
        };
        match marker.state {
            state if state.has_counters() && marker.run_id != self.run_id => {
                Some(Trouble::Restarted)
            }
            MarkerState::Serving => None,
            state => Some(Trouble::NotServing(Some(state))),
        }
    }

    /// What it says of itself, if it serves.
    pub(super) fn serving(&self) -> Option<&Marker> {
        let serves = self.trouble().is_none();
        self.marker.as_ref().filter(|_| serves)
    }

    /// The life in which it is being healed, if it is.
    pub(super) fn healing(&self) -> Option<&str> {
        match self.trouble() {
            Some(Trouble::NotServing(Some(MarkerState::Healing))) => {
                self.marker.as_ref().map(|marker| marker.life.as_str())
            }
            _ => None,
        }
    }
}

impl Nodes {
    /// Looks at all nodes.
    pub(super) async fn look(&self) -> Vec<Result<Look, Trouble>> {
        join_all(self.iter().map(|node| self.look_at(node))).await
    }

    pub(super) async fn look_at(&self, node: &Node) -> Result<Look, Trouble> {
        let (text, link) = self.in_time(node.look()).await?;
        let marker = text.as_deref().and_then(Marker::parse);
        let run_id = link.run_id.to_string();
        Ok(Look {
            text,
            marker,
            run_id,
        })
    }

    /// Has one node run a script for locks, and waits for it as operators do.
    pub(super) async fn ask_patiently(
        &self,
        node: &Node,
        call: &Call,
    ) -> Result<Vec<String>, Trouble> {
        self.in_time(node.ask(call)).await
    }

    /// Waits for one node as operators do.
    pub(super) async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let late = self.clock.sleep_until(self.clock.now() + PATIENCE);
        tokio::select! {
            biased;
            answer = answer => answer,
            () = late => Err(Trouble::Silent),
        }
    }

    /// Whether a majority serves, and no node is another one.
    pub(super) async fn check_serving(&self) -> Result<(), Error> {
        let looks = self.look().await.into_iter().enumerate();
        let trouble = |(index, look): (usize, Result<Look, _>)| match look {
            Ok(look) => look.trouble().map(|trouble| (index, trouble)),
            Err(trouble) => Some((index, trouble)),
        };
        let troubles: Vec<_> = looks.filter_map(trouble).collect();
        let same = |(_, trouble): &&(usize, Trouble)| matches!(trouble, Trouble::SameAs(_));
        if let Some(same) = troubles.iter().find(same) {
            return Err(invalid(&self.in_words([same])));
        }
        // What nodes that were started again still have nobody knows: whoever asks them for
        // something is told so, and of what.
        let absent = |(_, trouble): &&(usize, Trouble)| !matches!(trouble, Trouble::Restarted);
        if self.len() - troubles.iter().filter(absent).count() >= self.majority() {
            return Ok(());
        }
        Err(self.too_few(&troubles))
    }
}
