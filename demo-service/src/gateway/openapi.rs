//! The API of the gateway, requests and answers, as an OpenAPI 3.1 document.
//!
//! The document is a file. The tests compare every answer that they get with it, and schemathesis
//! sends what it allows.

mod viewer;

use serde_json::Value;

pub(super) use self::viewer::routes;
use crate::{console::Console, failure::Failure};

const DOCUMENT: &str = include_str!("openapi.json");

/// What a gateway has only if it was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    /// The endpoints of operators.
    pub(super) operators: bool,
    /// The unfenced twins of all accounts.
    pub(super) unfenced: bool,
}

/// Prints the document as JSON, with everything.
///
/// # Errors
/// [`Failure::Machine`] if it cannot be written as JSON.
pub(crate) fn print_document() -> Result<(), Failure> {
    let everything = Offered {
        operators: true,
        unfenced: true,
    };
    let json = serde_json::to_string_pretty(&document(everything));
    let json = json.map_err(|error| Failure::machine("writing JSON")(error.into()))?;
    Console::Stdout.line(json);
    Ok(())
}

/// The document of what is offered.
fn document(offered: Offered) -> Value {
    let mut document: Value = serde_json::from_str(DOCUMENT).unwrap_or_default();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    if !offered.unfenced {
        leave_out(&mut document, "/v1/unfenced/", "without fencing");
    }
    if !offered.operators {
        leave_out(&mut document, "/v1/admin/", "operators");
        if let Some(components) = document["components"].as_object_mut() {
            components.remove("securitySchemes");
        }
    }
    document
}

fn leave_out(document: &mut Value, below: &str, of_tag: &str) {
    if let Some(paths) = document["paths"].as_object_mut() {
        paths.retain(|path, _| !path.starts_with(below));
    }
    if let Some(tags) = document["tags"].as_array_mut() {
        tags.retain(|tag| tag["name"] != of_tag);
    }
}
