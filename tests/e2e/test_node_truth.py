#!/usr/bin/python3
"""What people see of a node whose devices misbehave while jobs run: a real controller, a real agent
and its probes on a made machine of eight MI300X, ranks that really run."""
import os
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
import machine  # noqa: E402
from lib import Suite, command_recipe, equal, need, wait_until  # noqa: E402
from rig import RANK, Rig  # noqa: E402

suite = Suite()
LOOKS = {"probe_device": "1s", "probe_host": "1s", "probe_klog": "1s", "probe_sensors": "1s"}


class Made(Rig):
    """One node, a made machine that its agent discovers and probes."""

    def __init__(self, faults=(), **more):
        self.top = tempfile.mkdtemp(prefix="moe-root-")
        self.root = os.path.join(self.top, "root")
        self.machine = machine.make("mi300x", self.root, faults=list(faults), cores=8)
        super().__init__(
            nodes=1, gpus_per_node=0, agent=dict({"topology": self.root}, **dict(LOOKS, **more))
        )
        self.agent_options["only_fake_gpus"] = False

    def down(self, check=True):
        super().down(check)
        shutil.rmtree(self.top, ignore_errors=True)

    def doc(self):
        return self.json("node", "node-0")

    def looked(self):
        wait_until(lambda: self.doc().get("preflight_done"), 60, "preflight checks")

    def begin(self, name, ranks, argv=("/bin/sleep", "1000"), **sections):
        job = self.submit(command_recipe(name, list(argv), ranks, **sections))
        self.wait_state(job, "running", 60)
        return job

    def vanish(self, gpu):
        self.machine.remove("sys/bus/pci/devices/" + self.machine.gpus[gpu].bdf)
        wait_until(
            lambda: any(
                c["check"] == "gpu.count" and c["state"] == "crit" for c in self.doc()["checks"]
            ),
            60,
            "gpu.count",
        )
        wait_until(
            lambda: any(c["check"] == "gpu.read" for c in self.doc()["checks"]), 60, "gpu.read"
        )


@suite.test
def a_gpu_that_vanishes_under_a_job_is_shown_where_people_look():
    with Made() as rig:
        rig.looked()
        job = rig.begin("vanish", 8)
        bdf = rig.machine.gpus[2].bdf
        need("MISSING" not in rig.run("node", "node-0").stdout, "all eight are there")
        rig.vanish(2)
        tree = rig.run("node", "node-0").stdout
        need(
            0
            < tree.index("check      gpu.count host: crit")
            < tree.index("check      gpu.read " + bdf)
            < tree.index("check      heartbeat"),
            "the worst first:\n" + tree,
        )
        need(
            "gpus_pci is 7, 1 less than gpus_expected (8)" in tree
            and "this GPU could not be read, in whole or in part: %s: no such device" % bdf in tree,
            tree,
        )
        line = [t for t in tree.splitlines() if "GPU 2 " in t and "MISSING" in t]
        need(
            line and bdf in line[0] and "rank 2" in line[0],
            "the slot is not drawn as missing:\n" + tree,
        )
        said = [t for t in tree.splitlines() if t.startswith("! GPU 2 " + bdf)]
        need(
            said
            and "missing since 20" in said[0]
            and "gpu.count, gpu.read" in said[0]
            and "used by %s rank 2" % job in said[0],
            "who says so, since when:\n" + tree,
        )
        svg = rig.http("GET", "/v1/nodes/node-0/topology").body.decode()
        need("missing since 20" in svg, "the picture does not say it")
        why = rig.run("why", job).stdout
        need(
            "rank 2 on node-0: its GPU 2 %s: missing since 20" % bdf in why
            and "[gpu-missing]" in why,
            why,
        )
        for evidence in (
            "no such device",
            "gpus_pci",
            "no rank is ended on the word of a check",
            "moectl drain node-0 --when checkpoint",
        ):
            need(evidence in why, "%s is not in:\n%s" % (evidence, why))
        equal(why.count("[gpu-missing]"), 1, "ranks without a GPU")
        ranks = rig.json("ranks", job)["items"]
        need(ranks[2]["gpu_note"].startswith("missing since 20"), ranks[2])
        equal([r["rank"] for r in ranks if r.get("gpu_note")], [2], "ranks with a note")
        need("2 missing since 20" in rig.run("ranks", job).stdout, rig.run("ranks", job).stdout)
        equal(rig.job(job)["state"], "running", "nothing is ended on a check's word")
        equal(rig.doc()["cordoned"], True, "no new work comes")
        rig.kill(rig.agents["node-0"], signal.SIGTERM)
        version = rig.json("node", "node-0")["info"]
        rig.start_agent("node-0")
        wait_until(
            lambda: any(f["object"] == bdf for f in rig.doc()["info"].get("findings") or []),
            60,
            "the agent looked at the machine again",
        )
        equal(
            [g["bdf"] for g in rig.doc()["info"]["gpus"]],
            [g["bdf"] for g in version["gpus"]],
            "slots after a restart of the agent: the job was given them by number",
        )
        wait_until(
            lambda: "GPU 2  MISSING" in rig.run("node", "node-0").stdout,
            60,
            "the slot is drawn as missing again",
        )
        wait_until(
            lambda: "rank 2 on node-0: its GPU 2 %s: missing since 20" % bdf
            in rig.run("why", job).stdout,
            60,
            "the reason after the restart",
        )
        equal(rig.job(job)["state"], "running", "the job")


