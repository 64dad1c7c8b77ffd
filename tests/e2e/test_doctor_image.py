#!/usr/bin/python3
"""`moectl doctor NODE --image`: what a node's agent says of an image, through the controller, and
of machines that are descriptions."""
import json
import os
import pwd
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, Skipped, Suite, equal, need
from rig import Rig

suite = Suite()
LOADER = "/lib64/ld-of-the-image"
X86_64, AARCH64 = 62, 183
MACHINE = {"x86_64": X86_64, "aarch64": AARCH64}[os.uname().machine]


def elf(machine, loader=LOADER):
    """The beginning of a program that is never run."""
    name = loader.encode() + b"\0"
    head = b"\x7fELF\2\1\1" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    head += struct.pack("<IIQQQQQQ", 3, 4, 120, 0, 0, len(name), len(name), 1)
    return head + name


class Image:
    """A directory with what of an image is looked at."""

    def __init__(self, parent=None):
        self.dir = tempfile.mkdtemp(prefix="moe-fit-", dir=parent)
        os.chmod(self.dir, 0o755)
        self.write("etc/environment", "PATH=/opt/venv/bin:/bin\nROCM=1\n")
        self.write("bin/sh", elf(MACHINE), 0o755)
        self.write("opt/venv/bin/python3", elf(MACHINE), 0o755)
        self.write(LOADER[1:], elf(MACHINE), 0o755)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, data, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        os.chmod(self.path(name), mode)

    def link(self, name, to):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        os.symlink(to, self.path(name))

    def look(self, *options, root=None, **more):
        """{check: (state, text, next)} of moe-probe itself, as this user."""
        own = [] if os.getuid() else ["--allow-root"]
        r = subprocess.run(
            [BUILD + "/moe-probe"]
            + (["--root", root] if root else [])
            + ["image", "--layers", "/tmp", *own, *options, "dir:" + self.dir],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            **more,
        )
        equal((r.returncode, r.stderr), (0, ""), "moe-probe")
        rows = json.loads(r.stdout)["items"]
        equal(len({i["check"] for i in rows}), len(rows), "rows of each check")
        return {i["check"]: (i["state"], i["text"], i["next"]) for i in rows}


def states(rows, *checks):
    return [rows[c][0] for c in checks]


class Machine:
    """A machine that is a description: two AMD GPUs, cards of Broadcom."""

    def __init__(self, amdgpu="6.14.14"):
        self.dir = tempfile.mkdtemp(prefix="moe-machine-")
        os.chmod(self.dir, 0o755)
        for i in range(2):
            d = "sys/bus/pci/devices/0000:0%d:00.0/" % i
            self.write(d + "vendor", "0x1002\n")
            self.write(d + "class", "0x120000\n")
            self.write("sys/class/infiniband/rdma%d/node_type" % i, "1: CA\n")
            os.makedirs(self.path("sys/class/infiniband/rdma%d/device" % i))
            os.symlink("/x/bnxt_en", self.path("sys/class/infiniband/rdma%d/device/driver" % i))
            self.write("dev/dri/renderD%d" % (128 + i), "")
        self.write("sys/module/amdgpu/version", amdgpu + "\n")
        self.write("dev/kfd", "")
        self.write("dev/infiniband/uverbs0", "")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as f:
            f.write(text)


@suite.test
def locks_of_the_directory_of_images():
    without = dict(os.environ, LD_PRELOAD=BUILD + "/tests/fake/preload/nolocks.so")
    with Image() as i:
        need("node.locks" not in i.look("--images", "/nowhere"), "it is not there yet")
        equal(i.look("--images", "/tmp")["node.locks"][0], "ok", "with locks")
        equal(i.look("--images", "/tmp", env=without)["node.locks"][0], "warn", "without locks")


