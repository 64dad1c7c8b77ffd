#!/usr/bin/python3
"""Ranks in an image (engine.container): what they see, what they are given, what is left of them.
The image is a small tree into which the node's /usr is mounted; real agents and supervisors."""
import fcntl
import json
import os
import pwd
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import ROOT, Skipped, Suite, equal, need, wait_until
from node_rig import Node, alive
from rig import Rig
from test_namespace import ESCAPES, ranks

suite = Suite()
PY = "/usr/bin/python3"


def image_of(n, name="image", environment=""):
    """An unpacked root, which belongs to nobody in particular."""
    if os.getuid() != 0:
        raise Skipped("only root gives a job an image")
    root = os.path.join(n.dir, name)
    for d in ("etc", "usr", "tmp", "opt", "proc", "sys", "dev", "run", "root"):
        os.makedirs(os.path.join(root, d))
    os.chmod(n.dir, 0o711)
    os.chmod(root + "/tmp", 0o1777)
    for link in ("bin", "sbin", "lib", "lib64"):
        os.symlink("usr/" + link, os.path.join(root, link))
    for path, text in (("etc/environment", environment), ("of_image", "of the image\n")):
        with open(os.path.join(root, path), "w") as f:
            f.write(text)
    return root


def container(root, mounts=(), **over):
    """launch.container; mounts: (source, target, readonly)."""
    return dict(
        {
            "image": "dir:" + root,
            "mounts": [
                {"source": s, "target": t, "readonly": ro}
                for s, t, ro in [("/usr", "/usr", True)] + list(mounts)
            ],
            "writable": "disk",
            "shm_bytes": 64 << 20,
        },
        **over,
    )


def out_of(n):
    """What a rank wrote into the directory that is mounted for it."""
    with open(n.dir + "/out/said") as f:
        return json.load(f)


def say(n, code, user=None, inside="self", **over):
    """Runs a rank in the image that says a value, as JSON. inside: who it is there."""
    os.makedirs(n.dir + "/out", exist_ok=True)
    os.chmod(n.dir + "/out", 0o777)
    mounts = over.pop("mounts", [])
    root = over.pop("root", None) or image_of(n, environment=over.pop("environment", ""))
    launch = {
        k: over.pop(k)
        for k in ("workdir", "items", "env", "n", "prepare", "prepare_hooks")
        if k in over
    }
    attempt = len(n.attempts) + 1
    n.launch(
        [
            "python3",
            "-c",
            "import json, os\ndef value():\n%s\n"
            "json.dump(value(), open('/out/said', 'w'))" % code,
        ],
        attempt=attempt,
        user=user,
        wait="gone",
        container=container(
            root, [(n.dir + "/out", "/out", False)] + mounts, **dict({"user": inside}, **over)
        ),
        **dict({"workdir": None}, **launch),
    )
    exits = n.moed.note_list(1, attempt, "exit")
    need(exits and exits[0].get("code") == 0, "the rank ended: %s" % n.moed.note_list(1, attempt))
    return out_of(n)


def host_mounts():
    with open("/proc/self/mounts") as f:
        return f.read()


def layers(n):
    try:
        return os.listdir(n.dir + "/state/layers")
    except FileNotFoundError:
        return []


@suite.test
def the_image_is_the_root():
    with Node() as n:
        before = host_mounts()
        said = say(
            n,
            "  return [sorted(os.listdir('/')), open('/run/moe-step').read(),\n"
            "    os.getcwd(), os.statvfs('/dev/shm').f_blocks * os.statvfs('/dev/shm').f_frsize]",
        )
        names = "bin dev etc lib lib64 of_image opt out proc root run sbin sys tmp usr".split()
        need(said[0] == names or said[0] == names + ["var"], "the root holds %s" % said[0])
        need(said[1].startswith("j1.a1.n0."), "marker: %s" % said[1])
        equal(said[2:], ["/root", 64 << 20], "directory and bytes of /dev/shm")
        equal(host_mounts(), before, "mounts of the node")
        equal(n.moed.note_list(1, 1, "started")[0]["bind_verified"], True, "binding read back")


