"""The hostile campaign: sanitized moed, agent and stepd against mutated messages of every protocol,
worst sizes, slow and idle clients, and every route as everybody. After each protocol the daemons
live, serve, stop with status 0 without a word of a sanitizer, and start again from what they
stored. Usage: test_hostile.py [--seconds N] [--seed S] [--least N] [--replay PROTOCOL:NUMBER]
[TEST...]; `make hostile` builds what it needs. docs/reliability.md has its figures."""
import contextlib
import argparse
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

from controller import RECIPE, FakeAgent, Moed
from hostile import (
    HEADERS,
    METHODS,
    Blaster,
    Slow,
    mutate_bytes,
    mutate_tokens,
    request,
    rng,
    tokens,
    worst_bodies,
)
from lib import ROOT, Suite, command_recipe, equal, need, wait_until
from rig import Rig

suite = Suite()
SHARE = {"rest": 0.3, "agent": 0.28, "road": 0.1, "stepd": 0.1, "notify": 0.12}
figures = {}
RECIPES = [
    RECIPE,
    json.dumps(
        {
            "recipe": 1,
            "name": "big",
            "engine": {"kind": "megatron-lm", "workdir": "/x", "args": {"lr": 0.1}},
            "model": "deepseek-v2-lite",
            "cluster": {"gpus": 8, "gpu": "mi300x", "nic_gbps": 400},
            "parallelism": {"tp": 1, "pp": 1, "ep": 8},
            "batch": {"seq": 4096, "micro": 1, "global": 64},
            "precision": "bf16",
            "steps": 100,
            "env": {"A": "b"},
            "checkpoint": {"dir": "/ckpt", "every": 10, "keep": 3},
            "stop": {"grace": "10s"},
            "recovery": {"hang": "auto"},
            "priority": 7,
            "time_limit": "1d",
        }
    ),
]

# What an experiment's files said, as moectl hands it over with the recipe, or as a node tells it.
RESULT = {
    "files": "crc32c:0123abcd",
    "values": {"parallelism.tp": 1},
    "args": {"lr": 0.1},
    "said": {"parallelism.tp": "e.yaml:3"},
    "result": {
        "read": ["e.yaml", "m.yaml"],
        "framework": "megatron",
        "module": "pre_trainer",
        "names": {"exp_name": "x", "team": "t"},
        "keys": [
            ["lr", [0.1, 0, 3], [0.2, 1, 7]],
            ["a.b", [{"c": [1, None, "x"]}, 0, 4, "VARIABLE"]],
            ["train_iters", ["7", -1, -1]],
            ["a.b.c", [True, 0, 4]],
        ],
    },
}
UNREAD = {
    "recipe": 1,
    "name": "unread",
    "engine": {"kind": "primus-megatron", "workdir": "/x", "entry": "e.yaml"},
    "cluster": {"gpus": 2},
}
RECIPES += [
    json.dumps(
        dict(
            UNREAD,
            experiment=RESULT,
            model="qwen3-30b-a3b",
            batch={"seq": 4096, "micro": 1, "global": 64},
            precision="bf16",
            steps=10,
        )
    ),
    json.dumps(
        {
            "recipe": 1,
            "name": "script",
            "engine": {
                "kind": "torch",
                "workdir": "/x",
                "entry": "train.py",
                "prepare": "sh prepare.sh",
            },
            "cluster": {"gpus": 2},
            "env": {"HF_TOKEN": {"file": "/home/ada/.token"}},
            "metrics": {
                "lines": [
                    {"kind": "sample", "pattern": "iter (?<iteration>\\d+): loss (?<loss>\\S+)"}
                ]
            },
            "checkpoint": {
                "dir": "/ckpt",
                "layout": "epoch=*-step={iteration}.ckpt",
                "resume_args": ["--resume={dir}/{iteration}"],
            },
        }
    ),
]


class Campaign:
    """How long a protocol is spoken, and what came of it."""

    def __init__(self, protocol, slow=None, witness=None):
        self.protocol, self.slow, self.witness, self.worst = protocol, slow, witness, 0.0
        self.began = time.monotonic()
        self.until = self.began + options.seconds * SHARE[protocol]
        # a slow machine may take longer to reach the number
        self.hard = self.began + 60 + 5 * options.seconds * SHARE[protocol]

    def goes_on(self, done):
        now = time.monotonic()
        return now < self.until or (done < options.least and now < self.hard)

    def look(self):
        began = time.monotonic()
        self.witness()
        self.worst = max(self.worst, time.monotonic() - began)

    def blast(self, b, refresh=None):
        """Until the time is over and the number reached."""
        looked = 0
        while self.goes_on(b.done):
            b.turn()
            need(not b.bad, lambda: "seed %s: %s" % (options.seed, b.bad[:5]))
            if time.monotonic() - looked > 1:
                looked = time.monotonic()
                self.look()
                if self.slow:
                    self.slow.turn()
                if refresh:
                    refresh()
        b.end()
        self.sum_up(
            b.done,
            "answers %s, closed %d"
            % (" ".join("%d:%d" % s for s in sorted(b.statuses.items())), b.closed),
        )

    def sum_up(self, done, more):
        figures[self.protocol] = done
        print(
            "%s: %d messages in %.0f s, seed %s; %s; slowest answer to the witness %.2f s"
            % (self.protocol, done, time.monotonic() - self.began, options.seed, more, self.worst),
            flush=True,
        )
        need(
            done >= options.least,
            "%d messages of %s, not %d" % (done, self.protocol, options.least),
        )


