#!/usr/bin/python3
"""The health of a node, through a real agent with moe-probe, as a scripted controller hears it:
recorded and made machines with planted faults, probes that hang, GPUs that vanish, orders to
check after a failure, programs of checks, what survives a restart of the agent."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
import machine
from lib import BUILD, PATIENCE, ROOT, Skipped, Suite, command_recipe, equal, need, wait_until
from node_rig import Node, processes
from rig import Rig

suite = Suite()
SHARED = os.path.join(ROOT, "..", "shared/data/hardware")
# the whole list of probes is done once at once; what needs a second probe gets it soon
FAST = ["probe_device=1s", "probe_host=1s", "probe_klog=1s", "probe_sensors=1s"]
MINUTES = ["probe_device=10m", "probe_host=10m", "probe_klog=10m", "probe_sensors=10m"]


class Machine(Node):
    """An agent on a root directory. kind: of machine.py, or a ready directory."""

    def __init__(self, kind, faults=(), options=FAST, cores=4, **more):
        self.root_dir = tempfile.mkdtemp(prefix="moe-root-")
        self.machine = None
        if os.path.isdir(kind):
            root = kind
        else:
            root = self.root_dir + "/root"
            self.machine = machine.make(kind, root, faults=list(faults), cores=cores)
        super().__init__(
            gpus=0, options=["topology=" + root, "only_fake_gpus=false"] + list(options), **more
        )
        self.root = root

    def __exit__(self, *exc):
        super().__exit__(*exc)
        shutil.rmtree(self.root_dir, ignore_errors=True)

    def health(self):
        return self.moed.health.get("n0")

    def results(self):
        return {(r["check"], r["object"]): r for r in (self.health() or {}).get("results", [])}

    def looked(self, deadline=20):
        """The first full round of probes, with what needs two findings in a row still open or
        not."""
        return self.moed.wait(
            lambda: self.health()
            and self.health()["ok"] > 3
            and self.health()["preflight_done"]
            and self.health(),
            deadline,
            "preflight; health: %s" % json.dumps(self.health())[:500],
        )

    def find(self, check, obj, state, deadline=20):
        def there():
            r = self.results().get((check, obj))
            return r if r and r["state"] == state else None

        try:
            return self.moed.wait(there, deadline, "%s %s %s" % (check, obj, state))
        except AssertionError as e:
            raise AssertionError(
                "%s; results: %s" % (e, json.dumps(list(self.results().values()), indent=1)[:3000])
            )

    def finds_all(self, expected, what, left_out=()):
        """These findings are made, and then no other is there."""
        for f in sorted(expected):
            self.find(*f, deadline=45)
        self.moed.wait(
            lambda: {f for f in found(self.results()) if f[0] not in left_out} == expected,
            20,
            lambda: "%s: found are %s, not %s" % (what, found(self.results()), expected),
        )


def found(results):
    """check -> objects and states, without what a stack or the host of this machine may say."""
    return {(r["check"], r["object"], r["state"]) for r in results.values()}


def unpack(name):
    archive = os.path.join(SHARED, "synthetic", name + ".tar.xz")
    if not os.path.exists(archive):
        raise Skipped("no " + archive)
    dir = tempfile.mkdtemp(prefix="moe-tree-")
    subprocess.run(["tar", "-xJf", archive, "-C", dir], check=True)
    inner = [os.path.join(dir, d) for d in os.listdir(dir)]
    return dir, inner[0] if len(inner) == 1 and not os.path.isdir(os.path.join(dir, "sys")) else dir


@suite.test
def healthy_machines_give_no_finding():
    for kind in ("mi300x", "mi300x-cpx", "mi355x", "thor2", "h200-vm", "cpu"):
        with Machine(kind) as n:
            n.looked()
            n.moed.wait(lambda: n.moed.syncs > 12, 20, "syncs")  # a second round of looks
            n.finds_all(set(), kind)


@suite.test
def this_machine_gives_no_finding_against_gpus_and_settings():
    with Node(gpus=2, options=FAST) as n:
        # what a job waits for is reported at once; the stack's probe may end after that of the host
        health = n.moed.wait(
            lambda: n.moed.health.get("n0")
            and n.moed.health["n0"]["preflight_done"]
            and n.moed.health["n0"].get("stack")
            and n.moed.health["n0"],
            20,
            "preflight, stack",
        )
        bad = [
            r
            for r in health["results"]
            if not r["check"].startswith("klog.") and not r["check"].startswith("host.disk")
        ]
        equal(bad, [], "results")
        need(
            not health.get("failure_checks"),
            "a node without GPUs has no checks that a restart waits for",
        )
        need(any(s["key"] == "kernel" for s in health["stack"]), "stack: %s" % health["stack"])


# what each fault of machine.py must be found as: (check, device, worst state); device: gN of GPUs,
# nN of NICs, host
FAULTS = {
    "governor": {("host.governor", "host", "warn")},
    "numa_balancing": {("host.numa_balancing", "host", "warn")},
    "memory_low": {("host.mem", "host", "crit"), ("host.mem_low", "host", "warn")},
    "memory_missing": {("host.mem_numa", "host", "warn")},
    "nic_down": {
        ("nic.state", "n1", "crit"),
        ("nic.link", "n1", "crit"),
        ("nic.rate", "n1", "crit"),
    },
    "nic_flap": {("nic.flapped", "n3", "warn")},
    "nic_slow": {("nic.rate", "n2", "crit")},
    "vram_held": {("gpu.vram_held", "g2", "crit")},
    "ras_ue": {
        ("gpu.ras_ue", "g4", "crit"),
        ("gpu.poison", "g4", "warn"),
        ("gpu.pages_pending", "g4", "crit"),
        ("gpu.pages_retired", "g4", "warn"),
    },
    "ras_ce": set(),
    "pcie": {
        ("gpu.pcie_width", "g5", "crit"),
        ("gpu.pcie_speed", "g5", "crit"),
        ("gpu.pcie_nak", "g5", "warn"),
        ("gpu.pcie_recovery", "g5", "warn"),
        ("gpu.aer_nonfatal", "g5", "warn"),
    },
    "xgmi_error": {("gpu.xgmi_error", "g6", "warn")},
    "hive": {("gpu.hive", "g6", "warn")},
    "thermal": {("gpu.hot", "g7", "crit")},
    "ppt": set(),
    "partition": {("gpu.compute_partition", "g3", "crit")},
    "power_cap": {("gpu.power_cap", "g3", "warn")},
    "vbios": {("gpu.vbios", "g3", "warn")},
    "no_driver": {("gpu.driver", "host", "crit")},
    "no_render": {("gpu.render", "host", "crit")},
}


def planted(n, expected):
    names = {"host": "host"}
    names.update({"g%d" % g.index: g.bdf for g in n.machine.gpus})
    names.update({"n%d" % i: os.path.basename(c.ib) for i, c in enumerate(n.machine.nics)})
    return {(check, names[where], state) for check, where, state in expected}


@suite.test
def each_fault_is_found_and_nothing_else():
    for fault, expected in FAULTS.items():
        with Machine("mi300x", [fault]) as n:
            n.looked()
            n.finds_all(planted(n, expected), fault)


@suite.test
def what_the_node_should_be_is_compared():
    """expect_memory and expect_partition of agent.yaml: within 7 %, and this very partition."""
    mem = machine.KINDS["mi300x"]["mem"] * 2
    with Machine(
        "mi300x",
        ["partition=3"],
        options=FAST
        + [
            "expect_memory=%d" % (mem * 106 // 100),
            "expect_partition=SPX/NPS1",
            "health_disable=gpu.compute_partition",
        ],
    ) as n:
        r = n.find("gpu.partition", n.machine.gpus[3].bdf, "crit")
        need("partition is CPX/NPS1, not SPX/NPS1" in r["text"] and r["action"] == "cordon", r)
        n.looked()
        n.finds_all({("gpu.partition", n.machine.gpus[3].bdf, "crit")}, "findings")
    with Machine(
        "mi300x-cpx",
        ["memory_missing"],
        options=FAST + ["expect_memory=%d" % mem, "expect_partition=CPX"],
    ) as n:
        text = n.find("host.mem_total", "host", "crit")["text"]
        need("below 93 %" in text, text)
        n.find("host.mem_numa", "host", "warn")
        n.looked()
        equal(
            {f[:2] for f in found(n.results())},
            {("host.mem_total", "host"), ("host.mem_numa", "host")},
            "findings",
        )
    r = subprocess.run(
        [
            os.path.join(BUILD, "moe-agent"),
            "--set",
            "controller=unix:/nowhere",
            "--set",
            "expect_partition=spx",
            "--check-config",
        ],
        capture_output=True,
        text=True,
    )
    need(
        r.returncode != 0
        and "expect_partition: 'spx' is not a partition such as SPX/NPS1" in r.stderr,
        (r.returncode, r.stderr),
    )


@suite.test
def an_address_that_is_missing_is_found():
    with Machine("thor2", ["nic_no_gid"]) as n:
        n.find("nic.gid", os.path.basename(n.machine.nics[2].ib), "crit", deadline=45)


@suite.test
def a_bad_gpu_metrics_is_named_and_the_rest_is_judged():
    for fault in ("metrics_short", "metrics_empty", "metrics_version"):
        with Machine("mi300x", [fault, "ras_ue=0"]) as n:
            bdf = n.machine.gpus[0].bdf
            need("gpu_metrics" in n.find("gpu.read", bdf, "unknown")["text"], "the file is named")
            n.find("gpu.ras_ue", bdf, "crit")
            need("in a row" in n.find("gpu.read", bdf, "warn")["text"], "three in a row warn")
            equal(n.results()[("gpu.read", bdf)]["action"], "warn", "it never does more")


@suite.test
def garbage_is_named_and_never_a_value():
    """Files of two GPUs and a card that say nothing sensible: each is a named finding of its
    device, never a cordon; what else these devices say is judged; the others stay without
    findings."""
    with Machine("mi300x", ["ras_ue=4"]) as n:
        nic = n.machine.nics[2]
        for path in (
            "{gpu3}/vendor",
            "{gpu4}/vendor",
            "{gpu4}/ras/gpu_vram_bad_pages",
            "{gpu3}/ras/umc_err_count",
            "{gpu3}/current_compute_partition",
            "{ib2}/ports/1/state",
        ):
            n.machine.write(path, b"\xff\xfe\x1b[31m\0garbage\n")
        n.machine.remove("{gpu3}/current_link_width")
        os.mkdir(n.machine.where("{gpu3}/current_link_width"))
        for i, words in (
            (
                3,
                (
                    "vendor: it is no text: '??",
                    "umc_err_count",
                    "current_compute_partition",
                    "current_link_width: Is a directory",
                ),
            ),
            (4, ("vendor", "gpu_vram_bad_pages")),
        ):
            text = n.find("gpu.read", n.machine.gpus[i].bdf, "warn", deadline=45)["text"]
            need(all(w in text for w in words) and text.isprintable(), text)
        n.find("nic.read", os.path.basename(nic.ib), "warn", deadline=45)
        n.find("host.read", "host", "warn", deadline=45)
        g3, g4 = n.machine.gpus[3].bdf, n.machine.gpus[4].bdf
        n.find("gpu.ras_ue", g4, "crit")
        equal(
            {f for f in found(n.results()) if f[2] == "crit"},
            {("gpu.ras_ue", g4, "crit")},
            "critical findings",
        )
        n.finds_all(
            {
                ("gpu.read", g3, "warn"),
                ("gpu.read", g4, "warn"),
                ("nic.read", os.path.basename(nic.ib), "warn"),
                ("host.read", "host", "warn"),
                ("gpu.poison", g4, "warn"),
            },
            "findings; how often the stack was read is a matter of time",
            ("gpu.ras_ue", "stack.read"),
        )


@suite.test
def the_kernel_log_is_judged_and_stays_judged():
    with Machine("mi300x", ["klog"]) as n:
        r = n.find("klog.ras-fatal", "host", "crit")
        need(r["evidence"] and "hardware error" in r["evidence"][0], r)
        equal(r["action"], "cordon", "action")
        n.stop_agent(signal.SIGTERM)
        n.moed.health.clear()
        n.start()
        r = n.find("klog.ras-fatal", "host", "crit")
        need(r["evidence"], "evidence is kept over a restart of the agent")
        with open(os.path.join(n.root, "dev/kmsg"), "a") as f:
            f.write("[ 9999.000000] amdgpu 0000:0c:00.0: GPU is throttled\n")
        n.find("klog.gpu-throttled", "host", "warn")


@suite.test
def counters_are_judged_by_what_they_did_in_this_boot():
    """What a counter shows at the first probe is history, reported as a warning; a rise is a
    finding, also when the agent was killed in between; another GPU in the slot begins anew."""
    with Machine("mi300x", ["xgmi_error=6"]) as n:
        g, other = n.machine.gpus[6], n.machine.gpus[3]
        text = n.find("gpu.xgmi_error", g.bdf, "warn")["text"]
        need("stood at 7 when it was first looked at in this boot" in text, text)
        n.looked()
        memory = os.path.join(n.dir + "/state", "health.json")
        n.moed.wait(
            lambda: os.path.exists(memory)
            and len(
                [c for c in json.load(open(memory))["counters"] if c["reading"] == "xgmi_error"]
            )
            == 8,
            30,
            "baselines on disk",
        )
        for signum, value in ((signal.SIGKILL, 0), (signal.SIGTERM, 2)):
            n.stop_agent(signum)
            n.moed.health.clear()
            n.machine.write("{gpu3}/xgmi_error", value)
            n.start()
            # and not more, however often it is reported
            n.find("gpu.xgmi_error", g.bdf, "warn")
        r = n.find("gpu.xgmi_error", other.bdf, "crit")
        need("grew by 2 in this boot" in r["text"] and r["action"] == "cordon", r)
        n.stop_agent(signal.SIGKILL)
        n.moed.health.clear()
        n.machine.write("{gpu3}/unique_id", "00c0ffee00c0ffee")
        n.start()
        need(
            "stood at 2 when" in n.find("gpu.xgmi_error", other.bdf, "warn")["text"],
            "another GPU in the slot",
        )


@suite.test
def link_flaps_count_over_restarts_of_the_agent():
    with Machine("mi300x") as n:
        n.looked()
        nic = os.path.basename(n.machine.nics[3].ib)
        for downs in (1, 2, 3):
            n.stop_agent(signal.SIGTERM)
            n.moed.health.clear()
            n.machine.write("{ib3}/ports/1/counters/link_downed", downs)
            n.start()
            n.find("nic.flap", nic, "warn" if downs < 3 else "crit", deadline=45)


@suite.test
def the_recorded_tree_with_faults():
    dir, root = unpack("fakeroot-mi300x-faults")
    try:
        with Machine(root, options=FAST) as n:
            expected = {
                ("host.governor", "host", "warn"),
                ("host.mem", "host", "crit"),
                ("host.numa_balancing", "host", "warn"),
                ("gpu.vram_held", "0000:1e:00.0", "crit"),
                ("nic.flapped", "mlx5_3", "warn"),
                ("gpu.ras_ue", "0000:9f:00.0", "crit"),
                ("gpu.poison", "0000:9f:00.0", "warn"),
                ("gpu.pages_retired", "0000:9f:00.0", "warn"),
                ("gpu.pcie_width", "0000:af:00.0", "crit"),
                ("gpu.pcie_speed", "0000:af:00.0", "crit"),
                ("gpu.xgmi_error", "0000:bf:00.0", "warn"),
                ("gpu.hot", "0000:df:00.0", "crit"),
                ("nic.state", "mlx5_1", "crit"),
                ("nic.link", "mlx5_1", "crit"),
            }
            for f in sorted(expected):
                n.find(*f, deadline=45)
            other = {
                ("host.mem_low", "host"),
                ("nic.rate", "mlx5_1"),
                ("gpu.pcie_nak", "0000:af:00.0"),
                ("gpu.pcie_recovery", "0000:af:00.0"),
                ("gpu.aer_nonfatal", "0000:af:00.0"),
            }
            n.moed.wait(
                lambda: not {f for f in found(n.results()) - expected if f[:2] not in other},
                20,
                lambda: "nothing else but %s" % (found(n.results()) - expected),
            )
    finally:
        shutil.rmtree(dir)


@suite.test
def recorded_healthy_trees():
    for name in ("fakeroot-mi300x", "fakeroot-mi355x"):
        dir, root = unpack(name)
        try:
            with Machine(root, options=FAST) as n:
                n.looked()
                n.moed.wait(lambda: n.moed.syncs > 12, 20, "syncs")
                n.finds_all(set(), name)
        finally:
            shutil.rmtree(dir)


@suite.test
def sensors_arrive():
    with Machine("mi300x") as n:
        n.moed.wait(lambda: len(n.moed.sensors.get("n0", {})) == 8, 20, "sensors of 8 GPUs")
        s = n.moed.sensors["n0"][0]
        need(
            10 < s["temp_c"] < 110
            and s["power_w"] > 0
            and s["vram_used_bytes"] > 0
            and s["ue"] == 0,
            s,
        )


@suite.test
def a_probe_that_hangs_makes_one_gpu_unknown():
    with Machine("mi300x") as n:
        n.looked()
        g = n.machine.gpus[3]
        path = os.path.join(n.root, g.path, "gpu_metrics")
        os.unlink(path)
        os.mkfifo(path)  # opening it blocks, as a read of a wedged GPU does
        r = n.find("gpu.read", g.bdf, "unknown", deadline=30)
        need("in time" in r["text"], r)
        before = n.moed.syncs
        n.moed.wait(lambda: n.moed.syncs > before + 3, 20, "the agent goes on talking")
        probes = [p for p in processes() if "moe-probe" in p[1] and g.bdf in p[1]]
        need(len(probes) <= 1, "at most one process for the GPU: %s" % probes)
        n.moed.wait(
            lambda: {f[1] for f in found(n.results()) if f[0].startswith("gpu.")} == {g.bdf},
            20,
            lambda: "GPUs with a finding: %s" % found(n.results()),
        )
        # the hanging one does not hide what the host says
        n.machine.remove("sys/bus/pci/devices/" + n.machine.gpus[5].bdf)
        n.find("gpu.count", "host", "crit", deadline=60)


@suite.test
def a_gpu_that_vanishes():
    with Machine("mi300x") as n:
        n.looked()
        g = n.machine.gpus[2]
        n.machine.remove("sys/bus/pci/devices/" + g.bdf)
        need("7" in n.find("gpu.count", "host", "crit")["text"], "how many are left")
        r = n.find("gpu.read", g.bdf, "unknown")
        need(
            "no such device" in r["text"]
            and r["next"].startswith("'no such device': it is off the bus")
            and "reset" not in r["next"],
            r,
        )
        n.stop_agent(signal.SIGTERM)
        n.moed.health.clear()
        n.start()
        n.find("gpu.count", "host", "crit")  # a restarted agent remembers how many there were


@suite.test
def versions_grow_only_with_changes_and_are_repeated_until_acknowledged():
    with Machine("mi300x", ["numa_balancing"]) as n:
        n.looked()
        settled = {}

        def unchanged():
            """Ten syncs with one version: what a third probe in a row may still change has changed
            by then."""
            last = n.moed.healths[-1]["version"]
            return n.moed.syncs > settled.setdefault(last, n.moed.syncs) + 10 and last

        last = n.moed.wait(unchanged, 60, "nothing changes")
        with n.moed.changed:
            n.moed.keep_health = False
            count = len(n.moed.healths)
        n.moed.wait(
            lambda: len(n.moed.healths) > count + 3, 20, "repetition of what is not acknowledged"
        )
        equal(n.moed.healths[-1]["version"], last, "the same version")


@suite.test
def an_order_to_check_is_answered_with_what_was_found():
    with Machine("mi300x", options=MINUTES) as n:
        n.looked()
        equal(found(n.results()), set(), "before")
        need(n.health()["failure_checks"], "there are checks to wait for")
        n.machine.ras(1, "umc", ue=3)
        done = n.moed.order("check", 7, 2)
        health = n.moed.wait(
            lambda: [c for c in n.health().get("checked", []) if c == {"job": 7, "attempt": 2}]
            and n.health(),
            20,
            "the order is done",
        )
        equal(
            {(r["check"], r["object"]) for r in health["results"]},
            {("gpu.ras_ue", n.machine.gpus[1].bdf)},
            "found by it",
        )
        done()
        n.moed.wait(
            lambda: not n.health().get("checked"),
            10,
            "the order is forgotten when it is no longer due",
        )


@suite.test
def vram_counts_only_when_no_job_of_ours_is_there():
    with Machine("mi300x", options=MINUTES) as n:
        n.looked()
        n.launch(["/bin/sh", "-c", "sleep 600"], n=1, wait="running")
        n.machine.write("{gpu0}/mem_info_vram_used", 20924743680)
        order = n.moed.order("check", 7, 2)
        n.moed.wait(lambda: n.health().get("checked"), 20, "checked")
        need(("gpu.vram_held", n.machine.gpus[0].bdf) not in n.results(), "a job holds it")
        order()
        n.moed.order("kill", 1, 1)
        n.moed.wait_note(1, 1, "gone")
        need(
            "19.5 GiB"
            in n.find("gpu.vram_held", n.machine.gpus[0].bdf, "crit", deadline=60)["text"],
            "text",
        )


def write_checks(dir, checks):
    """config with further checks of a site."""
    shutil.copytree(os.path.join(ROOT, "config"), dir)
    with open(os.path.join(dir, "health/site.yaml"), "w") as f:
        f.write(checks)
    return {"MOE_DATA_DIR": dir}


SITE = """checks:
  - {id: site.nagios, what: mount, next: look, source: here, area: host, when: [preflight], argv:\
 [sh, -c, 'echo "WARNING: mount is slow"; exit 1']}
  - {id: site.number, what: copy, next: look, source: here, area: host, when: [preflight], argv:\
 [sh, -c, 'echo rate 3.5; echo rate 2.5 GB/s'], match: 'rate ([0-9.]+)', crit_below: 3, action:\
 cordon}
  - {id: site.late, what: slow, next: look, source: here, area: host, when: [preflight], argv:\
 [sleep, '300'], deadline: 500ms}
  - {id: site.absent, what: x, next: look, source: here, area: host, when: [preflight], argv:\
 [no-such-program]}
  - {id: site.off, what: x, next: look, source: here, area: host, when: [preflight], argv:\
 ['false']}
