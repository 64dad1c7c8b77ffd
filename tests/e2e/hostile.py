"""What the hostile campaign sends and how: mutations that a seed and a number give again, a
pipelining HTTP client that counts what was answered, slow and idle clients."""
import json
import random
import re
import selectors
import socket
import time

INTS = [
    "0",
    "-1",
    "1",
    "255",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1e308",
    "-1e309",
    "0.1",
    "1e-320",
    "99999999999999999999999999",
    "-0",
    "1.0",
]
WHOLE = [i for i in INTS if i.lstrip("-").isdigit() and abs(int(i)) < 1 << 63] + [
    "2",
    "3",
    "4096",
    "131073",
    "-9223372036854775808",
]
STRINGS = [
    '""',
    '"x"',
    '"../../etc/passwd"',
    '"%s%n%x"',
    '"\\u0000"',
    '"\\ud800"',
    '"\\u202e"',
    '"' + "a" * 300 + '"',
    '"' + "é" * 70 + '"',
    '"\\n\\r\\t\\u001b[31m"',
    '"auto"',
    '"all"',
    '"NaN"',
    '"~"',
    '"0"',
    '"9999d"',
    '"2262-04-12T00:00:00Z"',
    '"0001-01-01T00:00:00Z"',
    '"none"',
    '"null"',
    '"*x"',
    '"!!binary x"',
    '"' + "%" * 100 + '"',
]
OTHERS = [
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "[[]]",
    '{"a":null}',
    "[null]",
    '[1,"x",{}]',
    "[" * 60 + "]" * 60,
]
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[][{}:,]|\s+|.', re.S)
HEADERS = [
    "Content-Length: 0",
    "Content-Length: -1",
    "Content-Length: 18446744073709551616",
    "Content-Length: 5\r\nContent-Length: 5",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip",
    "Host: evil.example",
    "Host: ",
    "Host: [::1",
    "Origin: null",
    "Origin: http://evil.example",
    "Cookie: moe_session=moes_00000000_1_x",
    "Cookie: " + "a=b; " * 200,
    "Expect: 100-continue",
    "Expect: x",
    "Connection: close",
    "Connection: upgrade",
    "Range: bytes=0-1",
    "X-Moe: 1",
    "Authorization: Bearer moes_1_2_3",
    "Authorization: Basic eA==",
    "Authorization: Bearer " + "x" * 3000,
    "Last-Event-ID: -1",
    "If-None-Match: *",
    'If-None-Match: W/"' + "x," * 1000,
    "Accept-Encoding: gzip",
    "Accept-Encoding: gzip;q=",
    "Accept-Encoding: " + "gzip " * 1000,
    "Last-Event-ID: 99999999999999999999",
    "Idempotency-Key: " + "k" * 200,
    "X" * 2000 + ": 1",
    "X: " + "y" * 9000,
    ": x",
    "X : 1",
    "X: 1\r\n folded",
    "X: \x00",
    "Accept: \xff",
    "Content-Type: text/plain",
    "Content-Type: application/yaml",
    "Content-Encoding: gzip",
    "If-Match: *",
]
METHODS = [
    "GET",
    "POST",
    "DELETE",
    "PUT",
    "HEAD",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "CONNECT",
    "get",
    "G\x00T",
    "",
    "X" * 300,
]


def rng(seed, protocol, i):
    return random.Random("%s:%s:%d" % (seed, protocol, i))


def tokens(text):
    return TOKEN.findall(text)


def alike(word):
    """Values of the same type: they are understood, and must be judged."""
    if word[0] == '"':
        return STRINGS
    if word in ("true", "false", "null"):
        return ("true", "false", "null")
    return WHOLE if word.lstrip("-").isdigit() else INTS


