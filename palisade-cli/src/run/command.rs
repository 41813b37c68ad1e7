//! The command in the hands of the supervisor: from its lease to the end of its last process.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream as StdUnixStream, process::CommandExt},
    },
    process::{Child, Command, Stdio},
    time::Duration,
};

use futures_util::future::select_all;
use lock_core::backend::{Runtime, TokioRuntime};
use rustix::{
    process::{Pid, WaitId, WaitIdOptions, waitid},
    stdio::{dup2_stdin, dup2_stdout},
};
use tokio::{
    io::{AsyncReadExt, unix::AsyncFd},
    net::UnixStream,
    signal::unix::{Signal, SignalKind, signal},
    sync::{oneshot, watch},
};

use super::{
    LAUNCHER, OWN_PROGRAM,
    boot_time::BootTime,
    cgroup::Cgroup,
    countdown::{Countdown, Due, Margins},
    environment::Environment,
    fate::{Cause, Exit, Fate},
    group::Group,
    peer::{self, FromGuardian, FromSupervisor},
    to_guardian::Guardian,
};

/// A lease for the command.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) environment: Environment,
    /// The deadline, which renewals move. The lease is lost when its sender is gone.
    pub(super) deadlines: watch::Receiver<BootTime>,
    /// For the fate of the command.
    pub(super) ended: oneshot::Sender<Fate>,
}

/// Between attempts to continue a guardian whose command goes on. An attempt has no effect if it
/// comes after the guardian's message and before its stop.
const WAKING: Duration = Duration::from_millis(20);

/// How long a process that was killed may take to die, before the log says so.
const DYING: Duration = Duration::from_secs(5);

/// Runs the command as soon as there is a lease for it.
///
/// # Errors
/// If a process cannot be started or watched.
pub(super) async fn run(
    hold: oneshot::Receiver<Hold>,
    stop: oneshot::Sender<()>,
    mut guardian: Guardian,
    command: &[OsString],
    margins: Margins,
    stdin: OwnedFd,
) -> io::Result<Fate> {
    let hold = match lease(hold, &mut guardian).await {
        Ok(hold) => hold,
        Err(fate) => {
            // Whether or not anybody still waits for the lease.
            let _gone = stop.send(());
            return Ok(fate);
        }
    };
    let deadline = *hold.deadlines.borrow();
    let cgroup = guardian.process.and_then(Cgroup::of);
    let mut running = Running {
        guardian,
        was_continued: false,
        deadlines: Some(hold.deadlines),
        deadline,
        countdown: Countdown::new(margins, deadline),
        is_confirmed: false,
        may_go: false,
        stopped_by: None,
        cause: None,
        group: None,
        cgroup,
        children: signal(SignalKind::child())?,
    };
    let fate = running.run(command, hold.environment, stdin).await;
    if let (Err(_), Some(group)) = (&fate, &running.group) {
        let leader = group.leader();
        group.kill();
        // The lease is released as soon as this function returns.
        let _other_error = running.until_exit(leader).await;
        let _other_error = running.end_the_rest().await;
    }
    let fate = fate?;
    // It is gone if the lease was lost.
    let _gone = hold.ended.send(fate);
    Ok(fate)
}

/// Waits for the lease.
async fn lease(mut hold: oneshot::Receiver<Hold>, guardian: &mut Guardian) -> Result<Hold, Fate> {
    loop {
        tokio::select! {
            biased;
            hold = &mut hold => return hold.map_err(|_| Fate::NoLease),
            told = guardian.next() => match told {
                None => return Err(Fate::Stopped(None)),
                Some(FromGuardian::Stop(signal)) => return Err(Fate::Stopped(Some(signal))),
                Some(_) => {}
            }
        }
    }
}

/// A command that has its lease.
struct Running {
    guardian: Guardian,
    /// Whether the command goes on after its last stop. Another process than the guardian may have
    /// continued it.
    was_continued: bool,
    /// `None` after the lease was lost.
    deadlines: Option<watch::Receiver<BootTime>>,
    /// The newest one.
    deadline: BootTime,
    countdown: Countdown,
    is_confirmed: bool,
    may_go: bool,
    /// The signal that came before the command was started.
    stopped_by: Option<i32>,
    cause: Option<Cause>,
    group: Option<Group>,
    cgroup: Option<Cgroup>,
    children: Signal,
}

enum Event {
    Told(FromGuardian),
    GuardianGone,
    Renewed(BootTime),
    Lost,
    Due,
    /// Although the command goes on.
    GuardianSleeps,
    Child,
}

