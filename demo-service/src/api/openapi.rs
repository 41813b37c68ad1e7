//! The document of the demo: the document of the gateway, with the routes that the demo adds.

use serde_json::Value;

const DOCUMENT: &str = include_str!("openapi.json");

/// The document of a gateway with or without endpoints for operators, and of accounts and jobs with
/// or without unfenced twins.
pub(crate) fn document(has_operators: bool, unfenced: bool) -> Value {
    let mut document = palisade_gateway::document(has_operators);
    let ours = serde_json::from_str(DOCUMENT).unwrap_or_default();
    add(&mut document, ours);
    if !unfenced {
        if let Some(paths) = document["paths"].as_object_mut() {
            paths.retain(|path, _| !path.starts_with("/v1/unfenced/"));
        }
        if let Some(tags) = document["tags"].as_array_mut() {
            tags.retain(|tag| tag["name"] != "without fencing");
        }
    }
    document
}

/// Adds `more`. Members of objects and entries of lists are joined. If another value is in both
/// documents, the one in `more` wins.
fn add(to: &mut Value, more: Value) {
    match (to, more) {
        (Value::Object(to), Value::Object(more)) => {
            for (name, value) in more {
                add(to.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(to), Value::Array(more)) => to.extend(more),
        (to, more) => *to = more,
    }
}
