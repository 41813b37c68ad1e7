//! The live page in a real browser: somebody plays the scenario, stops a client and looks again.
//!
//! Each test leaves screenshots in `target/screenshots`.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use e2e::{
    process::Process,
    servers::{Appearance, Browser},
    signal,
};
use serde_json::Value;
use tempfile::TempDir;

struct Page {
    browser: Browser,
    name: &'static str,
    _gateway: Process,
    _folder: TempDir,
}

impl Page {
    async fn open(name: &'static str, appearance: Appearance) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
        let arguments = ["serve", "--addr", "127.0.0.1:0", "--store", &store];
        let mut gateway = Process::spawn("demo-service", arguments);
        let line = gateway.line().await.unwrap();
        let url = line
            .split(' ')
            .find(|word| word.starts_with("http"))
            .unwrap();
        let browser = Browser::start(appearance).await;
        browser.open(url).await;
        Self {
            browser,
            name,
            _gateway: gateway,
            _folder: folder,
        }
    }

    async fn set(&self, id: &str, value: &str) {
        let script = format!(
            "const it = document.getElementById('{id}'); it.value = '{value}';
             it.dispatchEvent(new Event('input', {{ bubbles: true }}));"
        );
        self.browser.script(&script).await;
    }

    async fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector('{selector}').textContent");
        self.browser
            .script(&script)
            .await
            .as_str()
            .unwrap()
            .to_owned()
    }

    async fn until_over(&self) {
        let over = "return document.querySelectorAll('.verdict:not([hidden])').length === 2 \
                    && document.documentElement.dataset.playing === 'false'";
        self.browser.until(over).await;
    }

    /// When client 1 was stopped, in milliseconds.
    async fn stopped_at(&self) -> String {
        let script = "const told = [...document.querySelectorAll('#fenced .events li')]; \
                      const stop = told.find((item) => item.textContent.includes('SIGSTOP')); \
                      return String(1000 * parseFloat(stop.textContent) + 10);";
        self.browser
            .script(script)
            .await
            .as_str()
            .unwrap()
            .to_owned()
    }

    async fn photograph(&self, what: &str) {
        let shot = self.browser.screenshot().await;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        let png = decode(&shot);
        assert!(png.starts_with(b"\x89PNG"));
        std::fs::write(folder.join(format!("{}-{what}.png", self.name)), png).unwrap();
    }

    /// Nothing went wrong in the page, and nothing sticks out of it.
    async fn assert_sound(&self) {
        assert_eq!(self.browser.console().await, [""; 0]);
        let fits = "return document.documentElement.scrollWidth <= innerWidth";
        assert_eq!(self.browser.script(fits).await, Value::Bool(true));
    }
}

async fn plays_both(page: &Page) {
    page.set("ttl", "500").await;
    page.set("pause-for", "1000").await;
    page.browser.click("#run").await;
    page.browser
        .until("return document.querySelector('#fenced svg .pause') !== null")
        .await;
    page.photograph("playing").await;
    page.until_over().await;
    assert!(
        page.text("#unfenced .verdict")
            .await
            .contains("Lost update")
    );
    assert!(
        page.text("#fenced .verdict")
            .await
            .contains("the late write got 412")
    );
    page.photograph("over").await;
}

#[tokio::test]
async fn a_visitor_plays_both_acts_and_looks_at_them_again() {
    let page = Page::open("desktop", Appearance::Desktop).await;
    plays_both(&page).await;

    // The slider shows the past: client 1 has just been stopped, nobody has written.
    page.set("moment", &page.stopped_at().await).await;
    let past = "return document.querySelector('#fenced svg .dot') !== null \
                && document.querySelector('#fenced svg .bad-dot') === null";
    page.browser.until(past).await;
    page.photograph("past").await;
    page.browser.click("#play-again").await;
    page.until_over().await;

    // What is saved is a picture that stands alone: it loads as an image.
    let load = "const link = document.querySelector('#fenced a.svg'); \
                const image = document.createElement('img'); image.id = 'saved'; \
                image.src = link.href; document.body.append(image);";
    page.browser.script(load).await;
    let loaded = "const image = document.querySelector('#saved'); \
                  return image.complete && image.naturalWidth === 960";
    page.browser.until(loaded).await;
    page.assert_sound().await;
}

#[tokio::test]
async fn on_a_phone_in_the_dark_it_is_the_same_page() {
    let page = Page::open("phone", Appearance::Phone).await;
    page.photograph("before").await;
    plays_both(&page).await;
    let background = "return getComputedStyle(document.body).backgroundColor";
    assert_eq!(page.browser.script(background).await, "rgb(13, 17, 23)");
    page.assert_sound().await;
}

#[tokio::test]
async fn a_visitor_stops_a_real_process_and_resumes_it() {
    let page = Page::open("by-hand", Appearance::Desktop).await;
    page.set("ttl", "500").await;
    page.browser.click("#by-hand").await;
    page.browser.click("#run").await;
    page.browser
        .until("return !document.querySelector('#stop').disabled")
        .await;
    page.browser.click("#stop").await;
    page.browser
        .until("return !document.querySelector('#resume').disabled")
        .await;
    let told = page.text("#fenced .events").await;
    let pid = told
        .split_once("(pid ")
        .unwrap()
        .1
        .split_once(')')
        .unwrap()
        .0;
    let pid = signal::pid(pid.parse().unwrap()).unwrap();
    assert_eq!(signal::state(pid), Some('T'));
    page.photograph("stopped").await;
    page.browser
        .until("return document.querySelectorAll('svg .good-dot').length === 2")
        .await;
    page.browser.click("#resume").await;
    page.until_over().await;
    assert!(
        page.text("#unfenced .verdict")
            .await
            .contains("Lost update")
    );
    assert!(page.text("#fenced .verdict").await.contains("412"));
    page.assert_sound().await;
}

/// Base64, as WebDriver sends pictures.
fn decode(text: &str) -> Vec<u8> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.decode(text).unwrap()
}
