#!/usr/bin/python3
"""Binding plans of machines that are not here: what moe-discover reads from our own and from
recorded machines, planned by the function that the agent uses. Expected values follow from the
machine's description (cores, L3 groups, NUMA nodes of the GPUs), not from an earlier run."""
import json
import os
import random
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, Failed, PATIENCE, Suite, equal, need  # noqa: E402
import test_machines as machines  # noqa: E402

PLAN = os.path.join(BUILD, "tests/bench/plan")
suite = Suite()


def in_directory(fn):
    machines.in_directory(fn)
    suite.tests.append(machines.suite.tests.pop())
    return suite.tests[-1]


def plan(doc, **options):
    words = [w for k, v in options.items() for w in ("--" + k, str(v))]
    r = subprocess.run(
        [PLAN] + words,
        input=json.dumps(doc),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60 * PATIENCE,
    )
    if r.returncode:
        raise Failed("plan %s: %s" % (" ".join(words), r.stderr))
    return json.loads(r.stdout)["binds"]


def ids(text):
    out = set()
    for part in filter(None, (text or "").split(",")):
        a, _, b = part.partition("-")
        out |= set(range(int(a), int(b or a) + 1))
    return out


def cores(doc):
    """{cpu: its core's first cpu} of the machine, {NUMA node: its cores}."""
    of, nodes = {}, {}
    for n in doc["numa"]:
        groups = (
            [ids(g) for g in n["cores"].split(";")]
            if n.get("cores")
            else [{c} for c in ids(n["cpus"])]
        )
        nodes[n["id"]] = {min(g) for g in groups}
        of.update({c: min(g) for g in groups for c in g})
    return of, nodes


def l3_groups(doc):
    return [ids(g) for n in doc["numa"] for g in (n.get("l3") or "").split(";") if g]


def sound(doc, binds, reserve=2):
    """What holds of every full plan: whole cores, none twice, none of another node, `reserve` left
    free on each node that has GPUs. Returns the number of cores of each rank."""
    of, nodes = cores(doc)
    used, counts, touched = {}, [], []
    for g, b in zip(doc["gpus"], binds):
        need(not b.get("shared"), "slot %d shares cores: %s" % (g["index"], b))
        mine = ids(b["cpus"])
        need(
            all(c in mine for c in of if of[c] in {of[m] for m in mine}),
            "slot %d has parts of cores" % g["index"],
        )
        heads = {of[c] for c in mine}
        need(
            not heads & set(used),
            "slot %d shares cores with %s"
            % (g["index"], sorted({used[h] for h in heads if h in used})),
        )
        used.update({h: g["index"] for h in heads})
        if g["numa_node"] in nodes and nodes[g["numa_node"]]:
            need(
                heads <= nodes[g["numa_node"]],
                "slot %d: cores %s are not of node %s"
                % (g["index"], sorted(heads), g["numa_node"]),
            )
            equal(b["numa_node"], g["numa_node"], "node of slot %d" % g["index"])
        equal(b["n_cpus"], len(heads), "threads of slot %d" % g["index"])
        counts.append(len(heads))
        touched.append(len([g3 for g3 in l3_groups(doc) if g3 & mine]))
    for n, all_cores in nodes.items():
        slots = [g for g in doc["gpus"] if g["numa_node"] == n]
        if slots:
            free = min(reserve, len(all_cores) - len(slots))
            equal(len(all_cores - set(used)), free, "cores left free on node %d" % n)
            need(
                not free or min(all_cores) not in used,
                "core %d, where interrupts go, is used" % min(all_cores),
            )
    return counts, touched


