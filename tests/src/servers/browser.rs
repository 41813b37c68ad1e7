use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::start;
use crate::warden::{ServerKind, Warden};

/// A real Chromium without a window, operated through WebDriver as a user would.
///
/// The protocol is a handful of requests with JSON bodies; a library would be more code than
/// this.
#[derive(Debug)]
pub struct Browser {
    http: Client,
    session: String,
    _driver: Warden,
}

/// The kind of the browser's screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// A large window.
    Desktop,
    /// 360 px wide.
    Phone,
}

/// The colours that its user prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Browser {
    /// Starts a browser.
    ///
    /// # Panics
    /// If `chromedriver` or `chromium` is not installed.
    pub async fn start(screen: Screen, colours: Colours) -> Self {
        let driver = start(ServerKind::ChromeDriver, Vec::new()).await;
        let http = Client::builder().no_proxy().build();
        let http = http.unwrap_or_else(|error| panic!("an HTTP client: {error}"));
        let sessions = format!("{}/session", driver.running().url);
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": options(screen, colours),
        } } });
        let opened = ask(&http, Method::POST, &sessions, &capabilities).await;
        let id = opened["sessionId"].as_str().unwrap_or_default();
        Self {
            session: format!("{sessions}/{id}"),
            http,
            _driver: driver,
        }
    }

    /// Opens a page, and returns when it is loaded.
    pub async fn open(&self, url: &str) {
        self.post("url", json!({ "url": url })).await;
    }

    /// Sets the size of the screen in pixels. When this returns, the page has been laid out for it.
    pub async fn resize(&self, width: u32, height: u32) {
        let screen = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        let command = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": screen });
        self.post("goog/cdp/execute", command).await;
        // Size observers run before a frame is painted, so this waits for the frame after that.
        let painted = "const painted = arguments[arguments.length - 1]; \
                       requestAnimationFrame(() => requestAnimationFrame(() => painted(true)));";
        let script = json!({ "script": painted, "args": [] });
        self.post("execute/async", script).await;
        let is_there = format!("return innerWidth === {width}");
        self.until(&is_there).await;
    }

    /// Clicks in the middle of an element, where it is on the screen.
    ///
    /// # Panics
    /// If there is no such element.
    pub async fn click(&self, selector: &str) {
        let query = json!({ "using": "css selector", "value": selector });
        let found = self.post("element", query).await;
        // The standard's key for references to elements.
        let element = found["element-6066-11e4-a52e-4f735466cecf"].as_str();
        let element = element.unwrap_or_else(|| panic!("no {selector}: {found}"));
        self.post(&format!("element/{element}/click"), json!({}))
            .await;
    }

    /// Runs a script in the page and returns its result.
    pub async fn script(&self, script: &str) -> Value {
        let script = json!({ "script": script, "args": [] });
        self.post("execute/sync", script).await
    }

    /// Waits until a script in the page returns true.
    ///
    /// # Panics
    /// If the script does not return true within a minute.
    pub async fn until(&self, script: &str) {
        super::until(script, async || self.script(script).await == true).await;
    }

    /// The log of the page and of the browser: mostly errors.
    pub async fn console(&self) -> Vec<String> {
        let log = self.post("se/log", json!({ "type": "browser" })).await;
        let entries = log.as_array().cloned().unwrap_or_default();
        entries.iter().map(ToString::to_string).collect()
    }

    /// Presses a key where the focus is. Keys without a letter have one of WebDriver's code points.
    pub async fn press(&self, key: char) {
        let (down, up) = (json!("keyDown"), json!("keyUp"));
        let actions = [down, up].map(|kind| json!({ "type": kind, "value": key }));
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.post("actions", json!({ "actions": [keyboard] })).await;
    }

    /// A picture of the whole page, including the parts below the window, as base64 of a PNG.
    pub async fn screenshot(&self) -> String {
        let size = "return [innerWidth, document.documentElement.scrollHeight]";
        let size = self.script(size).await;
        let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1 });
        let params = json!({ "captureBeyondViewport": true, "clip": clip });
        let command = json!({ "cmd": "Page.captureScreenshot", "params": params });
        let shot = self.post("goog/cdp/execute", command).await;
        shot["data"].as_str().unwrap_or_default().to_owned()
    }

    async fn post(&self, command: &str, body: Value) -> Value {
        let url = format!("{}/{command}", self.session);
        ask(&self.http, Method::POST, &url, &body).await
    }
}

fn options(screen: Screen, colours: Colours) -> Value {
    let mut arguments = vec![
        "--headless=new",
        // Tests may run as root, where the sandbox does not work; pages are our own.
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1500,1400",
    ];
    if colours == Colours::Dark {
        arguments.push("--blink-settings=preferredColorScheme=0");
    }
    let mut options = json!({});
    if screen == Screen::Phone {
        let phone = json!({ "width": 360, "height": 760, "pixelRatio": 2.0 });
        options["mobileEmulation"] = json!({ "deviceMetrics": phone });
    }
    options["args"] = json!(arguments);
    options
}

/// Sends one command, and returns its answer.
async fn ask(http: &Client, method: Method, url: &str, body: &Value) -> Value {
    let mut request = http.request(method, url);
    if !body.is_null() {
        request = request.json(body);
    }
    let answer = request.send().await;
    let answer = answer.unwrap_or_else(|error| panic!("chromedriver does not answer: {error}"));
    let succeeded = answer.status().is_success();
    let mut answer: Value = answer
        .json()
        .await
        .unwrap_or_else(|error| panic!("chromedriver answers no JSON: {error}"));
    assert!(succeeded, "{url} {body}: {answer:#}");
    answer["value"].take()
}
