#!/usr/bin/python3
"""Discovery when a file of a device hangs, as those of a wedged GPU do: a FIFO, whose opening
blocks, in the root directory of a made machine. Through a real agent, as a scripted controller
hears it; and through moectl."""
import ctypes
import functools
import json
import os
import shutil
import signal
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
import machine  # noqa: E402
from lib import (
    Cluster,
    Skipped,
    Suite,
    command_recipe,
    equal,
    moectl,
    need,
    wait_until,
)  # noqa: E402
from node_rig import Node, processes  # noqa: E402

suite = Suite()
# a look at the machine takes 50 ms; what hangs is looked for again every second
OPTIONS = [
    "topology=%s",
    "only_fake_gpus=false",
    "discover_deadline=5s",
    "probe_device=1s",
    "probe_host=1s",
]
PTRACE_SEIZE, PTRACE_O_TRACEEXIT, PTRACE_DETACH = 0x4206, 0x40, 17


class Machine(Node):
    def __init__(self, options=()):
        self.root_dir = tempfile.mkdtemp(prefix="moe-root-")
        self.machine = machine.make("mi300x", self.root_dir + "/m", cores=4)
        super().__init__(
            gpus=0,
            options=[o % self.machine.root if "%s" in o else o for o in OPTIONS] + list(options),
        )
        self.hung = {}

    def __exit__(self, *exc):
        self.free()
        super().__exit__(*exc)
        shutil.rmtree(self.root_dir, ignore_errors=True)

    def path(self, file):
        """A file's path as the machine itself would have it, and where it is here."""
        full = self.machine.where(file)
        return full[len(self.machine.root) :], full

    def hang(self, file):
        shown, full = self.path(file)
        os.rename(full, full + ".was")
        os.mkfifo(full)
        self.hung[file] = full
        return shown

    def free(self):
        for full in self.hung.values():
            os.rename(full + ".was", full)
        self.hung = {}

    def restart(self):
        self.stop_agent()
        with self.moed.changed:
            self.moed.health.clear()
            del self.moed.healths[:]
        self.start()

    def info(self):
        return self.moed.hellos[-1]["info"]

    def findings(self):
        return {f["object"]: f["text"] for f in self.info().get("findings", [])}

    def wait_findings(self, objects, deadline=60):
        self.moed.wait(
            lambda: set(self.findings()) == set(objects),
            deadline,
            "findings of discovery about %s" % objects,
        )
        return self.findings()

    def told(self, check, states, obj="host", deadline=60):
        """The result, once it was reported in one of these states."""

        def there():
            return [
                r
                for h in self.moed.healths
                for r in h["results"]
                if (r["check"], r["object"]) == (check, obj) and r["state"] in states
            ]

        return self.moed.wait(there, deadline, "%s of %s is %s" % (check, obj, states))[-1]

    def cleared(self):
        self.wait_findings([])
        self.moed.wait(
            lambda: self.moed.health.get("n0")
            and self.moed.health["n0"]["preflight_done"]
            and "host.discovery" not in [r["check"] for r in self.moed.health["n0"]["results"]],
            60,
            "host.discovery is cleared",
        )


def devices(info):
    return {k: info[k] for k in ("gpus", "nics", "links", "numa", "cpus")}


def lookers(n):
    return [p for p in processes() if "moe-discover" in p[1] and n.root_dir in p[1]]


@suite.test
def a_restarted_agent_keeps_the_machine():
    with Machine() as n:
        whole = devices(n.info())
        equal(len(whole["gpus"]), 8)
        n.launch(["/bin/sleep", "1000"], n=2)
        bdf = n.machine.gpus[3].bdf
        file = n.hang("{gpu3}/numa_node")
        n.restart()
        equal(devices(n.info()), whole, "the machine, first hello")
        text = n.wait_findings([bdf])[bdf]
        need(
            file.split("/")[-1] in text
            and "could not be read in time" in text
            and "earlier look in this boot" in text,
            text,
        )
        equal(devices(n.info()), whole, "the machine, when all but one device has been read")
        r = n.told("host.discovery", ("unknown", "warn"))
        need(
            "%s is left out: /sys/bus/pci/devices/%s/numa_node could not be read in time"
            % (bdf, bdf)
            in r["text"],
            r,
        )
        equal(
            [
                h["results"]
                for h in n.moed.healths
                if any(
                    r["check"] == "host.discovery" and r["state"] == "crit" for r in h["results"]
                )
            ],
            [],
            "never critical",
        )
        # a restart changes nothing; a pass that is made while it hangs does not replace the last
        # full one
        n.restart()
        equal(devices(n.info()), whole, "after another restart")
        n.launch(["/bin/sleep", "1000"], n=1, job=2)
        n.free()
        n.cleared()
        equal(devices(n.info()), whole, "when it can be read again")
        need(not lookers(n), "discovered again although nothing is missing")


