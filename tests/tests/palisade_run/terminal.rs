//! A run in a terminal: each dialogue goes as it goes without us.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use e2e::{
    observer::{until, until_within},
    warden::workspace_binary,
};
use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use tokio::{process::Command, time::timeout};

use crate::support::{Marked, Place};

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";

const TTL: &str = "4s";
const LONGER_THAN_THE_LEASE: Duration = Duration::from_millis(4500);

/// How long a process of ours takes to notice a signal to another process. A test that waits for
/// too short a time proves less, and does not fail.
const NOTICING: Duration = Duration::from_millis(200);

/// A terminal, and what the program in it has written.
struct Terminal {
    master: File,
    shown: Arc<Mutex<String>>,
    shell: Marked,
}

impl Terminal {
    /// With an interactive shell, which controls jobs.
    fn with_shell() -> Self {
        Self::with(&["bash", "--norc", "--noprofile", "-i"])
    }

    /// With such a shell, and a command in it that has begun and takes ten minutes.
    async fn with_sleep(run: &str) -> Self {
        let mut terminal = Self::with_shell();
        let command = format!("{run}sh -c 'echo is there; exec sleep 600'");
        terminal.line(&command).await;
        terminal.shows("is there\r\n").await;
        // The shell has written this, before it became the command that the tests look for.
        terminal.has_sleeping(1).await;
        terminal
    }

