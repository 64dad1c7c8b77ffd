#!/usr/bin/python3
"""What one caller may take of the controller, so that the others are served: nodes, users, viewers."""
import http.client
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from controller import FakeAgent, each_with_a_controller
from lib import Suite, equal, need, wait_until

suite = Suite()
test = each_with_a_controller(suite)


class Line:
    """One connection that is kept."""

    def __init__(self, m, token):
        self.m, self.token = m, token
        self.connection = http.client.HTTPConnection(m.host, int(m.port), timeout=20)

    def post(self, path, body):
        h = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"}
        try:
            self.connection.request("POST", path, body, h)
            r = self.connection.getresponse()
        except (http.client.HTTPException, OSError):
            self.connection.close()
            self.connection.request("POST", path, body, h)
            r = self.connection.getresponse()
        r.read()
        return r


def bound(m, node):
    return FakeAgent(m, node, token=m.token("agent", user=node)["token"])


def sync_body(a, notes):
    steps = [{"job": 7, "attempt": 1, "state": "running", "written": notes, "notes": [{"n": i + 1, "kind": "resumed", "iteration": i} for i in range(notes)], "progress": []}]
    return json.dumps({"node": a.node, "boot_id": "boot", "instance": a.instance, "epoch": a.epoch, "beat": 0, "mono_ns": 1, "steps": steps, "scans": []})


@test
def test_a_node_that_sends_without_end_takes_its_share_only(m):
    a, b = bound(m, "n1"), bound(m, "n2")
    for x in (a, b):
        equal(x.hello().status, 200, "hello")
    # what a legal agent may have to say at once, after an outage and with its hellos lost: never refused
    for _ in range(100):
        equal(a.hello().status, 200, "hello, again")
    line, body, answers = Line(m, a.token), sync_body(a, 2000), []
    for _ in range(100):
        equal(line.post("/v1/agent/news", body).status, 200, "a spool of 200,000 notes")
    r = None
    for _ in range(20000):
        r = line.post("/v1/agent/news", body)
        answers.append(r.status)
        if r.status != 200:
            break
    equal((answers[-1], int(r.headers["Retry-After"]) >= 1), (429, True), "without end, after %d" % len(answers))
    # the others are heard, and so is this one once it is quiet for a moment
    for _ in range(5):
        equal(b.sync().status, 200, "another node")
    wait_until(lambda: a.sync().status == 200, 20, "its beat")
    need([line.post("/v1/agent/news", body).status for _ in range(500)].count(429) > 0, "it goes on without end")
    told = [e for e in m.get("/v1/events")["items"] if e["type"] == "node.noisy"]
    equal([e["node"] for e in told], ["n1"], "told once: %s" % told)
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
    statuses = set()
    for i in range(20000):
        s = line.post("/v1/agent/token", '{"node":"no such/name"}').status
        statuses.add(s)
        if s == 429:
            break
    equal(statuses, {422, 429}, "trades that cannot be")
    equal(m.ask("POST", "/v1/agent/token", {"node": "a"}, token=m.token("join")["token"]).status, 201, "another join token")


sys.exit(1 if suite.main() else 0)