# libmicrohttpd before 0.9.77 copies the last bytes of a folded line over themselves, 16 at most
# (lib/http/strict.c refuses that head afterwards): what glibc's memcpy does right. Nothing else is
# forgiven.
OVERLAP = re.compile(
    r"==\d+==ERROR: AddressSanitizer: memcpy-param-overlap: memory ranges "
    r"\[0x(\w+),0x(\w+)\)[^\n]*\n    #0 [^\n]* in __interceptor_memcpy [^\n]*\n    #1 "
    r"[^\n]*/libmicrohttpd\.so[^\n]*\n"
    r".*?\nSUMMARY: AddressSanitizer: memcpy-param-overlap [^\n]*\n",
    re.S,
)
# what a sanitizer finds inside of a library function is said, and the judge is here
CONTINUE = "halt_on_error=0"


def unforgiven(text):
    return OVERLAP.sub(
        lambda found: "" if int(found[2], 16) - int(found[1], 16) <= 16 else found[0], text
    )


def sane(m, what):
    """What moed said so far holds no finding."""
    with open(os.path.join(m.dir, "log"), errors="replace") as f:
        text = unforgiven(f.read())
    at = max(text.find("Sanitizer"), text.find("runtime error:"))
    need(
        at < 0, lambda: "%s, seed %s: %s" % (what, options.seed, text[max(at - 200, 0) : at + 3000])
    )
    need(
        m.process.poll() is None,
        lambda: "%s, seed %s: moed ended with %s: %s"
        % (what, options.seed, m.process.returncode, text[-2000:]),
    )


def comes_back(m, what):
    """It stops by itself and starts from what it stored; jobs are what they were."""
    sane(m, what)
    jobs = {j["id"]: j["name"] for j in all_jobs(m)}
    code = m.stop()
    equal(
        code,
        0,
        "exit status after %s, seed %s: %s"
        % (what, options.seed, open(os.path.join(m.dir, "log"), errors="replace").read()[-3000:]),
    )
    m.start()
    equal({j["id"]: j["name"] for j in all_jobs(m)}, jobs, "jobs after %s and a new start" % what)
    sane(m, what + " and a new start")


def all_jobs(m):
    items, after = [], ""
    while after is not None:
        page = m.get("/v1/jobs?limit=1000" + after)
        items += page["items"]
        after = page["next"] and "&after=" + page["next"]
    return items


def routes(m):
    return [
        (method.upper(), path, op["x-role"])
        for path, ops in m.ask("GET", "/openapi.json", token=None).json["paths"].items()
        for method, op in ops.items()
    ]


