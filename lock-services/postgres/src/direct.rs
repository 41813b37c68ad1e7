use std::net::IpAddr;

use lock_core::Error;
use sqlx::{Row, postgres::PgConnectOptions};

use super::{client::Client, error::translate, sql};

impl Client {
    /// Whether the server that answers says that this address is its own: so there is no pooler in
    /// between.
    pub(super) async fn is_at(&self, address: &PgConnectOptions) -> Result<bool, Error> {
        let row = self.plain(sql::WHERE.to_owned()).await?;
        let number = |column| row.try_get::<Option<i32>, _>(column).map_err(translate);
        let dialled = i32::from(address.get_port());
        let is_path = address.get_socket().is_some() || address.get_host().starts_with('/');
        let Some(port) = number("port")? else {
            return Ok(is_path && number("set_port")? == Some(dialled));
        };
        let own: Option<String> = row.try_get("address").map_err(translate)?;
        let own: Option<IpAddr> = own.and_then(|own| own.parse().ok());
        let host = (address.get_host(), address.get_port());
        let found = tokio::net::lookup_host(host).await;
        let found = found.map_err(|error| translate(error.into()))?;
        let mut found = found.map(|address| address.ip().to_canonical());
        Ok(!is_path && port == dialled && found.any(|address| Some(address) == own))
    }
}
