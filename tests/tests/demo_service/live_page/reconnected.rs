use reqwest::Client;
use serde_json::{Value, json};

use crate::live_page::page::Page;

/// All words of the page about a run, once the run is over.
const SAID: &str = "const words = (selector) => [...document.querySelectorAll(selector)] \
      .filter((it) => it.checkVisibility()).map((it) => it.textContent); \
    return { \
      status: words('#status'), verdicts: words('.verdict'), wire: words('.wire'), \
      moment: words('#moment-shown'), replay: !document.querySelector('#replay').hidden, \
      pictures: words('.picture').map((text) => text.length > 0), \
      events: [...document.querySelectorAll('.events li')].map((it) => it.textContent), \
    };";

/// The content of a page that was opened anew.
async fn anew(page: &Page) -> Value {
    page.browser.open(&page.url).await;
    page.until_over().await;
    page.browser.script(SAID).await
}

/// The gateway is replaced, and has played as many runs as the old one when the page is back.
/// Catches: data of another gateway that is shown as if it came from this one.
#[tokio::test]
async fn a_page_that_comes_back_says_what_a_new_one_says() {
    let mut page = Page::open("reconnected").await;
    page.play().await;
    page.browser.click("#fenced summary").await;
    page.browser.click("#fenced .events button").await;
    page.until_request_is_shown().await;
    let before = page.browser.script(SAID).await;
    page.browser.click("#back").await;
    page.browser.click("#back").await;
    let in_between = "return document.querySelectorAll('.verdict:not([hidden])').length === 0";
    page.browser.until(in_between).await;

    let broken = "return document.querySelector('#status').className === 'error'";
    page.restart_gateway(broken).await;
    let http = Client::builder().no_proxy().build().unwrap();
    let run = format!("{}/live/run", page.url);
    let settings = json!({ "ttl_ms": 1500, "pause_ms": 0 });
    let begun = http.post(&run).json(&settings).send().await.unwrap();
    assert_eq!(begun.status(), 202);
    let is_back = "return document.querySelector('#status').className === ''";
    page.browser.until(is_back).await;
    page.until_over().await;
    let said = page.browser.script(SAID).await;
    assert_ne!(said, before);
    assert_eq!(said["wire"], json!([]), "a request to the other gateway");
    assert_eq!(said, anew(&page).await);
}
