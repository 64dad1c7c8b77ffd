#!/usr/bin/python3
"""Images in the store of a container runtime (podman:NAME, docker:NAME), used where they lie: with
podman itself, in a store of the test's, and with a program that says what it is told to say."""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from image_rig import directory, entry, layer, save, symlink
from lib import BUILD, ROOT, Skipped, Suite, equal, need, wait_until
from node_rig import Node, processes
from rig import Rig
from runtime_rig import unmount
from test_container_jobs import TRAIN, saved

suite = Suite()
TREE = [directory(d) for d in ("etc", "usr", "tmp", "w", "proc", "sys", "dev", "run", "root")]
TREE += [symlink(name, "usr/" + name) for name in ("bin", "sbin", "lib", "lib64")]
LAYERS = [
    layer(*TREE, entry("said", "lower\n"), entry("gone", "x")),
    layer(entry("said", "upper\n"), entry(".wh.gone")),
    layer(entry("etc/passwd", "of_image:x:7:7::/:/bin/sh\n")),
]
# says what stands in DIR/VERB, once it has written down what it was asked; of an image three lines
FAKE = """#!/bin/sh
d=%s
case "$1 $2" in
"image inspect") v=image;;
"create "*) v=keep;;
"ps "*) v=kept;;
*) v=release;;
esac
for w in "$@"; do printf '%%s\\n' "$w"; done >$d/asked.$v
if [ -e $d/$v.hangs ]; then : >$d/hanging; while :; do sleep 1; done; fi
[ $v != image ] || cat $d/names $d/layers $d/config
[ ! -e $d/$v ] || cat $d/$v
[ ! -e $d/$v.fails ] || { cat $d/$v.fails >&2; exit 125; }
"""
STEP = "%s.a1.%s.0123456789abcdef"


class Store(Node):
    """A node, and the data file of a runtime that has a store of its own."""

    def __init__(self, name, words, options=None):
        if os.getuid() != 0:
            raise Skipped("only root gives a job an image")
        super().__init__(options=["runtimes=" + name] if options is None else options)
        self.name, self.words = name, [w.replace("DIR", self.dir) for w in words]
        os.chmod(self.dir, 0o711)
        os.makedirs(self.dir + "/data/runtimes")
        os.makedirs(self.dir + "/out")
        self.env = {"MOE_DATA_DIR": self.dir + "/data"}
        with open(ROOT + "/config/runtimes/%s.yaml" % name) as f:
            text = f.read().replace(": [%s, " % name, ": [%s, " % ", ".join(self.words))
        need(self.words[0] in text, text)
        with open(self.dir + "/data/runtimes/%s.yaml" % name, "w") as f:
            f.write(text)

    def stopped(self):
        unmount(self.dir, self.words)

    def ask(self, *argv):
        r = subprocess.run(self.words + list(argv), capture_output=True, text=True)
        return r.returncode, r.stdout.strip(), r.stderr.strip()

    def rank(self, image, code="", wait="gone", attempt=1, job=1, digest=None):
        self.launch(
            ["python3", "-c", code],
            job=job,
            attempt=attempt,
            wait=wait,
            workdir=None,
            container={
                "image": "%s:%s" % (self.name, image),
                **({"digest": digest} if digest else {}),
                "mounts": [
                    {"source": "/usr", "target": "/usr", "readonly": True},
                    {"source": self.dir + "/out", "target": "/out", "readonly": False},
                ],
                "writable": "disk",
                "shm_bytes": 1 << 20,
            },
        )

    def refused(self, image, *words, attempt=1, digest=None):
        self.rank(image, wait="refused", attempt=attempt, digest=digest)
        note = self.moed.note_list(1, attempt, "refused")[0]
        for w in words:
            need(w in note["text"], "%s: %s" % (w, note))
        return note


def podman():
    n = Store(
        "podman",
        ["podman", "--root=DIR/store", "--runroot=DIR/storerun", "--storage-driver=overlay"]
        + (["--runtime=runc"] if shutil.which("runc") else []),
    )
    if not shutil.which("podman"):
        raise Skipped("podman is not installed")
    save(n.dir + "/image.tar", LAYERS)
    code, _, said = n.ask("load", "-q", "-i", n.dir + "/image.tar")
    if code:
        shutil.rmtree(n.dir)
        raise Skipped("podman has no store of overlays here: %s" % said)
    return n


