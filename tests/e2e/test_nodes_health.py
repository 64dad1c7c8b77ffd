#!/usr/bin/python3
"""The controller's side of health, with a real moed and agents made of a few lines: what they find
is shown, cordons, keeps jobs away, makes metrics; drift; all of it over a restart of moed."""
import json
import os
import re
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Suite, equal, need, wait_until  # noqa: E402
from rig import Rig  # noqa: E402

suite = Suite()
RECIPE = (
    "recipe: 1\nname: %s\nengine: {kind: command, argv: [/bin/true]}\ncluster: {gpus: %d}\n"
    "health: {preflight: %s}\n"
)


class ToyAgent:
    """Says hello, then beats; tells its health until it is acknowledged, as the protocol says.
    Starts nothing."""

    def __init__(self, rig, name, gpus=8, told=True):
        self.rig, self.name, self.token, self.gpus = rig, name, rig.token("agent"), gpus
        self.health = (
            {
                "version": 1,
                "results": [],
                "ok": 30,
                "preflight_done": True,
                "stack": [{"key": "kernel", "value": "6.8.0-45"}, {"key": "rocm", "value": "7.0"}],
            }
            if told
            else None
        )
        self.sensors, self.acked, self.epoch, self.beat, self.heard, self.over = (
            [],
            None,
            0,
            0,
            0,
            False,
        )
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.live, daemon=True)
        self.thread.start()

    def post(self, path, body):
        return self.rig.http(
            "POST",
            path,
            json.dumps(
                dict(body, node=self.name, boot_id="b-" + self.name, instance="i-" + self.name)
            ),
            token=self.token,
        )

    def hello(self):
        slots = [{"index": i, "vendor": "amd", "model": "mi300x"} for i in range(self.gpus)]
        a = self.post(
            "/v1/agent/hello",
            {
                "protocol": 1,
                "version": "toy",
                "address": "127.0.0.1",
                "health": self.health is not None,
                "info": {"hostname": self.name, "gpus": slots, "cpus": 8},
                "steps": [],
            },
        )
        self.epoch = a.json["epoch"] if a.status == 200 else 0

    def live(self):
        while not self.over:
            try:
                if not self.epoch:
                    self.hello()
                self.sync()
            except OSError:
                self.epoch = 0  # moed is away
                threading.Event().wait(0.1)

    def sync(self):
        with self.lock:
            self.beat += 1
            body = {
                "epoch": self.epoch,
                "beat": self.beat,
                "mono_ns": self.beat,
                "steps": [],
                "scans": [],
                "sensors": self.sensors,
            }
            if self.health and self.health["version"] != self.acked:
                body["health"] = self.health
            body = json.loads(json.dumps(body))
        a = self.post("/v1/agent/sync", body)
        if a.status == 200:
            self.acked = a.json["health"]
            self.heard += 1
        else:
            self.epoch = 0

    def finds(
        self,
        check,
        state,
        action="cordon",
        text="2 uncorrectable errors",
        when=1,
        since_boot=False,
        unproven=False,
    ):
        with self.lock:
            self.health["results"] = [r for r in self.health["results"] if r["check"] != check]
            if state != "ok":
                self.health["results"].append(
                    {
                        "check": check,
                        "object": "0000:9f:00.0",
                        "state": state,
                        "action": action,
                        "when": when,
                        "text": text,
                        "since_boot": since_boot,
                        "unproven": unproven,
                        "evidence": ["[ 12.5] amdgpu: \"poison\""],
                        "since": "2026-11-21T08:00:00.000Z",
                        "at": "2026-11-21T08:00:00.000Z",
                    }
                )
            self.health["version"] += 1
            version = self.health["version"]
        wait_until(lambda: self.acked == version, 20, "%s of %s is stored" % (check, self.name))

    def stack(self, **values):
        with self.lock:
            self.health["stack"] = [{"key": k, "value": v} for k, v in values.items()]
            self.health["version"] += 1
            version = self.health["version"]
        wait_until(lambda: self.acked == version, 20, "stack of %s is stored" % self.name)