@in_directory
def mi300x(top):
    _, doc = machines.made(top, "mi300x", cores=96)
    binds = plan(doc)
    equal(sound(doc, binds), ([23, 23, 24, 24] * 2, [3] * 8), "cores and L3 groups of each rank")
    equal(
        [b["cpus"] for b in binds[:3]], ["1-23,193-215", "25-47,217-239", "48-71,240-263"], "cpus"
    )
    equal(
        [(b["mem_policy"], b["mem_nodes"], b["nic"]) for b in binds],
        [("preferred", "01"[i // 4], "mlx5_%d" % i) for i in range(8)],
        "memory and NIC",
    )
    sound(doc, plan(doc, reserve=0), 0)
    equal(
        [len(ids(b["cpus"])) for b in plan(doc, reserve=0, smt="one")],
        [24] * 8,
        "threads with smt: one and nothing reserved",
    )


@in_directory
def mi300x_half_full_and_neighbours(top):
    _, doc = machines.made(top, "mi300x", cores=96)
    whole = [b["cpus"] for b in plan(doc)]
    first = plan(doc, gpus="0-1,6")
    second = plan(doc, gpus="2-5,7", taken=",".join(b["cpus"] for b in first))
    equal([b["cpus"] for b in first + second], [whole[i] for i in (0, 1, 6, 2, 3, 4, 5, 7)], "cpus")
    other = plan(doc, gpus="0-7", taken=",".join(whole[:2]))
    need(
        not any(b.get("shared") and i > 1 for i, b in enumerate(other)),
        "ranks whose cores are free share none",
    )


@in_directory
def mi300x_partitioned(top):
    _, doc = machines.made(top, "mi300x-cpx", cores=96)
    counts, _ = sound(doc, plan(doc))
    equal(
        (len(counts), set(counts), sum(counts)), (64, {2, 3}, 2 * 94), "ranks, cores of each, cores"
    )


@in_directory
def mi355x(top):
    _, doc = machines.made(top, "mi355x", cores=64)
    binds = plan(doc, memory="bind")
    equal(sound(doc, binds), ([15] * 8, [2] * 8), "cores and L3 groups of each rank")
    equal(
        [(b["mem_policy"], b["mem_nodes"]) for b in binds],
        [("bind", n) for n in "11003322"],
        "memory",
    )
    equal(binds[2]["cpus"], "1-15,129-143", "cpus of the first GPU on node 0")


@in_directory
def one_gpu_of_unknown_place(top):
    _, doc = machines.made(top, "h200-vm", cores=16)
    binds = plan(doc)
    equal(
        [(b["cpus"], b["mem_policy"], b.get("note")) for b in binds],
        [("2-15", "none", None)],
        "plan",
    )


@in_directory
def fewer_cores_than_ranks(top):
    _, doc = machines.made(top, "mi300x", cores=2)
    for b in plan(doc):
        need(b["shared"] and len(ids(b["cpus"])) == 4 and "fewer cores than ranks" in b["note"], b)


# ---- recorded machines
@in_directory
def recorded_roots(top):
    for name, counts in (
        ("mi300x", [23, 23, 24, 24] * 2),
        ("mi300x-faults", [23, 23, 24, 24] * 2),
        ("mi355x", [15] * 8),
    ):
        machines.recorded("synthetic/fakeroot-%s.tar.xz" % name)
        doc = machines.unpacked(os.path.join(top, name), name)
        equal(sound(doc, plan(doc))[0], counts, "cores of each rank of %s" % name)


@in_directory
def recorded_kfd_dumps(top):
    """GPUs of real machines on a host of 2 nodes with 16 cores each: more GPUs than cores share
    them and say so."""
    for name, inner in (
        ("topo-mi300-cpx", "topology"),
        ("topology-parsing-mi308", "topology"),
        ("topo-mi210-xgmi-pcie", ""),
    ):
        doc = machines.kfd_dump(os.path.join(top, name), "kfd/%s.tar.gz" % name, inner, 16)
        binds = plan(doc)
        on = {
            n["id"]: len([g for g in doc["gpus"] if g["numa_node"] == n["id"]]) for n in doc["numa"]
        }
        if max(on.values()) <= 16:
            equal(
                sum(sound(doc, binds)[0]),
                sum(16 - min(2, 16 - n) for n in on.values() if n),
                "cores of all ranks of " + name,
            )
        else:
            need(
                all(b["shared"] and b["note"].startswith("ranks share ") for b in binds),
                "%s: %s" % (name, binds[0]),
            )


@in_directory
def recorded_tioga(top):
    """GPU order is not NUMA order: a real MI250X node of 4 NUMA nodes with 16 cores in 2 L3 groups
    each."""
    doc = machines.discover("--xml", machines.recorded("hwloc-real/tioga-1x7A53-8xMI250X.xml"))
    equal([g["numa_node"] for g in doc["gpus"]], [3, 3, 1, 1, 0, 0, 2, 2], "nodes of the GPUs")
    binds = plan(doc)
    equal([b["numa_node"] for b in binds], [3, 3, 1, 1, 0, 0, 2, 2], "nodes of the ranks")
    _, touched = sound(doc, binds)
    equal(touched, [1] * 8, "L3 groups of each rank")


@in_directory
def recorded_corona(top):
    doc = machines.discover("--xml", machines.recorded("hwloc-real/corona-epyc-8xMI60-rsmi.xml"))
    sound(doc, plan(doc))


# ---- odd hosts: CPUs offline, threads off, a small cpuset; and odd jobs on them
def text(ids):
    return ",".join(str(i) for i in sorted(ids))


def take_offline(root, off):
    """As the kernel shows CPUs that were taken offline: no topology and no caches, and no other
    list or mask names them."""
    cpu, node = os.path.join(root, "sys/devices/system/cpu"), os.path.join(
        root, "sys/devices/system/node"
    )
    for i in off:
        for gone in ("topology", "cache"):
            shutil.rmtree(os.path.join(cpu, "cpu%d" % i, gone), ignore_errors=True)
        for n in os.listdir(node):
            for link in (os.path.join(node, n, "cpu%d" % i), os.path.join(cpu, "cpu%d" % i, n)):
                if os.path.islink(link):
                    os.unlink(link)
    masks = {"cpumap", "shared_cpu_map"}
    for top in (cpu, node):
        for path, _, files in os.walk(top):
            for name in files:
                full = os.path.join(path, name)
                if name in ("online", "cpulist", "shared_cpu_list") or name.endswith("_list"):
                    if path == cpu and name != "online":
                        continue
                    if path.startswith(node) and name == "online":
                        continue
                    if re.fullmatch(r"cpu[0-9]+", os.path.basename(path)):
                        continue
                    with open(full) as f:
                        old = f.read()
                    with open(full, "w") as f:
                        f.write(text(ids(old.strip()) - off) + "\n")
                elif name in masks or name.endswith("_cpus") or name.endswith("_siblings"):
                    with open(full) as f:
                        old = f.read().strip()
                    words, bits = old.split(","), int(old.replace(",", ""), 16)
                    for i in off:
                        bits &= ~(1 << i)
                    out = []
                    for _ in words:
                        out.insert(
                            0, "%08x" % (bits & 0xFFFFFFFF) if len(words) > 1 else "%x" % bits
                        )
                        bits >>= 32
                    with open(full, "w") as f:
                        f.write(",".join(out) + "\n")


def shared_above(root, a, b):
    """Directories below the host bridge that the paths of two PCI devices share."""
    a, b = (
        os.path.realpath(os.path.join(root, "sys/bus/pci/devices", x)).split("/") for x in (a, b)
    )
    same = os.path.commonprefix([a, b])
    return len(same) - len(
        [p for p in same if not re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-9a-f]", p)]
    )


def nearest_nic(doc, root):
    for g in doc["gpus"]:
        if not doc.get("nics"):
            equal(g["nic"], None, "NIC of slot %d" % g["index"])
            continue
        depth = {n["name"]: shared_above(root, g["bdf"], n["bdf"]) for n in doc["nics"]}
        need(
            g["nic"] and depth[g["nic"]] == max(depth.values()),
            "slot %d has NIC %s, the depths are %s" % (g["index"], g["nic"], depth),
        )


def by_distance(doc, home):
    row = (next(n for n in doc["numa"] if n["id"] == home).get("distances") or "").split()
    return [n for _, n in sorted(zip(map(int, row), [n["id"] for n in doc["numa"]]))] or [home]


def local(doc, usable, binds, slots):
    """Never empty, only what may be used, nobody else's, near the GPU where the machine allows
    it."""
    of, nodes = cores(doc)
    used = {}
    for slot, b in zip(slots, binds):
        g = doc["gpus"][slot]
        mine = ids(b["cpus"])
        need(mine and mine <= usable, "slot %d: cpus %s of %s" % (slot, b["cpus"], text(usable)))
        equal(b.get("nic"), g["nic"], "NIC of the rank on slot %d" % slot)
        if g["numa_node"] in nodes:
            home = next(n for n in by_distance(doc, g["numa_node"]) if nodes[n])
            need(
                {of[c] for c in mine} <= nodes[home],
                "slot %d on node %s: cpus %s are not of node %s"
                % (slot, g["numa_node"], b["cpus"], home),
            )
        if not b.get("shared"):
            need(
                not mine & set(used),
                "slot %d shares CPUs with slot %s" % (slot, {used[c] for c in mine & set(used)}),
            )
            used.update({c: slot for c in mine})
    for n, all_cores in nodes.items():
        on = [b for s, b in zip(slots, binds) if doc["gpus"][s]["numa_node"] == n]
        homeless = [
            g for g in doc["gpus"] if g["numa_node"] not in nodes or not nodes[g["numa_node"]]
        ]
        if not homeless and len([g for g in doc["gpus"] if g["numa_node"] == n]) <= len(all_cores):
            need(
                not any(b.get("shared") for b in on),
                "node %s has %d cores, and yet they are shared" % (n, len(all_cores)),
            )
    return used


def odd_jobs(doc, usable, rng):
    slots = list(range(len(doc["gpus"])))
    whole = plan(doc)
    equal(plan(doc), whole, "the same plan twice")
    local(doc, usable, whole, slots)
    order = rng.sample(slots, len(slots))
    some = order[: rng.randint(1, len(slots))]
    first = plan(doc, gpus=text(some))
    local(doc, usable, first, sorted(some))
    rest = sorted(set(slots) - set(some))
    if rest:  # a second job on what the first one left
        second = plan(doc, gpus=text(rest), taken=",".join(b["cpus"] for b in first))
        local(doc, usable, second, rest)
        if not any(b.get("shared") for b in whole):
            merged = dict(zip(sorted(some) + rest, first + second))
            equal(
                [merged[s]["cpus"] for s in slots], [b["cpus"] for b in whole], "what two jobs get"
            )


def hosts(kinds, cores_of):
    def decorate(fn):
        for kind in kinds:

            def run(top, kind=kind):
                m, doc = machines.made(top, kind, cores=cores_of[kind])
                fn(m.root, doc, random.Random(kind))

            run.__name__ = "%s_%s" % (fn.__name__, kind.replace("-", "_"))
            in_directory(run)

    return decorate


KINDS, SIZES = ("mi300x", "mi300x-cpx", "mi355x", "thor2", "h200-vm"), {
    "mi300x": 24,
    "mi300x-cpx": 96,
    "mi355x": 16,
    "thor2": 12,
    "h200-vm": 16,
}


@hosts(KINDS, SIZES)
def a_cpuset_smaller_than_the_machine(root, doc, rng):
    everything = set().union(*(ids(n["cpus"]) for n in doc["numa"]))
    nearest_nic(doc, root)
    for _ in range(6):
        small_cpusets(doc, ["--root", root], everything, rng)


def small_cpusets(doc, source, everything, rng):
    for i in range(4):
        # scattered CPUs; a run of them, as a control group or isolcpus leaves; all of one NUMA
        # node; a handful
        some = [
            lambda: rng.sample(sorted(everything), rng.randint(1, len(everything))),
            lambda: range(
                rng.randint(0, len(everything) // 2),
                rng.randint(len(everything) // 2 + 1, len(everything)),
            ),
            lambda: ids(rng.choice(doc["numa"])["cpus"]),
            lambda: rng.sample(sorted(everything), rng.randint(1, 8)),
        ][i % 4]()
        usable = set(some) & everything
        clipped = machines.discover(*source, "--cpus", text(usable))
        equal(set().union(*(ids(n["cpus"]) for n in clipped["numa"])), usable, "usable CPUs")
        equal(
            [(g["bdf"], g["numa_node"], g["nic"]) for g in clipped["gpus"]],
            [(g["bdf"], g["numa_node"], g["nic"]) for g in doc["gpus"]],
            "GPUs, their nodes and NICs",
        )
        odd_jobs(clipped, usable, rng)


@in_directory
def a_cpuset_smaller_than_a_recorded_machine(top):
    for name in (
        "hwloc-real/tioga-1x7A53-8xMI250X.xml",
        "hwloc-real/corona-epyc-8xMI60-rsmi.xml",
        "synthetic/hwloc/8x-mi300x-nps1.xml",
        "synthetic/hwloc/8x-mi355x-nps2.xml",
    ):
        xml, rng = machines.recorded(name), random.Random(name)
        doc = machines.discover("--xml", xml)
        for _ in range(4):
            small_cpusets(
                doc, ["--xml", xml], set().union(*(ids(n["cpus"]) for n in doc["numa"])), rng
            )


@hosts(KINDS, SIZES)
def cpus_offline(root, doc, rng):
    of, nodes = cores(doc)
    left = set(of)
    # threads off; some cores off; a whole NUMA node but one CPU
    for off in (
        {c for c in of if of[c] != c},
        set(rng.sample(sorted(set(of.values()) - {0}), len(set(of.values())) // 4)),
        (set(nodes[doc["numa"][-1]["id"]]) - {0, max(nodes[doc["numa"][-1]["id"]])}),
    ):
        take_offline(root, off & left)
        left -= off
        now = machines.discover("--root", root)
        equal(set().union(*(ids(n["cpus"]) for n in now["numa"])), left, "CPUs online")
        nearest_nic(now, root)
        equal(
            [(g["bdf"], g["numa_node"], g["nic"]) for g in now["gpus"]],
            [(g["bdf"], g["numa_node"], g["nic"]) for g in doc["gpus"]],
            "GPUs, their nodes and NICs",
        )
        odd_jobs(now, left, rng)


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
