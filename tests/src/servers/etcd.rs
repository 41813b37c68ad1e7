use std::{
    io,
    process::{Output, Stdio},
    sync::{Mutex, PoisonError},
};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::{process::Command, sync::OnceCell};

use super::{Certificates, owned::Owned, until};
use crate::{
    port,
    proxy::Proxy,
    warden::{Order, Running, ServerKind},
};

/// The etcd server that the tests of this process share. Use only keys of your own.
///
/// # Panics
/// If it cannot be started.
pub async fn etcd() -> &'static Etcd {
    static SHARED: OnceCell<Etcd> = OnceCell::const_new();
    SHARED.get_or_init(Etcd::start).await
}

/// A node of etcd, or a cluster of three, for one test.
///
/// Dropping it ends the nodes and returns when they are gone.
#[derive(Debug)]
pub struct Etcd {
    nodes: Vec<Owned>,
    /// The initial URLs of the nodes, which stay the same.
    urls: Vec<String>,
    /// The arguments with which `etcdctl` gets access.
    access: Vec<String>,
}

/// A user of a server that requires a login.
#[derive(Clone, Debug)]
pub struct EtcdUser {
    /// The user's name.
    pub name: &'static str,
    /// The user's password.
    pub password: &'static str,
}

/// Timings that a node without others can afford.
const QUICK: [&str; 4] = ["--heartbeat-interval", "50", "--election-timeout", "500"];

/// The user with all rights.
const ROOT: EtcdUser = EtcdUser {
    name: "root",
    password: "open sesame",
};

impl Etcd {
    /// Starts one node, without data. It grants leases of one second, and others of two.
    ///
    /// # Panics
    /// If it cannot be started, for instance because `etcd-server` is not installed.
    pub async fn start() -> Self {
        Self::started(1, &QUICK, Vec::new()).await
    }