def mutate_tokens(r, words):
    """Other values in the same form most of the time, so that the message gets past its parser;
    else its form is damaged."""
    words = list(words)
    for _ in range(r.choice((1, 1, 1, 2, 3, 8))):
        at = r.randrange(len(words))
        kind = 0 if r.random() < 0.9 else r.randrange(14, 20)
        if kind == 0:
            while (
                words[at] in "{}[]:,"
                or words[at].isspace()
                or (at + 1 < len(words) and words[at + 1] == ":")
            ):
                at = r.randrange(len(words))
                if r.random() < 0.02:
                    break
            words[at] = (
                r.choice(r.choice((INTS, STRINGS, OTHERS)))
                if r.random() < 0.2
                else r.choice(alike(words[at]))
            )
        elif kind == 14:
            del words[at : at + r.randrange(1, 8)]
        elif kind == 15:
            words[at:at] = words[at : at + r.randrange(1, 12)] * r.choice((1, 2, 30))
        elif kind == 16:
            words[at] = words[at][:-1] + chr(r.randrange(1, 256))
        elif kind == 17:
            other = r.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        elif kind == 18:
            words[at] = r.choice(STRINGS)
        else:
            words = words[:at]
        if not words:
            return [""]
    return words


def mutate_bytes(r, data):
    data = bytearray(data)
    for _ in range(r.choice((1, 1, 2, 4, 16))):
        at = r.randrange(len(data) + 1)
        kind = r.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << r.randrange(8)
        elif kind == 1:
            data[at:at] = bytes([r.randrange(256)]) * r.choice((1, 1, 2, 100))
        elif kind == 2:
            del data[at : at + r.randrange(1, 9)]
        elif kind == 3:
            data[at:at] = data[r.randrange(len(data) + 1) :][: r.randrange(1, 60)]
        elif kind == 4:
            data[at:at] = r.choice(INTS).encode()
        elif kind == 5 and at < len(data):
            data[at] = r.choice(b"\0\n\r\t\x1b%{}[]:,\"'=\xff")
    return bytes(data)


def request(method, path, body=None, token=None, headers=(), type="application/json"):
    head = ["%s %s HTTP/1.1" % (method, path), "Host: 127.0.0.1"]
    if token:
        head.append("Authorization: Bearer " + token)
    if body is not None:
        head += ["Content-Type: " + type, "Content-Length: %d" % len(body)]
    return (
        "\r\n".join(head + list(headers)).encode("latin1", "replace") + b"\r\n\r\n" + (body or b"")
    )


class Peer:
    """One connection of the blaster: a few messages on their way, in order."""

    def __init__(self, address):
        self.sock = socket.socket(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX)
        self.sock.setblocking(False)
        self.sock.connect_ex(address)
        self.out, self.got, self.numbers, self.last, self.half = (
            b"",
            b"",
            [],
            time.monotonic(),
            False,
        )


HEAD = re.compile(rb"HTTP/1\.1 (\d+)[^\r\n]*\r\n(.*?)\r\n\r\n", re.S)
LENGTH = re.compile(rb"(?:^|\r\n)content-length: *(\d+)", re.I)


class Blaster:
    """Sends messages (number -> bytes, whole: their frame is right, so that others may follow) and
    counts those that were answered or whose connection was closed for them."""

    def __init__(self, address, make, first=0, peers=64, depth=10, patience=120):
        self.address, self.make, self.next, self.depth, self.patience = (
            address,
            make,
            first,
            depth,
            patience,
        )
        self.statuses, self.done, self.closed, self.bad, self.poll = (
            {},
            0,
            0,
            [],
            selectors.DefaultSelector(),
        )
        for _ in range(peers):
            self.connect()

    def connect(self):
        p = Peer(self.address)
        self.poll.register(p.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, p)
        self.fill(p)

    def fill(self, p):
        for _ in range(self.depth):
            data, whole = self.make(self.next)
            p.numbers.append(self.next)
            p.out += data
            self.next += 1
            if not whole:
                p.half = True
                break
        p.last = time.monotonic()
        self.poll.modify(p.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, p)

    def drop(self, p):
        """The connection is gone: it was the answer to its first open message; the rest was not
        looked at."""
        if p.numbers:
            self.done += 1
            self.closed += 1
        self.poll.unregister(p.sock)
        p.sock.close()
        self.connect()

    def answered(self, p, status):
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status >= 500 and status not in (501, 503, 505, 507):
            self.bad.append((p.numbers[:1], status))
        if p.numbers:
            p.numbers.pop(0)
            self.done += 1

    def parse(self, p):
        while True:
            h = HEAD.match(p.got)
            if not h:
                return not p.got or b"HTTP/1.1"[: len(p.got)] == p.got[:8]
            if h[1] == b"100":
                p.got = p.got[h.end() :]
                continue
            n = LENGTH.search(h[2])
            if not n:  # a stream: it has no end of its own
                self.answered(p, int(h[1]))
                return False
            if len(p.got) < h.end() + int(n[1]):
                return True
            p.got = p.got[h.end() + int(n[1]) :]
            self.answered(p, int(h[1]))

    def turn(self, timeout=0.2):
        now = time.monotonic()
        for key, mask in self.poll.select(timeout):
            p = key.data
            try:
                if mask & selectors.EVENT_WRITE:
                    if p.out:
                        p.out = p.out[p.sock.send(p.out) :]
                    if not p.out:
                        if p.half:
                            p.sock.shutdown(socket.SHUT_WR)
                        self.poll.modify(p.sock, selectors.EVENT_READ, p)
                if mask & selectors.EVENT_READ:
                    data = p.sock.recv(262144)
                    p.last = now
                    p.got += data
                    if not data or not self.parse(p) or (p.half and not p.numbers):
                        self.drop(p)
                    elif not p.numbers:
                        self.fill(p)
            except OSError:
                self.drop(p)
        for key in list(self.poll.get_map().values()):
            if now - key.data.last > self.patience:
                self.bad.append((key.data.numbers[:1], "no answer in %d s" % self.patience))
                self.drop(key.data)

    def end(self):
        for key in list(self.poll.get_map().values()):
            key.data.sock.close()
        self.poll.close()


