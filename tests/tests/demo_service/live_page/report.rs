//! The report of a scenario, which is a file of its own.

use e2e::{
    process::Process,
    servers::{Browser, Colours, Screen},
};
use serde_json::Value;

#[tokio::test]
async fn a_report_fits_on_a_phone_and_says_that_its_pictures_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.html");
    let path = report.to_str().unwrap();
    let arguments = [
        "scenario", "--json", "--ttl", "800ms", "--pause", "1s", "--report", path,
    ];
    let mut scenario = Process::spawn("palisade", arguments);
    assert_eq!(scenario.event::<Value>().await["report"], path);
    assert!(scenario.finish().await.success());

    let browser = Browser::start(Screen::Phone, Colours::Light).await;
    browser.open(&format!("file://{path}")).await;
    let fits = "const { scrollWidth, clientWidth } = document.documentElement; \
                return scrollWidth <= clientWidth && clientWidth === 360";
    assert_eq!(browser.script(fits).await, Value::Bool(true));
    // What is wider than the screen says so, and only that.
    let honest = "const pictures = [...document.querySelectorAll('.scroll')]; \
                  return pictures.length === 2 && pictures.every((picture) => \
                    (picture.scrollWidth > picture.clientWidth) \
                    === (picture.nextElementSibling.offsetParent !== null))";
    assert_eq!(browser.script(honest).await, Value::Bool(true));
    let cut = "return document.querySelector('.scroll').scrollWidth > innerWidth";
    assert_eq!(browser.script(cut).await, Value::Bool(true));
    for width in [800, 840, 880, 1280] {
        browser.resize(width, 900).await;
        assert_eq!(browser.script(honest).await, Value::Bool(true), "{width}");
    }
    assert_eq!(browser.console().await, [""; 0]);
}