    /// With a program that leads the session of the terminal.
    fn with(program: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let master: OwnedFd = master.unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let terminal = ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY);
        let terminal = terminal.unwrap();
        // No line is so long that the shell would break it.
        let wide = Winsize {
            ws_row: 50,
            ws_col: 1000,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&terminal, wide).unwrap();
        let mut shell = Command::new("setsid");
        shell
            .args(["--ctty", "--wait"])
            .args(program)
            .env("PS1", "prompt> ")
            .env("TERM", "dumb")
            .stdin(Stdio::from(terminal.try_clone().unwrap()))
            .stdout(Stdio::from(terminal.try_clone().unwrap()))
            .stderr(Stdio::from(terminal))
            .kill_on_drop(true);
        let master = File::from(master);
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut from, to) = (master.try_clone().unwrap(), Arc::clone(&shown));
        thread::spawn(move || {
            let mut bytes = [0; 1024];
            // An error is the end: no process has the terminal open any more.
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..read]);
                to.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push_str(&text);
            }
        });
        Self {
            master,
            shown,
            shell: Marked::spawn(shell),
        }
    }

    fn types(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    fn shown(&self) -> String {
        self.shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits for a text, and forgets what was shown up to there.
    async fn shows(&self, text: &str) {
        let shown = async {
            while !self.shown().contains(text) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if timeout(Duration::from_secs(20), shown).await.is_err() {
            panic!("{text:?} is not shown, but {:?}", self.shown());
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let end = shown.find(text).unwrap() + text.len();
        shown.drain(..end);
    }

    /// Types a line and waits until the shell has read it.
    async fn line(&mut self, line: &str) {
        self.types(&format!("{line}\n"));
        self.shows(line).await;
    }

    /// Waits until so many processes sleep. There are none when the command is dead.
    async fn has_sleeping(&self, processes: usize) {
        until("so many processes sleep", async || {
            self.shell.commands_named("sleep").len() == processes
        })
        .await;
    }

    /// Stops the job by Ctrl-Z, and waits until the shell has the terminal again.
    async fn stops(&mut self) {
        self.types(CTRL_Z);
        self.shows("Stopped").await;
        self.shows("prompt> ").await;
    }

    /// Continues the job, and waits until it has the terminal. Before that, the shell would take
    /// what is typed.
    async fn continues(&mut self) {
        self.line("fg").await;
        until("the shell has given the terminal away", async || {
            let shells = self.shell.commands_named("bash");
            let foreground = rustix::termios::tcgetpgrp(&self.master).ok();
            foreground.is_some_and(|group| !shells.contains(&group))
        })
        .await;
        self.shell.until_none_is_stopped().await;
    }
}

/// The text in front of a command: nothing, or a run.
fn prefixes(place: &Place) -> [String; 2] {
    let palisade = workspace_binary("palisade").unwrap();
    let palisade = palisade.display();
    let url = place.url();
    [
        String::new(),
        format!("{palisade} run --resource r --lock {url} --ttl {TTL} -- "),
    ]
}

/// Catches: Ctrl-C that ends the run and not the command, or the command and not its script.
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_the_command_and_what_is_around_it() {
    let place = Place::new();
    for run in prefixes(&place) {
        let mut terminal = Terminal::with_sleep(&run).await;
        terminal.types(CTRL_C);
        terminal.shows("prompt> ").await;
        terminal.line("echo code=$?").await;
        terminal.shows("code=130").await;

        let script =
            "for i in 1 2 3; do RUN sh -c \"echo is there; exec sleep 600\"; echo after; done";
        let script = script.replace("RUN ", &run);
        let file = place.file("script");
        std::fs::write(&file, script).unwrap();
        terminal.line(&format!("bash {}", file.display())).await;
        terminal.shows("is there\r\n").await;
        terminal.types(CTRL_C);
        terminal.shows("prompt> ").await;
        terminal.line("echo code=$?").await;
        terminal.shows("code=130").await;
        assert!(!terminal.shown().contains("after"), "the script went on");
    }
}

/// Catches: a command that is ended because its user has stopped it, that loses the terminal, or
/// whose lease goes to another one meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_z_stops_the_command_and_it_goes_on_in_the_foreground() {
    let place = Place::new();
    for run in prefixes(&place) {
        let mut terminal = Terminal::with_shell();
        terminal
            .line(&format!("{run}sh -c 'echo is there; exec cat'"))
            .await;
        terminal.shows("is there\r\n").await;
        for _ in 0..2 {
            terminal.stops().await;
            if !run.is_empty() {
                tokio::time::sleep(LONGER_THAN_THE_LEASE).await;
                let locks = palisade::connect(place.url()).await.unwrap();
                let seen = locks.inspect("r").await.unwrap();
                assert!(seen.holder.is_some(), "the lease is gone");
            }
            terminal.continues().await;
            terminal.types("typed\n");
            terminal.shows("typed\r\ntyped\r\n").await;
        }
        terminal.types(CTRL_D);
        terminal.shows("prompt> ").await;
        terminal.line("echo code=$?").await;
        terminal.shows("code=0").await;
    }
}

/// Catches: a command in the background that takes the terminal from the shell, or that cannot be
/// brought to the foreground.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_the_background_stops_when_it_reads() {
    let place = Place::new();
    for run in prefixes(&place) {
        let mut terminal = Terminal::with_shell();
        // Says at once that a job has stopped.
        terminal.line("set -o notify").await;
        terminal
            .line(&format!("{run}sh -c 'read x; echo has-$x' &"))
            .await;
        terminal.shows("Stopped").await;
        terminal.line("fg").await;
        terminal.types("typed\n");
        terminal.shows("has-typed").await;
        terminal.line("echo still the shell").await;
        terminal.shows("still the shell\r\n").await;
    }
}

/// Catches: a command that may not change its terminal, or whose place in a pipe is another one.
#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_and_pipes_are_those_of_the_command() {
    let place = Place::new();
    for run in prefixes(&place) {
        let mut terminal = Terminal::with_shell();
        terminal
            .line(&format!(
                "{run}sh -c 'stty -echo && stty echo && test -t 0 && test -t 1'"
            ))
            .await;
        terminal.shows("prompt> ").await;
        terminal.line("echo code=$?").await;
        terminal.shows("code=0").await;
        terminal
            .line(&format!("echo abc | {run}cat | tr a-c x-z"))
            .await;
        terminal.shows("xyz\r\n").await;
        terminal
            .line(&format!("{run}yes | head -n 1; echo ${{PIPESTATUS[*]}}"))
            .await;
        terminal.shows("141 0").await;
        let sleep = format!("{run}sh -c 'echo is there; exec sleep 600' | cat");
        terminal.line(&sleep).await;
        terminal.shows("is there\r\n").await;
        terminal.stops().await;
        terminal.continues().await;
        terminal.types(CTRL_C);
        terminal.shows("prompt> ").await;
    }
}

/// Catches: a command that lives on without its terminal, or a lease that does.
#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_hangs_up_ends_the_command_and_frees_the_lease() {
    let place = Place::new();
    let [_, run] = prefixes(&place);
    // So that it is the hang-up that frees the lease.
    let run = run.replace(TTL, "60s");
    let terminal = Terminal::with_sleep(&run).await;
    let Terminal {
        master,
        shell,
        shown,
    } = terminal;
    // The thread that reads has a copy.
    rustix::process::kill_process(shell.guardian(), Signal::HUP).ok();
    drop((master, shown));
    for process in shell.commands_named("bash") {
        kill_process(process, Signal::HUP).unwrap();
    }
    until("the command is dead", async || {
        shell.commands_named("sleep").is_empty()
    })
    .await;
    let locks = palisade::connect(place.url()).await.unwrap();
    let free = async || locks.inspect("r").await.unwrap().holder.is_none();
    until_within(Duration::from_secs(20), "the lease is free", free).await;
}