class Toys(Rig):
    def __init__(self, names):
        super().__init__(nodes=0)
        self.names, self.toys = names, {}

    def up(self):
        super().up()
        self.toys = {n: ToyAgent(self, n) for n in self.names}
        wait_until(
            lambda: [n["health"] for n in self.json("nodes")["items"]] == ["ok"] * len(self.names),
            20,
            "all nodes reported their health",
        )

    def end_jobs(self):
        """A toy starts and ends no rank: its jobs are left as they are."""

    def down(self, check=True):
        for t in self.toys.values():
            t.over = True
        super().down(check)

    def node(self, name):
        return self.json("node", name)

    def start_again(self):
        """Another controller, which every toy has talked to and reported its health."""
        self.kill(self.moed)
        before = {t: t.heard for t in self.toys.values()}
        self.start_moed()
        wait_until(
            lambda: all(t.heard > before[t] + 1 and t.acked == t.health["version"] for t in before),
            20,
            "agents are back",
        )

    def well(self):
        for t in self.toys.values():
            for r in list(t.health["results"]):
                t.finds(r["check"], "ok")
        for n in self.json("nodes")["items"]:
            if n["state"] in ("draining", "drained"):
                self.run("undrain", n["name"])


@suite.test
def a_finding_cordons(rig):
    toy = rig.toys["n1"]
    toy.finds("gpu.ras_ue", "crit")
    n = rig.node("n1")
    equal(
        (n["state"], n["cordoned"], n["health"], n["findings"]),
        ("drained", True, "crit", 1),
        "the node",
    )
    equal(n["reason"], "gpu.ras_ue 0000:9f:00.0: 2 uncorrectable errors", "its reason")
    check = [c for c in n["checks"] if c["check"] == "gpu.ras_ue"][0]
    equal(
        (check["object"], check["state"], check["since"]),
        ("0000:9f:00.0", "crit", "2026-11-21T08:00:00.000Z"),
        "its check",
    )
    shown = rig.run("node", "n1").stdout
    need(
        "gpu.ras_ue 0000:9f:00.0: crit  2 uncorrectable errors" in shown and "poison" in shown,
        "moectl node does not show it:\n" + shown,
    )
    need(
        re.search(r"n1 +drained +8 .*crit +1 ", rig.run("nodes").stdout),
        "moectl nodes does not show it:\n" + rig.run("nodes").stdout,
    )
    need("drained because of a finding: gpu.ras_ue" in rig.run("why", "n1").stdout, "moectl why n1")
    events = [(e["type"], e["message"]) for e in rig.json("events")["items"] if e["node"] == "n1"]
    need(
        ("health.crit", "n1: gpu.ras_ue 0000:9f:00.0: 2 uncorrectable errors") in events,
        "no event health.crit: %s" % events,
    )
    rig.toys["n2"].finds("gpu.ras_ue", "crit")  # three nodes: one may be cordoned
    equal(rig.node("n2")["state"], "up", "the second")
    need(
        [
            e
            for e in rig.json("events")["items"]
            if e["type"] == "health.cordon_capped" and e["node"] == "n2"
        ],
        "no event health.cordon_capped",
    )
    rig.start_again()
    equal(
        (rig.node("n1")["state"], rig.node("n1")["health"], rig.node("n2")["state"]),
        ("drained", "crit", "up"),
        "after a restart of moed",
    )
    rig.run("undrain", "n1")
    equal(rig.node("n1")["state"], "up", "what an operator said")
    equal(rig.node("n2")["state"], "drained", "there is room for the next")
    toy.finds("nic.state", "warn", action="warn")
    equal(rig.node("n1")["state"], "up", "the same finding again")
    rig.well()