class Rest:
    """Messages for the REST interface: the path, the query, the body or the head of a request of
    some route is damaged."""

    QUERIES = [
        "",
        "",
        "limit=%s",
        "after=%s",
        "last=%s",
        "state=%s",
        "rank=%s",
        "attempt=%s&from=%s",
        "type=%s",
        "follow=%s&last=1",
        "dry_run=1",
        "gpus=%s&top=%s",
        "width=%s&format=text",
        "since=%s",
        "lines=%s",
        "points=%s&names=%s&after=%s",
        "points=20&after=%s",
        "metric=%s&after=%s",
        "metric=doing&limit=%s",
        "ranks=%s",
        "follow=1&progress=%s",
        "%s=%s",
        "a=%%zz",
        "x=%%00",
    ]
    VALUES = [
        "0",
        "-1",
        "1",
        "9223372036854775807",
        "9223372036854775808",
        "x",
        "",
        "%2e%2e",
        "a" * 200,
        "%f0%9f%98%80",
        "1,2,,3",
        "loss,step_ms",
        "2.9223372036854775807",
        ",".join(["0-131071"] * 300),
        "%",
        "%0",
        "j-1",
    ]
    SEGMENTS = [
        "j-999",
        "j-0",
        "j--1",
        "j-99999999999999999999",
        "..",
        "%2e%2e",
        "%00",
        "n9",
        "x" * 100,
        "%ff",
        "",
        "j-2",
        "%6a-3",
        "a%2fb",
    ]

    def __init__(self, m, secrets):
        self.routes = [r for r in routes(m) if r[2] != "agent"]
        self.secrets = secrets
        self.verbs = [
            tokens(t)
            for t in (
                '{"now":true}',
                '{"from":3}',
                '{"reason":"x","when":"now"}',
                '{"confirmed":true,"boot_id":"b"}',
                '{"role":"viewer","user":"x","ttl":"1s"}',
                '{"code":"x"}',
                '{"verdict":"odd","nodes":2,"all_gbs":300.5,"pair_gbs":null,"odd":[{"node":"a",'
                '"peer":"b","evidence":"x"}],"curve":[{"bytes":1,"gbs":1.5},{"bytes":2,"gbs":3}]}',
                "{}",
            )
        ]
        self.recipes = [tokens(t) for t in RECIPES]
        self.yaml = []
        for name in sorted(os.listdir(os.path.join(ROOT, "config/recipes"))):
            with open(os.path.join(ROOT, "config/recipes", name), "rb") as f:
                self.yaml.append(f.read())
        self.worst = list(worst_bodies().values())

    def body(self, r, path):
        if path not in ("/v1/jobs", "/v1/plan", "/v1/validate"):
            return (
                "".join(mutate_tokens(r, r.choice(self.verbs))).encode("utf8", "replace"),
                "application/json",
            )
        kind = r.randrange(2000)
        if kind == 0:
            return r.choice(self.worst), r.choice(("application/json", "application/yaml"))
        # as a job some would be searched a plan for
        if kind < 500 and path == "/v1/validate":
            return mutate_bytes(r, r.choice(self.yaml)), "application/yaml"
        return (
            "".join(mutate_tokens(r, r.choice(self.recipes))).encode("utf8", "replace"),
            "application/json",
        )

    def make(self, i):
        r = rng(options.seed, "rest", i)
        method, path, _ = (
            r.choice(self.routes)
            if r.random() < 0.95
            else ("POST", r.choice(("/v1/jobs", "/v1/validate")), None)
        )
        if path == "/v1/plan" and r.random() < 0.995:
            path = "/v1/validate"  # a search costs a process
        real = path
        path = "/".join(
            r.choice(self.SEGMENTS) if s.startswith("{") or r.random() < 0.02 else s
            for s in path.split("/")
        )
        query = r.choice(self.QUERIES)
        query = (
            query % tuple(r.choice(self.VALUES) for _ in range(query.count("%s")))
            if "%s" in query
            else query
        )
        if real == "/v1/jobs" and method == "POST" and r.random() < 0.8:
            query = "dry_run=1"
        path += "?" + query if query else ""
        body, type = self.body(r, real) if method == "POST" else (None, None)
        token = r.choice(self.secrets)
        if r.random() < 0.85:
            return request(method, path, body, token, type=type), True
        kind = r.randrange(4)
        if kind == 0:
            return request(r.choice(METHODS), path, body, token, type=type), False
        if kind == 1:
            return (
                mutate_bytes(r, request(method, path, body and body[:2000], token, type=type)),
                False,
            )
        if kind == 2:
            chunks = b"".join(
                b"%x\r\n%s\r\n" % (len(c), c)
                for c in (r.randbytes(r.randrange(1, 300)) for _ in range(r.randrange(5)))
            )
            return (
                mutate_bytes(
                    r,
                    request(
                        "POST",
                        "/v1/validate",
                        None,
                        token,
                        ["Content-Type: application/json", "Transfer-Encoding: chunked"],
                    )
                    + chunks
                    + b"0\r\n\r\n",
                ),
                False,
            )
        return (
            request(method, path, body, token, r.sample(HEADERS, r.randrange(1, 4)), type=type),
            False,
        )


def run_agent(m, node="n1"):
    agent = FakeAgent(m, node=node)
    equal(agent.hello().status, 200, "hello of " + node)
    agent.loop()
    return agent


def end_agent(agent):
    agent.running = False
    agent.thread.join(20)


def witness_of(m, agent):
    """The node of a good agent and its job live through it."""
    job = m.submit().json["id"]
    wait_until(lambda: m.get("/v1/jobs/" + job)["state"] == "running", 30, "the good job runs")

    def look():
        sane(m, "meanwhile")
        equal(m.get("/v1/nodes/" + agent.node)["state"], "up", "the good node")
        equal(m.get("/v1/jobs/" + job)["state"], "running", "the good job")

    return look


# the machine is busy, and a node that is slow is not what is tried
SLACK = {"beat_ms": 1000, "suspect_ms": 60000, "down_ms": 120000}


