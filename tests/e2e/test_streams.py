"""What goes on in a real moed: streams of events, what an agent that the test plays says and is
told, ranks' logs through it, a controller that stops."""
import json
import signal
import socket
import sys
import threading
import time

from controller import Stream, FakeAgent, each_with_a_controller
from lib import PATIENCE, Suite, equal, need, wait_until
from rig import SILENT_SOON

suite = Suite()
test = each_with_a_controller(suite)


def soon_silent(m):
    """From here on silence counts soon."""
    m.stop()
    m.options.update(SILENT_SOON)
    m.start()


@test
def event_stream_resumes(m):
    live = Stream(m)
    job = m.submit().json["id"]
    wait_until(
        lambda: any(e["data"]["job"] == job for e in live.events), 10, "the event of the submit"
    )
    newest = live.events[-1]
    seen = newest["id"]
    equal(newest["data"]["seq"], seen, "id and seq")
    live.connection.sock.shutdown(socket.SHUT_RDWR)
    missed = [m.submit().json["id"] for _ in range(3)]
    again = Stream(m, headers={"Last-Event-ID": str(seen)})
    wait_until(
        lambda: [e["data"]["job"] for e in again.events if e["data"]["type"] == "job.submitted"]
        == missed,
        10,
        "what was missed",
    )
    ids = [e["id"] for e in again.events]
    equal(ids, list(range(seen + 1, seen + 1 + len(ids))), "without a gap")
    one = Stream(m, path="/v1/jobs/%s/events?follow=1&after=0" % missed[1])
    wait_until(lambda: one.events, 10, "the job's events")
    equal({e["data"]["job"] for e in one.events}, {missed[1]}, "one job's stream")
    tail = Stream(m, path="/v1/events?follow=1&last=2")
    wait_until(lambda: len(tail.events) == 2, 10, "the last two events")
    some = Stream(m, path="/v1/jobs/%s/events?follow=1&last=1&type=job.submitted" % missed[0])
    wait_until(lambda: some.events, 10, "the newest event of that job and type")
    more = m.submit().json["id"]
    typed = Stream(m, path="/v1/events?follow=1&type=job.submitted&last=2")
    wait_until(lambda: len(typed.events) >= 2, 10, "the newest two of a type")
    equal(
        [(e["data"]["type"], e["data"]["job"]) for e in some.events + typed.events],
        [("job.submitted", j) for j in (missed[0], missed[2], more)],
        "streams of one type",
    )
    equal(
        m.ask("GET", "/v1/events?follow=1", headers={"Last-Event-ID": "x"}).status,
        400,
        "bad Last-Event-ID",
    )
    # over a restart of the controller
    m.stop(signal.SIGKILL)
    need(again.ended.wait(PATIENCE * 10), "the stream outlives the controller")
    m.start()
    after = Stream(m, headers={"Last-Event-ID": str(ids[-1])})
    wait_until(
        lambda: any(e["data"]["type"] == "controller.started" for e in after.events),
        10,
        "controller.started",
    )
    equal(after.events[0]["id"], ids[-1] + 1, "first event after the restart")


@test
def long_event_history(m):
    """Thousands of events reach a follower from the beginning, in order, and one who does not read
    costs nothing."""
    for i in range(300):
        job = m.submit().json["id"]
        m.ask("POST", "/v1/jobs/%s/cancel" % job, {})
    deaf = m.connect(timeout=60)
    deaf.request(
        "GET", "/v1/events?follow=1&after=0", headers={"Authorization": "Bearer " + m.admin}
    )
    all_of_it = Stream(m, path="/v1/events?follow=1&after=0")
    newest = m.get("/v1/events?last=1")["items"][0]["seq"]
    wait_until(
        lambda: all_of_it.events and all_of_it.events[-1]["id"] >= newest, 30, "event %d" % newest
    )
    ids = [e["id"] for e in all_of_it.events]
    equal(ids, list(range(ids[0], ids[0] + len(ids))), "order")
    need(len(ids) >= 600, "%d events" % len(ids))
    equal(m.submit().status, 201, "the others are served")
    deaf.close()


