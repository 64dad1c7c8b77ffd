#!/usr/bin/python3
"""Walls between jobs that share a node: each sees the device files of its own GPUs and network
cards, counted from 0, and cannot open its neighbour's. The machine lies below a directory, and its
device files are such of null: what is seen and what opens is real, what ROCm makes of it is not."""
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures"))
import machine
from lib import ROOT, Skipped, Suite, command_recipe, equal, need, wait_until
from node_rig import Node
from rig import Rig

suite = Suite()
NOBODY = 65534
NULL = os.makedev(1, 3)
# what a rank of job J finds, into the file J.seen
LOOKS = """
import json, os, sys
top, seen = sys.argv[1], {}
for d in ("dri", "infiniband"):
    seen[d] = sorted(os.listdir(top + "/dev/" + d))
seen["opens"] = []
for name in ["kfd"] + ["dri/renderD%d" % i for i in range(128, 136)]:
    try:
        os.close(os.open(top + "/dev/" + name, os.O_RDWR))
        seen["opens"].append(name)
    except OSError:
        pass
seen["gpus"] = os.environ["HIP_VISIBLE_DEVICES"]
path = os.environ["MOE_JOB"] + ".seen"
with open(path + ".new", "w") as f:
    json.dump(seen, f)
os.rename(path + ".new", path)
os.execvp("sleep", ["sleep", "1000"])
"""


def device(path):
    if os.path.lexists(path):
        os.unlink(path)
    os.mknod(path, 0o20666, NULL)
    os.chmod(path, 0o666)


def make_machine(top):
    """8 GPUs whose device files can be opened."""
    if os.getuid() != 0:
        raise Skipped("only root makes device files")
    m = machine.make("mi300x", top, cores=4)
    dri, cards = m.where("dev/dri"), m.where("dev/infiniband")
    for dir in (dri, cards):
        for name in os.listdir(dir):
            device(os.path.join(dir, name))
    # a card may have another RDMA device, whose file is not that of the port
    m.write("{nic4}/infiniband_verbs/uverbs04/ibdev", "mlx5_44")
    for path in (m.where("dev/kfd"), cards + "/rdma_cm", cards + "/umad0"):
        device(path)
    return m


class Shared(Node):
    def __init__(self, options=(), uid=0):
        super().__init__(gpus=0, options=options)
        self.uid, self.top = uid, self.dir + "/machine"
        make_machine(self.top)
        self.options += ["topology=" + self.top, "only_fake_gpus=false"]

    def command(self):
        args, env = super().command()
        if self.uid:
            ids = ["--reuid", str(self.uid), "--regid", str(self.uid), "--clear-groups"]
            args = ["/usr/bin/setpriv"] + ids + args
            env["MOE_DATA_DIR"] = self.dir + "/config"
        return args, env

    def start(self):
        if self.uid and not os.path.exists(self.dir + "/bin"):
            self.own_helpers()
            shutil.copytree(os.path.join(ROOT, "config"), self.dir + "/config")
            for dir, dirs, files in os.walk(self.dir):
                for name in [dir] + [os.path.join(dir, f) for f in files]:
                    os.chown(name, self.uid, self.uid, follow_symlinks=False)
        super().start()

    def job(self, gpus, job=1, wait="running", **over):
        self.launch(
            [sys.executable, "-c", LOOKS, self.top],
            n=len(gpus),
            gpus=gpus,
            job=job,
            wait=wait,
            **over,
        )

    def seen(self, job=1):
        path = "%s/j-%d.seen" % (self.dir, job)
        wait_until(lambda: os.path.exists(path), 20, "job %d has looked" % job)
        with open(path) as f:
            return json.load(f)

    def says(self):
        """What the agent tells of its device files."""
        info = self.moed.hellos[-1]["info"]
        return info.get("walls", False), [
            f["text"] for f in info.get("findings") or [] if f["object"] == "device files"
        ]


def renders(gpus):
    return ["renderD%d" % (128 + i) for i in gpus]


def all_of_it(seen, gpus):
    equal(len(seen["dri"]), 16, "files of dri")
    equal(len(seen["infiniband"]), 10, "files of infiniband")
    equal(len(seen["opens"]), 9, "files that open")
    equal(seen["gpus"], gpus, "HIP_VISIBLE_DEVICES")


@suite.test
def two_jobs_of_four():
    with Shared() as n:
        equal(n.says(), (True, []))
        n.job([0, 1, 2, 3], job=1)
        n.job([4, 5, 6, 7], job=2)
        for job, gpus in ((1, range(4)), (2, range(4, 8))):
            seen = n.seen(job)
            equal(seen["dri"], renders(gpus), "job %d: files of dri" % job)
            equal(
                seen["infiniband"],
                ["rdma_cm"] + ["uverbs%d" % i for i in gpus],
                "job %d: files of infiniband" % job,
            )
            equal(
                seen["opens"],
                ["kfd"] + ["dri/" + r for r in renders(gpus)],
                "job %d: what opens" % job,
            )
            equal(seen["gpus"], "0,1,2,3", "job %d: HIP_VISIBLE_DEVICES" % job)
        equal(len(os.listdir(n.top + "/dev/dri")), 16, "files that the host sees")
        with open("/proc/self/mountinfo") as f:
            equal([m for m in f if n.dir in m], [], "mounts that the host sees")