/// Catches: a command that goes on after its lease, because the shell continues it.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_lease_ended_while_it_was_stopped_is_not_continued() {
    let place = Place::new();
    let [_, run] = prefixes(&place);
    for signal in [Signal::KILL, Signal::STOP] {
        let mut terminal = Terminal::with_shell();
        let file = place.file("went-on");
        let script = format!(
            "trap \"touch {}\" CONT; sleep 600 & echo is there; wait; wait",
            file.display()
        );
        terminal.line(&format!("{run}sh -c '{script}'")).await;
        terminal.shows("is there\r\n").await;
        terminal.types(CTRL_Z);
        terminal.shows("Stopped").await;
        for process in terminal.shell.supervisors() {
            kill_process(process, signal).unwrap();
        }
        let locks = palisade::connect(place.url()).await.unwrap();
        // A supervisor that was stopped in the middle of a write lets others read, and not write.
        until("the lease is over", async || {
            let seen = locks.inspect("r").await;
            seen.is_ok_and(|seen| seen.holder.is_none())
        })
        .await;
        terminal.line("fg").await;
        terminal.shows("prompt> ").await;
        terminal.line("echo code=$?").await;
        terminal.shows("code=124").await;
        assert!(!file.exists(), "the command was continued");
        assert_eq!(terminal.shell.commands_named("sleep").len(), 0);
    }
}

/// Catches: a command that goes on without a guardian, because SIGTERM continues it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_command_that_loses_its_lease_is_killed() {
    let place = Place::new();
    let [_, run] = prefixes(&place);
    let mut terminal = Terminal::with_shell();
    let file = place.file("went-on");
    let script = format!(
        "trap \"echo TERM >> {0}\" TERM; trap \"echo CONT >> {0}\" CONT; sleep 600 & \
         echo is there; wait; wait",
        file.display()
    );
    terminal.line(&format!("{run}sh -c '{script}'")).await;
    terminal.shows("is there\r\n").await;
    terminal.has_sleeping(1).await;
    terminal.stops().await;
    let locks = palisade::connect(place.url()).await.unwrap();
    locks.force_release("r").await.unwrap();
    terminal.has_sleeping(0).await;
    terminal.line("fg").await;
    terminal.shows("prompt> ").await;
    terminal.line("echo code=$?").await;
    terminal.shows("code=124").await;
    let signals = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(signals, "", "the command was continued");
}

/// Catches: a process that goes on without a guardian, and so after its lease, because it ignores
/// the Ctrl-Z that has stopped the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ignores_ctrl_z_is_stopped_with_its_command() {
    let place = Place::new();
    let [_, run] = prefixes(&place);
    let mut terminal = Terminal::with_shell();
    let script = "(trap \"\" TSTP; exec sleep 600) & echo is there; exec sleep 600";
    terminal.line(&format!("{run}sh -c '{script}'")).await;
    terminal.shows("is there\r\n").await;
    terminal.has_sleeping(2).await;
    terminal.stops().await;
    until("both are stopped", async || {
        let sleeps = terminal.shell.commands_named("sleep");
        sleeps
            .into_iter()
            .all(|process| e2e::signal::state(process) == Some('T'))
    })
    .await;
    terminal.continues().await;
    assert_eq!(terminal.shell.commands_named("sleep").len(), 2);
}

/// Catches: a command that stays stopped, because no shell controls it.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_shell_ctrl_z_does_not_stop_the_command_for_good() {
    let place = Place::new();
    let [_, run] = prefixes(&place);
    let run = format!("{run}sh -c 'echo is there; exec cat'");
    // As the leader of the session, and below a shell that leads it and controls no jobs.
    for script in [format!("exec {run}"), format!("{run}; exit $?")] {
        let mut terminal = Terminal::with(&["sh", "-c", &script]);
        terminal.shows("is there\r\n").await;
        terminal.types(CTRL_Z);
        terminal.types("typed\n");
        terminal.shows("typed\r\ntyped\r\n").await;
        terminal.types(CTRL_D);
        assert_eq!(terminal.shell.ended().await.code(), Some(0));
    }
}

/// Catches: a terminal without echo after a command that was killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_was_killed_leaves_a_terminal_in_order() {
    let place = Place::new();
    for run in prefixes(&place) {
        let mut terminal = Terminal::with_shell();
        let script = "stty raw -echo; echo is there; kill -KILL $$";
        terminal.line(&format!("{run}sh -c '{script}'")).await;
        terminal.shows("prompt> ").await;
        terminal
            .line("stty -a | grep -c -e ' -echo ' -e ' -icanon '; echo over")
            .await;
        terminal.shows("\r\n0\r\nover").await;
    }
}

