# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A browser without a window, driven over a pipe by the Chrome DevTools Protocol."""
import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
PATIENCE = 120


def find():
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def pipes():
    """Ends to read and to write here, and those of the browser, which lie above 4."""
    to_browser, write_fd = os.pipe()
    read_fd, from_browser = os.pipe()
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (to_browser, from_browser)]
    os.close(to_browser)
    os.close(from_browser)
    return read_fd, write_fd, *high


class Browser:
    """One page of a browser. It records requests, and messages on the console."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="weir-browser-")
        self.read_fd, self.write_fd, to_browser, from_browser = pipes()
        # The browser reads commands from descriptor 3, and writes to 4. The shell arranges that.
        inner = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self.child = subprocess.Popen(
            ["bash", "-c", inner, "-", find(), "--headless", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile.name}", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--hide-scrollbars"],
            pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.numbers = itertools.count(1)
        self.rest = b""
        self.requests, self.messages = [], []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **parameters):
        """Sends a command, and returns its result."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_fd, data):]
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.read(deadline)
            if answer.get("id") != number:
                self.note(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def read(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            got = os.read(self.read_fd, 1 << 20)
            if not got:
                raise RuntimeError(f"the browser has ended: {self.child.poll()}")
            self.rest += got
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def note(self, event):
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.messages.append(json.dumps(parameters))

    def run(self, script):
        """The value of a JavaScript expression."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True,
                          awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, script, patience=PATIENCE):
        """Waits until an expression is true, and returns its value."""
        deadline = time.monotonic() + patience
        while not (value := self.run(script)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{script} stays {value}: {self.run('document.body.innerText')}")
            time.sleep(0.1)
        return value

    def open(self, url):
        self.ask("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def resize(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        """Prefers a colour scheme: "light" or "dark"."""
        self.ask("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": name}])

    def press(self, key, code, number):
        for kind in ("keyDown", "keyUp"):
            more = {"text": "\r" if key == "Enter" else key} if kind == "keyDown" and key in (
                "Enter", " ") else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=code,
                     windowsVirtualKeyCode=number, **more)

    def screenshot(self, path):
        """Writes the whole page as a picture in the format WebP."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.ask("Page.captureScreenshot", format="webp", quality=75,
                        captureBeyondViewport=True,
                        clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"],
                              "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def close(self):
        os.close(self.write_fd)
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        os.close(self.read_fd)
        try:
            self.profile.cleanup()
        except OSError:
            pass  # a process of the browser still writes there
