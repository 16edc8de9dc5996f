"""Our HTTP server asked by curl and by Python, our client against Python's server, and thousands of streams at once."""

import base64
import contextlib
import hashlib
import http.client
import http.server
import json
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import threading
import urllib.parse

import pytest


@pytest.fixture(scope="session")
def peer(build) -> pathlib.Path:
    path = build / "tests" / "net_peer"
    if not path.exists():
        pytest.fail(f"{path} is not built: make build")
    return path


@pytest.fixture
def serve(peer):
    """Starts `net_peer serve WORDS…`; what it says of itself. It ends with the test."""
    with contextlib.ExitStack() as stack:

        def start(*words):
            server = stack.enter_context(
                subprocess.Popen(
                    [peer, "serve", *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            stack.callback(server.kill)
            return json.loads(server.stdout.readline()) | {"process": server}

        yield start


@pytest.fixture
def ours(peer):
    """Runs `net_peer WORDS…` and returns the JSON lines that it prints."""

    def run(*words, timeout=30):
        done = subprocess.run([peer, *map(str, words)], capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


@pytest.fixture
def token(tmp_path):
    """A token file and its text."""
    path = tmp_path / "token"
    text = base64.urlsafe_b64encode(bytes(range(32))).decode().rstrip("=")
    path.touch(mode=0o600)
    path.write_text(text + "\n")
    return path, text


def curl(*words, timeout=30):
    program = shutil.which("curl")
    if not program:
        pytest.skip("curl is not installed")
    return subprocess.run(
        [program, "--silent", "--show-error", *map(str, words)], capture_output=True, text=True, timeout=timeout
    )


def connection(url: str) -> http.client.HTTPConnection:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=20, context=context)


def ask(http_connection, method, path, body=None, **headers):
    http_connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
    answer = http_connection.getresponse()
    return answer.status, answer.read()


def events_of(text: str) -> list[dict]:
    """A reader of event streams of its own, for \\n as we write it."""
    events = []
    for block in text.split("\n\n")[:-1]:
        fields = [line.split(": ", 1) for line in block.split("\n") if not line.startswith(":")]
        event = {name: value for name, value in fields if name != "data"}
        events.append(event | {"data": "\n".join(value for name, value in fields if name == "data")})
    return events


def test_curl_gets_answers_and_errors(serve):
    url = serve()["url"]
    assert json.loads(curl(f"{url}/hello/n7").stdout) == {"hello": "n7"}
    lost = curl("--write-out", "%{http_code}", f"{url}/nowhere").stdout
    assert lost.endswith("404")
    assert json.loads(lost[:-3])["error"] == {"code": "not_found", "message": "there is nothing at /nowhere"}


def test_curl_posts_and_its_hundred_megabytes_are_refused(serve, tmp_path):
    url = serve()["url"]
    assert curl("--data-binary", "some bytes", f"{url}/echo").stdout == "some bytes"
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(100 << 20)
    refused = curl("--data-binary", f"@{large}", "--write-out", "%{http_code} %{size_upload}", f"{url}/echo")
    status, uploaded = refused.stdout.rsplit("}", 1)[1].split()
    assert status == "413"
    assert int(uploaded) == 0  # it asked first: Expect: 100-continue
    assert "104857600 bytes is too large" in refused.stdout
    assert json.loads(curl(f"{url}/hello/n7").stdout) == {"hello": "n7"}


def test_curl_reads_an_event_stream_and_goes_on_behind_an_event(serve):
    url = serve()["url"]
    whole = curl("--no-buffer", f"{url}/count?until=3")
    assert whole.returncode == 0, whole.stderr
    assert events_of(whole.stdout) == [{"id": str(i), "event": "number", "data": f"line {i}\nmore"} for i in (1, 2, 3)]
    rest = curl("--header", "Last-Event-ID: 2", f"{url}/count?until=4").stdout
    assert [event["id"] for event in events_of(rest)] == ["3", "4"]


def test_curl_with_http_1_0_gets_the_same_stream(serve):
    url = serve()["url"]
    old = curl("--http1.0", f"{url}/count?until=2")
    assert [event["id"] for event in events_of(old.stdout)] == ["1", "2"]


def test_a_token_is_asked_for(serve, token):
    path, text = token
    url = serve("token", path)["url"]
    for words in ([], ["--header", "Authorization: Bearer " + text[::-1]]):
        refused = curl(*words, "--write-out", "%{http_code}", f"{url}/hello/n7").stdout
        assert refused.endswith("401")
        assert json.loads(refused[:-3])["error"]["code"] == "unauthenticated"
    assert json.loads(curl("--oauth2-bearer", text, f"{url}/hello/n7").stdout) == {"hello": "n7"}


@pytest.mark.parametrize("kind", [[], ["tls"]])
def test_python_keeps_a_connection(serve, kind):
    http_connection = connection(serve(*kind)["url"])
    body = bytes(range(256)) * 2000
    for _ in range(5):
        assert ask(http_connection, "POST", "/echo", body) == (200, body)
        assert ask(http_connection, "GET", "/hello/a%20b") == (200, b'{"hello":"a b"}')
        assert ask(http_connection, "HEAD", "/hello/n7") == (200, b"")
    http_connection.request("POST", "/echo", iter([b"in ", b"chunks"]), encode_chunked=True)
    assert http_connection.getresponse().read() == b"in chunks"


def test_the_fingerprint_is_that_of_the_certificate(serve, ours):
    server = serve("tls")
    parts = urllib.parse.urlsplit(server["url"])
    pem = ssl.get_server_certificate((parts.hostname, parts.port))
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()
    assert server["fingerprint"] == f"sha256:{digest}"
    (answer,) = ours("ask", "GET", f"{server['url']}/hello/n7", "pin", server["fingerprint"])
    assert answer == {"status": 200, "body": '{"hello":"n7"}'}


def test_curl_reaches_the_tls_server_with_its_certificate_alone(serve, tmp_path):
    server = serve("tls")
    parts = urllib.parse.urlsplit(server["url"])
    pem = tmp_path / "certificate.pem"
    pem.write_text(ssl.get_server_certificate((parts.hostname, parts.port)))
    assert json.loads(curl("--cacert", pem, f"{server['url']}/hello/n7").stdout) == {"hello": "n7"}
    assert curl(f"{server['url']}/hello/n7").returncode == 60  # no authority knows it
    for version in ("--tls-max", "1.1"), ("--tlsv1.0", "--tls-max", "1.1"):
        assert curl("--insecure", *version, f"{server['url']}/hello/n7").returncode != 0


class Recorder(http.server.BaseHTTPRequestHandler):
    """Python's server: answers what the path says and keeps what it heard."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status: int, body: bytes, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.server.heard.append(dict(self.headers))
        if self.path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.end_headers()
            self.wfile.write(b"\xef\xbb\xbf: hi\r\nid: 5\r\ndata: one\r\ndata: two\r\n\r\nevent: x\rdata: three\r\r")
            self.close_connection = True
        elif self.path == "/half":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"b\r\ndata: one\n\n\r\n")
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif self.path == "/error":
            self.answer(503, b"<html>go away</html>", "text/html")
        else:
            self.answer(200, b'"hi"')

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append(dict(self.headers) | {"body": body})
        self.answer(201, body)


@pytest.fixture
def recorder():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.heard = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_port}"
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_our_client_asks_pythons_server(recorder, ours, token):
    path, text = token
    assert ours("ask", "GET", f"{recorder.url}/x", "token", path) == [{"status": 200, "body": '"hi"'}]
    assert recorder.heard[0]["Authorization"] == f"Bearer {text}"
    assert ours("ask", "POST", f"{recorder.url}/x", "body", "grüße") == [{"status": 201, "body": "grüße"}]
    assert recorder.heard[1]["body"].decode() == "grüße"
    assert recorder.heard[1]["Content-Type"] == "application/json"
    assert "Authorization" not in recorder.heard[1]


def test_our_client_reads_pythons_events(recorder, ours):
    *events, end = ours("listen", f"{recorder.url}/events", "after", "4")
    assert recorder.heard[0]["Last-Event-ID"] == "4"
    assert recorder.heard[0]["Accept"] == "text/event-stream"
    assert events == [
        {"id": "5", "type": "message", "data": "one\ntwo"},
        {"id": "5", "type": "x", "data": "three"},
    ]
    assert end["error"]["code"] == "unavailable"
    assert "the server ended the event stream" in end["error"]["message"]


def test_our_client_says_how_a_stream_ended(recorder, ours, serve):
    *events, end = ours("listen", f"{recorder.url}/half")
    assert [event["data"] for event in events] == ["one"]
    assert "the event stream broke off" in end["error"]["message"]
    (end,) = ours("listen", f"{recorder.url}/error")
    assert re.search("/error: the server answered with status 503", end["error"]["message"])


def test_our_client_hears_that_our_server_was_killed(serve, peer):
    server = serve()
    with subprocess.Popen([peer, "listen", f"{server['url']}/count"], stdout=subprocess.PIPE, text=True) as reader:
        assert [json.loads(reader.stdout.readline())["id"] for _ in range(3)] == ["1", "2", "3"]
        server["process"].kill()
        end = json.loads(reader.stdout.readline())
        assert reader.wait(timeout=20) == 0
    assert end["error"]["code"] == "unavailable"
    assert "the event stream broke off" in end["error"]["message"]


def test_a_proxy_in_the_environment_is_not_asked(recorder, peer):
    done = subprocess.run(
        [peer, "ask", "GET", f"{recorder.url}/x"],
        capture_output=True,
        text=True,
        timeout=30,
        env={"http_proxy": "http://127.0.0.1:1", "all_proxy": "http://127.0.0.1:1"},
    )
    assert json.loads(done.stdout)["status"] == 200


@pytest.mark.parametrize("kind", ["plain", "tls"])
def test_thousands_of_streams_get_one_event_and_answer(build, kind):
    readers = 2000 if kind == "plain" else 200
    program = build / "bench" / "net_fanout"
    done = subprocess.run([program, str(readers), "20000", "3", kind], capture_output=True, text=True, timeout=100)
    if "descriptors, the limit is" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert f"{readers} streams open" in done.stderr
    assert done.stdout.count("RESULT net_fanout_") == 3
