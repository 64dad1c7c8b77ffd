#!/usr/bin/python3
"""Images that are files with a squashfs (squashfs:FILE): mounted by the node's kernel within the
step's namespace, and by nobody else; nothing is left of them."""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import Skipped, Suite, equal, need, wait_until
from node_rig import Node
from test_container import host_mounts, image_of, say

suite = Suite()


def world(allow=True):
    if os.getuid() != 0:
        raise Skipped("only root gives a job an image")
    if not shutil.which("mksquashfs"):
        raise Skipped("squashfs-tools is not installed")
    with open("/proc/filesystems") as f:
        if "squashfs" not in f.read().split():
            raise Skipped("the kernel knows no squashfs")
    if not os.path.exists("/dev/loop-control"):
        raise Skipped("there are no loop devices")
    return Node(options=["squashfs=true"] if allow else [])


def pack(n, root):
    path = root + ".sqsh"
    r = subprocess.run(
        ["mksquashfs", root, path, "-quiet", "-no-progress"], capture_output=True, text=True
    )
    need(r.returncode == 0, r.stderr)
    return path


def loops(n):
    """Devices that hold a file of this node."""
    found = []
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        try:
            with open(path) as f:
                found += [path] if n.dir in f.read() else []
        except OSError:
            continue  # it was cleared meanwhile
    return found


def container(n, path, **over):
    return dict(
        {
            "image": "squashfs:" + path,
            "mounts": [{"source": "/usr", "target": "/usr", "readonly": True}],
            "writable": "disk",
            "shm_bytes": 1 << 20,
        },
        **over,
    )


LOOK = (
    "  open('/of_image', 'a').write('and mine')\n"
    "  return [open('/of_image').read(), os.environ.get('A'), os.getcwd()]"
)


@suite.test
def a_file_is_the_root():
    with world() as n:
        path = pack(n, image_of(n, environment="A=image\n"))
        os.chmod(path, 0o644)
        before = host_mounts()
        for attempt, writable in ((1, "disk"), (2, "tmpfs")):
            said = say(n, LOOK, image="squashfs:" + path, root="x", writable=writable)
            equal(said, ["of the image\nand mine", "image", "/root"], "what the rank saw")
        equal(host_mounts(), before, "mounts of the node")
        wait_until(lambda: not loops(n), 20, "no loop device is left")


@suite.test
def a_bundle_in_a_file():
    with world() as n:
        os.makedirs(n.dir + "/bundle")
        shutil.move(image_of(n), n.dir + "/bundle/rootfs")
        with open(n.dir + "/bundle/config.json", "w") as f:
            json.dump({"process": {"env": ["A=bundle"], "cwd": "/opt"}}, f)
        said = say(n, LOOK, image="squashfs:" + pack(n, n.dir + "/bundle"), root="x")
        equal(said, ["of the image\nand mine", "bundle", "/opt"], "what the rank saw")


@suite.test
def nothing_is_left_of_a_killed_supervisor():
    with world() as n:
        path = pack(n, image_of(n))
        n.launch(["sleep", "1009"], workdir=None, container=container(n, path))
        equal(len(loops(n)), 1, "loop devices while it runs")
        os.remove(path)
        os.kill(n.stepd_pid(1, 1), signal.SIGKILL)
        n.moed.wait_note(1, 1, "gone")
        wait_until(lambda: not loops(n), 20, "no loop device is left")


@suite.test
def files_that_are_none():
    with world() as n:
        good = pack(n, image_of(n))
        bad = n.dir + "/bad"
        with open(good, "rb") as f:
            whole = f.read()
        for i, (make, words) in enumerate(
            (
                (lambda: None, "No such file"),
                (lambda: os.mkdir(bad), "it is no regular file"),
                (lambda: os.mkfifo(bad), "it is no regular file"),
                (lambda: open(bad, "wb").write(b"#!/bin/sh\n" * 500), "it is no squashfs"),
                (lambda: open(bad, "wb").write(b""), "image " + bad),
                (lambda: open(bad, "wb").write(whole[:500]), "image"),
            )
        ):
            make()
            n.launch(
                ["true"], attempt=i + 1, workdir=None, container=container(n, bad), wait="refused"
            )
            note = n.moed.note_list(1, i + 1, "refused")[0]
            need(words in note["text"], "%d: %s" % (i, note))
            n.moed.wait_note(1, i + 1, "gone")
            if os.path.isdir(bad):
                os.rmdir(bad)
            elif os.path.lexists(bad):
                os.remove(bad)
        wait_until(lambda: not loops(n), 20, "no loop device is left")


@suite.test
def who_may():
    with world(allow=False) as n:
        path = pack(n, image_of(n))
        n.launch(["true"], workdir=None, container=container(n, path), wait="refused")
        note = n.moed.note_list(1, 1, "refused")[0]
        need("n0 mounts no images of users: set `squashfs: true`" in note["text"], note)
        equal(note["cause"], "image", "cause")


@suite.test
def a_file_of_somebody_else():
    with world() as n:
        path = pack(n, image_of(n))
        os.chmod(path, 0o600)
        n.launch(
            ["true"], workdir=None, user="nobody", container=container(n, path), wait="refused"
        )
        note = n.moed.note_list(1, 1, "refused")[0]
        need("as the user" in note["text"] and "Permission denied" in note["text"], note)


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