impl Running {
    async fn run(
        &mut self,
        command: &[OsString],
        environment: Environment,
        stdin: OwnedFd,
    ) -> io::Result<Fate> {
        self.tell_deadline().await;
        self.until(|running| running.is_confirmed).await;
        if let Some(fate) = self.ended_before_its_start() {
            return Ok(fate);
        }
        let (socket, launcher) = launch(command, environment)?;
        let leader = Pid::from_child(&launcher);
        if let Some(cgroup) = &self.cgroup {
            cgroup.make_for(leader);
        }
        self.group = Some(Group::new(leader, self.cgroup.clone()));
        let started = FromSupervisor::Started {
            leader: leader.as_raw_nonzero().get(),
        };
        self.guardian.tell(&started).await;
        self.until(|running| running.may_go).await;
        if let Some(fate) = self.ended_before_its_start() {
            // The launcher ends when its socket does.
            drop(socket);
            self.until_exit(leader).await?;
            self.end(None).await;
            return Ok(fate);
        }
        if let Some(error) = self.execute(leader, socket, stdin).await? {
            self.until_exit(leader).await?;
            self.end(None).await;
            return Ok(Fate::NotExecuted(error));
        }
        let exit = self.until_exit(leader).await?;
        self.end_the_rest().await?;
        self.end(Some(exit)).await;
        Ok(match self.cause {
            Some(cause) => Fate::Lost(cause),
            None => Fate::Ended(exit),
        })
    }

