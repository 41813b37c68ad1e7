//! A process with a client of another library, which reads its commands line by line.

use std::{process::Stdio, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Such a process. It is killed when this is dropped.
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    /// Starts the process. Its client is connected when this returns.
    pub(crate) async fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut peer = Self {
            child,
            input,
            output,
        };
        assert_eq!(peer.event().await, json!({ "ready": true }));
        peer
    }

    pub(crate) async fn send(&mut self, command: &str) {
        let line = format!("{command}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
    }

    pub(crate) async fn event(&mut self) -> Value {
        let line = timeout(PATIENCE, self.output.next_line()).await;
        let line = line.expect("an answer").unwrap();
        serde_json::from_str(&line.expect("it lives")).unwrap()
    }

    pub(crate) async fn asked(&mut self, command: &str) -> Value {
        self.send(command).await;
        self.event().await
    }

    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }
}