@suite.test
def what_placement_refuses_is_said_with_what_ends_it(rig):
    toy = rig.toys["n1"]
    toy.finds("gpu.ras_ue", "crit", since_boot=True)
    toy.finds("gpu.count", "crit")
    said = rig.run("undrain", "n1").stdout
    need(
        "still gets no new work" in said
        and "moectl ack n1 gpu.ras_ue" in said
        and "and 1 more" in said,
        said,
    )
    need("moectl ack n1 gpu.ras_ue" in rig.run("nodes").stdout, rig.run("nodes").stdout)
    need("moectl ack n1 gpu.ras_ue" in rig.run("node", "n1").stdout, rig.run("node", "n1").stdout)
    need("moectl ack n1 gpu.ras_ue" in rig.run("why", "n1").stdout, rig.run("why", "n1").stdout)
    r = rig.run("ack", "n1", "gpu.count", check=False)
    need(
        r.returncode == 1 and "is so now" in r.stderr and "health.preflight=none" in r.stderr,
        r.stderr,
    )
    r = rig.run("ack", "n1", "gpu.hot", check=False)
    need(r.returncode == 5 and "moectl node n1" in r.stderr, r.stderr)
    need(
        "still gets no new work" in rig.run("ack", "n1", "gpu.ras_ue").stdout,
        "gpu.count is still there",
    )
    toy.finds("gpu.count", "ok")
    need("n1 up: takes work again" in rig.run("ack", "n1", "gpu.ras_ue").stdout, "it takes work")
    n = rig.node("n1")
    equal((n["state"], n["refuses"], n["next"], n["gpus_free"]), ("up", None, None, 8), "the node")
    need([c for c in n["checks"] if c["check"] == "gpu.ras_ue"][0]["known"], "its check")
    equal(
        [e["node"] for e in rig.json("events")["items"] if e["type"] == "health.acked"],
        ["n1"],
        "events",
    )
    equal(
        rig.http("POST", "/v1/nodes/n1/ack", "{}", token=rig.token("operator")).status,
        422,
        "no check",
    )
    equal(
        rig.http(
            "POST", "/v1/nodes/n1/ack", '{"check":"gpu.ras_ue"}', token=rig.token("user")
        ).status,
        403,
        "a user",
    )
    toy.finds("gpu.ras_ue", "ok")


@suite.test
def a_new_node_is_only_reported(rig):
    """Checks that never met real hardware: reported, listed by doctor, and nothing else until a
    person trusts them."""
    toy = rig.toys["n0"]
    need(rig.node("n0")["learn_until"], "a node that just came is new")
    toy.finds("gpu.ras_ue", "crit", unproven=True)
    toy.finds("gpu.hot", "crit", unproven=True, text="108 C")
    n = rig.node("n0")
    equal(
        (n["state"], n["cordoned"], n["refuses"], n["gpus_free"], n["health"]),
        ("up", False, None, 8, "crit"),
        "it works on",
    )
    need("gpu.ras_ue 0000:9f:00.0: 2 uncorrectable errors" in n["would_cordon"], n["would_cordon"])
    need("would be cordoned" in rig.run("nodes").stdout, rig.run("nodes").stdout)
    shown = rig.run("node", "n0").stdout
    need("new until" in shown and "moectl ack n0" in shown and "cordons nothing" in shown, shown)
    why = rig.json("why", "n0")
    need(
        [r for r in why["reasons"] if r["code"] == "learning"] and "moectl ack n0" in why["next"],
        why,
    )
    types = [e["type"] for e in rig.json("events")["items"] if e["node"] == "n0"]
    equal((types.count("health.would_cordon"), types.count("node.draining")), (1, 0), "events")
    doctor = rig.run("doctor", "--json", check=False).stdout
    found = [i for i in json.loads(doctor)["items"] if i["check"] == "node.learning"]
    equal([(i["object"], i["state"]) for i in found], [("n0", "warn")], doctor)
    need("gpu.ras_ue" in found[0]["text"] and "moectl ack n0" in found[0]["next"], found)
    rig.start_again()
    equal(
        (rig.node("n0")["state"], rig.node("n0")["learn_until"]),
        ("up", n["learn_until"]),
        "after a restart of moed",
    )
    for body, word in (
        ("{}", "check: is missing"),
        ('{"check":"gpu.hot","learned":true}', "give one of them"),
    ):
        a = rig.http("POST", "/v1/nodes/n0/ack", body, token=rig.token("operator"))
        need(a.status == 422 and word in a.json["detail"], (a.status, a.json))
    said = rig.run("ack", "n0").stdout
    need("trusted" in said or "still gets no new work" in said, said)
    n = rig.node("n0")
    equal(
        (n["cordoned"], n.get("learn_until"), n.get("would_cordon")),
        (True, None, None),
        "a person trusts its checks",
    )
    r = rig.run("ack", "n0", check=False)
    need(r.returncode == 1 and "is not new" in r.stderr, r.stderr)
    rig.well()


