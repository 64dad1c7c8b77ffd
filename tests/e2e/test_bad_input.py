#!/usr/bin/python3
"""What people and peers do wrong: bad recipes, bad requests, bad agents, bad configuration. Each
has one clear line, and leaves the state as it was."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from controller import Moed  # noqa: E402
from lib import (
    MOECTL,
    PATIENCE,
    ROOT,
    Skipped,
    Suite,
    clean_env,
    command_recipe,
    equal,
    moectl,
    need,
    wait_until,
)  # noqa: E402
from rig import AGENT, MOED, RANK, Rig, alive, write_config  # noqa: E402

suite = Suite()
GOOD = "recipe: 1\nname: good\nengine: {kind: command, argv: [/bin/true]}\ncluster: {gpus: 1}\n"


def deep(n):
    return GOOD + "env: " + "[" * n + "]" * n + "\n"


# name, recipe (text or bytes), line, what the message must hold
RECIPES = [
    ("unknown key", GOOD + "priorty: 3\n", 5, "priorty.*did you mean.*priority"),
    ("unknown nested key", GOOD + "batch: {seq: 64, micor: 2}\n", 5, "micor.*micro"),
    ("wrong type", GOOD.replace("gpus: 1", "gpus: many"), 4, "cluster.gpus.*many"),
    ("list for a mapping", GOOD + "batch: [1, 2]\n", 5, "batch"),
    ("duplicate key", GOOD + "name: again\n", 5, "name"),
    (
        "missing key",
        "recipe: 1\nname: x\nengine: {kind: command, argv: [/bin/true]}\n",
        None,
        "cluster.gpus|cluster",
    ),
    ("wrong version", GOOD.replace("recipe: 1", "recipe: 2"), 1, "recipe.*1"),
    ("bad name", GOOD.replace("name: good", "name: -no/"), 2, "name"),
    (
        "more shards than GPUs",
        GOOD.replace("gpus: 1", "gpus: 4") + "parallelism: {tp: 8}\n",
        5,
        "(?i)tp",
    ),
    (
        "shards do not divide",
        GOOD.replace("gpus: 1", "gpus: 8") + "parallelism: {tp: 3}\n",
        5,
        "(?i)tp.*8|8.*tp",
    ),
    (
        "experts do not divide",
        GOOD.replace("gpus: 1", "gpus: 8") + "model: deepseek-v2-lite\nparallelism: {ep: 7}\n",
        6,
        "(?i)ep",
    ),
    (
        "batch does not divide",
        GOOD.replace("gpus: 1", "gpus: 4") + "batch: {seq: 64, micro: 3, global: 8}\n",
        5,
        "global",
    ),
    ("unknown engine", GOOD.replace("kind: command", "kind: comand"), 3, "comand.*command"),
    ("unknown model", GOOD + "model: deepseek-v2-light\n", 5, "deepseek-v2-light"),
    (
        "not built yet",
        GOOD + "recovery: {on_node_loss: shrink}\n",
        5,
        "not supported by this version",
    ),
    ("malformed YAML", GOOD + "batch: {seq: 64\n", None, "."),
    ("tab", GOOD + "batch:\n\tseq: 64\n", None, "."),
    ("not UTF-8", GOOD.encode() + b"env: {A: \xff\xfe}\n", None, "UTF-8"),
    ("two documents", GOOD + "---\n" + GOOD, None, "document"),
    ("deep nesting", deep(5000), None, "."),
    (
        "aliases that explode",
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(
            "%s: &%s [%s]\n" % (c, c, ",".join(["*" + chr(ord(c) - 1)] * 9)) for c in "bcdefgh"
        )
        + GOOD,
        None,
        ".",
    ),
    (
        "too many keys",
        GOOD + "env: {" + ", ".join("K%d: 1" % i for i in range(600)) + "}\n",
        None,
        "512|keys",
    ),
    ("too large", GOOD + "# " + "x" * 300000 + "\n", None, "256|262144|larger"),
    ("empty", "", None, "."),
    ("a list", "- 1\n- 2\n", None, "."),
    (
        "a cluster of null",
        GOOD.replace("{gpus: 1}", "null") + "batch: {micro: 8, global: 1024}\n",
        None,
        "missing key 'cluster'",
    ),
    (
        "GPUs of null",
        GOOD.replace("gpus: 1", "gpus: ~") + "batch: {micro: 8, global: 1024}\n",
        None,
        "missing key 'cluster.gpus'",
    ),
    ("what kills libfyaml", GOOD + "? a:\t|\n", 5, "'\\?' by itself"),
    ("a directive", "%" * 60000, 1, "directive"),
    ("launch variable", GOOD + "env: {RANK: 3}\n", 5, "RANK"),
]


def same_state(rig, before, what):
    after = rig.state()
    for k in before:
        equal(after[k], before[k], "%s after %s" % (k, what))


@suite.test
def recipes_on_the_command_line(rig):
    before = rig.state()
    for name, text, line, pattern in RECIPES:
        path = os.path.join(rig.dir, "bad.yaml")
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        r = rig.run("submit", path, check=False, timeout=20)
        first = r.stderr.split("\n")[0]
        equal(r.returncode, 2, "%s: exit status (%s)" % (name, first))
        equal(r.stdout, "", "%s: stdout" % name)
        need(re.search(pattern, r.stderr), "%s: says %r, not /%s/" % (name, r.stderr, pattern))
        if line:
            need(
                re.match(re.escape(path) + r":%d:\d+: " % line, first),
                "%s: %r does not begin with FILE:%d:COL" % (name, first, line),
            )
    same_state(rig, before, "bad recipes")
    for args, pattern in (
        (["submit", rig.dir + "/none.yaml"], "no such file"),
        (["submit", rig.dir], "."),
        (["submit"], "."),
        (["submit", path, "--sett", "a=b"], "sett"),
        (["submitt"], "did you mean submit"),
    ):
        r = rig.run(*args, check=False)
        equal(r.returncode, 2, "exit status of %s" % args)
        need(re.search(pattern, r.stderr) and r.stdout == "", "%s says %r" % (args, r.stderr))


@suite.test
def no_data_files(rig):
    """A program that was moved away from its data files says so instead of calling engines
    unknown."""
    if os.path.exists("/usr/local/share/moe/engines") or os.path.exists("/etc/moe/engines"):
        raise Skipped("data files are installed on this machine")
    moved, path = os.path.join(rig.dir, "moectl"), os.path.join(rig.dir, "good.yaml")
    shutil.copy(MOECTL, moved)
    with open(path, "w") as f:
        f.write(GOOD)
    r = subprocess.run(
        [moved, "validate", path],
        env=clean_env(MOE_DATA_DIR="/nonexistent"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 20,
    )
    equal(r.returncode, 2, "exit status")
    need(
        re.search(
            r"^\S+:3:16: engine.kind: no engine files are installed: .*MOE_DATA_DIR", r.stderr
        )
        and r.stderr.count("\n") == 1,
        lambda: r.stderr,
    )


@suite.test
def set_has_the_same_checks(rig):
    path = os.path.join(rig.dir, "good.yaml")
    with open(path, "w") as f:
        f.write(GOOD)
    for word, pattern in (
        ("cluster.gpu_s=4", "gpu_s"),
        ("cluster.gpus=-4", "cluster.gpus"),
        ("parallelism.tp=3", "(?i)tp"),
        ("nonsense", "nonsense"),
        ("name=", "name"),
        ("stop.grace=soon", "stop.grace"),
    ):
        r = rig.run("submit", path, "--set", word, check=False)
        equal(r.returncode, 2, "exit status of --set %s (%s)" % (word, r.stderr))
        need(re.search(pattern, r.stderr), "--set %s says %r" % (word, r.stderr))


@suite.test
def recipes_over_rest(rig):
    """The daemon checks again with the same code."""
    before = rig.state()
    for name, text, line, pattern in RECIPES:
        a = rig.http("POST", "/v1/jobs", text, content_type="application/yaml")
        equal(a.status, 422, "%s: status (%s)" % (name, a.body[:200]))
        errors = a.json.get("errors")
        need(
            a.detail and errors and re.search(pattern, json.dumps(errors)),
            "%s: %s" % (name, a.body[:400]),
        )
        if line:
            equal(errors[0]["line"], line, "%s: line" % name)
            need(errors[0]["column"] >= 1, "%s: column" % name)
        b = rig.http("POST", "/v1/validate", text, content_type="application/yaml")
        equal((b.status, b.json.get("errors")), (422, errors), "%s: validate" % name)
    same_state(rig, before, "bad recipes")
    equal(
        rig.http("POST", "/v1/validate", GOOD, content_type="application/yaml").json,
        {"valid": True},
        "validate of a good one",
    )


@suite.test
def bodies(rig):
    before = rig.state()
    good = json.dumps({"role": "viewer"})
    for path, body, kind, status in (
        ("/v1/tokens", "{", None, 400),
        ("/v1/tokens", "{} x", None, 400),
        ("/v1/tokens", '{"role":"viewer","role":"admin"}', None, 400),
        ("/v1/tokens", "[" * 10000, None, 400),
        ("/v1/tokens", '{"role":' * 40 + "1" + "}" * 40, None, 400),
        ("/v1/tokens", b'{"role":"\xff"}', None, 400),
        ("/v1/tokens", '{"rolle":"viewer"}', None, 422),
        ("/v1/tokens", '{"role":7}', None, 422),
        ("/v1/tokens", '{"role":"king"}', None, 422),
        ("/v1/tokens", "[]", None, 422),
        ("/v1/tokens", good, "text/plain", 415),
        ("/v1/tokens", good, "application/yaml", 415),
        ("/v1/jobs", GOOD, "text/plain", 415),
        ("/v1/jobs", GOOD, "multipart/form-data", 415),
        ("/v1/jobs/j-1/cancel", "{", None, (400, 404)),
        ("/v1/jobs", "{", None, (400, 422)),
        ("/v1/nodes/node-0/drain", "{}", None, 422),
        ("/v1/nodes/node-0/drain", '{"reason":"x","when":"tomorrow"}', None, 422),
        ("/v1/nodes/node-0/fence", "{}", None, 422),
    ):
        a = rig.http("POST", path, body, **({"content_type": kind} if kind else {}))
        need(
            a.status in (status if isinstance(status, tuple) else (status,)),
            "%s %r: %d, not %s: %s" % (path, body[:40], a.status, status, a.body[:200]),
        )
        need(a.detail, "%s %r has no detail" % (path, body[:40]))
    same_state(rig, before, "bad bodies")


@suite.test
def paths_and_methods(rig):
    for method, path, status in (
        ("GET", "/v1/jobs/j-999", 404),
        ("GET", "/v1/jobs/7", 404),
        ("GET", "/v1/jobs/j-99999999999999999999", 404),
        ("GET", "/v1/nodes/none", 404),
        ("GET", "/v1/nodes/..%2f..", 404),
        ("GET", "/nowhere", 404),
        ("GET", "/../../etc/passwd", 404),
        ("DELETE", "/v1/jobs", 405),
        ("PUT", "/v1/jobs/j-1", 405),
        ("GET", "/v1/jobs?limit=0", 400),
        ("GET", "/v1/jobs?limit=many", 400),
        ("GET", "/v1/jobs?limit=1001", 400),
        ("GET", "/v1/jobs?state=happy", 400),
        ("POST", "/v1/jobs/j-999/cancel", 404),
        ("POST", "/v1/nodes/none/drain", (404, 422)),
        ("DELETE", "/v1/tokens/none", 404),
    ):
        a = rig.http(method, path)
        need(
            a.status in (status if isinstance(status, tuple) else (status,)),
            "%s %s: %d, not %s" % (method, path, a.status, status),
        )
        need(a.detail, "%s %s has no detail" % (method, path))
        if status == 405:
            need(a.headers.get("allow"), "%s %s: no Allow" % (method, path))


@suite.test
def credentials(rig):
    before = rig.state()
    viewer, user, agent = (rig.token(r) for r in ("viewer", "user", "agent"))
    before["tokens"] = rig.state()["tokens"]
    for method, path, token, status in (
        ("GET", "/v1/jobs", None, 401),
        ("GET", "/v1/jobs", "moe_0000", 401),
        ("GET", "/v1/jobs", "moe_00000000_" + "0" * 64, 401),
        ("GET", "/v1/jobs", "x" * 5000, 401),
        ("GET", "/v1/nowhere", None, 401),
        ("GET", "/v1/jobs", viewer, 200),
        ("POST", "/v1/jobs", viewer, 403),
        ("POST", "/v1/nodes/node-0/drain", user, 403),
        ("GET", "/v1/tokens", user, 403),
        ("POST", "/v1/tokens", user, 403),
        ("GET", "/v1/jobs", agent, 403),
        ("POST", "/v1/agent/hello", user, 403),
        ("POST", "/v1/agent/hello", viewer, 403),
        ("POST", "/v1/agent/sync", rig.token("admin"), 403),
        ("GET", "/healthz", None, 200),
        ("GET", "/readyz", None, 200),
        ("GET", "/", None, 200),
        ("GET", "/openapi.json", None, 200),
        ("GET", "/metrics", None, 401),
    ):
        a = rig.http(method, path, "{}" if method == "POST" else None, token=token, tcp=True)
        equal(a.status, status, "%s %s with %s" % (method, path, (token or "nothing")[:8]))
        need(status == 200 or a.detail, "%s %s has no detail" % (method, path))
        if status == 401:
            need(
                "bearer" in a.headers.get("www-authenticate", "").lower(),
                "401 without WWW-Authenticate",
            )
    for host, status in (
        ("evil.example", 421),
        ("evil.example:80", 421),
        ("", 421),
        ("127.0.0.1", 200),
        ("localhost:7070", 200),
        ("[::1]:7070", 200),
    ):
        equal(
            rig.http("GET", "/v1/jobs", token=viewer, tcp=True, host=host).status,
            status,
            "Host %r" % host,
        )
    a = rig.http(
        "POST",
        "/v1/jobs",
        GOOD,
        token=user,
        tcp=True,
        content_type="application/yaml",
        origin="http://evil.example",
    )
    equal(a.status, 403, "a POST from another site's page")
    for e, code in (
        (dict(MOE_TOKEN="wrong"), 4),
        (dict(MOE_TOKEN=viewer), 4),
        (dict(MOE_TOKEN_FILE="/nonexistent"), 2),
        (dict(MOE_URL="http://127.0.0.1:1"), 3),
        (dict(MOE_URL="gopher://x"), 2),
    ):
        r = moectl(
            "submit",
            "-",
            env=clean_env(**dict({"MOE_URL": "http://127.0.0.1:%d" % rig.port}, **e)),
            check=False,
            stdin=GOOD,
        )
        equal(r.returncode, code, "exit status with %s (%s)" % (sorted(e), r.stderr))
        need(
            r.stderr.startswith("moectl: ") and r.stderr.count("\n") == 1,
            "with %s: %r" % (sorted(e), r.stderr),
        )
    same_state(rig, before, "bad credentials")
    job = rig.submit(command_recipe("mine", ["/bin/sleep", "100"]))
    equal(
        rig.http("POST", "/v1/jobs/%s/cancel" % job, "{}", token=user, tcp=True).status,
        403,
        "cancel of somebody else's job",
    )
    rig.run("cancel", job, "--now")
    rig.wait_state(job, "cancelled")


@suite.test
def idempotency(rig):
    def post(text, key):
        return rig.http(
            "POST", "/v1/jobs", text, content_type="application/yaml", idempotency_key=key
        )

    a, b, c = post(GOOD, "k-1"), post(GOOD, "k-1"), post(GOOD.replace("good", "other"), "k-1")
    equal(
        (a.status, b.status, c.status),
        (201, 200, 422),
        "first, same again, same key with another body",
    )
    equal(a.json["id"], b.json["id"], "the job")
    need(c.detail, "422 without detail")
    equal(
        rig.http(
            "POST", "/v1/jobs", GOOD, content_type="application/yaml", idempotency_key="x" * 2000
        ).status,
        400,
        "a key of 2000 bytes",
    )
    rig.wait_state(a.json["id"], "completed")


@suite.test
def large_body(rig):
    """100 MB: refused by its announced length, and as chunks without one; the controller's memory
    does not grow by it."""

    def rss():
        with open("/proc/%d/status" % rig.moed.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    before, mem = rig.state(), rss()
    piece = b"x" * 65536
    for head in ("Content-Length: 104857600", "Transfer-Encoding: chunked"):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(20)
        s.connect(rig.moed_options["unix_socket"])
        s.sendall(
            (
                "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/yaml\r\n"
                "%s\r\n\r\n" % head
            ).encode()
        )
        try:
            for _ in range(1600):
                s.sendall(b"10000\r\n" + piece + b"\r\n" if "chunked" in head else piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            answer = s.recv(65536)
            need(b" 413 " in answer, "%s: %r" % (head, answer[:100]))
        except ConnectionResetError:
            # closed while we were sending: the answer may be lost on the way
            pass
        s.close()
    a = rig.http("POST", "/v1/jobs", GOOD + "#" + "x" * (2 << 20), content_type="application/yaml")
    equal(a.status, 413, "2 MB")
    need("larger" in a.detail, a.detail)
    need(rss() - mem < 20000, "the controller grew by %d kB" % (rss() - mem))
    same_state(rig, before, "a large body")


@suite.test
def slow_clients(rig):
    """A head or a body that trickles is cut off after idle_timeout, however busily; everybody else
    is served meanwhile."""
    slow = []
    for text in (
        b"GET /v1/jobs HTTP/1.1\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/yaml\r\n"
        b"Content-Length: 100000\r\n\r\n",
    ):
        for _ in range(50):
            s = socket.socket(socket.AF_UNIX)
            s.connect(rig.moed_options["unix_socket"])
            s.sendall(text)
            s.setblocking(False)
            slow.append(s)
    begin, longest, served, left = time.monotonic(), 0, 0, set(slow)
    while left and time.monotonic() - begin < 30 * PATIENCE:
        for s in list(left):
            try:
                s.send(b"x")
                if s.recv(4096) == b"":
                    left.discard(s)
            except BlockingIOError:
                continue
            except OSError:
                left.discard(s)
        at = time.monotonic()
        equal(rig.http("GET", "/healthz").status, 200, "healthz")
        longest, served = max(longest, time.monotonic() - at), served + 1
        time.sleep(0.05)
    for s in slow:
        s.close()
    need(not left, "%d slow clients are still served" % len(left))
    need(served > 1 or longest < 2, "others waited for all of them, %.1f s" % longest)


def hello(rig, **changes):
    doc = {
        "node": "stranger",
        "boot_id": "b",
        "instance": "i",
        "protocol": 1,
        "version": "0",
        "address": "127.0.0.1",
        "info": {},
        "steps": [],
    }
    doc.update(changes)
    return json.dumps(doc)


@suite.test
def bad_agents(rig):
    before = rig.json("nodes")["items"]
    token = rig.token("agent")
    names = [n["name"] for n in before]
    for what, body, t, status in (
        ("protocol 99", hello(rig, protocol=99), token, 426),
        ("protocol 0", hello(rig, protocol=0), token, 426),
        ("a wrong token", hello(rig), "moe_nope", 401),
        ("a viewer's token", hello(rig), rig.token("viewer"), 403),
        ("the name of a living node", hello(rig, node="node-0"), token, 409),
        ("a bad name", hello(rig, node="../x"), token, (400, 422)),
        ("no JSON", "nope", token, 400),
        ("an unknown field", hello(rig, extra=1), token, (200, 400, 422)),
        ("no name", "{}", token, (400, 422, 426)),
    ):
        if what == "an unknown field":
            continue
        a = rig.http("POST", "/v1/agent/hello", body, token=t)
        need(
            a.status in (status if isinstance(status, tuple) else (status,)),
            "hello with %s: %d, not %s: %s" % (what, a.status, status, a.body[:200]),
        )
        need(a.detail, "hello with %s has no detail" % what)
    other = json.dumps(
        {
            "node": "node-0",
            "boot_id": "b",
            "instance": "other",
            "epoch": 1,
            "beat": 1,
            "mono_ns": 1,
            "steps": [],
            "scans": [],
        }
    )
    a = rig.http("POST", "/v1/agent/sync", other, token=token)
    equal(a.status, 409, "a sync of another instance: %s" % a.body[:300])
    # also where several meet in one turn of the controller, each of which ends the wait of the one
    # before
    request = (
        "POST /v1/agent/sync HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
        "Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
        % (token, len(other), other)
    ).encode()
    for _ in range(20):
        together = [socket.create_connection(("127.0.0.1", rig.port)) for _ in range(4)]
        for s in together:
            s.sendall(request)
        for s in together:
            answer = s.makefile("rb").read()
            need(
                b" 409 " in answer.split(b"\r\n")[0],
                "one of several syncs of another instance: %r" % answer[:300],
            )
            s.close()
    equal([n["name"] for n in rig.json("nodes")["items"]], names, "the nodes")
    equal([n["state"] for n in rig.json("nodes")["items"]], ["up"] * len(names), "their states")
    # the program itself: it says what is wrong and tries again, and comes in once the token is
    # right
    bad = os.path.join(rig.dir, "bad.token")
    for role in ("viewer", "none"):
        with open(bad, "w") as f:
            f.write((rig.token(role) if role == "viewer" else "moe_wrong") + "\n")
        os.chmod(bad, 0o600)
        os.makedirs(rig.dir + "/state/late", exist_ok=True)
        os.makedirs(rig.dir + "/run/late", exist_ok=True)
        log = "late-" + role
        p = rig.spawn(
            AGENT,
            log,
            dict(
                rig.agent_options,
                node="late",
                token_file=bad,
                state_dir=rig.dir + "/state/late",
                runtime_dir=rig.dir + "/run/late",
            ),
        )
        try:
            wait_until(
                lambda: re.search(r"token|credential|role", rig.log(log)),
                20,
                "the agent says what is wrong with its token",
            )
            need(
                p.poll() is None and "late" not in [n["name"] for n in rig.json("nodes")["items"]],
                "it came in",
            )
            if role == "none":
                with open(bad, "w") as f:
                    f.write(token + "\n")
                wait_until(
                    lambda: "late" in [n["name"] for n in rig.json("nodes")["items"]],
                    30,
                    "the agent comes in with the right token",
                )
                rig.run("drain", "late", "--reason", "it goes away again")
        finally:
            p.terminate()
            p.wait(PATIENCE * 20)


@suite.test
def bad_configuration(rig):
    for program, options, pattern in (
        (MOED, {"prot": 7070}, "prot.*port"),
        (MOED, {"port": "seventy"}, "port"),
        (MOED, {"port": 99999}, "port"),
        (MOED, {"listen": "0.0.0.0"}, "tls_cert"),
        (MOED, {"state_dir": "relative"}, "absolute"),
        (MOED, {"beat_ms": 1000, "suspect_ms": 500}, "suspect_ms"),
        (MOED, {"unix_socket": '""', "port": -1}, "unix_socket"),
        (MOED, {"tls_cert": "/x"}, "tls_key"),
        (AGENT, {"gpus": -1}, "gpus"),
        (AGENT, {"controler": "http://x"}, "controler.*controller"),
        (AGENT, {"controller": "ftp://x"}, "controller"),
        (AGENT, {"cpus": "a-b"}, "cpus"),
        (AGENT, {"topology": "/nonexistent"}, "topology"),
        (AGENT, {"log_bytes": "lots"}, "log_bytes"),
    ):
        path = write_config(os.path.join(rig.dir, "bad-config.yaml"), options)
        for args in (["--config", path, "--check-config"], ["--config", path]):
            r = subprocess.run(
                [program] + args,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                timeout=PATIENCE * 20,
                env=clean_env(),
            )
            need(
                r.returncode != 0 and re.search(pattern, r.stderr),
                "%s with %s: exit %d, says %r"
                % (os.path.basename(program), options, r.returncode, r.stderr),
            )
            need(
                len(options) > 1
                or "tls_key" in pattern
                or "tls_cert" in pattern
                or re.search(r":1:\d+: ", r.stderr)
                or program == AGENT,
                "no line and column: %r" % r.stderr,
            )
    r = subprocess.run(
        [MOED, "--config", "/nonexistent.yaml"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 20,
        env=clean_env(),
    )
    need(
        r.returncode != 0 and "/nonexistent.yaml" in r.stderr,
        "a missing file: %d %r" % (r.returncode, r.stderr),
    )
    r = subprocess.run(
        [MOED, "--config", os.path.join(rig.dir, "moed.yaml"), "--check-config"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 20,
        env=clean_env(),
    )
    equal(r.returncode, 0, "--check-config of the running one (%s)" % r.stderr)


@suite.test
def port_of_the_controller_in_use(rig):
    before = rig.state()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    port = listener.getsockname()[1]
    other = os.path.join(rig.dir, "other")
    path = write_config(
        os.path.join(rig.dir, "other.yaml"),
        dict(
            rig.moed_options,
            state_dir=other,
            unix_socket=other + ".sock",
            port=port,
            bootstrap_tokens=other + ".tokens",
        ),
    )
    subprocess.run(
        [MOED, "--config", path, "--init"],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=PATIENCE * 20,
        env=clean_env(),
    )
    r = subprocess.run(
        [MOED, "--config", path],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 20,
        env=clean_env(),
    )
    need(
        r.returncode != 0 and str(port) in r.stderr and "use" in r.stderr,
        "exit %d: %r" % (r.returncode, r.stderr),
    )
    r = moectl(
        "local",
        "up",
        "--dir",
        os.path.join(rig.dir, "local"),
        "--port",
        port,
        check=False,
        timeout=60,
    )
    need(
        r.returncode != 0 and str(port) in r.stderr,
        "local up: exit %d: %r" % (r.returncode, r.stderr),
    )
    moectl("local", "down", "--dir", os.path.join(rig.dir, "local"))
    path = write_config(
        os.path.join(rig.dir, "other.yaml"), dict(rig.moed_options, state_dir=other)
    )
    r = subprocess.run(
        [MOED, "--config", path],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 20,
        env=clean_env(),
    )
    need(
        r.returncode != 0 and "moed.sock" in r.stderr,
        "a socket in use: exit %d: %r" % (r.returncode, r.stderr),
    )
    listener.close()
    same_state(rig, before, "ports in use")


@suite.test
def a_slip_in_the_signatures_keeps_no_controller_from_its_jobs(rig):
    data = os.path.join(rig.dir, "data")
    signatures = os.path.join(data, "failures/signatures.yaml")
    shutil.copytree(os.path.join(ROOT, "config"), data)
    with open(signatures, "a") as f:
        f.write("rules: [{id: mine, match: ['(never closed']}]\n")
    os.environ["TEST_DATA_DIR"] = data
    try:
        with Moed() as moed:
            moed.get("/v1/cluster")
            with open(os.path.join(moed.dir, "log")) as f:
                text = f.read()
            need(
                re.search(
                    re.escape(signatures) + r":\d+:\d+: .*came with this version.*repair", text
                ),
                text,
            )
    finally:
        os.environ.pop("TEST_DATA_DIR")


@suite.test
def tls(rig):
    """Over https with the right CA everything works, agents too; with another one, and in clear
    text, nothing does."""
    d = os.path.join(rig.dir, "tls")
    os.makedirs(os.path.join(d, ".config/moe"))
    key, cert = d + "/key.pem", d + "/cert.pem"
    try:
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-keyout",
                key,
                "-out",
                cert,
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=IP:127.0.0.1",
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise Skipped("openssl is not installed")
    with Rig(nodes=0, moed={"tls_cert": cert, "tls_key": key}) as r:
        url = "https://127.0.0.1:%d" % r.port
        r.agent_options.update(controller=url, ca_file=cert)
        r.start_agent("node-0")
        wait_until(
            lambda: [n["state"] for n in r.json("nodes")["items"]] == ["up"],
            30,
            "an agent over https",
        )
        equal(
            moectl(
                "nodes", env=clean_env(MOE_URL=url, MOE_TOKEN=r.token("viewer")), check=False
            ).returncode,
            3,
            "exit status without the CA",
        )
        with open(d + "/.config/moe/config.yaml", "w") as f:
            f.write("url: %s\nca_file: %s\ntoken: %s\n" % (url, cert, r.token("admin")))
        os.chmod(f.name, 0o600)
        env = dict(clean_env(), HOME=d)
        equal(
            json.loads(moectl("nodes", "--json", env=env).stdout)["items"][0]["name"],
            "node-0",
            "nodes over https",
        )
        job = json.loads(
            moectl(
                "submit",
                "-",
                "--json",
                env=env,
                stdin=command_recipe("tls", ["/bin/echo", "over tls"]),
            ).stdout
        )["id"]
        r.wait_state(job, "completed")
        need("over tls" in moectl("logs", job, env=env).stdout, "logs over https")
        road = b'moe_http_connections{kind="road"} 1\n'
        need(road in r.http("GET", "/metrics").body, "the agent's road is over TLS")
        equal(
            moectl(
                "nodes", env=dict(env, MOE_URL=url.replace("https", "http")), check=False
            ).returncode,
            3,
            "exit status in clear text",
        )
        p = r.spawn(
            AGENT,
            "stranger",
            dict(
                r.agent_options,
                node="stranger",
                ca_file=None,
                state_dir=r.dir + "/state/s",
                runtime_dir=r.dir + "/run/s",
            ),
        )
        try:
            wait_until(
                lambda: "certificate" in r.log("stranger"), 30, "an agent without the CA says so"
            )
        finally:
            p.terminate()
            p.wait(PATIENCE * 20)
        equal(len(r.json("nodes")["items"]), 1, "nodes")


@suite.test
def second_controller_on_the_same_state(rig):
    before = rig.state()
    path = write_config(
        os.path.join(rig.dir, "second.yaml"),
        dict(rig.moed_options, unix_socket=rig.dir + "/second.sock"),
    )
    r = subprocess.run(
        [MOED, "--config", path],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 20,
        env=clean_env(),
    )
    need(
        r.returncode != 0 and "another moed" in r.stderr and rig.state_dir in r.stderr,
        "exit %d: %r" % (r.returncode, r.stderr),
    )
    need(alive(rig.moed.pid), "the first one died")
    need(not os.path.exists(rig.dir + "/second.sock"), "it left a socket")
    equal(
        rig.http("GET", "/healthz", tcp=True).status,
        200,
        "the first one's TCP port, as its address file says",
    )
    same_state(rig, before, "a second controller")


@suite.test
def more_gpus_than_exist(rig):
    job = rig.submit(command_recipe("large", ["/bin/true"], gpus=100))
    equal(rig.job(job)["state"], "queued", "state")
    why = rig.json("why", job)
    text = json.dumps(why)
    need(
        "100" in text
        and "has %d" % sum(n["gpus"] for n in rig.json("nodes")["items"]) in text
        and why["reasons"],
        "why does not tell wanted and present GPUs: %s" % text,
    )
    need("100" in rig.run("why", job).stdout, "why in words")
    rig.run("cancel", job)
    rig.wait_state(job, "cancelled")
    equal(rig.job(job)["attempt"], 0, "attempts")


@suite.test
def program_that_does_not_exist(rig):
    for argv, pattern in (
        (["/nonexistent/program"], "/nonexistent/program"),
        (["no-such-program-here"], "no-such-program-here"),
        (["/etc/passwd"], "/etc/passwd"),
    ):
        job = rig.submit(command_recipe("missing", argv, gpus=2))
        doc = rig.wait_state(job, "failed")
        need(re.search(pattern, doc["reason"]), "reason: %s" % doc["reason"])
        equal(doc["attempt"], 1, "attempts")
    doc = json.loads(command_recipe("workdir", ["/bin/true"]))
    doc["engine"]["workdir"] = "/nonexistent/dir"
    job = rig.submit(json.dumps(doc))
    need(
        "/nonexistent/dir" in rig.wait_state(job, "failed")["reason"],
        "workdir: %s" % rig.job(job)["reason"],
    )
    job = rig.submit(
        json.dumps(
            {
                "recipe": 1,
                "name": "script",
                "engine": {
                    "kind": "torch",
                    "python": "/usr/bin/python3",
                    "entry": "/nonexistent/train.py",
                },
                "cluster": {"gpus": 2},
            }
        )
    )
    doc = rig.wait_state(job, "failed")
    need(
        "/nonexistent/train.py" in doc["reason"] and doc["attempt"] == 1,
        "a missing script: attempt %d, %s" % (doc["attempt"], doc["reason"]),
    )
    need(not rig.json("report", job)["restarts"], "restarts of a missing script")


@suite.test
def a_warning_is_said_once(rig):
    """Also when --set or --name changed the text that the controller sees; with the line of the
    file, or without one."""
    path = os.path.join(rig.dir, "warned.yaml")
    with open(path, "w") as f:
        f.write("# a comment\n" + GOOD + "recovery:\n  lease: 40s\n")
    for args, place in (
        ([], ":7:10: "),
        (["--set", "priority=60"], ":7:10: "),
        (["--name", "other"], ":7:10: "),
        (["--set", "recovery.lease=50s", "--name", "more"], ": "),
        (["--set", "name=x", "--dry-run"], ":7:10: "),
    ):
        r = rig.run("submit", path, *args)
        lines = [line for line in r.stderr.split("\n") if "recovery.lease" in line]
        need(
            len(lines) == 1 and lines[0].startswith(path + place + "warning: "),
            "%s: %r" % (args, r.stderr),
        )
    for job in rig.json("list", "--all")["items"]:
        if job["name"] in ("good", "other", "more"):
            rig.wait_state(job["id"], "completed")


def main():
    with Rig() as rig:
        return suite.main(rig)


sys.exit(1 if main() else 0)
