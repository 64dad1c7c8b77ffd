#!/usr/bin/python3
"""Binding on a kernel with four NUMA nodes of two cores with two threads each: runs inside the
machine of tests/numavm/run. What moectl says is compared with what the kernel says: allowed CPUs
and memory nodes of /proc, policy of numa_maps, and the node of each touched page (move_pages). A
cluster of its own per group of cases; fake GPU slots, two on each node."""
import ctypes
import functools
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
from lib import BUILD, ROOT, Suite, clean_env, command_recipe, equal, need, wait_until  # noqa: E402
from rig import AGENT, Rig, write_config  # noqa: E402

TOUCH, NO_AFFINITY = (os.path.join(BUILD, "tests/fake", p) for p in ("touch", "noaffinity"))
CGROUP = "/sys/fs/cgroup"
SLIT = ["10 12 32 32", "12 10 32 32", "32 32 10 12", "32 32 12 10"]
NODE_CPUS = [set(range(4 * n, 4 * n + 4)) for n in range(4)]
PAGES = 1024
PREFERRED, BIND, INTERLEAVE, PREFERRED_MANY = 1, 2, 3, 5
WAIT = 60
EVERYTHING = {"cpus": "0-15", "mems": "0-3"}
LIBC = ctypes.CDLL(None)
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE = 24, 1, 2, 19
SLOW = {"beat_ms": 2000, "suspect_ms": 20000, "down_ms": 40000}
suite = Suite()


def cpus_of(text):
    out = set()
    for part in filter(None, (text or "").split(",")):
        a, _, b = part.partition("-")
        out |= set(range(int(a), int(b or a) + 1))
    return out


def nodes_of(mask):
    return {n for n in range(64) if mask >> n & 1}


def status(pid, key, task=None):
    with open("/proc/%d/%sstatus" % (pid, "task/%d/" % task if task else "")) as f:
        return next(line.split(":")[1].strip() for line in f if line.startswith(key + ":"))


def status_group(pid):
    with open("/proc/%d/cgroup" % pid) as f:
        return next(line.split("::")[1].strip() for line in f if line.startswith("0::"))