def fake(**says):
    n = Store("docker", ["DIR/docker"])
    with open(n.dir + "/docker", "w") as f:
        f.write(FAKE % n.dir)
    os.chmod(n.dir + "/docker", 0o755)
    lower = n.dir + "/lower"
    for name in ("etc", "usr", "tmp", "proc", "sys", "dev", "run", "root"):
        os.makedirs(lower + "/" + name)
    for name in ("bin", "sbin", "lib", "lib64"):
        os.symlink("usr/" + name, lower + "/" + name)
    told(n, names="sha256:" + "c" * 64, config="{}", layers="overlay2 " + lower)
    told(n, **says)
    return n


def told(n, **says):
    for verb, text in says.items():
        with open(n.dir + "/" + verb.replace("_", "."), "w") as f:
            f.write(text + "\n")


def asked(n, verb):
    try:
        with open(n.dir + "/asked." + verb) as f:
            return f.read().split("\n")[:-1]
    except FileNotFoundError:
        return None


LOOK = """
import json, os, time
json.dump([open('/said').read(), os.path.exists('/gone'), os.getcwd(), os.environ['A'],
  'of_image' in open('/etc/passwd').read()], open('/out/said', 'w'))
open('/said', 'w').write('mine')
while not os.path.exists('/out/enough'): time.sleep(0.05)
"""


@suite.test
def an_image_of_podman_in_place():
    n = podman()
    with n:
        image = json.loads(n.ask("image", "inspect", "x:1")[1])[0]
        try:
            n.rank("x:1", LOOK, wait="running")
            wait_until(lambda: os.path.exists(n.dir + "/out/said"), 20, "the rank has looked")
            with open(n.dir + "/state/logs/j1/a1/env.json") as f:
                items = json.load(f)
            code, _, said = n.ask("rmi", "x:1")
            need(code != 0 and "in use" in said, "rmi while it runs: %s" % said)
            equal(n.ask("ps", "-q", "--filter", "status=running")[1], "", "it runs no container")
        finally:
            open(n.dir + "/out/enough", "w").close()
        n.moed.wait_note(1, 1, "gone")
        with open(n.dir + "/out/said") as f:
            equal(json.load(f), ["upper\n", False, "/w", "1", True], "what the rank saw")
        need(image["Digest"] in json.dumps(items), "its digest is recorded: %s" % items)
        wait_until(lambda: n.ask("ps", "-aq")[1] == "", 30, "nothing is kept")
        with open(image["GraphDriver"]["Data"]["LowerDir"].split(":")[0] + "/said") as f:
            equal(f.read(), "upper\n", "the store is not written")
        equal(n.ask("rmi", "x:1")[0], 0, "rmi afterwards")


RECIPE = """recipe: 1
name: in-store
engine:
  kind: torch
  workdir: /w
  entry: train.py
  container: {image: "podman:%s", mounts: ["/usr:ro"]}
cluster: {gpus: 2}
checkpoint: {dir: "%s/ckpt"}
"""


@suite.test
def a_recipe_names_the_store():
    """From its submit to its end, by a name of the registry that the image came from."""
    n = podman()
    name, rig = "r.example:5000/a/b:v1", Rig(nodes=1, agent={"runtimes": "podman"})
    tree = [entry("w/train.py", TRAIN), entry("etc/of_image", "stored")]
    save(n.dir + "/image.tar", LAYERS + [layer(*tree)])
    rig.agent_env = n.env
    try:
        n.ask("load", "-q", "-i", n.dir + "/image.tar")
        equal(n.ask("tag", "x:1", name)[0], 0, "tag")
        with rig:
            job = rig.submit(RECIPE % (name, rig.dir))
            done = rig.wait_state(job, ["completed", "failed"])
            equal(done["state"], "completed", done["reason"])
            need(done["image"].startswith("podman:%s sha256:" % name), done["image"])
            equal(saved(rig)["a1.r0.said"], "stored /usr/bin/python3", "what a rank saw")
            sources = [i["source"] for i in rig.explain_env(job)["items"] if i["name"] == "A"]
            need("image podman:%s sha256:" % name in sources[0], sources)
            wait_until(lambda: n.ask("ps", "-aq")[1] == "", 30, "nothing is kept")
            job = rig.submit(RECIPE % ("no/such", rig.dir))
            equal(rig.wait_state(job, ["completed", "failed"])["state"], "failed", "state")
            need("podman has no image no/such" in rig.run("why", job).stdout, "why")
    finally:
        unmount(n.dir, n.words)
        shutil.rmtree(n.dir)