"""


@suite.test
def programs_of_a_site():
    with tempfile.TemporaryDirectory() as tmp, Node(
        gpus=2,
        options=FAST + ["health_disable=site.off, no.such"],
        env=write_checks(tmp + "/config", SITE),
    ) as n:

        def all_there():
            r = {r["check"]: r for r in n.moed.health.get("n0", {}).get("results", [])}
            return r if {"site.nagios", "site.number", "site.late"} <= set(r) else None

        r = n.moed.wait(all_there, 20, "results of programs")
        equal(
            (r["site.nagios"]["state"], "mount is slow" in r["site.nagios"]["text"]),
            ("warn", True),
            "exit code 1",
        )
        equal(
            (
                r["site.number"]["state"],
                "2.5" in r["site.number"]["text"],
                r["site.number"]["action"],
            ),
            ("crit", True, "cordon"),
            "the last number",
        )
        equal(
            (r["site.late"]["state"], "in time" in r["site.late"]["text"]),
            ("unknown", True),
            "a program that is late",
        )
        need("site.absent" not in r and "site.off" not in r, r)
        need("no check 'no.such'" in n.log(), "a misspelt id is reported")


@suite.test
def a_program_makes_way_for_a_job():
    site = (
        "checks:\n  - {id: site.load, what: load, next: look, source: here, area: host, when: "
        "[preflight], argv: [sh, -c, 'sleep 4711 & wait'], deadline: 5m}\n"
    )
    with tempfile.TemporaryDirectory() as tmp, Node(
        gpus=2, options=FAST, env=write_checks(tmp + "/config", site)
    ) as n:
        n.moed.wait(
            lambda: [p for p in processes() if "sleep 4711" in p[1].replace("\0", " ")],
            20,
            "the program runs",
        )
        n.launch(["/bin/sh", "-c", "sleep 600"], n=1, wait="running")
        n.moed.wait(
            lambda: not [p for p in processes() if "sleep 4711" in p[1].replace("\0", " ")],
            10,
            "it and what it started are ended",
        )


@suite.test
def what_a_job_waits_for_does_not_wait_for_a_beat():
    """Preflight of a new node and the checks after a failure leave with news: with a beat of a
    minute a job starts, loses a rank and starts again long before the next beat. The same where
    the file of the checks cannot be read, and so nothing is checked."""
    for bad in (None, "checks:\n  - {id: a.b, colour: red}\n"):
        start_and_restart_within_a_beat(bad)


WITHIN_A_BEAT = 15 / PATIENCE  # what waits for the agent's next word takes 20 s and more


def start_and_restart_within_a_beat(bad_checks):
    with tempfile.TemporaryDirectory(prefix="moe-root-") as tmp:
        machine.make("mi300x", tmp + "/root", faults=[], cores=4)
        slow = Rig(nodes=1, moed={"beat_ms": 60000, "suspect_ms": 120000, "down_ms": 300000})
        slow.agent_options.update(topology=tmp + "/root", only_fake_gpus=False, gpus=0)
        if bad_checks:
            slow.agent_env.update(write_checks(tmp + "/config", bad_checks))
        with slow as rig:
            os.mkdir(tmp + "/ckpt")
            job = rig.submit(
                command_recipe(
                    "waits",
                    ["/bin/sh", "-c", "exec sleep 1000"],
                    gpus=2,
                    checkpoint={"dir": tmp + "/ckpt"},
                    recovery={"grace": "0s"},
                )
            )
            rig.wait_state(job, "running", WITHIN_A_BEAT)
            os.kill(rig.rank_pids(job)[0], signal.SIGKILL)
            wait_until(
                lambda: rig.job(job)["attempt"] == 2 and rig.job(job)["state"] == "running",
                WITHIN_A_BEAT,
                "the next attempt; %s" % json.dumps(rig.json("why", job)),
            )


@suite.test
def bad_check_files_are_told_and_stop_nothing():
    with tempfile.TemporaryDirectory() as tmp, Node(
        gpus=2,
        options=FAST,
        env=write_checks(tmp + "/config", "checks:\n  - {id: a.b, colour: red}\n"),
    ) as n:
        health = n.moed.wait(lambda: n.moed.health.get("n0"), 20, "health")
        r = health["results"][0]
        equal(
            (r["check"], r["state"], "site.yaml:2:" in r["text"]), ("host.checks", "warn", True), r
        )
        need(health["preflight_done"], "the node can be used")


@suite.test
def health_off_tells_nothing():
    with Node(gpus=2, options=["health=off"]) as n:
        n.moed.wait(lambda: n.moed.syncs > 5, 20, "syncs")
        equal((n.moed.healths, n.moed.hellos[0].get("health", False)), ([], False), "health")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