class Machine(Rig):
    """One agent; wrap: a program that starts it; cpuset: limits of a control group that it lives
    in; without: capabilities that it and its children lack."""

    def __init__(self, wrap=(), cpuset=None, gpus=8, without=(), agent=None):
        super().__init__(nodes=1, gpus_per_node=gpus, moed=SLOW, agent=agent)
        self.wrap, self.group = list(wrap), cpuset and tempfile.mkdtemp(prefix="moe-", dir=CGROUP)
        self.without = without
        self.cpuset = cpuset
        self.count = 0

    def limit(self, **files):
        for name, text in files.items():
            with open(os.path.join(self.group, "cpuset." + name), "w") as f:
                f.write(text)

    def spawn(self, program, name, options, **env):
        if program != AGENT or not (self.wrap or self.group or self.without):
            return super().spawn(program, name, options, **env)
        config = write_config(os.path.join(self.dir, name + ".yaml"), options)
        if self.group:
            self.limit(**self.cpuset)

        def enter():
            if self.group:
                with open(os.path.join(self.group, "cgroup.procs"), "w") as f:
                    f.write("0")
            for cap in self.without:
                if LIBC.prctl(PR_CAPBSET_DROP, cap, 0, 0, 0):
                    os._exit(126)

        with open(os.path.join(self.dir, "log", name + ".log"), "ab") as log:
            return subprocess.Popen(
                self.wrap + [program, "--config", config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_env(**env),
                start_new_session=True,
                preexec_fn=enter,
            )

    def job(self, job):
        """Without moectl: starting it costs 0.2 s here, and this is asked many times."""
        return self.http("GET", "/v1/jobs/" + str(job)).json

    def ranks(self, job):
        return self.http("GET", "/v1/jobs/%s/ranks" % job).json["items"]

    def start(self, ranks, *options, **bind):
        """A job of ranks that touch memory."""
        self.count += 1
        out = os.path.join(self.dir, "touched.%d" % self.count)
        os.mkdir(out)
        bind.setdefault("reserve_cores", 0)
        job = self.submit(
            command_recipe("touch", [TOUCH, "--out", out, *options], ranks, bind=bind)
        )
        return job, out

    def run_ranks(self, ranks, *options, **bind):
        """Waits until all ranks wrote what they see; [(rank of moectl, what it wrote)]."""
        job, out = self.start(ranks, *options, **bind)
        self.wait_state(job, "running", WAIT)
        wait_until(
            lambda: len(glob.glob(out + "/*.json")) == ranks,
            WAIT,
            "%d ranks have touched their memory" % ranks,
        )
        pairs = []
        for r in self.json("ranks", job)["items"]:
            with open("%s/rank-%d.json" % (out, r["rank"])) as f:
                pairs.append((r, json.load(f)))
        return job, pairs

    def refused(self, ranks, *options, **bind):
        """The job fails; its document."""
        return self.wait_state(self.start(ranks, *options, **bind)[0], "failed", WAIT)

    def end(self, job):
        self.run("cancel", job, "--now")
        self.wait_state(job, "cancelled", WAIT)


def on(**options):
    """A test on a machine of its own with these options; tests without options share one."""

    def decorate(fn):
        @functools.wraps(fn)
        def run(shared):
            with Machine(**options) as m:
                fn(m)

        return suite.test(run)

    return decorate


def policy_of(pid):
    with open("/proc/%d/numa_maps" % pid) as f:
        return f.readline().split()[1]


def agree(pairs, policies=None):
    """moectl and the kernel say the same, the binding is confirmed, and no CPU has two ranks.
    Returns the cpu sets in order."""
    sets = []
    for r, told in pairs:
        equal(told["pid"], r["pid"], "pid")
        kernel = cpus_of(status(r["pid"], "Cpus_allowed_list"))
        equal(cpus_of(r["cpus"]), kernel, "cpus of rank %d in moectl, the kernel" % r["rank"])
        equal(
            r["bind_verified"], True, "bind_verified of rank %d (%s)" % (r["rank"], r["bind_note"])
        )
        need(
            kernel <= NODE_CPUS[r["numa_node"]],
            "rank %d: cpus %s are not of node %s" % (r["rank"], kernel, r["numa_node"]),
        )
        need(
            not any(kernel & other for other in sets),
            "rank %d shares cpus %s" % (r["rank"], kernel),
        )
        if policies:
            need(
                told["policy"] in policies,
                "policy of rank %d is %s, not one of %s" % (r["rank"], told["policy"], policies),
            )
        sets.append(kernel)
    return sets


@suite.test
def discovery_sees_four_nodes(m):
    r = subprocess.run(
        [os.path.join(BUILD, "moe-discover"), "--fake-gpus", "8"],
        stdout=subprocess.PIPE,
        check=True,
    )
    doc = json.loads(r.stdout)
    equal([n["distances"] for n in doc["numa"]], SLIT, "distances")
    equal([cpus_of(n["cpus"]) for n in doc["numa"]], NODE_CPUS, "cpus of nodes")
    equal(
        [n["cores"] for n in doc["numa"]],
        ["%d-%d;%d-%d" % (c, c + 1, c + 2, c + 3) for c in range(0, 16, 4)],
        "cores",
    )
    equal([g["numa_node"] for g in doc["gpus"]], [0, 0, 1, 1, 2, 2, 3, 3], "nodes of the slots")
    need(not doc["simulated"], "this machine is no simulation")


@suite.test
def preferred(m):
    job, pairs = m.run_ranks(8, memory="preferred")
    agree(pairs, (PREFERRED, PREFERRED_MANY))
    for r, told in pairs:
        node = r["rank"] // 2
        equal(
            (r["numa_node"], nodes_of(told["nodes"]), told["pages"]),
            (node, {node}, {str(node): PAGES}),
            "node, nodes of the policy and pages of rank %d" % r["rank"],
        )
        need(
            policy_of(r["pid"]) in ("prefer:%d" % node, "prefer (many):%d" % node),
            "numa_maps of rank %d: %s" % (r["rank"], policy_of(r["pid"])),
        )
        equal(
            status(r["pid"], "Mems_allowed_list"),
            "0-3",
            "Mems_allowed of rank %d: a policy does not change it" % r["rank"],
        )
    m.end(job)


@suite.test
def bind(m):
    job, pairs = m.run_ranks(8, memory="bind")
    agree(pairs, (BIND,))
    for r, told in pairs:
        equal(
            (told["pages"], policy_of(r["pid"])),
            ({str(r["numa_node"]): PAGES}, "bind:%d" % r["numa_node"]),
            "pages and numa_maps of rank %d" % r["rank"],
        )
    m.end(job)


@suite.test
def interleave(m):
    job, pairs = m.run_ranks(8, memory="interleave")
    agree(pairs, (INTERLEAVE,))
    for r, told in pairs:
        equal(
            (told["pages"], policy_of(r["pid"])),
            ({str(n): PAGES // 4 for n in range(4)}, "interleave:0-3"),
            "pages and numa_maps of rank %d" % r["rank"],
        )
    m.end(job)


@suite.test
def hardware_threads(m):
    for smt, per_rank in (("one", 1), ("all", 2)):
        job, pairs = m.run_ranks(8, smt=smt)
        sets = agree(pairs)
        equal([len(s) for s in sets], [per_rank] * 8, "threads per rank with smt: %s" % smt)
        equal(
            {frozenset(c // 2 for c in s) for s in sets},
            {frozenset([c]) for c in range(8)},
            "cores",
        )
        m.end(job)


@suite.test
def half_full_node_and_a_neighbour(m):
    first, a = m.run_ranks(3)
    second, b = m.run_ranks(4)
    sets = agree(a + b)
    equal(len(sets), 7, "ranks")
    m.end(first)
    third, c = m.run_ranks(3)
    agree(b + c)
    m.end(second)
    m.end(third)


@on(cpuset={"cpus": "0-7,12-13", "mems": "0-1,3"}, gpus=5)
def within_a_control_group(m):
    job, pairs = m.run_ranks(5, memory="preferred")
    equal(
        agree(pairs, (PREFERRED, PREFERRED_MANY)),
        [{0, 1}, {2, 3}, {4, 5}, {6, 7}, {12, 13}],
        "cpus",
    )
    for r, told in pairs:
        equal(status(r["pid"], "Mems_allowed_list"), "0-1,3", "Mems_allowed")
        equal(told["pages"], {str(r["numa_node"]): PAGES}, "pages")
    m.end(job)


def restores(fn):
    @functools.wraps(fn)
    def run(m):
        try:
            fn(m)
        finally:
            m.limit(**EVERYTHING)

    return run


@suite.test
@restores
def a_cpuset_that_shrank_is_a_failure(m):
    """The plan was made for the whole machine; the kernel silently cuts what the control group does
    not allow any more."""
    m.limit(cpus="0,2-15")
    job = m.refused(8, smt="all")
    need("asked for cpus 0-1, the kernel allows 0" in job["reason"], "reason: %s" % job["reason"])
    job, pairs = m.run_ranks(8, smt="all", verify="warn")
    equal([r["bind_verified"] for r, _ in pairs], [False] + [True] * 7, "bind_verified")
    need(
        "the kernel allows 0" in pairs[0][0]["bind_note"],
        "bind_note: %s" % pairs[0][0]["bind_note"],
    )
    m.end(job)
    m.limit(cpus="4-15")
    job = m.refused(8)
    need("could not bind to its CPUs" in job["reason"], "reason: %s" % job["reason"])
    m.limit(cpus="0-15", mems="0-1")
    job = m.refused(8, memory="interleave")
    need("interleave" in job["reason"] and "0-1" in job["reason"], "reason: %s" % job["reason"])
    job = m.refused(8, memory="bind")
    need("memory policy" in job["reason"], "reason: %s" % job["reason"])


@suite.test
def threads_that_leave_are_reported(m):
    """Each rank has a thread that binds itself to cpu 15: of rank 7 it may. No failure: what we set
    still stands."""
    job, pairs = m.run_ranks(8, "--threads", "6", "--thread", "nccl-proxy:15")
    wait_until(
        lambda: len([r for r in m.ranks(job) if r["bind_note"]]) >= 7, WAIT, "notes about threads"
    )
    ranks = m.json("ranks", job)["items"]
    equal(
        [r["bind_note"] for r in ranks],
        ["thread nccl-proxy may run on cpus 15"] * 7 + [None],
        "bind_note",
    )
    agree([(r, told) for r, (_, told) in zip(ranks, pairs)])
    m.end(job)


@suite.test
@restores
def a_cpuset_that_shrinks_under_running_ranks_is_reported(m):
    job, pairs = m.run_ranks(8, memory="bind")
    m.limit(cpus="0-13", mems="0-2")
    for r, _ in pairs[6:]:
        os.kill(r["pid"], signal.SIGUSR1)
    lost = "its control group allows no memory of node 3 any more"
    wait_until(
        lambda: [r["rank"] for r in m.ranks(job) if lost in (r["bind_note"] or "")] == [6, 7],
        WAIT,
        "notes of ranks 6 and 7",
    )
    note = m.json("ranks", job)["items"][7]["bind_note"]
    need("the main thread was moved to cpus 0-13" in note, "bind_note: %s" % note)
    m.end(job)


@on(wrap=[NO_AFFINITY])
def affinity_that_does_nothing_is_a_failure(m):
    job = m.refused(8)
    need(
        "asked for cpus" in job["reason"] and "allows 0-15" in job["reason"],
        "reason: %s" % job["reason"],
    )


@on(wrap=[NO_AFFINITY, "--memory"])
def memory_policy_that_does_nothing_is_a_failure(m):
    job = m.refused(8, memory="bind")
    need(
        "asked for memory policy bind on node" in job["reason"] and "default" in job["reason"],
        "reason: %s" % job["reason"],
    )
    job, pairs = m.run_ranks(8, memory="bind", verify="warn")
    equal([r["bind_verified"] for r, _ in pairs], [False] * 8, "bind_verified")
    m.end(job)


@on(without=[CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE])
def memory_policy_that_cannot_be_read_is_not_verified(m):
    """The kernel shows no numa_maps of a program whose file may be executed but not read, except to
    those who may trace everything."""
    global TOUCH
    readable, TOUCH = TOUCH, os.path.join(m.dir, "unreadable")
    try:
        shutil.copy(readable, TOUCH)
        os.chmod(TOUCH, 0o111)
        job = m.refused(8, memory="bind")
        need(
            "the kernel's memory policy could not be read: /proc/" in job["reason"]
            and "numa_maps: Permission denied" in job["reason"],
            "reason: %s" % job["reason"],
        )
        job, pairs = m.run_ranks(8, memory="bind", verify="warn")
        equal([r["bind_verified"] for r, _ in pairs], [None] * 8, "bind_verified")
        need(
            "could not be read: /proc/" in pairs[0][0]["bind_note"],
            "bind_note: %s" % pairs[0][0]["bind_note"],
        )
        m.end(job)
    finally:
        TOUCH = readable


@on(agent={"memory": "1G", "pids": 800})
def limits_of_steps_are_their_share(m):
    """In the step's control group, of all its ranks together; who wants more memory is killed, and
    why says so."""
    job, pairs = m.run_ranks(4)
    group = CGROUP + status_group(pairs[0][0]["pid"])
    for name, most in (("memory.max", 512 << 20), ("pids.max", 400)):
        with open(os.path.join(group, name)) as f:
            equal(int(f.read()), most, name)
    m.end(job)
    hungry = command_recipe(
        "hungry", ["/usr/bin/python3", "-S", "-c", "x = b'x' * (300 << 20); input()"], 1
    )
    job = m.wait_state(m.submit(hungry), "failed", WAIT)
    need("memory" in job["reason"] or "oom" in job["reason"], "reason: %s" % job["reason"])


def main():
    with Machine(cpuset=EVERYTHING) as m:
        return suite.main(m)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
