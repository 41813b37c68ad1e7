//! The API of the gateway, requests and answers, as an OpenAPI 3.1 document.
//!
//! The problems of each endpoint are named by the same constants that the handlers use. The tests
//! compare every answer that they get with the document.

mod about_itself;
mod accounts;
mod endpoint;
mod leases;
mod parts;
mod problem;
mod viewer;

use utoipa::{
    ToSchema,
    openapi::{
        ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, PathsBuilder,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
        tag::TagBuilder,
    },
};

pub(super) use self::viewer::routes;
use super::wire::{
    AccountBody, AcquireBody, BalanceBody, ForceReleasedBody, InspectBody, LeaseBody, LeaseView,
    LeasesBody, ReadyBody, RenewBody, RenewedBody,
};
use crate::{console::Console, failure::Failure};

const DESCRIPTION: &str = "\
Leases with fencing tokens for clients in any language, and accounts that refuse whoever has lost
its lease.

Acquire a lease, send its `fencing_token` as `Fencing-Token` with every write, renew it while you
work, release it. A write that comes too late is refused with 412 and a problem document (RFC 9457)
that says what to do; a 2xx without `Fencing-Accepted` was not fenced. Every answer has an
`X-Request-Id`. On a loopback address, `/` is a page that plays the scenario, with endpoints of its
own that are not part of this document.";

/// Prints the document as JSON, with the endpoints of operators.
///
/// # Errors
/// [`Failure::Machine`] if it cannot be written as JSON.
pub(crate) fn print_document() -> Result<(), Failure> {
    let json = document(true).to_pretty_json();
    let json = json.map_err(|error| Failure::machine("writing JSON")(error.into()))?;
    Console::Stdout.line(json);
    Ok(())
}

/// The document; with the endpoints of operators if there are any.
fn document(with_operators: bool) -> OpenApi {
    let mut paths = PathsBuilder::new()
        .path("/v1/leases/{resource}", leases::item())
        .path("/v1/accounts/{id}", accounts::item())
        .path("/v1/unfenced/accounts/{id}", accounts::unfenced())
        .path("/healthz", about_itself::health())
        .path("/readyz", about_itself::ready())
        .path("/metrics", about_itself::metrics())
        .path("/openapi.json", about_itself::openapi());
    let mut components = schemas();
    if with_operators {
        paths = paths
            .path("/v1/admin/leases", leases::list())
            .path("/v1/admin/leases/{resource}", leases::force());
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("What `--admin-token` says."));
        components = components.security_scheme("operator", SecurityScheme::Http(bearer.build()));
    }
    let licence = LicenseBuilder::new()
        .name(env!("CARGO_PKG_LICENSE"))
        .identifier(Some(env!("CARGO_PKG_LICENSE")));
    let info = InfoBuilder::new()
        .title("Palisade: lock gateway and fenced accounts")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(licence.build()));
    let tags = ["leases", "accounts", "without fencing"]
        .into_iter()
        .chain(with_operators.then_some("operators"))
        .chain(["service"]);
    OpenApiBuilder::new()
        .info(info.build())
        .tags(Some(tags.map(|tag| TagBuilder::new().name(tag).build())))
        .paths(paths.build())
        .components(Some(components.build()))
        .build()
}

fn schemas() -> ComponentsBuilder {
    fn with<T: ToSchema>(components: ComponentsBuilder) -> ComponentsBuilder {
        components.schema(T::name(), T::schema())
    }
    let mut components = ComponentsBuilder::new();
    for add in [
        with::<AcquireBody>,
        with::<RenewBody>,
        with::<LeaseBody>,
        with::<RenewedBody>,
        with::<InspectBody>,
        with::<LeaseView>,
        with::<LeasesBody>,
        with::<ForceReleasedBody>,
        with::<BalanceBody>,
        with::<AccountBody>,
        with::<ReadyBody>,
    ] {
        components = add(components);
    }
    problem::KINDS
        .into_iter()
        .fold(components, |components, kind| {
            components.schema(problem::name(kind), problem::schema(kind))
        })
}