@suite.test
def rest():
    with Moed(**SLACK) as m:
        agent = run_agent(m)
        try:
            look = witness_of(m, agent)
            for text in RECIPES:  # refused before they are looked at, they would try nothing
                valid = m.ask("POST", "/v1/validate", text)
                equal(valid.status, 200, "a recipe to begin with: %s" % valid.body[:300])
            make = Rest(
                m,
                [
                    m.token("operator")["token"],
                    m.admin,
                    m.token("operator")["token"],
                    m.token("user", user="ada")["token"],
                    m.token("viewer")["token"],
                    None,
                    "moe_00000000_" + "0" * 64,
                    m.agent,
                ],
            )
            slow = Slow((m.host, int(m.port)), m.token("viewer")["token"])
            c = Campaign("rest", slow, look)

            def tidy():
                for j in m.get("/v1/jobs?state=queued&limit=1000")["items"]:
                    m.ask("POST", "/v1/jobs/%s/cancel" % j["id"], {})

            c.blast(Blaster((m.host, int(m.port)), make.make), tidy)
            slow.end()
            comes_back(m, "rest")
        finally:
            end_agent(agent)


@suite.test
def folded_lines_where_the_buffer_ends():
    """Found by a campaign of an hour: there libmicrohttpd adds them to the name in place, over
    their own bytes."""
    with Moed(**SLACK) as m:
        for pad in range(3800, 4100):
            more = ["X-Pad: " + "a" * pad, "X:\r\n\tfolded", "Content-Length: 2\r\n folded"]
            with socket.create_connection((m.host, int(m.port)), 30) as s:
                s.sendall(
                    request("POST", "/v1/validate", None, m.admin, more)
                    + request("GET", "/v1/jobs", None, m.admin)
                )
                answer = b"".join(iter(lambda: s.recv(65536), b""))
            need(
                answer.startswith(b"HTTP/1.1 400 ") and b" 200 " not in answer,
                lambda: "a folded line behind %d bytes: %s" % (pad, answer[:300]),
            )
            if pad % 50 == 0:
                sane(m, "a folded line behind %d bytes" % pad)
        comes_back(m, "folded lines")


