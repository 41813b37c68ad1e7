use std::{fmt, marker::PhantomData, rc::Rc, time::Duration};

use futures_util::future::LocalBoxFuture;

use super::{
    await_point::Place,
    driven::{Driven, Step, Stuck},
};
use crate::{ManualClock, Process};
use lock_core::backend::LockService;

/// A test that is run again and again, each time from the beginning in a world of its own.
pub(super) struct Simulation<'t, W> {
    pub(super) world: Box<dyn MakeWorld<W> + 't>,
    pub(super) section: Rc<dyn Body<W> + 't>,
    pub(super) rival: Rc<dyn Body<W> + 't>,
    pub(super) lock_service: MakeService<'t>,
    pub(super) pause: Duration,
    /// The longest real time that an answer from outside may take.
    pub(super) real_io: Duration,
}

/// Makes the world of one run.
pub(super) trait MakeWorld<W> {
    fn make(&self) -> LocalBoxFuture<'_, W>;
}

/// Looks at the world at the end of one run.
pub(super) trait Invariant<W> {
    fn holds<'a>(&'a self, world: &'a W) -> LocalBoxFuture<'a, bool>;
}

/// Makes the lock service of one run.
pub(super) type MakeService<'t> = Box<dyn Fn(&ManualClock) -> LockService + 't>;

/// A section of any type. Its error is a text.
pub(super) trait Body<W> {
    fn start<'a>(&'a self, world: &'a W, me: &'a Process) -> LocalBoxFuture<'a, Ending>;
}

pub(super) type Ending = Result<(), String>;

/// The user's section, and the result type that it ends with.
pub(super) struct Section<F, R> {
    body: F,
    result: PhantomData<fn() -> R>,
}

/// One run with a pause in it.
pub(super) struct Run {
    pub(super) at: PausedAt,
    pub(super) section: Ending,
    pub(super) rival: Ending,
    pub(super) holds: bool,
}

/// The number of the await, the number of all awaits, and the place of the await, if it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct PausedAt {
    pub(super) number: usize,
    of: usize,
    place: Option<Place>,
}

impl<W> Simulation<'_, W> {
    /// Runs the section to its end, then the rival to its end. Returns the number of awaits.
    pub(super) async fn without_pause(&self, invariant: &dyn Invariant<W>) -> usize {
        let during = During(None);
        let stage = Stage::new(self).await;
        let mut section = stage.section();
        let ending = section.run_to_end().await;
        let awaits = section.awaits();
        drop(section);
        let rival = stage.rival().run_to_end().await;
        for (who, ending) in [("section", ending), ("rival", rival)] {
            match ending {
                Ok(Ok(())) => {}
                Ok(Err(error)) => panic!("the {who} fails without any pause: {error}"),
                Err(stuck) => panic!("the {who} {stuck}, without any pause"),
            }
        }
        assert!(
            invariant.holds(&stage.world).await,
            "the invariant does not hold even without a pause"
        );
        drop(during);
        awaits
    }

    /// Runs the section to this await, then the rival to its end, and then the section to its end.
    /// `None` if the section has fewer awaits this time.
    pub(super) async fn paused_at(
        &self,
        number: usize,
        of: usize,
        invariant: &dyn Invariant<W>,
    ) -> Option<Run> {
        let stage = Stage::new(self).await;
        let mut section = stage.section();
        let place = match section.run_to_await(number).await {
            Ok(Step::Awaits(place)) => place,
            Ok(Step::Ended(_)) => return None,
            Err(stuck) => panic!("the section {stuck}"),
        };
        let at = PausedAt { number, of, place };
        let during = During(Some(at));
        stage.me.freeze();
        stage.clock.advance(self.pause);
        let rival = stage.rival().run_to_end().await;
        let rival = rival.unwrap_or_else(|stuck| at.panic("rival", stuck));
        stage.me.thaw();
        let ending = section.run_to_end().await;
        let ending = ending.unwrap_or_else(|stuck| at.panic("section", stuck));
        drop(section);
        let holds = invariant.holds(&stage.world).await;
        drop(during);
        Some(Run {
            at,
            section: ending,
            rival,
            holds,
        })
    }
}

/// The world of one run and the processes that act in it.
struct Stage<'s, 't, W> {
    simulation: &'s Simulation<'t, W>,
    world: W,
    clock: ManualClock,
    me: Process,
    other: Process,
}

impl<'s, 't, W> Stage<'s, 't, W> {
    async fn new(simulation: &'s Simulation<'t, W>) -> Self {
        let clock = ManualClock::new();
        let service = (simulation.lock_service)(&clock);
        Self {
            simulation,
            world: simulation.world.make().await,
            me: Process::start(service.clone(), &clock),
            other: Process::start(service, &clock),
            clock,
        }
    }

    fn section(&self) -> Driven<'_, Ending> {
        let future = self.simulation.section.start(&self.world, &self.me);
        Driven::new(future, &self.clock, self.simulation.real_io)
    }

    fn rival(&self) -> Driven<'_, Ending> {
        let future = self.simulation.rival.start(&self.world, &self.other);
        Driven::new(future, &self.clock, self.simulation.real_io)
    }
}

impl<F, R> Section<F, R> {
    pub(super) const fn new(body: F) -> Self {
        Self {
            body,
            result: PhantomData,
        }
    }
}

impl<W, F, T, E> Body<W> for Section<F, Result<T, E>>
where
    F: AsyncFn(&W, &Process) -> Result<T, E>,
    E: fmt::Debug,
{
    fn start<'a>(&'a self, world: &'a W, me: &'a Process) -> LocalBoxFuture<'a, Ending> {
        Box::pin(async move {
            let result = (self.body)(world, me).await;
            result.map(drop).map_err(|error| format!("{error:?}"))
        })
    }
}

impl<W, F: AsyncFn() -> W> MakeWorld<W> for F {
    fn make(&self) -> LocalBoxFuture<'_, W> {
        Box::pin(self())
    }
}

impl<W, F: AsyncFn(&W) -> bool> Invariant<W> for F {
    fn holds<'a>(&'a self, world: &'a W) -> LocalBoxFuture<'a, bool> {
        Box::pin(self(world))
    }
}

impl PausedAt {
    fn panic(self, who: &str, stuck: Stuck) -> ! {
        panic!("the {who} {stuck}, with the section paused at {self}");
    }
}

impl fmt::Display for PausedAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "await {} of {}", self.number, self.of)?;
        match self.place {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}

/// Prints the place of the pause when the section, the rival or the invariant panics.
struct During(Option<PausedAt>);

impl Drop for During {
    fn drop(&mut self) {
        if std::thread::panicking() {
            match self.0 {
                Some(at) => eprintln!("this run had the section paused at {at}"),
                None => eprintln!("this run had no pause"),
            }
        }
    }
}
