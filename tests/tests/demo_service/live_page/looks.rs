//! The same page on every screen.

use e2e::servers::{Colours, Screen};

use crate::live_page::page::Page;

async fn looks_well(name: &'static str, screen: Screen, colours: Colours) {
    let page = Page::open_on(name, screen, colours).await;
    page.photograph("before").await;
    page.begin().await;
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
    // However far to the right a visitor looks, each lane has its name.
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
    page.choose_story("jobs").await;
    page.photograph("jobs").await;
    page.begin().await;
    let playing = "return document.documentElement.dataset.playing === 'true'";
    page.browser.until(playing).await;
    page.until_over().await;
    let [unfenced, fenced] = page.verdicts().await;
    assert!(unfenced.contains("Done 2 times"), "{unfenced}");
    assert!(
        fenced.contains("Done once: the late run was refused (412)"),
        "{fenced}"
    );
    page.photograph("jobs-over").await;
    let background = "return getComputedStyle(document.body).backgroundColor";
    let background = page.browser.script(background).await;
    let expected = match colours {
        Colours::Dark => "rgb(13, 17, 23)",
        _ => "rgb(255, 255, 255)",
    };
    assert_eq!(background, expected);
    page.assert_sound().await;
}

/// Catches: a page that is broken in a whole run, by an error of a script or a part that sticks
/// out.
#[tokio::test]
async fn it_looks_well_on_a_desktop_in_the_light() {
    looks_well("desktop-light", Screen::Desktop, Colours::Light).await;
}

/// Catches: the same faults on a small screen, and colours that do not follow the system.
#[tokio::test]
async fn it_looks_well_on_a_phone_in_the_dark() {
    looks_well("phone-dark", Screen::Phone, Colours::Dark).await;
}

/// Whether the whole picture is visible, and the words that say how to see the rest.
const SEEN: &str = "const seen = [...document.querySelectorAll('.picture')].map((picture) => ({ \
      whole: picture.scrollWidth <= picture.clientWidth, \
      begins: picture.scrollLeft === 0, \
      hint: picture.nextElementSibling.querySelector('.swipe').offsetParent !== null, \
      top: picture.getBoundingClientRect().top, \
    })); \
    const [one, two] = seen; \
    return { \
      whole: one.whole && two.whole, \
      begins: one.begins && two.begins, \
      honest: seen.every(({ whole, hint }) => whole !== hint), \
      beside: one.top === two.top, \
    };";

/// Catches: a picture of which only the end is shown, without a hint that there is more.
#[tokio::test]
async fn a_picture_that_is_over_is_seen_whole_or_from_its_beginning_on_every_screen() {
    let page = Page::open("sizes").await;
    page.browser.resize(360, 800).await;
    page.begin().await;
    let follows = "const { scrollLeft } = document.querySelector('#fenced .picture'); \
                   return scrollLeft > 0";
    page.browser.until(follows).await;
    page.until_over().await;
    for (width, height) in [
        (360, 800),
        (700, 900),
        (768, 1024),
        (1280, 900),
        (1440, 900),
        (1920, 1080),
    ] {
        page.browser.resize(width, height).await;
        let seen = page.browser.script(SEEN).await;
        assert_eq!(seen["begins"], true, "{width}: {seen}");
        assert_eq!(seen["honest"], true, "{width}: {seen}");
        assert_eq!(seen["whole"], width >= 768, "{width}: {seen}");
        assert_eq!(seen["beside"], width >= 1440, "{width}: {seen}");
        page.photograph(&format!("{width}")).await;
        page.assert_sound().await;
    }
    // The result is said once, above the picture.
    let doubled = "return document.querySelectorAll('.picture :is(.good-box, .bad-box)').length";
    assert_eq!(page.browser.script(doubled).await, 0);
}
