"""Discovery of machines: a root directory or an hwloc file in, the expected nodeinfo out. Machines
of our own (tests/fixtures/machine.py) always; recorded ones when they lie beside the checkout.
Expected values are those of the machine's description, not of an earlier run."""
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import (
    PATIENCE,
    BUILD,
    ROOT,
    Cluster,
    Failed,
    Skipped,
    Suite,
    equal,
    need,
    wait_until,
)  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tests/fixtures"))
import machine  # noqa: E402

RECORDED = os.path.join(ROOT, "../shared/data/hardware")
MI300X_BUSES = ["0000:%s:00.0" % b for b in "0c 15 1e 69 9f af bf df".split()]
suite = Suite()


def in_directory(fn):
    @functools.wraps(fn)
    def run():
        with tempfile.TemporaryDirectory(
            dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        ) as top:
            fn(top)

    return suite.test(run)


def recorded(path):
    full = os.path.join(RECORDED, path)
    if not os.path.exists(full):
        raise Skipped("%s is not beside the checkout" % path)
    return full


def discover(*args):
    r = subprocess.run(
        [os.path.join(BUILD, "moe-discover"), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 60,
    )
    if r.returncode:
        raise Failed(
            "moe-discover %s: exit status %d: %s" % (" ".join(args), r.returncode, r.stderr)
        )
    return json.loads(r.stdout)


def made(top, kind, faults=(), cores=4, gpus=None):
    root = os.path.join(top, kind)
    shutil.rmtree(root, ignore_errors=True)
    m = machine.make(kind, root, faults, cores, gpus)
    return m, discover("--root", root)


def each(doc, key, what="gpus"):
    return [x.get(key) for x in doc[what]]


def findings(doc):
    return [(f["object"], f["text"]) for f in doc.get("findings", [])]


def pairs(doc, type):
    """Links of a type as {(from, to): weight}."""
    return {(k["from"], k["to"]): k["weight"] for k in doc.get("links", []) if k["type"] == type}


def mi300x_as_described(doc, cores):
    equal(each(doc, "bdf"), MI300X_BUSES, "addresses")
    equal(each(doc, "model"), ["mi300x"] * 8)
    equal(each(doc, "numa_node"), [0] * 4 + [1] * 4, "NUMA nodes of GPUs")
    equal(each(doc, "vram_bytes"), [206141652992] * 8)
    equal(each(doc, "nic"), ["mlx5_%d" % i for i in range(8)])
    equal(each(doc, "render_minor"), list(range(128, 136)))
    equal(set(each(doc, "compute_partition") + each(doc, "memory_partition")), {"SPX", "NPS1"})
    equal(each(doc, "partition"), [None] * 8, "partitions")
    equal(len(set(each(doc, "hive"))), 1, "hives")
    equal(len(set(each(doc, "unique_id"))), 8, "identities")
    equal(pairs(doc, "xgmi"), {(a, b): 15 for a in range(8) for b in range(a + 1, 8)}, "links")
    equal([doc["sockets"], doc["cpus"], len(doc["numa"])], [2, 4 * cores, 2])
    equal([n["distances"] for n in doc["numa"]], ["10 32", "32 10"])
    need(
        doc["cpu_model"].startswith("AMD EPYC 9654")
        and doc["driver"] == "amdgpu 6.16.13"
        and doc["simulated"],
        doc,
    )
    equal(each(doc, "link_layer", "nics"), ["InfiniBand"] * 8)
    equal(each(doc, "gid_index", "nics"), [None] * 8)
    equal(set(each(doc, "family", "nics")), {"mellanox"})
    equal(each(doc, "netdev", "nics"), ["ib%d" % i for i in range(8)])


@in_directory
def mi300x(top):
    _, doc = made(top, "mi300x")
    mi300x_as_described(doc, 4)
    equal(set(each(doc, "rate_gbps", "nics")), {400})
    equal(findings(doc), [])
    equal(
        each(doc, "bdf", "nics"), ["0000:%02x:00.0" % (int(b[5:7], 16) - 5) for b in MI300X_BUSES]
    )
    equal([n["cores"] for n in doc["numa"]], ["0,8;1,9;2,10;3,11", "4,12;5,13;6,14;7,15"])
    # as many slots as asked for keep their numbers, and their links
    some = discover("--root", top + "/mi300x", "--gpus", "2,5")
    equal(each(some, "index"), [2, 5])
    equal(list(pairs(some, "xgmi")), [(2, 5)])


@in_directory
def mi300x_partitioned(top):
    _, doc = made(top, "mi300x-cpx")
    equal(len(doc["gpus"]), 64)
    equal(each(doc, "bdf"), [b for b in MI300X_BUSES for _ in range(8)])
    equal(each(doc, "partition"), list(range(8)) * 8)
    equal(len(set(each(doc, "unique_id"))), 8, "identities")
    equal(each(doc, "render_minor"), list(range(128, 192)))
    equal(set(each(doc, "compute_partition")), {"CPX"})
    equal(each(doc, "nic"), ["mlx5_%d" % (i // 8) for i in range(64)])
    equal(set(each(doc, "vram_bytes")), {206141652992 // 8})
    weights = pairs(doc, "xgmi")
    equal(
        weights,
        {(a, b): 13 if a // 8 == b // 8 else 41 for a in range(64) for b in range(a + 1, 64)},
        "links",
    )
    equal(findings(doc), [])


@in_directory
def mi355x(top):
    _, doc = made(top, "mi355x")
    equal(each(doc, "numa_node"), [1, 1, 0, 0, 3, 3, 2, 2], "NUMA nodes of GPUs")
    equal(each(doc, "nic"), ["ionic_%d" % i for i in range(8)])
    equal(set(each(doc, "vram_bytes")), {309220868096})
    equal([doc["sockets"], len(doc["numa"])], [2, 4])
    equal(set(each(doc, "family", "nics")), {"ainic"})
    equal(each(doc, "gid_index", "nics"), [3] * 8, "lowest RoCE v2 address that can be routed")
    equal(each(doc, "netdev", "nics"), ["benic%dp1" % (i + 1) for i in range(8)])
    equal(findings(doc), [])


@in_directory
def other_machines(top):
    _, doc = made(top, "thor2")
    equal(set(each(doc, "model")), {"mi325x"})
    equal(set(each(doc, "family", "nics")), {"broadcom"})
    equal(findings(doc), [])
    _, doc = made(top, "h200-vm", cores=16)
    gpu = doc["gpus"][0]
    equal(
        [len(doc["gpus"]), gpu["model"], gpu["bdf"], gpu["vendor"]],
        [1, "h200", "0000:00:06.0", "nvidia"],
    )
    equal(gpu["numa_node"], 0, "the one NUMA node, although the firmware says -1")
    equal(
        [gpu["nic"], doc.get("nics", []), doc["driver"], findings(doc)],
        [None, [], "nvidia 580.159.04", []],
    )
    _, doc = made(top, "cpu")
    equal([doc["gpus"], len(doc["numa"]), doc["driver"], findings(doc)], [[], 2, None, []])
    doc = discover("--root", top + "/cpu", "--fake-gpus", "4")
    equal(
        [(g["vendor"], g["numa_node"]) for g in doc["gpus"]],
        [("fake", 0), ("fake", 0), ("fake", 1), ("fake", 1)],
    )


# fault: GPUs that are left, findings (object, part of the text), and what the GPU that is hit says
# now (default index 2); None: it is left out
HIT = "0000:1e:00.0"
ODD = {
    "gone": (3, [("KFD node 4", "not there")], None),
    "no_driver": (3, [("KFD node 4", "not there"), (HIT, "does not report")], None),
    "no_pci": (4, [(HIT, "no PCI directory")], {"numa_node": 0, "vram_bytes": 206141652992}),
    "cyclic": (4, [(HIT, "no PCI directory")], {"numa_node": 0}),
    "no_render": (3, [(HIT, "renderD130")], None),
    "same_id": (4, [(HIT, "unique_id")], {"unique_id": None, "nic": "mlx5_2"}),
    "numa_missing": (4, [(HIT, "numa_node 7")], {"numa_node": 0}),
    "numa_none": (4, [], {"numa_node": 0}),
    "ones": (3, [("KFD node 4", "no PCI address"), (HIT, "does not report")], None),
    "props_missing": (3, [("KFD node 4", "No such file"), (HIT, "does not report")], None),
    "props_unreadable": (3, [("KFD node 4", "Is a directory"), (HIT, "does not report")], None),
    "props_binary": (3, [("KFD node 4", "no PCI address"), (HIT, "does not report")], None),
    "props_huge": (3, [("KFD node 4", "too large"), (HIT, "does not report")], None),
    "partition=2": (4, [(HIT, "says CPX")], {"compute_partition": "CPX"}),
    "hive=2": (4, [], {"hive": "%016x" % 4711}),
}


@in_directory
def odd_gpus(top):
    m, healthy = made(top, "mi300x", cores=1, gpus=4)
    sound = m.root
    for fault, (n, found, hit) in ODD.items():
        m.root = os.path.join(top, fault)
        subprocess.run(["cp", "-a", sound, m.root], check=True)
        machine.apply(m, fault)
        doc = discover("--root", m.root)
        shutil.rmtree(m.root)
        equal(len(doc["gpus"]), n, "GPUs with " + fault)
        got = findings(doc)
        need(
            len(got) == len(found)
            and all(any(o == object and part in text for o, text in got) for object, part in found),
            lambda: "%s: findings %s, expected %s" % (fault, got, found),
        )
        for gpu in healthy["gpus"]:
            now = [g for g in doc["gpus"] if g["bdf"] == gpu["bdf"]]
            if gpu["bdf"] == HIT:
                equal(len(now), 0 if hit is None else 1, "the GPU that is hit by " + fault)
                need(
                    not hit or all(now[0].get(k) == v for k, v in hit.items()),
                    lambda: "%s: %s, expected %s" % (fault, now, hit),
                )
            elif fault != "same_id" or gpu["index"]:
                equal(
                    {k: v for k, v in now[0].items() if k != "index"},
                    {k: v for k, v in gpu.items() if k != "index"},
                    "a GPU that %s does not hit" % fault,
                )
        equal(doc["nics"], healthy["nics"], "NICs with " + fault)


@in_directory
def odd_nics(top):
    m, doc = made(top, "mi355x", ["nic_down=1", "nic_no_gid=2", "nic_slow=3"])
    equal([doc["nics"][1]["state"], doc["nics"][1]["rate_gbps"]], ["DOWN", 10])
    equal(each(doc, "gid_index", "nics"), [3, 3, None, 3, 3, 3, 3, 3])
    equal(doc["nics"][3]["rate_gbps"], 100)
    # two ports, the second one active; an IPv6 address that can be routed; a link-local one cannot
    port = m.nics[4].ib + "/ports/%d"
    shutil.copytree(m.where(port % 1), m.where(port % 2))
    m.write(port % 1 + "/state", "1: DOWN")
    m.write(port % 2 + "/gids/1", "2001:0db8:0000:0000:0000:0000:0000:0001")
    m.write(port % 2 + "/rate", "200 Gb/sec (4X HDR)")
    # files that make no sense
    bad = m.nics[5].ib + "/ports/1/"
    m.write(bad + "rate", b"\xff\xfe fast")
    m.write(bad + "state", b"")
    machine.unreadable(m, bad + "link_layer")
    m.remove(m.nics[6].ib + "/ports")
    doc = discover("--root", m.root)
    four, five, six = doc["nics"][4:7]
    equal(
        [four["port"], four["state"], four["rate_gbps"], four["gid_index"]], [2, "ACTIVE", 200, 1]
    )
    equal([five["state"], five["rate_gbps"], five["link_layer"], five["gid_index"]], [None] * 4)
    equal([six["port"], six["state"], six["netdev"]], [None, None, "benic7p1"])
    equal([o for o, _ in findings(doc)], ["ionic_5", "ionic_6"])
    equal(
        each(doc, "nic"), ["ionic_%d" % i for i in range(8)], "pairs are by place, whatever works"
    )


@in_directory
def damaged_modes(top):
    m, _ = made(top, "mi300x")
    machine.unreadable(m, "{gpu1}/current_compute_partition")
    m.write("{gpu2}/current_memory_partition", b"\x00\x01\x02")
    m.write("{gpu3}/numa_node", "4294967295")
    m.remove("{kfd4}/mem_banks")
    m.remove("{gpu5}/local_cpulist")
    m.write("{gpu5}/numa_node", "-1")
    m.write("{gpu6}/numa_node", b"\x01\x02zz")
    m.write("{gpu7}/numa_node", "99999999999999999999")
    doc = discover("--root", m.root)
    equal(len(doc["gpus"]), 8)
    equal(
        [doc["gpus"][1].get("compute_partition"), doc["gpus"][2].get("memory_partition")],
        [None, None],
    )
    equal(each(doc, "numa_node"), [0] * 4 + [1] * 4)
    equal(doc["gpus"][4]["vram_bytes"], 206141652992, "VRAM without memory banks")
    equal([o for o, _ in findings(doc)], [MI300X_BUSES[i] for i in (1, 2, 6, 7)])
    need(
        "numa_node says '??zz', which is no number" in dict(findings(doc))[MI300X_BUSES[6]],
        findings(doc),
    )


@in_directory
def shown_and_logged(top):
    """What discovery found reaches people: the drawing of moectl node, the picture, the agent's
    log."""
    m = machine.make("mi355x", top + "/m", ["no_render", "nic_down=1"], cores=4)
    with Cluster(top + "/c", nodes=1, gpus_per_node=7, extra=["--topology", m.root]) as c:
        wait_until(lambda: "GPU 6" in c.run("node", "node-0").stdout, 20, "the drawing")
        text = c.run("node", "node-0").stdout
        need(re.search(r"GPU 1  mi355x .* ionic_1 DOWN ", text), text)
        need(
            re.search(
                r"^! 0000:65:00.0: /dev/dri/renderD130: No such file or directory: ", text, re.M
            ),
            text,
        )
        need("XGMI hive 5ac1000003000001: slots 0-6, each linked to each (weight 15)" in text, text)
        wait_until(
            lambda: "/dev/dri/renderD130" in c.log("node-0"), 10, "the finding in the agent's log"
        )


# ---- recorded machines
def unpack(name, dir):
    """By tar: Python takes minutes for these trees."""
    os.makedirs(dir)
    subprocess.run(["tar", "-xf", recorded(name), "-C", dir, "--no-same-owner"], check=True)


def kfd_dump(top, name, inner, cores=4):
    """A machine that has nothing but the KFD topology of the dump."""
    m = machine.make("cpu", os.path.join(top, "m"), cores=cores)
    for path in ("dev", "sys/bus"):
        m.remove(path)
    unpack(name, os.path.join(top, "t"))
    os.makedirs(m.where("sys/class/kfd/kfd"))
    os.rename(os.path.join(top, "t", inner), m.where("sys/class/kfd/kfd/topology"))
    nodes = []
    for n in sorted(os.listdir(m.where("sys/class/kfd/kfd/topology/nodes")), key=int):
        p = dict(
            line.split()
            for line in open(m.where("sys/class/kfd/kfd/topology/nodes/%s/properties" % n))
        )
        if int(p["simd_count"]):
            nodes.append({k: int(v) for k, v in p.items()})
    doc = discover("--root", m.root)
    equal(each(doc, "render_minor"), [n["drm_render_minor"] for n in nodes], "render nodes")
    equal(each(doc, "unique_id"), ["%016x" % n["unique_id"] for n in nodes], "identities")
    return doc


@in_directory
def recorded_mi300x_cpx(top):
    doc = kfd_dump(top, "kfd/topo-mi300-cpx.tar.gz", "topology")
    equal(len(doc["gpus"]), 63, "the dump lacks the last partition")
    equal(each(doc, "partition"), (list(range(8)) * 8)[:63])
    equal([g["bdf"] for g in doc["gpus"][:24:8]], ["0000:05:00.0", "0000:27:00.0", "0000:47:00.0"])
    equal(set(each(doc, "hive")), {"%016x" % 15188982192727901047})
    equal(set(each(doc, "compute_partition")), {"CPX"})
    equal(
        pairs(doc, "xgmi"),
        {(a, b): 13 if a // 8 == b // 8 else 41 for a in range(63) for b in range(a + 1, 63)},
    )
    equal([doc["gpus"][0]["numa_node"], doc["gpus"][62]["numa_node"]], [0, 1])


@in_directory
def recorded_mi308x(top):
    doc = kfd_dump(top, "kfd/topology-parsing-mi308.tar.gz", "topology")
    equal(len(doc["gpus"]), 32)
    equal(set(each(doc, "model")), {"mi308x"})
    equal(each(doc, "partition"), list(range(4)) * 8)
    equal(
        [g["bdf"] for g in doc["gpus"][:20:4]],
        ["0000:0a:00.0", "0000:80:00.0", "0000:a4:00.0", "0000:c8:00.0", "0001:0b:00.0"],
    )
    equal(
        sorted(set(each(doc, "vram_bytes"))),
        [51522830336, 51539607552],
        "a quarter of 192 GiB, or a little less",
    )
    equal(set(each(doc, "compute_partition")), {"CPX"}, "one chiplet each")


@in_directory
def recorded_mi210(top):
    doc = kfd_dump(top, "kfd/topo-mi210-xgmi-pcie.tar.gz", "")
    equal(
        each(doc, "bdf"),
        ["0000:%s:00.0" % b for b in "63 43 03 26 e3 c3 83 a3".split()],
        "the driver's order is not that of addresses",
    )
    equal(
        each(doc, "hive"),
        ["%016x" % 12609507387757274807] * 4 + ["%016x" % 18091350218769748594] * 4,
    )
    equal(
        pairs(doc, "xgmi"),
        {(a, b): 15 for a in range(8) for b in range(a + 1, 8) if a // 4 == b // 4},
    )
    equal(pairs(doc, "pcie"), {(a, b): 72 for a in range(4) for b in range(4, 8)})


@in_directory
def recorded_vega(top):
    doc = kfd_dump(top, "kfd/topology-parsing.tar.gz", "topology")
    equal(each(doc, "bdf"), ["0000:19:00.0"] * 2)
    equal(each(doc, "vram_bytes"), [17163091968] * 2)
    need(any("one address" in t for _, t in findings(doc)), findings(doc))


def unpacked(top, name):
    unpack("synthetic/fakeroot-%s.tar.xz" % name, top + "/t")
    inner = [
        d for d in ("", *os.listdir(top + "/t")) if os.path.isdir(os.path.join(top, "t", d, "sys"))
    ]
    need(inner, "no sys in " + name)
    return discover("--root", os.path.join(top, "t", inner[0]))


@in_directory
def recorded_root_mi300x(top):
    doc = unpacked(top, "mi300x")
    mi300x_as_described(doc, 96)
    equal(findings(doc), [])


@in_directory
def recorded_root_mi355x(top):
    doc = unpacked(top, "mi355x")
    equal(each(doc, "numa_node"), [1, 1, 0, 0, 3, 3, 2, 2])
    equal(each(doc, "nic"), ["ionic_%d" % i for i in range(8)])
    equal(each(doc, "gid_index", "nics"), [1] * 8)
    equal([doc["cpus"], len(doc["numa"]), findings(doc)], [256, 4, []])


@in_directory
def recorded_root_with_faults(top):
    doc = unpacked(top, "mi300x-faults")
    mi300x_as_described(doc, 96)
    equal(
        [(n["name"], n["state"], n["rate_gbps"]) for n in doc["nics"] if n["state"] != "ACTIVE"],
        [("mlx5_1", "DOWN", 10)],
    )
    equal(findings(doc), [])


@suite.test
def recorded_hwloc():
    doc = discover("--xml", recorded("hwloc-real/tioga-1x7A53-8xMI250X.xml"))
    equal(each(doc, "numa_node"), [3, 3, 1, 1, 0, 0, 2, 2])
    equal(
        [set(each(doc, "model")), len(doc["numa"]), set(each(doc, "hive"))],
        [{"mi250x"}, 4, {"dc4193b3799d5078"}],
    )
    for name in ("corona-epyc-8xMI60-rsmi", "corona240-rsmi-flux"):
        path = recorded("hwloc-real/%s.xml" % name)
        doc = discover("--xml", path)
        order = {
            o.get("name"): p.get("pci_busid")
            for p in ElementTree.parse(path).iter("object")
            for o in p.findall("object")
            if (o.get("name") or "").startswith("rsmi")
        }
        equal(
            each(doc, "bdf"),
            [order["rsmi%d" % i] for i in range(8)],
            "the driver's numbers in " + name,
        )
        equal([set(each(doc, "hive")), len(doc["numa"])], [{None}, 2])
    for name, buses, nodes in (
        ("8x-mi300x-nps1", MI300X_BUSES, [0] * 4 + [1] * 4),
        ("8x-mi355x-nps2", None, [1, 1, 0, 0, 3, 3, 2, 2]),
    ):
        doc = discover("--xml", recorded("synthetic/hwloc/%s.xml" % name))
        need(not buses or each(doc, "bdf") == buses, each(doc, "bdf"))
        equal(each(doc, "numa_node"), nodes)
        equal(each(doc, "state", "nics"), ["ACTIVE"] * 8)
        equal(each(doc, "nic"), [("mlx5_%d" if buses else "ionic_%d") % i for i in range(8)])


@in_directory
def recorded_rccl_pairs(top):
    """RCCL's own dump of a real 8x MI300X node: the NIC below each GPU's switch is the one we pair,
    on a machine of the same addresses."""
    want = {}
    for cpu in ElementTree.parse(recorded("nccl-topo/topo_8p_940.xml")).getroot().findall("cpu"):
        for switch in cpu.findall("pci"):
            gpus = [p.get("busid") for p in switch.iter("pci") if p.find("gpu") is not None]
            nets = [n.get("name") for n in switch.iter("net")]
            for g, n in zip(gpus, nets):
                want[g] = (n, int(cpu.get("numaid")))
    equal(sorted(want), sorted(MI300X_BUSES))
    _, doc = made(top, "mi300x")
    equal({g["bdf"]: (g["nic"], g["numa_node"]) for g in doc["gpus"]}, want)


@in_directory
def recorded_h200(top):
    sections = dict(
        s.partition("\n")[::2]
        for s in re.split(
            r"^##### ", open(recorded("nvidia-h200/h200-x1-probe.txt")).read(), flags=re.M
        )[1:]
    )
    text = lambda word: next(v for k, v in sections.items() if word in k)
    m, _ = made(top, "h200-vm", cores=16)
    m.write(
        "proc/driver/nvidia/gpus/0000:00:06.0/information",
        text("gpus/*/information").partition("<==\n")[2].partition("head:")[0].encode(),
    )
    m.write("sys/devices/system/node/node0/meminfo", text("meminfo").encode())
    for line in text("/sys/bus/pci/devices/0000:00:06.0").splitlines():
        name, colon, value = line.rstrip(";").partition(": ")
        if colon and os.path.exists(m.where("{gpu0}/" + name)):
            m.write("{gpu0}/" + name, value)
    doc = discover("--root", m.root)
    gpu = doc["gpus"][0]
    equal(
        [
            gpu["model"],
            gpu["bdf"],
            gpu["unique_id"],
            gpu["numa_node"],
            doc["cpus"],
            doc["mem_bytes"],
        ],
        ["h200", "0000:00:06.0", "GPU-00000000-0000-0000-0000-000000000000", 0, 16, 4550128 * 1024],
    )


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
