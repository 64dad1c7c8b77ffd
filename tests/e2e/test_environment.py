#!/usr/bin/python3
"""explain env and explain bind against what ranks really got, on machines that are not here: 8x
MI300X with Mellanox InfiniBand, 8x MI355X with Pollara, and recorded ones where
../shared/data/hardware lies beside the repository. Usage: test_environment.py [TEST...]"""
import json
import os
import shutil
import signal
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "fixtures")]
import machine
from lib import ROOT, Cluster, Skipped, Suite, clean_env, equal, moectl, need, wait_until

suite = Suite()
WORK = tempfile.mkdtemp(prefix="moe-env-")
RECORDED = os.path.join(ROOT, "..", "shared", "data", "hardware", "synthetic")


def place(name):
    return os.path.join(WORK, name)


def recipe(name, gpus, out, env=None, **top):
    """Each rank leaves its environment in OUT.RANK, as the kernel has it at its start, and
    waits."""
    doc = {
        "recipe": 1,
        "name": name,
        "engine": {
            "kind": "command",
            "argv": [
                "/bin/sh",
                "-c",
                "cat /proc/$$/environ > %s.$RANK.new; mv %s.$RANK.new %s.$RANK; exec sleep 600"
                % (out, out, out),
            ],
        },
        "cluster": {"gpus": gpus},
        "env": env or {},
    }
    doc.update(top)
    return json.dumps(doc)


def environ(path):
    wait_until(lambda: os.path.exists(path), 30, path)
    with open(path) as f:
        return dict(word.split("=", 1) for word in f.read().split("\0") if word)


def explained(c, job, rank):
    doc = c.json("explain", "env", job, "--rank", rank)
    return doc, {i["name"]: i for i in doc["items"]}


def same(c, job, rank, out, secret=()):
    """The rank's real environment and what explain says, variable by variable."""
    real = environ("%s.%d" % (out, rank))
    c.wait_state(job, "running")  # the record is written before a step says that it runs
    doc = c.explain_env(job, "--rank", rank)
    equal((doc["source"], doc["note"]), ("node", None), "source of explain env")
    items = {i["name"]: i for i in doc["items"]}
    said = {k: v["value"] for k, v in items.items() if v["value"] is not None}
    for name in secret:
        equal((said.pop(name), bool(real.pop(name))), ("***", True), name)
    equal(said, real, "environment of rank %d" % rank)
    for item in items.values():
        need(item["reason"] and item["source"], lambda: "no reason or source: %s" % item)
    return items, real


@suite.test
def mi355x_with_pollara():
    root, out = place("mi355x"), place("a")
    machine.make("mi355x", root, cores=16)
    with Cluster(place("c355"), nodes=2, gpus_per_node=8, extra=["--topology", root]) as c:
        job = c.submit(
            recipe(
                "a",
                16,
                out,
                {
                    "HF_TOKEN": "hush-hush",
                    "NCCL_IB_TC": 96,
                    "MINE": "m",
                    "HIP_FORCE_DEV_KERNARG": 1,
                },
            )
        )
        for rank in (0, 9, 15):
            items, real = same(c, job, rank, out, ["HF_TOKEN"])
        need("hush-hush" not in c.run("explain", "env", job).stdout, "a secret is shown")
        equal(real["NCCL_IB_HCA"], ",".join("ionic_%d:1" % i for i in range(8)), "NCCL_IB_HCA")
        equal(
            [
                real[n]
                for n in (
                    "NCCL_IB_GID_INDEX",
                    "NCCL_PXN_DISABLE",
                    "NCCL_SOCKET_IFNAME",
                    "GLOO_SOCKET_IFNAME",
                    "RCCL_WARP_SPEED_AUTO",
                    "ENABLE_NUMA_BINDING",
                )
            ],
            ["3", "0", "lo", "lo", "0", "0"],
            "node's variables",
        )
        equal(
            items["NCCL_IB_GID_INDEX"]["overrides"],
            "1 (profile)",
            "GID index: what this machine has wins over the profile",
        )
        need(
            "which is not that on this node" in items["NCCL_IB_GID_INDEX"]["reason"],
            items["NCCL_IB_GID_INDEX"]["reason"],
        )
        equal(
            (
                items["NCCL_IB_TC"]["value"],
                items["NCCL_IB_TC"]["overrides"],
                items["NCCL_IB_TC"]["source"],
            ),
            ("96", "104 (profile)", "recipe: env.NCCL_IB_TC"),
            "the user's value",
        )
        need(
            "12.0 MiB for each stream" in items["HSA_KERNARG_POOL_SIZE"]["reason"],
            "nothing is said of VRAM",
        )
        bind = c.json("explain", "bind", job)
        ranks = {r["rank"]: r for r in c.json("ranks", job)["items"]}
        equal((bind["source"], len(bind["items"])), ("node", 16), "explain bind")
        for b in bind["items"]:
            r = ranks[b["rank"]]
            equal(
                [b[k] for k in ("cpus", "numa_node", "gpu", "nic", "bind_verified", "bind_note")],
                [r[k] for k in ("cpus", "numa_node", "gpu", "nic", "bind_verified", "bind_note")],
                "binding",
            )
            need(
                b["bdf"]
                and b["cores"] > 0
                and b["l3"]
                and b["memory"] == "preferred %d" % b["numa_node"]
                and len(b["why"]) >= 4,
                lambda: "explain bind: %s" % b,
            )
        equal(
            [b["rank"] for b in c.json("explain", "bind", job, "--rank", 11)["items"]],
            [11],
            "explain bind --rank",
        )


