#!/usr/bin/python3
"""A recipe with an image (engine.container), from its submit to its end: real controller, agents,
supervisors. The image is a small tree into which the node's /usr is mounted."""
import json
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Skipped, Suite, equal, need, wait_until
from rig import Rig
from test_engines import primus_recipe, primus_tree

suite = Suite()
TRAIN = """import os, signal, sys, time
d, rank = os.environ["MOE_CHECKPOINT_DIR"], os.environ["RANK"]
with open("/etc/of_image") as f:
    said = f.read().strip()
with open(os.path.join(d, "a%s.r%s.said" % (os.environ["MOE_ATTEMPT"], rank)), "w") as f:
    f.write("%s %s" % (said, sys.executable))
if "--wait" in sys.argv:
    signal.pause()
"""
RECIPE = """recipe: 1
name: in-image
engine:
  kind: torch
  workdir: /work
  entry: train.py
  container: {image: "dir:%s", mounts: ["/usr:ro"]}
cluster: {gpus: 4}
checkpoint: {dir: "%s"}
recovery: {max_cycles_without_progress: 3}
"""


def world():
    if os.getuid() != 0:
        raise Skipped("only root gives a job an image")
    rig = Rig(nodes=2, gpus_per_node=2)
    root = os.path.join(rig.dir, "image")
    for d in ("etc", "usr", "tmp", "work", "proc", "sys", "dev", "run"):
        os.makedirs(os.path.join(root, d))
    os.chmod(rig.dir, 0o711)
    for link in ("bin", "sbin", "lib", "lib64"):
        os.symlink("usr/" + link, os.path.join(root, link))
    for path, text in (("etc/of_image", "of the image"), ("work/train.py", TRAIN)):
        with open(os.path.join(root, path), "w") as f:
            f.write(text)
    return rig, RECIPE % (root, rig.dir + "/ckpt")


def saved(rig):
    d = rig.dir + "/ckpt"
    out = {}
    for name in os.listdir(d) if os.path.isdir(d) else []:
        if name.startswith("a"):
            with open(os.path.join(d, name)) as f:
                out[name] = f.read()
    return out


@suite.test
def a_recipe_with_an_image():
    rig, recipe = world()
    with rig:
        for i in range(2):
            node = rig.http("GET", "/v1/nodes/node-%d" % i).json
            equal(node["info"]["images"], True, "a node can")
        r = rig.run("submit", "-", stdin=recipe)
        need("no mount of engine.container has it: ranks see" in r.stderr, r.stderr)
        job = rig.json("list")["items"][0]["id"]
        done = rig.wait_state(job, ["completed", "failed"])
        equal(done["state"], "completed", done["reason"])
        need(done["image"] == "dir:" + rig.dir + "/image", done)
        need("\nimage" in rig.run("status", job).stdout, "status names the image")
        # files of the image, its interpreter along PATH, a directory of the nodes
        equal(
            saved(rig),
            {"a1.r%d.said" % i: "of the image /usr/bin/python3" for i in range(4)},
            "what ranks saw and saved",
        )


@suite.test
def variables_of_an_image():
    rig, recipe = world()
    with rig:
        with open(rig.dir + "/image/etc/environment", "w") as f:
            f.write("OF_IMAGE=1\n")
        job = rig.submit(recipe, "--set", "cluster.gpus=400")
        r = rig.run("explain", "env", job)
        need("variables of the image, which come first, are left out" in r.stderr, r.stderr)
        rig.run("cancel", job, "--now")
        job = rig.submit(recipe, "--set", "engine.args=[--wait]")
        wait_until(lambda: len(saved(rig)) == 4, 30, "all ranks run")
        items = {e["name"]: e for e in rig.explain_env(job)["items"]}
        need(items["OF_IMAGE"]["value"] == "1" and "image" in items["OF_IMAGE"]["source"], items)
        rig.run("cancel", job, "--now")


@suite.test
def a_rank_in_an_image_is_killed():
    rig, recipe = world()
    with rig:
        job = rig.submit(recipe + "stop: {grace: 2s}\n", "--set", "engine.args=[--wait]")
        wait_until(lambda: len(saved(rig)) == 4, 30, "all ranks run")
        os.kill(rig.rank_pids(job)[0], signal.SIGKILL)
        wait_until(lambda: len(saved(rig)) == 8, 60, "all ranks run again")
        equal(rig.job(job)["attempt"], 2, "attempt")
        rig.run("cancel", job, "--now")
        equal(rig.wait_state(job, "cancelled")["attempt"], 2, "attempt")


@suite.test
def primus_in_an_image():
    """The vendor's whole stack in the image: its experiment is read there by nodes, its hooks run
    there, and what it saves is on the nodes."""
    rig, recipe = world()
    with rig:
        tree = primus_tree("in-image")
        shutil.copytree(tree, rig.dir + "/image/workspace/Primus", symlinks=True)
        shutil.rmtree(os.path.dirname(tree))
        job = json.loads(primus_recipe("/workspace/Primus", "in-image"))
        job["engine"]["container"] = {"image": "dir:%s/image" % rig.dir, "mounts": ["/usr:ro"]}
        job["checkpoint"] = {"dir": rig.dir + "/ckpt/root/e/checkpoints", "every": 2}
        job = rig.submit(json.dumps(job))
        done = rig.wait_state(job, ["completed", "failed"])
        equal(done["state"], "completed", rig.run("why", job).stdout)
        need("[prepare] " in rig.run("logs", job, "--rank", "0").stdout, "hooks were run")
        items = {i["key"]: i for i in rig.json("explain", "config", job)["items"]}
        need(items["moe_layer_freq"]["value"], items)
        need(os.listdir(rig.dir + "/ckpt/root/e/checkpoints"), "nothing was saved")
        need(not os.path.exists(rig.dir + "/image/workspace/Primus/data"), "the image was written")


@suite.test
def what_is_not_in_the_image():
    rig, recipe = world()
    with rig:
        for key, value, said in (
            ("engine.entry", "none.py", "none.py"),
            ("engine.python", "/opt/venv/bin/python3", "/opt/venv/bin/python3"),
            ("engine.container.image", "dir:/nonexistent/image", "/nonexistent/image"),
            ("engine.container.mounts", '["/usr:ro", "/nonexistent/data"]', "/nonexistent/data"),
        ):
            job = rig.submit(recipe, "--set", "%s=%s" % (key, value))
            end = rig.wait_state(job, ["completed", "failed"])
            need(
                end["state"] == "failed" and said in rig.run("why", job).stdout,
                "%s: %s" % (key, rig.run("why", job).stdout),
            )
        equal(saved(rig), {}, "nothing was saved")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