class Agents:
    """Messages of an agent that lies: its own node, its own step."""

    def __init__(self, m, node):
        self.m, self.agent, self.key, self.rounds = (
            m,
            FakeAgent(m, node=node, token=m.token("agent", user=node)["token"]),
            None,
            1,
        )
        self.worst = list(worst_bodies().values()) + [
            b'{"node":"evil","steps":[' + b"{}," * 400000 + b"{}]}"
        ]
        self.refresh()

    def refresh(self):
        """It says hello as it should, and has a job; what it was sent stays the same while nothing
        ends it."""
        a = self.agent
        steps = (
            [{"job": self.key[0], "attempt": self.key[1], "state": "running", "written": 1}]
            if self.key
            else []
        )
        if a.hello(steps=steps).status != 200 and a.hello().status != 200:
            return self.templates()
        if not self.m.get("/v1/jobs?state=queued,starting&limit=1")["items"]:
            self.m.ask("POST", "/v1/jobs", json.dumps(UNREAD) if self.rounds % 2 else RECIPE)
        self.rounds += 1
        if self.key:  # what it reported of a configuration can be asked for
            need(
                self.m.ask("GET", "/v1/jobs/j-%d/config" % self.key[0]).status < 500,
                "its configuration",
            )
        a.commands = []
        a.sync(route="news", steps=steps)
        a.sync(steps=steps)
        for c in a.commands:
            if c["kind"] == "launch":
                self.key = (c["launch"]["job"], c["launch"]["attempt"])
        self.templates()

    def templates(self):
        job, attempt = self.key or (7, 1)
        sample = {
            "iteration": 3,
            "loss": 1.5,
            "grad_norm": 0.2,
            "lr": 0.001,
            "step_ms": 12.5,
            "tokens": 1000,
            "tflops_per_gpu": 10.0,
            "mem_gb": 3.0,
            "consumed_samples": 96,
            "batch_samples": 32,
            "phase": "train",
        }
        notes = [
            {
                "n": 1,
                "kind": "started",
                "time": "2026-11-21T08:30:50.123Z",
                "mono_ns": 5,
                "rank": 0,
                "pid": 100,
                "start_time": 5,
                "cpus": "0-1",
                "numa_node": 0,
                "bind_verified": True,
                "config": json.dumps(RESULT),
            },
            {"n": 2, "kind": "running"},
            {"n": 3, "kind": "phase", "rank": 0, "phase": "train"},
            {"n": 4, "kind": "sample", "rank": 0, "sample": sample, "left_out": 3},
            {"n": 5, "kind": "checkpoint", "rank": 0, "iteration": 3, "path": "/ckpt/iter_0000003"},
            {"n": 6, "kind": "resumed", "rank": 0, "iteration": 2},
            {"n": 7, "kind": "saving", "iteration": 4},
            {
                "n": 8,
                "kind": "exit",
                "rank": 0,
                "pid": 100,
                "code": 1,
                "cause": "exited",
                "mono_ns": 9,
                "iteration": 3,
                "tail": ["a", "b"],
            },
            {"n": 9, "kind": "unkillable", "pid": 100},
            {"n": 10, "kind": "lost", "cause": "supervisor-lost"},
            {"n": 11, "kind": "gone", "text": "reaped"},
            {"n": 12, "kind": "binding", "rank": 0, "bind_verified": False, "bind_note": "x"},
            {"n": 13, "kind": "refused", "cause": "workdir", "text": "no", "code": 2},
        ]
        a = self.agent
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
            "hostname": "evil",
            "gpus": [
                {"index": 0, "vendor": "fake", "model": "fake", "numa_node": 0},
                {
                    "index": 1,
                    "vendor": "amd",
                    "model": "mi300x",
                    "numa_node": 0,
                    "bdf": "0000:01:00.0",
                },
            ],
            "numa": numa,
            "cpus": 2,
            "mem_bytes": 1 << 30,
        }
        step = {"job": job, "attempt": attempt, "state": "running", "written": 13}
        sync = {
            "node": a.node,
            "boot_id": "boot",
            "instance": a.instance,
            "epoch": getattr(a, "epoch", 1),
            "beat": 10,
            "mono_ns": 123456789,
            "scans": [],
        }
        docs = [
            (
                "hello",
                {
                    "node": a.node,
                    "boot_id": "boot",
                    "instance": a.instance,
                    "protocol": 1,
                    "version": "1",
                    "address": "10.0.0.1",
                    "info": info,
                    "health": True,
                    "steps": [step],
                },
            )
        ]
        for n in notes:
            docs.append(("news", dict(sync, steps=[dict(step, notes=[n], progress=[])])))
        docs += [
            (
                "news",
                dict(
                    sync,
                    steps=[
                        dict(
                            step,
                            notes=notes,
                            progress=[
                                {"rank": 0, "iteration": 4, "step_ms": 1.5, "phase": "train"}
                            ],
                        )
                    ],
                ),
            ),
            ("sync", dict(sync, instance="other", steps=[dict(step, notes=notes[:4])])),
            (
                "news",
                dict(
                    sync,
                    steps=[],
                    scans=[
                        {
                            "job": job,
                            "attempt": attempt,
                            "error": None,
                            "writable": True,
                            "items": [
                                {
                                    "iteration": 3,
                                    "path": "/c/3",
                                    "bytes": 100,
                                    "complete": True,
                                    "reason": None,
                                    "saved_at": "2026-11-21T08:30:50.123Z",
                                    "level": "sizes",
                                    "manifest": "x",
                                }
                            ],
                        }
                    ],
                ),
            ),
            (
                "sync",
                dict(
                    sync,
                    steps=[],
                    scans=[
                        {"job": job, "order": o, "id": i, "attempt": -1, "error": None, "items": []}
                        for o, i in (
                            ("scan", attempt),
                            ("verify", 32),
                            ("prune", 3),
                            ("last_scan", attempt + 1),
                        )
                    ],
                ),
            ),
            (
                "news",
                dict(
                    sync,
                    steps=[],
                    sensors=[{"slot": 0, "temp_c": 50.0, "power_w": 100.0, "ue": 1}],
                    nics=[{"name": "ib0", "state": "up", "rate_gbps": 400.0, "link_downed": 1}],
                ),
            ),
            ("news", dict(sync, steps=[], health={"version": 3, "results": [], "ok": 5})),
            (
                "answer",
                {
                    "node": a.node,
                    "query": 4294967297,
                    "text": "abc\n",
                    "offset": 4,
                    "more": False,
                    "end": True,
                },
            ),
        ]
        self.docs = [(route, tokens(json.dumps(d))) for route, d in docs]

    def body(self, r):
        route, words = r.choice(self.docs)
        kind = r.randrange(4000)
        body = (
            r.choice(self.worst)
            if kind == 0
            else mutate_bytes(r, "".join(words).encode())
            if kind < 300
            else "".join(mutate_tokens(r, words)).encode("utf8", "replace")
        )
        return route, body

    def make(self, i):
        route, body = self.body(rng(options.seed, "agent", i))
        return request("POST", "/v1/agent/" + route, body, self.agent.token), True


WORDS = {"hello": 1, "sync": 2, "news": 3, "answer": 4}


def open_road(m, token):
    s = socket.create_connection((m.host, int(m.port)), 20)
    s.sendall(
        b"GET /v1/agent/road HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
        b"Connection: Upgrade\r\nUpgrade: moe/1\r\n\r\n" % token.encode()
    )
    got = s.recv(65536)
    need(b" 101 " in got, lambda: "a road: %r" % got)
    return s


