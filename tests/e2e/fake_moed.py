"""A scripted controller for tests of the agent: hello, sync, news and answer over a UNIX socket
(docs/protocol.md). It keeps every note it hears, acknowledges them, and repeats the commands of
`due` in every sync reply until the test takes them away: level-triggered, like moed."""
import http.server
import json
import os
import socketserver
import threading
import time

from lib import PATIENCE


class FakeMoed:
    def __init__(self, path, beat_ms=200, epoch=1):
        self.path, self.beat_ms, self.epoch = path, beat_ms, epoch
        self.changed = threading.Condition()
        self.due = []  # commands, as dicts without epoch and node
        self.hellos = []  # every hello
        self.notes = {}  # (job, attempt) -> {n: note}
        self.heard = {}  # (job, attempt) -> {n: time of arrival}
        self.steps = {}  # (job, attempt) -> last report
        self.progress = {}  # (job, attempt) -> {rank: progress}
        self.scans = []
        self.answers = {}  # query -> answer
        self.health = {}  # node -> newest node_health
        self.healths = []  # every one that came, in order
        self.reads = {}  # keys of messages that it says it reads, as in the welcome
        self.keep_health = True  # acknowledge node_health
        self.sensors = {}  # node -> slot -> values
        self.syncs = 0
        self.images = []  # of the newest message that says some
        self.leaving = []  # each change of what syncs and news say of it
        self.refuse = None  # HTTP status for everything
        self.forget_notes = False  # acknowledge nothing
        self.server = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    def start(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, doc = outer.answer_to(self.path, body)
                data = json.dumps(doc).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def address_string(self):
                return "unix"

            def log_message(self, *args):
                pass

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request, client_address):
                pass  # agents are killed in the middle of requests here

        if os.path.exists(self.path):
            os.unlink(self.path)
        self.server = Server(self.path, Handler)
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    # what comes in

    def take(self, doc):
        for step in doc.get("steps", []):
            key = (step["job"], step["attempt"])
            self.steps[key] = step
            for note in step.get("notes", []):
                if note["n"] not in self.notes.setdefault(key, {}):
                    self.notes[key][note["n"]] = note
                    self.heard.setdefault(key, {})[note["n"]] = time.monotonic()
            for p in step.get("progress", []):
                self.progress.setdefault(key, {})[p["rank"]] = p
        for scan in doc.get("scans", []):
            self.scans.append(scan)
        self.images = doc.get("images", self.images)
        if isinstance(doc.get("health"), dict):  # a hello says true: it will come
            self.healths.append(doc["health"])
            if self.keep_health:
                self.health[doc["node"]] = doc["health"]
        if (
            "steps" in doc
            and "hostname" not in doc
            and (self.leaving or [False])[-1] != doc.get("leaving", False)
        ):
            self.leaving.append(doc.get("leaving", False))
        for s in doc.get("sensors", []):
            self.sensors.setdefault(doc["node"], {})[s["slot"]] = s

    def acks(self):
        return [
            {
                "job": j,
                "attempt": a,
                "through": 0 if self.forget_notes else max(self.notes.get((j, a), {0: 0})),
                "known": True,
            }
            for j, a in self.steps
        ]

    def commands(self, node):
        return [dict(c, epoch=self.epoch, node=node) for c in self.due]

    def answer_to(self, path, doc):
        with self.changed:
            if self.refuse:
                return self.refuse, {"title": "refused"}
            verb = path.rsplit("/", 1)[-1]
            if verb == "answer":
                self.answers[doc["query"]] = doc
                self.due = [c for c in self.due if c.get("query") != doc["query"]]
                self.changed.notify_all()
                return 200, {}
            self.take(doc)
            self.changed.notify_all()
            if verb == "hello":
                self.hellos.append(doc)
                return 200, {
                    "epoch": self.epoch,
                    "beat_ms": self.beat_ms,
                    "steps": self.acks(),
                    **self.reads,
                }
            if verb == "news":
                return 200, {"epoch": self.epoch, "acks": self.acks(), "commands": []}
            self.syncs += 1
            end = time.monotonic() + self.beat_ms / 1000
            while not self.due and time.monotonic() < end:
                self.changed.wait(end - time.monotonic())
            known = self.health.get(doc["node"], {}).get("version") if self.keep_health else None
            return 200, {
                "epoch": self.epoch,
                "acks": self.acks(),
                "commands": self.commands(doc["node"]),
                "health": known,
            }

    # what tests do

    def order(self, kind, job, attempt, **fields):
        """Makes a command due; the returned function takes it away again."""
        command = dict(kind=kind, job=job, attempt=attempt, **fields)
        with self.changed:
            self.due.append(command)
            self.changed.notify_all()

        def done():
            with self.changed:
                self.due = [c for c in self.due if c is not command]

        return done

    def wait(self, condition, deadline, what):
        """Waits until condition() (called with the lock held) is true; its value."""
        deadline *= PATIENCE
        end = time.monotonic() + deadline
        with self.changed:
            while True:
                value = condition()
                if value:
                    return value
                left = end - time.monotonic()
                if left <= 0:
                    raise AssertionError(
                        "%s: not within %g s" % (what() if callable(what) else what, deadline)
                    )
                self.changed.wait(left)

    def note_list(self, job, attempt, kind=None):
        notes = self.notes.get((job, attempt), {})
        return [notes[n] for n in sorted(notes) if kind is None or notes[n]["kind"] == kind]

    def wait_note(self, job, attempt, kind, count=1, deadline=20):
        def enough():
            found = self.note_list(job, attempt, kind)
            return found if len(found) >= count else None

        try:
            return self.wait(
                enough, deadline, "%d notes %s of j%d.a%d" % (count, kind, job, attempt)
            )
        except AssertionError as e:
            raise AssertionError(
                "%s; notes: %s" % (e, json.dumps(self.note_list(job, attempt))[:3000])
            )

    def query(self, job, attempt, rank, offset=-1, lines=10, wait_ms=0, deadline=10, **more):
        number = len(self.answers) + 1000 + int(time.monotonic() * 1000) % 1000000
        self.order(
            "query",
            job,
            attempt,
            query=number,
            rank=rank,
            offset=offset,
            lines=lines,
            wait_ms=wait_ms,
            **more,
        )
        return self.wait(lambda: self.answers.get(number), deadline, "answer to query %d" % number)
