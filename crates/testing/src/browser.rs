//! Chromium without a window, controlled over its own protocol: typing, pressing keys, and reading the page.
//!
//! Source of the protocol: <https://chromedevtools.github.io/devtools-protocol/>. It uses a pair of pipes
//! (`--remote-debugging-pipe`): JSON, with a zero byte after each message.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Gives the pipes the numbers at which Chromium expects them.
const LAUNCH: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

/// How long an answer may take, before it counts as none.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one empty page; it ends when this is dropped.
#[derive(Debug)]
pub struct Browser {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    last: u64,
    session: Option<String>,
    /// The events that the browser sent.
    events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser.
    pub fn start() -> Self {
        let known = Command::new("chromium").arg("--version").output();
        known.expect("these tests need chromium: `.ci/setup` installs it");
        let profile = tempfile::tempdir().expect("there is room");
        let mut command = Command::new("sh");
        command.args(["-c", LAUNCH, "chromium", "--headless=new", "--remote-debugging-pipe"]);
        // Its sandbox does not work as root, or in most containers, where tests run. It only sees the tests'
        // own pages.
        command.args([
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]);
        command.args(["--disable-background-networking", "--hide-scrollbars", "--lang=en"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        // None of its files may stay.
        command.env("TMPDIR", profile.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("there is a shell");
        let input = process.stdin.take().expect("is piped");
        let output = BufReader::new(process.stdout.take().expect("is piped"));
        let (send, messages) = channel();
        std::thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("Chromium speaks JSON");
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self {
            process,
            input,
            messages,
            last: 0,
            session: None,
            events: Vec::new(),
            _profile: profile,
        };
        let page = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network", "DOM", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Emulation.setFocusEmulationEnabled", json!({"enabled": true}));
        browser
    }

    /// Calls a method of the protocol; returns its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).expect("Chromium runs");
        loop {
            let message = self.receive();
            if message["id"] == self.last {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    #[track_caller]
    fn receive(&mut self) -> Value {
        self.messages.recv_timeout(PATIENCE).expect("Chromium answers")
    }

    /// Waits until the browser sends an event, which is then forgotten.
    #[track_caller]
    fn wait_for_event(&mut self, method: &str) {
        loop {
            if let Some(at) = self.events.iter().position(|event| event["method"] == method) {
                self.events.remove(at);
                return;
            }
            let event = self.receive();
            self.events.push(event);
        }
    }

    /// Does something that leads to another page, and waits until that page is there.
    #[track_caller]
    pub fn follow(&mut self, lead: impl FnOnce(&mut Self)) {
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        lead(self);
        self.wait_for_event("Page.loadEventFired");
    }

    /// Goes to a page.
    #[track_caller]
    pub fn open(&mut self, url: &str) {
        self.follow(|browser| {
            let went = browser.call("Page.navigate", json!({"url": url}));
            assert!(went["errorText"].is_null(), "{url}: {went}");
        });
    }

    /// The address of the page.
    pub fn url(&mut self) -> String {
        let history = self.call("Page.getNavigationHistory", json!({}));
        let current = history["currentIndex"].as_u64().and_then(|at| usize::try_from(at).ok());
        let url = &history["entries"][current.expect("there is a page")]["url"];
        url.as_str().expect("is text").to_owned()
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression in the page is true.
    #[track_caller]
    pub fn wait_until(&mut self, expression: &str) {
        let look = format!(
            "new Promise((done) => {{ const begin = performance.now(); const look = () => {{ \
             if ({expression}) done(true); \
             else if (performance.now() - begin > 20000) done(false); \
             else setTimeout(look, 5); }}; look(); }})"
        );
        assert_eq!(self.value(&look), true, "never came true: {expression}");
    }

    /// The whole page as it is now. Works without scripts.
    pub fn html(&mut self) -> String {
        let document = self.call("DOM.getDocument", json!({}));
        let asked = json!({"nodeId": document["root"]["nodeId"]});
        let html = self.call("DOM.getOuterHTML", asked);
        html["outerHTML"].as_str().expect("is text").to_owned()
    }

    /// Types letters, one after the other.
    pub fn write(&mut self, text: &str) {
        for letter in text.chars() {
            let key = json!({"type": "keyDown", "text": letter, "key": letter});
            self.call("Input.dispatchKeyEvent", key);
            self.call("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": letter}));
        }
    }

    /// Presses a key with a name.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "ArrowUp" => (38, ""),
            "ArrowDown" => (40, ""),
            other => panic!("the tests know no key {other}"),
        };
        let mut down =
            json!({"type": "rawKeyDown", "key": key, "code": key, "windowsVirtualKeyCode": code});
        if !text.is_empty() {
            down["type"] = json!("keyDown");
            down["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", down);
        let up = json!({"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code});
        self.call("Input.dispatchKeyEvent", up);
    }

    /// Clicks the middle of an element.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        let place = format!(
            "(() => {{ const box = document.querySelector({}).getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            json!(selector)
        );
        let place = self.value(&place);
        for kind in ["mousePressed", "mouseReleased"] {
            let click = json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", click);
        }
    }

    /// Shows pages in a window of this size, in `light` or `dark`.
    pub fn show(&mut self, width: u32, height: u32, scheme: &str) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    /// Keeps a picture of the page as `NAME.png` in a folder, for people to look at.
    pub fn picture(&mut self, folder: &Path, name: &str) {
        let picture = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(picture["data"].as_str().expect("is text"))
            .expect("is base64");
        std::fs::create_dir_all(folder).expect("is ours");
        std::fs::write(folder.join(format!("{name}.png")), bytes).expect("is ours");
    }

    /// What the browser complained about: errors of scripts, forbidden actions, and failed loads.
    pub fn complaints(&mut self) -> Vec<String> {
        // Everything that was sent before this answer has arrived then.
        self.call("Runtime.evaluate", json!({"expression": "0"}));
        let complaint = |event: &Value| match event["method"].as_str()? {
            "Log.entryAdded" | "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" => {
                Some(event["params"].to_string())
            }
            "Network.loadingFailed" if event["params"]["canceled"] != true => {
                Some(event["params"].to_string())
            }
            _ => None,
        };
        self.events.iter().filter_map(complaint).collect()
    }

    /// What a screen reader announces: the role and the name of everything that is not hidden from it.
    pub fn told(&mut self) -> Vec<Told> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().cloned().unwrap_or_default();
        let shown = nodes.into_iter().filter(|node| node["ignored"] != true);
        let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
        let told = shown.map(|node| {
            let properties = node["properties"].as_array().cloned().unwrap_or_default();
            let level = properties.into_iter().find(|property| property["name"] == "level");
            let level = level.and_then(|property| property["value"]["value"].as_u64());
            Told { role: text(&node["role"]), name: text(&node["name"]), level }
        });
        told.collect()
    }
}

/// Something that a screen reader announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Such as `heading`.
    pub role: String,
    /// What is said.
    pub name: String,
    /// Of a heading.
    pub level: Option<u64>,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // All its processes have ended when the pipe is closed; then its folder can be removed.
        let close = json!({"id": self.last + 1, "method": "Browser.close"});
        let _ = self.input.write_all(format!("{close}\0").as_bytes());
        while self.messages.recv_timeout(PATIENCE).is_ok() {}
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