def frames_read(s, n):
    """How many of n answers came before the end; all of it was read."""
    got, seen = b"", 0
    while seen < n:
        while len(got) >= 12 and len(got) - 12 >= struct.unpack(">I", got[:4])[0]:
            got = got[12 + struct.unpack(">I", got[:4])[0] :]
            seen += 1
        if seen < n:
            data = s.recv(65536)
            if not data:
                break
            got += data
    return seen


def make_frame(liar, number):
    """And whether the controller may wait for more of it."""
    r = rng(options.seed, "road", number)
    route, body = liar.body(r)
    if route == "sync" and r.random() < 0.9:
        route = "news"  # which is answered at once
    head = struct.pack(">IIHH", len(body), number & 0xFFFFFFFF, WORDS[route], r.randrange(65536))
    if r.random() < 0.01:
        return mutate_bytes(r, head) + body, True
    return head + body, False


def speak_by_road(m, liar, c):
    """Frames, good heads and bad ones, seven at a time."""
    done, number, looked, cut = 0, 0, 0, 0
    while c.goes_on(done):
        s, ended = open_road(m, m.agent), False  # of no node: no quota ends it
        for _ in range(100):
            made = [make_frame(liar, number + i) for i in range(7)]
            number += len(made)
            try:
                s.sendall(b"".join(frame for frame, _ in made))
                if any(bad for _, bad in made):
                    with contextlib.suppress(OSError):  # the controller has closed it
                        s.shutdown(socket.SHUT_WR)
                ended = frames_read(s, len(made)) < len(made)
            except ConnectionError:
                ended = True
            done, cut = done + len(made), cut + ended
            if ended:
                break
        s.close()
        if time.monotonic() - looked > 1:
            looked = time.monotonic()
            c.look()
            liar.refresh()
    return done, cut


@suite.test
def road():
    with Moed(**dict(SLACK, beat_ms=50)) as m:
        good = run_agent(m)
        try:
            liar = Agents(m, "evil")
            c = Campaign("road", witness=witness_of(m, good))
            done, cut = speak_by_road(m, liar, c)
            c.sum_up(done, "cut off %d times" % cut)
            comes_back(m, "road")
        finally:
            end_agent(good)


@suite.test
def agent():
    with Moed(**dict(SLACK, beat_ms=50)) as m:
        good = run_agent(m)
        try:
            look = witness_of(m, good)
            liar = Agents(m, "evil")
            slow = Slow((m.host, int(m.port)), liar.agent.token, 30)
            Campaign("agent", slow, look).blast(
                Blaster((m.host, int(m.port)), liar.make), liar.refresh
            )
            slow.end()
            comes_back(m, "agent")
        finally:
            end_agent(good)


def speak_to_stepd(path, c, orders):
    """Lines for the socket of a step. It answers a ping with one line; what it does not understand
    ends the connection, and what came after it was not looked at."""
    done, number, looked = 0, 0, 0
    while c.goes_on(done):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(20)
        s.connect(path)
        s.recv(65536)  # it introduces itself
        ended = False
        for _ in range(200):
            try:
                lines = b""
                for _ in range(8):
                    r = rng(options.seed, "stepd", number)
                    number += 1
                    if r.random() < 0.3:
                        line = mutate_bytes(r, b'{"cmd":"ping"}')
                    else:
                        line = "".join(mutate_tokens(r, r.choice(orders))).encode("utf8", "replace")
                    line = line.replace(b"\n", b" ").replace(b"kill", b"kiil")
                    line = line if b"stop" not in line else b'{"cmd":"ping","signal":' + line + b"}"
                    lines += (line * 300 if r.random() < 0.001 else line) + b"\n"
                s.sendall(lines + b'{"cmd":"ping","last":1}\n')
                answers = 0
                while answers < 9 and not ended:
                    got = s.recv(65536)
                    answers += got.count(b'"up"')
                    ended = not got
                done += min(answers, 8) + ended
            except ConnectionError:
                done, ended = done + 1, True
            if ended:
                break
        s.close()
        if time.monotonic() - looked > 1:
            looked = time.monotonic()
            c.look()
    return done