@test
def agent_protocol(m):
    agent = FakeAgent(m)
    bad = FakeAgent(m, token=m.admin)
    equal(bad.hello().status, 403, "hello with an admin's token")
    equal(agent.hello(protocol=99).status, 426, "hello with an unknown protocol")
    equal(agent.hello(node="../x").status, 422, "hello with a bad name")
    equal(agent.hello(surprise=1).status, 400, "hello with an unknown field")
    step = {"job": 1, "attempt": 1, "state": "running", "written": 0}
    for more in (
        {"address": "10.0.0.1\nx"},
        {"address": "a b"},
        {"steps": [step | {"job": -5}]},
        {"steps": [step, step | {"attempt": 0}]},
    ):
        bad = agent.hello(**more)
        need(bad.status == 422 and list(more)[0] in bad.json["detail"], "%s: %s" % (more, bad.body))
    bound = FakeAgent(m, node="n1", token=m.token("agent", user="n2")["token"])
    equal(bound.hello().status, 403, "a token of node n2 for n1")
    agent.epoch = 1
    equal(agent.sync().status, 409, "sync before hello")
    a = agent.hello()
    equal(a.status, 200, "hello: %s" % a.body)
    equal(
        (set(a.json), a.json["token"]),
        (
            {
                *("epoch", "beat_ms", "steps", "orders", "pulls", "space", "motion", "busy"),
                *("waits", "doubts", "recorder", "activity", "gpus", "token"),
            },
            "unbound",
        ),
        "welcome to a token of no node",
    )
    began = time.monotonic()
    a = agent.sync()
    held = time.monotonic() - began
    need(
        a.status == 200 and a.json["commands"] == [] and held > 0.2,
        "sync held for %.2f s: %s" % (held, a.body),
    )
    equal(m.get("/v1/nodes/n1")["state"], "up", "node")
    a = m.ask("GET", "/v1/nodes/n1/topology")
    need(
        a.status == 200 and a.body.startswith(b"<svg ") and "n1 · up" in a.body.decode(),
        lambda: "topology: %d %r" % (a.status, a.body[:200]),
    )
    a = m.ask("GET", "/v1/nodes/n1/topology?format=text&width=80")
    need(
        a.status == 200 and a.body.startswith(b"n1  "),
        lambda: "topology as text: %d %r" % (a.status, a.body[:200]),
    )
    equal(
        [
            m.ask("GET", "/v1/nodes/n1/topology?" + q).status
            for q in ("format=png", "width=5", "width=x")
        ],
        [400] * 3,
        "bad questions for a topology",
    )
    answer = []
    t = threading.Thread(target=lambda: answer.append(agent.sync()))
    t.start()
    job = m.submit().json["id"]
    t.join()
    if not agent.commands:
        agent.sync()
    launch = agent.commands[0]
    equal(
        (launch["kind"], launch["node"], launch["launch"]["n_local"]),
        ("launch", "n1", 2),
        "command",
    )
    equal(m.get("/v1/jobs/" + job)["state"], "starting", "job")
    news = agent.sync("news")
    equal((news.status, news.json["commands"]), (200, []), "news carries no commands")
    equal(m.ask("POST", "/v1/nodes/n1/drain", {"reason": ""}).status, 422, "drain without a reason")
    equal(
        m.ask("POST", "/v1/nodes/n1/drain", {"reason": "test", "when": "later"}).status,
        422,
        "drain with a bad when",
    )
    equal(m.ask("POST", "/v1/nodes/n1/fence", {}).status, 422, "fence without confirmed")
    a = m.ask("POST", "/v1/nodes/n1/drain", {"reason": "test"})
    need(a.status == 200 and a.json["state"] in ("draining", "drained"), a.body)
    equal(m.ask("POST", "/v1/nodes/n1/undrain", {}).status, 200, "undrain")
    soon_silent(m)
    wait_until(lambda: m.get("/v1/nodes/n1")["state"] == "suspect", 10, "suspect in silence")
    wait_until(lambda: m.get("/v1/nodes/n1")["state"] == "down", 10, "down in silence")
    boot = m.get("/v1/nodes/n1")["boot_id"]
    a = m.ask("POST", "/v1/nodes/n1/fence", {"confirmed": True, "boot_id": "of-yesterday"})
    need(
        a.status == 409 and boot in a.json["detail"] and "of-yesterday" in a.json["detail"],
        lambda: "fence of another boot: %d %r" % (a.status, a.body),
    )
    equal(
        [
            m.ask("POST", "/v1/nodes/n1/fence", {"confirmed": True, "boot_id": b}).status
            for b in ("x" * 101, 7)
        ],
        [422, 422],
        "boot ids that are none",
    )
    equal(
        m.ask("POST", "/v1/nodes/n1/fence", {"confirmed": True, "boot_id": boot}).status,
        200,
        "fence of the boot that was seen",
    )
    equal(set(m.get("/v1/nodes/n1/why")), {"verdict", "since", "reasons", "next"}, "why")


