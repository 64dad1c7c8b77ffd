#!/usr/bin/python3
"""moectl on a terminal: what stands on the screen, what keys do, and how it ends, of a controller
that says what the test wants. Usage: test_top.py [TEST...]"""
import http.server
import json
import os
import shutil
import signal
import socketserver
import sys
import tempfile
import termios
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, Cluster, Suite, clean_env, command_recipe, equal, moectl, need  # noqa: E402
from screen import Terminal  # noqa: E402

WORK = tempfile.mkdtemp(prefix="moe-top-")
suite = Suite()
test = suite.test


def job(n, name, state, **more):
    return dict(
        {
            "id": "j-%d" % n,
            "name": name,
            "state": state,
            "iteration": None,
            "steps": 1000,
            "loss": None,
            "ranks": 16,
            "restarts": 0,
            "attempt": 1,
            "checkpoint": None,
        },
        **more,
    )


def node(name, state="up", **more):
    return dict(
        {
            "name": name,
            "state": state,
            "gpus": 8,
            "cpus": 96,
            "numa_nodes": 2,
            "health": "ok",
            "findings": 0,
            "jobs": [],
            "heartbeat_age_ms": 400,
        },
        **more,
    )


def matrix(ranks, pp, letters=None, values=None, **more):
    words = {"s": "stepping", "H": "host-stuck"}
    doc = {
        "metric": "doing" if letters else "step_ms",
        "unit": None if letters else "ms",
        "attempt": 3,
        "iteration": 812,
        "ranks": ranks,
        "first": 0,
        "next": None,
        "sizes": {"tp": 2, "pp": pp, "ep": 2, "cp": 1, "dp": ranks // pp // 2},
        "worst": [],
    }
    if letters:
        doc["letters"] = letters
        doc["legend"] = [
            {"letter": k, "name": v, "ranks": letters.count(k)} for k, v in words.items()
        ]
    else:
        doc["values"] = values
    return dict(doc, **more)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, doc):
        data = json.dumps(doc).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        c = self.server.controller
        c.asked.append((time.monotonic(), self.path))
        c.go.wait(60)
        path, _, query = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        doc = c.docs.get(path)
        doc = doc(query) if callable(doc) else doc
        if doc is None:
            self.reply(404, {"detail": "there is nothing at %s" % path})
        else:
            self.reply(200, doc)

    def do_POST(self):
        c = self.server.controller
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        c.posts.append((self.path, json.loads(body or b"{}")))
        c.go.wait(60)
        self.reply(*c.answer)

    def address_string(self):
        return "unix"

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # children are ended while they ask


