# SPDX-License-Identifier: Apache-2.0
"""A store over HTTP for the tests of shipping: takes PUT and POST, keeps what it got, and fails as it is told. It
verifies signatures of AWS, version 4, by the standard's own words."""
import calendar
import hashlib
import hmac
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY, SECRET = "AKTESTKEY", "se/cr+et"


def signed(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature_holds(request, body, secret):
    words = request.headers.get("Authorization", "")
    if not words.startswith("AWS4-HMAC-SHA256 "):
        return False
    parts = dict(word.strip().split("=", 1) for word in words[17:].split(","))
    key, day, region, service, end = parts["Credential"].split("/")
    if request.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
        return False
    names = parts["SignedHeaders"].split(";")
    if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names) or names != sorted(names):
        return False
    path, _, query = request.path.partition("?")
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    quote = lambda text: urllib.parse.quote(text, safe="-_.~")
    canonical = "\n".join(
        [request.command, path, "&".join(quote(k) + "=" + quote(v) for k, v in pairs)]
        + [name + ":" + request.headers[name].strip() for name in names]
        + ["", parts["SignedHeaders"], request.headers["x-amz-content-sha256"]])
    text = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], "/".join([day, region, service, end]),
                      hashlib.sha256(canonical.encode()).hexdigest()])
    step = ("AWS4" + secret).encode()
    for word in (day, region, service, end):
        step = signed(step, word)
    return key == KEY and hmac.compare_digest(signed(step, text).hex(), parts["Signature"])


class Store:
    """faults: what to do with the next requests, one each; then `always`, then all is well."""

    def __init__(self):
        self.objects, self.puts, self.requests = {}, [], []
        self.faults, self.always = [], None
        self.replies = {}  # (method, path) -> (status, headers, body)
        self.verify = False
        self.check_time, self.skewed = False, 0  # as S3: not more than 15 minutes from its own
        self.lock = threading.Lock()
        self.released = threading.Event()
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def answer(self, status, body=b"", headers=()):
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def fail(self, fault, length):
                if fault == "cut":  # in the middle of the body
                    self.rfile.read(length // 2)
                elif fault == "hang":
                    self.rfile.read(length)
                    store.released.wait(60)
                elif fault == "close":  # the body came, the answer does not
                    self.rfile.read(length)
                else:
                    self.rfile.read(length)
                    status, after = fault if isinstance(fault, tuple) else (fault, None)
                    self.answer(status, b"<Error><Code>Test%d</Code></Error>" % status,
                                [("Retry-After", after)] if after else [])
                    return
                self.close_connection = True

            def handle_any(self):
                length = int(self.headers.get("Content-Length") or 0)
                path = urllib.parse.unquote(self.path.partition("?")[0])
                with store.lock:
                    store.requests.append((time.monotonic(), self.command, self.path, dict(self.headers)))
                    fault = store.faults.pop(0) if store.faults else store.always
                    reply = store.replies.get((self.command, path))
                if fault:
                    return self.fail(fault, length)
                body = self.rfile.read(length)
                if len(body) != length:
                    self.close_connection = True
                    return None
                if reply:
                    status, headers, text = reply
                    return self.answer(status, text, headers)
                if store.verify and not signature_holds(self, body, SECRET):
                    return self.answer(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
                if store.check_time:
                    sent = calendar.timegm(time.strptime(self.headers["x-amz-date"], "%Y%m%dT%H%M%SZ"))
                    if abs(sent - time.time()) > 900:
                        store.skewed += 1
                        return self.answer(403, b"<Error><Code>RequestTimeTooSkewed</Code></Error>")
                with store.lock:
                    store.objects[path] = body
                    store.puts.append(path)
                return self.answer(200)

            do_GET = do_PUT = do_POST = handle_any

        ThreadingHTTPServer.handle_error = lambda *args: None  # who is killed while sending resets connections
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