BLASTER = """
import os, random, socket, sys, time
sys.path.insert(0, sys.argv[1])
from hostile import mutate_bytes, rng
seed, least, seconds = sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(os.environ["MOE_NOTIFY_SOCKET"])
good = [b"READY=1\\nITERATION=12\\nLOSS=2.31\\nSTEP_MS=171.2\\nTOKENS=65536\\nTFLOPS=412",\
 b"PHASE=save\\nITERATION=3", b"CHECKPOINT=" + os.environ["MOE_CHECKPOINT_DIR"].encode() +\
 b"/iter_0000003\\nITERATION=3\\nPHASE=train", b"STATUS=text"]
lines = [b"iteration 12/ 100 | loss: 2.31E+00 | grad norm: 1.2 | elapsed time per iteration (ms):\
 171.2", b"step: 5 loss: 2.0 lr: 0.1", b"Traceback (most recent call last):", b"RuntimeError: NCCL\
 timeout", b"[rank0]: x"]
out = os.fdopen(1, "wb", 65536)
end, i = time.time() + seconds, 0
while i < least or time.time() < end:
    r = rng(seed, "notify", i)
    data = mutate_bytes(r, r.choice(good)) * (100 if i % 1000 == 0 else 1)
    try:
        s.send(data)
    except OSError:
        pass
    out.write(mutate_bytes(r, r.choice(lines)) * (2000 if i % 5000 == 0 else 1) + b"\\n")
    i += 1
out.flush()
open(sys.argv[5], "w").write(str(i))
"""


@suite.test
def stepd():
    """The socket of a supervisor, then the datagrams and the output of a rank; another job on the
    same node is not disturbed."""
    with Rig(nodes=1, gpus_per_node=2, moed=SLACK) as rig:
        job = rig.submit(command_recipe("good", ["/bin/sleep", "100000"]))
        rig.wait_state(job, "running", 60)
        pids = rig.rank_pids(job)

        def look():
            equal(rig.rank_pids(job), pids, "ranks of the good job")
            found = rig.sanitizer_reports()
            need(not found, lambda: "seed %s: %s" % (options.seed, found[:5]))

        other = rig.submit(command_recipe("other", ["/bin/sleep", "100000"]))
        rig.wait_state(other, "running", 60)
        path = os.path.join(
            rig.dir, "run", "node-0", "steps", "j%s.a1" % other.split("-")[1], "sock"
        )
        path = "/proc/self/fd/%d/sock" % os.open(os.path.dirname(path), os.O_PATH)
        c = Campaign("stepd", None, look)
        orders = [
            tokens(t)
            for t in (
                '{"cmd":"ping"}',
                '{"cmd":"ping","signal":15,"grace_us":5000000}',
                '{"cmd":"ping","a":[1,{"b":null}]}',
            )
        ]
        done = speak_to_stepd(path, c, orders)
        equal(sorted(rig.rank_pids(other)), [0], "the rank of the step that was spoken to")
        c.sum_up(done, "lines on the step's socket")
        rig.run("cancel", other, "--now")
        rig.wait_state(other, "cancelled", 60)
        c = Campaign("notify", None, look)
        count = os.path.join(rig.dir, "count")
        script = os.path.join(rig.dir, "blaster.py")
        with open(script, "w") as f:
            f.write(BLASTER)
        argv = [
            "/usr/bin/python3",
            script,
            os.path.join(ROOT, "tests/e2e"),
            str(options.seed),
            str(options.least),
            str(options.seconds * SHARE["notify"]),
            count,
        ]
        loud = rig.submit(
            command_recipe(
                "loud", argv, checkpoint={"dir": os.path.join(rig.dir, "ck"), "resume": "never"}
            )
        )
        looked = wait_until(
            lambda: (look(), rig.job(loud)["state"] in ("completed", "failed"))[1],
            120 + 5 * options.seconds,
            "the end of the loud job",
        )
        need(
            looked and rig.job(loud)["state"] == "completed",
            lambda: "the loud job: %s" % rig.job(loud),
        )
        with open(count) as f:
            c.sum_up(int(f.read()), "datagrams, and as many lines of output")
        pid = rig.moed.pid
        rig.kill(rig.moed, signal.SIGTERM)
        rig.start_moed()
        need(rig.moed.pid != pid, "a new controller")
        wait_until(lambda: rig.rank_pids(job) == pids, 30, "the good job after a new start")
        look()


# What a route answers, by who asks for whose job: the one place where it is written down twice (the
# other is the table in daemon/api_routes.c).
OWN_ACTS = {"cancel", "pause", "resume", "restart"}
OWN_READS = {"logs", "env", "config", "records"}  # visibility: owner
OWNERS = {"exec"}  # of the owner and admins alone, and never an operator's
WHO = [
    "none",
    "viewer",
    "user",
    "owner",
    "operator",
    "admin",
    "agent",
    "revoked",
    "session as bearer",
]


def may(who, role):
    """Whether the gate lets `who` through to a route of that role."""
    if role == "none":
        return True
    if who in ("none", "revoked", "session as bearer"):
        return False
    have = "user" if who == "owner" else who
    ranks = ["viewer", "user", "operator", "admin"]
    return have == role if "agent" in (have, role) else ranks.index(have) >= ranks.index(role)


