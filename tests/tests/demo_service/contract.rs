//! Compares answers of the gateway with its OpenAPI document.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
    sync::LazyLock,
};

use e2e::warden::workspace_binary;
use reqwest::{Method, StatusCode, header::HeaderMap};
use serde_json::{Map, Value, json};

use crate::gateway::Answer;

/// The document of a gateway with all its parts.
pub(crate) static CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    let command = Command::new(workspace_binary("palisade-demo").unwrap())
        .arg("openapi")
        .output();
    Contract::new(serde_json::from_slice(&command.unwrap().stdout).unwrap())
});

/// Headers of HTTP itself, which any response may have.
const OF_HTTP: [&str; 7] = [
    "allow",
    "connection",
    "content-length",
    "content-type",
    "date",
    "transfer-encoding",
    "vary",
];

/// Pages for people, and the files that they load: not a part of the API.
const PAGES: [&str; 3] = ["/", "/live", "/docs"];

pub(crate) struct Contract {
    document: Value,
    /// The schemas, without room for members that they do not name.
    strict: Value,
}

impl Contract {
    pub(crate) fn new(document: Value) -> Self {
        let mut strict = document["components"].clone();
        for schema in strict["schemas"].as_object_mut().unwrap().values_mut() {
            if schema["type"] == "object" {
                schema["additionalProperties"] = json!(false);
            }
        }
        Self { document, strict }
    }

    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// Each path with its methods, in capitals; HEAD comes with GET.
    pub(crate) fn methods(&self) -> BTreeMap<&str, BTreeSet<String>> {
        let paths = self.document["paths"].as_object().unwrap();
        let methods = |item: &Value| {
            let named = item.as_object().unwrap().keys();
            let mut methods: BTreeSet<_> = named.map(|name| name.to_uppercase()).collect();
            if methods.contains("GET") {
                methods.insert("HEAD".to_owned());
            }
            methods
        };
        paths
            .iter()
            .map(|(path, item)| (path.as_str(), methods(item)))
            .collect()
    }

    /// Says what is different.
    pub(crate) fn check(
        &self,
        method: &Method,
        path: &str,
        answer: &Answer,
        text: &str,
    ) -> Result<(), String> {
        if is_page(path) {
            return Ok(());
        }
        if !answer.headers.contains_key("x-request-id") {
            return Err("the answer has no request id".to_owned());
        }
        let nothing_there = answer.body["type"] == "urn:palisade:problem:route-unknown";
        let Some(item) = self.item(path).filter(|_| !nothing_there) else {
            return if answer.status.is_client_error() {
                Ok(())
            } else {
                Err("the document does not have the path".to_owned())
            };
        };
        let name = match method.as_str() {
            "HEAD" => "get".to_owned(),
            name => name.to_lowercase(),
        };
        let Some(operation) = item.get(&name) else {
            return if answer.status == StatusCode::METHOD_NOT_ALLOWED {
                Ok(())
            } else {
                Err("the document does not have the method".to_owned())
            };
        };
        let Some(response) = operation["responses"].get(answer.status.as_str()) else {
            return Err(format!(
                "the document does not have status {}",
                answer.status
            ));
        };
        let response = self.resolved(response);
        self.check_headers(response, &answer.headers)?;
        if *method == Method::HEAD {
            return Ok(());
        }
        self.check_body(response, answer, text)
    }

    /// This part of the document, or the component that it refers to.
    pub(crate) fn resolved<'a>(&'a self, part: &'a Value) -> &'a Value {
        match part["$ref"].as_str() {
            Some(reference) => self.document.pointer(&reference[1..]).unwrap(),
            None => part,
        }
    }

    fn item(&self, path: &str) -> Option<&Map<String, Value>> {
        let mut paths = self.document["paths"].as_object().unwrap().iter();
        let (_, item) = paths.find(|(template, _)| fits(template, path))?;
        item.as_object()
    }

    fn check_headers(&self, response: &Value, headers: &HeaderMap) -> Result<(), String> {
        let none = Map::new();
        let documented = response["headers"].as_object().unwrap_or(&none);
        for (name, value) in headers {
            if OF_HTTP.contains(&name.as_str()) {
                continue;
            }
            let header = documented
                .iter()
                .find(|(documented, _)| documented.eq_ignore_ascii_case(name.as_str()));
            let Some((_, header)) = header else {
                return Err(format!("the document does not have the header {name}"));
            };
            let header = self.resolved(header);
            let text = value.to_str().unwrap();
            let value = match header["schema"]["type"].as_str() {
                Some("integer") => text.parse::<i64>().map_or(json!(text), Value::from),
                _ => json!(text),
            };
            self.check_value(&header["schema"], &value)
                .map_err(|difference| format!("header {name}: {difference}"))?;
        }
        Ok(())
    }

    fn check_body(&self, response: &Value, answer: &Answer, text: &str) -> Result<(), String> {
        let Some(content) = response.get("content") else {
            return if text.is_empty() {
                Ok(())
            } else {
                Err("the document has no body".to_owned())
            };
        };
        let media_type = answer
            .headers
            .get("content-type")
            .map(|it| it.to_str().unwrap());
        let media_type = media_type
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default();
        let Some(content) = content.get(media_type) else {
            return Err(format!(
                "the document does not have the media type {media_type:?}"
            ));
        };
        if media_type.ends_with("json") && content["schema"]["type"] != "string" {
            self.check_value(&content["schema"], &answer.body)?;
        }
        Ok(())
    }

    fn check_value(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let mut schema = schema.clone();
        schema["components"] = self.strict.clone();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        validator
            .validate(value)
            .map_err(|error| format!("{error} at {:?}", error.instance_path().as_str()))
    }
}

fn is_page(path: &str) -> bool {
    let below = |page: &&str| {
        path.strip_prefix(*page)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    PAGES.contains(&path) || PAGES[1..].iter().any(below)
}

fn fits(template: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(wanted), Some(given)) if wanted == given => {}
            (Some(wanted), Some(given)) if wanted.starts_with('{') && !given.is_empty() => {}
            _ => return false,
        }
    }
}
