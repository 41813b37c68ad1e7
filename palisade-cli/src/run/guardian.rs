//! The process that the user starts. It knows the command and the deadline of its lease, and
//! nothing else that could keep it from ending the command in time.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{
            fs::FileTypeExt,
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    time::Duration,
};

use nix::sys::{
    signal::{Signal, raise},
    wait::{Id, WaitPidFlag},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{
        Pid, Resource, WaitId, WaitIdOptions, WaitOptions, getpid, getrlimit,
        kill_current_process_group, kill_process, set_child_subreaper, waitid, waitpid,
    },
    stdio::{dup2_stdin, dup2_stdout},
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};
use serde_json::json;

use super::{
    OWN_PROGRAM, SUPERVISOR,
    boot_time::BootTime,
    cgroup::Cgroup,
    countdown::{Countdown, Due, Margins},
    exit,
    group::Group,
    peer::{self, FromGuardian, FromSupervisor, Lines},
    report::Report,
    signals::Signals,
    terminal::{self, Terminal},
};
use crate::{cli::RunArgs, failure::Failure, program::finish};

/// How long a supervisor on a busy host may take to name the deadline of a command that is stopped.
/// It is no longer than the end of a command takes, because the supervisor may have begun that.
const ANSWERING: Duration = Duration::from_secs(1);

/// Runs the command of these arguments, and returns its exit code.
pub(crate) fn guard(args: &RunArgs) -> ExitCode {
    let grace = match args.grace() {
        Ok(grace) => grace,
        Err(why) => return finish(Err(Failure::Usage(why))),
    };
    let margins = Margins::new(args.ttl.get(), grace).of_guardian();
    let guarded = Guardian::begin(Report::of(args), margins).and_then(Guardian::guard);
    match guarded {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let failure = Failure::machine("starting or watching our own processes")(error);
            let _printed = finish(Err(failure));
            ExitCode::from(exit::MACHINE)
        }
    }
}

/// The least number of files that this process may have open. With fewer, tokio may panic.
const OPEN_FILES: u64 = 16;

struct Guardian {
    report: Report,
    margins: Margins,
    signals: Signals,
    terminal: Option<Terminal>,
    supervisor: Child,
    socket: UnixStream,
    lines: Lines,
    timer: OwnedFd,
    /// The end of the command; `None` before the first deadline has come.
    countdown: Option<Countdown>,
    cgroup: Option<Cgroup>,
    command: Stage,
    /// The moment until which a deadline has to come after this process was stopped together with
    /// the command, which goes on only then.
    resuming: Option<BootTime>,
    /// The first signal by which the user does not want to wait: for the lease, or for its release.
    asked: Option<Signal>,
    /// Whether this process has ended the command.
    has_ended_it: bool,
    /// Whether the supervisor has closed its end of the socket, as it does before the release.
    is_silent: bool,
    /// Set when the supervisor has ended.
    supervisor_ended: Option<ExitStatus>,
}

enum Stage {
    Waiting,
    Running(Group),
    /// All of its processes have ended; the signal is the one that ended the leader.
    Over {
        signal: Option<i32>,
        had_terminal: bool,
    },
}