@test
def syncs_of_one_turn_are_all_answered(m):
    """Several syncs of one node that are read in one turn, also of an instance that is none: none
    of them is held for ever."""
    agent = FakeAgent(m)
    equal(agent.hello().status, 200, "hello")
    open_ones = []
    m.process.send_signal(signal.SIGSTOP)
    for instance in ("i1", "i2", "i1", "i1", "i2"):
        c = m.connect(timeout=20)
        doc = {
            "node": "n1",
            "boot_id": "boot",
            "instance": instance,
            "epoch": agent.epoch,
            "beat": 5,
            "mono_ns": 1,
            "steps": [],
            "scans": [],
        }
        c.request(
            "POST",
            "/v1/agent/sync",
            json.dumps(doc),
            {"Authorization": "Bearer " + m.agent, "Content-Type": "application/json"},
        )
        open_ones.append(c)
    m.process.send_signal(signal.SIGCONT)
    statuses = [c.getresponse().status for c in open_ones]
    need(set(statuses) <= {200, 409}, statuses)
    wait_until(
        lambda: b'moe_http_connections{kind="held"} 0' in m.ask("GET", "/metrics").body,
        10,
        "nothing held",
    )


@each_with_a_controller(suite, **SILENT_SOON)
def a_stopped_controller_blames_nobody(m):
    """SIGSTOP for longer than down_ms: its own silence is not the nodes'."""
    agent = FakeAgent(m)
    equal(agent.hello().status, 200, "hello")
    agent.loop()
    try:
        wait_until(lambda: agent.beat > 2, 10, "beats")
        m.process.send_signal(signal.SIGSTOP)
        # the time that passes is what is tested
        threading.Event().wait(m.options["down_ms"] / 1000 + 1)
        m.process.send_signal(signal.SIGCONT)
        beat = agent.beat
        wait_until(lambda: agent.beat > beat + 3, 20, "beats again")
        bad = [
            e for e in m.get("/v1/events")["items"] if e["type"] in ("node.suspect", "node.down")
        ]
        equal(bad, [], "events")
        equal(m.get("/v1/nodes/n1")["state"], "up", "node")
    finally:
        agent.running = False
        agent.thread.join(PATIENCE * 10)


@test
def body_that_is_no_json(m):
    """What is announced as JSON and is none is called so, with its place; the same text as YAML is
    judged as YAML."""
    bad = b'{"recipe": 1,\n "name": oops]}'
    for route in ("/v1/jobs", "/v1/validate", "/v1/plan"):
        a = m.ask("POST", route, bad)
        e = a.json["errors"][0]
        equal((a.status, e["line"], e["column"]), (422, 2, 10), "place in %s" % a.body)
        need(
            e["message"].startswith("not valid JSON: ") and "application/yaml" in e["hint"], a.body
        )
    a = m.ask("POST", "/v1/validate", bad, type="application/yaml")
    need("not valid YAML" in a.json["errors"][0]["message"], a.body)