C, D = "sha256:" + "c" * 64, "sha256:" + "d" * 64
SLEEPS = """recipe: 1
name: sleeps
engine:
  kind: command
  argv: [python3, -c, "import time; time.sleep(9999)"]
  container: {image: "docker:x:1", mounts: ["/usr:ro"]}
cluster: {gpus: 4}
"""


@suite.test
def one_name_and_two_images():
    """The first node's word is the job's: a node that has another image under the name is refused,
    also after the name has moved."""
    n, m = fake(names=C), fake(names=D)
    rig = Rig(nodes=2, agent={"runtimes": "docker"})
    rig.agent_env = n.env
    said = "node-1 has id:%s, the job has id:%s" % (D, C)
    try:
        with rig:
            rig.kill(rig.agents["node-1"])
            rig.agent_env = m.env
            rig.start_agent("node-1")
            job = rig.submit(SLEEPS)
            end = rig.wait_state(job, ["completed", "failed"])
            equal([end["state"], end["attempt"]], ["failed", 0], end["reason"])
            need(said in end["reason"], end["reason"])
            told(m, names=C)
            job = rig.submit(SLEEPS)
            rig.wait_state(job, "running")
            need(rig.job(job)["image"].endswith("id:" + C), rig.job(job)["image"])
            told(m, names=D)
            os.kill(rig.rank_pids(job)[0], signal.SIGKILL)
            wait_until(lambda: said in (rig.job(job)["reason"] or ""), 30, "it is noticed")
            equal(rig.job(job)["attempt"], 1, "no rank was started")
            equal(rig.events_of(job, "image.resolved")[0]["data"]["digest"], "id:" + C, "digest")
            rig.run("cancel", job)
    finally:
        shutil.rmtree(n.dir)
        shutil.rmtree(m.dir)


@suite.test
def a_name_that_moves_before_the_step():
    with fake() as n:
        note = n.refused("x:1", "this node has id:" + C, "the job has id:" + D, digest="id:" + D)
        equal(note["cause"], "image", "cause")


@suite.test
def podman_lacks_the_image():
    n = podman()
    with n:
        note = n.refused("no/such:1", "podman has no image no/such:1 on this node")
        equal(note["cause"], "image", "cause")
        equal(n.ask("ps", "-aq")[1], "", "nothing is kept")


@suite.test
def what_an_agent_before_left():
    n = podman()
    n.ask("load", "-q", "-i", n.dir + "/image.tar")

    def left(job, node):
        step = STEP % (job, node)
        r = n.ask("create", "--name", "moe-" + step, "--label", "moe.step=" + step, "x:1", "true")
        equal(r[0], 0, r)

    def names():
        return n.ask("ps", "-a", "--format", "{{.Names}}")[1].split()

    left("j7", "n0")
    left("j8", "n1")
    n.ask("create", "--name", "somebodys", "x:1", "true")
    with n:
        wait_until(
            lambda: sorted(names()) == ["moe-" + STEP % ("j8", "n1"), "somebodys"],
            30,
            "what is kept for no step of this node is removed, and nothing else",
        )
        # a step whose agent is killed keeps its image, and the next agent gives it up
        left("j5", "n0")
        n.rank("x:1", LOOK, wait="running")
        left("j6", "n0")
        n.stop_agent()
        n.start()
        wait_until(
            lambda: not [p for p in names() if "j5." in p or "j6." in p], 30, "others are given up"
        )
        need([p for p in names() if "moe-j1.a1.n0." in p], "kept while it runs")
        open(n.dir + "/out/enough", "w").close()
        n.moed.wait_note(1, 1, "gone")
        wait_until(lambda: len(n.ask("ps", "-aq")[1].split()) == 2, 30, "given up")
        n.ask("rm", "-af")


@suite.test
def who_may():
    n = Store("docker", ["DIR/docker"], options=[])
    with n:
        note = n.refused("x:1", "n0 does not use the images of docker", "`runtimes`")
        equal(note["cause"], "image", "cause")


