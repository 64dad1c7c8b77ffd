#!/usr/bin/python3
"""What one caller may take of the controller, so that the others are served: nodes, users,
viewers."""
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from controller import FakeAgent, RECIPE, Stream, each_with_a_controller
from lib import BUILD, PATIENCE, Suite, clean_env, equal, need, wait_until
from rig import searches

suite = Suite()
test = each_with_a_controller(suite)


class Line:
    """One connection that is kept."""

    def __init__(self, m, token):
        self.m, self.token = m, token
        self.connection = http.client.HTTPConnection(m.host, int(m.port), timeout=PATIENCE * 20)

    def post(self, path, body, want=None):
        h = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"}
        try:
            self.connection.request("POST", path, body, h)
            r = self.connection.getresponse()
        except (http.client.HTTPException, OSError):
            self.connection.close()
            self.connection.request("POST", path, body, h)
            r = self.connection.getresponse()
        text = r.read()
        if want is None:
            return r
        equal(r.status, want, "%s: %s" % (path, text[:300]))
        return json.loads(text)


def bound(m, node):
    return FakeAgent(m, node, token=m.token("agent", user=node)["token"])


def sync_body(a, notes):
    steps = [
        {
            "job": 7,
            "attempt": 1,
            "state": "running",
            "written": notes,
            "notes": [{"n": i + 1, "kind": "resumed", "iteration": i} for i in range(notes)],
            "progress": [],
        }
    ]
    return json.dumps(
        {
            "node": a.node,
            "boot_id": "boot",
            "instance": a.instance,
            "epoch": a.epoch,
            "beat": 0,
            "mono_ns": 1,
            "steps": steps,
            "scans": [],
        }
    )


