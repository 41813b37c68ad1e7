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

/// A connection that is kept, and the request that is sent on it.
pub(super) type Client = Arc<Mutex<(TcpStream, String)>>;

pub(super) async fn connect(address: &str, request: &str) -> Result<Client, BoxError> {
    let connection = TcpStream::connect(address).await?;
    connection.set_nodelay(true)?;
    Ok(Arc::new(Mutex::new((connection, request.to_owned()))))
}

/// The rate of clients that send the next request as soon as the last one is answered.
pub(super) async fn requests_per_second(clients: &[Client]) -> Result<f64, BoxError> {
    let task = |number: u32| {
        let client = Arc::clone(&clients[number as usize]);
        async move {
            let (connection, request) = &mut *client.lock().await;
            for _ in 0..REQUESTS {
                send(connection, request).await?;
            }
            Ok(())
        }
    };
    per_second(u32::try_from(clients.len())?, REQUESTS, task).await
}

/// Sends a request, and returns the body of the answer, which is a success of known length.
pub(super) async fn send(connection: &mut TcpStream, request: &str) -> Result<String, BoxError> {
    connection.write_all(request.as_bytes()).await?;
    let mut answer = Vec::with_capacity(1024);
    while connection.read_buf(&mut answer).await? > 0 {
        if let Some(body) = whole(std::str::from_utf8(&answer)?)? {
            return Ok(body.to_owned());
        }
    }
    Err("the connection was closed".into())
}

/// The body, if it is complete.
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