@suite.test
def without_an_earlier_look_one_device_is_unknown():
    with Machine() as n:
        whole = devices(n.info())
        n.stop_agent(signal.SIGTERM)
        os.unlink(n.dir + "/state/nodeinfo.json")
        bdf = n.machine.gpus[3].bdf
        n.hang("{gpu3}/current_compute_partition")
        n.restart()
        n.told("host.discovery", ("unknown", "warn"))
        text = n.wait_findings([bdf])[bdf]
        need(
            "current_compute_partition could not be read in time; what it would say is unknown"
            in text,
            text,
        )
        seen = devices(n.info())
        equal(seen["gpus"][3].get("compute_partition"), None)
        equal([g["bdf"] for g in seen["gpus"]], [g["bdf"] for g in whole["gpus"]])
        for i in (0, 1, 2, 4, 5, 6, 7):
            equal(seen["gpus"][i], whole["gpus"][i], "GPU %d" % i)
        equal(dict(seen, gpus=0), dict(whole, gpus=0), "the rest")
        n.free()
        n.cleared()
        equal(devices(n.info()), whole)


@suite.test
def several_devices_hang():
    with Machine(["discover_deadline=3s"]) as n:
        whole = devices(n.info())
        nic = os.path.basename(n.machine.nics[5].ib)
        kfd = os.path.basename(n.machine.where("{kfd6}"))
        for file in (
            "{gpu1}/mem_info_vram_total",
            "{gpu2}/current_memory_partition",
            "{ib5}/fw_ver",
            "{kfd6}/properties",
        ):
            n.hang(file)
        n.restart()
        equal(devices(n.info()), whole, "the machine, first hello")
        # VRAM is told by KFD, so that file is not read
        n.wait_findings([n.machine.gpus[2].bdf, nic, "KFD node " + kfd])
        equal(devices(n.info()), whole, "the machine")
        n.free()
        n.cleared()
        equal(devices(n.info()), whole)


@suite.test
def what_is_of_another_boot_does_not_count():
    with Machine(["discover_deadline=2s"]) as n:
        n.stop_agent(signal.SIGTERM)
        os.unlink(n.machine.where("sys/devices/system/cpu/online"))
        os.mkfifo(n.machine.where("sys/devices/system/cpu/online"))  # of no device
        n.restart()
        equal(len(n.info()["gpus"]), 8, "GPUs in this boot")
        said = n.told("host.discovery", ("unknown", "warn"))["text"]
        need(
            "(CPUs, caches and NUMA nodes): /sys/devices/system/cpu/online could not be read in "
            "time" in said,
            "the file that hwloc hangs in: " + said,
        )
        n.env = {"MOE_BOOT_ID": "0123456789abcdef0123456789abcdef"}
        n.restart()
        equal(n.info()["gpus"], [], "GPUs in the next boot")
        r = n.told("host.discovery", ("crit",))
        need(
            "/sys/devices/system" in r["text"] and "nothing is known of this machine" in r["text"],
            r,
        )
        os.unlink(n.machine.where("sys/devices/system/cpu/online"))
        n.machine.write("sys/devices/system/cpu/online", "0-15")
        n.cleared()
        equal(len(n.info()["gpus"]), 8)