@suite.test
def mi300x_with_infiniband():
    root, out = place("mi300x"), place("b")
    machine.make("mi300x", root, cores=16)
    with Cluster(place("c300"), nodes=1, gpus_per_node=8, extra=["--topology", root]) as c:
        job = c.submit(recipe("b", 4, out))
        items, real = same(c, job, 3, out)
        equal(
            real["NCCL_IB_HCA"],
            ",".join("mlx5_%d:1" % i for i in range(4)),
            "NCCL_IB_HCA of half a node",
        )
        need(
            "NCCL_IB_GID_INDEX" not in real and "NCCL_SOCKET_IFNAME" not in real,
            "InfiniBand on one node has a GID index or an interface",
        )
        equal(
            (items["NCCL_IB_GID_INDEX"]["value"], items["NCCL_IB_GID_INDEX"]["overrides"]),
            (None, "3 (profile)"),
            "GID index",
        )
        need("is not set" in c.run("explain", "env", job).stdout, "what is unset is not shown")
        equal(
            (
                real["HSA_NO_SCRATCH_RECLAIM"],
                real["NCCL_PXN_DISABLE"],
                real.get("RCCL_WARP_SPEED_AUTO"),
            ),
            ("1", "1", None),
            "gfx942",
        )
        # a job that waits, one that was never placed, one whose node does not answer
        waits = c.submit(recipe("waits", 8, place("w")))
        doc, _ = explained(c, waits, 5)
        equal(doc["source"], "preview", "source of a queued job")
        need("no place" in doc["note"], doc["note"])
        doc = c.json("explain", "bind", waits)
        equal(
            (doc["source"], doc["placed_on"]), ("preview", "idle-nodes"), "binding of a queued job"
        )
        # no node here has so many GPUs: what is shown is no machine of theirs, and says so
        large = c.submit(recipe("large", 16, place("l")))
        doc = c.json("explain", "bind", large)
        equal(
            (doc["placed_on"], doc["items"][0]["node"]),
            ("example", "example-00000"),
            "binding on no machine",
        )
        need("EXAMPLE" in doc["note"] and "where it would go" not in doc["note"], doc["note"])
        need(not any("not among" in w for i in doc["items"] for w in i["why"]), doc["items"][0])
        doc, _ = explained(c, large, 0)
        equal(doc["placed_on"], "example", "environment on no machine")
        need("EXAMPLE" in doc["note"], doc["note"])
        c.run("cancel", large)
        pid = c.status()["agents"][0]["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            doc, items = explained(c, job, 0)
            equal(doc["source"], "preview", "source with a silent node")
            need("did not answer in time" in doc["note"] or "is down" in doc["note"], doc["note"])
            equal(items["RANK"]["value"], "0", "RANK of the preview")
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_until(
            lambda: explained(c, job, 0)[0]["source"] == "node", 30, "the node's own word again"
        )
        r = c.run("explain", "env", job, "--rank", 4, check=False)
        need(r.returncode != 0 and "no such rank" in r.stderr, r.stderr)


@suite.test
def primus_gets_what_its_launcher_exports():
    """Each variable of base_env.sh and of the file of the GPU, for each of the backends: the same
    value, or a reason why not that names what Primus does."""
    with open(os.path.join(HERE, "..", "fixtures", "primus_env.tsv")) as f:
        exported = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    need(len(exported) > 45, "only %d variables" % len(exported))
    python, work = place("python"), place("primus")
    os.makedirs(work, exist_ok=True)
    with open(python, "w") as f:
        f.write("#!/bin/sh\nexec sleep 600\n")
    os.chmod(python, 0o755)
    launcher = ("MASTER_ADDR", "MASTER_PORT", "NNODES", "NODE_RANK", "HIP_VISIBLE_DEVICES")
    for gpu in ("mi300x", "mi355x"):
        root = place("p-" + gpu)
        machine.make(gpu, root, cores=16)
        with Cluster(place("cp-" + gpu), nodes=1, gpus_per_node=8, extra=["--topology", root]) as c:
            for kind in ("primus-megatron", "primus-torchtitan", "primus-maxtext"):
                job = c.submit(
                    json.dumps(
                        {
                            "recipe": 1,
                            "name": kind,
                            "engine": {
                                "kind": kind,
                                "workdir": work,
                                "entry": "e.yaml",
                                "python": python,
                            },
                            "steps": 1,
                            "parallelism": {"tp": 1, "pp": 1, "ep": 1, "cp": 1},
                            "cluster": {"gpus": 8, "gpu": gpu},
                        }
                    )
                )
                c.wait_state(job, "running")
                items = {i["name"]: i for i in c.explain_env(job)["items"]}
                shown, differ = c.run("explain", "env", job).stdout, []
                for file, name, value in exported:
                    if file not in ("base_env.sh", gpu.upper() + ".sh"):
                        continue
                    need(
                        name in items and items[name]["reason"] and items[name]["source"],
                        "%s on %s: nothing is said of %s, which Primus sets to '%s'"
                        % (kind, gpu, name, value),
                    )
                    if items[name]["value"] != value:
                        differ.append(name)
                        words = items[name]["reason"] + items[name]["source"]
                        # what the node's own devices say replaces what Primus sets
                        need(
                            name in launcher
                            or "primus" in words.lower()
                            or items[name]["overrides"],
                            "%s on %s: %s is %s instead of '%s': %s"
                            % (kind, gpu, name, items[name]["value"], value, items[name]["reason"]),
                        )
                        need(name in shown, "explain env says nothing of " + name)
                need(
                    "NCCL_DEBUG" in differ
                    and "HF_HOME" in differ
                    and "GPU_MAX_HW_QUEUES" not in differ,
                    differ,
                )
                c.run("cancel", job, "--now")
                c.wait_state(job, "cancelled")


@suite.test
def bad_visibility_has_line_and_column():
    path = place("bad.yaml")
    with open(path, "w") as f:
        f.write(
            "recipe: 1\nname: bad\nengine: {kind: command, argv: [x]}\ncluster: {gpus: 1}\nenv:\n"
            "  A: b\n  ROCR_VISIBLE_DEVICES: \"4,5\"\n"
        )
    r = moectl("submit", path, "--dry-run", check=False, env=clean_env())
    need(
        r.returncode == 2 and ":7:3: " in r.stderr and "two of them filter twice" in r.stderr,
        r.stderr,
    )


@suite.test
def dry_run_shows_profiles():
    path = place("dry.yaml")
    with open(path, "w") as f:
        f.write(recipe("dry", 8, "/x", cluster={"gpus": 8, "gpu": "mi355x"}))
    env = json.loads(
        moectl(
            "submit", path, "--dry-run", "--json", env=clean_env(MOE_URL="unix:" + place("nobody"))
        ).stdout
    )["ranks"][7]["env"]
    equal(
        [env.get(k) for k in ("RCCL_WARP_SPEED_AUTO", "HSA_KERNARG_POOL_SIZE", "LOCAL_RANK")],
        ["0", "12582912", "7"],
        "dry run for MI355X",
    )


@suite.test
def recorded_machines():
    names = {"mi300x": ("mlx5_", "1"), "mi355x": ("ionic_", "0")}
    found = (
        sorted(
            f for f in os.listdir(RECORDED) if f.endswith((".tar", ".tar.gz", ".tar.xz", ".tgz"))
        )
        if os.path.isdir(RECORDED)
        else []
    )
    todo = [(f, n) for f in found for n in names if f.startswith("fakeroot-%s." % n)]
    if not todo:
        raise Skipped("no recorded machines beside the repository")
    for file, name in todo:
        root, out = place("rec-" + name), place("r-" + name)
        os.makedirs(root)
        with tarfile.open(os.path.join(RECORDED, file)) as t:
            t.extractall(root)
        while not os.path.isdir(os.path.join(root, "sys")):
            root = os.path.join(root, os.listdir(root)[0])
        with Cluster(
            place("crec-" + name), nodes=1, gpus_per_node=8, extra=["--topology", root]
        ) as c:
            _, real = same(c, c.submit(recipe(name, 8, out)), 7, out)
            equal(
                (real["NCCL_IB_HCA"], real["NCCL_PXN_DISABLE"]),
                (",".join("%s%d:1" % (names[name][0], i) for i in range(8)), names[name][1]),
                name,
            )
            equal(
                real.get("NCCL_IB_GID_INDEX"),
                {"mi300x": None, "mi355x": "1"}[name],
                "GID index of " + name,
            )


if __name__ == "__main__":
    status = suite.main()
    shutil.rmtree(WORK, ignore_errors=True)
    sys.exit(1 if status else 0)
