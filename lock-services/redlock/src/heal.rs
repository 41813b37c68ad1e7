//! Heals a node that lost its state: gives it every counter that may matter, and then lets it
//! serve.
//!
//! A node that lost its state cannot distinguish a new resource from a resource that it has
//! forgotten, but other nodes can. Take a grant by this node from before the loss, whose holder had
//! fixed a majority by then. At least N/2 of the other nodes granted it, too, and each of these has
//! had a counter since then. So among any N/2 + 1 other nodes that serve, at least one has the
//! counter. A holder that fixes its majority later cannot count the forgotten grant, because its
//! raise is refused in the new incarnation. So all counters of N/2 + 1 other nodes are made anew
//! here, and a resource without a counter at any of them may begin at the base.
//!
//! This needs the following conditions. Each is known to be needed (`tests/models`):
//!
//! - The node does not serve before it has all counters.
//! - Each of the other nodes is listed in one incarnation, from the first page to the last.
//! - Each counter that was found is counted up at N/2 + 1 of them before it is seeded.
//! - The node is brought into service in the incarnation in which all this was done.
//! - It is not brought into service before the longest lease is over that it may have forgotten.

use std::time::Duration;

use futures_util::future::join_all;

use super::{
    call::Call,
    look::Look,
    marker::Marker,
    node::{Node, Run},
    node_error::NodeError,
    operate::{NodeState, RedlockNodes, error, refused},
    scripts,
};
use lock_core::{Error, ErrorKind, FencingToken};

/// The approximate number of keys that a node looks at, and counts up, at a time.
const PAGE: usize = 500;

/// The progress of a healing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HealProgress {
    /// Counters of the other nodes were looked at and made anew. A counter that several nodes have
    /// is looked at several times.
    #[non_exhaustive]
    Counters {
        /// The number of counters that were looked at.
        seen: u64,
        /// The number of counters that were made.
        made: u64,
    },
    /// The node has all counters. It waits for this time, because it may have forgotten a lease.
    Quiet(Duration),
}

/// Other nodes that serve, each in one incarnation. Each of them knows the resources that it has
/// granted.
pub(super) struct Sources<'a> {
    all: Vec<Source<'a>>,
    /// The number of nodes that is needed.
    needed: usize,
}

struct Source<'a> {
    node: &'a Node,
    marker: Marker,
    /// Whether the node has failed, and is not asked again.
    is_lost: bool,
}

impl<'a> Sources<'a> {
    fn left(&self) -> impl Iterator<Item = (usize, &Source<'a>)> {
        self.all.iter().enumerate().filter(|(_, one)| !one.is_lost)
    }

    /// The count below which no counter begins at any of these nodes.
    pub(super) fn base(&self) -> u64 {
        let bases = self.all.iter().map(|source| source.marker.base);
        bases.max().unwrap_or_default()
    }

    /// The longest ttl that a lease may have at any of these nodes.
    pub(super) fn longest(&self) -> Duration {
        let longest = self.all.iter().map(|source| source.marker.longest);
        longest.max().unwrap_or_default()
    }

    /// Goes on without this node, or fails if too few nodes are left.
    fn lose(&mut self, index: usize, error: Error) -> Result<(), Error> {
        self.all[index].is_lost = true;
        if self.left().count() < self.needed {
            return Err(error);
        }
        Ok(())
    }
}

/// The node that is healed.
struct Patient<'a> {
    node: &'a Node,
    incarnation: String,
}

