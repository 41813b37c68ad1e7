//! The API of the gateway, requests and answers, as an OpenAPI 3.1 document.
//!
//! The document is a file. The tests compare every answer with the document, and schemathesis sends
//! all requests that the document allows.

mod viewer;

use serde_json::Value;

pub use self::viewer::documentation;

const DOCUMENT: &str = include_str!("openapi.json");

/// The document of a gateway with or without endpoints for operators.
#[must_use]
pub fn document(has_operators: bool) -> Value {
    let mut document: Value = serde_json::from_str(DOCUMENT).unwrap_or_default();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    if !has_operators {
        if let Some(paths) = document["paths"].as_object_mut() {
            paths.retain(|path, _| !path.starts_with("/v1/admin/"));
        }
        if let Some(tags) = document["tags"].as_array_mut() {
            tags.retain(|tag| tag["name"] != "operators");
        }
        if let Some(components) = document["components"].as_object_mut() {
            components.remove("securitySchemes");
        }
    }
    document
}