    /// Starts three nodes, without data; they have a leader when this returns.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start_cluster() -> Self {
        Self::started(3, &[], Vec::new()).await
    }

    /// Starts one node that only speaks TLS and requires client certificates.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn start_with_tls(certificates: &Certificates) -> Self {
        let [ca, certificate, key] = [
            certificates.ca(),
            certificates.server(),
            certificates.server_key(),
        ];
        let arguments = [
            "--cert-file",
            &certificate,
            "--key-file",
            &key,
            "--trusted-ca-file",
            &ca,
            "--client-cert-auth",
        ];
        let access = vec![
            format!("--cacert={ca}"),
            format!("--cert={}", certificates.client()),
            format!("--key={}", certificates.client_key()),
        ];
        Self::started(1, &arguments, access).await
    }

    /// Starts three nodes, without data. Each node is behind a proxy of its own, through which the
    /// other nodes reach it. Clients reach the nodes directly. They have a leader when this
    /// returns.
    ///
    /// # Panics
    /// If one cannot be started.
    pub async fn start_cluster_behind_proxies() -> (Self, Vec<Proxy>) {
        let peers = free_urls(3);
        let proxies = join_all(peers.iter().map(|peer| Proxy::start(peer))).await;
        let found_at: Vec<_> = proxies.iter().map(|proxy| proxy.url("http")).collect();
        let nodes = Self::started_as(&peers, &found_at, &[], Vec::new()).await;
        (nodes, proxies)
    }

    async fn started(number: usize, arguments: &[&str], access: Vec<String>) -> Self {
        let peers = free_urls(number);
        Self::started_as(&peers, &peers, arguments, access).await
    }

    /// Nodes that listen for each other at the first URLs, and find each other at the second ones.
    async fn started_as(
        peers: &[String],
        found_at: &[String],
        arguments: &[&str],
        access: Vec<String>,
    ) -> Self {
        let members: Vec<_> = found_at
            .iter()
            .enumerate()
            .map(|(id, peer)| format!("n{id}={peer}"))
            .collect();
        let nodes = peers.iter().zip(found_at).enumerate();
        let nodes = nodes.map(|(id, (peer, found_at))| {
            let (name, members) = (format!("n{id}"), members.join(","));
            let own = [
                ["--name", &name],
                ["--listen-peer-urls", peer],
                ["--initial-advertise-peer-urls", found_at],
                ["--initial-cluster", &members],
            ];
            let arguments = own.concat().into_iter().chain(arguments.iter().copied());
            Owned::start(ServerKind::Etcd, arguments.map(String::from).collect())
        });
        // All at once: no node of a cluster is ready before there are two.
        let nodes = join_all(nodes).await;
        Self {
            urls: nodes.iter().map(|node| node.running().url).collect(),
            nodes,
            access,
        }
    }

    /// The URL to connect to, `etcd://127.0.0.1:PORT,..`. It stays the same across restarts.
    pub fn url(&self) -> String {
        let scheme = self.urls[0].split("://").next().unwrap_or_default();
        format!("{scheme}://{}", self.addresses().join(","))
    }

    /// The URL to connect to as this user.
    pub fn url_of(&self, user: &EtcdUser) -> String {
        let password = user.password.replace(' ', "%20");
        let login = format!("://{}:{password}@", user.name);
        self.url().replacen("://", &login, 1)
    }

    /// Host and port of each node.
    pub fn addresses(&self) -> Vec<&str> {
        let address = |url: &'_ String| url.rfind('/').map_or(0, |slash| slash + 1);
        self.urls.iter().map(|url| &url[address(url)..]).collect()
    }

    /// Raises the alarm that etcd has no space, or ends the alarm. Under this alarm etcd deletes,
    /// and writes nothing.
    ///
    /// # Panics
    /// If that fails.
    pub async fn set_without_space(&self, is_without: bool) {
        let action = if is_without { "ACTIVATE" } else { "DEACTIVATE" };
        let url = format!("http://{}/v3/maintenance/alarm", self.addresses()[0]);
        let alarm = json!({ "action": action, "memberID": "0", "alarm": "NOSPACE" });
        let client = reqwest::Client::builder().no_proxy().build();
        let client = client.unwrap_or_else(|error| panic!("no HTTP client: {error}"));
        let answer = client.post(url).json(&alarm).send().await;
        let answer = answer.unwrap_or_else(|error| panic!("no answer about the alarm: {error}"));
        assert!(answer.status().is_success(), "{answer:?}");
    }

    /// Runs `etcdctl` and returns its output.
    ///
    /// # Panics
    /// If it fails.
    pub async fn ctl(&self, arguments: &[&str]) -> String {
        let output = self.try_ctl(arguments).await;
        let output = output.unwrap_or_else(|error| panic!("cannot run etcdctl: {error}"));
        assert!(output.status.success(), "etcdctl {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs `etcdctl` and returns its output, whether it fails or not.
    ///
    /// # Errors
    /// If it cannot be run.
    pub async fn try_ctl(&self, arguments: &[&str]) -> io::Result<Output> {
        self.command(arguments).output().await
    }

    /// An `etcdctl` that is killed when its process is dropped.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let scheme = if self.urls[0].starts_with("etcds") {
            "https"
        } else {
            "http"
        };
        let endpoints: Vec<_> = self
            .addresses()
            .into_iter()
            .map(|address| format!("{scheme}://{address}"))
            .collect();
        let mut command = Command::new("etcdctl");
        command
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints={}", endpoints.join(",")))
            .args(&self.access)
            .args(arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// From now on requires every client to give a name and a password. The user has all rights on
    /// keys with this prefix.
    ///
    /// # Panics
    /// If that fails.
    pub async fn ask_for_login(&mut self, prefix: &str) -> EtcdUser {
        let user = EtcdUser {
            name: "locker",
            password: "let me in",
        };
        for one in [&ROOT, &user] {
            let login = format!("{}:{}", one.name, one.password);
            self.ctl(&["user", "add", &login]).await;
        }
        for arguments in [
            &["user", "grant-role", "root", "root"][..],
            &["role", "add", "locking"],
            &[
                "role",
                "grant-permission",
                "--prefix=true",
                "locking",
                "readwrite",
                prefix,
            ],
            &["user", "grant-role", user.name, "locking"],
            &["auth", "enable"],
        ] {
            self.ctl(arguments).await;
        }
        self.access
            .push(format!("--user={}:{}", ROOT.name, ROOT.password));
        user
    }

    /// The node that leads.
    ///
    /// # Panics
    /// If no node leads within 60 s.
    pub async fn leader(&self) -> usize {
        let found = Mutex::new(None);
        until("a node leads", || async {
            let leader = self.present_leader().await;
            *found.lock().unwrap_or_else(PoisonError::into_inner) = leader;
            leader.is_some()
        })
        .await;
        let leader = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        leader.unwrap_or_default()
    }

    async fn present_leader(&self) -> Option<usize> {
        let status = self
            .try_ctl(&["endpoint", "status", "--write-out=json"])
            .await
            .ok()?;
        let nodes: Value = serde_json::from_slice(&status.stdout).ok()?;
        let leader = nodes.as_array()?.iter().find(|node| {
            let header = &node["Status"]["header"];
            header["member_id"] == node["Status"]["leader"]
        })?;
        let endpoint = leader["Endpoint"].as_str()?;
        self.addresses()
            .iter()
            .position(|address| endpoint.ends_with(address))
    }

    /// A node's process and files.
    pub fn running(&self, node: usize) -> Running {
        self.nodes[node].running()
    }

    /// Kills a node with SIGKILL. It keeps its data.
    ///
    /// # Panics
    /// If that fails.
    pub async fn kill(&self, node: usize) {
        self.nodes[node].order(Order::Kill).await;
    }

    /// Starts a killed node again.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start_again(&self, node: usize) {
        self.nodes[node].order(Order::Start).await;
    }

    /// Stops a node with SIGSTOP: connections stay open, but nothing is answered.
    ///
    /// # Panics
    /// If that fails.
    pub async fn pause(&self, node: usize) {
        self.nodes[node].order(Order::Pause).await;
    }

    /// Lets a stopped node go on.
    ///
    /// # Panics
    /// If that fails.
    pub async fn resume(&self, node: usize) {
        self.nodes[node].order(Order::Resume).await;
    }
}

/// As many URLs with ports that are free.
fn free_urls(number: usize) -> Vec<String> {
    let port = || port::free().unwrap_or_else(|error| panic!("no port: {error}"));
    std::iter::repeat_with(|| format!("http://127.0.0.1:{}", port()))
        .take(number)
        .collect()
}
