//! The fenced store on MariaDB and on MySQL: the cases of the rule that every database has to pass,
//! and cases that only these two can pass, or fail.

/// The cases of a file, on each server.
macro_rules! on_both {
    ($($case:ident),* $(,)?) => {
        mod on_mariadb {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case::<e2e::servers::OnMariaDb>().await;
                }
            )*
        }
        mod on_mysql {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case::<e2e::servers::OnMySql>().await;
                }
            )*
        }
    };
}

mod around;
mod ascii;
mod client;
mod commits;
mod dropped;
mod ids;
mod older;
mod outages;
mod protect;
mod rights;
pub(crate) mod server;
mod strays;
mod traps;

use server::MySqlStore;

/// Cases that other databases pass, too.
macro_rules! shared_cases {
    ($server:ty) => {
        use crate::{
            job_rule::{self, job_cases},
            rule::{self, rule_cases, store_cases},
            servers::server_cases,
        };

        rule_cases!($server);
        job_cases!($server);
        server_cases!($server);
    };
}

mod on_mariadb {
    use e2e::servers::OnMariaDb;

    shared_cases!(super::MySqlStore<OnMariaDb>);
}

mod on_mysql {
    use e2e::servers::OnMySql;

    shared_cases!(super::MySqlStore<OnMySql>);
}
