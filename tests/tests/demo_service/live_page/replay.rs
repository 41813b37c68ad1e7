use crate::live_page::page::Page;

/// When client 1 was stopped, in milliseconds.
async fn stopped_at(page: &Page) -> String {
    let script = "const told = [...document.querySelectorAll('#fenced .events li')]; \
                  const stop = told.find((item) => item.textContent.includes('SIGSTOP')); \
                  return String(1000 * parseFloat(stop.textContent) + 10);";
    page.browser
        .script(script)
        .await
        .as_str()
        .unwrap()
        .to_owned()
}

/// Catches: the future in a picture of the past, or a file that is no picture.
#[tokio::test]
async fn a_visitor_looks_again_at_any_moment_and_saves_what_there_is() {
    let page = Page::open("replay").await;
    page.play().await;

    // The slider shows the past: client 1 has just been stopped, and there is no write yet.
    page.set("moment", &stopped_at(&page).await).await;
    let past = "return document.querySelector('#fenced svg .dot') !== null \
                && document.querySelector('#fenced svg .bad-dot') === null";
    page.browser.until(past).await;
    let hidden = "return document.querySelectorAll('.verdict[hidden]').length === 2";
    page.browser.until(hidden).await;
    page.photograph("past").await;

    // Step by step, to the moment of the next event and back.
    let told = "return document.querySelectorAll('#fenced .events li:not([hidden])').length \
                + document.querySelectorAll('#unfenced .events li:not([hidden])').length";
    let before = page.browser.script(told).await.as_u64().unwrap();
    page.browser.click("#forth").await;
    page.browser.until(&format!("{told} > {before}")).await;
    page.browser.click("#back").await;
    page.browser.until(&format!("{told} <= {before}")).await;

    page.set("speed", "2").await;
    page.browser.click("#play-again").await;
    page.until_over().await;

    // The saved picture stands alone: it loads as an image, so it has to be well-formed.
    let load = "const link = document.querySelector('#fenced a.svg'); \
                const image = document.createElement('img'); image.id = 'saved'; \
                image.src = link.href; document.body.append(image); \
                return image.decode().then(() => image.naturalWidth)";
    assert_eq!(page.browser.script(load).await, 960);
    let saved = "return fetch(document.querySelector('#fenced a.svg').href) \
                 .then((answer) => answer.text())";
    let saved = page.browser.script(saved).await.to_string();
    for words in ["Act 2: with fencing", "Nothing lost: "] {
        assert!(saved.contains(words), "{words}");
    }
    page.assert_sound().await;
}
