#!/usr/bin/python3
"""moe-namespace by itself, with small trees as images: what the job sees, what it cannot do there,
and that an evil image changes nothing on the node."""
import ctypes
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, Failed, Skipped, Suite, equal, need

suite = Suite()
USER = 12345
IDS = os.path.join(BUILD, "tests/fake/ids")
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS = 0x20000


def tree_hash(*roots):
    """Names, kinds, modes, owners, sizes and times of change of all below."""
    h = hashlib.sha256()
    for root in roots:
        for path, dirs, names in os.walk(root):
            dirs.sort()
            for name in [""] + sorted(dirs + names):
                s = os.lstat(os.path.join(path, name))
                h.update(
                    repr(
                        (path, name, s.st_mode, s.st_uid, s.st_gid, s.st_size, s.st_ctime_ns)
                    ).encode()
                )
    return h.hexdigest()


class Image:
    """A directory with an image, what is mounted in it, and one maker."""

    def __init__(self, **box):
        if os.getuid() != 0:
            raise Skipped("only root makes namespaces")
        self.dir = tempfile.mkdtemp(prefix="moe-image-")
        os.chmod(self.dir, 0o755)
        self.root = self.path("image")
        self.step = self.path("step")
        for d in ("image/etc", "image/bin", "image/tmp", "step", "upper", "node"):
            os.makedirs(self.path(d))
        os.chmod(self.path("image/tmp"), 0o1777)
        os.chown(self.path("node"), USER, USER)
        os.chmod(self.path("upper"), 0o700)
        self.write("step/step_id", "j1.a1.n0.test\n")
        self.write("node/file", "of the node\n")
        self.box = {
            "root": self.root,
            "writable": "disk",
            "upper": self.path("upper"),
            "uid": USER,
            "gid": USER,
            "groups": [],
            "shm_bytes": 96 << 20,
            "mounts": [],
            "walled": [],
            "devices": [],
        }
        self.box.update(box)
        self.process = self.config = self.error = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.end()
        shutil.rmtree(self.dir)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w") as f:
            f.write(text)
        os.chmod(self.path(name), mode)

    def mount(self, source, target, readonly=False):
        self.box["mounts"].append({"source": source, "target": target, "readonly": readonly})

    def device(self, source, target):
        self.box["devices"].append({"source": source, "target": target, "readonly": False})

    def start(self):
        """The maker's word: None (it is made; self.config is what the image says), or (errno,
        what)."""
        self.write("step/box", json.dumps(self.box))
        ours, theirs = os.pipe()
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", 'exec "$0" "$1" 3>&%d' % theirs, BUILD + "/moe-namespace", self.step],
            stdin=subprocess.PIPE,
            pass_fds=[theirs],
        )
        os.close(theirs)
        with os.fdopen(ours) as f:
            line = f.readline()
            if line != "ok\n":
                self.process.wait()
                need(self.process.returncode == 1 and line, "it ended: %r" % line)
                number, what = line.rstrip("\n").split(" ", 1)
                return int(number), what
            self.config = json.loads(f.readline()) if self.box["root"] else None
        return None

    def made(self):
        equal(self.start(), None, "the maker says")

    def end(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None

    def mounts(self):
        """{target: options of the mount} of the last on each."""
        with open("/proc/%d/mountinfo" % self.process.pid) as f:
            return {line.split()[4]: line.split()[5].split(",") for line in f}

    def inside(self, function, uid=USER):
        """What the function returns (JSON) in a process of the user that has entered; an OSError is
        the name of its errno."""
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                ns = os.open("/proc/%d/ns/mnt" % self.process.pid, os.O_RDONLY)
                if LIBC.setns(ns, CLONE_NEWNS) != 0:
                    raise Failed("setns: errno %d" % ctypes.get_errno())
                os.close(ns)
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                try:
                    value = function()
                except OSError as e:
                    value = os.strerror(e.errno)
                os.write(theirs, json.dumps(value).encode())
            except BaseException:
                traceback.print_exc()
            os._exit(0)
        os.close(theirs)
        with os.fdopen(ours) as f:
            text = f.read()
        os.waitpid(pid, 0)
        need(text, "the process inside said nothing")
        return json.loads(text)


def read(path):
    with open(path) as f:
        return f.read()


def write(path):
    with open(path, "w") as f:
        return f.write("x")


def refused(image, error, what):
    """The maker refuses so, and nothing on the node is other than before."""
    seen = read("/proc/self/mountinfo")
    before = tree_hash("/etc", image.dir + "/node", image.dir + "/image")
    got = image.start()
    equal(got, (error, what), "the maker says")
    equal(tree_hash("/etc", image.dir + "/node", image.dir + "/image"), before, "files of the node")
    equal(read("/proc/self/mountinfo"), seen, "mounts that the node sees")


@suite.test
def image_is_the_root():
    with Image() as i:
        i.write("image/etc/here", "of the image\n")
        os.mkdir(i.path("image/data"))
        i.mount(i.path("node"), "/data")
        seen = read("/proc/self/mountinfo")
        before = tree_hash(i.root)
        i.made()
        equal(i.inside(lambda: read("/etc/here")), "of the image\n", "a file of the image")
        equal(i.inside(lambda: read("/data/file")), "of the node\n", "a file of the node")
        equal(i.inside(lambda: read("/run/moe-step")), "j1.a1.n0.test\n", "the marker")
        equal(
            i.inside(lambda: sorted(os.listdir("/"))),
            ["bin", "data", "dev", "etc", "proc", "run", "sys", "tmp"],
            "the root",
        )
        equal(read("/proc/self/mountinfo"), seen, "mounts that the node sees")
        equal(tree_hash(i.root), before, "the image")
        for target, options in i.mounts().items():
            need("nosuid" in options, "%s: %s" % (target, options))
            device = target.startswith("/dev/")
            need(device or "nodev" in options, "%s: %s" % (target, options))


@suite.test
def layers():
    """disk, tmpfs, no: what a rank writes is gone with the step, the image as it was."""
    for writable in ("disk", "tmpfs", "no"):
        with Image(writable=writable) as i:
            i.mount(i.path("node"), "/made/for/it")
            before = tree_hash(i.root)
            i.made()
            equal(
                i.inside(lambda: write("/tmp/x")),
                1 if writable != "no" else "Read-only file system",
                "writing in the image, writable " + writable,
            )
            equal(
                i.inside(lambda: write("/etc/x"), uid=0),
                1 if writable != "no" else "Read-only file system",
                "root's writing, writable " + writable,
            )
            equal(i.inside(lambda: write("/made/for/it/x")), 1, "writing in a mount")
            equal(os.stat(i.path("node/x")).st_uid, USER, "whose it is on the node")
            on_disk = os.path.exists(i.path("upper/files/tmp/x"))
            equal(on_disk, writable == "disk", "whether it is on the disk")
            i.end()
            equal(tree_hash(i.root), before, "the image")


@suite.test
def set_user_id_gives_nothing():
    with open(IDS, "rb") as f:
        if b"/ld-linux" in f.read():
            raise Skipped("a sanitized build has no static program")
    with Image() as i:
        shutil.copy(IDS, i.path("image/bin/ids"))
        shutil.copy(IDS, i.path("node/ids"))
        for program in ("image/bin/ids", "node/ids"):
            os.chown(i.path(program), 0, 0)
            os.chmod(i.path(program), 0o4755)
        i.mount(i.path("node"), "/data")
        i.made()
        for program in ("/bin/ids", "/data/ids"):
            said = i.inside(
                lambda p=program: subprocess.run([p], stdout=subprocess.PIPE).stdout.decode()
            )
            equal(said, "%d %d\n" % (USER, USER), program)


@suite.test
def device_of_the_image_opens_nothing():
    with Image() as i:
        os.mknod(i.path("image/bin/null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        os.mknod(i.path("node/null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        for node in ("image/bin/null", "node/null"):
            os.chmod(i.path(node), 0o666)
        i.mount(i.path("node"), "/data")
        i.made()
        for node in ("/bin/null", "/data/null"):
            equal(i.inside(lambda n=node: write(n)), "Permission denied", node)


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