@suite.test
def the_image_speaks_first():
    """Its variables are the lowest layer; its PATH is kept, its lists come last, and nothing that
    only the launcher says is believed."""
    with Node() as n:
        said = say(
            n,
            "  return dict(os.environ)",
            environment="PATH=/opt/own/bin:/usr/bin:/bin\nLD_LIBRARY_PATH=/opt/lib\nA=image\n"
            'B="in quotes"\nRANK=77\nHSA_X=1\nHOME=/evil\nPYTHONPATH=/opt/py\n',
            env=[("A", "recipe"), ("LD_LIBRARY_PATH", "/mine")],
            items=[{"name": "PATH", "value": "/base", "layer": "base", "reason": "", "source": ""}],
            env_drop=["HSA_*"],
        )
        for name, value in (
            ("PATH", "/opt/own/bin:/usr/bin:/bin"),
            ("LD_LIBRARY_PATH", "/mine:/opt/lib"),
            ("PYTHONPATH", "/opt/py"),
            ("A", "recipe"),
            ("B", "in quotes"),
            ("RANK", "0"),
            ("HSA_X", None),
            ("HOME", "/root"),
        ):
            equal(said.get(name), value, name)
        with open(n.dir + "/state/logs/j1/a1/env.json") as f:
            items = {i["name"]: i for i in json.load(f)["items"]}
        equal(items["B"]["layer"], "image", "layer of what the image says")
        need("dir:" in items["B"]["source"], "its source: %s" % items["B"])


@suite.test
def what_is_written_goes_with_the_step():
    """Nothing of it is in the image, another job sees nothing of it, and it is gone afterwards."""
    with Node() as n:
        root = image_of(n)
        write = "  open('/opt/x', 'w').write('1'); os.remove('/of_image')\n"
        say(n, write + "  return 1", root=root)
        said = say(n, "  return [os.path.exists('/opt/x'), os.path.exists('/of_image')]", root=root)
        equal(said, [False, True], "what the second attempt sees")
        need(not os.path.exists(root + "/opt/x"), "the image was written")
        wait_until(lambda: not layers(n), 20, "the layers are removed")


@suite.test
def other_ways_to_write():
    with Node() as n:
        root = image_of(n)
        attempt = (
            "  try:\n    open('/opt/x', 'w')\n  except OSError as e:\n    return e.strerror\n"
            "  open('/tmp/x', 'w')\n  return None"
        )
        equal(say(n, attempt, root=root, writable="tmpfs"), None, "in memory")
        equal(layers(n), [], "directories on the disk")
        equal(say(n, attempt, root=root, writable="no"), "Read-only file system", "nowhere")
        write_tmp = "  open('/tmp/moe-of-%d' % os.getpid(), 'w').close()\n"
        write_tmp += "  os.remove('/tmp/moe-of-%d' % os.getpid())\n  return 1"
        equal(say(n, write_tmp, root=root, writable="no"), 1, "temporary files, nowhere else")


@suite.test
def as_the_user():
    """Files are the user's outside, too; a home that the image lacks can be written."""
    who = pwd.getpwnam("nobody")
    with Node() as n:
        said = say(
            n,
            "  open('/out/mine', 'w').close()\n"
            "  open(os.environ['HOME'] + '/x', 'w').close()\n"
            "  import getpass, pwd\n"
            "  return [os.getuid(), os.getgid(), getpass.getuser(), pwd.getpwuid(os.getuid())[0],\n"
            "    os.environ['HOME'], os.access('/opt', os.W_OK)]",
            user="nobody",
        )
        equal(
            said, [who.pw_uid, who.pw_gid, "nobody", "nobody", who.pw_dir, False], "who the rank is"
        )
        s = os.stat(n.dir + "/out/mine")
        equal((s.st_uid, s.st_gid), (who.pw_uid, who.pw_gid), "owner of its file on the node")


@suite.test
def ends_with_its_supervisor():
    """A rank of a user, with no agent that could kill it and in no control group."""
    with Node(options=["use_cgroup=no"]) as n:
        root = image_of(n)
        c = container(root)
        n.launch(["sleep", "1000"], user="nobody", workdir=None, container=c)
        pid, stepd = ranks(n)[0], n.stepd_pid()
        n.stop_agent()
        os.kill(stepd, signal.SIGKILL)
        wait_until(lambda: not alive(pid), 20, "its end")
        n.start()
        n.moed.wait_note(1, 1, "gone")


@suite.test
def prepare_runs_in_the_image():
    with Node() as n:
        said = say(
            n,
            "  return [open('/opt/prepared').read(), os.environ['FROM_PREPARE']]",
            prepare=["/bin/sh", "-c", "echo -n $PWD > /opt/prepared; echo env.FROM_PREPARE=yes"],
            workdir="/opt",
            prepare_hooks=True,
        )
        equal(said[0], "/opt", "where engine.prepare ran")


@suite.test
def configuration_is_read_in_the_image():
    """What the engine could not load ends the launch; the file lies in the image only, behind a
    link that leads to nothing on the node."""
    with Node() as n:
        root = image_of(n)
        os.symlink("/opt/own", root + "/opt/link")
        os.makedirs(root + "/opt/own")
        with open(root + "/opt/own/exp.yaml", "w") as f:
            f.write("modules: {x: [\n")
        for attempt, (workdir, path) in enumerate(
            ((None, "/opt/link/exp.yaml"), ("/opt", "link/exp.yaml"))
        ):
            n.launch(
                ["python3", "primus/cli/main.py", "train", "pretrain", "--config", path],
                attempt=attempt + 1,
                workdir=workdir,
                config="primus",
                container=container(root),
                wait="refused",
            )
            note = n.moed.note_list(1, attempt + 1, "refused")[0]
            equal(note["cause"], "config", "cause")
            need("the experiment on n0: " in note["text"], note["text"])
            need(path + ":" in note["text"], "it names no line of the file: " + note["text"])