def refused(m, token, path="/v1/agent/news", body="{}"):
    """Sixteen connections send at once until there is a 429: more than the share, however long one
    answer takes on a loaded machine. Its answer, and the other statuses that were seen."""
    answers, others = [], set()

    def send():
        line = Line(m, token)
        for _ in range(20000):
            if answers:
                break
            r = line.post(path, body)
            if r.status == 429:
                answers.append(r)
            else:
                others.add(r.status)
        line.connection.close()

    threads = [threading.Thread(target=send, daemon=True) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    need(answers, "sent without end and never refused: %s" % others)
    return answers[0], others


@test
def test_a_node_that_sends_without_end_takes_its_share_only(m):
    a, b = bound(m, "n1"), bound(m, "n2")
    for x in (a, b):
        equal(x.hello().status, 200, "hello")
    # what a legal agent may have to say at once, after an outage and with its hellos lost: never
    # refused
    for _ in range(50):  # one in a second
        equal(a.hello().status, 200, "hello, again")
    line, body = Line(m, a.token), sync_body(a, 2000)
    for _ in range(100):
        equal(line.post("/v1/agent/news", body).status, 200, "a spool of 200,000 notes")
    need(int(refused(m, a.token)[0].headers["Retry-After"]) >= 1, "when to come again")
    # the others are heard, and so is this one once it is quiet for a moment
    for _ in range(5):
        equal(b.sync().status, 200, "another node")
    wait_until(lambda: a.sync().status == 200, 20, "its beat")
    refused(m, a.token)  # it goes on without end
    told = [e for e in m.get("/v1/events")["items"] if e["type"] == "node.noisy"]
    equal([e["node"] for e in told], ["n1"], "reported once: %s" % told)
    need("more than one 8th" in told[0]["message"], told)
    m.stop()
    m.start()
    equal(a.hello().status, 200, "a new run begins with nothing")


@test
def test_a_join_token_is_no_way_to_send_without_end(m):
    join = m.token("join", nodes=3)["token"]
    line = Line(m, join)
    hello = json.dumps({"x": "y" * 500000})
    equal(line.post("/v1/agent/hello", hello).status, 403, "hello with a join token")
    others = refused(m, join, "/v1/agent/token", '{"node":"no such/name"}')[1]
    equal(others, {422}, "trades that cannot be")
    equal(
        m.ask("POST", "/v1/agent/token", {"node": "a"}, token=m.token("join")["token"]).status,
        201,
        "another join token",
    )


def dial(m, token, path="/v1/cluster"):
    """A connection that is kept: it, and the status."""
    c = http.client.HTTPConnection(m.host, int(m.port), timeout=PATIENCE * 20)
    c.request("GET", path, headers={"Authorization": "Bearer " + token})
    r = c.getresponse()
    return c, r.status, r.read().decode()


@test
def test_a_user_has_so_many_connections(m):
    tokens = [m.token("viewer", user="vic")["token"] for _ in range(2)]
    held = [dial(m, tokens[i % 2]) for i in range(210)]
    equal(
        [status for _, status, _ in held],
        [200] * 200 + [429] * 10,
        "connections of one viewer, whatever the token",
    )
    need("user vic has 200 connections, the most for one user" in held[-1][2], held[-1])
    equal(
        m.ask("GET", "/v1/cluster", token=m.token("viewer", user="ann")["token"]).status,
        200,
        "another viewer",
    )
    equal(m.submit().status, 201, "an admin")
    a = bound(m, "n1")
    equal(a.hello().status, 200, "a node")
    for c, _, _ in held[:50]:
        c.close()
    wait_until(lambda: dial(m, tokens[0])[1] == 200, 10, "there is room again")
    lines = [dial(m, a.token) for _ in range(40)]
    equal([status for _, status, _ in lines], [403] * 32 + [429] * 8, "connections of one node")
    need("node n1 has 32 connections" in lines[-1][2], lines[-1])
    for c, _, _ in held + lines:
        c.close()


@test
def test_requests_that_wait_are_counted_and_forgotten_with_who_left(m):
    vic, ann = [m.token("user", user=u)["token"] for u in ("vic", "ann")]
    a = FakeAgent(m)
    a.deaf = True
    equal(a.hello().status, 200, "hello")
    equal(m.submit(token=vic).status, 201, "a job")
    a.loop()
    wait_until(lambda: m.get("/v1/jobs/j-1")["state"] == "running", 20, "it runs")

    def ask(token, path="/v1/jobs/j-1/logs?follow=1"):
        c = http.client.HTTPConnection(m.host, int(m.port), timeout=PATIENCE * 20)
        c.request("GET", path, headers={"Authorization": "Bearer " + token})
        return c

    waiting = [ask(vic) for _ in range(100)]
    for path in (
        "/v1/jobs/j-1/logs?follow=1",
        "/v1/jobs/j-1/logs",
        "/v1/jobs/j-1/env",
        "/v1/events?follow=1",
        "/v1/jobs/j-1/events?follow=1",
    ):
        r = wait_until(
            lambda: (lambda x: x.status == 429 and x)(ask(vic, path).getresponse()), 10, path
        )
        need(b"vic has 100 requests open that stream or wait" in r.read(), path)
    equal(m.ask("GET", "/v1/jobs/j-1", token=vic).status, 200, "what is answered at once")
    equal(ask(ann, "/v1/events?follow=1").getresponse().status, 200, "another user")
    for c in waiting:
        c.close()
    wait_until(
        lambda: ask(vic, "/v1/events?follow=1").getresponse().status == 200,
        10,
        "who left is not counted, though no node has answered",
    )
    a.running = False


@test
def test_one_caller_hides_nobody_elses_refusals(m):
    vic, ann = [m.token("viewer", user=u)["token"] for u in ("vic", "ann")]
    for i in range(300):
        equal(
            m.ask("POST", "/v1/nodes/x%d/drain" % i, {}, token=vic).status, 403, "a viewer drains"
        )
        m.ask("POST", "/v1/session/use", {"code": "%032x" % i}, token=None)
    equal(m.ask("POST", "/v1/jobs", {}, token=ann).status, 403, "another viewer submits")
    told = lambda: [
        e["message"] for e in m.get("/v1/events?type=audit.refused&limit=1000")["items"]
    ]
    wait_until(lambda: [t for t in told() if t.startswith("ann ")], 10, "hers is reported")
    equal(len([t for t in told() if t.startswith("vic ")]), 10, "of his so many")
    equal(
        len([t for t in told() if t.startswith("somebody ")]),
        1,
        "and of those without a name, who have one way to be refused",
    )


@test
def test_a_user_pushes_out_his_own_events_only(m):
    a = bound(m, "n1")
    equal(a.hello().status, 200, "hello")
    equal(
        m.ask("POST", "/v1/nodes/n1/drain", {"reason": "fan", "when": "idle"}).status,
        200,
        "an operator drains",
    )
    kept = len([e for e in m.get("/v1/events?limit=1000")["items"] if not e["job"]])
    hers = m.submit(token=m.token("user", user="ann")["token"]).json["id"]
    first = m.get("/v1/events?last=1")["items"][0]["seq"]
    # as a user with the patience of minutes: an operator is not slowed down
    vic = m.token("operator", user="vic")["token"]
    early = m.submit(token=vic).json["id"]
    newest = lambda: m.get("/v1/events?last=1")["items"][0]["seq"]

    def churn():
        line = Line(m, vic)
        while flooding:
            r = line.post("/v1/jobs", RECIPE, want=201)
            line.post("/v1/jobs/%s/cancel" % r["id"], "{}", want=200)

    flooding = [True]
    threads = [threading.Thread(target=churn, daemon=True) for _ in range(8)]
    for t in threads:
        t.start()
    wait_until(lambda: newest() > 10000, 120, "more events than are kept")
    flooding.clear()
    for t in threads:
        t.join(PATIENCE * 30)
    moectl = lambda *words: subprocess.run(
        [os.path.join(BUILD, "moectl")] + list(words),
        env=clean_env(MOE_URL="unix:" + m.options["unix_socket"]),
        capture_output=True,
        text=True,
        timeout=PATIENCE * 60,
    )
    said = moectl("events")
    gone = m.get("/v1/events?limit=1")["gone"]
    need("audit.drained" in said.stdout and "fan" in said.stdout, said.stdout[:2000])
    equal(
        said.stderr,
        "(%d earlier events are no longer kept; the log of moed has them: journalctl -u moed)\n"
        % gone,
        "all",
    )
    need(gone > 1000, gone)
    said = moectl("events", hers)
    need("job.submitted" in said.stdout and not said.stderr, (said.stdout, said.stderr))
    equal(m.get("/v1/jobs/%s/events" % hers)["gone"], 0, "nothing of hers")
    said = moectl("events", early)
    equal(
        (said.stdout, said.stderr),
        (
            "",
            "(1 earlier event of %s is no longer kept; the log of moed has them: journalctl -u "
            "moed)\n" % early,
        ),
        "his own",
    )
    said = moectl("events", "n1")
    need("audit.drained" in said.stdout and not said.stderr, (said.stdout, said.stderr))
    # who comes back after a while is told what he cannot see any more
    back = Stream(m, headers={"Last-Event-ID": str(first)})
    wait_until(lambda: back.events and back.events[-1]["id"] == newest(), 30, "all that is kept")
    equal([e["data"]["type"] for e in back.events].count("events.gone"), 1, "reported once")
    equal(
        (back.events[0]["id"], back.events[0]["data"]["type"]),
        (first, "events.gone"),
        "before the others",
    )
    equal(len(back.events) - 1 + gone, newest() - first, "none twice, none missed")
    need(": %d;" % gone in back.events[0]["data"]["message"], back.events[0])
    # also across a restart of the controller
    m.stop()
    m.start()
    equal(m.get("/v1/events?limit=1")["gone"], gone, "after a restart")
    equal(m.get("/v1/jobs/%s/events" % early)["gone"], 1, "of a job, after a restart")
    equal(
        len(
            [e for page in (m.get("/v1/events?limit=1000"),) for e in page["items"] if not e["job"]]
        )
        >= kept,
        True,
        "those of no job",
    )


MODEL = {
    "recipe": 1,
    "name": "planned",
    "engine": {"kind": "command", "argv": ["/bin/true"]},
    "model": "deepseek-v2-lite",
    "parallelism": "auto",
    "cluster": {"gpus": 8, "gpu": "mi355x", "nic_gbps": 400},
    "batch": {"seq": 4096, "global": 768},
    "precision": "bf16",
}
# more than a moment
LONG = json.dumps(MODEL | {"model": "deepseek-v3", "batch": {"seq": 4096, "global": 61440}})
LONG_PLAN = "/v1/plan?gpus=16384&open=1&top=1000&scale=" + ",".join(
    str(2048 * i) for i in range(1, 9)
)


class Search(threading.Thread):
    """A plan that somebody waits for: `answer` is what came, None as long as nothing did."""

    def __init__(self, m, token, path="/v1/plan", body=None):
        super().__init__(daemon=True)
        self.answer = None
        self.ask = lambda: m.ask("POST", path, body or MODEL, token=token, timeout=120)
        self.start()

    def run(self):
        self.answer = self.ask()

    def end(self):
        self.join(PATIENCE * 120)
        return self.answer


def held(m):
    """Requests that wait for something."""
    return int(
        re.search(rb'moe_http_connections{kind="held"} (\d+)', m.ask("GET", "/metrics").body)[1]
    )


def held_search(m, token):
    """It runs, and does not go on until its process is told to."""
    before = searches(m.process.pid)
    s = Search(m, token, LONG_PLAN, LONG)
    s.pid = wait_until(
        lambda: [p for p in searches(m.process.pid) if p not in before], 20, "its process"
    )[0]
    os.kill(s.pid, signal.SIGSTOP)
    return s


@test
def test_viewers_keep_nobody_from_planning(m):
    v1, v2, v3 = [m.token("viewer", user="v%d" % i)["token"] for i in (1, 2, 3)]
    ann, bob = [m.token("user", user=u)["token"] for u in ("ann", "bob")]
    first = held_search(m, v1)
    crowd = [Search(m, v) for v in (v2, v3, v2)]
    for i in range(30):
        a = m.ask("POST", "/v1/jobs", MODEL | {"name": "n%d" % i}, token=ann)
        equal(a.status, 201, "submit %d of a user: %s" % (i, a.body[:300]))
    equal(m.ask("POST", "/v1/jobs?dry_run=1", MODEL, token=bob).status, 200, "a dry run")
    equal(
        m.ask("POST", "/v1/plan", MODEL, token=m.token("operator", user="op")["token"]).status,
        200,
        "an operator's plan",
    )
    # who waited too long is answered so: nobody ended
    for late in crowd:
        a = late.end()
        equal(
            (a.status, "two plan searches" in a.json["detail"], int(a.headers["retry-after"]) >= 1),
            (429, True, True),
            "too late: %s" % a.body,
        )
    equal(first.answer, None, "the first still has its place")
    # who waits is served when another one ends
    others = [Search(m, v) for v in (v2, v3, v2)]
    wait_until(lambda: held(m) == 4, 10, "they wait")
    equal([s.answer for s in others], [None] * 3, "one viewer for another")
    os.kill(first.pid, signal.SIGKILL)
    equal(
        (first.end().status, [s.end().status for s in others]),
        (503, [200] * 3),
        "one after the other",
    )
    # several of one user wait for each other
    first, second = held_search(m, v1), held_search(m, bob)
    plan = Search(m, m.token("user", user="cyd")["token"])
    several = [Search(m, ann, "/v1/jobs") for _ in range(3)]
    wait_until(lambda: held(m) == 6, 10, "all of them wait")
    os.kill(second.pid, signal.SIGKILL)
    equal(
        (second.end().status, plan.end().status, [s.end().status for s in several]),
        (503, 200, [201] * 3),
        "one after the other",
    )
    os.kill(first.pid, signal.SIGCONT)
    equal(first.end().status, 200, "the viewer's")


@test
def test_one_caller_takes_nobody_elses_sign_in_link(m):
    vic, ann = [m.token("viewer", user=u)["token"] for u in ("vic", "ann")]
    link = (
        lambda token: m.ask("POST", "/v1/session/link", {}, token=token).json["path"].split("=")[1]
    )
    use = lambda code: m.ask("POST", "/v1/session/use", {"code": code}, token=None).status
    hers = link(ann)
    his = [link(vic) for _ in range(300)]
    equal(use(hers), 200, "hers")
    equal([use(code) for code in his[-5:]], [403, 200, 200, 200, 200], "his: the newest four")


sys.exit(1 if suite.main() else 0)