@suite.test
def an_image_that_fits():
    with Image() as i, Machine() as m:
        i.write("opt/rocm-7.0.0/.info/version", "7.0.0-38\n")
        i.link("opt/rocm", "rocm-7.0.0")
        for name in ("librccl.so.1", "libhsa-runtime64.so.1"):
            i.write("opt/rocm-7.0.0/lib/" + name, "")
        i.write("etc/libibverbs.d/bnxt_re.driver", "driver bnxt_re\n")
        i.write("usr/lib/x86_64-linux-gnu/libibverbs/libbnxt_re-rdmav34.so", "")
        rows = i.look(root=m.dir)
        for check in rows:
            if check.startswith("image.") or check in ("node.gpus", "node.rdma"):
                equal(rows[check][0], "ok", "%s: %s" % (check, rows[check]))
        need("ROCm 7.0.0-38 over amdgpu 6.14.14 (30.10)" == rows["image.rocm"][1], rows)
        equal(rows["image.python"][1], "/opt/venv/bin/python3, along the image's PATH", "python")
        need("2 variables, PATH /opt/venv/bin:/bin" in rows["image.root"][1], rows)


@suite.test
def what_does_not_fit():
    with Image() as i, Machine("6.3.6") as m:
        i.write("opt/rocm/.info/version", "7.0.0\n")
        rows = i.look(root=m.dir)
        equal(states(rows, "image.rocm", "image.rccl", "image.rdma"), ["warn"] * 3, rows)
        need("AMD supports ROCm 5.6 to 6.2" in rows["image.rocm"][1], rows)
        need("no bnxt_re.driver" in rows["image.rdma"][1], rows)
        need("TCP" in rows["image.rdma"][2], rows)
        # its words without its library are none
        i.write("etc/libibverbs.d/bnxt_re.driver", "driver bnxt_re\n")
        equal(i.look(root=m.dir)["image.rdma"][0], "warn", "a provider without its library")
        i.write("usr/lib64/libibverbs/libbnxt_re-rdmav34.so", "")
        equal(i.look(root=m.dir)["image.rdma"][0], "ok", "a provider with its library")


@suite.test
def pythons():
    with Image() as i:
        other = AARCH64 if MACHINE == X86_64 else X86_64
        i.write("opt/venv/bin/python3", elf(other), 0o755)
        rows = i.look()
        equal(states(rows, "image.python", "image.architecture"), ["fail", "fail"], rows)
        os.remove(i.path("opt/venv/bin/python3"))
        rows = i.look()
        equal(states(rows, "image.python", "image.architecture"), ["fail", "ok"], rows)
        i.write("usr/bin/python3", "#!/no/such/thing\n", 0o755)
        text, todo = i.look()["image.python"][1:]
        need(text.endswith("/opt/venv/bin:/bin; the image has /usr/bin/python3"), text)
        equal(todo, "name it with engine.python", "what to do")
        os.rename(i.path("usr/bin/python3"), i.path("bin/python3"))
        text = i.look()["image.python"][1]
        need("executed by /no/such/thing, which is not there" in text, text)
        i.write("bin/python3", "#!/bin/sh\n", 0o755)
        equal(i.look()["image.python"][0], "ok", "a script of a shell")
        os.remove(i.path(LOADER[1:]))
        i.write("bin/python3", elf(MACHINE), 0o755)
        text = i.look()["image.python"][1]
        need("executed by %s, which is not there" % LOADER in text, text)


@suite.test
def evil_images():
    """Links that lead out, FIFOs and what is no configuration: nothing hangs or is followed."""
    with Image() as i:
        os.remove(i.path("opt/venv/bin/python3"))
        i.link("opt/venv/bin/python3", "../../../../../../../../usr/bin/env")
        text = i.look()["image.python"][1]
        need("in none of the directories" in text, "a link led out of the image: %s" % text)
        os.remove(i.path("opt/venv/bin/python3"))
        os.mkfifo(i.path("opt/venv/bin/python3"))
        i.look()
        os.remove(i.path("etc/environment"))
        equal(i.look()["image.root"][0], "warn", "an image without words")
        os.mkfifo(i.path("etc/environment"))
        state, text, _ = i.look()["image.root"]
        need(state == "fail" and "etc/environment of the image cannot be used" in text, text)
        os.mkdir(i.path("rootfs"))
        i.write("config.json", "{")
        state, text, _ = i.look()["image.root"]
        need(state == "fail" and "config.json of the image cannot be used" in text, text)


