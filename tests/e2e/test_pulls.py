#!/usr/bin/python3
"""Images that jobs name and nodes do not have (engine.container.image): brought before the first
rank starts, by real controllers, agents and moe-image, from a shared directory or a registry on
loopback."""
import base64
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from image_rig import Layout, directory, entry, layer, symlink
from lib import Skipped, Suite, equal, need, wait_until
from registry_rig import Registry
from rig import Rig, command_of

suite = Suite()
TRAIN = """import os, signal, sys
d, rank = os.environ["MOE_CHECKPOINT_DIR"], os.environ["RANK"]
with open("/etc/of_image") as f:
    said = f.read().strip()
name = os.path.join(d, "a%s.r%s.said" % (os.environ["MOE_ATTEMPT"], rank))
with open(name + ".new", "w") as f:
    f.write(said)
os.rename(name + ".new", name)
if "--wait" in sys.argv:
    signal.pause()
"""
RECIPE = """recipe: 1
name: in-image
engine:
  kind: torch
  workdir: /work
  entry: train.py
  container: {image: "%s", mounts: ["/usr:ro"]}
cluster: {gpus: 4}
checkpoint: {dir: "%s/ckpt"}
recovery: {max_cycles_without_progress: 3, backoff: 0}
stop: {grace: 2s}
"""


