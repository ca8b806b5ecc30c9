//! A headless Chromium, driven by the DevTools protocol over a pipe: messages are JSON, each followed by a zero byte.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The path of Chromium, under any of its names.
pub fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names
        .iter()
        .flat_map(|name| std::env::split_paths(&folders).map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
}

/// A browser with one page.
pub struct Browser {
    process: Child,
    pipe: Option<ChildStdin>,
    received: Receiver<Value>,
    session: Option<String>,
    sent: u64,
    /// Errors of the page, and the URLs that it requested.
    pub errors: Vec<String>,
    pub requests: Vec<String>,
}

impl Browser {
    /// Starts it, with its files in `folder`.
    pub fn start(chromium: &Path, folder: &Path) -> Self {
        // It reads from file descriptor 3 and writes to 4, which the shell opens.
        let line = "exec \"$0\" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                    --remote-debugging-pipe --user-data-dir=\"$1\" about:blank 3<&0 4>&1 1>&2";
        let mut process = Command::new("sh")
            .args(["-c", line])
            .arg(chromium)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let (pipe, mut out) = (process.stdin.take(), BufReader::new(process.stdout.take().expect("a pipe")));
        let (sender, received) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while out.read_until(0, &mut message).is_ok_and(|len| len > 0) {
                message.pop();
                if sender.send(serde_json::from_slice(&message).expect("JSON")).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let mut browser =
            Self { process, pipe, received, session: None, sent: 0, errors: Vec::new(), requests: Vec::new() };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.ask("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Sends a command and waits for its answer.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let pipe = self.pipe.as_mut().expect("a pipe");
        pipe.write_all(format!("{message}\0").as_bytes()).and_then(|()| pipe.flush()).expect("the browser reads");
        loop {
            let answer = self.receive();
            if answer["id"] == json!(self.sent) {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The next message; errors of the page are recorded.
    fn receive(&mut self) -> Value {
        let message = self.received.recv_timeout(PATIENCE).expect("the browser answers");
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.errors.push(params["exceptionDetails"].to_string()),
            Some("Log.entryAdded") => self.errors.push(params["entry"].to_string()),
            Some("Runtime.consoleAPICalled") => self.errors.push(params["args"].to_string()),
            Some("Network.requestWillBeSent") => {
                self.requests.push(params["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
        message
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, path: &Path) {
        self.ask("Page.navigate", json!({"url": format!("file://{}", path.display())}));
        while self.receive()["method"] != json!("Page.loadEventFired") {}
    }

    /// Sets the width of the window.
    pub fn width(&mut self, width: u32) {
        let metrics = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500});
        self.ask("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// The value of an expression on the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.ask("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Presses a key.
    pub fn key(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            self.ask("Input.dispatchKeyEvent", json!({"type": kind, "key": key, "code": key, "text": text}));
        }
    }

    /// Types into the focused element.
    pub fn write(&mut self, text: &str) {
        self.ask("Input.insertText", json!({"text": text}));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closing the pipe ends it; if not, it is killed.
        drop(self.pipe.take());
        std::thread::sleep(Duration::from_millis(200));
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