@suite.test
def escaped_in_an_image():
    """No cgroup, no parent, no environment: found in the image after its supervisor was killed."""
    with Node(options=["use_cgroup=no"]) as n:
        root = image_of(n)
        os.makedirs(n.dir + "/out")
        n.launch(
            ["python3"] + ESCAPES[1:],
            n=4,
            workdir="/out",
            container=container(root, [(n.dir + "/out", "/out", False)]),
        )

        def escaped():
            try:
                return [int(line) for line in n.file("out/escaped").split()]
            except FileNotFoundError:
                return []

        wait_until(lambda: len(escaped()) == 4, 20, "each rank leaves one")
        os.kill(n.stepd_pid(), signal.SIGKILL)
        n.moed.wait_note(1, 1, "gone")
        equal([p for p in escaped() if alive(p)], [], "of those that escaped live")


@suite.test
def agents_come_and_go():
    """The ranks live on in their image; what an agent before this one left is removed, and nothing
    else."""
    with Node() as n:
        root = image_of(n)
        n.launch(["sleep", "1000"], workdir=None, container=container(root))
        pid = ranks(n)[0]
        n.stop_agent()
        os.makedirs(n.dir + "/state/layers/j9.a9/files/x")
        os.makedirs(n.dir + "/state/layers/gone.0011/y")
        n.start()
        wait_until(lambda: layers(n) == ["j1.a1"], 20, "what is left is removed")
        need(alive(pid), "the rank was killed")
        need(os.path.exists("/proc/%d/root/of_image" % pid), "it is not in its image")
        n.moed.order("kill", 1, 1)
        n.moed.wait_note(1, 1, "gone")


@suite.test
def the_image_is_locked_while_the_step_runs():
    """So that moe-image prune leaves it there."""
    with Node() as n:
        root = image_of(n)
        fd = os.open(root, os.O_RDONLY)

        def is_locked():
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            fcntl.flock(fd, fcntl.LOCK_UN)
            return False

        n.launch(["sleep", "1000"], workdir=None, container=container(root))
        need(is_locked(), "nobody holds a lock on the image")
        n.stop_agent()
        n.start()
        need(is_locked(), "nobody holds a lock when the agent has come again")
        n.moed.order("kill", 1, 1)
        n.moed.wait_note(1, 1, "gone")
        wait_until(lambda: not is_locked(), 20, "the end of the lock")
        os.close(fd)


@suite.test
def images_that_cannot_be_had():
    """Nothing is started, and one line says what is wrong."""
    with Node() as n:
        root = image_of(n)
        os.symlink("/etc", root + "/link")
        os.mkfifo(n.dir + "/fifo")
        for i, (text, over) in enumerate(
            (
                (
                    "/no/such on this node as the user (uid 0): No such file",
                    {"image": "dir:" + n.dir + "/no/such"},
                ),
                ("does not know images like oci:/x", {"image": "oci:/x"}),
                ("/link: it is a symbolic link", {"more": [("/usr", "/link", False)]}),
                ("/nowhere", {"more": [("/nowhere", "/x", False)]}),
            )
        ):
            c = container(root, over.pop("more", []), **over)
            n.launch(["true"], attempt=i + 1, workdir=None, container=c, wait="refused")
            note = n.moed.note_list(1, i + 1, "refused")[0]
            equal(note["cause"], "image", "cause")
            need(text in note["text"], "text: %s" % note["text"])
        n.launch(["no-such"], attempt=9, workdir=None, container=container(root), wait="refused")
        wait_until(lambda: not layers(n), 20, "the layers are removed")


@suite.test
def no_image_without_a_namespace():
    """A machine that makes no namespaces runs nothing on its own files instead."""
    with Node() as n:
        n.stop_agent()
        n.own_helpers(**{"moe-namespace": "#!/bin/sh\necho '1 make a mount namespace' >&3\n"})
        n.start()
        root = image_of(n)
        n.launch(["true"], workdir=None, container=container(root), wait="refused")
        text = n.moed.note_list(1, 1, "refused")[0]["text"]
        need("could not make a mount namespace: Operation not permitted" in text, text)


TINY = """
recipe: 1
name: %(name)s
engine:
  kind: torch
  entry: %(root)s/config/engines/tiny_moe/train.py
  container:
    image: dir:%(image)s
    mounts: ["/usr:ro", "/etc/alternatives:ro", "/etc/ld.so.cache:ro", "%(root)s/config:ro"]
  args: {steps: "{steps}", save-every: "{checkpoint.every}", seq: 32, micro: 4, global-batch: 16,
         ep: 4}
cluster: {gpus: 4}
checkpoint: {dir: %(ckpt)s, every: 20}
steps: 120
"""


