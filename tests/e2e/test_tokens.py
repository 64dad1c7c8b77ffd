"""Tokens of nodes with real daemons: a join token becomes one of each node, which renews itself;
what an expired one still may; what must not give a token away."""
import datetime
import http.server
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

from controller import FakeAgent, Moed
from lib import Skipped, Suite, command_recipe, equal, moectl, need, wait_equal, wait_until
from rig import AGENT, MOED, RANK, SILENT_SOON, Rig, write_config

suite = Suite()


def write(path, text, mode=0o600):
    with open(path, "w") as f:
        f.write(text + "\n")
    os.chmod(path, mode)
    return path


def tokens(rig, **fields):
    return [
        t
        for t in rig.json("token", "list")["items"]
        if all(t.get(k) == v for k, v in fields.items())
    ]


def bare(nodes=1, moed=None, **agent):
    """A controller alone; agents have nothing but what the test writes into DIR/given."""
    rig = Rig(nodes=nodes, moed=moed)
    rig.given = os.path.join(rig.dir, "given")
    rig.agent_options.update(agent, token_file=rig.given)
    rig.start_moed()
    rig.agent_options["controller"] = "http://127.0.0.1:%d" % rig.port
    return rig


class Bare:
    def __init__(self, **kw):
        self.kw = kw

    def __enter__(self):
        self.rig = bare(**self.kw)
        return self.rig

    def __exit__(self, *exc):
        self.rig.down(check=exc[0] is None)


def own(rig, node):
    return os.path.join(rig.dir, "state", node, "agent.token")


def node_up(rig, node, deadline=20):
    wait_until(lambda: rig.json("node", node)["state"] == "up", deadline, "%s is up" % node)


@suite.test
def nodes_join_with_one_token_and_get_their_own():
    with Bare() as rig:
        r = rig.run("token", "join", "--nodes", 2, "--ttl", "1h", "--out", rig.given)
        equal(r.stdout, "", "stdout of token join --out")
        equal(stat.S_IMODE(os.stat(rig.given).st_mode), 0o600, "mode of --out")
        join = tokens(rig, role="join")[0]
        need(0 < when(join["expires_at"]) - when(join["created_at"]) <= 3600, "an hour")
        for n in ("a", "b"):
            rig.start_agent(n)
            node_up(rig, n)
            equal(stat.S_IMODE(os.stat(own(rig, n)).st_mode), 0o600, "mode of the node's token")
            equal([t["from"] for t in tokens(rig, user=n)], [join["id"]], "its token")
            days = [
                (when(t["expires_at"]) - when(t["created_at"])) / 86400 for t in tokens(rig, user=n)
            ]
            equal(days, [30.0], "its lifetime")
        rig.start_agent("c")
        wait_until(
            lambda: "as many have joined" in rig.log("c"),
            20,
            "the third hears that the token was for two",
        )
        rig.kill(rig.agents.pop("c"))
        # the join token is of no more use to those that have joined
        os.unlink(rig.given)
        rig.kill(rig.agents["a"])
        rig.start_agent("a")
        wait_until(
            lambda: rig.json("events")["items"] and rig.log("a").count("connected to") == 2,
            20,
            "a is back with its own",
        )
        # one node's token speaks for no other, and for nothing else
        secret = open(own(rig, "a")).read().strip()
        equal(hello(rig, "b", secret).status, 403, "a speaks for b")
        equal(rig.http("GET", "/v1/nodes", token=secret).status, 403, "an agent reads")
        # the controller's own token of no node, as a local cluster has it, and as earlier versions
        # made them for all nodes
        items = rig.json("doctor")["items"]
        equal(
            [(i["check"], i["state"]) for i in items],
            [
                ("token.unbound", "warn"),
                ("token.expiry", "ok"),
                ("node.checks", "ok"),
                ("node.learning", "ok"),
                ("node.version", "ok"),
            ],
            "doctor",
        )
        equal(
            items[0]["object"],
            [t["id"] for t in tokens(rig, role="agent") if not t["user"]][0],
            "the token that is named",
        )
        rig.run("token", "revoke", items[0]["object"])
        equal({i["state"] for i in rig.json("doctor", "b")["items"]}, {"ok"}, "doctor of a node")
        r = rig.run("doctor", "bb", check=False)
        equal((r.returncode, r.stdout), (5, ""), "doctor of no node: %s" % r.stderr)
        viewer = rig.json("token", "create", "--role", "viewer", "--user", "vic", "--ttl", "3d")[
            "token"
        ]
        r = moectl("doctor", "--json", env=dict(rig.env, MOE_TOKEN=viewer))
        equal(
            [i["state"] for i in json.loads(r.stdout)["items"]],
            ["unknown", "unknown", "ok", "ok", "ok"],
            "doctor for a viewer",
        )
        equal(
            [i["state"] for i in rig.json("doctor")["items"]][1],
            "warn",
            "a token that ends in three days",
        )
        made = [e for e in rig.json("events")["items"] if e["type"] == "audit.token_joined"]
        equal(sorted(e["node"] for e in made), ["a", "b"], "events of joining")


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def hello(rig, node, token, tcp=True):
    doc = {
        "node": node,
        "boot_id": "x",
        "instance": "x",
        "protocol": 1,
        "version": "test",
        "info": {"hostname": node, "gpus": [], "numa": [], "cpus": 1, "mem_bytes": 1},
        "steps": [],
    }
    return rig.http("POST", "/v1/agent/hello", json.dumps(doc), token=token, tcp=tcp)