class World(Rig):
    """Two nodes, and a layout in a directory that both have."""

    def __init__(self, agent=None, moed=None, nodes=2):
        if os.getuid() != 0:
            raise Skipped("only root gives a job an image")
        super().__init__(
            nodes=nodes,
            gpus_per_node=4 // nodes,
            moed=moed,
            agent=dict(image_user="nobody", **(agent or {})),
        )
        os.chmod(self.dir, 0o755)
        self.layout = Layout(self.dir + "/shared")
        self.first = self.image("one", "v1")

    def image(self, said, tag=None, bulk=1000):
        """Digest of an image whose ranks say this."""
        dirs = ["etc", "usr", "tmp", "work", "proc", "sys", "dev", "run"]
        links = [symlink(d, "usr/" + d) for d in ("bin", "sbin", "lib", "lib64")]
        files = [entry("etc/of_image", said), entry("work/train.py", TRAIN)]
        m = self.layout.manifest(
            [
                layer(*[directory(d) for d in dirs], *links, *files),
                layer(entry("bulk", os.urandom(bulk))),
            ]
        )
        self.layout.index = [
            d
            for d in self.layout.index
            if d.get("annotations", {}).get("org.opencontainers.image.ref.name") != tag
        ]
        self.layout.add(m, tag)
        return m

    def recipe(self, image=None):
        return RECIPE % (image or "oci:%s/shared:v1" % self.dir, self.dir)

    def said(self):
        d = self.dir + "/ckpt"
        out = {}
        for name in os.listdir(d) if os.path.isdir(d) else []:
            if name.endswith(".said"):
                with open(os.path.join(d, name)) as f:
                    out[name] = f.read()
        return out

    def images(self, node):
        """Names in its directory of images."""
        d = "%s/state/node-%d/images/shared" % (self.dir, node)
        return sorted(os.listdir(d)) if os.path.isdir(d) else []

    def pulling(self):
        """Pids of moe-image that pull for one of its nodes."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            words = command_of(int(pid))
            if words.startswith("moe-image pull") and self.dir in words:
                found.append(int(pid))
        return found

    def reason(self, job):
        return self.job(job)["reason"] or ""


def all_said(said, attempt=1, ranks=4):
    return {"a%d.r%d.said" % (attempt, r): said for r in range(ranks)}


@suite.test
def an_image_of_a_shared_directory():
    w = World()
    with w:
        job = w.submit(w.recipe())
        done = w.wait_state(job, ["completed", "failed"])
        equal(done["state"], "completed", done["reason"])
        equal(w.said(), all_said("one"), "what ranks saw")
        need(done["image"].endswith("shared:v1 " + w.first["digest"]), done["image"])
        name = w.first["digest"].replace(":", "-")
        for i in range(2):
            wait_until(
                lambda: w.images(i) == [name], 10, "only the image is left: %s" % w.images(i)
            )
            # what all may write in an image, only its jobs see
            shared = os.stat("%s/state/node-%d/images/shared" % (w.dir, i))
            equal(shared.st_mode & 0o777, 0o700, "nobody else enters it")
        events = [e for e in w.json("events", job)["items"] if e["type"] == "image.resolved"]
        equal(len(events), 1, "image.resolved")
        equal(events[0]["data"]["digest"], w.first["digest"], "digest")


@suite.test
def a_tag_moves_between_attempts():
    w = World()
    with w:
        job = w.submit(w.recipe(), "--set", "engine.args=[--wait]")
        wait_until(lambda: len(w.said()) == 4, 30, "all ranks run")
        w.image("two", "v1")
        os.kill(w.rank_pids(job)[0], signal.SIGKILL)
        wait_until(lambda: len(w.said()) == 8, 60, "all ranks run again")
        equal(w.said(), dict(all_said("one"), **all_said("one", 2)), "what ranks saw")
        w.run("cancel", job, "--now")
        w.wait_state(job, "cancelled")
        # a new job has what the tag says now
        job = w.submit(w.recipe())
        need(w.wait_state(job, ["completed", "failed"])["state"] == "completed", w.reason(job))
        equal(set(w.said().values()), {"one", "two"}, "what ranks saw")


@suite.test
def what_a_registry_has():
    w = World()
    with w, Registry(w.layout, w.first) as r:
        image = r.host + "/n/a/me:v1"
        job = w.submit(w.recipe(image))
        done = w.wait_state(job, ["completed", "failed"])
        equal(done["state"], "completed", done["reason"])
        equal(w.said(), all_said("one"), "what ranks saw")
        name = w.first["digest"].replace(":", "-")
        for i in range(2):
            wait_until(
                lambda: w.images(i) == [name], 10, "only the image is left: %s" % w.images(i)
            )
        # by its digest it is not asked for again
        asked = len(r.seen)
        job = w.submit(w.recipe(r.host + "/n/a/me@" + w.first["digest"]))
        need(w.wait_state(job, ["completed", "failed"])["state"] == "completed", w.reason(job))
        equal(len(r.seen), asked, "requests")


@suite.test
def an_image_that_is_refused():
    w = World()
    with w, Registry(w.layout, w.first) as r:
        for image, said in (
            (r.host + "/n/a/me:none", "has no n/a/me none"),
            ("oci:%s/shared:none" % w.dir, "none"),
            ("oci:/nonexistent", "cannot be opened"),
        ):
            job = w.submit(w.recipe(image))
            end = w.wait_state(job, ["completed", "failed"])
            equal(end["state"], "failed", image)
            need(said in end["reason"] and "node-0" in end["reason"], end["reason"])
            equal(end["attempt"], 0, "no rank was started")
        equal(w.said(), {}, "what ranks saw")


@suite.test
def a_silent_registry_and_a_cancel():
    """Nothing of it is left."""
    w = World()
    with w, Registry(w.layout, w.first) as r:
        r.silent.set()
        job = w.submit(w.recipe(r.host + "/n/a/me:v1"))
        wait_until(lambda: " GB on node-0" in w.reason(job), 30, "how far it is")
        need("image" in w.run("why", job).stdout, "why names it")
        equal(w.job(job)["waiting"]["code"], "image", "code")
        w.run("cancel", job)
        equal(w.job(job)["state"], "cancelled", "at once")
        wait_until(lambda: not w.pulling(), 20, "no process of it is left")
        wait_until(lambda: not w.images(0), 20, "nothing of it is left: %s" % w.images(0))


@suite.test
def two_jobs_want_one_image():
    """One of them has all GPUs, the other half of them: one pull at a time on a node, and the bytes
    come once."""
    w = World(nodes=1)
    with w, Registry(w.layout, w.image("one", "v1", bulk=300000)) as r:
        jobs = [
            w.submit(
                w.recipe(r.host + "/n/a/me:v1"),
                *("--set", "cluster.gpus=2", "--set", "checkpoint.dir=%s/ckpt%d" % (w.dir, i)),
            )
            for i in range(2)
        ]
        for job in jobs:
            equal(w.wait_state(job, ["completed", "failed"])["state"], "completed", w.reason(job))
        blobs = r.paths("blobs")
        equal(len(blobs), len(set(blobs)), "each blob was asked for once: %s" % blobs)


@suite.test
def an_agent_dies_while_it_pulls():
    """What it had started dies with it; the next agent goes on."""
    w = World(nodes=1)
    with w, Registry(w.layout, w.first) as r:
        r.silent.set()
        job = w.submit(w.recipe(r.host + "/n/a/me:v1"))
        wait_until(lambda: " GB on node-0" in w.reason(job), 30, "how far it is")
        w.kill(w.agents["node-0"])
        wait_until(lambda: not w.pulling(), 20, "no process of it is left")
        r.silent.clear()
        w.start_agent("node-0")
        equal(w.wait_state(job, ["completed", "failed"])["state"], "completed", w.reason(job))
        equal(w.said(), all_said("one"), "what ranks saw")


@suite.test
def a_controller_is_started_anew_while_nodes_pull():
    w = World()
    with w, Registry(w.layout, w.first) as r:
        r.silent.set()
        job = w.submit(w.recipe(r.host + "/n/a/me:v1"))
        wait_until(lambda: " GB on node-" in w.reason(job), 30, "how far it is")
        w.kill(w.moed)
        w.start_moed()
        wait_until(lambda: " GB on node-" in w.reason(job), 30, "how far it is")
        equal(len(w.events_of(job, "image.resolved")), 1, "image.resolved")
        need(w.first["digest"] in w.job(job)["image"], "it is known still")
        w.run("cancel", job)


@suite.test
def what_may_pass_is_tried_again():
    """A pull is killed, and an answer ends half-way."""
    w = World(nodes=1)
    big = w.image("big", "v1", bulk=400000)
    with w, Registry(w.layout, big) as r:
        r.silent.set()
        job = w.submit(w.recipe(r.host + "/n/a/me:v1"))
        wait_until(lambda: " GB on node-0" in w.reason(job), 30, "how far it is")
        r.silent.clear()
        r.cut = [100, 1000]
        for pid in w.pulling():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: "signal 9" in w.reason(job) or w.said(), 30, w.reason(job))
        equal(w.wait_state(job, ["completed", "failed"])["state"], "completed", w.reason(job))
        equal(w.said(), all_said("big"), "what ranks saw")


@suite.test
def a_registry_that_asks_who():
    """With the submitter's file the image is his alone."""
    w = World()
    auth = w.dir + "/auth.json"
    with w, Registry(w.layout, w.first) as r:
        r.user = "me:secret-word"
        image = r.host + "/n/a/me:v1"
        job = w.submit(w.recipe(image))
        end = w.wait_state(job, ["completed", "failed"])
        equal(end["state"], "failed", "without a password")
        need("node-0" in end["reason"], end["reason"])
        for word, state in (("me:other", "failed"), (r.user, "completed")):
            with open(auth, "w") as f:
                secret = base64.b64encode(word.encode()).decode()
                json.dump({"auths": {r.host: {"auth": secret}}}, f)
            os.chmod(auth, 0o600)
            job = w.submit(w.recipe(image), "--set", "engine.container.auth.file=" + auth)
            end = w.wait_state(job, ["completed", "failed"])
            equal(end["state"], state, end["reason"])
            need("secret-word" not in json.dumps(w.job(job)), "the password is nowhere")
        equal(w.said(), all_said("one"), "what ranks saw")
        for i in range(2):
            own = "%s/state/node-%d/images/0" % (w.dir, i)
            equal(os.stat(own).st_mode & 0o777, 0o700, "nobody else enters it")
            need(w.first["digest"].replace(":", "-") in os.listdir(own), "it is there")
            equal(w.images(i), [], "nothing of it is shared")


