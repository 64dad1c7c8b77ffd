"""The REST interface of a real moed: every route of its own description against every credential,
lists, sessions, documents, plans, idempotency, TLS, a full disk, restarts."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from controller import MOED, RECIPE, Moed, Stream, FakeAgent, each_with_a_controller
from lib import PATIENCE, Skipped, Suite, clean_env, equal, moectl, need, wait_until
from rig import searches
from schemas import Watch

ROLES = ["viewer", "user", "operator", "admin"]
suite = Suite()
test = each_with_a_controller(suite)


def routes(m):
    """(method, path, least role, largest body) of the served description."""
    a = m.ask("GET", "/openapi.json", token=None)
    equal(a.status, 200, "openapi")
    return [
        (method.upper(), path, op["x-role"], op["x-max-body"])
        for path, ops in a.json["paths"].items()
        for method, op in ops.items()
    ]


@test
def described_parameters(m):
    """Every parameter that a summary names is described as one, and what is described as a number
    is read as one."""
    job = m.submit().json["id"]
    for path, ops in m.ask("GET", "/openapi.json", token=None).json["paths"].items():
        for method, op in ops.items():
            described = {p["name"]: p for p in op["parameters"] if p["in"] != "path"}
            named = set(re.findall(r"\b([a-z_]+)=", op["summary"])) | set(
                re.findall(r"Idempotency-Key|Last-Event-ID", op["summary"])
            )
            need(
                named <= set(described),
                "%s %s: not described: %s" % (method, path, named - set(described)),
            )
            if method != "get" or "{name}" in path or op["x-role"] == "none":
                continue
            for name in {"limit", "since", "rank", "attempt", "lines"} & set(described):
                number = described[name]["schema"]["type"] == "integer"
                status = m.ask("GET", "%s?%s=x" % (path.replace("{id}", job), name)).status
                equal(status == 400, number, "%s?%s=x answers %d" % (path, name, status))


@test
def query_names(m):
    """What a route does not describe it refuses, with the nearest name; what it describes it
    takes."""
    refused = "takes no such value in its query string"
    near = {"GET /v1/jobs?stat=": "did you mean state?", "GET /v1/nodes?aftr=": "mean after?"}
    for path, ops in m.ask("GET", "/openapi.json", token=None).json["paths"].items():
        for method, op in ops.items():
            role, method, url = op["x-role"], method.upper(), concrete(path)
            token = None if role == "none" else m.agent if role == "agent" else m.admin
            body = "{}" if method == "POST" else None
            names = [p["name"] for p in op["parameters"] if p["in"] == "query"]
            a = m.ask(method, url + "?nosuchname=1", body, token=token)
            equal(a.status, 400, "%s %s?nosuchname=1" % (method, url))
            need(refused in a.json["detail"], a.json)
            need(
                all(n in a.json["detail"] for n in names), "%s are not named: %s" % (names, a.json)
            )
            for name in names if method != "POST" else []:
                a = m.ask(method, "%s?%s=." % (url, name), body, token=token)
                need(refused.encode() not in a.body, "%s %s?%s: %s" % (method, url, name, a.body))
    for asked, said in near.items():
        a = m.ask(*asked.split())
        equal(a.status, 400, asked)
        need(said in a.json["detail"], a.json)


@test
def answers_are_as_described(m):
    """Each route that says what it answers, asked of a controller with a job that runs: members,
    kinds, words and times are those of its schema."""
    agent, strange = FakeAgent(m), FakeAgent(m, node="n2")
    agent.hello()
    agent.deaf = True
    agent.loop()
    strange.hello(steps=[{"job": 99, "attempt": 1, "state": "running", "written": 0}])
    job = m.submit().json["id"]
    wait_until(lambda: m.get("/v1/jobs/" + job)["state"] == "running", 10, "the job runs")
    token = m.token("user", user="ada")
    link = m.ask("POST", "/v1/session/link", token=token["token"]).json["path"]
    command = {"command": ["true"]}
    bodies = {
        "exec": command,
        "fabric": {"verdict": "fine", "nodes": 2},
        "drain": {"reason": "test"},
        "ack": {"learned": True},
        "fence": {"confirmed": True},
        "resolve": {"how": "kill", "node": "n2"},
        "plan": json.dumps(MODEL | {"parallelism": "auto"}),
        "validate": RECIPE,
        "jobs": RECIPE,
        "tokens": {"role": "viewer"},
        "use": {"code": link.partition("=")[2]},
        "session": "{}",
        "pull": {"image": "r/a:v1"},
    }
    paths = {
        "{id}": {"jobs": job, "tokens": token["id"]},
        "{name}": {"nodes": "n1", "webhooks": "none"},
        "{step}": {"steps": "j-99.a1"},
        "{exec}": {"exec": m.ask("POST", "/v1/jobs/%s/exec" % job, command).json["id"]},
        "{pull}": {"pull": m.ask("POST", "/v1/images/pull", bodies["pull"]).json["id"]},
    }
    # in these states; each has the schema of cancel or drain, but for what agents that look at
    # images and remove them answer (test_doctor_image.py, test_image_command.py), and a receiver of
    # events (test_webhooks.py)
    refused = {
        ("DELETE", "/v1/images"),
        ("GET", "/v1/nodes/{name}/image"),
        ("POST", "/v1/jobs/{id}/restart"),
        ("POST", "/v1/jobs/{id}/resume"),
        ("POST", "/v1/nodes/{name}/fence"),
        ("POST", "/v1/webhooks/{name}/test"),
    }
    want, seen = {
        (method, path)
        for method, _, path, op in Watch.schemas.routes
        if "schema" in str(op["responses"]["2XX"]) and op["tags"] != ["agent"]
    }, set()
    last = ["/v1/tokens/{id}", "/v1/jobs/{id}/cancel"]
    for method, path in sorted(want, key=lambda r: (r[0] != "GET", r[1] in last, r[1])):
        url = re.sub(
            r"/(\w+)/(\{\w+\})",
            lambda g: "/%s/%s" % (g.group(1), paths[g.group(2)][g.group(1)]),
            path,
        )
        body = bodies.get(url.rpartition("/")[2], "{}") if method == "POST" else None
        who = (
            token["token"]
            if path == "/v1/session"
            else None
            if path == "/v1/session/use"
            else "admin"
        )
        a = m.ask(method, url, body, token=who)
        need(a.status < 300 or (method, path) in refused, "%s %s: %s" % (method, url, a.body))
        seen |= {Watch.schemas.check(method, url, a)[0]}
    equal(sorted(want - seen), sorted(refused), "described, and never answered")
    agent.running = False


@test
def wrong_answers_are_found(m):
    """That the check of all answers can fail: each of these is one thing beside the schema."""
    m.submit()
    path, schemas = "/v1/jobs", Watch.schemas
    answer = m.ask("GET", path)
    equal(schemas.check("GET", path, answer), (("GET", path), None), "an answer as described")
    job = answer.json["items"][0]
    for what, changed, wanted in (
        ("a member more", job | {"colour": "red"}, "'colour' was unexpected"),
        ("a member less", {k: v for k, v in job.items() if k != "state"}, "'state' is a required"),
        ("another word", job | {"state": "idle"}, "'idle' is not one of"),
        ("another kind", job | {"attempt": "1"}, "'1' is not of type"),
        ("no time", job | {"created_at": "2026-11-21 12:03:04"}, "is not a 'date-time'"),
        ("no id", job | {"id": "7"}, "'7' does not match"),
    ):
        answer.body = json.dumps({"items": [changed], "next": None})
        found = schemas.check("GET", path, answer)[1] or ""
        need(wanted in found and "$.items[0]" in found, "%s: %r" % (what, found))
    served = schemas.check("GET", "/v1/secret", m.ask("GET", "/healthz", token=None))[1]
    equal(served, "GET /v1/secret answers, and is not described", "a route beside the table")


def concrete(path):
    return path.replace("{id}", "j-999").replace("{name}", "none")


@test
def every_route_and_role(m):
    """No or a wrong credential 401, too small a role 403, a wrong method 405; enough of a role
    passes the gate."""
    tokens = dict(
        {role: m.token(role)["token"] for role in ROLES}, agent=m.token("agent", user="n1")["token"]
    )
    table = routes(m)
    need(len(table) >= 40, "only %d routes" % len(table))
    for method, path, role, body in table:
        where = "%s %s" % (method, path)
        send = lambda token, method=method: m.ask(
            method, concrete(path), "{}" if method == "POST" else None, token=token
        ).status
        if role == "none":
            equal(send(None), 403 if path == "/v1/session/use" else 200, where)
        else:
            equal(send(None), 401, where + " without a credential")
            need(send("moe_00000000_" + "0" * 64) in (401, 429), where + " with a wrong token")
            need(send(tokens["viewer"][:-1] + "x") in (401, 429), where + " with a spoilt token")
            for have in ROLES + ["agent"]:
                enough = (
                    have == role
                    if "agent" in (have, role)
                    else ROLES.index(have) >= ROLES.index(role)
                )
                if enough and path == "/v1/events":
                    continue
                status = send(tokens[have])
                need(
                    (status not in (401, 403)) if enough else status == 403,
                    "%s as %s: %d" % (where, have, status),
                )
        if method != "POST" and not any(t[0] == "POST" and t[1] == path for t in table):
            status = send(
                None if role == "none" else tokens["agent" if role == "agent" else "admin"], "POST"
            )
            equal(status, 405, where + " with POST")
    equal(m.ask("PUT", "/v1/jobs", "{}").status, 405, "PUT")
    equal(m.ask("GET", "/v1/nothing", token=None).status, 401, "unknown path without a credential")
    equal(m.ask("GET", "/v1/nothing").status, 404, "unknown path")
    for path in (
        "/../etc/passwd",
        "/web/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/app.js/../../main.c",
    ):
        need(m.ask("GET", path, token=None).status in (401, 404), path)


@test
def bodies(m):
    for method, path, role, largest in routes(m):
        if method != "POST" or role == "none":
            continue
        token = m.agent if role == "agent" else m.admin
        where = "POST " + path
        equal(
            m.ask("POST", concrete(path), "x" * (largest + 1), token=token).status,
            413,
            where + " too large",
        )
        equal(
            m.ask(
                "POST", concrete(path), "a=1", token=token, type="application/x-www-form-urlencoded"
            ).status,
            415,
            where + " as a form",
        )
        if "{" not in path and not path.startswith("/v1/session"):
            a = m.ask("POST", path, '{"a":', token=token)
            need(a.status in (400, 422), "%s with broken JSON: %d" % (where, a.status))
            need(a.json["detail"], where)
    for body, status in (
        ('{"role":"viewer","role":"admin"}', 400),
        ('{"role":"viewer"} x', 400),
        ("[]", 422),
        ('{"role":7}', 422),
        ('{"rolle":"viewer"}', 422),
        ('{"role":"root"}', 422),
        ('{"role":"viewer","ttl":"soon"}', 422),
        ('{"role":"viewer","user":"../x"}', 422),
        ("[" * 100, 400),
        (b'{"role":"\xff"}', 400),
        ("", 422),
    ):
        equal(m.ask("POST", "/v1/tokens", body).status, status, "token from %r" % body)


@test
def browsers(m):
    """Another Host, another Origin, and a cookie without X-Moe are refused."""
    a = m.ask("GET", "/healthz", token=None, headers={"Host": "evil.example"})
    equal((a.status, a.json["title"]), (421, "Misdirected Request"), "Host")
    equal(
        m.ask("GET", "/healthz", token=None, headers={"Host": "localhost:1"}).status,
        200,
        "Host localhost",
    )
    equal(m.submit(headers={"Origin": "http://evil.example"}).status, 403, "Origin")
    page = m.ask("GET", "/", token=None)
    need(
        "default-src 'none'" in page.headers["content-security-policy"]
        and page.headers["x-content-type-options"] == "nosniff",
        "headers of the page",
    )
    t = m.token("user", user="ada")
    equal(m.ask("POST", "/v1/session", token=None).status, 401, "session without a token")
    a = m.ask("POST", "/v1/session", token=t["token"])
    equal(a.status, 200, "session")
    need(
        all(w in a.headers["set-cookie"] for w in ("HttpOnly", "SameSite=Strict"))
        and t["token"] not in a.headers["set-cookie"],
        a.headers["set-cookie"],
    )
    cookie = {"Cookie": a.headers["set-cookie"].split(";")[0]}
    equal(m.ask("GET", "/v1/jobs", token=None, headers=cookie).status, 200, "read by cookie")
    equal(m.submit(token=None, headers=cookie).status, 403, "submit by cookie without X-Moe")
    equal(
        m.submit(token=None, headers=dict(cookie, **{"X-Moe": "1"})).status, 201, "submit by cookie"
    )
    equal(
        m.ask("POST", "/v1/session", token=None, headers=dict(cookie, **{"X-Moe": "1"})).status,
        422,
        "a cookie makes no cookie",
    )
    value = cookie["Cookie"].split("=")[1]
    equal(m.ask("GET", "/v1/jobs", token=value).status, 401, "a session as a bearer token")
    equal(m.ask("POST", "/v1/session", token=value).status, 401, "a session that renews itself")
    equal(
        m.ask(
            "GET", "/v1/jobs", token=None, headers={"Cookie": "moe_session=" + t["token"]}
        ).status,
        401,
        "a token as a cookie",
    )
    spoilt = {"Cookie": cookie["Cookie"][:-1] + ("0" if cookie["Cookie"][-1] != "0" else "1")}
    equal(m.ask("GET", "/v1/jobs", token=None, headers=spoilt).status, 401, "spoilt cookie")
    equal(m.ask("DELETE", "/v1/tokens/" + t["id"]).status, 200, "revoke")
    equal(
        m.ask("GET", "/v1/jobs", token=None, headers=cookie).status,
        401,
        "cookie of a revoked token",
    )


@test
def a_head_means_one_thing(m):
    """What we and a proxy could understand in two ways gets a 4xx, and nothing behind it is taken
    for a request."""
    post = (
        "POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
        "Content-Type: application/json\r\n" % m.admin
    )
    get = (
        "GET /v1/cluster%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + m.admin + "\r\n"
    )
    bad = [
        get % "%00",
        get % "?x=%00",
        get % "\0",
        get % "" + "Host: other\r\n",
        get % "" + "Authorization: Bearer x\r\n",
        post + "Content-Length: 2\r\nContent-Length: 3\r\n",
        post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        post + "Content-Length : 2\r\n",
        post + "Transfer-Encoding: x\r\n",
        post + "Content-Length: 2\r\n folded\r\n",
    ]
    jobs = len(m.get("/v1/jobs")["items"])
    for head in bad:
        with socket.create_connection((m.host, int(m.port)), 20) as s:
            s.settimeout(10)
            s.sendall(
                (head + "\r\n").encode()
                + (post + "Content-Length: %d\r\n\r\n%s" % (len(RECIPE), RECIPE)).encode()
            )
            got = b""
            try:
                for part in iter(lambda: s.recv(65536), b""):
                    got += part
            except ConnectionError:
                pass  # closed with more of ours unread
            except TimeoutError:
                got += b" is not closed"
        need(re.match(rb"HTTP/1.1 4\d\d ", got) and b" 201 " not in got, "%r: %r" % (head, got))
    equal(len(m.get("/v1/jobs")["items"]), jobs, "jobs")


@test
def a_body_without_end(m):
    """100 MB in chunks without a length: 413 long before its end, in clear text and by TLS (see
    tls)."""
    equal(endless(m.connect(), m.admin), 413, "status")


def endless(c, token):
    sent = 0
    c.putrequest("POST", "/v1/jobs")
    for name, value in (
        ("Authorization", "Bearer " + token),
        ("Content-Type", "application/json"),
        ("Transfer-Encoding", "chunked"),
    ):
        c.putheader(name, value)
    c.endheaders()
    try:
        while sent < 100 << 20:
            c.send(b"10000\r\n" + b" " * 65536 + b"\r\n")
            sent += 65536
    except OSError:
        pass  # it is closed while we write: the answer is there
    need(sent < 100 << 20, "all of it was taken")
    return c.getresponse().status


@test
def sign_in_links(m):
    """A code signs in once, and no longer than its token lives; the token itself is in no
    address."""
    t = m.token("viewer", user="ada")

    def link(**kw):
        return m.ask("POST", "/v1/session/link", token=t["token"], **kw)

    def use(code, **kw):
        return m.ask("POST", "/v1/session/use", {"code": code}, token=None, **kw)

    a = link()
    equal((a.status, a.headers["cache-control"]), (201, "no-store"), "link: %s" % a.body)
    code = re.match(r"/#sign-in=([0-9a-f]{32})$", a.json["path"]).group(1)
    need(t["token"] not in a.body.decode() and a.json["seconds"] <= 600, a.body)
    equal(
        use(code, headers={"Origin": "http://evil.example"}).status,
        403,
        "from a page of another site",
    )
    signed = use(code)
    equal((signed.status, signed.json), (200, {"role": "viewer", "user": "ada"}), "first use")
    cookie = {"Cookie": signed.headers["set-cookie"].split(";")[0]}
    equal(m.ask("GET", "/v1/jobs", token=None, headers=cookie).status, 200, "read by the cookie")
    equal(
        m.ask(
            "POST", "/v1/session/link", token=None, headers=dict(cookie, **{"X-Moe": "1"})
        ).status,
        422,
        "a cookie makes no link",
    )
    equal(use(code).status, 403, "second use")
    for bad in ("", "0" * 32, "0" * 31, code + "0", None):
        equal(use(bad).status, 403, "code %r" % bad)
    codes = [link().json["path"].split("=")[1] for _ in range(5)]
    equal(
        [use(codes[0]).status, use(codes[1]).status, use(codes[4]).status],
        [403, 200, 200],
        "five links of one user: the oldest gives way",
    )
    code = link().json["path"].split("=")[1]
    equal(m.ask("DELETE", "/v1/tokens/" + t["id"]).status, 200, "revoke")
    equal(use(code).status, 403, "a link of a revoked token")


@test
def users_own_their_jobs(m):
    ada, bob, op = (
        m.token(r, user=u)["token"]
        for r, u in (("user", "ada"), ("user", "bob"), ("operator", "olga"))
    )
    job = m.submit(token=ada).json["id"]
    equal(m.get("/v1/jobs/" + job, token=bob)["user"], "ada", "user of the job")
    equal(
        m.ask("POST", "/v1/jobs/%s/cancel" % job, {}, token=bob).status,
        403,
        "cancel of another's job",
    )
    equal(
        m.ask("POST", "/v1/jobs/%s/cancel" % job, {}, token=op).status,
        200,
        "cancel by the operator",
    )
    a = m.ask("POST", "/v1/jobs/%s/cancel" % job, {}, token=ada)
    equal((a.status, a.headers["content-type"]), (409, "application/problem+json"), "cancel twice")
    own = m.submit(unix=True, token=None)
    equal(own.status, 201, "submit on the UNIX socket")
    equal(m.ask("GET", "/v1/tokens", unix=True, token=None).status, 200, "this user is admin there")
    equal(m.ask("GET", "/v1/tokens", unix=True, token=ada).status, 403, "a token decides alone")


@test
def only_an_admin_here_runs_ranks_as_root(m):
    for role, status in (("user", 403), ("operator", 403), ("admin", 201)):
        r = m.submit(token=m.token(role, user="root")["token"])
        equal(r.status, status, "submit as root with role " + role)
        need(
            status == 201 or "as root" in r.json["detail"], lambda: "the refusal says: %s" % r.json
        )


@test
def tokens_end(m):
    short, other = m.token("viewer", ttl="5s"), m.token("viewer")
    shown = m.get("/v1/tokens")["items"]
    need(
        short["id"] in [t["id"] for t in shown]
        and not any("token" in t or "hash" in t for t in shown),
        "the list holds no secret",
    )
    equal(m.ask("GET", "/v1/jobs", token=short["token"]).status, 200, "fresh token")
    by_time, by_hand, stays = (
        Stream(m, token=short["token"]),
        Stream(m, token=other["token"]),
        Stream(m),
    )
    need(by_time.ended.wait(PATIENCE * 60), "the stream outlives its token")
    equal(m.ask("GET", "/v1/jobs", token=short["token"]).status, 401, "expired token")
    need(not by_hand.ended.is_set(), "a stream of another token ended")
    equal(m.ask("DELETE", "/v1/tokens/" + other["id"]).status, 200, "revoke")
    need(by_hand.ended.wait(PATIENCE * 20), "the stream outlives the revocation")
    equal(m.ask("GET", "/v1/jobs", token=other["token"]).status, 401, "revoked token")
    equal(m.ask("DELETE", "/v1/tokens/" + other["id"]).status, 404, "revoke twice")
    need(not stays.ended.is_set(), "the admin's stream ended")


@test
def lists(m):
    """Pages hold all and nothing twice; limits are checked."""
    for i in range(7):
        equal(m.submit().status, 201, "submit")
    everything = m.get("/v1/jobs")["items"]
    seen, after = [], ""
    while True:
        page = m.get("/v1/jobs?limit=3" + after)
        need(len(page["items"]) <= 3, "page of %d" % len(page["items"]))
        seen += [j["id"] for j in page["items"]]
        if page["next"] is None:
            break
        equal(page["next"], seen[-1], "next")
        after = "&after=" + page["next"]
    equal(seen, [j["id"] for j in everything], "all pages")
    equal(len(set(seen)), len(seen), "twice")
    queued = m.get("/v1/jobs?state=queued,running")["items"]
    need(queued and all(j["state"] == "queued" for j in queued), "state filter")
    events, after = [], 0
    while after is not None:
        page = m.get("/v1/events?limit=5&after=%d" % after)
        events += [e["seq"] for e in page["items"]]
        after = page["next"]
    equal(events, [e["seq"] for e in m.get("/v1/events")["items"]], "pages of events")
    newest = m.get("/v1/events?last=2")
    equal([e["seq"] for e in newest["items"]], events[-2:], "last events")
    equal(newest["earlier"], len(events) - 2, "events before the last ones")
    newest = m.get("/v1/jobs?limit=3&last=1&state=queued,running")
    equal(
        ([j["id"] for j in newest["items"]], newest["earlier"]),
        ([j["id"] for j in queued][-3:], len(queued) - 3),
        "the last jobs, and how many stand before them",
    )
    equal(m.get("/v1/jobs?limit=1000&last=1")["earlier"], 0, "nothing before all of them")
    need("earlier" not in m.get("/v1/jobs?limit=3"), "earlier without last")
    for path in (
        "/v1/jobs?limit=0",
        "/v1/jobs?limit=1001",
        "/v1/jobs?limit=x",
        "/v1/jobs?after=7",
        "/v1/jobs?state=happy",
        "/v1/events?after=-1",
        "/v1/events?last=0",
        "/v1/events?job=7",
        "/v1/events?node=../x",
        "/v1/jobs/%s/metrics?after=7" % seen[0],
        "/v1/jobs/%s/metrics?since=x" % seen[0],
        "/v1/jobs/%s/metrics?points=9" % seen[0],
        "/v1/jobs/%s/metrics?points=2001" % seen[0],
        "/v1/jobs/%s/metrics?points=10&names=loss,mood" % seen[0],
        "/v1/jobs/%s/metrics?points=10&after=7" % seen[0],
        "/v1/jobs/%s/matrix?metric=mood" % seen[0],
        "/v1/jobs/%s/matrix?limit=8193" % seen[0],
        "/v1/jobs/%s/env?rank=-1" % seen[0],
        "/v1/events?progress=%s" % seen[0],
        "/v1/events?follow=1&progress=7",
    ):
        equal(m.ask("GET", path).status, 400, path)
    for path in (
        "/v1/jobs/7",
        "/v1/jobs/j-999",
        "/v1/jobs/j-0",
        "/v1/jobs/j-1x",
        "/v1/jobs/j-99999999999999999999",
        "/v1/nodes/none",
        "/v1/jobs/%s/env?rank=2" % seen[0],
    ):
        equal(m.ask("GET", path).status, 404, path)


def with_experiment(result):
    return json.dumps(
        {
            "recipe": 1,
            "name": "x",
            "engine": {"kind": "command", "argv": ["/bin/true"]},
            "cluster": {"gpus": 1},
            "experiment": {"files": "crc32c:00000000", "values": {}, "result": result},
        }
    )


@test
def a_configuration_that_nobody_read(m):
    """What is no experiment's configuration is refused with the recipe, and none ends the
    controller."""
    for result in (
        {"read": [{"a": 1}], "keys": [["k", [1, 0, 1]]]},
        {"read": ["x"], "keys": [["k", [1, 7, 1]]]},
        {"read": ["x"], "keys": [[".".join("a" * 20000), [1, 0, 1]]]},
    ):
        bad = m.ask("POST", "/v1/jobs", with_experiment(result))
        need(bad.status == 422 and "experiment.result" in str(bad.json), bad.body[:300])
    good = m.ask("POST", "/v1/jobs", with_experiment({"read": ["x"], "keys": [["k", [1, 0, 1]]]}))
    equal(good.status, 201, "a good one")
    items = m.get("/v1/jobs/%s/config" % good.json["id"])["items"]
    equal(
        [(i["key"], i["value"], i["source"]) for i in items],
        [("k", 1, {"file": "x", "line": 1})],
        "items",
    )


@test
def a_configuration_without_secrets(m):
    """Whatever a secret lies in: lists, words of a command, maps, the names of the experiment, what
    was replaced."""
    url = "https://bob:hush@host/x"
    told = {
        "urls": [url],
        "words": ["--wandb-api-key=hush", "--api-key", "hush", "--lr", "1"],
        "maps": [{"wandb_api_key": "hush", "n": 1, "in": {"token": ["hush"]}}],
        "api_key": ["hush"],
        "lists": [[url]],
        "plain": ["a", {"b": None}, 1.5, True],
    }
    job = m.ask(
        "POST",
        "/v1/jobs",
        with_experiment(
            {
                "read": ["x"],
                "names": {"workspace": url},
                "keys": [[k, [v, 0, 1], [v, 0, 2]] for k, v in told.items()],
            }
        ),
    ).json["id"]
    body = m.ask("GET", "/v1/jobs/%s/config" % job)
    need(b"hush" not in body.body, body.body)
    items = {i["key"]: i["value"] for i in body.json["items"]}
    equal(
        items,
        {
            "urls": ["https://bob:***@host/x"],
            "api_key": "***",
            "words": ["--wandb-api-key=***", "--api-key", "***", "--lr", "1"],
            "maps": [{"wandb_api_key": "***", "n": 1, "in": {"token": "***"}}],
            "lists": [["https://bob:***@host/x"]],
            "plain": told["plain"],
        },
        "values",
    )
    equal(body.json["names"], {"workspace": "https://bob:***@host/x"}, "names")


def faults_of_children(m):
    """Page faults of the children that the controller has waited for: no child leaves it as it
    was."""
    with open("/proc/%d/stat" % m.process.pid) as f:
        return int(f.read().rsplit(")", 1)[1].split()[8])


@test
def a_large_configuration(m):
    """What takes longer than the loop may wait is read by a child: the document, one key of it, and
    what is wrong are the same."""
    keys = [["key%d" % i, ["x" * 100, 0, i]] for i in range(900)]
    sent = m.ask("POST", "/v1/jobs", with_experiment({"read": ["x"], "keys": keys}))
    equal(sent.status, 201, sent.body[:500])
    job = sent.json["id"]
    small = m.ask("POST", "/v1/jobs", with_experiment({"read": [], "keys": []})).json["id"]
    before = faults_of_children(m)
    m.get("/v1/jobs/%s/config" % small)
    equal(faults_of_children(m), before, "children for a small one")
    doc = m.get("/v1/jobs/%s/config" % job)
    need(faults_of_children(m) > before, "it was read in the loop")
    equal(sorted(i["key"] for i in doc["items"]), sorted(k for k, _ in keys), "keys")
    one = m.ask("GET", "/v1/jobs/%s/config?key=key7" % job)
    equal([i["source"] for i in one.json["items"]], [{"file": "x", "line": 7}], "one key")
    need(one.headers["content-type"] == "application/json", one.headers)
    equal(m.ask("HEAD", "/v1/jobs/%s/config" % job).body, b"", "the body of a HEAD")
    text = RECIPE + "\n#" + "x" * 70000
    none = m.ask("POST", "/v1/jobs", text).json["id"]
    problem = m.ask("GET", "/v1/jobs/%s/config" % none)
    need(
        problem.status == 409 and "no configuration is read" in problem.json["detail"], problem.body
    )


@test
def documents(m):
    """Each document of a job in the queue has the documented keys."""
    job = m.submit().json["id"]
    keys = {
        "": "id name state attempt restarts iteration steps loss tokens_per_s_per_gpu "
        "tflops_per_gpu mfu ranks nodes created_at started_at ended_at eta_s reason checkpoint",
        "/report": "wall_s gpu_seconds ettr goodput mfu restarts incidents",
        "/why": "verdict since reasons next",
        "/ranks": "items next",
        "/metrics": "items next",
        "/events": "items next",
        "/checkpoints": "items next",
        "/env": "items next",
    }
    for path, names in keys.items():
        doc = m.get("/v1/jobs/%s%s" % (job, path))
        need(set(names.split()) <= set(doc), "%s lacks %s" % (path, set(names.split()) - set(doc)))
    seconds = m.get("/v1/jobs/%s/report" % job)["gpu_seconds"]
    need(
        abs(sum(v for k, v in seconds.items() if k not in ("total", "queue")) - seconds["total"])
        < 1e-6,
        "the ledger does not close: %s" % seconds,
    )
    env = {e["name"]: e for e in m.get("/v1/jobs/%s/env?rank=1" % job)["items"]}
    equal((env["RANK"]["value"], env["WORLD_SIZE"]["value"]), ("1", "2"), "launch names")
    need(
        all(e["reason"] and e["source"] for e in env.values()),
        "a variable without reason or source",
    )
    equal(m.ask("GET", "/v1/jobs/%s/logs" % job).status, 409, "logs before the start")
    dry = m.ask("POST", "/v1/jobs?dry_run=1", RECIPE)
    equal((dry.status, len(dry.json["ranks"])), (200, 2), "dry run")
    for unclear in ("dry_run", "dry_run=", "dry_run=2", "dry_run=please"):
        equal(
            m.ask("POST", "/v1/jobs?" + unclear, RECIPE).status,
            400,
            "nobody knows whether %s starts a job" % unclear,
        )
    jobs = len(m.get("/v1/jobs")["items"])
    for query, near in (("dryrun=1", "dry_run"), ("dry_run=1&x=1", ""), ("Idempotency-Key=k", "")):
        bad = m.ask("POST", "/v1/jobs?" + query, RECIPE)
        need(
            bad.status == 400 and "?" in bad.json["detail"] and near in bad.json["detail"],
            "%s: %s" % (query, bad.body),
        )
    equal(
        m.ask("POST", "/v1/jobs/%s/cancel?now=1" % job).status,
        400,
        "a value that belongs into the body",
    )
    equal(len(m.get("/v1/jobs")["items"]), jobs, "a misspelt dry run starts nothing")
    cluster = m.get("/v1/cluster")
    need(
        set(cluster) == {"nodes", "gpus", "jobs", "epoch", "version", "loopback"}
        and cluster["jobs"]["queued"] >= 1,
        cluster,
    )
    equal(m.ask("POST", "/v1/validate", RECIPE).json, {"valid": True}, "validate")
    bad = m.ask(
        "POST",
        "/v1/validate",
        "recipe: 1\nname: x\nengine: {kind: command, argv: [/bin/true]}\ncluster: {gpuz: 1}\n",
        type="application/yaml",
    )
    need(
        bad.status == 422 and any(e["line"] == 4 and e["hint"] for e in bad.json["errors"]),
        bad.body,
    )
    text = m.ask("GET", "/metrics")
    need(text.status == 200 and b'moe_jobs{state="queued"}' in text.body, "metrics")


MODEL = {
    "recipe": 1,
    "name": "planned",
    "engine": {"kind": "command", "argv": ["/bin/true"]},
    "model": "deepseek-v2-lite",
    "cluster": {"gpus": 8, "gpu": "mi355x", "nic_gbps": 400},
    "batch": {"seq": 4096, "global": 768},
    "precision": "bf16",
    "steps": 100,
}


@test
def plans(m):
    """A plan is made outside the loop; a recipe that leaves the sharding to the planner is
    submitted with its result."""
    a = m.ask("POST", "/v1/plan?top=2", MODEL | {"parallelism": "auto"})
    equal(a.status, 200, "plan: %s" % a.body[:500])
    need(
        set(a.json) >= {"model", "hardware", "plans", "scaling", "reliability"}
        and len(a.json["plans"]) == 2
        and a.json["plans"][0]["fits"],
        a.body[:500],
    )
    best = a.json["plans"][0]["parallelism"]
    explicit = m.ask(
        "POST",
        "/v1/plan?scale=8,16",
        MODEL | {"parallelism": {"ep": 8}, "batch": {"seq": 4096, "micro": 1, "global": 768}},
    )
    need(
        explicit.status == 200
        and len(explicit.json["plans"]) == 1
        and len(explicit.json["scaling"]) == 2,
        explicit.body[:500],
    )
    for query in ("top=0", "gpus=x", "gpu=../x", "scale=8;rm", "scale="):
        equal(
            m.ask("POST", "/v1/plan?" + query, MODEL | {"parallelism": "auto"}).status, 400, query
        )
    bad = m.ask("POST", "/v1/plan?gpu=mi999", MODEL | {"parallelism": "auto"})
    need(
        bad.status == 422 and "gpu=mi999" in bad.json["errors"][0]["message"],
        "a GPU that is not in the catalogue: %s" % bad.body,
    )
    bare = MODEL | {"parallelism": "auto", "cluster": {"gpus": 8}}
    need(
        "needs cluster.gpu" in m.ask("POST", "/v1/plan", bare).json["errors"][0]["message"],
        "auto without a GPU",
    )
    other = m.ask("POST", "/v1/plan?top=1&gpu=mi300x&gpus=16", bare)
    need(
        other.status == 200
        and other.json["hardware"]["gpu"] == "mi300x"
        and other.json["hardware"]["gpus"] == 16,
        other.body[:500],
    )
    assumed = m.ask("POST", "/v1/plan", bare | {"parallelism": {"ep": 8}})  # as moectl plan does
    equal(assumed.status, 200, "no GPU: %s" % assumed.body[:500])
    equal(
        (assumed.json["hardware"]["gpu"], assumed.json["plans"][0]["notes"][-1]),
        (
            "mi355x",
            "the recipe names no GPU: planned for mi355x; another one: cluster.gpu, --gpu, over "
            "REST ?gpu=",
        ),
        "said",
    )
    need("planned for" not in str(explicit.json), "a GPU that was named")
    nothing = m.ask(
        "POST",
        "/v1/plan",
        {k: v for k, v in bare.items() if k != "model"} | {"parallelism": {"ep": 8}},
    )
    need(nothing.status == 422 and "no model" in nothing.json["detail"], nothing.body)
    none = {k: v for k, v in MODEL.items() if k != "batch"} | {"parallelism": {"ep": 8}}
    bad = m.ask("POST", "/v1/plan", none)
    need(
        bad.status == 422
        and "batch.seq" in bad.json["detail"]
        and "warning" not in bad.json["detail"],
        "what is missing, not what is warned of: %s" % bad.body,
    )
    bad = m.ask("POST", "/v1/plan?gpus=769", MODEL | {"parallelism": "auto"})
    need(bad.status == 422 and "stdin" not in str(bad.json), bad.body)
    days = m.ask(
        "POST",
        "/v1/plan?scale=8,16&tokens=15T",
        MODEL | {"parallelism": {"ep": 8}, "batch": {"seq": 4096, "micro": 1, "global": 768}},
    )
    need(
        days.status == 200
        and days.json["scaling"][0]["days"] > days.json["scaling"][1]["days"] > 0,
        days.body[:500],
    )
    rare = m.ask(
        "POST",
        "/v1/plan?failures=rate=1,spares=99.9%25,restart=30s",
        MODEL | {"parallelism": {"ep": 8}, "batch": {"seq": 4096, "micro": 1, "global": 768}},
    )
    need(
        rare.status == 200
        and abs(rare.json["reliability"]["failures_per_day"] - 1e-3) < 1e-9
        and abs(rare.json["reliability"]["spare_target"] - 0.999) < 1e-9,
        rare.body[-500:],
    )
    wide = MODEL | {"parallelism": {"ep": 16}, "batch": {"seq": 4096, "micro": 1, "global": 768}}
    flat, leaves = (
        m.ask("POST", "/v1/plan?gpus=64" + q, wide).json["plans"][0]["step_time_s"]["a2a"]
        for q in ("", "&fabric=leaf=8,spine=4")
    )
    need(leaves > 2 * flat > 0, "all-to-all %s s, behind narrow spines %s s" % (flat, leaves))
    # 61 layers: nothing to interleave
    v3 = MODEL | {
        "model": "deepseek-v3",
        "parallelism": "auto",
        "batch": {"seq": 8192, "global": 64},
    }
    for query, zero_bubble in (("open=1", True), ("open=0", False), ("top=5", False)):
        a = m.ask("POST", "/v1/plan?gpu=mi300x&gpus=128&" + query, v3)
        need(
            a.status == 200
            and bool(
                {p["schedule"] for p in a.json["plans"]}
                & {"zb1p", "zbv", "v-half", "v-min", "dualpipe"}
            )
            == zero_bubble,
            "%s: %s" % (query, a.body[:300]),
        )
    for query, word in (
        ("tokens=15X", "15X"),
        ("tokens=", "nothing"),
        ("tokens=-1", "-1"),
        ("tokens=nan", "nan"),
        ("tokens=inf", "inf"),
        ("tokens=2e18", "2e18"),
        ("tokens=9999999T", "9999999T"),
        ("open=maybe", "maybe"),
        ("failures=rate=0", "rate=0"),
        ("failures=", "nothing"),
        ("fabric=leaf=0", "leaf=0"),
        ("fabric=spine=2", "leaf= is missing"),
        ("fabric=leaf=8,spine=inf", "spine=inf"),
        ("failures=rate=1;x=2", "rate=1;x=2"),
        ("scale=0", "0"),
        ("scale=8,-8", "-8"),
        ("scale=16777217", "16777217"),
        ("scale=8,", "nothing"),
    ):
        bad = m.ask("POST", "/v1/plan?" + query, MODEL | {"parallelism": "auto"})
        need(
            bad.status == 400
            and query.split("=")[0] in bad.json["detail"]
            and word in bad.json["detail"],
            "%s: %s" % (query, bad.body),
        )
    for query in ("scale=8,,16", "scale=" + ",".join(["8"] * 65), "top=1001"):
        equal(
            m.ask("POST", "/v1/plan?" + query, MODEL | {"parallelism": "auto"}).status, 400, query
        )
    for query in (
        "failures=restart=5m",
        "failures=rate=1",
        "failures=spares=95%25",
        "fabric=leaf=8",
        "fabric=leaf=8,spine=2",
        "scale=8",
        "tokens=15T",
        "open=1",
        "gpu=mi355x",
        "gpus=8",
        "top=3",
    ):
        # a line more would be an option of the helper
        picture = os.path.join(m.dir, "picture.svg")
        equal(
            m.ask(
                "POST",
                "/v1/plan?%s%%0A--svg%%0A%s" % (query, picture),
                MODEL | {"parallelism": "auto"},
            ).status,
            400,
            query,
        )
        need(not os.path.exists(picture), query)
    bad = m.ask("POST", "/v1/plan", {"recipe": 1})
    need(bad.status == 422 and bad.json["errors"], bad.body)
    dry = m.ask("POST", "/v1/jobs?dry_run=1", MODEL | {"parallelism": "auto"})
    need(dry.status == 200 and dry.json["plan"]["plans"][0]["parallelism"] == best, dry.body[:500])
    job = m.ask(
        "POST", "/v1/jobs", MODEL | {"parallelism": "auto"}, headers={"Idempotency-Key": "p"}
    )
    equal(job.status, 201, "submit: %s" % job.body)
    equal(
        m.ask(
            "POST", "/v1/jobs", MODEL | {"parallelism": "auto"}, headers={"Idempotency-Key": "p"}
        ).json["id"],
        job.json["id"],
        "the same again",
    )
    huge = MODEL | {
        "model": "deepseek-v3",
        "cluster": {"gpus": 1, "gpu": "mi300x"},
        "batch": {"seq": 4096, "global": 1},
        "parallelism": "auto",
    }
    a = m.ask("POST", "/v1/jobs", huge)
    need(
        a.status == 422
        and "does not fit: parameters, gradients and optimizer states alone" in a.json["detail"],
        a.body,
    )
    a = m.ask(
        "POST",
        "/v1/jobs",
        huge | {"engine": {"kind": "megatron-lm", "workdir": "/x"}, "parallelism": {"tp": 1}},
    )
    need(a.status == 422 and "states alone take" in a.json["detail"], a.body)
    # too much by its activations alone: taken, with a warning
    tight = {"batch": {"seq": 65536, "micro": 4, "global": 32}, "parallelism": {"ep": 8}}
    a = m.ask("POST", "/v1/jobs", MODEL | tight)
    need(
        a.status == 201
        and "it may run out of memory" in str(a.json.get("warnings"))
        and "nearest plan that fits" in str(a.json["warnings"]),
        a.body,
    )
    answers, threads = [], []
    for i in range(6):
        threads.append(
            threading.Thread(
                target=lambda: answers.append(
                    m.ask("POST", "/v1/plan", MODEL | {"parallelism": "auto"}).status
                )
            )
        )
        threads[-1].start()
    for t in threads:
        t.join()
    need(set(answers) <= {200, 429} and 200 in answers, answers)
    equal(
        m.ask("GET", "/v1/jobs/%s/report?anchor=1" % job.json["id"]).status,
        409,
        "anchor before any iteration",
    )


@test
def one_user_leaves_room_for_others(m):
    """A plan search, changes, streams, wrong tokens: who takes all he can get is answered to wait
    (429), and nobody else is."""
    greedy, ada = m.token("user", user="greedy")["token"], m.token("user", user="ada")["token"]
    wide = MODEL | {
        "model": "deepseek-v3",
        "parallelism": "auto",
        "batch": {"seq": 4096, "global": 61440},
    }
    path = "/v1/plan?gpus=16384&open=1&top=1000&scale=" + ",".join(
        str(2048 * i) for i in range(1, 9)
    )
    held = m.connect(timeout=600)
    held.request(
        "POST",
        path,
        json.dumps(wide),
        {"Authorization": "Bearer " + greedy, "Content-Type": "application/json"},
    )
    helper = wait_until(lambda: searches(m.process.pid), 10, "the helper")[0]
    os.kill(helper, signal.SIGSTOP)
    a = m.ask("POST", "/v1/plan", MODEL | {"parallelism": "auto"}, token=greedy)
    need(
        a.status == 429 and "one of yours" in a.json["detail"] and a.headers["retry-after"], a.body
    )
    equal(
        m.ask("POST", "/v1/plan", MODEL | {"parallelism": "auto"}, token=ada).status,
        200,
        "another user's search",
    )
    equal(
        m.ask("POST", "/v1/jobs", MODEL | {"parallelism": "auto"}, token=ada).status,
        201,
        "another user's submit that needs one",
    )
    os.kill(helper, signal.SIGCONT)
    equal(held.getresponse().status, 200, "the search that was held up")
    c, refused = m.connect(), None
    for i in range(3000):
        c.request(
            "POST",
            "/v1/jobs/j-999/cancel",
            "{}",
            {"Authorization": "Bearer " + greedy, "Content-Type": "application/json"},
        )
        a = c.getresponse()
        a.read()
        if a.status == 429:
            refused = a
            break
        equal(a.status, 404, "cancel of no job")
    need(refused and refused.getheader("Retry-After"), "3000 changes at once")
    equal(m.submit(token=ada).status, 201, "another user's change")
    equal(m.submit().status, 201, "an admin's change")
    equal(m.ask("GET", "/v1/jobs", token=greedy).status, 200, "reading")
    streams = []
    for i in range(101):
        streams.append(m.connect())
        streams[-1].request(
            "GET", "/v1/events?follow=1", headers={"Authorization": "Bearer " + greedy}
        )
        status = streams[-1].getresponse().status
        equal(status, 200 if i < 100 else 429, "stream %d" % i)
    other = Stream(m, token=ada)
    for s in streams:
        s.close()
    need(not other.ended.is_set(), "another user's stream ended")
    for i in range(30):
        need(
            m.ask("GET", "/v1/jobs", token="moe_00000000_" + "0" * 64).status in (401, 429),
            "a wrong token",
        )
    wait_until(
        lambda: m.ask("GET", "/v1/jobs", token="moe_00000000_" + "0" * 64).status == 429,
        10,
        "one of many wrong tokens is answered to wait",
    )
    equal(m.ask("GET", "/v1/jobs", token=ada).status, 200, "a right one from the same address")
    need(
        "with a wrong credential from 127.0.0.1" in open(os.path.join(m.dir, "log")).read(),
        "nobody was answered so",
    )
    told = re.search(rb"moe_http_wrong_credentials_total (\d+)", m.ask("GET", "/metrics").body)
    need(told and int(told[1]) >= 31, "metrics")


@test
def crowds_keep_nobody_out(m):
    """More idle connections than there may be at all, from one address: clients, agents and
    followers of the same address are served all the time."""
    limit = 200
    m.stop()
    m.options["max_connections"] = limit
    m.start()
    agent = FakeAgent(m)
    agent.hello()
    agent.loop()
    try:
        follower, crowd = Stream(m), []
        for i in range(5 * limit):
            s = socket.socket()
            s.connect((m.host, int(m.port)))
            crowd.append(s)
            if i % 3 == 0:
                s.sendall(b"GET /v1/jobs HT")
            if i % limit == limit - 1:
                m.get("/v1/cluster")
                equal(m.submit().status, 201, "submit")
        beat = agent.beat
        wait_until(lambda: agent.beat > beat + 5, 20, "beats beside the crowd")
        equal(m.get("/v1/nodes/n1")["state"], "up", "node")
        need(
            not [
                e
                for e in m.get("/v1/events")["items"]
                if e["type"] in ("node.suspect", "node.down")
            ],
            "the node was lost",
        )
        need(not follower.ended.is_set(), "the follower was sent away")
        for s in crowd:
            s.close()
    finally:
        agent.running = False
        agent.thread.join(PATIENCE * 10)


@test
def idempotency(m):
    ada, bob = m.token("user", user="ada")["token"], m.token("user", user="bob")["token"]
    first = m.submit(token=ada, headers={"Idempotency-Key": "k1"})
    again = m.submit(token=ada, headers={"Idempotency-Key": "k1"})
    equal((first.status, again.status, again.json["id"]), (201, 200, first.json["id"]), "same body")
    other = m.ask(
        "POST",
        "/v1/jobs",
        RECIPE.replace("rest", "other"),
        token=ada,
        headers={"Idempotency-Key": "k1"},
    )
    equal(other.status, 422, "other body")
    equal(
        m.submit(token=bob, headers={"Idempotency-Key": "k1"}).status, 201, "another caller's key"
    )
    equal(m.submit(token=ada, headers={"Idempotency-Key": "x" * 200}).status, 400, "long key")
    m.stop(signal.SIGKILL)
    m.start()
    again = m.submit(token=ada, headers={"Idempotency-Key": "k1"})
    equal((again.status, again.json["id"]), (200, first.json["id"]), "after kill -9")


@test
def a_directory_for_each_user(m):
    """The same text from two users, as fast as the second is answered from what was read for the
    first: {user} is whoever submits it."""
    recipe = json.dumps(
        {
            "recipe": 1,
            "name": "mine",
            "engine": {
                "kind": "torch",
                "entry": "/x/{checkpoint.dir}",
                "args": ["{checkpoint.dir}"],
            },
            "cluster": {"gpus": 1},
            "checkpoint": {"dir": "/ckpt/{user}", "every": 5},
        }
    )
    for user in ("ada", "bob", "ada"):
        a = m.ask("POST", "/v1/jobs?dry_run=1", recipe, token=m.token("user", user=user)["token"])
        equal(a.status, 200, "dry run: %s" % a.body[:300])
        rank = a.json["ranks"][0]
        equal(
            (rank["env"]["MOE_CHECKPOINT_DIR"], "/ckpt/" + user in rank["argv"]),
            ("/ckpt/" + user, True),
            "directory of " + user,
        )


@test
def nothing_acknowledged_is_lost(m):
    """Thirty-two clients submit while moed is killed: every 201 is there after the restart, and ids
    are never reused."""
    acknowledged, lock, stop = [], threading.Lock(), threading.Event()

    def client():
        while not stop.is_set():
            try:
                a = m.submit()
                if a.status == 201:
                    with lock:
                        acknowledged.append(a.json["id"])
            except (OSError, http.client.HTTPException):
                return

    threads = [threading.Thread(target=client) for _ in range(32)]
    for t in threads:
        t.start()
    wait_until(lambda: len(acknowledged) > 60, 60, "sixty submits")
    m.process.send_signal(signal.SIGKILL)
    m.process.wait()
    stop.set()
    for t in threads:
        t.join()
    equal(len(set(acknowledged)), len(acknowledged), "ids")
    m.stop()
    m.start()
    known, after = set(), ""
    while after is not None:
        page = m.get("/v1/jobs?limit=1000" + after)
        known |= {j["id"] for j in page["items"]}
        after = page["next"] and "&after=" + page["next"]
    need(set(acknowledged) <= known, "lost: %s" % (set(acknowledged) - known))
    need(m.submit().json["id"] not in known, "an id was used again")


def certificate(dir, name=""):
    """A self-signed one with its key; the two files."""
    cert, key = os.path.join(dir, name + "cert.pem"), os.path.join(dir, name + "key.pem")
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            key,
            "-out",
            cert,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return cert, key


@suite.test
def certificates_are_read_anew():
    """SIGHUP: connections from then on get the new one, open ones go on. What is no pair is
    refused, by --check-config too, and the one in use stays."""
    if not shutil.which("openssl"):
        raise Skipped("no openssl to make a certificate with")
    dir = tempfile.mkdtemp(prefix="moe-tls-")
    cert, key = certificate(dir)
    other_cert, other_key = certificate(dir, "other-")
    check = [
        MOED,
        "--check-config",
        "--set",
        "state_dir=" + dir + "/state",
        "--set",
        "tls_cert=" + cert,
        "--set",
        "tls_key=" + key,
    ]

    def served(m):
        text = ssl.get_server_certificate((m.host, int(m.port)), timeout=PATIENCE * 20)
        return [
            name
            for name, path in (("first", first), ("other", other_cert))
            if text.strip() == open(path).read().strip()
        ]

    def logged(m, words):
        return words in open(os.path.join(m.dir, "log")).read()

    first = shutil.copy(cert, os.path.join(dir, "first.pem"))
    with Moed(tls_cert=cert, tls_key=key) as m:
        before = http.client.HTTPSConnection(
            m.host,
            int(m.port),
            timeout=PATIENCE * 20,
            context=ssl.create_default_context(cafile=first),
        )
        before.request("GET", "/healthz")
        before.getresponse().read()
        equal(served(m), ["first"], "served at first")
        shutil.copy(other_cert, cert)
        r = subprocess.run(
            check,
            env=clean_env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE * 20,
        )
        need(
            r.returncode == 1
            and "is not the key of" in r.stdout
            and len(r.stdout.splitlines()) == 1,
            r.stdout,
        )
        m.process.send_signal(signal.SIGHUP)
        wait_until(
            lambda: logged(m, "the certificate in use stays: tls_key"), 20, "the refusal is logged"
        )
        equal(served(m), ["first"], "served after a pair that is none")
        shutil.copy(other_key, key)
        equal(
            subprocess.run(
                check, env=clean_env(), stdout=subprocess.DEVNULL, timeout=PATIENCE * 20
            ).returncode,
            0,
            "--check-config of the new pair",
        )
        m.process.send_signal(signal.SIGHUP)
        wait_until(
            lambda: logged(m, "new connections get the certificate"), 20, "the reload is logged"
        )
        equal(served(m), ["other"], "served after the reload")
        before.request("GET", "/healthz")
        equal(before.getresponse().status, 200, "on a connection of before")
        before.close()
    shutil.rmtree(dir)


@suite.test
def certificates_that_were_cut():
    """A part of a chain or of a key is none: said in one line that names the file, and never taken
    for a shorter one."""
    if not shutil.which("openssl"):
        raise Skipped("no openssl to make a certificate with")
    with tempfile.TemporaryDirectory(prefix="moe-tls-") as dir:
        cert, key = certificate(dir)
        with open(cert) as f, open(certificate(dir, "other-")[0]) as g:
            first, chain = f.read(), g.read()
        chain = first + chain
        with open(key) as f:
            secret = f.read()

        def check(cert_text, key_text):
            for path, text in ((cert, cert_text), (key, key_text)):
                with open(path, "w") as f:
                    f.write(text)
            r = subprocess.run(
                [
                    MOED,
                    "--check-config",
                    "--set",
                    "state_dir=" + dir + "/state",
                    "--set",
                    "tls_cert=" + cert,
                    "--set",
                    "tls_key=" + key,
                ],
                env=clean_env(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE * 20,
            )
            return r.returncode, r.stdout

        whole = {len(first) + i for i in (-1, 0)}  # a chain of one: nothing tells that it was cut
        for n in sorted(
            (set(range(0, len(chain.rstrip()) - 8, 41)) - whole)
            | {1, 27, 28}
            | {len(first) + i for i in (-26, -7, -6, -5, -2, 1, 2, 10, 26, 27, 28, 60)}
        ):
            code, said = check(chain[:n], secret)
            need(
                code == 1
                and said.startswith(
                    "moed: tls_cert %s: it is no PEM file, or a part of one: " % cert
                )
                and said.count("\n") == 1,
                "%d bytes of the chain: %d %s" % (n, code, said),
            )
        for n in sorted(
            set(range(0, len(secret.rstrip()) - 24, 17)) | {1, len(secret.rstrip()) - 30}
        ):
            code, said = check(chain, secret[:n])
            need(
                code == 1
                and said.startswith("moed: tls_key %s: it is no PEM file, or a part of one: " % key)
                and said.count("\n") == 1,
                "%d bytes of the key: %d %s" % (n, code, said),
            )
        equal(check(chain, secret)[0], 0, "the whole")
        equal(check(first, secret)[0], 0, "the first alone")
        equal(
            check("# ours - of today\n" + first + "- and no more\n- really", secret)[0],
            0,
            "with words around it",
        )


@suite.test
def tls():
    """TLS is served with a certificate; off loopback without one moed refuses to start, or warns
    when it was told to go on."""
    if not shutil.which("openssl"):
        raise Skipped("no openssl to make a certificate with")
    dir = tempfile.mkdtemp(prefix="moe-tls-")
    cert, key = certificate(dir)
    os.chmod(cert, 0o600)  # it is taken for the key, too
    with Moed(tls_cert=cert, tls_key=key) as m:
        equal(open(os.path.join(m.state, "address")).read()[:8], "https://", "address")
        context = ssl.create_default_context(cafile=cert)
        c = http.client.HTTPSConnection(m.host, int(m.port), timeout=PATIENCE * 20, context=context)
        c.request("GET", "/v1/cluster", headers={"Authorization": "Bearer " + m.admin})
        r = c.getresponse()
        equal(r.status, 200, "over TLS")
        r.read()
        need(c.sock.version() in ("TLSv1.2", "TLSv1.3"), c.sock.version())
        c.request("POST", "/v1/session", headers={"Authorization": "Bearer " + m.admin})
        need("Secure" in c.getresponse().getheader("Set-Cookie"), "the cookie is not Secure")
        c.close()
        equal(
            endless(
                http.client.HTTPSConnection(
                    m.host, int(m.port), timeout=PATIENCE * 20, context=context
                ),
                m.admin,
            ),
            413,
            "a body without end over TLS",
        )
        plain = http.client.HTTPConnection(m.host, int(m.port), timeout=PATIENCE * 20)
        plain.request("GET", "/healthz")
        try:
            need(plain.getresponse().status != 200, "plain HTTP is answered on the TLS port")
        except (http.client.HTTPException, OSError):
            pass
        r = moectl("list", env=clean_env(MOE_URL="http://%s:%s" % (m.host, m.port)), check=False)
        need(
            r.returncode == 3 and "speaks TLS, not plain HTTP" in r.stderr,
            "moectl by http: " + r.stderr,
        )
        r = moectl(
            "submit",
            "-",
            stdin=RECIPE,
            env=clean_env(MOE_URL="http://%s:%s" % (m.host, m.port)),
            check=False,
            timeout=25,
        )
        need(
            r.returncode == 3,
            "a submit by http, which nobody will ever take, is not tried again: " + r.stderr,
        )
        equal(
            m.ask("GET", "/v1/cluster", unix=True, token=None).status,
            200,
            "the UNIX socket needs no TLS",
        )
    base = [
        MOED,
        "--set",
        "state_dir=" + dir + "/state",
        "--set",
        "unix_socket=" + dir + "/sock",
        "--set",
        "listen=0.0.0.0",
        "--set",
        "port=0",
    ]
    refused = subprocess.run(
        base,
        env=clean_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE * 20,
    )
    need(
        refused.returncode == 1
        and "tls_cert" in refused.stdout
        and len(refused.stdout.splitlines()) == 1,
        refused.stdout,
    )
    subprocess.run(
        base + ["--set", "listen=127.0.0.1", "--init"],
        env=clean_env(),
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=PATIENCE * 60,
    )
    swapped = subprocess.run(
        base + ["--set", "tls_cert=" + key, "--set", "tls_key=" + cert],
        env=clean_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE * 20,
    )
    need(swapped.returncode == 1 and "tls_cert " + key in swapped.stdout, swapped.stdout)
    shutil.rmtree(dir)
    with Moed(listen="0.0.0.0", tls="off") as m:
        equal(
            (
                m.host,
                "serves http://0.0.0.0:%s and unix:" % m.port
                in open(os.path.join(m.dir, "log")).read(),
            ),
            ("0.0.0.0", True),
            "what address and log say",
        )
        need("clear text" in open(os.path.join(m.dir, "log")).read(), "no warning")
        equal(m.ask("GET", "/healthz", token=None).status, 200, "plain on request")


def full_disk():
    """In a mount namespace of its own: the state on a small disk that somebody else fills."""
    mount = tempfile.mkdtemp(prefix="moe-disk-")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100M", "tmpfs", mount], check=True)
    with Moed(state_dir=os.path.join(mount, "state")) as m:
        first = m.submit()
        equal(first.status, 201, "submit")
        with open(os.path.join(mount, "filler"), "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 65536)
                    f.flush()
            except OSError:
                pass
        full = m.submit()
        equal(
            (full.status, full.headers["content-type"]),
            (507, "application/problem+json"),
            "submit on a full disk: %s" % full.body,
        )
        wait_until(
            lambda: any(e["type"] == "store.full" for e in m.get("/v1/events")["items"]),
            10,
            "event store.full",
        )
        equal(m.ask("GET", "/readyz", token=None).status, 503, "readyz")
        equal(
            m.ask("POST", "/v1/jobs/%s/cancel" % first.json["id"], {}).status,
            200,
            "what is there can still be changed",
        )
        equal(m.submit().status, 507, "still full")
        os.unlink(os.path.join(mount, "filler"))
        wait_until(lambda: m.submit().status == 201, 10, "room again")
        need(any(e["type"] == "store.ok" for e in m.get("/v1/events")["items"]), "event store.ok")
        equal(m.ask("GET", "/readyz", token=None).status, 200, "readyz")
    subprocess.run(["umount", "-l", mount], check=False)


@suite.test
def state_disk_full():
    inside = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    r = subprocess.run(
        inside
        + ["--propagation", "private", sys.executable, os.path.abspath(__file__), "--full-disk"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE * 120,
    )
    equal(r.returncode, 0, "full disk:\n" + r.stdout)


@each_with_a_controller(suite, beat_ms=10000)  # a held sync is there until it was seen
def stopping_and_starting(m):
    """A stop answers who waits; two controllers never share a state; a damaged state is refused."""
    equal(m.submit().status, 201, "submit")
    agent = FakeAgent(m, node="n9", gpus=0)
    agent.hello()
    answers = []
    t = threading.Thread(target=lambda: answers.append(agent.sync().status))
    t.start()
    wait_until(lambda: b'kind="held"} 1' in m.ask("GET", "/metrics").body, 10, "a held sync")
    second = subprocess.run(
        [MOED] + [a for k, v in m.options.items() for a in ("--set", "%s=%s" % (k, v))],
        env=clean_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE * 20,
    )
    need(second.returncode == 1 and "another moed is running" in second.stdout, second.stdout)
    equal(m.stop(), 0, "exit status after SIGTERM")
    t.join(PATIENCE * 10)
    need(answers[0] in (200, 503), answers)
    need(not os.path.exists(m.options["unix_socket"]), "the socket was left")
    database = os.path.join(m.state, "moe.db")
    good = open(database, "rb").read()
    with open(database, "wb") as f:
        f.write(good[:4096] + b"\0" * 4096 + good[8192:])
    bad = subprocess.run(
        [MOED] + [a for k, v in m.options.items() for a in ("--set", "%s=%s" % (k, v))],
        env=clean_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE * 20,
    )
    need(bad.returncode == 1 and "damaged" in bad.stdout, bad.stdout)
    with open(database, "wb") as f:
        f.write(good)
    m.start()
    need(m.get("/v1/jobs")["items"], "the jobs are back")


if __name__ == "__main__":
    if sys.argv[1:] == ["--full-disk"]:
        full_disk()
    else:
        sys.exit(1 if suite.main() else 0)
