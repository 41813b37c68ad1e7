//! Random stories: the promises of the model hold in each of them.

use std::time::Duration;

use proptest::prelude::*;

use super::world::World;

/// An event. A number selects the task or the message that it happens to.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    Leave(usize),
    Finish(usize),
    /// A release, a renewal and a cancel by a task that has finished already.
    ComeLate(usize),
    Renew(usize),
    Run(usize),
    RunTwice(usize),
    Hear(usize),
    LoseReply(usize),
    Rival,
    Force,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let any = 0..8_usize;
    prop_oneof![
        4 => Just(Step::Begin),
        2 => any.clone().prop_map(Step::Leave),
        4 => any.clone().prop_map(Step::Finish),
        1 => any.clone().prop_map(Step::ComeLate),
        2 => any.clone().prop_map(Step::Renew),
        6 => any.clone().prop_map(Step::Run),
        1 => any.clone().prop_map(Step::RunTwice),
        6 => any.clone().prop_map(Step::Hear),
        1 => any.prop_map(Step::LoseReply),
        2 => Just(Step::Rival),
        2 => Just(Step::Force),
        1 => (1..500_u64).prop_map(Step::Pass),
    ]
}

impl World {
    fn take(&mut self, step: Step) {
        match step {
            Step::Begin => {
                self.begin();
            }
            Step::Leave(n) => self.with(n, |world, task| world.is_waiting(task), Self::leave),
            Step::Finish(n) => self.with(n, Self::holds, |world, task| {
                world.finish(task);
            }),
            Step::ComeLate(n) => self.with(n, Self::has_finished, Self::come_late),
            Step::Renew(n) => self.with(n, Self::holds, |world, task| {
                world.renew(task);
            }),
            Step::Run(n) => {
                if let Some(request) = pick(&mut self.requests, n) {
                    self.run(request);
                }
            }
            Step::RunTwice(n) => {
                if let Some(request) = pick(&mut self.requests, n) {
                    self.run(request.clone());
                    self.requests.push(request);
                }
            }
            Step::Hear(n) => {
                if let Some(reply) = pick(&mut self.replies, n) {
                    self.hear(reply);
                }
            }
            Step::LoseReply(n) => {
                if let Some(reply) = pick(&mut self.replies, n) {
                    self.lose(reply);
                }
            }
            Step::Rival => {
                self.rival();
            }
            Step::Force => self.force(),
            Step::Pass(millis) => self.pass(Duration::from_millis(millis)),
        }
    }

    /// Applies the event to the n-th task for which it is possible.
    fn with(&mut self, n: usize, can: fn(&Self, usize) -> bool, act: fn(&mut Self, usize)) {
        let able: Vec<_> = (0..self.tasks.len())
            .filter(|task| can(self, *task))
            .collect();
        if let Some(task) = able.get(n % std::cmp::max(able.len(), 1)) {
            act(self, *task);
        }
    }

    fn holds(&self, task: usize) -> bool {
        let task = &self.tasks[task];
        task.got.is_some() && !task.finished
    }

    fn has_finished(&self, task: usize) -> bool {
        let task = &self.tasks[task];
        task.got.is_some() && task.finished
    }

    /// It no longer has the lock, so it must not affect what others have.
    fn come_late(&mut self, task: usize) {
        let before = self.current_holder();
        self.finish(task);
        assert!(!self.renew(task), "renewed by one that has finished");
        self.cancel(task);
        if before.is_some() {
            assert_eq!(
                self.current_holder(),
                before,
                "touched by one that has finished"
            );
        }
    }

    /// From here on nothing goes wrong. Everybody has to get the lock.
    fn calm_down(&mut self) {
        let waiting = |world: &Self| (0..world.tasks.len()).any(|task| world.is_waiting(task));
        let mut rounds = 0;
        while waiting(self) {
            rounds += 1;
            assert!(rounds < 200, "a waiter is lost");
            for task in 0..self.tasks.len() {
                if self.holds(task) {
                    self.finish(task);
                }
            }
            self.deliver_all();
            // The rival's lease runs out, and lost requests are sent again.
            self.pass(Duration::from_millis(100));
            self.ask_again();
        }
    }

    fn deliver_all(&mut self) {
        loop {
            while !self.requests.is_empty() {
                self.exchange();
            }
            // It may be followed by another request.
            match self.replies.pop() {
                Some(reply) => self.hear(reply),
                None => break,
            }
        }
    }

    /// When everybody has gone, nothing is left.
    fn forget(&mut self) {
        for task in 0..self.tasks.len() {
            self.finish(task);
            self.cancel(task);
        }
        self.deliver_all();
        let left = &self.queues.queues;
        assert!(left.is_empty(), "{left:?}");
    }
}

fn pick<T>(list: &mut Vec<T>, n: usize) -> Option<T> {
    if list.is_empty() {
        return None;
    }
    Some(list.remove(n % list.len()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn tokens_rise_and_are_unique_and_nobody_waits_for_ever(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new(3);
        for step in steps {
            world.take(step);
        }
        world.calm_down();
        world.forget();
    }
}