class Slow:
    """Connections that say nothing, begin and stop, trickle, or never read; a turn adds a byte here
    and there and opens what was closed."""

    def __init__(self, address, token, n=120):
        self.address, self.token, self.n, self.open, self.opened = address, token, n, [], 0

    def one(self):
        kind = self.opened % 6
        self.opened += 1
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(self.address)
        heads = [
            b"",
            b"GET /v1/jobs HTTP/1.1\r\nHost: 127",
            request("POST", "/v1/jobs", b"x" * 1000, self.token)[:-900],
            request("GET", "/v1/events?follow=1&after=0", token=self.token),
            request("GET", "/v1/jobs", token=self.token) * 30,
            b"\x16\x03\x01\x02\x00\x01\x00",
        ]
        return [s, heads[kind], kind]

    def turn(self):
        while len(self.open) < self.n:
            self.open.append(self.one())
        for c in list(self.open):
            try:
                if c[1]:
                    c[1] = c[1][c[0].send(c[1]) :]
                elif c[2] in (1, 2):
                    c[0].send(b"a")
                if c[2] not in (3, 4) and c[0].recv(4096) == b"":
                    raise ConnectionError
            except BlockingIOError:
                pass
            except OSError:
                c[0].close()
                self.open.remove(c)

    def end(self):
        for c in self.open:
            c[0].close()


def worst_bodies():
    """The largest and deepest that a peer may send, by name."""
    recipe = (
        '{"recipe":1,"name":"x","engine":{"kind":"command","argv":["/bin/true"]},'
        '"cluster":{"gpus":1}'
    )
    return {
        "250 kB of %": b"%" * 250000,
        "1 MiB of [": b"[" * 1000000,
        "60 brackets deep a thousand times": (
            recipe + ',"env":[' + ",".join(["[" * 60 + "]" * 60] * 1000) + "]}"
        ).encode(),
        "500 keys": (recipe + "," + ",".join('"k%d":1' % i for i in range(500)) + "}").encode(),
        "50,000 keys": (
            recipe + "," + ",".join('"k%d":1' % i for i in range(50000)) + "}"
        ).encode(),
        "a string of 900 kB": (recipe + ',"x":"' + "a" * 900000 + '"}').encode(),
        "14,000 words": json.dumps(
            {
                "recipe": 1,
                "name": "x",
                "engine": {"kind": "command", "argv": ["/bin/true"] + ["w"] * 14000},
                "cluster": {"gpus": 1},
            }
        ).encode(),
        "900 kB of blanks": b" " * 900000 + b"x",
        "900 kB of new lines": b"\n" * 900000,
        "aliases": b"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
        b"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
        b"e: [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
        "digits": b'{"recipe":' + b"9" * 200000 + b"}",
        "escapes": b'{"recipe":"' + b"\\u0041" * 150000 + b'"}',
        "no UTF-8": b"\xff\xfe" * 100000,
    }
