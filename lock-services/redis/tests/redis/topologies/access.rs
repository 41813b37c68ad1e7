//! TLS and logins, by URL.

use std::{fs, time::Duration};

use e2e::servers::{Certificates, Redis, until};
use lock_core::{ErrorKind, Outcome};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, FromRedisValue, TlsCertificates,
    aio::MultiplexedConnection,
};

use crate::topologies::world::turn;

#[tokio::test]
async fn tls_with_an_authority_and_a_client_certificate_of_ones_own() {
    let certificates = Certificates::create().await;
    let server = Redis::start_with_tls(&certificates, &[]).await;
    let url = format!("{}?{}", server.url(), parameters(&certificates));
    turn(&palisade::connect(&url).await.unwrap()).await;

    let only_the_authority = format!("{}?tls_ca={}", server.url(), certificates.ca());
    for url in [server.url(), &only_the_authority] {
        let error = palisade::connect(url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{url}: {error:?}");
        assert_eq!(error.outcome(), Outcome::NotApplied);
        assert!(error.to_string().contains("tls_ca"), "{url}: {error}");
    }
}

#[tokio::test]
async fn a_cluster_behind_tls_names_its_nodes_by_their_tls_ports() {
    let certificates = Certificates::create().await;
    let arguments = ["--cluster-enabled", "yes", "--tls-cluster", "yes"];
    let server = Redis::start_with_tls(&certificates, &arguments).await;
    let operator = operator_with_tls(&server, &certificates).await;
    let () = ask(&operator, &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await;
    until("it serves all slots", || async {
        let info: String = ask(&operator, &["CLUSTER", "INFO"]).await;
        info.contains("cluster_state:ok")
    })
    .await;
    let url = format!(
        "rediss+cluster://{}?{}",
        server.address(),
        parameters(&certificates)
    );
    turn(&palisade::connect(&url).await.unwrap()).await;
}

#[tokio::test]
async fn a_login_is_asked_for_and_never_shown() {
    let server = Redis::start().await;
    let secret = "open/sesame@1";
    let user = [
        "ACL",
        "SETUSER",
        "locks",
        "on",
        ">open/sesame@1",
        "~*",
        "&*",
        "+@all",
    ];
    let () = server.command(&user).await;
    let () = server.command(&["ACL", "SETUSER", "default", "off"]).await;
    let address = server.address();

    let url = format!("redis://locks:open%2Fsesame%401@{address}");
    let locks = palisade::connect(&url).await.unwrap();
    turn(&locks).await;
    assert!(!format!("{locks:?}").contains(secret));

    for (login, says) in [
        ("", "put them into the URL"),
        ("locks:no-sesame@", "user or password is wrong"),
        ("stranger:no-sesame@", "user or password is wrong"),
    ] {
        let url = format!("redis://{login}{address}");
        let error = palisade::connect(&url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(!format!("{error:?}").contains("no-sesame"), "{error:?}");
    }
}

#[tokio::test]
async fn sentinels_have_a_login_of_their_own() {
    let server = Redis::start_with(&["--requirepass", "sesame"]).await;
    let sentinel = Redis::start_sentinel(&["--requirepass", "poppy"]).await;
    let admin = format!("redis://:poppy@{}", sentinel.address());
    let admin = connection(Client::open(admin).unwrap()).await;
    let monitor = [
        "SENTINEL",
        "MONITOR",
        "locks",
        "127.0.0.1",
        server.port(),
        "1",
    ];
    let () = ask(&admin, &monitor).await;
    let () = ask(&admin, &["SENTINEL", "SET", "locks", "auth-pass", "sesame"]).await;

    let address = sentinel.address();
    let url = format!("redis+sentinel://:sesame@{address}/locks?sentinel_password=poppy");
    turn(&palisade::connect(&url).await.unwrap()).await;

    let without = format!("redis+sentinel://:sesame@{address}/locks");
    let error = palisade::connect(&without).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
    assert!(error.to_string().contains("sentinel_password"), "{error}");
}

fn parameters(certificates: &Certificates) -> String {
    format!(
        "tls_ca={}&tls_cert={}&tls_key={}",
        certificates.ca(),
        certificates.client(),
        certificates.client_key(),
    )
}

async fn operator_with_tls(server: &Redis, certificates: &Certificates) -> MultiplexedConnection {
    let certificates = TlsCertificates {
        client_tls: Some(ClientTlsConfig {
            client_cert: fs::read(certificates.client()).unwrap(),
            client_key: fs::read(certificates.client_key()).unwrap(),
        }),
        root_cert: Some(fs::read(certificates.ca()).unwrap()),
    };
    connection(Client::build_with_tls(server.url(), certificates).unwrap()).await
}

async fn connection(client: Client) -> MultiplexedConnection {
    let patience = Some(Duration::from_secs(10));
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(patience)
        .set_response_timeout(patience);
    let connecting = client.get_multiplexed_async_connection_with_config(&config);
    connecting.await.unwrap()
}

async fn ask<T: FromRedisValue>(connection: &MultiplexedConnection, words: &[&str]) -> T {
    let mut command = Cmd::new();
    command.arg(words);
    command.query_async(&mut connection.clone()).await.unwrap()
}