/// Catches: a neighbour in a pipe that the terminal was taken from, such as `less`, or a command
/// that does not get it beside neighbours.
#[tokio::test(flavor = "multi_thread")]
async fn neighbours_in_a_pipe_and_the_command_can_read_the_terminal() {
    let place = Place::new();
    for run in prefixes(&place) {
        let mut terminal = Terminal::with_shell();
        // By `exec`, because a dash whose child was stopped before its program began waits for it,
        // and never stops.
        let neighbour = "sh -c 'read x; read y < /dev/tty; echo $x, neighbour: $y; exec cat'";
        let script = "echo is there; exec sleep 600";
        terminal
            .line(&format!("{run}sh -c '{script}' | {neighbour}"))
            .await;
        terminal.types("typed\n");
        terminal.shows("is there, neighbour: typed\r\n").await;
        terminal.stops().await;
        terminal.continues().await;
        terminal.types(CTRL_C);
        terminal.shows("prompt> ").await;

        let asks = "sh -c 'read x < /dev/tty; echo has $x; exec sleep 600'";
        terminal.line(&format!("{run}{asks} | cat")).await;
        terminal.types("typed\n");
        terminal.shows("has typed\r\n").await;
        terminal.types(CTRL_C);
        terminal.shows("prompt> ").await;
    }
}

/// Catches: a command that another process has continued, and that only one of ours knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_continued_by_others_continues_its_guardian() {
    let place = Place::new();
    let [_, run] = prefixes(&place);
    let mut terminal = Terminal::with_sleep(&run).await;
    terminal.types(CTRL_Z);
    terminal.shows("Stopped").await;
    let sleeps = terminal.shell.commands_named("sleep");
    send(&sleeps, Signal::CONT);
    terminal.shell.until_none_is_stopped().await;
    send(&terminal.shell.supervisors(), Signal::KILL);
    terminal.has_sleeping(0).await;
}

fn send(processes: &[Pid], signal: Signal) {
    for process in processes {
        kill_process(*process, signal).unwrap();
    }
}

/// Catches: a guardian that stops because its command was stopped, and stays so because the command
/// was continued before the guardian stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_guardian_that_is_late_does_not_stay_stopped_while_its_command_goes_on() {
    let place = Place::new();
    let [_, run] = prefixes(&place);
    let run = run.replace(TTL, "60s");
    let terminal = Terminal::with_sleep(&run).await;
    let shell = &terminal.shell;
    let (sleeps, supervisors) = (shell.commands_named("sleep"), shell.supervisors());
    let mut guardian = shell.commands_named("palisade");
    guardian.retain(|process| !supervisors.contains(process));
    send(&guardian, Signal::STOP);
    terminal.shows("Stopped").await;
    // No one outside sees what a process has noticed, so it gets time for that.
    for signal in [Signal::STOP, Signal::CONT] {
        send(&sleeps, signal);
        tokio::time::sleep(NOTICING).await;
    }
    send(&guardian, Signal::CONT);
    tokio::time::sleep(NOTICING).await;
    terminal.shell.until_none_is_stopped().await;
    assert_eq!(terminal.shell.commands_named("sleep").len(), 1);
}

/// Catches: a command that is ended as soon as it begins, because it got its lease while its user
/// had stopped the wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_stopped_goes_on_although_the_lease_came_long_ago() {
    let place = Place::new();
    let [_, run] = prefixes(&place);
    let locks = palisade::connect(place.url()).await.unwrap();
    let other = locks.acquire("r").await.unwrap();
    let mut terminal = Terminal::with_shell();
    let waits = run.replace("--ttl", "--wait 60s --ttl");
    terminal
        .line(&format!("{waits}sh -c 'echo is there; exec sleep 1'"))
        .await;
    until("it waits", async || {
        locks.inspect("r").await.unwrap().waiters > Some(0)
    })
    .await;
    terminal.types(CTRL_Z);
    terminal.shows("Stopped").await;
    other.release().await.unwrap();
    until("the lease is its own", async || {
        locks.inspect("r").await.unwrap().holder.is_some()
    })
    .await;
    tokio::time::sleep(LONGER_THAN_THE_LEASE).await;
    assert!(!terminal.shown().contains("is there\r"), "it has begun");
    terminal.line("fg").await;
    terminal.shows("is there\r\n").await;
    terminal.shows("prompt> ").await;
    terminal.line("echo code=$?").await;
    terminal.shows("code=0").await;
}

/// Catches: a signal that is lost because it came while the command was stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_command_is_ended_by_kill() {
    let place = Place::new();
    for run in prefixes(&place) {
        let mut terminal = Terminal::with_sleep(&run).await;
        terminal.types(CTRL_Z);
        terminal.shows("Stopped").await;
        // With SIGCONT, as shells do it.
        terminal.line("kill %1").await;
        terminal.has_sleeping(0).await;
    }
}
