//! A client of HTTP that costs as little as possible.

use std::sync::Arc;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Mutex,
};

use crate::{figure::BoxError, paired::per_second};

/// How many requests each client sends in one turn.
const REQUESTS: u32 = 50;

/// The text of a request.
pub(super) fn request(start: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{start} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    )
}

/// A connection that is kept.
pub(super) struct Client(TcpStream);

impl Client {
    pub(super) async fn connect(address: &str) -> Result<Self, BoxError> {
        let connection = TcpStream::connect(address).await?;
        connection.set_nodelay(true)?;
        Ok(Self(connection))
    }

    /// Sends a request, and returns the body of the answer, which is a success of known length.
    pub(super) async fn send(&mut self, request: &str) -> Result<String, BoxError> {
        self.0.write_all(request.as_bytes()).await?;
        let mut answer = Vec::with_capacity(1024);
        loop {
            if self.0.read_buf(&mut answer).await? == 0 {
                return Err("the connection was closed".into());
            }
            if let Some(body) = whole(std::str::from_utf8(&answer)?)? {
                return Ok(body.to_owned());
            }
        }
    }
}

/// The body, if all of it is there.
fn whole(answer: &str) -> Result<Option<&str>, BoxError> {
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return Ok(None);
    };
    if !head.starts_with("HTTP/1.1 2") {
        return Err(answer.into());
    }
    let length = head.split("content-length: ").nth(1).unwrap_or_default();
    let length: usize = length.split('\r').next().unwrap_or_default().parse()?;
    Ok((body.len() >= length).then_some(body))
}

/// Clients that send the next request as soon as the last one is answered, each its own.
pub(super) struct Clients(Vec<Arc<Mutex<(Client, String)>>>);

impl Clients {
    pub(super) async fn connect(address: &str, requests: &[String]) -> Result<Self, BoxError> {
        let mut clients = Vec::new();
        for request in requests {
            let client = (Client::connect(address).await?, request.clone());
            clients.push(Arc::new(Mutex::new(client)));
        }
        Ok(Self(clients))
    }

    pub(super) async fn requests_per_second(&self) -> Result<f64, BoxError> {
        let task = |number: u32| {
            let client = Arc::clone(&self.0[number as usize]);
            async move {
                let (client, request) = &mut *client.lock().await;
                for _ in 0..REQUESTS {
                    client.send(request).await?;
                }
                Ok(())
            }
        };
        per_second(u32::try_from(self.0.len())?, REQUESTS, task).await
    }
}
