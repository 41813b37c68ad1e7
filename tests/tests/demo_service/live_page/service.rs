use e2e::servers::{Colours, Screen};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::live_page::{page::Page, wire::in_a_shell};

/// WebDriver's name of the key.
const ARROW_RIGHT: char = '\u{E014}';

/// Waits until a count of the page has come so far.
async fn until_counted(page: &Page, name: &str, at_least: u32) {
    let script = format!(
        "return Number(document.querySelector('[data-name={name}] dd')?.textContent) >= {at_least}"
    );
    page.browser.until(&script).await;
}

#[tokio::test]
async fn the_second_tab_shows_the_lock_service_as_it_is() {
    let page = Page::open("service").await;
    let http = Client::builder().no_proxy().build().unwrap();
    let lease = format!("{}/v1/leases/printer", page.url);
    let body = json!({ "ttl_ms": 60_000, "metadata": "third floor" });
    let granted = http.post(&lease).json(&body).send().await.unwrap();
    let granted: Value = granted.json().await.unwrap();
    let header = granted["fencing_token"].as_str().unwrap();

    page.browser
        .script("document.querySelector('#tab-play').focus()")
        .await;
    page.browser.press(ARROW_RIGHT).await;
    let held = "return document.querySelector('#resources')?.textContent.includes('printer')";
    page.browser.until(held).await;
    let row = page.text("#resources").await;
    assert!(row.contains(&granted["token"].to_string()), "{row}");
    assert!(row.contains("third floor"), "{row}");
    let secret = granted["holder"].as_str().unwrap();
    assert!(!row.contains(secret), "the holder is told to everybody");
    let seen = http.get(&lease).send().await.unwrap();
    let seen: Value = seen.json().await.unwrap();
    let hash = seen["lease"]["holder_fingerprint"].as_str().unwrap();
    assert!(row.contains(hash), "{row}");

    // Somebody waits, somebody renews, somebody makes a token up.
    let patient = http
        .post(&lease)
        .json(&json!({ "ttl_ms": 1000, "wait_ms": 60_000 }))
        .send();
    let mut waiting = JoinSet::new();
    waiting.spawn(patient);
    let waits = "return document.querySelector('[data-label=Waiting]').textContent === '1'";
    page.browser.until(waits).await;
    let with_token = |method, token: &str| {
        let request = http.request(method, &lease).header("fencing-token", token);
        request.json(&json!({ "ttl_ms": 60_000 })).send()
    };
    let renewed = with_token(Method::PUT, header).await.unwrap();
    assert_eq!(renewed.status(), 200);
    let forged = header.replace("kid=", "kid=x");
    let refused = with_token(Method::PUT, &forged).await.unwrap();
    assert_eq!(refused.status(), 403);
    until_counted(&page, "renewals", 1).await;
    until_counted(&page, "refusals", 1).await;
    let rate = "return [...document.querySelectorAll('.renewals .rate, .refusals .rate')] \
                .every((rate) => parseFloat(rate.textContent) > 0)";
    page.browser.until(rate).await;
    page.photograph("held").await;

    // Released, it is the next one's, who lets it run out.
    let released = with_token(Method::DELETE, header).await.unwrap();
    assert_eq!(released.status(), 204);
    let next = waiting.join_next().await.unwrap().unwrap();
    assert_eq!(next.unwrap().status(), 201);
    let free = "return document.querySelector('#held').hidden \
                && document.querySelector('#resources').textContent === ''";
    page.browser.until(free).await;
    let said = page.text("#service-status").await;
    assert_eq!(said, "Lock service: memory. Nothing is held or waited for.");
    let late = with_token(Method::PUT, header).await.unwrap();
    assert_eq!(late.status(), 412);
    until_counted(&page, "losses", 1).await;
    page.assert_sound().await;

    // Who looks elsewhere asks no more.
    page.browser.click("#tab-play").await;
    let shown = "return !document.querySelector('#play').hidden \
                 && document.querySelector('#service').hidden";
    assert_eq!(page.browser.script(shown).await, true);
}

/// On a small screen too, all that there is to know of a lease is in sight.
#[tokio::test]
async fn on_a_phone_what_is_held_is_on_cards() {
    let page = Page::open_on("service-phone", Screen::Phone, Colours::Light).await;
    let http = Client::builder().no_proxy().build().unwrap();
    let lease = format!("{}/v1/leases/account:4711", page.url);
    let note = "a note that is as long as notes are of those who explain what they do and why";
    let body = json!({ "ttl_ms": 60_000, "metadata": note });
    let granted = http.post(&lease).json(&body).send().await.unwrap();
    assert_eq!(granted.status(), 201);
    page.browser.click("#tab-service").await;
    let held = "return document.querySelector('#resources')?.textContent.includes('account:4711')";
    page.browser.until(held).await;
    let in_sight = "const cells = [...document.querySelectorAll('#resources td')]; \
                    const { clientWidth } = document.documentElement; \
                    return cells.length === 6 && cells.every((cell) => { \
                      const { left, right, height } = cell.getBoundingClientRect(); \
                      return left >= 0 && right <= clientWidth && height > 0 && height < 100; \
                    })";
    assert_eq!(page.browser.script(in_sight).await, true);
    page.photograph("held").await;
    page.assert_sound().await;
}

/// What the page says to type in does what it says, with any curl.
#[tokio::test]
async fn what_a_visitor_is_told_to_type_acquires_a_lease() {
    let page = Page::open("typed").await;
    page.browser.click("#tab-service").await;
    let is_told = "return document.querySelector('#here').textContent === location.origin";
    page.browser.until(is_told).await;
    let command = page.text("#try").await;
    assert!(!command.contains("--json"), "{command}");
    let said = in_a_shell(command).await;
    assert!(said.contains("fencing_token"), "{said}");
    let held = "return document.querySelector('#resources')?.textContent.includes('printer')";
    page.browser.until(held).await;
    page.assert_sound().await;
}

/// A gateway that is back, before anything has been played, leaves nothing else to be said.
#[tokio::test]
async fn that_the_connection_broke_is_said_until_it_is_back() {
    let mut page = Page::open("broken").await;
    let said = page.text("#status").await;
    let is_told = "return document.querySelector('#status').className === 'error'";
    page.restart_gateway(is_told).await;
    let is_back = "return document.querySelector('#status').className === ''";
    page.browser.until(is_back).await;
    assert_eq!(page.text("#status").await, said);
}
