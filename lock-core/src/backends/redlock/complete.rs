//! Makes a node whole that lost its state: gives it every counter that may matter, so that it
//! serves as the others do.
//!
//! A node that is healed refuses what it has no counter for, because it cannot tell a resource that
//! nobody has asked for from one that it has forgotten. Others can. Whoever was granted by this
//! node before it lost its state, and had fixed a majority by then, was granted by N/2 of the
//! others at least, each of which has a counter since; so of any N/2 + 1 others that never forgot
//! one, one has it. Whoever fixes its majority later cannot count the forgotten grant: its raise is
//! refused in the new life. So all counters of N/2 + 1 such others are made anew here, and what
//! none of them has may begin at the base.
//!
//! What has to hold for that, and each of it is known to be needed (`docs/models.md`): the others
//! have no gaps of their own; each is listed in one life, from the first page to the last; what was
//! found is counted up at N/2 + 1 of them before it is seeded; the node is said to be whole in the
//! life in which all this was done; and not before it has been quiet, because a whole node is not.

use std::time::Duration;

use futures_util::future::join_all;

use super::{
    KIND,
    call::Call,
    look::Look,
    marker::{Marker, MarkerState},
    node::{Node, Run},
    operate::{NodeState, RedlockNodes, refused},
    scripts,
    trouble::Trouble,
};
use crate::{Error, ErrorKind, FencingToken, Operation};

/// About how many keys a node looks at, and counts up, at a time.
const PAGE: usize = 500;

/// How far a node is from being whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HealProgress {
    /// So many counters of others were looked at, and so many of them made anew. A counter that
    /// several others have is looked at several times.
    #[non_exhaustive]
    Counters {
        /// How many were looked at.
        seen: u64,
        /// How many were made.
        made: u64,
    },
    /// All counters are there; it may have forgotten a lease, and waits for so long.
    Quiet(Duration),
}

/// Others that know of everything that they have had part in, each in one life.
struct Sources<'a> {
    all: Vec<Source<'a>>,
    /// How many there have to be.
    needed: usize,
}

struct Source<'a> {
    node: &'a Node,
    life: String,
    /// It has failed, and is not asked again.
    is_lost: bool,
}

impl<'a> Sources<'a> {
    fn left(&self) -> impl Iterator<Item = (usize, &Source<'a>)> {
        self.all.iter().enumerate().filter(|(_, one)| !one.is_lost)
    }

    /// Goes on without one, or fails for want of it.
    fn lose(&mut self, index: usize, error: Error) -> Result<(), Error> {
        self.all[index].is_lost = true;
        if self.left().count() < self.needed {
            return Err(error);
        }
        Ok(())
    }
}

/// The node that is made whole.
struct Patient<'a> {
    node: &'a Node,
    life: String,
}

impl RedlockNodes {
    /// Makes a node whole that was taken in by [`heal`](Self::heal): lists the counters of N/2 + 1
    /// others that are whole, makes those anew that it does not have, and waits until it has been
    /// quiet for the longest time to live. From then on it serves as a node that never lost its
    /// state, and may itself stand behind the healing of others. Says whether there was anything to
    /// do.
    ///
    /// Leases are granted meanwhile. A counter that is made anew is counted up at the others, which
    /// makes those try once more who acquire that resource at this moment.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if it is none of the nodes. [`ErrorKind::Refused`] if it has not
    /// been taken in, or lost its state again, or if fewer than N/2 + 1 others are whole: make
    /// those whole first for which there are enough. If there are too few for any, a majority has
    /// lost its state, and nobody knows what was issued: all nodes have to be emptied and
    /// provisioned above the greatest mark of the stores. [`ErrorKind::CounterBroken`] if a counter
    /// holds something else. [`ErrorKind::Unavailable`] if the node does not answer, or too few
    /// others.
    ///
    /// # Cancel safety
    /// Cancel safe: what was made stays and is right, and the rest can be done later, by anybody.
    pub async fn complete(
        &self,
        address: &str,
        mut progress: impl FnMut(HealProgress) + Send,
    ) -> Result<bool, Error> {
        let (index, node) = self.find(address)?;
        let looks = self.nodes.look().await;
        let life = match (NodeState::from(&looks[index]), &looks[index]) {
            (NodeState::Serving, _) => return Ok(false),
            (NodeState::Healing, Ok(look)) => look.marker.as_ref().map(|one| one.life.clone()),
            (_, Err(trouble)) => return Err(self.failed(node, trouble)),
            _ => None,
        };
        let Some(life) = life else {
            return Err(self.stopped(node, &looks[index]));
        };
        let patient = Patient { node, life };
        let mut sources = self.sources(index, &looks)?;
        self.fill(&patient, &mut sources, &mut progress).await?;
        self.say_whole(&patient, &mut progress).await?;
        Ok(true)
    }

