"""A real moed for tests of its REST interface, a reader of its event streams, and an agent that the
test plays. No agent program and no moectl is needed."""
import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from lib import BUILD, PATIENCE, Daemon, clean_env, equal, need, wait_until
from rig import Answer, Unix
from schemas import Watch

MOED = os.path.join(BUILD, "moed")
RECIPE = json.dumps(
    {
        "recipe": 1,
        "name": "rest",
        "engine": {"kind": "command", "argv": ["/bin/true"]},
        "cluster": {"gpus": 2},
    }
)


class Moed:
    """A controller on a directory of its own."""

    def __init__(self, dir=None, **options):
        self.dir = dir or tempfile.mkdtemp(prefix="moe-rest-")
        self.state = options.pop("state_dir", os.path.join(self.dir, "state"))
        self.options = dict(
            {
                "state_dir": self.state,
                "unix_socket": os.path.join(self.dir, "sock"),
                "port": 0,
                "bootstrap_tokens": os.path.join(self.dir, "tokens"),
                "beat_ms": 300,
                "suspect_ms": 20000,
                "down_ms": 60000,
            },
            **options,
        )
        self.start()

    def start(self):
        args = [MOED]
        for k, v in self.options.items():
            args += ["--set", "%s=%s" % (k, v)]
        if not os.path.exists(os.path.join(self.state, "store.id")):
            subprocess.run(
                args + ["--init"],
                env=clean_env(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                check=True,
                timeout=PATIENCE * 60,
            )
        address = os.path.join(self.state, "address")
        if os.path.exists(address):
            os.unlink(address)
        self.log = open(os.path.join(self.dir, "log"), "a")
        self.process = Daemon(
            args, env=clean_env(), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )
        wait_until(
            lambda: self.process.poll() is not None or os.path.exists(address), 20, "moed listening"
        )
        need(self.process.poll() is None, lambda: open(os.path.join(self.dir, "log")).read())
        with open(address) as f:
            self.host, self.port = f.read().strip().split("//")[1].split(":")
        with open(os.path.join(self.dir, "tokens", "admin.token")) as f:
            self.admin = f.read().strip()
        with open(os.path.join(self.dir, "tokens", "agent.token")) as f:
            self.agent = f.read().strip()
        Watch.learn(lambda: self.ask("GET", "/openapi.json", unix=True).json)

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(PATIENCE * 20)
        self.log.close()
        need(code >= 0 or -code in (how, signal.SIGKILL), "moed was ended by signal %d" % -code)
        return code

    def __enter__(self):
        return self

    def __exit__(self, kind, *exc):
        """A stop is clean, whatever was asked before (a sanitizer's finding is another exit
        status)."""
        code = self.stop()
        text = open(os.path.join(self.dir, "log")).read()
        shutil.rmtree(self.dir, ignore_errors=True)
        if kind is None:
            equal(code, 0, "exit status of moed; it said: %s" % text[-3000:])

    def connect(self, unix=False, timeout=20):
        timeout *= PATIENCE
        return (
            Unix(self.options["unix_socket"], timeout)
            if unix
            else http.client.HTTPConnection(self.host, int(self.port), timeout=timeout)
        )

    def ask(
        self,
        method,
        path,
        body=None,
        token="admin",
        headers=None,
        unix=False,
        type="application/json",
        timeout=20,
    ):
        """token: a secret, "admin" for the admin's, None for none."""
        h = dict(headers or {})
        token = self.admin if token == "admin" else token
        if token:
            h["Authorization"] = "Bearer " + token
        if body is not None:
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
            h.setdefault("Content-Type", type)
        c = self.connect(unix, timeout)
        try:
            try:
                c.request(method, path, body, h)
            except BrokenPipeError:
                pass  # refused by its head: the answer is there
            a = Answer(c.getresponse())
        finally:
            c.close()
        Watch.show(method, path, a)
        return a

    def get(self, path, **kw):
        a = self.ask("GET", path, **kw)
        equal(a.status, 200, "GET %s: %s" % (path, a.body[:300]))
        return a.json

    def token(self, role, **more):
        a = self.ask("POST", "/v1/tokens", dict({"role": role}, **more))
        equal(a.status, 201, "token: %s" % a.body)
        return a.json

    def submit(self, **kw):
        return self.ask("POST", "/v1/jobs", RECIPE, **kw)


def checksum(text):
    """As the store has it beside each text."""
    h = 0xCBF29CE484222325 ^ len(text)
    for i in range(0, len(text), 8):
        h = (h ^ int.from_bytes(text[i : i + 8], "little")) * 0x9E3779B97F4A7C15 % 2**64
        h ^= h >> 32
    return h - 2**64 if h >= 2**63 else h


class Stream(threading.Thread):
    """Follows an event stream; `events` grows, `ended` is set at its end."""

    def __init__(self, moed, path="/v1/events?follow=1", token=None, headers=None):
        super().__init__(daemon=True)
        self.connection, self.events, self.ended = moed.connect(timeout=60), [], threading.Event()
        self.connection.request(
            "GET",
            path,
            headers=dict({"Authorization": "Bearer " + (token or moed.admin)}, **(headers or {})),
        )
        self.response = self.connection.getresponse()
        equal(self.response.status, 200, "stream")
        self.start()

    def run(self):
        event = {}
        try:
            for line in iter(self.response.readline, b""):
                key, _, value = line.decode().rstrip("\n").partition(": ")
                if key == "id":
                    event["id"] = int(value)
                elif key == "data":
                    event["data"] = json.loads(value)
                elif not line.strip() and event:
                    self.events.append(event)
                    event = {}
        except (OSError, http.client.HTTPException, ValueError):
            pass
        self.ended.set()


class FakeAgent:
    """Speaks the agent protocol for one node; answers questions for logs from `logs` {rank:
    text}."""

    def __init__(self, moed, node="n1", gpus=2, token=None):
        self.moed, self.node, self.gpus, self.token = moed, node, gpus, token or moed.agent
        self.logs, self.queries, self.commands, self.beat, self.running = {}, [], [], 0, True
        self.ended, self.rotated = set(), 0  # rotated: bytes of each log that are gone
        # exited: of these ranks it sends the note; deaf: it takes questions and does not answer
        self.exited, self.deaf, self.instance = set(), False, "i1"

    def post(self, route, doc):
        return self.moed.ask("POST", "/v1/agent/" + route, doc, token=self.token)

    def hello(self, **more):
        numa = [
            {
                "id": 0,
                "cpus": "0-1",
                "cores": "0;1",
                "l3": "0-1",
                "mem_bytes": 1 << 30,
                "distances": "10",
            }
        ]
        info = {
            "hostname": self.node,
            "gpus": [
                {"index": i, "vendor": "fake", "model": "fake", "numa_node": 0}
                for i in range(self.gpus)
            ],
            "numa": numa,
            "cpus": 2,
            "mem_bytes": 1 << 30,
        }
        a = self.post(
            "hello",
            dict(
                {
                    "node": self.node,
                    "boot_id": "boot",
                    "instance": self.instance,
                    "protocol": 1,
                    "version": "test",
                    "info": info,
                    "steps": [],
                },
                **more,
            ),
        )
        if a.status == 200:
            self.epoch = a.json["epoch"]
        return a

    def sync(self, route="sync", **more):
        self.beat += 1
        doc = {
            "node": self.node,
            "boot_id": "boot",
            "instance": self.instance,
            "epoch": self.epoch,
            "beat": self.beat,
            "mono_ns": time.monotonic_ns(),
            "steps": [],
            "scans": [],
        }
        a = self.post(route, dict(doc, **more))
        if a.status == 200:
            self.commands += a.json["commands"]
        return a

    def answer(self, c):
        self.queries.append(c)
        if self.deaf:
            return
        text, offset = self.logs.get(c["rank"], ""), c["offset"]
        if offset < 0:
            lines = text.splitlines(True)
            offset = (
                self.rotated + len(text) - len("".join(lines[-c["lines"] :] if c["lines"] else []))
            )
        doc = {
            "node": self.node,
            "query": c["query"],
            "text": text[max(offset - self.rotated, 0) :],
            "offset": self.rotated + len(text),
            "end": c["rank"] in self.ended,
        }
        if c["rank"] not in self.logs:
            doc = {"node": self.node, "query": c["query"], "error": "no such log"}
        equal(self.post("answer", doc).status, 200, "answer")

    def loop(self):
        def run():
            steps = []
            while self.running:
                for s in steps:
                    told = {n["rank"] for n in s["notes"] if n["kind"] == "exit"}
                    new = sorted(self.exited - told)
                    s["notes"] += [
                        {
                            "n": s["written"] + i + 1,
                            "kind": "exit",
                            "rank": r,
                            "pid": 100 + r,
                            "code": 0,
                            "cause": "exit",
                        }
                        for i, r in enumerate(new)
                    ]
                    s["written"] += len(new)
                    if new and self.exited == {
                        n["rank"] for n in s["notes"] if n["kind"] == "started"
                    }:
                        s["written"] += 1
                        s["notes"].append(
                            {
                                "n": s["written"],
                                "kind": "gone",
                                "text": "every process of the step was reaped",
                            }
                        )
                try:
                    a = self.sync(steps=steps)
                except OSError:
                    continue
                if a.status == 409:
                    self.hello(steps=steps)
                if a.status != 200:
                    continue
                for c in a.json["commands"]:
                    if c["kind"] == "query":
                        try:
                            self.answer(c)
                        except OSError:
                            pass  # the controller was killed: who asked asks again
                    elif c["kind"] == "launch" and not steps:
                        k = c["launch"]
                        notes = [
                            {
                                "n": i + 1,
                                "kind": "started",
                                "rank": k["first_rank"] + i,
                                "pid": 100 + i,
                                "cpus": "0",
                                "bind_verified": True,
                            }
                            for i in range(k["n_local"])
                        ]
                        notes.append({"n": len(notes) + 1, "kind": "running"})
                        steps = [
                            {
                                "job": k["job"],
                                "attempt": k["attempt"],
                                "state": "running",
                                "written": len(notes),
                                "notes": notes,
                                "progress": [],
                            }
                        ]

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()


def each_with_a_controller(suite, **options):
    """For tests of which each gets a controller of its own, with these options."""

    def test(fn):
        def run():
            with Moed(**options) as m:
                fn(m)

        run.__name__ = fn.__name__
        return suite.test(run)

    return test
