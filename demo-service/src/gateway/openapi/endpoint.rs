use std::collections::BTreeMap;

use fenced_http::ProblemType;
use utoipa::{
    ToSchema,
    openapi::{
        Content, Ref, Required, ResponseBuilder,
        path::{Operation, OperationBuilder, Parameter},
        request_body::RequestBodyBuilder,
    },
};

use super::{
    parts::{request_id, request_id_parameter},
    problem,
};
use crate::gateway::problems;

/// An endpoint that is being described.
pub(super) struct Endpoint {
    operation: OperationBuilder,
    problems: Vec<ProblemType>,
}

impl Endpoint {
    pub(super) fn new(id: &str, tag: &str, summary: &str) -> Self {
        let operation = OperationBuilder::new()
            .operation_id(Some(id))
            .tag(tag)
            .summary(Some(summary))
            .parameter(request_id_parameter());
        // A body that nobody asked for can still be too large, and any name can be wrong.
        let problems = vec![problems::TOO_LARGE, problems::MISDIRECTED];
        Self {
            operation,
            problems,
        }
    }

    pub(super) fn describe(mut self, text: &str) -> Self {
        self.operation = self.operation.description(Some(text));
        self
    }

    pub(super) fn parameter(mut self, parameter: Parameter) -> Self {
        self.operation = self.operation.parameter(parameter);
        self
    }

    /// With a JSON body, and all that can be wrong with one.
    pub(super) fn body<T: ToSchema>(mut self) -> Self {
        let content = Content::new(Some(Ref::from_schema_name(T::name())));
        let body = RequestBodyBuilder::new()
            .content("application/json", content)
            .required(Some(Required::True));
        self.operation = self.operation.request_body(Some(body.build()));
        self.problems([
            problems::MALFORMED,
            problems::UNPROCESSABLE,
            problems::REQUEST_TIMEOUT,
            problems::MEDIA_TYPE,
        ])
    }

    pub(super) fn problems(mut self, kinds: impl IntoIterator<Item = ProblemType>) -> Self {
        self.problems.extend(kinds);
        self
    }

    pub(super) fn answers(mut self, status: &str, response: ResponseBuilder) -> Self {
        let response = response.header("X-Request-Id", request_id());
        self.operation = self.operation.response(status, response.build());
        self
    }

    /// For operators only.
    pub(super) fn secured(mut self) -> Self {
        let bearer = utoipa::openapi::SecurityRequirement::new("operator", Vec::<String>::new());
        self.operation = self.operation.security(bearer);
        self.problems([problems::NOT_AUTHENTICATED])
    }

    /// With one response per status.
    pub(super) fn build(self) -> Operation {
        let mut by_status: BTreeMap<u16, Vec<ProblemType>> = BTreeMap::new();
        for kind in self.problems {
            let kinds = by_status.entry(kind.status().as_u16()).or_default();
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let responses = by_status.into_iter();
        responses
            .fold(self.operation, |operation, (status, kinds)| {
                operation.response(status.to_string(), problem::response(&kinds))
            })
            .build()
    }
}