@suite.test
def a_gpu_that_vanishes_while_the_agent_loses_its_memory_is_missed():
    with Made() as rig:
        rig.looked()
        slots, bdf = [g["bdf"] for g in rig.doc()["info"]["gpus"]], rig.machine.gpus[2].bdf
        rig.kill(rig.agents["node-0"], signal.SIGTERM)
        machine.apply(rig.machine, "gone=2")
        shutil.rmtree(os.path.join(rig.dir, "state", "node-0"))
        rig.start_agent("node-0")
        count = wait_until(
            lambda: [
                c for c in rig.doc()["checks"] if c["check"] == "gpu.count" and c["state"] == "crit"
            ],
            60,
            "gpu.count",
        )[0]
        for line in (
            "gpus_pci = 7",
            "gpus_expected = 8",
            "gpus_expected.by = what was found of this machine earlier in this boot",
            "gpus_pci.missing = " + bdf,
        ):
            need(line in count["evidence"], "%s is not in %s" % (line, count["evidence"]))
        equal(
            [g["bdf"] for g in rig.doc()["info"]["gpus"]],
            slots,
            "slots keep their numbers: the controller knew them",
        )
        need(
            [
                f
                for f in rig.doc()["info"]["findings"]
                if f["object"] == bdf and "earlier in this boot" in f["text"]
            ],
            rig.doc()["info"]["findings"],
        )
        wait_until(
            lambda: "GPU 2  MISSING" in rig.run("node", "node-0").stdout,
            60,
            "the slot is drawn as missing",
        )
        # what the agent was told to leave out is not missing, whatever it remembers
        rig.kill(rig.agents["node-0"], signal.SIGTERM)
        shutil.rmtree(os.path.join(rig.dir, "state", "node-0"))
        rig.agent_options["use_gpus"] = "0-1,4"
        rig.start_agent("node-0")
        wait_until(
            lambda: len(rig.doc()["info"]["gpus"]) == 4,
            60,
            "three that may be used, and the one that is gone",
        )


def busy(rig):
    """All GPUs spin, as in a collective that never ends; GPU 3 does nothing: it is the one that the
    others wait for."""
    for i in range(8):
        rig.machine.metrics(
            i,
            **(
                dict(socket_power=140, gfx_activity=0, hotspot=41)
                if i == 3
                else dict(socket_power=640 + i, gfx_activity=100, hotspot=70 + i)
            ),
        )
    wait_until(
        lambda: sorted(g.get("busy_pct") for g in rig.doc().get("sensors", [])) == [0] + [100] * 7,
        60,
        "sensors of all eight GPUs",
    )
    wait_until(
        lambda: len(rig.doc().get("nic_sensors", [])) == 8, 60, "counters of all eight cards"
    )


def tells(lines, job_lines):
    need(
        any(
            "last readings of 8 of its 8 GPUs: power 140 to 647 W" in line
            and "busy 0 to 100 %, median 100" in line
            for line in lines
        ),
        "no summary: %s" % lines,
    )
    odd = [line for line in lines if "rank 3 on node-0: GPU 3 " in line]
    need(
        odd
        and "140 W, busy 0 %, 41 C" in odd[0]
        and "NIC mlx5_3 ACTIVE 400 Gb/s, link went down 0" in odd[0]
        and "s before" in odd[0],
        "no line of the odd one: %s" % lines,
    )
    equal(
        len([line for line in lines if "rank" in line and "GPU" in line and "NIC mlx5_" in line]),
        job_lines,
        "GPUs that are reported",
    )


@suite.test
def a_bus_that_is_not_shown_has_lost_nothing():
    """An agent without its memory in a container without /sys: what the controller knew of the node
    is not missing from a bus that nobody sees."""
    with Made() as rig:
        rig.looked()
        rig.kill(rig.agents["node-0"], signal.SIGTERM)
        shutil.rmtree(os.path.join(rig.dir, "state", "node-0"))
        rig.machine.remove("sys/bus/pci")
        rig.machine.remove("sys/class/kfd")
        rig.start_agent("node-0")
        wait_until(lambda: rig.doc()["info"]["gpus"] == [], 60, "no GPU is seen")
        with open(os.path.join(rig.dir, "log", "node-0.log")) as log:
            text = log.read()
        need(text.count("connected to") == 2 and "no longer on the bus" not in text, text)