impl RedlockNodes {
    /// Heals a node that has lost its state or is new among nodes that serve, or goes on with a
    /// healing that was interrupted. It deletes all keys that the node still has, makes the
    /// counters of N/2 + 1 others anew, and waits until the longest time to live is over. Then the
    /// node serves, and may itself be a source when others are healed. Returns whether there was
    /// anything to do.
    ///
    /// The other nodes go on granting leases during a healing. A counter that is made anew is
    /// counted up at the other nodes, so a client that acquires that resource at this moment has to
    /// try once more.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if the address is none of the nodes. [`ErrorKind::Refused`] if
    /// the node is retired, if another operator heals it at the same time, if it lost its state
    /// again during the healing, or if fewer than N/2 + 1 others serve. In the last case the issued
    /// tokens are unknown, and all nodes have to be emptied and provisioned above the greatest mark
    /// of the stores. [`ErrorKind::CounterBroken`] if a counter holds something else.
    /// [`ErrorKind::Unavailable`] if the node does not answer, or too few others.
    ///
    /// # Cancel safety
    /// Cancel safe: the node does not serve, and any operator can do the rest later.
    pub async fn heal(
        &self,
        address: &str,
        mut progress: impl FnMut(HealProgress) + Send,
    ) -> Result<bool, Error> {
        let (index, node) = self.find(address)?;
        let looks = self.nodes.look().await;
        let look = match &looks[index] {
            Ok(look) => look,
            Err(error) => return Err(self.failed(node, error)),
        };
        match NodeState::from(&looks[index]) {
            NodeState::Serving => return Ok(false),
            NodeState::Retired => {
                return Err(refused("it is retired: empty its server to use it anew"));
            }
            _ => {}
        }
        let mut sources = self.sources(index, &looks)?;
        let incarnation = match look.healing() {
            Some(incarnation) => incarnation.to_owned(),
            None => self.take_in(node, look, &sources).await?,
        };
        let patient = Patient { node, incarnation };
        self.fill(&patient, &mut sources, &mut progress).await?;
        self.bring_into_service(&patient, &mut progress).await?;
        Ok(true)
    }

