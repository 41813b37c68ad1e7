//! The same page on every screen.

use e2e::servers::{Colours, Screen};

use crate::page::Page;

async fn looks_well(name: &'static str, screen: Screen, colours: Colours) {
    let page = Page::open_on(name, screen, colours).await;
    page.photograph("before").await;
    page.begin("pause").await;
    let frozen = "return document.querySelector('#fenced svg .pause') !== null";
    page.browser.until(frozen).await;
    page.photograph("playing").await;
    page.until_over().await;
    let [unfenced, fenced] = page.verdicts().await;
    assert!(unfenced.contains("Lost update"), "{unfenced}");
    assert!(
        fenced.contains("the late write was refused (412)"),
        "{fenced}"
    );
    // However far to the right somebody looks, it says which lane is whose.
    let names = "const frame = document.querySelector('#fenced .picture'); \
                 frame.scrollLeft = frame.scrollWidth; \
                 const { left, right } = frame.getBoundingClientRect(); \
                 const inside = ({ left: from, right: to }) => left <= from && to <= right; \
                 const names = [...frame.querySelectorAll('.lane')]; \
                 return names.length === 5 \
                   && names.every((name) => inside(name.getBoundingClientRect()));";
    page.browser.until(names).await;
    page.photograph("over").await;
    page.browser.click("#fenced summary").await;
    page.browser.click("#fenced .events button").await;
    page.until_request_is_shown().await;
    page.photograph("wire").await;
    let background = "return getComputedStyle(document.body).backgroundColor";
    let background = page.browser.script(background).await;
    let expected = match colours {
        Colours::Dark => "rgb(13, 17, 23)",
        _ => "rgb(255, 255, 255)",
    };
    assert_eq!(background, expected);
    page.assert_sound().await;
    page.browser.click("#tab-service").await;
    let counted = "return document.querySelectorAll('.count').length === 6";
    page.browser.until(counted).await;
    page.photograph("service").await;
    page.assert_sound().await;
}

#[tokio::test]
async fn it_looks_well_on_a_desktop_in_the_light() {
    looks_well("desktop-light", Screen::Desktop, Colours::Light).await;
}

#[tokio::test]
async fn it_looks_well_on_a_desktop_in_the_dark() {
    looks_well("desktop-dark", Screen::Desktop, Colours::Dark).await;
}

#[tokio::test]
async fn it_looks_well_on_a_phone_in_the_light() {
    looks_well("phone-light", Screen::Phone, Colours::Light).await;
}

#[tokio::test]
async fn it_looks_well_on_a_phone_in_the_dark() {
    looks_well("phone-dark", Screen::Phone, Colours::Dark).await;
}
