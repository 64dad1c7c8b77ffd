"""A registry on loopback that serves the blobs of a layout, and can be bad in many ways."""
import base64
import http.server
import json
import os
import re
import threading
from urllib.parse import parse_qs, urlsplit


class Registry(http.server.ThreadingHTTPServer):
    """One image by the name n/a/me."""

    daemon_threads = True

    def __init__(self, layout, manifest, port=0):
        super().__init__(("127.0.0.1", port), Answer)
        self.layout = layout
        self.tags = {"v1": manifest["digest"]}
        self.user = None  # "name:password": only with a token that these two got
        self.realm = None  # where tokens are; here
        self.basic = False  # only with these two, and no token
        self.tokens_hold = 1 << 30  # requests
        self.cut = []  # bytes after which the next answers with blobs end
        self.fail = 0  # so many requests are answered 503
        self.ranges = True
        self.silent = threading.Event()
        self.link = None  # blobs are at this address
        self.evil = {}  # digest: other bytes
        self.seen = []  # (path, authorization, range)
        self.tokens = 0
        self.valid = {}
        self.end = threading.Event()

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.host = "127.0.0.1:%d" % self.server_address[1]
        return self

    def __exit__(self, *exc):
        self.end.set()
        self.shutdown()
        self.server_close()

    def paths(self, kind):
        return [path for path, _, _ in self.seen if "/%s/" % kind in path]


class Answer(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        s, path = self.server, urlsplit(self.path)
        authorization = self.headers.get("Authorization")
        s.seen.append((self.path, authorization, self.headers.get("Range")))
        if s.fail > 0:
            s.fail -= 1
            return self.reply(503)
        if path.path == "/token":
            return self.token(parse_qs(path.query), authorization)
        if s.user and not self.may(authorization):
            realm = s.realm or "http://%s/token" % s.host
            challenge = 'Bearer realm="%s",service="s, \\"x\\"",scope="pull"' % realm
            if s.basic:
                challenge = 'Basic realm="r"'
            return self.reply(401, WWW_Authenticate=challenge)
        found = re.fullmatch(r"/v2/n/a/me/(manifests|blobs)/([^/]+)", path.path)
        if not found:
            return self.reply(404)
        digest = s.tags.get(found[2], found[2])
        file = s.layout.file({"digest": digest}) if ":" in digest else ""
        if not os.path.exists(file):
            return self.reply(404)
        with open(file, "rb") as f:
            body = s.evil.get(digest, f.read())
        if found[1] == "manifests":
            return self.reply(200, body, Content_Type=json.loads(body).get("mediaType", "x"))
        return self.blob(body)

    def may(self, authorization):
        s = self.server
        if s.basic:
            return authorization == "Basic " + base64.b64encode(s.user.encode()).decode()
        left = s.valid.get(authorization, 0)
        s.valid[authorization] = left - 1
        return left > 0

    def token(self, query, authorization):
        s = self.server
        wanted = "Basic " + base64.b64encode(s.user.encode()).decode()
        if query != {"service": ['s, "x"'], "scope": ["pull"]} or authorization != wanted:
            return self.reply(401)
        s.tokens += 1
        s.valid["Bearer t%d" % s.tokens] = s.tokens_hold
        return self.reply(200, json.dumps({"token": "t%d" % s.tokens}).encode())

    def blob(self, body):
        s = self.server
        if s.link:
            return self.reply(307, Location=s.link + self.path)
        begin = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        begin = int(begin[1]) if begin and s.ranges else 0
        if begin > 0 and begin >= len(body):
            return self.reply(416)
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(body) - begin))
        self.end_headers()
        body = body[begin:]
        if s.cut:
            n = s.cut.pop(0)
            self.wfile.write(body[:n])
            self.close_connection = True
            return
        if s.silent.is_set():
            self.wfile.write(b"" if begin else body[:100])
            self.wfile.flush()
            s.end.wait()
            return
        self.wfile.write(body)