    /// All other nodes that serve.
    fn sources(
        &self,
        patient: usize,
        looks: &[Result<Look, NodeError>],
    ) -> Result<Sources<'_>, Error> {
        let nodes = self.nodes.iter().zip(looks).enumerate();
        let others = nodes.filter(|(index, _)| *index != patient);
        let source = |(_, (node, look)): (usize, (_, &Result<Look, _>))| {
            let marker = look.as_ref().ok()?.serving()?.clone();
            let is_lost = false;
            Some(Source {
                node,
                marker,
                is_lost,
            })
        };
        let all: Vec<_> = others.filter_map(source).collect();
        let needed = self.nodes.majority();
        if all.len() >= needed {
            return Ok(Sources { all, needed });
        }
        Err(refused(&format!(
            "{} other nodes serve, and {needed} have to, so that the issued tokens are known; if a \
             majority has lost its state, empty all nodes, and provision them above the greatest \
             mark of the stores",
            all.len(),
        )))
    }

    /// Makes every counter anew that one of the sources has.
    async fn fill(
        &self,
        patient: &Patient<'_>,
        sources: &mut Sources<'_>,
        progress: &mut (impl FnMut(HealProgress) + Send),
    ) -> Result<(), Error> {
        let (mut seen, mut made) = (0, 0);
        for index in 0..sources.all.len() {
            let (node, mut cursor) = (sources.all[index].node, "0".to_owned());
            let mut run = match node.run_of_server().await {
                Ok(run) => run,
                Err(error) => {
                    sources.lose(index, self.failed(node, &error))?;
                    continue;
                }
            };
            while !sources.all[index].is_lost {
                let page = self.page(&mut run, &sources.all[index], &cursor).await;
                let (next, counters) = match page {
                    Ok(page) => page,
                    Err(error) => {
                        sources.lose(index, error)?;
                        break;
                    }
                };
                for counters in counters.chunks(PAGE) {
                    made += self.make(patient, sources, counters).await?;
                    seen += count(counters);
                }
                progress(HealProgress::Counters { seen, made });
                cursor = next;
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(())
    }

    /// A page of the counters of a source, and the cursor of the next page.
    async fn page(
        &self,
        run: &mut Run<'_>,
        source: &Source<'_>,
        cursor: &str,
    ) -> Result<(String, Vec<String>), Error> {
        let call = Call::new(&scripts::LIST, &[self.keys.marker()])
            .arg(&source.marker.incarnation)
            .arg(cursor)
            .arg(self.keys.counters())
            .arg(PAGE);
        let words = self.nodes.in_time(run.ask(&call)).await;
        let words = words.map_err(|error| self.failed(source.node, &error))?;
        let mut words = words.into_iter();
        match (words.next().as_deref(), words.next()) {
            (Some("listed"), Some(next)) => Ok((next, words.collect())),
            _ => Err(self.changed(source.node)),
        }
    }

    /// Makes those of these counters anew that the patient does not have. Returns their number.
    async fn make(
        &self,
        patient: &Patient<'_>,
        sources: &mut Sources<'_>,
        counters: &[String],
    ) -> Result<u64, Error> {
        let missing = self
            .counters(&scripts::MISSING, counters)
            .arg(&patient.incarnation);
        let mut words = self.asked(patient.node, &missing).await?;
        if words.first().is_none_or(|word| word != "missing") {
            return Err(self.changed(patient.node));
        }
        let missing = words.split_off(1);
        if missing.is_empty() {
            return Ok(0);
        }
        let counts = self.count_up(sources, &missing).await?;
        let seed = self
            .counters(&scripts::SEED, &missing)
            .arg(&patient.incarnation);
        let seed = counts
            .into_iter()
            .fold(seed, |seed, count| seed.arg(count.get()));
        let words = self.asked(patient.node, &seed).await?;
        match words.first().map(String::as_str) {
            Some("seeded") => Ok(count(&missing)),
            _ => Err(self.changed(patient.node)),
        }
    }

    /// The greatest count of each of these counters, after it was counted up at N/2 + 1 nodes. So
    /// many nodes are needed, because only one of the nodes that were raised may be left, and fewer
    /// nodes could miss it.
    async fn count_up(
        &self,
        sources: &mut Sources<'_>,
        counters: &[String],
    ) -> Result<Vec<FencingToken>, Error> {
        let asked = sources.left().map(|(index, source)| async move {
            let call = self
                .counters(&scripts::COUNT, counters)
                .arg(&source.marker.incarnation);
            let words = self.asked(source.node, &call).await;
            (index, words)
        });
        let answers = join_all(asked).await;
        let mut most = vec![(0, FencingToken::MIN); counters.len()];
        for (index, answer) in answers {
            let words = match answer {
                Ok(words) if words.len() == counters.len() + 1 && words[0] == "counted" => words,
                Ok(_) => {
                    let changed = self.changed(sources.all[index].node);
                    sources.lose(index, changed)?;
                    continue;
                }
                Err(error) => {
                    sources.lose(index, error)?;
                    continue;
                }
            };
            for ((counted, most), word) in most.iter_mut().zip(&words[1..]) {
                let count = match word.as_str() {
                    "exhausted" => Some(FencingToken::MAX),
                    word => word.parse().ok(),
                };
                *counted += usize::from(count.is_some());
                *most = std::cmp::max(*most, count.unwrap_or(FencingToken::MIN));
            }
        }
        let enough = |((counted, most), counter): ((usize, FencingToken), &String)| {
            let enough = counted >= sources.needed;
            enough.then_some(most).ok_or_else(|| broken(counter))
        };
        most.into_iter().zip(counters).map(enough).collect()
    }

    /// Waits until the longest lease is over by the clock of the patient.
    async fn bring_into_service(
        &self,
        patient: &Patient<'_>,
        progress: &mut (impl FnMut(HealProgress) + Send),
    ) -> Result<(), Error> {
        let runtime = &self.nodes.runtime;
        let call = Call::new(&scripts::SERVE, &[self.keys.marker()]).arg(&patient.incarnation);
        loop {
            let words = self.asked(patient.node, &call).await?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let left = match words[..] {
                ["serves"] => return Ok(()),
                ["quiet", left] => left.parse().map(Duration::from_millis),
                _ => return Err(self.changed(patient.node)),
            };
            let left = left.map_err(|_| self.changed(patient.node))?;
            progress(HealProgress::Quiet(left));
            runtime.sleep(left).await;
        }
    }

    /// A script that takes the marker and these counters.
    fn counters(&self, script: &'static redis::Script, counters: &[String]) -> Call {
        let marker = self.keys.marker();
        let keys: Vec<_> = std::iter::once(&marker).chain(counters).collect();
        Call::new(script, &keys)
    }

    async fn asked(&self, node: &Node, call: &Call) -> Result<Vec<String>, Error> {
        let words = self.nodes.ask_patiently(node, call).await;
        words.map_err(|error| self.failed(node, &error))
    }

    fn changed(&self, node: &Node) -> Error {
        let address = node.address();
        refused(&format!(
            "{address} is not what it was: it lost its state or was taken out of service; heal \
             it again"
        ))
    }
}

fn count(counters: &[String]) -> u64 {
    u64::try_from(counters.len()).unwrap_or(u64::MAX)
}

fn broken(counter: &str) -> Error {
    error(ErrorKind::CounterBroken).because(format!(
        "too few other nodes have a count in {counter}: empty those where it holds something \
         else, and heal them"
    ))
}