@test
def logs(m):
    """Logs come from the agent, by rank or merged, whole or the last lines, followed until the
    ranks end."""
    agent = FakeAgent(m)
    agent.logs = {0: "a0\na1\na2\n", 1: "b0\nb1"}
    equal(agent.hello().status, 200, "hello")
    agent.loop()
    try:
        job = m.submit().json["id"]
        path = "/v1/jobs/%s/logs" % job
        wait_until(lambda: m.get("/v1/jobs/" + job)["state"] == "running", 10, "running")
        a = m.ask("GET", path + "?rank=0")
        equal(
            (a.status, a.headers["content-type"], a.body),
            (200, "text/plain; charset=utf-8", b"a0\na1\na2\n"),
            "one rank",
        )
        equal(m.ask("GET", path + "?rank=0&lines=2").body, b"a1\na2\n", "last lines")
        equal(m.ask("GET", path + "?rank=1&lines=0").body, b"", "no lines")
        equal(m.ask("GET", path).body, b"[0] a0\n[0] a1\n[0] a2\n[1] b0\n[1] b1\n", "all ranks")
        equal(m.ask("GET", path + "?rank=2").status, 404, "no such rank")
        equal(m.ask("GET", path + "?attempt=2").status, 404, "no such attempt")
        records = [json.loads(x) for x in m.ask("GET", path + "?records=1").body.splitlines()]
        equal(
            records,
            [
                {"attempt": 1, "rank": r, "offset": len(t), "text": t, "end": True}
                for r, t in agent.logs.items()
            ],
            "records",
        )
        a = m.ask("GET", path + "?records=1&attempt=1&lines=1&from=6,")
        equal(
            [(x["rank"], x["text"]) for x in map(json.loads, a.body.splitlines())],
            [(0, "a2\n"), (1, "b1")],
            "records from positions",
        )
        for bad in (
            "?from=0,0",
            "?attempt=1&from=0",
            "?attempt=1&from=0,0,0",
            "?attempt=1&from=0,x",
            "?attempt=1&from=0,-1",
            "?attempt=1&rank=0&from=0,0",
        ):
            equal(m.ask("GET", path + bad).status, 400, bad)
        agent.rotated = 100
        equal(
            json.loads(m.ask("GET", path + "?records=1&rank=0").body),
            {
                "attempt": 1,
                "rank": 0,
                "offset": 109,
                "lost": 100,
                "text": "a0\na1\na2\n",
                "end": True,
            },
            "a rotated log",
        )
        need(
            m.ask("GET", path + "?rank=0").body.startswith(
                b"moectl: logs of rank 0: 100 bytes are gone"
            ),
            "a rotated log as text",
        )
        equal(
            json.loads(m.ask("GET", path + "?records=1&rank=0&attempt=1&from=106").body)["text"],
            "a2\n",
            "what is left of it",
        )
        agent.rotated = 0
        big = "".join("line %d of many\n" % i for i in range(200000))
        agent.logs[0] = big
        equal(m.ask("GET", path + "?rank=0").body, big.encode(), "3 MB")
        agent.logs[0] = "first\n"
        c = m.connect(timeout=30)
        c.request("GET", path + "?rank=0&follow=1", headers={"Authorization": "Bearer " + m.admin})
        r = c.getresponse()
        equal(r.readline(), b"first\n", "followed line")
        agent.logs[0] += "second\n"
        equal(r.readline(), b"second\n", "followed line")
        agent.ended.add(0)
        asked = len(agent.queries)
        agent.logs[0] += "third\n"
        equal(r.readline(), b"third\n", "line of a rank whose agent says that it is over")
        wait_until(
            lambda: len(agent.queries) > asked + 2,
            10,
            "it is asked again while the rank runs as far as the controller knows",
        )
        agent.logs[0] += "last\n"
        agent.exited.add(0)
        equal(r.read(), b"last\n", "end of the rank")
        c.close()
        del agent.logs[1]
        a = m.ask("GET", path + "?rank=1")
        need(a.status == 503 and "no such log" in a.json["detail"], a.body)
        need(
            b"[1] moectl: logs of rank 1: no such log\n" in m.ask("GET", path).body,
            "an error of one rank among several",
        )
    finally:
        agent.running = False
        agent.thread.join(PATIENCE * 10)
    soon_silent(m)
    wait_until(lambda: m.get("/v1/nodes/n1")["state"] == "down", 20, "down")
    equal(m.ask("GET", path + "?rank=0").status, 503, "logs of a node that is down")


