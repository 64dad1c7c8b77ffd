#!/usr/bin/python3
"""Binding plans of machines that are not here: what moe-discover reads from our own and from recorded machines, planned by the function that the agent uses. Expected values follow from the
machine's description (cores, L3 groups, NUMA nodes of the GPUs), not from an earlier run."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, Failed, Suite, equal, need  # noqa: E402
import test_machines as machines  # noqa: E402

PLAN = os.path.join(BUILD, "tests/bench/plan")
suite = Suite()


def in_directory(fn):
    machines.in_directory(fn)
    suite.tests.append(machines.suite.tests.pop())
    return suite.tests[-1]


def plan(doc, **options):
    words = [w for k, v in options.items() for w in ("--" + k, str(v))]
    r = subprocess.run([PLAN] + words, input=json.dumps(doc), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
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
        groups = [ids(g) for g in n["cores"].split(";")] if n.get("cores") else [{c} for c in ids(n["cpus"])]
        nodes[n["id"]] = {min(g) for g in groups}
        of.update({c: min(g) for g in groups for c in g})
    return of, nodes


def l3_groups(doc):
    return [ids(g) for n in doc["numa"] for g in (n.get("l3") or "").split(";") if g]


def sound(doc, binds, reserve=2):
    """What holds of every full plan: whole cores, none twice, none of another node, `reserve` left free on each node that has GPUs. Returns the number of cores of each rank."""
    of, nodes = cores(doc)
    used, counts, touched = {}, [], []
    for g, b in zip(doc["gpus"], binds):
        need(not b.get("shared"), "slot %d shares cores: %s" % (g["index"], b))
        mine = ids(b["cpus"])
        need(all(c in mine for c in of if of[c] in {of[m] for m in mine}), "slot %d has parts of cores" % g["index"])
        heads = {of[c] for c in mine}
        need(not heads & set(used), "slot %d shares cores with %s" % (g["index"], sorted({used[h] for h in heads if h in used})))
        used.update({h: g["index"] for h in heads})
        if g["numa_node"] in nodes and nodes[g["numa_node"]]:
            need(heads <= nodes[g["numa_node"]], "slot %d: cores %s are not of node %s" % (g["index"], sorted(heads), g["numa_node"]))
            equal(b["numa_node"], g["numa_node"], "node of slot %d" % g["index"])
        equal(b["n_cpus"], len(heads), "threads of slot %d" % g["index"])
        counts.append(len(heads))
        touched.append(len([g3 for g3 in l3_groups(doc) if g3 & mine]))
    for n, all_cores in nodes.items():
        slots = [g for g in doc["gpus"] if g["numa_node"] == n]
        if slots:
            free = min(reserve, len(all_cores) - len(slots))
            equal(len(all_cores - set(used)), free, "cores left free on node %d" % n)
            need(not free or min(all_cores) not in used, "core %d, where interrupts go, is used" % min(all_cores))
    return counts, touched


@in_directory
def mi300x(top):
    _, doc = machines.made(top, "mi300x", cores=96)
    binds = plan(doc)
    equal(sound(doc, binds), ([23, 23, 24, 24] * 2, [3] * 8), "cores and L3 groups of each rank")
    equal([b["cpus"] for b in binds[:3]], ["1-23,193-215", "25-47,217-239", "48-71,240-263"], "cpus")
    equal([(b["mem_policy"], b["mem_nodes"], b["nic"]) for b in binds], [("preferred", "01"[i // 4], "mlx5_%d" % i) for i in range(8)], "memory and NIC")
    sound(doc, plan(doc, reserve=0), 0)
    equal([len(ids(b["cpus"])) for b in plan(doc, reserve=0, smt="one")], [24] * 8, "threads with smt: one and nothing reserved")


@in_directory
def mi300x_half_full_and_neighbours(top):
    _, doc = machines.made(top, "mi300x", cores=96)
    whole = [b["cpus"] for b in plan(doc)]
    first = plan(doc, gpus="0-1,6")
    second = plan(doc, gpus="2-5,7", taken=",".join(b["cpus"] for b in first))
    equal([b["cpus"] for b in first + second], [whole[i] for i in (0, 1, 6, 2, 3, 4, 5, 7)], "cpus")
    other = plan(doc, gpus="0-7", taken=",".join(whole[:2]))
    need(not any(b.get("shared") and i > 1 for i, b in enumerate(other)), "ranks whose cores are free share none")


@in_directory
def mi300x_partitioned(top):
    _, doc = machines.made(top, "mi300x-cpx", cores=96)
    counts, _ = sound(doc, plan(doc))
    equal((len(counts), set(counts), sum(counts)), (64, {2, 3}, 2 * 94), "ranks, cores of each, cores")


@in_directory
def mi355x(top):
    _, doc = machines.made(top, "mi355x", cores=64)
    binds = plan(doc, memory="bind")
    equal(sound(doc, binds), ([15] * 8, [2] * 8), "cores and L3 groups of each rank")
    equal([(b["mem_policy"], b["mem_nodes"]) for b in binds], [("bind", n) for n in "11003322"], "memory")
    equal(binds[2]["cpus"], "1-15,129-143", "cpus of the first GPU on node 0")


@in_directory
def one_gpu_of_unknown_place(top):
    _, doc = machines.made(top, "h200-vm", cores=16)
    binds = plan(doc)
    equal([(b["cpus"], b["mem_policy"], b.get("note")) for b in binds], [("2-15", "none", None)], "plan")


@in_directory
def fewer_cores_than_ranks(top):
    _, doc = machines.made(top, "mi300x", cores=2)
    for b in plan(doc):
        need(b["shared"] and len(ids(b["cpus"])) == 4 and "fewer cores than ranks" in b["note"], b)


# ---- recorded machines
@in_directory
def recorded_roots(top):
    for name, counts in (("mi300x", [23, 23, 24, 24] * 2), ("mi300x-faults", [23, 23, 24, 24] * 2), ("mi355x", [15] * 8)):
        machines.recorded("synthetic/fakeroot-%s.tar.xz" % name)
        doc = machines.unpacked(os.path.join(top, name), name)
        equal(sound(doc, plan(doc))[0], counts, "cores of each rank of %s" % name)


@in_directory
def recorded_kfd_dumps(top):
    """GPUs of real machines on a host of 2 nodes with 16 cores each: more GPUs than cores share them and say so."""
    for name, inner in (("topo-mi300-cpx", "topology"), ("topology-parsing-mi308", "topology"), ("topo-mi210-xgmi-pcie", "")):
        doc = machines.kfd_dump(os.path.join(top, name), "kfd/%s.tar.gz" % name, inner, 16)
        binds = plan(doc)
        on = {n["id"]: len([g for g in doc["gpus"] if g["numa_node"] == n["id"]]) for n in doc["numa"]}
        if max(on.values()) <= 16:
            equal(sum(sound(doc, binds)[0]), sum(16 - min(2, 16 - n) for n in on.values() if n), "cores of all ranks of " + name)
        else:
            need(all(b["shared"] and b["note"].startswith("ranks share ") for b in binds), "%s: %s" % (name, binds[0]))


@in_directory
def recorded_tioga(top):
    """GPU order is not NUMA order: a real MI250X node of 4 NUMA nodes with 16 cores in 2 L3 groups each."""
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


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