@suite.test
def a_token_that_was_cut():
    """The agent names the file, and the controller what to do; then it has a whole one again."""
    with Bare() as rig:
        write(rig.given, rig.json("token", "join", "--nodes", 20)["token"])
        rig.start_agent("a")
        node_up(rig, "a")
        with open(own(rig, "a")) as f:
            whole = f.read()
        os.rename(rig.given, rig.given + ".away")
        for n in (0, 1, 5, len(whole) // 2, len(whole) - 2):
            rig.kill(rig.agents.pop("a"))
            before = len(rig.log("a"))
            with open(own(rig, "a"), "w") as f:
                f.write(whole[:n])
            rig.start_agent("a")
            said = lambda: [x for x in rig.log("a")[before:].splitlines() if own(rig, "a") in x]
            wait_until(said, 20, "a word of the token of %d bytes" % n)
            need(
                ("holds no token" if n == 0 else "does not know this node's token") in said()[0],
                said(),
            )
        os.rename(rig.given + ".away", rig.given)
        wait_until(
            lambda: "moectl token revoke" in rig.log("a")[before:],
            20,
            "who has the name, and what to do",
        )
        rig.run("token", "revoke", tokens(rig, user="a")[0]["id"])
        rig.run("token", "join", "--out", rig.given + ".new")
        os.rename(rig.given + ".new", rig.given)
        wait_until(
            lambda: os.path.getsize(own(rig, "a")) == len(whole), 20, "a whole one of its own"
        )
        node_up(rig, "a")
        # without its end of line it is whole
        with open(own(rig, "a")) as f:
            whole = f.read()
        os.unlink(rig.given)
        rig.kill(rig.agents.pop("a"))
        with open(own(rig, "a"), "w") as f:
            f.write(whole[:-1])
        before = len(rig.log("a"))
        rig.start_agent("a")
        wait_until(lambda: "connected to" in rig.log("a")[before:], 20, "a is back")


@suite.test
def a_join_token_is_no_other_token_and_names_in_use_are_kept():
    with Bare() as rig:
        join = rig.json("token", "join", "--nodes", 3)["token"]
        for method, path in (
            ("GET", "/v1/nodes"),
            ("POST", "/v1/jobs"),
            ("POST", "/v1/agent/hello"),
            ("POST", "/v1/agent/sync"),
            ("POST", "/v1/session"),
            ("GET", "/v1/tokens"),
        ):
            body = json.dumps({"node": "a"}) if method == "POST" else None
            need(rig.http(method, path, body, token=join, tcp=True).status in (400, 403), path)
        equal(hello(rig, "a", join).status, 403, "hello with a join token")
        trade = lambda node, token: rig.http(
            "POST", "/v1/agent/token", json.dumps({"node": node}), token=token, tcp=True
        )
        first = trade("a", join)
        equal(first.status, 201, "trade: %s" % first.body)
        again = trade("a", join)
        equal(again.status, 201, "trade again: the answer was lost")
        equal(hello(rig, "a", first.json["token"]).status, 401, "what was traded and not used goes")
        equal(hello(rig, "a", again.json["token"]).status, 200, "hello")
        wait_until(lambda: trade("a", join).status == 409, 10, "the name is in use")
        need("moectl token revoke" in trade("a", join).detail, "what to do")
        equal(trade("b", again.json["token"]).status, 403, "a's token is traded for b's")
        equal(trade("no such/name", join).status, 422, "a bad name")
        rig.run("token", "revoke", rig.json("token", "list")["items"][-1]["id"])
        r = trade("a", join)
        equal(r.status, 403, "a join token of before: %s" % r.body)
        need("moectl token join" in r.detail and "revoked after" in r.detail, r.detail)
        equal(hello(rig, "a", again.json["token"]).status, 401, "the revoked one")
        unbound = open(os.path.join(rig.tokens, "agent.token")).read().strip()
        equal(hello(rig, "a", unbound).status, 403, "one of no node, for a name that was put out")
        equal(hello(rig, "other", unbound).status, 200, "and for another name")
        newer = rig.json("token", "join")["token"]
        equal(trade("a", newer).status, 201, "the operator said that it is the same machine")
        equal(trade("a", join).status, 403, "the one of before, still")
        for i in range(20):
            last = trade("a", newer)
        equal(last.status, 429, "trades without end: %s" % last.body)
        need(int(last.headers["retry-after"]) >= 1, last.headers)
        short = rig.json("token", "join", "--ttl", "1s")["token"]
        wait_until(lambda: trade("z", short).status == 401, 10, "a join token expires")


@suite.test
def a_node_whose_token_was_revoked_is_not_taken_for_one_that_is_off():
    """Its agent runs and is refused: `why` names that, and not only the silence; a join token ends
    it, and the ranks were there all the time."""
    with Bare(moed=SILENT_SOON) as rig:
        write(rig.given, rig.json("token", "join")["token"])
        rig.start_agent("node-0")
        node_up(rig, "node-0")
        job = rig.submit(command_recipe("long", ["/bin/sleep", "1000"], gpus=2))
        wait_until(lambda: len(rig.rank_pids(job)) == 2, 30, "two ranks")
        pids = rig.rank_pids(job)
        rig.run("token", "revoke", tokens(rig, role="agent", user="node-0")[0]["id"])
        wait_until(lambda: rig.json("node", "node-0")["state"] == "down", 30, "it is silent")
        why = rig.json("why", "node-0")
        need("token-revoked" in [r["code"] for r in why["reasons"]], why)
        need("moectl token join" in why["next"] and "start its agent" not in why["next"], why)
        check = [c for c in rig.json("node", "node-0")["checks"] if c["check"] == "token"][0]
        need(check["state"] == "failed" and "revoked" in check["text"], check)
        need("token was revoked" in json.dumps(rig.json("why", job)), rig.json("why", job))
        write(rig.given, rig.json("token", "join")["token"])
        node_up(rig, "node-0", 60)
        wait_until(lambda: rig.rank_pids(job) == pids, 30, "the same ranks")
        need("token" not in json.dumps(rig.json("why", "node-0")), rig.json("why", "node-0"))
        equal(rig.job(job)["attempt"], 1, "attempt")


@suite.test
def a_token_is_renewed_at_half_of_its_life():
    with Bare() as rig:
        made = rig.json("token", "create", "--role", "agent", "--user", "a", "--ttl", "12s")
        write(rig.given, made["token"])
        rig.start_agent("a")
        node_up(rig, "a")
        wait_until(lambda: os.path.exists(own(rig, "a")), 20, "its own token")
        wait_until(
            lambda: [t["from"] for t in tokens(rig, user="a")] == [made["id"]],
            10,
            "the old one is gone once the new one was used",
        )
        equal(hello(rig, "a", made["token"]).status, 401, "the old one")
        need(
            not rig.json("node", "a")["checks"]
            or all(
                c["state"] == "ok" for c in rig.json("node", "a")["checks"] if c["check"] == "token"
            ),
            "its token is good",
        )


@suite.test
def a_node_comes_back_to_a_controller_restored_from_a_backup():
    """Its own token is newer than the backup: the one before is known there."""
    with Bare() as rig:
        made = rig.json("token", "create", "--role", "agent", "--user", "a", "--ttl", "24s")
        os.makedirs(os.path.dirname(own(rig, "a")))
        write(own(rig, "a"), made["token"])
        backup = os.path.join(rig.dir, "backup")
        rig.run("backup", backup)
        rig.start_agent("a")
        node_up(rig, "a")
        wait_until(lambda: open(own(rig, "a")).read().strip() != made["token"], 20, "it renews")
        wait_until(
            lambda: [t["from"] for t in tokens(rig, user="a")] == [made["id"]],
            10,
            "and the old one is gone",
        )
        rig.kill(rig.moed)
        os.rename(rig.state_dir, rig.state_dir + ".lost")
        rig.moed_options["port"] = int(rig.agent_options["controller"].rsplit(":", 1)[1])
        config = write_config(os.path.join(rig.dir, "restore.yaml"), rig.moed_options)
        r = subprocess.run(
            [MOED, "--config", config, "--restore", backup],
            env=rig.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        equal(r.returncode, 0, "restore: %s" % r.stdout)
        rig.start_moed()
        equal([t["id"] for t in tokens(rig, user="a")], [made["id"]], "what the backup knows")
        node_up(rig, "a", 30)


@suite.test
def a_job_trains_on_through_expiry():
    """Expiry stops new launches only: not adoption by a new agent or a new controller, not beats,
    not the stop of what runs."""
    with Bare() as rig:
        made = rig.json("token", "create", "--role", "agent", "--user", "a", "--ttl", "16s")
        write(rig.given, made["token"])
        rig.start_agent("a")
        node_up(rig, "a")
        truth = os.path.join(rig.dir, "truth")
        os.makedirs(truth)
        job = rig.submit(
            command_recipe(
                "long",
                [RANK, "--truth", truth, "--steps", "1000000", "--step-ms", "20"],
                gpus=1,
                steps=1000000,
            )
        )
        rig.wait_iteration(job, 3)
        # an agent that is stopped can renew nothing
        os.kill(rig.agents["a"].pid, signal.SIGSTOP)
        pids = rig.rank_pids(job)
        wait_until(lambda: time.time() > when(made["expires_at"]) + 0.2, 30, "expiry")
        os.kill(rig.agents["a"].pid, signal.SIGCONT)
        wait_until(
            lambda: "node.token_expired" in [e["type"] for e in rig.json("events")["items"]],
            20,
            "the controller says so",
        )
        before = rig.wait_iteration(job, 1)
        rig.wait_iteration(job, before + 20)
        # both daemons anew, with nothing but the expired token
        rig.kill(rig.moed)
        rig.kill(rig.agents["a"])
        rig.moed_options["port"] = int(rig.agent_options["controller"].rsplit(":", 1)[1])
        rig.start_moed()
        rig.start_agent("a")
        before = rig.wait_state(job, "running", 30)["iteration"] or before
        rig.wait_iteration(job, before + 20)
        wait_equal(lambda: rig.rank_pids(job), pids, "ranks")
        equal(rig.job(job)["attempt"], 1, "attempt")
        # nothing new starts there, and that is said
        other = rig.submit(command_recipe("other", ["/bin/true"], gpus=1))
        why = wait_until(
            lambda: "token has expired" in json.dumps(rig.json("why", other))
            and rig.json("why", other),
            20,
            "why says it",
        )
        equal(rig.job(other)["state"], "queued", "a new job")
        need("moectl token join" in rig.json("why", "a")["next"], "what to do")
        r = rig.run("doctor", "a", "--json", check=False)
        crit = [i for i in json.loads(r.stdout)["items"] if i["state"] == "crit"]
        equal(
            (r.returncode, sorted({i["check"] for i in crit}), {i["object"] for i in crit}),
            (1, ["node.checks", "token.expiry"], {"a"}),
            "doctor",
        )
        need(
            all("expired" in i["text"] for i in crit) and "moectl token join" in json.dumps(crit),
            crit,
        )
        # a stop is obeyed
        rig.run("cancel", job)
        rig.wait_state(job, "cancelled", 30)
        # a join token ends it without a restart
        rig.run("token", "join", "--out", rig.given)
        rig.wait_state(other, "completed", 60)
        equal(len(tokens(rig, user="a", role="agent")) >= 1, True, "its token")


FAR = "192.0.2.1"


@suite.test
def tokens_of_no_node_are_for_loopback():
    """In a network of its own, whose loopback interface has an address that is not loopback."""
    words = "ip link set lo up && ip addr add %s/32 dev lo && exec %s %s from_far" % (
        FAR,
        sys.executable,
        os.path.abspath(__file__),
    )
    r = subprocess.run(
        ["unshare", "-rn", "sh", "-c", words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if "from_far" not in r.stdout:
        raise Skipped("no network namespace can be made here: %s" % r.stdout.strip()[-200:])
    equal(r.returncode, 0, "from far: %s" % r.stdout[-2000:])


def from_far():
    with Moed(listen="0.0.0.0", tls="off") as m:
        print("from_far", flush=True)
        equal(
            FakeAgent(m).hello().status,
            200,
            "on loopback, as local clusters and earlier versions have it",
        )
        a = m.submit(unix=True, token=None)
        equal(a.status, 403, "a job as root on a controller that others reach: %s" % a.body)
        need("loopback" in a.json["detail"], a.body)
        bound = m.token("agent", user="n3")["token"]
        join = m.token("join")["token"]
        m.host = FAR
        a = FakeAgent(m, node="n2").hello()
        equal(a.status, 403, "from elsewhere")
        need(
            "bound to no node" in a.json["detail"] and "moectl token join" in a.json["detail"],
            a.body,
        )
        equal(
            m.ask("POST", "/v1/agent/token", {"node": "n2"}, token=m.agent).status,
            403,
            "trade from elsewhere",
        )
        equal(FakeAgent(m, node="n3", token=bound).hello().status, 200, "one that is bound")
        equal(
            m.ask("POST", "/v1/agent/token", {"node": "n2"}, token=join).status, 201, "a join token"
        )


class Old(http.server.BaseHTTPRequestHandler):
    """What a controller of 0.1 answers to `doctor`: no join tokens, no word about where it
    listens."""

    address = "127.0.0.1"

    def do_GET(self):
        items = {
            "/v1/tokens": [
                {
                    "id": "0a0b0c0d",
                    "role": "agent",
                    "user": None,
                    "created_at": "2026-01-01T00:00:00Z",
                    "expires_at": None,
                },
                {
                    "id": "1a1b1c1d",
                    "role": "agent",
                    "user": "n1",
                    "created_at": "2026-01-01T00:00:00Z",
                    "expires_at": "2026-01-02T00:00:00Z",
                },
            ],
            "/v1/nodes": [
                {"name": "n1", "address": self.address, "version": "0.1.0", "checks": []}
            ],
        }
        path = self.path.partition("?")[0]
        body = json.dumps(
            {"version": "0.1.0"} if path == "/v1/cluster" else {"items": items[path], "next": None}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@suite.test
def the_doctor_advises_what_the_controller_knows():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Old)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for address, state in (("127.0.0.1", "warn"), ("10.0.0.7", "crit")):
            Old.address = address
            r = moectl(
                "doctor",
                "--json",
                "--url",
                "http://127.0.0.1:%d" % server.server_port,
                env=dict(os.environ, MOE_TOKEN="moe_0a0b0c0d_" + "0" * 64),
                check=False,
            )
            found = json.loads(r.stdout)["items"]
            by = {(i["check"], i["object"]): i for i in found}
            equal(
                by["token.unbound", "0a0b0c0d"]["state"],
                state,
                "its token of no node, with a node at %s" % address,
            )
            equal((by["token.expiry", "n1"]["state"], r.returncode), ("crit", 1), "an expired one")
            for i in found:
                need(
                    "token join" not in (i["next"] or ""),
                    "a verb that this controller does not know: %s" % i,
                )
            need(
                "token create --role agent --user NODE" in by["token.unbound", "0a0b0c0d"]["next"],
                found,
            )
            need("token create --role agent --user NODE" in by["token.expiry", "n1"]["next"], found)
    finally:
        server.shutdown()
        server.server_close()
    with Moed(listen="0.0.0.0", tls="off") as m:
        env = dict(os.environ, MOE_TOKEN=m.admin)
        r = moectl(
            "doctor", "--json", "--url", "http://127.0.0.1:%s" % m.port, env=env, check=False
        )
        item = [i for i in json.loads(r.stdout)["items"] if i["check"] == "token.unbound"][0]
        equal(
            (item["state"], r.returncode), ("crit", 1), "a controller that others reach: %s" % item
        )
        need("refused" in item["text"] and "token join" in item["next"], item)


@suite.test
def nothing_is_sent_in_clear_text():
    for url in ("http://10.0.0.1:7070", "http://127.0.0.1@10.0.0.1:7070"):
        r = moectl("list", "--url", url, check=False)
        equal((r.returncode, r.stdout), (2, ""), "moectl %s" % url)
        need("https://" in r.stderr and r.stderr.count("\n") == 1, r.stderr)
        code, text = check(AGENT, controller=url)
        equal(code, 2, "agent %s" % url)
        need("https://" in text and text.count("\n") == 1, text)
    equal(check(AGENT, controller="http://127.0.0.1:7070")[0], 0, "loopback")


def check(program, **options):
    d = tempfile.mkdtemp(prefix="moe-check-")
    r = subprocess.run(
        [program, "--config", write_config(os.path.join(d, "c.yaml"), options), "--check-config"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return r.returncode, r.stderr


@suite.test
def files_that_others_can_read_are_refused():
    with Bare() as rig:
        secret = rig.json("token", "create", "--role", "viewer", "--user", "ada")["token"]
        url = "http://127.0.0.1:%d" % rig.port
        f = write(os.path.join(rig.dir, "viewer"), secret, 0o644)
        r = rig.run("--url", url, "list", "--token-file", f, check=False)
        equal((r.returncode, r.stdout), (2, ""), "moectl with a token file of mode 0644")
        need(
            "chmod 600" in r.stderr and secret not in r.stderr and r.stderr.count("\n") == 1,
            r.stderr,
        )
        os.chmod(f, 0o600)
        equal(rig.run("--url", url, "list", "--token-file", f).returncode, 0, "0600")
        # moectl's configuration, when it has a token
        os.makedirs(os.path.join(rig.dir, "xdg", "moe"))
        conf = write_config(
            os.path.join(rig.dir, "xdg", "moe", "config.yaml"), {"url": url, "token": secret}
        )
        os.chmod(conf, 0o644)
        env = dict(rig.env, XDG_CONFIG_HOME=os.path.join(rig.dir, "xdg"))
        env.pop("MOE_URL")
        r = moectl("list", env=env, check=False)
        equal(r.returncode, 2, "moectl with such a configuration")
        need("chmod 600" in r.stderr, r.stderr)
        os.chmod(conf, 0o600)
        equal(moectl("list", env=env).returncode, 0, "0600")
        # the agent: at its start, and while it runs
        write(rig.given, rig.json("token", "join")["token"], 0o644)
        code, text = check(AGENT, token_file=rig.given)
        need(code, "agent's check")
        need("chmod 600" in text, text)
        os.unlink(rig.given)
        rig.start_agent("a")
        wait_until(lambda: "No such file" in rig.log("a"), 20, "the agent runs without a token")
        write(rig.given, rig.json("token", "join")["token"], 0o640 if os.geteuid() else 0o604)
        wait_until(lambda: "chmod 600" in rig.log("a"), 20, "it is reported")
        os.chmod(rig.given, 0o600)
        node_up(rig, "a")
        # moed: its TLS key
        cert, key = write(os.path.join(rig.dir, "cert"), "x", 0o644), write(
            os.path.join(rig.dir, "key"), "x", 0o644
        )
        code, text = check(MOED, tls_cert=cert, tls_key=key, state_dir=rig.dir)
        equal(code, 1, "moed's check")
        need("chmod 600" in text, text)


@suite.test
def the_tokens_of_a_local_cluster_are_made_anew():
    with Moed() as m:
        short = m.token("admin", ttl="20s")["token"]
        path = write(os.path.join(m.dir, "tokens", "admin.token"), short)
        equal(m.stop(), 0, "stop")
        m.start()
        equal(m.admin, short, "a good one stays")
        wait_until(lambda: open(path).read().strip() != short, 20, "a new one at half of its life")
        equal(
            (
                m.ask("GET", "/v1/tokens", token=open(path).read().strip()).status,
                stat.S_IMODE(os.stat(path).st_mode),
            ),
            (200, 0o600),
            "the new one",
        )
        equal(m.ask("GET", "/v1/tokens", token=short).status, 200, "the old one still")
        m.admin = open(path).read().strip()


@suite.test
def tokens_end_by_default_and_are_written_for_their_owner_alone():
    with Bare() as rig:
        out = os.path.join(rig.dir, "out")
        old = os.umask(0)
        try:
            r = rig.run("token", "create", "--role", "viewer", "--user", "ada", "--out", out)
        finally:
            os.umask(old)
        equal((r.stdout, stat.S_IMODE(os.stat(out).st_mode)), ("", 0o600), "--out")
        secret = open(out).read().strip()
        need(secret not in r.stderr, "the token is shown")
        equal(rig.http("GET", "/v1/nodes", token=secret).status, 200, "it is good")
        t = tokens(rig, user="ada")[0]
        equal(round(when(t["expires_at"]) - when(t["created_at"])), 30 * 86400, "lifetime")
        doc = json.loads(
            rig.run(
                "token", "create", "--role", "viewer", "--user", "bob", "--json", "--out", out
            ).stdout
        )
        need("token" not in doc and doc["id"], doc)
        n = len(tokens(rig))
        r = rig.run(
            "token",
            "create",
            "--role",
            "viewer",
            "--user",
            "eve",
            "--out",
            os.path.join(rig.dir, "no/such"),
            check=False,
        )
        equal(
            (r.returncode, len(tokens(rig))),
            (1, n),
            "what cannot be written is revoked again: %s" % r.stderr,
        )
        for bad in (
            ["create", "--role", "agent"],
            ["create", "--role", "viewer", "--ttl", "100000d"],
            ["join", "--ttl", "30d"],
            ["join", "--nodes", "0"],
            ["create", "--role", "viewer", "--nodes", "2"],
            ["join", "--role", "admin"],
            ["join", "--user", "ada"],
            ["create", "--role", "wizard"],
        ):
            r = rig.run("token", *bad, check=False)
            equal(
                (r.returncode, r.stdout, r.stderr.count("\n")),
                (2, "", 1),
                "token %s: %s" % (" ".join(bad), r.stderr),
            )
        equal(len(tokens(rig)), n, "tokens")


@suite.test
def who_did_it_and_who_was_refused_is_reported():
    with Bare(moed=SILENT_SOON) as rig:
        write(rig.given, rig.json("token", "join")["token"])
        rig.start_agent("a")
        node_up(rig, "a")
        ada, bob = rig.json("token", "create", "--role", "operator", "--user", "ada"), rig.json(
            "token", "create", "--role", "viewer", "--user", "bob"
        )
        post = lambda path, body, token: rig.http(
            "POST", path, json.dumps(body), token=token, tcp=True
        ).status
        equal(post("/v1/nodes/a/drain", {"reason": "fan"}, ada["token"]), 200, "drain")
        equal(post("/v1/nodes/a/undrain", {}, ada["token"]), 200, "undrain")
        for _ in range(5):
            equal(
                post("/v1/nodes/a/drain", {"reason": "fun"}, bob["token"]), 403, "drain by a viewer"
            )
        rig.kill(rig.agents.pop("a"))
        wait_until(lambda: rig.json("node", "a")["state"] == "down", 20, "the node is down")
        equal(post("/v1/nodes/a/fence", {"confirmed": True}, ada["token"]), 200, "fence")
        rig.run("token", "revoke", bob["id"])

        def told():
            return [e for e in rig.json("events")["items"] if e["type"].startswith("audit.")]

        wait_until(lambda: "audit.token_revoked" in [e["type"] for e in told()], 10, "events")
        by = {e["type"]: e for e in told()}
        for kind, words in (
            ("audit.drained", "drained node a (idle): fan"),
            ("audit.undrained", "undrained node a"),
            ("audit.fenced", "fenced node a"),
        ):
            need(
                by[kind]["message"].startswith(
                    "ada (token %s from 127.0.0.1) %s" % (ada["id"], words)
                ),
                by[kind],
            )
            equal((by[kind]["node"], by[kind]["data"]["user"]), ("a", "ada"), kind)
        refused = [e for e in told() if e["type"] == "audit.refused"]
        equal(len(refused), 1, "five refusals of one request")
        need(
            "bob (token %s from 127.0.0.1) was refused POST /v1/nodes/a/drain: role viewer"
            % bob["id"]
            in refused[0]["message"],
            refused,
        )
        need(
            "revoked token %s, role viewer for bob" % bob["id"]
            in by["audit.token_revoked"]["message"],
            by["audit.token_revoked"],
        )
        need(
            "made token %s, role viewer for bob" % bob["id"]
            in json.dumps([e["message"] for e in told()]),
            told(),
        )
        for e in told():
            need(e["message"] in rig.log("moed"), "not in the log: %s" % e["message"])
            need(ada["token"] not in json.dumps(e), "a secret")


if __name__ == "__main__":
    if sys.argv[1:] == ["from_far"]:
        sys.exit(from_far())
    sys.exit(1 if suite.main() else 0)
