use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufRead, BufReader, PipeReader, Write},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

/// The lines that servers print once they accept connections. First those of Redis and Postgres,
/// then those of a sentinel, MariaDB, MySQL, PgBouncer, chromedriver, ZooKeeper and etcd.
const READY: [&str; 9] = [
    "eady to accept connections",
    "ready to accept read-only connections",
    "Sentinel ID is",
    "mariadbd: ready for connections",
    "mysqld: ready for connections",
    "process up: PgBouncer",
    "ChromeDriver was started successfully",
    "zookeeper.request_throttler.shutdownTimeout",
    "serving client traffic",
];

/// Lines kept for an error message.
const TAIL: usize = 20;

/// Reads the output of a server. The log shows when the server is ready, and its end shows that the
/// server *and all its children* are gone, because each of them holds the pipe open.
pub(crate) struct Log {
    ready: Receiver<()>,
    tail: Arc<Mutex<VecDeque<String>>>,
}

impl Log {
    /// Follows the output, and copies it to a file.
    pub(crate) fn follow(output: PipeReader, copy: File) -> Self {
        let (announce, ready) = mpsc::channel();
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let lines = Arc::clone(&tail);
        // The thread ends with the log. An error of the last read does not matter.
        thread::spawn(move || read(output, copy, &announce, &lines));
        Self { ready, tail }
    }

    /// Waits until the server accepts connections.
    pub(crate) fn wait_ready(&self, bound: Duration) -> io::Result<()> {
        self.ready.recv_timeout(bound).map_err(|error| {
            let what = match error {
                RecvTimeoutError::Timeout => format!("it is not ready after {bound:?}"),
                RecvTimeoutError::Disconnected => "it ended at once".to_owned(),
            };
            io::Error::other(format!("{what}; it printed:\n{}", self.tail()))
        })
    }

    /// Waits until no process can write to the log any more; false if that takes longer than
    /// `bound`.
    pub(crate) fn wait_end(&self, bound: Duration) -> bool {
        let started = Instant::now();
        loop {
            match self
                .ready
                .recv_timeout(bound.saturating_sub(started.elapsed()))
            {
                Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    /// The last lines.
    pub(crate) fn tail(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.iter().cloned().collect::<Vec<_>>().join("\n")
    }
}

fn read(output: PipeReader, mut copy: File, announce: &Sender<()>, tail: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(output).split(b'\n') {
        let Ok(mut line) = line else { return };
        line.push(b'\n');
        if copy.write_all(&line).is_err() {
            return;
        }
        line.pop();
        let line = String::from_utf8_lossy(&line).into_owned();
        if READY.iter().any(|ready| line.contains(ready)) && announce.send(()).is_err() {
            return;
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        if tail.len() == TAIL {
            tail.pop_front();
        }
        tail.push_back(line);
    }
}