@suite.test
def preflight(rig):
    rig.toys["n0"].finds("nic.state", "crit", action="warn", text="DOWN")
    job = rig.submit(RECIPE % ("standard", 24, "standard"))
    wait_until(lambda: rig.job(job)["reason"], 10, "a reason")
    equal(rig.job(job)["state"], "queued", "a job that needs all nodes")
    why = rig.run("why", job).stdout
    need("node n0 is not used: nic.state 0000:9f:00.0: DOWN" in why, why)
    rig.run("cancel", job)
    job = rig.submit(RECIPE % ("listed", 24, "[gpu.ras_ue, stack.same]"))
    wait_until(lambda: rig.job(job)["state"] == "starting", 10, "nic.state is not listed")
    rig.run("cancel", job)
    rig.toys["n2"].stack(kernel="6.8.0-40", rocm="7.0")
    job = rig.submit(RECIPE % ("same", 24, "[stack.same]"))
    wait_until(lambda: "only 16 of 24" in (rig.job(job)["reason"] or ""), 10, "the reason")
    need(
        "stack.same: the largest group of nodes with the same software has kernel 6.8.0-45; n2 "
        "has 6.8.0-40" in rig.run("why", job).stdout,
        rig.run("why", job).stdout,
    )
    rig.run("cancel", job)
    r = rig.run("submit", "-", stdin=RECIPE % ("wrong", 1, "[gpu.ras_eu]"), check=False)
    need(
        r.returncode and "there is no check 'gpu.ras_eu'" in r.stderr and "gpu.ras_ue" in r.stderr,
        r.stderr,
    )
    rig.toys["n2"].stack(kernel="6.8.0-45", rocm="7.0")
    rig.well()


@suite.test
def drift(rig):
    rig.toys["n1"].stack(kernel="6.8.0-40", rocm="7.0")
    d = rig.http("GET", "/v1/drift").json
    equal(
        d,
        {
            "groups": [
                {
                    "gpu": "mi300x",
                    "nodes": 3,
                    "same": 1,
                    "keys": [
                        {
                            "key": "kernel",
                            "value": "6.8.0-45",
                            "count": 2,
                            "values": 2,
                            "odd": [{"value": "6.8.0-40", "count": 1, "nodes": ["n1"]}],
                        }
                    ],
                }
            ],
            "untold": 0,
        },
        "GET /v1/drift",
    )
    out = rig.run("nodes", "--drift").stdout
    need("kernel: 2 x 6.8.0-45\n    1 x 6.8.0-40: n1\n" in out, out)
    rig.toys["n1"].stack(kernel="6.8.0-45", rocm="7.0")
    need("2 of 2 keys equal" in rig.run("nodes", "--drift").stdout, "no drift")


@suite.test
def metrics(rig):
    toy = rig.toys["n0"]
    toy.finds("nic.state", "warn", action="warn", text="it said \"DOWN\"\n")
    with toy.lock:
        toy.sensors = [
            {
                "slot": 3,
                "temp_c": 71.5,
                "power_w": 640,
                "busy_pct": 98,
                "vram_used_bytes": 1.5e11,
                "ue": 0,
            }
        ]

    def text():
        return rig.http("GET", "/metrics").body.decode()

    finding = 'moe_node_check_state{node="n0",check="nic.state",object="0000:9f:00.0"} 1'
    wait_until(lambda: finding in text(), 10, "the finding in /metrics")
    seen = text()
    for line in ("moe_nodes_cordoned 0", "moe_node_checks_left_out 0"):
        need(line + "\n" in seen, "%s is not in /metrics" % line)
    need("moe_gpu_" not in seen, "series of GPUs on the controller")
    wait_until(lambda: rig.node("n0")["sensors"], 10, "sensors of the node")
    equal(rig.node("n0")["sensors"][0]["temp_c"], 71.5, "sensors of the node")
    need(
        "gpu        3: 72 C" in rig.run("node", "n0").stdout
        or "gpu        3: 71 C" in rig.run("node", "n0").stdout,
        rig.run("node", "n0").stdout,
    )
    with toy.lock:
        toy.sensors = []
    rig.well()


def main():
    with Toys(["n0", "n1", "n2"]) as rig:
        return suite.main(rig)


sys.exit(1 if main() else 0)