@suite.test
def what_docker_is_asked():
    n = fake(
        names="r.example/x@sha256:%s sha256:%s" % ("d" * 64, "c" * 64),
        config=json.dumps({"Env": ["A=2", "=x", "B"], "WorkingDir": "/etc", "Cmd": ["sh"]}),
    )
    with n:
        n.rank(
            "x:1",
            "import json, os\njson.dump([os.environ['A'], os.getcwd()], open('/out/said', 'w'))",
        )
        with open(n.dir + "/out/said") as f:
            equal(json.load(f), ["2", "/etc"], "what the image says")
        wait_until(lambda: asked(n, "release"), 20, "given up")
        step = asked(n, "release")[-1]
        need(step.startswith("moe-j1.a1.n0."), step)
        equal(asked(n, "image")[-1], "x:1", "image")
        equal(
            asked(n, "keep"),
            ["create", "--name", step, "--label", "moe.step=" + step[4:], "c" * 64, "true"],
            "keep",
        )


@suite.test
def what_is_not_given_up_at_once():
    """A daemon that was busy, or whose client was killed: it is asked again."""
    n = fake(release_fails="Error: busy")
    with n:
        n.rank("x:1", "pass")
        wait_until(lambda: "Error: busy; it is tried again in" in n.log(), 20, "it is said")
        first = asked(n, "release")
        os.remove(n.dir + "/asked.release")
        os.remove(n.dir + "/release.fails")
        wait_until(lambda: asked(n, "release") == first, 20, "it is given up later")


@suite.test
def a_runtime_that_lies():
    n = fake()
    with n:
        for i, (says, words) in enumerate(
            (
                ({"names": "x; rm -rf /"}, ["expected an image's digest and its id"]),
                ({"names": ""}, ["expected an image's digest"]),
                ({"config": "<html>"}, ["what is no JSON"]),
                ({"layers": "vfs "}, ["its store (vfs) has no layers"]),
                ({"layers": "overlay2 <no value>"}, ["has no layers that can be used in place"]),
                ({"layers": "overlay2 /:etc"}, ["absolute paths"]),
                ({"layers": "overlay2 /nonexistent/layer"}, ["open the layer /nonexistent/layer"]),
                ({"layers": ""}, ["its store () has no layers"]),
                ({"keep_fails": "Error: no space left"}, ["docker says: Error: no space left"]),
            )
        ):
            if i:
                os.remove(n.dir + "/keep.fails") if os.path.exists(n.dir + "/keep.fails") else 0
            told(n, names="c" * 64, config="{}", layers="overlay2 " + n.dir + "/lower")
            told(n, **says)
            n.refused(
                "x:1",
                *(w.replace("docker says", n.words[0] + " says") for w in words),
                attempt=i + 1,
            )
            n.moed.wait_note(1, i + 1, "gone")
        equal(os.listdir(n.dir + "/out"), [], "no rank ran")
        os.remove(n.dir + "/docker")
        n.refused("x:1", "docker is not installed", attempt=20)


@suite.test
def a_runtime_that_hangs():
    n = fake(keep_hangs="")
    with n:
        n.rank("x:1", wait=None)
        wait_until(lambda: os.path.exists(n.dir + "/hanging"), 20, "it hangs")
        n.moed.order("kill", 1, 1)
        n.moed.wait_note(1, 1, "gone", deadline=20)
        wait_until(
            lambda: not [p for p in processes() if n.dir + "/docker create" in p[1]],
            10,
            "what was asked has ended",
        )


@suite.test
def its_data_file_is_read_strictly():
    n = fake()
    with n:
        path = n.dir + "/data/runtimes/docker.yaml"
        with open(path) as f:
            whole = f.read()
        for i, (old, new, words) in enumerate(
            (
                ('"{image}"', '"{picture}"', ["{picture} is none of {image}, {id}, {step}"]),
                ('"moe-{step}"]', '"moe-{step"]', ["{ is not closed by }"]),
                ("kept:", "kept_:", ["kept_"]),
                ("name: docker", "name: podman", ["it is podman, and the file is that of docker"]),
            )
        ):
            with open(path, "w") as f:
                f.write(whole.replace(old, new))
            n.refused("x:1", path, *words, attempt=i + 1)
        equal(asked(n, "image"), None, "nothing was asked")


@suite.test
def its_arguments():
    for argv in ([], ["hold", "docker", "-x", "s"], ["hold", "docker", "x"], ["release", "x"]):
        r = subprocess.run([BUILD + "/moe-runtime"] + argv, capture_output=True, text=True)
        need(r.returncode == 2 and "usage" in r.stderr, r)


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
