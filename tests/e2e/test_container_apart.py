#!/usr/bin/python3
"""What jobs in images must not share: what they write, their /dev/shm, and images that are one
user's alone."""
import os
import pwd
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Suite, equal, need, wait_until
from node_rig import Node
from test_container import container, image_of

suite = Suite()
DIGEST = "sha256:" + "a" * 64
# writes in three places, and says what was there before
WRITES = """
import json, os, time
paths = ["/opt/x", "/tmp/x", "/dev/shm/x"]
seen = [p for p in paths if os.path.exists(p)]
for p in paths:
    open(p, "w").write("mine")
name = os.environ["MOE_STEP"].split(".")[0] + os.environ["MOE_ATTEMPT"]
json.dump(seen, open("/out/" + name, "w"))
time.sleep(9999)
"""


@suite.test
def two_jobs_in_one_image():
    """Neither sees what the other writes, nor does the next attempt what a killed one left."""
    with Node() as n:
        root, out = image_of(n), n.dir + "/out"
        os.makedirs(out)
        c = container(root, [(out, "/out", False)])
        for job in (1, 2):
            n.launch(["python3", "-c", WRITES], job=job, workdir=None, container=c)
            wait_until(lambda: os.path.exists("%s/j%d1" % (out, job)), 20, "job %d wrote" % job)
        os.kill(n.stepd_pid(), signal.SIGKILL)
        n.moed.wait_note(1, 1, "gone")
        n.launch(["python3", "-c", WRITES], job=1, attempt=2, workdir=None, container=c)
        wait_until(lambda: os.path.exists(out + "/j12"), 20, "the next attempt wrote")
        for name in ("j11", "j21", "j12"):
            with open(out + "/" + name) as f:
                equal(f.read(), "[]", "what %s saw" % name)
        need(not os.path.exists("/dev/shm/x"), "a segment is on the node")
        equal(os.listdir(root + "/opt"), [], "the image is not written")


def stored(n, uid, digest):
    """An image in the agent's directory that is uid's alone."""
    top = "%s/state/images/%d" % (n.dir, uid)
    place = "%s/%s" % (top, digest.replace(":", "-"))
    os.makedirs(place)
    shutil.copytree(image_of(n), place + "/rootfs", symlinks=True)
    for name, text in (("config.json", "{}"), ("digest", digest + "\n")):
        with open(place + "/" + name, "w") as f:
            f.write(text)
    for at, dirs, names in os.walk(top):
        for name in dirs + names:
            os.lchown(os.path.join(at, name), uid, uid)
    os.chown(top, uid, uid)
    os.chmod(top, 0o700)
    return place


@suite.test
def an_image_of_another_user():
    """By its digest, by its path, or as one that everybody has: nobody else gets it."""
    nobody, uid = pwd.getpwnam("nobody").pw_uid, 12345
    with Node() as n:
        os.chmod(n.dir, 0o711)
        place = stored(n, uid, DIGEST)
        for i, over in enumerate(
            (
                {"image": "r/a:v1", "digest": DIGEST, "auth_file": "/x"},
                {"image": "r/a:v1", "digest": DIGEST},
                {"image": "dir:" + place},
            )
        ):
            c = container("/", **over)
            n.launch(
                ["true"], attempt=i + 1, user="nobody", workdir=None, container=c, wait="refused"
            )
            note = n.moed.note_list(1, i + 1, "refused")[0]
            equal(note["cause"], "image", note)
        # whose it is
        own = "%s/state/images/%d" % (n.dir, nobody)
        os.rename("%s/state/images/%d" % (n.dir, uid), own)
        for at, dirs, names in os.walk(own):
            for name in dirs + names:
                os.lchown(os.path.join(at, name), nobody, nobody)
        os.chown(own, nobody, nobody)
        c = container("/", image="r/a:v1", digest=DIGEST, auth_file="/x")
        n.launch(["true"], attempt=9, user="nobody", workdir=None, container=c, wait="gone")
        equal(n.moed.note_list(1, 9, "exit")[0]["code"], 0, "his own")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