    /// All others that are whole.
    fn sources(
        &self,
        patient: usize,
        looks: &[Result<Look, Trouble>],
    ) -> Result<Sources<'_>, Error> {
        let nodes = self.nodes.iter().zip(looks).enumerate();
        let others = nodes.filter(|(index, (_, look))| *index != patient && is_whole(look));
        let source = |(_, (node, look)): (usize, (_, &Result<Look, _>))| {
            let life = look.as_ref().ok()?.marker.as_ref()?.life.clone();
            let is_lost = false;
            Some(Source {
                node,
                life,
                is_lost,
            })
        };
        let all: Vec<_> = others.filter_map(source).collect();
        let needed = self.nodes.majority();
        if all.len() >= needed {
            return Ok(Sources { all, needed });
        }
        Err(refused(&format!(
            "{} other nodes serve and have no gaps, and {needed} have to: make another one whole \
             first that has enough; if there is none, a majority has lost its state: empty all \
             nodes, and provision them above the greatest mark of the stores",
            all.len(),
        )))
    }

    /// Makes every counter anew that one of these has.
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
                Err(trouble) => {
                    sources.lose(index, self.failed(node, &trouble))?;
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

    /// A page of the counters of a source, and where the next one begins.
    async fn page(
        &self,
        run: &mut Run<'_>,
        source: &Source<'_>,
        cursor: &str,
    ) -> Result<(String, Vec<String>), Error> {
        let call = Call::new(&scripts::LIST, &[self.keys.marker()])
            .arg(&source.life)
            .arg(cursor)
            .arg(self.keys.counters())
            .arg(PAGE);
        let words = self.nodes.in_time(run.ask(&call)).await;
        let words = words.map_err(|trouble| self.failed(source.node, &trouble))?;
        let mut words = words.into_iter();
        match (words.next().as_deref(), words.next()) {
            (Some("listed"), Some(next)) => Ok((next, words.collect())),
            _ => Err(self.changed(source.node)),
        }
    }

    /// Makes those of these counters anew that the patient does not have. Says how many.
    async fn make(
        &self,
        patient: &Patient<'_>,
        sources: &mut Sources<'_>,
        counters: &[String],
    ) -> Result<u64, Error> {
        let missing = self
            .counters(&scripts::MISSING, counters)
            .arg(&patient.life);
        let mut words = self.asked(patient.node, &missing).await?;
        if words.first().is_none_or(|word| word != "missing") {
            return Err(self.changed(patient.node));
        }
        let missing = words.split_off(1);
        if missing.is_empty() {
            return Ok(0);
        }
        let counts = self.count_up(sources, &missing).await?;
        let seed = self.counters(&scripts::SEED, &missing).arg(&patient.life);
        let seed = counts
            .into_iter()
            .fold(seed, |seed, count| seed.arg(count.get()));
        let words = self.asked(patient.node, &seed).await?;
        match words.first().map(String::as_str) {
            Some("seeded" | "not_needed") => Ok(count(&missing)),
            _ => Err(self.changed(patient.node)),
        }
    }

    /// The greatest of the counts of these, each counted up. Fewer than N/2 + 1 may have missed the
    /// only one that is left of those that were raised.
    async fn count_up(
        &self,
        sources: &mut Sources<'_>,
        counters: &[String],
    ) -> Result<Vec<FencingToken>, Error> {
        let asked = sources.left().map(|(index, source)| async move {
            let call = self.counters(&scripts::COUNT, counters).arg(&source.life);
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

    /// Waits until the patient has been quiet for long enough by its own clock.
    async fn say_whole(
        &self,
        patient: &Patient<'_>,
        progress: &mut (impl FnMut(HealProgress) + Send),
    ) -> Result<(), Error> {
        let clock = &self.nodes.clock;
        let call = Call::new(&scripts::WHOLE, &[self.keys.marker()]).arg(&patient.life);
        loop {
            let words = self.asked(patient.node, &call).await?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let left = match words[..] {
                ["whole"] => return Ok(()),
                ["quiet", left] => left.parse().map(Duration::from_millis),
                _ => return Err(self.changed(patient.node)),
            };
            let left = left.map_err(|_| self.changed(patient.node))?;
            progress(HealProgress::Quiet(left));
            clock.sleep_until(clock.now() + left).await;
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
        words.map_err(|trouble| self.failed(node, &trouble))
    }

    fn changed(&self, node: &Node) -> Error {
        let address = node.address();
        refused(&format!(
            "{address} is not what it was: it lost its state or was taken out of service; begin \
             again"
        ))
    }
}

fn is_whole(look: &Result<Look, Trouble>) -> bool {
    let whole = |marker: &Marker| marker.state == MarkerState::Serving;
    let usable = look.as_ref().ok().filter(|look| look.trouble().is_none());
    usable
        .and_then(|look| look.marker.as_ref())
        .is_some_and(whole)
}

fn count(counters: &[String]) -> u64 {
    u64::try_from(counters.len()).unwrap_or(u64::MAX)
}

fn broken(counter: &str) -> Error {
    let error = Error::not_applied(ErrorKind::CounterBroken, Operation::Connect, KIND);
    error.because(format!(
        "too few other nodes have a count in {counter}: empty those where it holds something \
         else, and heal them"
    ))
}
