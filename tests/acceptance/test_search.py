"""The search of the built documentation, in a browser: a newcomer's question leads to its page."""

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue

import pytest

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

ROOT = Path(__file__).parents[2]

# Types into the start page's search field, as a reader would, and sends the result list. Chromium's `--dump-dom` cannot
# be used, because it does not wait for the search worker.
TYPING = """<!doctype html><iframe src="/" width="1200" height="800"></iframe><script>
const pause = ms => new Promise(done => setTimeout(done, ms));
const frame = document.querySelector("iframe");
frame.onload = async () => {
  const page = frame.contentDocument;
  const field = page.querySelector("input.md-search__input");
  field.focus();
  const found = {};
  for (const question of QUESTIONS) {
    const list = page.querySelector(".md-search-result__list");
    list.replaceChildren();
    field.value = question;
    field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
    while (!list.children.length) await pause(20);
    await pause(200);
    const links = [...list.querySelectorAll("li:nth-child(-n+3) a")];
    found[question] = links.map(link => new URL(link.href)).map(to => to.pathname + to.hash);
  }
  fetch("/found", {method: "POST", body: JSON.stringify(found)});
};</script>"""

WANTED = {
    "use the assignor in my consumer": "/how-to/consumer/",
    "keyed order": "/key-modes/",
    "resize a topic's workers": "/how-to/consumer/#limit-and-resize-a-topics-workers",
    "replay quarantine": "/how-to/quarantine/",
    "what happens when a zone dies": "/failure-modes/#a-zone-dies",
    "HRWAssignor": "/reference/assignors/#assignors.HRWAssignor",
}


class _Site(SimpleHTTPRequestHandler):
    """The built site, the page that types, and the results."""

    found: Queue[dict[str, list[str]]] = Queue()

    def do_GET(self) -> None:
        if self.path != "/typing":
            return super().do_GET()
        body = TYPING.replace("QUESTIONS", json.dumps(list(WANTED))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(body)
        return None

    def do_POST(self) -> None:
        self.found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Log nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site, built and served."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Site, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def found(site: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The first links of each question."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium (Debian: apt install chromium)")
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    command += ["--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0"]
    command += [f"--user-data-dir={tmp_path_factory.mktemp('profile')}", f"{site}/typing"]
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return _Site.found.get(timeout=60)
    finally:
        browser.terminate()
        browser.wait(30)


@pytest.mark.parametrize(("question", "page"), WANTED.items(), ids=list(WANTED))
def test_a_question_leads_to_its_page(found: dict[str, list[str]], question: str, page: str) -> None:
    """It is among the first three results; reference pages, which contain every word, do not hide it."""
    assert page in found[question]
