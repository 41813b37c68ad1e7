use std::path::Path;

use e2e::{
    process::Process,
    servers::{Browser, Colours, Screen},
};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A page with a gateway of its own, and a browser that shows it.
pub(crate) struct Page {
    pub(crate) browser: Browser,
    pub(crate) url: String,
    name: &'static str,
    gateway: Process,
    folder: TempDir,
}

impl Page {
    /// Opens the page on a large light screen.
    pub(crate) async fn open(name: &'static str) -> Self {
        Self::open_on(name, Screen::Desktop, Colours::Light).await
    }

    pub(crate) async fn open_on(name: &'static str, screen: Screen, colours: Colours) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (gateway, line) = serve("127.0.0.1:0", &folder).await;
        let url = line
            .split(' ')
            .find(|word| word.starts_with("http"))
            .unwrap();
        let browser = Browser::start(screen, colours).await;
        browser.open(url).await;
        // A module runs after the page has been read.
        browser
            .until("return document.documentElement.dataset.playing === 'false'")
            .await;
        Self {
            browser,
            url: url.to_owned(),
            name,
            gateway,
            folder,
        }
    }

    /// Ends the gateway, waits until the page shows this notice, and starts another at its address.
    pub(crate) async fn restart_gateway(&mut self, noticed: &str) {
        kill_process(self.gateway.id(), Signal::KILL).unwrap();
        self.gateway.finish().await;
        self.browser.until(noticed).await;
        let addr = self.url.strip_prefix("http://").unwrap();
        (self.gateway, _) = serve(addr, &self.folder).await;
    }

    pub(crate) async fn choose_story(&self, story: &str) {
        let choice = format!("input[name=story][value={story}]");
        self.browser.click(&choice).await;
        let shown = format!("return !document.querySelector('[data-story={story}]').hidden");
        self.browser.until(&shown).await;
    }

    pub(crate) async fn set(&self, id: &str, value: &str) {
        let script = format!(
            "const it = document.getElementById('{id}'); it.value = '{value}';
             it.dispatchEvent(new Event('input', {{ bubbles: true }}));"
        );
        self.browser.script(&script).await;
    }

    /// The text of the first element that a selector finds.
    pub(crate) async fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector('{selector}').textContent");
        let text = self.browser.script(&script).await;
        text.as_str().unwrap().to_owned()
    }

    /// Lets both acts be played. Leases last longer than a request of a busy machine.
    pub(crate) async fn begin(&self) {
        self.begin_with_ttl("1500").await;
    }

    pub(crate) async fn begin_with_ttl(&self, milliseconds: &str) {
        self.set("ttl", milliseconds).await;
        self.set("pause-for", "2000").await;
        self.browser.click("#run").await;
    }

    /// Lets both acts be played to the end. Returns both verdicts.
    pub(crate) async fn play(&self) -> [String; 2] {
        self.begin().await;
        self.until_over().await;
        self.verdicts().await
    }

    /// Waits for both verdicts, and for the last picture of each act: then it can be saved.
    pub(crate) async fn until_over(&self) {
        let over = "return document.querySelectorAll('.verdict:not([hidden])').length === 2 \
                    && document.querySelectorAll('a.svg:not([hidden])').length === 2 \
                    && document.documentElement.dataset.playing === 'false'";
        self.browser.until(over).await;
    }

    pub(crate) async fn verdicts(&self) -> [String; 2] {
        [
            self.text("#unfenced .verdict").await,
            self.text("#fenced .verdict").await,
        ]
    }

    /// Waits until the panel of the act with fencing shows a request.
    pub(crate) async fn until_request_is_shown(&self) {
        let shown = "return document.querySelector('#fenced .wire:not([hidden]) .curl') !== null";
        self.browser.until(shown).await;
    }

    pub(crate) async fn photograph(&self, what: &str) {
        let shot = self.browser.screenshot().await;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        let png = decode(&shot);
        assert!(png.starts_with(b"\x89PNG"));
        std::fs::write(folder.join(format!("{}-{what}.png", self.name)), png).unwrap();
    }

    /// Checks that the page has no errors, and that nothing sticks out of it.
    pub(crate) async fn assert_sound(&self) {
        assert_eq!(self.browser.console().await, [""; 0]);
        // This is not the width of the window, because a phone shows more of a page that sticks
        // out.
        let fits = "const { scrollWidth, clientWidth } = document.documentElement; \
                    return scrollWidth <= clientWidth";
        assert_eq!(self.browser.script(fits).await, Value::Bool(true));
    }
}

/// A gateway, and its line when it listens.
async fn serve(addr: &str, folder: &TempDir) -> (Process, String) {
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let arguments = ["serve", "--addr", addr, "--store", &store];
    let mut gateway = Process::spawn("palisade-demo", arguments);
    let line = gateway.line().await.unwrap();
    (gateway, line)
}

/// Decodes base64, in which browsers send pictures.
fn decode(text: &str) -> Vec<u8> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.decode(text).unwrap()
}