@suite.test
def what_gpus_and_cards_did_is_evidence_of_a_stall_and_of_a_failure():
    with Made() as rig:
        rig.looked()
        busy(rig)
        job = rig.begin(
            "stall", 8, [RANK, "--steps", "1000000", "--step-ms", "100", "--truth", rig.top]
        )
        wait_until(lambda: (rig.job(job)["iteration"] or 0) >= 3, 60, "iterations")
        need(
            "[readings]" not in rig.run("why", job).stdout, "a job that advances needs no evidence"
        )
        pids = [r["pid"] for r in rig.json("ranks", job)["items"]]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: "[readings]" in rig.run("why", job).stdout, 60, "the reason of a stall")
        reason = [r for r in rig.json("why", job)["reasons"] if r["code"] == "readings"][0]
        tells([reason["text"]] + reason["evidence"], 8)
        need(reason["text"].startswith("it makes no progress; last readings"), reason["text"])
        os.kill(pids[5], signal.SIGKILL)
        wait_until(lambda: rig.json("report", job)["incidents"], 60, "an incident")
        tells(rig.json("report", job)["incidents"][0]["evidence"], 8)
        failures = rig.doc()["failures"]
        equal(
            [(f["job"], f["class"], f["weight"]) for f in failures],
            [(job, "transient", 0.5)],
            "failures that began on the node",
        )
        need(
            0.4 < rig.doc()["lemon_score"] <= 0.5
            and 0.4 < rig.json("nodes")["items"][0]["lemon_score"] <= 0.5,
            "lemon_score %s" % rig.doc()["lemon_score"],
        )
        shown = rig.run("node", "node-0").stdout
        need(
            "lemon      0.50: failures that began here" in shown
            and "signal 9 SIGKILL, counts 0.5" in shown,
            shown,
        )
        need("nic        mlx5_3: ACTIVE, 400 Gb/s, link went down 0" in shown, shown)


class Unlike(Rig):
    """Three nodes of one kind; the last has another agent.yaml, checks and environment profiles."""

    def spawn(self, program, name, options, **env):
        if name == "node-2":
            data = os.path.join(self.dir, "data")
            for sub, text in (
                (
                    "env/site.yaml",
                    "env: 1\nlayer: profile\nvars: {SITE_ONLY: {value: 1, reason: here only}}\n",
                ),
                ("health/site.yaml", SITE_CHECK),
            ):
                os.makedirs(os.path.dirname(os.path.join(data, sub)), exist_ok=True)
                with open(os.path.join(data, sub), "w") as f:
                    f.write(text)
            options, env = dict(options, reserve_cores=1, health_disable="host.thp"), dict(
                env, MOE_DATA_DIR=data
            )
        return super().spawn(program, name, options, **env)


SITE_CHECK = """checks:
  - id: host.site
    what: this node is loaded
    next: nothing
    source: a test
    area: host
    when: [periodic]
    reading: load1
    warn_above: 1e9
"""


@suite.test
def what_is_configured_differently_is_drift():
    with Unlike(nodes=3, gpus_per_node=1, agent={"probe_host": "1s"}) as rig:

        def keys():
            groups = rig.json("nodes", "--drift")["groups"]
            return (
                {k["key"]: k for g in groups for k in g["keys"]}
                if groups and groups[0]["nodes"] == 3
                else {}
            )

        wait_until(lambda: len(keys()) >= 4, 90, "fingerprints of all three")
        seen = keys()
        equal(
            [seen["config.reserve_cores"][k] for k in ("value", "count")],
            [None, 2],
            "what most have",
        )
        equal(
            seen["config.reserve_cores"]["odd"],
            [{"value": "1", "count": 1, "nodes": ["node-2"]}],
            "who has another",
        )
        need(
            seen["health.off"]["odd"][0]["nodes"] == ["node-2"]
            and "host.thp" in seen["health.off"]["odd"][0]["value"],
            seen["health.off"],
        )
        for key in ("health.checks", "env.profiles"):
            equal([seen[key]["count"], seen[key]["odd"][0]["nodes"]], [2, ["node-2"]], key)
        need(
            "agent" not in seen and "config.node" not in seen and "config.state_dir" not in seen,
            "what is equal, or a node's own, is no drift: %s" % list(seen),
        )
        stack = {s["key"]: s["value"] for s in rig.json("node", "node-0")["stack"]}
        equal(stack["agent"], rig.json("node", "node-0")["version"], "the agent's version")
        need(
            "config.reserve_cores: 2 x none\n    1 x 1: node-2\n"
            in rig.run("nodes", "--drift").stdout,
            rig.run("nodes", "--drift").stdout,
        )
    with Made() as rig:
        wait_until(lambda: rig.doc().get("stack"), 60, "a fingerprint")
        stack = {s["key"]: s["value"] for s in rig.doc()["stack"]}
        equal(
            stack.get("env.NCCL_IB_HCA"),
            ",".join("mlx5_%d:1" % i for i in range(8)),
            "the network of ranks on the whole node",
        )


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