@test
def logs_end_with_their_token(m):
    """Whoever follows logs by a token that is revoked or expires, or by a session of it, gets not a
    byte more; the agent is not asked for him any more."""
    agent = FakeAgent(m)
    agent.logs = {0: "first\n", 1: "first\n"}
    agent.hello()
    agent.loop()
    try:
        job = m.submit().json["id"]
        wait_until(lambda: m.get("/v1/jobs/" + job)["state"] == "running", 10, "running")

        def follow(headers, query):
            c = m.connect(timeout=20)
            c.request("GET", "/v1/jobs/%s/logs?follow=1%s" % (job, query), headers=headers)
            r = c.getresponse()
            equal(r.status, 200, "status")
            need(b"first" in r.readline(), "the first line")
            return r

        for query in ("&rank=0", "", "&records=1"):
            t, short = m.token("viewer"), m.token("viewer", ttl="4s")
            cookie = (
                m.ask("POST", "/v1/session", token=t["token"]).headers["set-cookie"].split(";")[0]
            )
            bearer = {"Authorization": "Bearer " + t["token"]}
            ends = [
                follow(bearer, query),
                follow({"Cookie": cookie}, query),
                follow({"Authorization": "Bearer " + short["token"]}, query),
            ]
            stays = follow({"Authorization": "Bearer " + m.admin}, query)
            equal(m.ask("DELETE", "/v1/tokens/" + t["id"]).status, 200, "revoke")
            for r in ends:
                need(b"later" not in r.read(), "a line of after the end of the token")
            agent.logs[0] += "later\n"
            agent.logs[1] += "later\n"
            wait_until(lambda: b"later" in stays.readline(), 10, "the other's line")
            stays.close()
            agent.logs = {0: "first\n", 1: "first\n"}
        # who leaves while nothing is written to him is forgotten, an admin too
        follow({"Authorization": "Bearer " + m.admin}, "&rank=0").close()
        wait_until(
            lambda: b'moe_http_connections{kind="stream"} 0' in m.ask("GET", "/metrics").body,
            30,
            "the end of the last stream",
        )
        asked, beat = len(agent.queries), agent.beat
        wait_until(lambda: agent.beat > beat + 4, 30, "beats")
        need(len(agent.queries) - asked < 5, "the agent is asked again and again")
        equal(m.get("/v1/nodes/n1")["state"], "up", "node")
    finally:
        agent.running = False
        agent.thread.join(PATIENCE * 10)


@test
def followed_to_the_end(m):
    """A follower misses nothing: over a restart of the controller, one of the agent with a question
    open, and when the job is over before the agent answered."""
    agent = FakeAgent(m, gpus=2)
    agent.logs = {0: "first\n", 1: ""}
    agent.hello()
    agent.loop()
    try:
        job = m.submit().json["id"]
        wait_until(lambda: m.get("/v1/jobs/" + job)["state"] == "running", 10, "running")

        def follow():
            c = m.connect(timeout=60)
            c.request(
                "GET",
                "/v1/jobs/%s/logs?rank=0&follow=1" % job,
                headers={"Authorization": "Bearer " + m.admin},
            )
            return c, c.getresponse()

        c, r = follow()
        equal(r.readline(), b"first\n", "followed line")
        c.close()
        before = {q["query"] for q in agent.queries}
        m.stop(signal.SIGKILL)
        m.start()
        c, r = follow()
        equal(r.readline(), b"first\n", "followed line after the restart")
        asked = [q["query"] for q in agent.queries if q["epoch"] == agent.epoch]
        need(
            asked and not before & set(asked),
            "questions of before were repeated: %s, %s" % (before, asked),
        )
        agent.deaf = True
        n = len(agent.queries)
        wait_until(lambda: len(agent.queries) > n, 10, "a question that is not answered")
        # it was killed and started: its sync is refused, it says hello
        agent.deaf, agent.instance = False, "i2"
        agent.logs[0] += "second\n"
        equal(
            wait_until(
                lambda: [q["query"] for q in agent.queries[n + 1 :]],
                30,
                "the question comes again after hello",
            )[0],
            agent.queries[n]["query"],
            "question",
        )
        equal(r.readline(), b"second\n", "line after the agent's restart")
        agent.deaf = True
        n = len(agent.queries)
        wait_until(lambda: len(agent.queries) > n, 10, "a question that is not answered")
        agent.logs[0] += "last\n"
        agent.ended, agent.exited = {0, 1}, {0, 1}
        wait_until(lambda: m.get("/v1/jobs/" + job)["state"] == "completed", 20, "completed")
        agent.deaf = False
        equal(r.read(), b"last\n", "end of the rank")
        c.close()
    finally:
        agent.running = False
        agent.thread.join(PATIENCE * 10)


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