@suite.test
def devices_of_others():
    if os.getuid() != 0:
        raise Skipped("only root looks as somebody else")
    nobody = pwd.getpwnam("nobody")
    with Image() as i, Machine() as m:
        os.chmod(m.path("dev/kfd"), 0o660)
        rows = i.look("--user", nobody.pw_name, root=m.dir)
        state, text, todo = rows["node.gpus"]
        equal(state, "fail", text)
        need("/dev/kfd (group root, mode 0660)" in text, text)
        need("usermod -aG root nobody" in todo, todo)
        os.chown(m.path("dev/kfd"), 0, nobody.pw_gid)
        for name in os.listdir(m.path("dev/dri")):
            os.chmod(m.path("dev/dri/" + name), 0o666)
        equal(i.look("--user", "nobody", root=m.dir)["node.gpus"][0], "ok", "of his group")
        os.chmod(i.dir, 0o700)
        rows = i.look("--user", "nobody")
        equal(rows["image.root"][0], "fail", rows["image.root"])
        need("Permission denied" in rows["image.root"][1], rows["image.root"])


@suite.test
def through_the_controller():
    with Rig(nodes=1) as rig, Image(rig.dir) as i:
        os.chmod(rig.dir, 0o711)
        r = rig.run("doctor", "node-0", "--image", "dir:" + i.dir)
        equal((r.returncode, r.stderr), (0 if os.getuid() == 0 else 1, ""), r.stdout)
        lines = [line for line in r.stdout.splitlines() if line.startswith("image.python ")]
        need(len(lines) == 1 and " ok " in lines[0], r.stdout)
        doc = rig.json("doctor", "node-0", "--image", "dir:" + i.dir)
        equal(doc["user"], pwd.getpwuid(os.getuid()).pw_name, "as whom")
        os.remove(i.path("opt/venv/bin/python3"))
        r = rig.run("doctor", "node-0", "--image", "dir:" + i.dir, check=False)
        equal(r.returncode, 1, r.stdout)
        for wrong, words in (
            (["--image", i.dir], "say dir:" + i.dir),
            (["--image", "dir:relative"], "say dir:/PATH"),
            (["--image", "dir:" + i.dir, "--user", "no.such.user"], "does not exist on this node"),
            (["--image", "dir:" + i.dir, "--user", "a b"], "is not the name of an account"),
        ):
            r = rig.run("doctor", "node-0", *wrong, check=False)
            need(r.returncode and words in r.stderr, "%s: %s" % (wrong, r.stderr))
            need(len(r.stderr.splitlines()) == 1, "one line: %s" % r.stderr)
        r = rig.run("doctor", "node-7", "--image", "dir:" + i.dir, check=False)
        need("node-7" in r.stderr, r.stderr)
        equal(rig.run("doctor", "--image", "dir:/x", check=False).returncode, 2, "without a node")


@suite.test
def who_may_look():
    with Rig(nodes=1) as rig, Image(rig.dir) as i:
        token = rig.json("token", "create", "--role", "user", "--user", "anna")["token"]
        path = "/v1/nodes/node-0/image?image=dir:%s" % i.dir
        a = rig.http("GET", path + "&user=root", token=token)
        equal((a.status, a.detail), (403, "user: only an admin looks as somebody else"), "as root")
        a = rig.http("GET", path, token=token)
        equal(a.status, 422, a.body)
        need("user 'anna'" in a.detail, a.detail)
        viewer = rig.json("token", "create", "--role", "viewer", "--user", "otto")["token"]
        equal(rig.http("GET", path, token=viewer).status, 403, "a viewer")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
