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
from test_doctor_image import AARCH64, LOADER, MACHINE, X86_64, elf
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
recovery: {max_cycles_without_progress: 3, backoff: 0}
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


MEGATRON = """import os, sys, time
to, rank = sys.argv[sys.argv.index("--save") + 1], os.environ["RANK"]
if os.path.exists("/work/elsewhere"):
    to = open("/work/elsewhere").read().strip()
for i in range(1, 1000):
    time.sleep(0.05)
    d = "%s/iter_%07d" % (to, i)
    os.makedirs(d, exist_ok=True)
    open(d + "/%s" % rank, "w").close()
    if rank == "0":
        print("  successfully saved checkpoint from iteration %7d to %s" % (i, to), flush=True)
"""


@suite.test
def saves_into_the_layer_of_the_image():
    """Gone with the attempt, so the first one ends the job, and says where it lies and what to do;
    a link of the image to the mount is no such place."""
    rig, _ = world()
    with rig:
        mounted = rig.dir + "/mounted"
        os.makedirs(mounted)
        with open(rig.dir + "/image/work/pretrain_gpt.py", "w") as f:
            f.write(MEGATRON)
        os.symlink(mounted, rig.dir + "/image/work/link")
        recipe = {
            "recipe": 1,
            "name": "layer",
            "engine": {
                "kind": "megatron-lm",
                "workdir": "/work",
                "container": {"image": "dir:%s/image" % rig.dir, "mounts": ["/usr:ro", mounted]},
            },
            "cluster": {"gpus": 2},
            "checkpoint": {"dir": rig.dir + "/ckpt", "every": 10},
            "steps": 1000,
        }
        with open(rig.dir + "/image/work/elsewhere", "w") as f:
            f.write("/opt/saved\n")
        job = rig.submit(json.dumps(recipe))
        doc = rig.wait_state(job, ["failed", "completed"])
        need("it lies in the image's scratch layer" in doc["reason"], doc["reason"])
        equal(doc["attempt"], 1, "attempt")
        with open(rig.dir + "/image/work/elsewhere", "w") as f:
            f.write("/work/link/saved\n")
        job = rig.submit(json.dumps(dict(recipe, name="link")))
        wait_until(lambda: rig.events_of(job, "checkpoint.elsewhere"), 30, "the first save")
        wait_until(lambda: len(os.listdir(mounted + "/saved")) > 20, 30, "more saves")
        equal(rig.job(job)["state"], "running", rig.job(job)["reason"])
        rig.run("cancel", job, "--now")


@suite.test
def saves_at_another_path():
    """checkpoint.dir is what ranks see; checkpoints are found on the nodes, where it lies."""
    rig, recipe = world()
    with rig:
        tree = primus_tree("moved")
        shutil.copytree(tree, rig.dir + "/image/workspace/Primus", symlinks=True)
        shutil.rmtree(os.path.dirname(tree))
        mounts, saves = ["/usr:ro", rig.dir + "/nfs:/workspace/exp"], rig.dir + "/nfs/root/e"
        os.mkdir(rig.dir + "/nfs")
        job = json.loads(primus_recipe("/workspace/Primus", "moved"))
        job["engine"]["container"] = {"image": "dir:%s/image" % rig.dir, "mounts": mounts}
        job["checkpoint"] = {"dir": "/workspace/exp/root/e/checkpoints", "every": 2}
        first = rig.submit(json.dumps(job))
        done = rig.wait_state(first, ["completed", "failed"])
        equal(done["state"], "completed", rig.run("why", first).stdout)
        need(os.listdir(saves + "/checkpoints"), "saved on the nodes")
        wait_until(
            lambda: {c["state"] for c in rig.json("checkpoints", first)["items"]} == {"verified"},
            60,
            "the files are read on a node",
        )
        found = rig.json("checkpoints", first)["items"]
        equal([c["iteration"] for c in found], [2, 4], found)
        need(all(c["path"].startswith(saves) for c in found), found)
        job["steps"] = 6
        again = rig.submit(json.dumps(job))
        done = rig.wait_state(again, ["completed", "failed"])
        equal(done["state"], "completed", rig.run("why", again).stdout)
        equal(done["resume"], 4, "it goes on from there")
        job["cluster"]["gpus"] = 8
        waits = rig.submit(json.dumps(job))
        job["engine"].pop("container")
        job["checkpoint"]["dir"] = saves + "/checkpoints"
        r = rig.run("submit", "-", stdin=json.dumps(job), check=False)
        need(r.returncode != 0 and "is that of %s" % waits in r.stderr, r.stderr)


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


@suite.test
def programs_that_cannot_be_executed():
    """The words of `moectl doctor NODE --image`, for ranks and commands beside them."""
    rig, recipe = world()
    with rig:
        for name, data in (
            ("opt/other/python3", elf(AARCH64 if MACHINE == X86_64 else X86_64)),
            ("opt/bare/python3", elf(MACHINE)),
            ("opt/script/python3", b"#!/no/such/shell\n"),
            ("opt/closed/python3", b"#!/bin/sh\n"),
        ):
            os.makedirs(os.path.dirname(rig.dir + "/image/" + name))
            with open(rig.dir + "/image/" + name, "wb") as f:
                f.write(data)
            os.chmod(rig.dir + "/image/" + name, 0o755 if "closed" not in name else 0o644)
        cannot = "cannot execute %s in the image: "
        for key, program, said in (
            ("engine.python", "/opt/none/python3", "not there; the image has /usr/bin/python3"),
            ("engine.python", "python9", "in none of the directories /"),
            ("engine.python", "/opt/other/python3", "it is for "),
            ("engine.python", "/opt/bare/python3", "it is executed by %s, which is" % LOADER),
            ("engine.python", "/opt/script/python3", "it is executed by /no/such/shell, which is"),
            ("engine.python", "/opt/closed/python3", "the user may not execute it"),
        ):
            job = rig.submit(recipe, "--set", "%s=%s" % (key, program))
            end = rig.wait_state(job, ["completed", "failed"])
            equal(end["state"], "failed", program)
            why = rig.run("why", job).stdout
            need(cannot % program + said in why, "%s: %s" % (program, why))
        job = rig.submit(recipe, "--set", "engine.args=[--wait]")
        wait_until(lambda: len(saved(rig)) == 4, 30, "all ranks run")
        r = rig.run("exec", job, "--", "/opt/other/python3", check=False)
        need(cannot % "/opt/other/python3" + "it is for " in r.stderr, r.stderr)
        rig.run("cancel", job, "--now")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
