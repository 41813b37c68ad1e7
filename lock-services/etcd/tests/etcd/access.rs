//! Users, passwords and certificates.

use e2e::servers::{Certificates, Etcd};
use lock_core::{Attempt, ErrorKind, Outcome, Ttl};

use crate::world::{manager, prefix};

#[tokio::test]
async fn a_user_with_rights_on_the_prefix_is_enough_and_is_logged_in_again() {
    let mut server = Etcd::start().await;
    let user = server.ask_for_login("palisade/").await;
    let url = server.url_of(&user);
    let locks = palisade::connect(&url).await.unwrap();
    let guard = locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    let look = locks.try_acquire("r").await.unwrap();
    assert!(matches!(look, Attempt::Held { .. }), "{look:?}");

    // Only the server process that issued the token of a login knows it.
    server.kill(0).await;
    server.start_again(0).await;
    let waiter = {
        let locks = locks.clone();
        tokio::spawn(async move { locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap() })
    };
    let token = guard.token();
    guard.release().await.unwrap();
    let next = waiter.await.unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
}

#[tokio::test]
async fn the_error_for_a_user_without_rights_shows_no_password() {
    let mut server = Etcd::start().await;
    let user = server.ask_for_login("palisade/").await;
    let mut wrong = user.clone();
    wrong.password = "sesame";
    let refused = [
        palisade::connect(server.url()).await.unwrap_err(),
        palisade::connect(server.url_of(&wrong)).await.unwrap_err(),
        palisade::connect(server.url_of(&user))
            .prefix("elsewhere")
            .await
            .unwrap_err(),
    ];
    for (error, says) in refused.iter().zip(["password", "wrong", "right"]) {
        assert_eq!(
            (error.kind(), error.outcome()),
            (ErrorKind::Refused, Outcome::NotApplied),
            "{error}"
        );
        let text = format!("{error} {error:?}");
        assert!(text.contains(says), "{text}");
        assert!(
            !text.contains("sesame") && !text.contains("let me in"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn over_tls_with_an_authority_and_a_client_certificate_of_ones_own() {
    let certificates = Certificates::create().await;
    let server = Etcd::start_with_tls(&certificates).await;
    let (ca, own, key) = (
        certificates.ca(),
        certificates.client(),
        certificates.client_key(),
    );
    let url = format!("{}?tls_ca={ca}&tls_cert={own}&tls_key={key}", server.url());
    let locks = manager(&url, &prefix()).await;
    let guard = locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    let look = locks.try_acquire("r").await.unwrap();
    assert!(matches!(look, Attempt::Held { .. }), "{look:?}");
    guard.release().await.unwrap();

    // The client does not know the authority that has signed the server's certificate. The server
    // also asks for a certificate of the client.
    let unknown = server.url();
    let nameless = format!("{}?tls_ca={ca}", server.url());
    let plain = server.url().replace("etcds:", "etcd:");
    for url in [unknown, nameless, plain] {
        let error = palisade::connect(&url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{url}: {error}");
    }
    let half = format!("{}?tls_ca={ca}&tls_cert={own}", server.url());
    let error = palisade::connect(&half).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}