class Controller:
    """Answers GETs with docs[path], POSTs with answer; nothing while go is cleared."""

    def __init__(self):
        self.path = os.path.join(WORK, "moed.sock")
        self.env = clean_env(MOE_URL="unix:" + self.path, NO_COLOR="1")
        self.go = threading.Event()
        self.server = None
        self.reset()

    def reset(self):
        self.go.set()
        self.asked, self.posts = [], []
        self.jobs = [
            job(3, "waits", "queued", reason="needs 64 GPUs, 16 are free"),
            job(7, "moe-2t", "running", iteration=812, loss=2.5, checkpoint={"iteration": 800}),
            job(9, "broken", "failed", iteration=5),
        ]
        self.answer = 200, job(7, "moe-2t", "stopping")
        self.docs = {
            "/v1/cluster": {
                "epoch": 4,
                "version": "1.2",
                "nodes": {"up": 1, "suspect": 1},
                "gpus": {"total": 16, "free": 0},
                "jobs": {"queued": 1, "running": 1, "failed": 1},
            },
            "/v1/jobs": self.list_jobs,
            "/v1/jobs/j-7": self.jobs[1],
            "/v1/nodes": {
                "items": [
                    node("n-1", jobs=["j-7"]),
                    node("n-2", "suspect", reason="silent for 4 s"),
                ],
                "next": None,
            },
            "/v1/nodes/n-1": node("n-1", jobs=["j-7"]),
            "/v1/nodes/n-2": node("n-2", "suspect"),
            "/v1/nodes/n-2/why": {
                "verdict": "suspect",
                "reasons": [
                    {
                        "code": "silent",
                        "text": "no beat for 4 s, of which 2 are allowed before it is asked, and "
                        "10 before it is down",
                        "evidence": [],
                    }
                ],
                "next": "wait",
            },
            "/v1/events": lambda q: {
                "items": [
                    {"time": "2026-11-28T10:0%d:00Z" % i, "type": "job.started", "job": "j-%d" % i}
                    for i in range(5)
                ],
                "next": None,
            },
        }
        self.docs["/v1/jobs/j-7/matrix"] = lambda q: (
            matrix(16, 2, letters="s" * 11 + "Hssss", worst=[WORST])
            if q["metric"] == "doing"
            else matrix(16, 2, values=[100] * 15 + [150])
        )

    def list_jobs(self, query):
        def meant(j):
            states = query.get("state", j["state"]).split(",")
            return j["state"] in states and j["name"] == query.get("name", j["name"])

        return {"items": [j for j in self.jobs if meant(j)], "next": None}

    def start(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.server = Server(self.path, Handler)
        self.server.controller = self
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        os.unlink(self.path)

    def top(self, width=80, height=24, **env):
        return Terminal(["top"], dict(self.env, **env), width, height)


WORST = {
    "rank": 11,
    "node": "n-2",
    "gpu": 3,
    "coords": {"tp": 1, "pp": 1, "ep": 1, "cp": 0, "dp": 1},
    "value": None,
    "median": None,
    "score": None,
    "word": "host-stuck",
}
JOBS = """\
[1 jobs]  2 nodes   3 ranks   4 events   5 why
cluster  epoch 4  moed 1.2
nodes   1 up  1 suspect
GPUs    16 total  0 free
jobs    1 queued  1 running  1 failed
  ID   NAME    STATE    ITERATION    LOSS  RESTARTS  REASON
> j-7  moe-2t  running   812/1000  2.5000         0  -
  j-3  waits   queued      0/1000       -         0  needs 64 GPUs, 16 are free
  j-9  broken  failed      5/1000       -         0  -"""
HEAT = """\
j-7  doing of 16 ranks  attempt 3  iteration 812
pp0  0  ssssssss
pp1  8  sssHssss
s stepping 15  H host-stuck 1

RANK  NODE  GPU  IS          TP PP EP CP DP
  11  n-2     3  host-stuck  1 1 1 0 1"""


def golden(t, lines, keys="? keys  / filter  q ends"):
    """The screen gets to be these lines, and the last one; what is drawn may be read in pieces."""
    n = lines.count("\n") + 1

    def is_so(text):
        seen = text.split("\n")
        return "\n".join(seen[:n]) == lines and seen[-1] == keys and not any(seen[n:-1])

    t.wait(is_so, "the screen is\n%s\n%s" % (lines, keys))


@test
def jobs_first(c):
    with c.top() as t:
        golden(t, JOBS)
        equal(t.screen.text().count("\n"), 23, "all lines are used")
        need(t.screen.other and not t.screen.cursor, "it has a screen of its own")
        equal(t.screen.colours, set(), "NO_COLOR")
        t.type("q")
        equal(t.ends(), 0, "exit status")
        need(not t.screen.other and t.screen.cursor, "the screen is given back")
        equal(termios.tcgetattr(t.master), t.before, "and the terminal is as it was")


@test
def the_heat_of_the_chosen_job(c):
    with c.top() as t:
        t.see("> j-7")
        t.type("\r")
        lines = t.see("host-stuck  1").split("\n")
        equal("\n".join(lines[5:12]), HEAT, "the pane")
        t.type("m")
        t.wait(lambda x: "step_ms in ms" in x or "state of" in x or "iteration of" in x, "another")
        for _ in range(20):
            if "step_ms in ms" in t.screen.text():
                break
            t.type("m")
            t.read(0.5)
        text = t.see("pp1  8  .......#")
        need("+ more than 3 deviations above" in text, text)


@test
def panes_and_choice(c):
    with c.top() as t:
        t.see("> j-7")
        t.type("2")
        t.see("> n-1")
        t.type("\033[B")
        t.see("> n-2")
        t.type("k")
        t.see("> n-1")
        t.type("jw")
        text = t.see("because")
        need("before it is down" in " ".join(text.split()), "nothing is cut off:\n%s" % text)
        t.type("4")
        text = t.see("j-4")
        need(text.index("10:04:00") < text.index("10:00:00"), "the newest first")
        t.type("\t")
        t.see("[5 why]")
        t.type("\t")
        t.see("> j-7")
        t.type("?")
        t.see("each says what it would do")
        # what is chosen stays chosen, wherever it stands
        t.type("1")
        t.see("> j-7")
        t.type("j")
        t.see("> j-3")
        c.jobs.insert(1, job(4, "newer", "queued"))
        t.wait(lambda x: "  j-4" in x and "> j-3" in x, "j-3 below a newer one")


@test
def lines_with_a_text(c):
    with c.top() as t:
        t.see("> j-7")
        t.type("/WAI")
        text = t.see("> j-3")
        need("/WAI_" in text and "moe-2t" not in text, text)
        t.type("x\177\r")
        text = t.see("? keys")
        need("> j-3" in text and "[1 jobs]" in text and "/WAI" in text.split("\n")[0], text)
        t.type("\033")
        t.see("moe-2t")


@test
def an_act_says_what_it_means_and_waits_for_y(c):
    with c.top() as t:
        t.see("> j-7")
        for other in ("n", "\r", "\033", " "):
            t.type("c")
            text = " ".join(t.see("y = yes").split())
            need("cancel j-7 (moe-2t, running, 16 ranks)?" in text, text)
            need("12 iterations are lost unless it saves" in text, text)
            t.type(other)
            t.see("nothing was done")
            t.type("g")
        equal(c.posts, [], "what was done without a y")
        t.type("c")
        t.see("y = yes")
        t.type("y")
        t.see("j-7 stopping: asked to stop")
        equal(c.posts, [("/v1/jobs/j-7/cancel", {})], "what was done")
        c.answer = 409, {"detail": "j-7 is not paused; nothing to resume"}
        t.type("r")
        t.see("y = yes")
        t.type("y")
        t.see("j-7 is not paused; nothing to resume")
        t.type("d")
        t.see("drain is for a node")


@test
def a_node_is_drained_with_a_reason(c):
    c.answer = 200, node("n-1", "draining")
    with c.top() as t:
        t.see("> j-7")
        t.type("2")
        t.see("> n-1")
        t.type("d")
        t.see("why? others will read it")
        t.type("fan 3\1772\r")
        text = " ".join(t.see("y = yes").split())
        need("drain n-1 (up)?" in text and "j-7 on it may end by themselves" in text, text)
        t.type("y")
        t.see("n-1 draining: gets no new work")
        equal(c.posts, [("/v1/nodes/n-1/drain", {"reason": "fan 2", "when": "idle"})], "asked")
        t.type("d")
        t.see("why? others")
        t.type("q\003")  # Ctrl-C ends it from anywhere
        equal(t.ends(), 0, "exit status")
        equal(len(c.posts), 1, "acts")


@test
def other_sizes(c):
    with c.top(20, 24) as t:
        text = t.see("> j-7")
        need(all(len(x) <= 20 for x in text.split("\n")), text)
        t.type("c")
        t.wait(lambda x: "y = yes, any other key = no" in " ".join(x.split()), "all of it")
        t.resize(80, 24)
        t.type("n")
        t.see("nothing was done")
        golden(t, JOBS, "nothing was done")
        t.resize(40, 6)
        t.wait(lambda x: "> j-7" in x and "epoch" not in x, "without lines about the cluster")
        t.resize(1, 1)
        t.read(1.5)
        t.resize(80, 24)
        t.see("> j-7")
        t.type("q")
        equal(t.ends(), 0, "exit status")


@test
def a_name_that_does_not_fit_is_acted_on_whole(c):
    name = "rack-17-of-the-second-hall-node-12"
    c.docs["/v1/nodes"]["items"] = [node(name), node(name[:-1])]
    c.docs["/v1/nodes/" + name] = node(name)
    c.answer = 200, node(name)
    with c.top(20) as t:
        t.see("> j-7")
        t.type("2")
        t.see("> rack-17")
        t.type("u")
        t.wait(lambda x: "y = yes, any other key = no" in " ".join(x.split()), "the question")
        t.type("y")
        t.wait(lambda x: c.posts and "y = yes" not in " ".join(x.split()), "it is done")
        equal(c.posts, [("/v1/nodes/%s/undrain" % name, {})], "what was done")


@test
def five_redraws_a_second(c):
    with c.top() as t:
        t.see("> j-7")
        before, end = t.screen.frames, time.monotonic() + 2
        while time.monotonic() < end:
            t.type("jk")
            t.read(0.01)
        frames = t.screen.frames - before
        need(3 <= frames <= 12, "%d frames within 2 s of keys" % frames)


@test
def a_controller_that_does_not_answer(c):
    """Keys are answered meanwhile, what was shown stays, with its age."""
    with c.top() as t:
        t.see("> j-7")
        c.go.clear()
        t.type("j")
        t.wait(lambda x: "> j-3" in x, "a key is answered", 2)
        t.see(" s old")
        t.see("the controller does not answer", 20)
        c.go.set()
        t.wait(lambda x: " old" not in x and "does not answer" not in x, "it answers again")
        c.stop()
        try:
            t.see("there is no such socket")
            t.type("j")
            t.wait(lambda x: "> j-9" in x, "a key is answered", 2)
        finally:
            c.start()
        t.wait(lambda x: "no such socket" not in x and "> j-9" in x, "it is back")
        c.go.clear()
        t.read(1.2)
        t.type("q")
        equal(t.ends(), 0, "exit status")


@test
def it_ends_in_order(c):
    for number, status in ((signal.SIGINT, 0), (signal.SIGTERM, 0)):
        with c.top() as t:
            t.see("> j-7")
            t.process.send_signal(number)
            equal(t.ends(), status, "exit status after %s" % number)
            need(not t.screen.other and t.screen.cursor, "the screen is given back")
            equal(termios.tcgetattr(t.master), t.before, "and the terminal is as it was")
    with c.top() as t:  # while something is done that has no answer yet
        t.see("> j-7")
        t.type("c")
        t.see("y = yes")
        c.go.clear()
        t.type("yq")
        equal(t.ends(), 0, "exit status")
        need("`moectl status j-7` tells what came of it" in t.screen.text(), t.screen.text())


@test
def without_a_terminal_it_is_printed_once(c):
    text = moectl("top", env=c.env).stdout
    need("cluster  epoch 4" in text and "j-7  running" in text and "\033" not in text, text)
    with c.top(TERM="dumb") as t:
        equal(t.ends(), 0, "on a dumb terminal it ends")
        need("j-7  running" in t.screen.text() and not t.screen.frames, t.screen.text())
    c.stop()
    try:
        with c.top() as t:
            equal(t.ends(), 3, "exit status without a controller")
            need("there is no such socket" in " ".join(t.screen.text().split()), "why")
            need(not t.screen.frames, "no screen was taken")
    finally:
        c.start()


@test
def heat_on_paper(c):
    equal(moectl("ranks", "j-7", "--heat", env=c.env).stdout.rstrip("\n"), HEAT, "into a pipe")
    doc = json.loads(moectl("ranks", "j-7", "--heat", "--json", env=c.env).stdout)
    equal((doc["letters"], doc["worst"]), ("s" * 11 + "Hssss", [WORST]), "the document")
    for words in (["ranks", "j-7", "doing"], ["ranks", "j-7", "--heat", "--rank", "3"]):
        r = moectl(*words, env=c.env, check=False)
        equal((r.returncode, r.stderr.count("\n")), (2, 1), "%s: %s" % (words, r.stderr))
    env = {k: v for k, v in c.env.items() if k != "NO_COLOR"}
    with Terminal(["ranks", "j-7", "--heat"], env, 40, 24) as t:
        equal(t.ends(), 0, "exit status")
        need("48;5;226;38;5;16" in "".join(t.screen.colours), "shades: %s" % t.screen.colours)


@test
def heat_of_very_many_ranks(c):
    """In pages, put together in their order."""
    n, page = 100352, 8192

    def answer(query):
        first = int(query.get("after", -1)) + 1
        end = min(first + page, n)
        doc = matrix(n, 16, letters="s" * (end - first))
        doc["letters"] = "".join("H" if i % 50000 == 7 else "s" for i in range(first, end))
        return dict(doc, first=first, next=end - 1 if end < n else None)

    c.docs["/v1/jobs/j-8/matrix"] = answer
    out = moectl("ranks", "j-8", "--heat", env=c.env).stdout.split("\n")
    rows = [x.split()[-1] for x in out[1:] if x.startswith(("pp", "    "))]
    letters = "".join(rows)
    equal(len(letters), n, "ranks")
    equal([i for i, x in enumerate(letters) if x == "H"], [7, 50007, 100007], "which are stuck")
    equal(len([x for x in out if x.startswith("pp")]), 16, "stages")
    need(all(len(x) <= 80 for x in out), "lines of a ticket")
    c.docs["/v1/jobs/j-8/matrix"] = lambda q: dict(answer(q), attempt=1 + ("after" in q))
    r = moectl("ranks", "j-8", "--heat", env=c.env, check=False)
    equal(r.returncode, 1, "of two attempts")
    need("changed while they were asked; ask again" in r.stderr, r.stderr)


@test
def of_a_real_controller(_):
    """Every pane has an answer, and what is asked is done."""
    c = Cluster(os.path.join(WORK, "cluster"), nodes=2, gpus_per_node=2)
    argv = [os.path.join(BUILD, "tests/fake/rank"), "--steps", "100000", "--step-ms", "40"]
    try:
        c.up()
        j = c.submit(command_recipe("train", argv, gpus=4, steps=100000))
        c.wait_iteration(j, 3)
        with Terminal(["top"], c.env) as t:
            t.see("> %s  train  running" % j)
            t.type("\r")
            t.see("%s  doing of 4 ranks" % j)
            t.see("pp0 0  ")
            seen = set()
            while len(seen) < 9:  # every value that the controller knows
                text = t.see("of 4 ranks", 20)
                seen.add(text.split("\n")[5].split()[1])
                before = text.split("\n")[5].split()[1]
                t.type("m")
                t.wait(
                    lambda x: "of 4 ranks" in x and x.split("\n")[5].split()[1] != before,
                    "another value than " + before,
                )
            t.type("4")
            t.see("job.submitted")
            t.type("5")
            t.see("%s  " % j)
            t.type("2")
            t.see("> node-0")
            t.type("d")
            t.see("why? others")
            t.type("a test\r")
            t.see("y = yes")
            t.type("y")
            t.see("node-0 draining")
            t.type("1")
            t.see("> " + j)
            t.type("c")
            t.see("y = yes")
            equal(c.job(j)["state"], "running", "before the y")
            t.type("y")
            t.see("asked to stop")
            c.wait_state(j, "cancelled")
            t.type("q")
            equal(t.ends(), 0, "exit status")
    finally:
        c.down(check=False)


def main():
    c = Controller()
    c.start()

    def fresh(fn):
        def one(_):
            c.reset()
            fn(c)

        one.__name__ = fn.__name__
        return one

    suite.tests = [fresh(fn) for fn in suite.tests]
    try:
        return suite.main(c)
    finally:
        c.stop()
        shutil.rmtree(WORK, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