@suite.test
def images_of_users_are_bounded_too():
    w = World(agent={"images_max": "1M"}, nodes=1)
    own = w.dir + "/state/node-0/images"
    old = "sha256-" + "0" * 64
    for user, owner in (("1234", 1234), ("shared", 65534)):
        for name in (old, "by-hand"):
            os.makedirs("%s/%s/%s" % (own, user, name))
            with open("%s/%s/%s/digest" % (own, user, name), "w") as f:
                f.write(old.replace("-", ":") + "\n")
            with open("%s/%s/%s/rootfs" % (own, user, name), "wb") as f:
                f.write(b"x" * (2 << 20))
        for at, _, names in os.walk("%s/%s" % (own, user)):
            for path in [at] + [at + "/" + n for n in names]:
                os.chown(path, owner, owner)
        os.chmod("%s/%s" % (own, user), 0o700)
        os.utime("%s/%s/%s" % (own, user, old), (1, 1))
    with w:
        for user in ("1234", "shared"):
            wait_until(
                lambda: os.listdir("%s/%s" % (own, user)) == ["by-hand"],
                20,
                "what stays of " + user,
            )


@suite.test
def few_nodes_at_once():
    w = World(moed={"pull_parallel": 1})
    with w, Registry(w.layout, w.first) as r:
        r.silent.set()
        job = w.submit(w.recipe(r.host + "/n/a/me:v1"))
        wait_until(lambda: " GB on node-0, 1 more node need" in w.reason(job), 30, w.reason(job))
        w.quiet(1, lambda: len(w.pulling()) <= 2, "one node pulls")
        r.silent.clear()
        r.end.set()
        equal(w.wait_state(job, ["completed", "failed"])["state"], "completed", w.reason(job))


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