def final_loss(rig, job):
    lines = [t for t in rig.run("logs", job, "-n", "50").stdout.splitlines() if "loss repr" in t]
    need(lines, "no final loss in the log of %s" % job)
    return lines[-1].rsplit(" ", 1)[1]


class Images(Rig):
    """Two agents with a place for images; jobs train tiny_moe in one."""

    def __enter__(self):
        super().__enter__()
        self.image = image_of(self, environment="FROM_IMAGE=yes\n")
        return self

    def train(self, name):
        ckpt = os.path.join(self.dir, "ckpt", name)
        os.makedirs(ckpt)
        text = TINY % {"name": name, "root": ROOT, "image": self.image, "ckpt": ckpt}
        return self.submit(text)

    def left(self):
        found = []
        for i in range(self.nodes):
            d = "%s/state/node-%d/layers" % (self.dir, i)
            found += os.listdir(d) if os.path.isdir(d) else []
        return found


@suite.test
def training_is_killed_and_resumed_with_the_same_digits():
    """The whole way: recipe, placement, image, checkpoint, a rank's and a supervisor's death."""
    if os.getuid() != 0:
        raise Skipped("only root gives a job an image")
    before = host_mounts()
    with Images(nodes=2, gpus_per_node=2) as rig:
        calm = rig.train("calm")
        rig.wait_state(calm, ["completed"], 120)
        job = rig.train("killed")
        rig.wait_iteration(job, 25, 60)
        pid = rig.rank_pids(job)[3]
        need(os.path.exists("/proc/%d/root/of_image" % pid), "the rank is not in its image")
        with open("/proc/%d/environ" % pid) as f:
            need("FROM_IMAGE=yes" in f.read(), "it lacks what the image says")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: rig.job(job)["attempt"] == 2, 60, "the second attempt")
        rig.wait_iteration(job, 60, 60)
        first = set(rig.rank_pids(job).values())
        os.kill(sorted(rig.stepd_of(job))[0], signal.SIGKILL)
        wait_until(lambda: rig.job(job)["attempt"] == 3, 60, "the third attempt")
        equal([p for p in first if alive(p)], [], "ranks of the second attempt that live")
        rig.wait_state(job, ["completed"], 120)
        equal(final_loss(rig, job), final_loss(rig, calm), "final loss")
        wait_until(lambda: not rig.left(), 30, "what the ranks wrote is removed")
        equal(host_mounts(), before, "mounts of the node")


TITAN_PY = """#!/usr/bin/python3
import json, os, time
os.makedirs("dump/structured_logs", exist_ok=True)
path = "dump/structured_logs/training.global_rank_%s.x.jsonl" % os.environ["RANK"]
with open(path, "w") as f:
    for step in range(1, 10):
        f.write(json.dumps({"step": step, "log_type_name": "step_end"}) + "\\n")
time.sleep(1000)
"""


@suite.test
def heartbeats_are_read_in_the_image():
    """The engine's files lie in no mount: only in the image are they seen."""
    if os.getuid() != 0:
        raise Skipped("only root gives a job an image")
    with Images(nodes=1, gpus_per_node=2) as rig:
        with open(rig.image + "/opt/titan.py", "w") as f:
            f.write(TITAN_PY)
        os.chmod(rig.image + "/opt/titan.py", 0o755)
        recipe = {
            "recipe": 1,
            "name": "titan",
            "engine": {
                "kind": "torchtitan",
                "python": "/opt/titan.py",
                "workdir": "/opt",
                "args": {"dump_folder": "dump"},
                "args_unchecked": ["dump_folder"],
                "container": {"image": "dir:" + rig.image, "mounts": ["/usr:ro"]},
            },
            "cluster": {"gpus": 2},
            "steps": 10,
        }
        job = rig.submit(json.dumps(recipe))
        wait_until(
            lambda: [r["iteration"] for r in rig.json("ranks", job)["items"]] == [9, 9],
            30,
            "iteration 9 of both ranks",
        )
        rig.run("cancel", job, "--now")


@suite.test
def the_image_is_missing_on_one_node():
    """The reason names node and image, and how to bring it there."""
    if os.getuid() != 0:
        raise Skipped("only root gives a job an image")
    with Images(nodes=1, gpus_per_node=4) as rig:
        rig.image += "-not-here"
        job = rig.train("missing")
        rig.wait_state(job, ["failed"], 60)
        said = rig.run("why", job).stdout
        need("-not-here" in said and "node-0" in said, "why says: " + said)
        need(rig.job(job)["attempt"] == 1, "it was tried %d times" % rig.job(job)["attempt"])


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
