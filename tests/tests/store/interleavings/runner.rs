//! Lets two holders take their steps in a given order.
//!
//! After each step both stand still: each has either taken all the steps that are due, or waits for
//! a lock of the other holder. The database itself reports this. So an order always has the same
//! outcome. A holder that waits takes the steps that become due meanwhile as soon as it can.

use std::{future::Future, pin::Pin, time::Duration};

use crate::{
    interleavings::{
        holder::{Check, End, HolderOf, Step},
        order::{Order, STEPS, Who},
        world::World,
    },
    rule::assert_kind,
};

/// An order takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// The outcome of an order.
pub(crate) struct Outcome {
    /// The ends of the stale and of the new holder.
    pub(crate) ends: [End; 2],
    /// Whether the new holder has seen the row of the stale holder.
    pub(crate) new_saw_stale: bool,
    /// Whether the new holder was the first to commit.
    pub(crate) new_was_first: bool,
    /// Whether one of the holders had to wait.
    pub(crate) waited: bool,
}

/// A step under way.
type Moving<W> = Pin<Box<dyn Future<Output = (HolderOf<W>, Step)>>>;

enum State<W: World> {
    Still(HolderOf<W>),
    Moving(Moving<W>),
    Ended(HolderOf<W>, End),
    /// The holder is between two steps.
    Nowhere,
}

struct Seat<W: World> {
    state: State<W>,
    /// How many steps are due for the holder.
    due: usize,
    taken: usize,
}

struct Run<'a, W: World> {
    world: &'a W,
    seats: [Seat<W>; 2],
    first_to_commit: Option<Who>,
    waited: bool,
}

/// Lets both holders go through their sections. No other run has this `number`.
///
/// # Panics
/// If they do not come to an end: each waits for the other.
pub(crate) async fn run<W: World>(world: &W, order: Order, check: Check, number: usize) -> Outcome {
    let [stale, new] = Who::BOTH.map(|who| HolderOf::new(world, who, check, number));
    while let Err(error) = stale.claim().await {
        // The session of the previous run is still being rolled back.
        assert_kind!(error, Busy);
        tokio::task::yield_now().await;
    }
    let run = Run {
        world,
        seats: [stale, new].map(|holder| Seat {
            state: State::Still(holder),
            due: 0,
            taken: 0,
        }),
        first_to_commit: None,
        waited: false,
    };
    tokio::time::timeout(PATIENCE, run.go_through(order))
        .await
        .unwrap_or_else(|_| panic!("{order:?} does not come to an end"))
}

impl<W: World> Run<'_, W> {
    async fn go_through(mut self, order: Order) -> Outcome {
        for who in order {
            self.seats[who as usize].due += 1;
            self.until_still().await;
        }
        let ends = self.seats.map(|seat| match seat.state {
            State::Ended(holder, end) => (holder.saw_the_other, end),
            _ => panic!("each waits for the other: {order:?}"),
        });
        Outcome {
            ends: ends.map(|(_, end)| end),
            new_saw_stale: ends[Who::New as usize].0,
            new_was_first: self.first_to_commit == Some(Who::New),
            waited: self.waited,
        }
    }

    /// Lets both take steps until both stand still, because a step of one may let the other go on.
    async fn until_still(&mut self) {
        while self.advance(Who::Stale).await | self.advance(Who::New).await {}
    }

    /// Lets one holder take the steps that are due, until it has to wait. Returns whether it has
    /// taken a step.
    async fn advance(&mut self, who: Who) -> bool {
        let mut has_moved = false;
        loop {
            let seat = &mut self.seats[who as usize];
            let mut moving = match std::mem::replace(&mut seat.state, State::Nowhere) {
                State::Still(mut holder) if seat.taken < seat.due => {
                    let number = seat.taken;
                    Box::pin(async move {
                        let step = holder.step(number).await;
                        (holder, step)
                    })
                }
                State::Moving(moving) => moving,
                other => {
                    seat.state = other;
                    return has_moved;
                }
            };
            let (holder, step) = tokio::select! {
                biased;
                moved = &mut moving => moved,
                () = self.world.until_blocked(who) => {
                    seat.state = State::Moving(moving);
                    if self.is_inside(who.other()) {
                        self.waited = true;
                        return has_moved;
                    }
                    continue;
                }
            };
            match step {
                Step::Blocked => {
                    seat.state = State::Still(holder);
                    if self.is_inside(who.other()) {
                        self.waited = true;
                        return has_moved;
                    }
                    tokio::task::yield_now().await;
                    continue;
                }
                Step::Taken => {
                    seat.taken += 1;
                    seat.state = State::Still(holder);
                }
                Step::Ended(end) => {
                    seat.taken = STEPS;
                    seat.state = State::Ended(holder, end);
                    if end == End::Committed {
                        self.first_to_commit.get_or_insert(who);
                    }
                }
            }
            has_moved = true;
        }
    }

    /// Whether a holder is in its section. If the other holder has left its section, a wait for it
    /// is a wait for its rollback.
    fn is_inside(&self, who: Who) -> bool {
        match &self.seats[who as usize].state {
            State::Still(holder) => holder.is_inside(),
            State::Moving(_) => true,
            State::Ended(..) | State::Nowhere => false,
        }
    }
}