    /// Goes on until a condition holds, or until the command has to end.
    async fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) && !self.countdown.is_ending() {
            let event = self.event().await;
            self.handle(event).await;
        }
    }

    fn ended_before_its_start(&self) -> Option<Fate> {
        match (self.stopped_by, self.cause) {
            (Some(signal), _) => Some(Fate::Stopped(Some(signal))),
            (None, Some(cause)) => Some(Fate::NotStarted(cause)),
            (None, None) => None,
        }
    }

    /// Has the launcher become the command. Returns the number of the error if the system refuses.
    async fn execute(
        &mut self,
        leader: Pid,
        socket: StdUnixStream,
        stdin: OwnedFd,
    ) -> io::Result<Option<i32>> {
        match peer::send_file(&socket, stdin.as_fd()) {
            Err(error) if is_end(&error) => return Ok(None),
            sent => sent?,
        }
        drop(stdin);
        // From here on the command alone reads its input and writes its output, so that its
        // neighbours in a pipe see when it has closed them.
        let nothing = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        dup2_stdin(&nothing)?;
        dup2_stdout(&nothing)?;
        socket.set_nonblocking(true)?;
        let mut socket = UnixStream::from_std(socket)?;
        let mut error = Vec::new();
        loop {
            // By Ctrl-Z in just that moment.
            self.tell_of_stops(leader).await;
            tokio::select! {
                biased;
                read = socket.read_buf(&mut error) => {
                    let is_over = match read {
                        Ok(read) => read == 0,
                        Err(error) if is_end(&error) => true,
                        Err(error) => return Err(error),
                    };
                    if is_over {
                        let error = <[u8; 4]>::try_from(error.as_slice());
                        return Ok(error.ok().map(i32::from_le_bytes));
                    }
                }
                event = self.event() => self.handle(event).await,
            }
        }
    }

    /// Waits until the command itself has ended, and ends it when it is due. The process is not
    /// reaped: see [`Group`].
    async fn until_exit(&mut self, leader: Pid) -> io::Result<Exit> {
        loop {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            if let Some(status) = waitid(WaitId::Pid(leader), ended)? {
                return Ok(Exit::of(&status));
            }
            self.tell_of_stops(leader).await;
            let event = self.event().await;
            self.handle(event).await;
        }
    }

    /// Tells the guardian if the command was stopped, or goes on, since the last look.
    async fn tell_of_stops(&mut self, leader: Pid) {
        let changed = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
        // It is an error to ask that of a process that has ended.
        while let Ok(Some(status)) = waitid(WaitId::Pid(leader), changed) {
            let signal = status.stopping_signal();
            self.was_continued = signal.is_none();
            self.guardian.tell(&FromSupervisor::Stopped(signal)).await;
        }
    }

    /// Ends the processes that the command has left behind, and waits until they are gone. One that
    /// cannot die keeps the lease, as long as there is one.
    async fn end_the_rest(&mut self) -> io::Result<()> {
        let mut killed_at = None;
        let mut is_told = false;
        loop {
            let living = self.group.as_ref().map(Group::living).transpose()?;
            let living = living.unwrap_or_default();
            if living.is_empty() {
                return Ok(());
            }
            let now = BootTime::now();
            self.countdown.end(now);
            if self.countdown.is_killed() {
                killed_at.get_or_insert(now);
            }
            let dies_by = killed_at.map(|killed| killed + DYING);
            if dies_by.is_some_and(|end| end <= now) {
                if !is_told {
                    tracing::error!(
                        "a process of the command does not die: see its wchan in /proc"
                    );
                    is_told = true;
                }
                if self.deadlines.is_none() {
                    return Ok(());
                }
            }
            tokio::select! {
                biased;
                ended = any(living) => ended?,
                event = self.event() => self.handle(event).await,
                () = tokio::time::sleep(DYING), if dies_by.is_some() && !is_told => {}
            }
        }
    }

    /// Both processes forget the group.
    async fn end(&mut self, exit: Option<Exit>) {
        let signal = match exit {
            Some(Exit::Signal(signal)) => Some(signal),
            _ => None,
        };
        self.guardian.tell(&FromSupervisor::Ended { signal }).await;
        self.group = None;
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
        }
    }

    /// The next event. Messages of the guardian come first, because a guardian that goes on after
    /// Ctrl-Z must confirm from then on.
    ///
    /// # Cancel safety
    /// Cancel safe.
    async fn event(&mut self) -> Event {
        let (now, next) = (BootTime::now(), self.countdown.next());
        let is_killed = self.countdown.is_killed();
        let is_alone = self.guardian.is_suspended && self.was_continued;
        let deadlines = self.deadlines.as_mut();
        let renewed = async {
            let deadlines = match deadlines {
                Some(deadlines) => deadlines,
                None => std::future::pending().await,
            };
            let changed = deadlines.changed().await;
            changed.ok().map(|()| *deadlines.borrow_and_update())
        };
        tokio::select! {
            biased;
            told = self.guardian.next(), if !self.guardian.is_gone => match told {
                Some(told) => Event::Told(told),
                None => Event::GuardianGone,
            },
            renewed = renewed => renewed.map_or(Event::Lost, Event::Renewed),
            () = TokioRuntime.sleep_until(TokioRuntime.now() + next.since(now)), if !is_killed => {
                Event::Due
            }
            _ = self.children.recv() => Event::Child,
            () = tokio::time::sleep(WAKING), if is_alone => {
                Event::GuardianSleeps
            }
        }
    }

    async fn handle(&mut self, event: Event) {
        match event {
            Event::Told(FromGuardian::Confirmed(deadline)) => {
                self.is_confirmed = true;
                self.countdown.confirm(deadline);
            }
            Event::Told(FromGuardian::Go) => self.may_go = true,
            Event::Told(FromGuardian::Suspended) => {
                self.countdown.confirm(self.deadline);
            }
            Event::Told(FromGuardian::Resumed) => {
                self.tell_deadline().await;
            }
            Event::Told(FromGuardian::Stop(signal)) => {
                self.stopped_by = Some(signal);
                self.countdown.end(BootTime::now());
            }
            Event::Renewed(deadline) => {
                self.deadline = deadline;
                if self.guardian.is_suspended {
                    self.countdown.confirm(deadline);
                } else {
                    self.tell_deadline().await;
                }
            }
            Event::GuardianGone => {
                self.cause.get_or_insert(Cause::GuardianGone);
                self.countdown.end(BootTime::now());
            }
            Event::Lost => {
                self.deadlines = None;
                self.cause.get_or_insert(Cause::Lost);
                self.countdown.end_of_lost(BootTime::now());
            }
            Event::Due => self.send_what_is_due(),
            Event::GuardianSleeps => self.guardian.wake(),
            Event::Child => {}
        }
    }

    async fn tell_deadline(&mut self) {
        let deadline = FromSupervisor::Deadline(self.deadline);
        self.guardian.tell(&deadline).await;
    }

    fn send_what_is_due(&mut self) {
        let is_new = !self.countdown.is_ending();
        let due = self.countdown.due(BootTime::now());
        if is_new && due.is_some() {
            self.cause.get_or_insert(Cause::NotRenewed);
        }
        match (due, &self.group) {
            // Ctrl-Z has stopped the command and the guardian. SIGTERM would continue the command.
            (Some(_), Some(group)) if self.guardian.is_suspended => group.kill(),
            (Some(Due::Terminate), Some(group)) => group.terminate(),
            (Some(Due::Kill), Some(group)) => group.kill(),
            _ => {}
        }
    }
}

/// Whether an error of a socket means that the other process has ended, for example by a signal
/// before it has read everything.
fn is_end(error: &io::Error) -> bool {
    let ends = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
    ends.contains(&error.kind())
}

/// Starts the process that will be the command, in a group of its own. It waits for its input.
fn launch(command: &[OsString], environment: Environment) -> io::Result<(StdUnixStream, Child)> {
    let (ours, theirs) = StdUnixStream::pair()?;
    let launcher = Command::new(OWN_PROGRAM)
        .arg0(LAUNCHER)
        .args(command)
        .envs(environment)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .process_group(0)
        .spawn()?;
    Ok((ours, launcher))
}

/// Completes when one of these processes has ended.
async fn any(living: Vec<OwnedFd>) -> io::Result<()> {
    #[expect(
        deprecated,
        reason = "its successor is unsafe; an OwnedFd stays what it is"
    )]
    let watched: io::Result<Vec<_>> = living.into_iter().map(AsyncFd::new).collect();
    let watched = watched?;
    let ended = watched.iter().map(|process| Box::pin(process.readable()));
    let (ended, ..) = select_all(ended).await;
    ended.map(drop)
}
