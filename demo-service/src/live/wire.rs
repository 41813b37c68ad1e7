use serde::Serialize;

use crate::events::{Exchange, Message};

/// A request and its answer, as they were on the wire.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WireView<'a> {
    request: &'a Message,
    /// `None` while it is in progress, or if the client went away before the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a Message>,
    /// The same request as a command for a shell.
    curl: String,
}

impl<'a> WireView<'a> {
    /// Formats an exchange with the gateway at this URL.
    pub(super) fn of(exchange: &'a Exchange, gateway: &str) -> Self {
        Self {
            request: &exchange.request,
            response: exchange.response.as_ref(),
            curl: curl(&exchange.request, gateway),
        }
    }
}

/// A command that sends the request again. curl sets the headers about the connection. The name of
/// the client is omitted, because the visitor's requests are not part of the story.
fn curl(request: &Message, gateway: &str) -> String {
    let mut words = request.start.split(' ');
    let (method, path) = (words.next().unwrap_or("GET"), words.next().unwrap_or("/"));
    let mut lines = vec![format!(
        "curl -sS -i -X {} {}",
        if is_word(method) {
            method.to_owned()
        } else {
            quoted(method)
        },
        quoted(&format!("{gateway}{path}"))
    )];
    for (name, value) in &request.headers {
        if matches!(
            name.as_str(),
            "fencing-token" | "content-type" | "idempotency-key"
        ) {
            lines.push(format!("-H {}", quoted(&format!("{name}: {value}"))));
        }
    }
    if !request.body.is_empty() {
        lines.push(format!("--data-raw {}", quoted(&request.body)));
    }
    lines.join(" \\\n  ")
}

/// Whether the text needs no quotes in a shell. A method may contain characters that do.
fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Quotes the text as one word for any POSIX shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a command to copy that runs a text which another client has sent.
    #[test]
    fn nothing_in_a_request_is_taken_for_a_command() {
        let request = Message {
            start: "PUT /v1/accounts/1 HTTP/1.1".into(),
            headers: vec![
                ("fencing-token".into(), "33;res=\"it's\"".into()),
                ("host".into(), "127.0.0.1".into()),
                ("demo-client".into(), "client-1".into()),
            ],
            body: "{\"balance\":1}';$(x)".into(),
        };
        let command = curl(&request, "http://127.0.0.1:1");
        assert_eq!(
            command,
            "curl -sS -i -X PUT 'http://127.0.0.1:1/v1/accounts/1' \\\n  \
             -H 'fencing-token: 33;res=\"it'\\''s\"' \\\n  \
             --data-raw '{\"balance\":1}'\\'';$(x)'"
        );
        let request = Message {
            start: "`x`|$Y&Z / HTTP/1.1".into(),
            ..Message::default()
        };
        let command = curl(&request, "http://127.0.0.1:1");
        assert_eq!(command, "curl -sS -i -X '`x`|$Y&Z' 'http://127.0.0.1:1/'");
    }
}