impl Guardian {
    /// Starts the supervisor.
    fn begin(report: Report, margins: Margins) -> io::Result<Self> {
        if let Some(files @ ..OPEN_FILES) = getrlimit(Resource::Nofile).current {
            let why = format!("{files} open files are too few: raise the limit, `ulimit -n`");
            return Err(io::Error::other(why));
        }
        let signals = Signals::block()?;
        // The command is adopted when its parent dies.
        set_child_subreaper(Some(getpid()))?;
        let (socket, theirs) = UnixStream::pair()?;
        let supervisor = signals.unblocked(|| {
            Command::new(OWN_PROGRAM)
                .arg0(SUPERVISOR)
                .args(std::env::args_os().skip(1))
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .process_group(0)
                .spawn()
        })?;
        peer::send_file(&socket, io::stdin().as_fd())?;
        let is_in_pipe = is_pipe(io::stdin().as_fd())? || is_pipe(io::stdout().as_fd())?;
        socket.set_nonblocking(true)?;
        // The neighbours of the command in a pipe are not to wait for this process.
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&nothing)?;
        dup2_stdout(&nothing)?;
        Ok(Self {
            report,
            margins,
            signals,
            terminal: Terminal::open(is_in_pipe),
            supervisor,
            socket,
            lines: Lines::default(),
            timer: timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?,
            countdown: None,
            cgroup: Cgroup::of(getpid()),
            command: Stage::Waiting,
            resuming: None,
            asked: None,
            has_ended_it: false,
            is_silent: false,
            supervisor_ended: None,
        })
    }

    /// Until the command has ended, and then the supervisor. Without a system that answers, both
    /// end at once.
    fn guard(mut self) -> io::Result<u8> {
        let code = self.until_all_is_over();
        if code.is_err() {
            if let Stage::Running(group) = &self.command {
                group.kill();
            }
            self.kill_supervisor();
        }
        code
    }

    fn until_all_is_over(&mut self) -> io::Result<u8> {
        loop {
            self.receive()?;
            while let Some(signal) = self.signals.next() {
                self.on_signal(signal);
            }
            self.reap()?;
            self.notice_an_end_without_report()?;
            self.end_what_is_due();
            let living = match &self.command {
                Stage::Running(group) if self.is_ending() => {
                    let living = group.living()?;
                    if living.is_empty() && self.is_alone() {
                        return Ok(self.finish());
                    }
                    living
                }
                Stage::Waiting | Stage::Over { .. } if self.supervisor_ended.is_some() => {
                    return Ok(self.finish());
                }
                _ => Vec::new(),
            };
            self.wait(&living)?;
        }
    }

    /// The supervisor may end between the end of the command and its report. Then this process has
    /// ended nothing, and must not say so.
    fn notice_an_end_without_report(&mut self) -> io::Result<()> {
        let Stage::Running(group) = &self.command else {
            return Ok(());
        };
        if self.supervisor_ended.is_none() || self.is_ending() || !group.living()?.is_empty() {
            return Ok(());
        }
        // This ends processes that `/proc` does not show.
        group.kill();
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::Pid(group.leader()), ended).ok().flatten();
        let signal = status.and_then(|status| status.terminating_signal());
        self.on_message(FromSupervisor::Ended { signal });
        Ok(())
    }

    /// Whether nothing more can be expected of the supervisor.
    fn is_alone(&self) -> bool {
        self.supervisor_ended.is_some() || self.has_ended_it
    }

    fn is_ending(&self) -> bool {
        self.countdown.as_ref().is_some_and(Countdown::is_ending)
    }

    /// Waits for a signal, a message, the end of a process, or the next moment.
    fn wait(&self, living: &[OwnedFd]) -> io::Result<()> {
        let next = match (&self.command, self.resuming, &self.countdown) {
            (Stage::Running(_), Some(moment), _) => Some(moment),
            (Stage::Running(_), None, Some(countdown)) if !countdown.is_killed() => {
                Some(countdown.next())
            }
            _ => None,
        };
        self.set_timer(next)?;
        let mut files = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.timer, PollFlags::IN),
        ];
        if !self.is_silent {
            files.push(PollFd::new(&self.socket, PollFlags::IN));
        }
        files.extend(
            living
                .iter()
                .map(|process| PollFd::new(process, PollFlags::IN)),
        );
        rustix::io::retry_on_intr(|| poll(&mut files, None))?;
        Ok(())
    }

    /// The timer counts while the machine is suspended, so that it is over right afterwards.
    fn set_timer(&self, next: Option<BootTime>) -> io::Result<()> {
        // Zero would disarm it.
        let at = next.map(|next| std::cmp::max(next.since_start(), Duration::from_nanos(1)));
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let it_value = at
            .and_then(|at| Timespec::try_from(at).ok())
            .unwrap_or(zero);
        let once = Itimerspec {
            it_interval: zero,
            it_value,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }

    /// Reads what the supervisor has sent.
    fn receive(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        while !self.is_silent {
            match self.socket.read(&mut bytes) {
                Ok(0) => self.is_silent = true,
                Ok(read) => self.lines.push(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    self.is_silent = true;
                }
                Err(error) => return Err(error),
            }
        }
        while let Some(message) = self.lines.next() {
            self.on_message(message);
        }
        Ok(())
    }

    fn on_message(&mut self, message: FromSupervisor) {
        match message {
            FromSupervisor::Deadline(deadline) => self.on_deadline(deadline),
            FromSupervisor::Started { leader } => {
                let Some(leader) = Pid::from_raw(leader) else {
                    return;
                };
                if let Some(terminal) = &mut self.terminal {
                    terminal.offer(leader);
                }
                self.command = Stage::Running(Group::new(leader, self.cgroup.clone()));
                self.tell(FromGuardian::Go);
            }
            FromSupervisor::Stopped(Some(signal)) => self.on_stop(signal),
            FromSupervisor::Stopped(None) => {}
            FromSupervisor::Ended { signal } => {
                let had_terminal = self.terminal.as_ref().is_some_and(Terminal::is_given);
                match (&mut self.terminal, signal) {
                    (Some(terminal), Some(_)) => terminal.take_back_in_order(),
                    (Some(terminal), None) => terminal.take_back(),
                    (None, _) => {}
                }
                self.command = Stage::Over {
                    signal,
                    had_terminal,
                };
            }
        }
    }

    fn on_deadline(&mut self, deadline: BootTime) {
        let new = Countdown::new(self.margins, deadline);
        let countdown = self.countdown.get_or_insert(new);
        countdown.confirm(deadline);
        let is_time_left = countdown.next() > BootTime::now();
        if !self.is_ending() {
            self.tell(FromGuardian::Confirmed(deadline));
        }
        // It may have been sent before this process was stopped.
        if is_time_left && self.resuming.take().is_some() {
            self.resume();
        }
    }

    /// Sends a signal on. Before the command runs, some end the wait.
    fn on_signal(&mut self, signal: Signal) {
        match (signal, &self.command) {
            (Signal::SIGCHLD | Signal::SIGTTIN | Signal::SIGTTOU, _) => {}
            (Signal::SIGCONT, Stage::Running(_)) if self.resuming.is_none() => self.resume(),
            (Signal::SIGCONT, _) => {}
            (Signal::SIGTSTP, Stage::Waiting) if terminal::has_shell() => self.suspend(),
            (
                Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT,
                Stage::Waiting,
            ) if self.asked.is_none() => {
                self.asked = Some(signal);
                self.tell(FromGuardian::Stop(signal as i32));
            }
            // The end of the command and this signal have crossed.
            (Signal::SIGINT | Signal::SIGQUIT, Stage::Over { .. }) if self.asked.is_none() => {
                self.asked = Some(signal);
            }
            // It does not answer, or the user has no patience.
            (Signal::SIGINT | Signal::SIGTERM | Signal::SIGQUIT, Stage::Waiting)
            | (Signal::SIGINT | Signal::SIGQUIT, Stage::Over { .. }) => {
                self.kill_supervisor();
            }
            (signal, Stage::Running(group)) => {
                if let Some(signal) = rustix::process::Signal::from_named_raw(signal as i32) {
                    group.signal(signal);
                }
            }
            _ => {}
        }
    }

    /// A signal has stopped the command. The shell that has started us sees its job stopped only if
    /// this process is. Without a shell it would stay stopped for good.
    fn on_stop(&mut self, signal: i32) {
        let Stage::Running(group) = &self.command else {
            return;
        };
        if group.goes_on() {
            // Another process has continued it meanwhile.
            return;
        }
        let wants_terminal = [Signal::SIGTTIN as i32, Signal::SIGTTOU as i32].contains(&signal);
        let Some(terminal) = &mut self.terminal else {
            return;
        };
        if wants_terminal && terminal.give(group.leader()) {
            group.signal(rustix::process::Signal::CONT);
        } else if terminal::has_shell() {
            self.suspend();
        } else if terminal.is_given() {
            // By Ctrl-Z, where no shell reads the terminal.
            group.signal(rustix::process::Signal::CONT);
        }
    }

    /// Stops this process until it is continued. The supervisor goes on alone meanwhile. So no
    /// process of the command may go on, not even one that ignores Ctrl-Z.
    fn suspend(&mut self) {
        if let Stage::Running(group) = &self.command {
            group.signal(rustix::process::Signal::STOP);
        }
        self.tell(FromGuardian::Suspended);
        let had_terminal = self.terminal.as_ref().is_some_and(Terminal::is_given);
        if had_terminal {
            // As Ctrl-Z does it to all processes of the foreground, such as the rest of a pipe.
            let _none = kill_current_process_group(rustix::process::Signal::TSTP);
        }
        let _impossible = raise(Signal::SIGSTOP);
        self.tell(FromGuardian::Resumed);
        if self.countdown.is_some() {
            let answering = std::cmp::min(ANSWERING, self.margins.whole());
            self.resuming = Some(BootTime::now() + answering);
        }
    }

    /// Has the command go on, in the foreground if we are there.
    fn resume(&mut self) {
        if let Stage::Running(group) = &self.command {
            if let Some(terminal) = &mut self.terminal {
                terminal.take_back();
                terminal.offer(group.leader());
            }
            group.signal(rustix::process::Signal::CONT);
        }
    }

    /// Sends what the countdown says. A supervisor that does not answer, so that it comes to this,
    /// is ended, too.
    fn end_what_is_due(&mut self) {
        let (Stage::Running(group), Some(countdown)) = (&self.command, &mut self.countdown) else {
            return;
        };
        let now = BootTime::now();
        if let Some(resuming) = self.resuming {
            if resuming > now && self.supervisor_ended.is_none() {
                return;
            }
            // The lease may be over, so the command is not continued.
            self.resuming = None;
            countdown.end(now);
            self.has_ended_it = true;
            while countdown.due(now).is_some() {}
            group.kill();
            return;
        }
        if self.supervisor_ended.is_some() {
            countdown.end(now);
        }
        let is_new = !countdown.is_ending();
        let due = countdown.due(now);
        self.has_ended_it |= is_new && due.is_some();
        match due {
            Some(Due::Terminate) => group.terminate(),
            Some(Due::Kill) => group.kill(),
            None => {}
        }
    }

    /// Notices the end of the supervisor, and reaps processes that were adopted. The leader of the
    /// command is not reaped, so that the number of its group stays its own.
    fn reap(&mut self) -> io::Result<()> {
        let supervisor = Pid::from_child(&self.supervisor);
        while self.supervisor_ended.is_none() {
            let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
            let Ok(ended) = nix::sys::wait::waitid(Id::All, look) else {
                break;
            };
            let ended = ended.pid().and_then(|ended| Pid::from_raw(ended.as_raw()));
            // The supervisor is dying, and has lost the leader already.
            let is_leader = |process| match &self.command {
                Stage::Running(group) => process == group.leader(),
                _ => false,
            };
            let Some(process) = ended.filter(|process| !is_leader(*process)) else {
                break;
            };
            let status = waitpid(Some(process), WaitOptions::NOHANG)?;
            if let (Some((_, status)), true) = (status, process == supervisor) {
                self.supervisor_ended = Some(ExitStatus::from_raw(status.as_raw()));
                // It may have sent something before.
                self.receive()?;
            }
        }
        Ok(())
    }

    fn kill_supervisor(&self) {
        if self.supervisor_ended.is_none() {
            let supervisor = Pid::from_child(&self.supervisor);
            let _ended = kill_process(supervisor, rustix::process::Signal::KILL);
        }
    }

    fn tell(&mut self, message: FromGuardian) {
        // A supervisor that has ended, or does not read, is noticed by its silence.
        if let Err(error) = self.socket.write_all(&peer::line(&message)) {
            tracing::debug!(%error, "the supervisor is gone");
        }
    }

    /// Everything has ended, or is to. Returns the exit code.
    fn finish(&mut self) -> u8 {
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back_in_order();
        }
        let is_running = matches!(self.command, Stage::Running(_));
        if self.has_ended_it || is_running {
            self.kill_supervisor();
            self.tell_of_silence();
            return exit::LOST;
        }
        if let Stage::Over {
            signal,
            had_terminal,
        } = self.command
        {
            self.pass_on_interrupt(signal, had_terminal);
        }
        let code = self.supervisor_ended.and_then(|status| status.code());
        match (code, self.asked) {
            (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
            (None, Some(signal)) => exit::by_signal(signal as i32),
            (None, None) => {
                self.tell_of_end();
                exit::MACHINE
            }
        }
    }

    /// The supervisor was killed when there was no command.
    fn tell_of_end(&self) {
        let why = match self.command {
            Stage::Over { .. } => "others may have to wait until its lease ends",
            _ => "the command was not started",
        };
        let signal = self.supervisor_ended.and_then(|status| status.signal());
        let event = json!({ "error": why, "signal": signal });
        let signal = signal.unwrap_or_default();
        let text = format!("signal {signal} has ended the supervisor: {why}");
        self.report.failure("failed", event, &text);
    }

    fn tell_of_silence(&self) {
        let why = match self.supervisor_ended {
            Some(_) => "the supervisor, which renews its lease, has ended",
            None => "the supervisor, which renews its lease, does not answer",
        };
        let event = json!({ "why": why });
        self.report
            .failure("lost", event, &format!("the command was ended: {why}"));
    }

    /// Ctrl-C reaches the foreground, which was the command. Without us it would have reached the
    /// script that has started it, too, whose shell looks at how the command has ended.
    fn pass_on_interrupt(&self, signal: Option<i32>, had_terminal: bool) {
        let signal = signal.and_then(|signal| Signal::try_from(signal).ok());
        let Some(signal @ (Signal::SIGINT | Signal::SIGQUIT)) = signal else {
            return;
        };
        let is_shared = self.terminal.as_ref().is_some_and(Terminal::is_shared);
        let Some(signal) = rustix::process::Signal::from_named_raw(signal as i32) else {
            return;
        };
        let _ended = self.signals.unblocked(|| {
            match (had_terminal, is_shared) {
                (true, _) => kill_current_process_group(signal)?,
                // The script and the neighbours have it already.
                (false, true) => kill_process(getpid(), signal)?,
                (false, false) => {}
            }
            Ok(())
        });
    }
}

/// Whether a file leads to a neighbour.
fn is_pipe(file: BorrowedFd<'_>) -> io::Result<bool> {
    let file = File::from(file.try_clone_to_owned()?);
    Ok(file.metadata()?.file_type().is_fifo())
}