@suite.test
def a_helper_that_dies_says_where():
    """A NUMA node -1 ends hwloc with an assertion."""
    with Machine() as n:
        online = n.machine.where("sys/devices/system/node/online")
        with open(online) as f:
            good = f.read()
        n.stop_agent(signal.SIGTERM)
        n.machine.write("sys/devices/system/node/online", "-1")
        n.restart()
        equal(len(n.info()["gpus"]), 8, "GPUs, from the pass before")
        said = n.told("host.discovery", ("unknown", "warn"))["text"]
        need(
            "moe-discover was killed by signal 6: " in said
            and "Assertion" in said
            and ", while it read /sys/devices/system (CPUs, caches and NUMA nodes)" in said,
            said,
        )
        n.machine.write("sys/devices/system/node/online", good.strip())
        n.cleared()


def outlive_kill(pid):
    """The process stops when it is killed instead of ending, as one that hangs in the kernel lives
    on; the returned function lets it end."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(PTRACE_SEIZE, pid, None, ctypes.c_void_p(PTRACE_O_TRACEEXIT)) < 0:
        raise Skipped("processes cannot be traced here")

    def end():
        os.waitpid(pid, 0)
        libc.ptrace(PTRACE_DETACH, pid, None, None)  # its parent alone hears of its end

    return end


@suite.test
def a_process_that_cannot_be_killed_is_the_only_one():
    with Machine() as n:
        whole = devices(n.info())
        bdf = n.machine.gpus[3].bdf
        n.hang("{gpu3}/numa_node")
        starter = threading.Thread(target=n.restart)
        starter.start()
        stuck = wait_until(lambda: lookers(n), 30, "the process that hangs")[0]
        let_end = outlive_kill(stuck[0])
        starter.join()
        try:
            n.wait_findings([bdf])
            n.told("gpu.read", ("unknown", "warn"), bdf)
            # it is left out in every later round, and what can be read is
            for _ in range(3):
                syncs = n.moed.syncs
                n.moed.wait(lambda: n.moed.syncs > syncs + 8, 30, "syncs")
                others = [p for p in lookers(n) if p[0] != stuck[0]]
                need(
                    all("--leave-out" in p[1] for p in others),
                    "a second process reads the device: %s" % others,
                )
            need(
                not [p for p in processes() if "moe-probe" in p[1] and bdf in p[1]],
                "a probe reads the device",
            )
            equal(devices(n.info()), whole)
            n.free()
            equal(set(n.findings()), {bdf}, "findings while it hangs")
        finally:
            let_end()
        n.cleared()
        n.moed.wait(
            lambda: ("gpu.read", bdf)
            not in {(r["check"], r["object"]) for r in n.moed.health["n0"]["results"]},
            60,
            "gpu.read is cleared",
        )


def restarted_by_force(n):
    """The agent is killed and another one starts, while what it had started lives on."""
    n.stop_agent(signal.SIGKILL)
    with n.moed.changed:
        n.moed.health.clear()
        del n.moed.healths[:]
    n.start()


def rounds(n, count):
    for _ in range(count):
        syncs = n.moed.syncs
        n.moed.wait(lambda: n.moed.syncs > syncs + 8, 60, "syncs")


@suite.test
def what_hangs_since_an_earlier_agent_is_not_tried_again():
    with Machine() as n:
        whole = devices(n.info())
        bdf, other = n.machine.gpus[3].bdf, n.machine.gpus[5].bdf
        n.hang("{gpu5}/gpu_metrics")  # only probes read it
        probe = wait_until(
            lambda: [
                p
                for p in processes()
                if "moe-probe" in p[1] and other in p[1] and n.root_dir in p[1]
            ],
            30,
            "the probe that hangs",
        )[0]
        ends = [outlive_kill(probe[0])]
        n.hang("{gpu3}/numa_node")
        starter = threading.Thread(target=restarted_by_force, args=(n,))
        starter.start()
        stuck = wait_until(lambda: lookers(n), 30, "the process that hangs")[0]
        ends.append(outlive_kill(stuck[0]))
        starter.join()
        try:
            n.wait_findings([bdf])
            # agents come and go; these two processes stay the only ones
            for _ in range(2):
                restarted_by_force(n)
                text = n.wait_findings([bdf])[bdf]
                need(
                    "numa_node could not be read in time (process %d of an agent before this one "
                    "hangs there)" % stuck[0] in text,
                    text,
                )
                need(
                    "an agent before this one is stuck"
                    in n.told("gpu.read", ("unknown", "warn"), other)["text"],
                    "the probe that hangs",
                )
                need(
                    str(stuck[0]) in n.told("host.discovery", ("unknown", "warn"))["text"],
                    "the node's problems",
                )
                rounds(n, 2)
                late = [p for p in lookers(n) if p[0] != stuck[0] and "--leave-out" not in p[1]] + [
                    p
                    for p in processes()
                    if "moe-probe" in p[1]
                    and n.root_dir in p[1]
                    and (other in p[1] or bdf in p[1])
                    and "--leave-out" not in p[1]
                    and p[0] != probe[0]
                ]
                need(not late, "started although it hangs: %s" % late)
                equal(devices(n.info()), whole)
            n.free()
        finally:
            for end in ends:
                end()
        n.cleared()
        n.moed.wait(
            lambda: not {("gpu.read", bdf), ("gpu.read", other)}
            & {(r["check"], r["object"]) for r in n.moed.health["n0"]["results"]},
            60,
            "gpu.read is cleared",
        )


def in_directory(fn):
    @functools.wraps(fn)
    def run():
        with tempfile.TemporaryDirectory() as top:
            fn(top)

    return suite.test(run)


@in_directory
def people_see_it(top):
    """moectl explain bind of a running job, node, nodes, why and the API, over a restart of the
    agent while a file hangs."""
    m = machine.make("mi300x", top + "/m", cores=4)
    with Cluster(top + "/c", nodes=1, gpus_per_node=8, extra=["--topology", m.root]) as c:
        job = c.submit(command_recipe("runs", ["/bin/sleep", "1000"], 8))
        c.wait_state(job, "running")
        before = c.json("explain", "bind", job)
        need(len(before["ranks"] if "ranks" in before else before["items"]) == 8, before)
        file = m.where("{gpu3}/numa_node")
        os.unlink(file)
        os.mkfifo(file)
        pid = c.status()["agents"][0]["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: c.status()["agents"][0]["pid"] != pid, 30, "the agent is gone")
        c.up()
        bdf = m.gpus[3].bdf
        said = "%s is left out: /sys/bus/pci/devices/%s/numa_node could not be read in time" % (
            bdf,
            bdf,
        )
        wait_until(lambda: said in c.run("why", "node-0").stdout, 60, "why")
        equal(c.json("explain", "bind", job), before, "explain bind")
        shown = wait_until(
            lambda: [t for t in [c.run("node", "node-0").stdout] if "! %s:" % bdf in t],
            30,
            "the drawing",
        )[0]
        need(said in shown and "GPU 7" in shown, shown)
        doc = c.json("node", "node-0")
        equal(
            [doc["gpus"], len(doc["info"]["gpus"]), doc["health"] in ("unknown", "warn")],
            [8, 8, True],
            "the node",
        )
        need(
            [x for x in doc["checks"] if x["check"] == "host.discovery" and said in x["text"]],
            json.dumps(doc["checks"]),
        )
        equal(c.job(job)["state"], "running")
        c.run("cancel", job, "--now")


@in_directory
def local_up_has_a_deadline(top):
    m = machine.make("mi300x", top + "/m", cores=1, gpus=2)
    file = m.where("{gpu1}/numa_node")
    os.unlink(file)
    os.mkfifo(file)
    r = moectl(
        "local",
        "up",
        "--dir",
        top + "/c",
        "--nodes",
        1,
        "--gpus-per-node",
        2,
        "--port",
        0,
        "--topology",
        m.root,
        check=False,
    )
    lines = r.stderr.strip().splitlines()
    equal([r.returncode, len(lines)], [1, 1], "status and lines (%s)" % r.stderr)
    need(
        "/sys/bus/pci/devices/%s/numa_node could not be read within 10 s" % m.gpus[1].bdf
        in lines[0],
        lines,
    )
    # killed without being waited for: it may hang in a driver
    wait_until(
        lambda: not [p for p in processes() if "moe-discover" in p[1] and top in p[1]],
        30,
        "the helper is gone",
    )


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