@suite.test
def whole_node():
    """Nothing is hidden, and numbers are those of the node."""
    with Shared() as n:
        n.job(list(range(8)))
        all_of_it(n.seen(), "0,1,2,3,4,5,6,7")


@suite.test
def turned_off():
    with Shared(options=["walls=no"]) as n:
        equal(n.says(), (False, []))
        n.job([4, 5])
        all_of_it(n.seen(), "4,5")


@suite.test
def own_choice_of_cards():
    with Shared() as n:
        n.job([2], items=[dict(name="NCCL_IB_HCA", value="mlx5_0", layer="recipe")])
        seen = n.seen()
        equal(seen["dri"], renders([2]), "files of dri")
        equal(len(seen["infiniband"]), 10, "files of infiniband")


@suite.test
def without_root():
    """Nothing is hidden, numbers are those of the node, and both the log and the hello say it."""
    with Shared(uid=NOBODY) as n:
        walls, texts = n.says()
        equal((walls, len(texts)), (False, 1), "walls and findings")
        need("the agent is not root" in texts[0], texts)
        need(texts[0] in n.log(), "log: " + n.log())
        n.job([4, 5])
        all_of_it(n.seen(), "4,5")


def with_maker(script):
    n = Shared()
    n.__enter__()
    n.stop_agent()
    n.own_helpers(**{"moe-namespace": script})
    n.start()
    return n


@suite.test
def maker_that_hides_nothing():
    """Behind walls that are not there the ranks would count their neighbour's GPUs: refused."""
    for script, why in (
        (
            "exec unshare -m --propagation slave sh -c 'echo ok >&3; exec sleep 1006'",
            "can be opened there, which is not the job's",
        ),
        ("echo '28 mount the devices' >&3", "could not mount the devices: No space left"),
        ("exit 0", "moe-namespace ended without a word"),
    ):
        n = with_maker("#!/bin/sh\n%s\n" % script)
        try:
            n.job([4, 5], wait="refused")
            note = n.moed.note_list(1, 1, "refused")[0]
            equal(note["cause"], "namespace")
            need(why in note["text"], "%s: %s" % (why, note["text"]))
            equal(n.moed.note_list(1, 1, "started"), [], "ranks")
            need(not os.path.exists(n.dir + "/j-1.seen"), "a rank has run")
        finally:
            n.__exit__(None, None, None)


@suite.test
def machine_without_namespaces():
    """As without root."""
    n = with_maker("#!/bin/sh\necho '1 make a mount namespace' >&3\n")
    try:
        n.job([4, 5])
        all_of_it(n.seen(), "4,5")
        need("they can open every GPU of the node" in n.log(), "log: " + n.log())
    finally:
        n.__exit__(None, None, None)


class Controlled(Rig):
    """The same machine with a real controller."""

    def __init__(self, hide=None):
        self.top = tempfile.mkdtemp(prefix="moe-root-")
        self.machine = make_machine(self.top + "/root")
        if hide is not None:
            path = "{kfd%d}/properties" % hide
            lines = self.machine.read(path).splitlines()
            text = "\n".join(w for w in lines if "drm_render_minor" not in w)
            self.machine.write(path, text)
        looks = dict(probe_device="1s", probe_host="1s", probe_klog="1s", probe_sensors="1s")
        super().__init__(nodes=1, gpus_per_node=0, agent=dict(looks, topology=self.machine.root))
        self.agent_options["only_fake_gpus"] = False

    def down(self, check=True):
        super().down(check)
        shutil.rmtree(self.top, ignore_errors=True)

    def doctor(self):
        items = self.json("doctor", "node-0")["items"]
        return [(i["state"], i["text"]) for i in items if i["check"] == "node.walls"]


def visible(items):
    return [i["value"] for i in items if i["name"] == "HIP_VISIBLE_DEVICES"]


@suite.test
def what_people_are_told():
    """The controller's preview counts as the node will, and doctor knows of walls."""
    with Controlled() as rig:
        recipe = command_recipe("half", ["/bin/sleep", "1000"], 4)
        for job, slots in ((rig.submit(recipe), [0, 1, 2, 3]), (None, [4, 5, 6, 7])):
            if not job:
                dry = json.loads(rig.run("submit", "-", "--dry-run", "--json", stdin=recipe).stdout)
                equal([r["gpu"] for r in dry["ranks"]], slots, "slots of the preview")
                equal(dry["ranks"][0]["env"]["HIP_VISIBLE_DEVICES"], "0,1,2,3", "preview")
                job = rig.submit(recipe)
            rig.wait_state(job, "running", 60)
            equal(visible(rig.explain_env(job)["items"]), ["0,1,2,3"], "what %s got" % job)
        wait_until(lambda: [s for s, _ in rig.doctor()] == ["ok"], 60, "doctor: all is well")


@suite.test
def a_file_that_is_not_known():
    """A driver that does not name one GPU's file: no walls at all, and it is said."""
    with Controlled(hide=5) as rig:
        job = rig.submit(command_recipe("half", ["/bin/sleep", "1000"], 2))
        rig.wait_state(job, "running", 60)
        wait_until(
            lambda: [s for s, t in rig.doctor() if t.startswith("host.device_walls: ")] == ["warn"],
            60,
            "doctor names the check",
        )
        drawn = rig.run("node", "node-0").stdout
        need("the driver does not say which file is that of GPU 5" in drawn, drawn)


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
