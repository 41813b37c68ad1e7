//! The API of the gateway, requests and answers, as an OpenAPI 3.1 document.
//!
//! The document is a file. The tests compare every answer that they get with it, and schemathesis
//! sends what it allows.

mod viewer;

use serde_json::Value;

pub(super) use self::viewer::routes;
use crate::{console::Console, failure::Failure};

const DOCUMENT: &str = include_str!("openapi.json");

/// Prints the document as JSON, with the endpoints of operators.
///
/// # Errors
/// [`Failure::Machine`] if it cannot be written as JSON.
pub(crate) fn print_document() -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(&document(true));
    let json = json.map_err(|error| Failure::machine("writing JSON")(error.into()))?;
    Console::Stdout.line(json);
    Ok(())
}

/// The document; with the endpoints of operators if there are any.
fn document(with_operators: bool) -> Value {
    let mut document: Value = serde_json::from_str(DOCUMENT).unwrap_or_default();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    if with_operators {
        return document;
    }
    if let Some(paths) = document["paths"].as_object_mut() {
        paths.retain(|path, _| !path.starts_with("/v1/admin/"));
    }
    if let Some(tags) = document["tags"].as_array_mut() {
        tags.retain(|tag| tag["name"] != "operators");
    }
    if let Some(components) = document["components"].as_object_mut() {
        components.remove("securitySchemes");
    }
    document
}