@suite.test
def every_route_as_everybody():
    """Route x role x owner: 401 without a living credential, 403 for a role that is too small and
    for a job of another, else neither."""
    with Moed(**SLACK) as m:
        secrets = {
            "none": None,
            "owner": m.token("user", user="ada")["token"],
            "user": m.token("user", user="bob")["token"],
            "agent": m.agent,
            "admin": m.admin,
        }
        secrets.update({role: m.token(role)["token"] for role in ("viewer", "operator")})
        gone = m.token("admin")
        secrets["session as bearer"] = (
            m.ask("POST", "/v1/session", token=m.admin)
            .headers["set-cookie"]
            .split(";")[0]
            .split("=")[1]
        )
        m.ask("DELETE", "/v1/tokens/" + gone["id"])
        secrets["revoked"] = gone["token"]
        n, table = 0, routes(m)
        for method, path, role in table:
            for who in WHO:
                if path == "/v1/events" and who == "none":
                    pass
                for whose in (
                    ("own", "none") if "{id}" in path and path.startswith("/v1/jobs") else ("none",)
                ):
                    job = (
                        m.submit(token=secrets["owner"]).json["id"]
                        if whose == "own"
                        else "j-999999"
                    )
                    concrete = path.replace("{id}", job).replace("{name}", "none")
                    status = m.ask(
                        method, concrete, "{}" if method == "POST" else None, token=secrets[who]
                    ).status
                    where = "%s %s as %s of %s job: %d" % (
                        method,
                        path,
                        who,
                        "ada's" if whose == "own" else "no",
                        status,
                    )
                    gate = may(who, role)
                    if not gate:
                        need(
                            status
                            in (
                                (401, 429)
                                if who in ("none", "revoked", "session as bearer")
                                else (403,)
                            ),
                            where,
                        )
                    elif method == "POST" and path.rsplit("/", 1)[1] in OWN_ACTS and whose == "own":
                        need(
                            status == 403 if who == "user" else status in (200, 202, 409, 422),
                            where,
                        )
                    elif OWNERS & set(path.split("/")) and whose == "own":
                        # 409: its rank does not run; 404: no such command; 422: no words
                        need(
                            status == 403
                            if who in ("user", "operator")
                            else status in (404, 409, 422),
                            where,
                        )
                    elif path.rsplit("/", 1)[1] in OWN_READS and whose == "own":
                        # 404: no configuration
                        need(
                            status == 403
                            if who in ("user", "viewer")
                            else status in (200, 404, 409),
                            where,
                        )
                    elif role != "none":
                        need(
                            status not in (401, 429)
                            and status < 500
                            and (status != 403 or path.startswith("/v1/agent")),
                            where,
                        )
                    if whose == "own":
                        m.ask("POST", "/v1/jobs/%s/cancel" % job, {"now": True})
                    n += 1
        figures["routes"] = n
        need(len(table) >= 40 and n >= 500, "%d questions about %d routes" % (n, len(table)))
        comes_back(m, "every route as everybody")


@suite.test
def stops_with_everything_open():
    """Orders of teardown under the sanitizers: tests/e2e/test_stops.py with these programs."""
    r = subprocess.run(
        [sys.executable, os.path.join(ROOT, "tests/e2e/test_stops.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    need(r.returncode == 0, r.stdout[-4000:])


def replay(word):
    """Sends one message of a campaign again, and says what came."""
    protocol, number = word.split(":")
    with Moed(**SLACK) as m:
        if protocol == "road":
            s = open_road(m, m.agent)
            data, _ = make_frame(Agents(m, "evil"), int(number))
        else:
            s = socket.create_connection((m.host, int(m.port)), 30)
            make = Rest(m, [m.admin] * 8).make if protocol == "rest" else Agents(m, "evil").make
            data, _ = make(int(number))
        print(data[:4000])
        with s:
            s.sendall(data)
            if protocol != "road":  # which ends with its half
                s.shutdown(socket.SHUT_WR)
            print(s.recv(65536))
        sane(m, word)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=120)
    p.add_argument("--seed", default=str(int(time.time())))
    p.add_argument("--least", type=int, default=100000)
    p.add_argument("--replay")
    p.add_argument("tests", nargs="*")
    options = p.parse_args()
    sys.argv[1:] = options.tests
    os.environ["ASAN_OPTIONS"] = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), CONTINUE)))
    print(
        "hostile: seed %s, %g s, at least %d messages of each protocol"
        % (options.seed, options.seconds, options.least),
        flush=True,
    )
    if options.replay:
        replay(options.replay)
        sys.exit(0)
    bad = suite.main()
    print(
        "hostile: seed %s: %s; %s"
        % (
            options.seed,
            ", ".join("%s %d" % f for f in figures.items()),
            "%d failed" % bad if bad else "nothing found",
        )
    )
    sys.exit(1 if bad else 0)
