#!/usr/bin/python3
"""moe-namespace by itself, with small trees as images: what the job sees, what it cannot do there,
and that an evil image changes nothing on the node."""
import ctypes
import fcntl
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


@suite.test
def mounts_of_the_node():
    """Read-only and not, directories and files, one within the other, whatever their order."""
    with Image() as i:
        i.write("node/inner", "inner\n")
        i.write("image/etc/hosts", "of the image\n")
        os.mkdir(i.path("node/below"))
        os.mkdir(i.path("other"), 0o755)
        os.chown(i.path("other"), USER, USER)
        i.mount(i.path("other"), "/ro/below")
        i.mount(i.path("node"), "/ro", readonly=True)
        i.mount(i.path("node/inner"), "/etc/hosts", readonly=True)
        i.mount(i.path("node/inner"), "/opt/made/file")
        i.made()
        equal(i.inside(lambda: write("/ro/x")), "Read-only file system", "writing to /ro")
        equal(i.inside(lambda: write("/ro/x"), uid=0), "Read-only file system", "root's writing")
        equal(i.inside(lambda: write("/ro/below/x")), 1, "writing to /ro/below")
        equal(os.listdir(i.path("other")), ["x"], "what it has written")
        equal(i.inside(lambda: read("/etc/hosts")), "inner\n", "a file on a file")
        equal(i.inside(lambda: read("/opt/made/file")), "inner\n", "a file on one that was made")
        equal(read(i.path("image/etc/hosts")), "of the image\n", "the file of the image")


@suite.test
def source_below_a_group():
    """The user's groups count, and no other's."""
    for groups, wanted in (([777], None), ([778], 13), ([], 13)):
        with Image(groups=groups) as i:
            os.makedirs(i.path("closed/data"))
            os.chown(i.path("closed"), 0, 777)
            os.chmod(i.path("closed"), 0o750)
            i.mount(i.path("closed/data"), "/data")
            said = i.start()
            equal(said and said[0], wanted, "with groups %s: %s" % (groups, said))


@suite.test
def devices_of_the_box():
    with Image() as i:
        for name, mode in (("mine", 0o666), ("not-mine", 0o666), ("closed", 0o600)):
            os.mknod(i.path(name), stat.S_IFCHR, os.makedev(1, 3))
            os.chmod(i.path(name), mode)
        i.device(i.path("mine"), "/dev/dri/renderD128")
        i.device(i.path("closed"), "/dev/closed")
        os.mkdir(i.path("image/dev"))
        os.mknod(i.path("image/dev/of-image"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        i.made()
        expected = "closed dri fd full null ptmx pts random shm stderr stdin stdout tty urandom"
        equal(
            [d for d in i.inside(lambda: sorted(os.listdir("/dev"))) if d != "mqueue"],
            expected.split() + ["zero"],
            "what is in /dev",
        )
        equal(i.inside(lambda: write("/dev/dri/renderD128")), 1, "its device")
        equal(i.inside(lambda: write("/dev/null")), 1, "/dev/null")
        equal(i.inside(lambda: len(os.read(os.open("/dev/urandom", 0), 9))), 9, "/dev/urandom")
        equal(i.inside(lambda: write("/dev/closed")), "Permission denied", "one of others")
        equal(i.inside(lambda: write("/dev/new")), "Permission denied", "making files in /dev")
        equal(i.inside(lambda: bool(os.openpty())), True, "a terminal")


@suite.test
def devices_that_are_none():
    for name, target, error, what in (
        ("node/file", "/dev/file", 19, "take the device %s of this node: it is none"),
        ("node", "/dev/dir", 19, "take the device %s of this node: it is none"),
        ("absent", "/dev/absent", 2, "open %s on this node as the agent"),
    ):
        with Image() as i:
            i.device(i.path(name), target)
            refused(i, error, what % i.path(name))
    with Image() as i:
        i.device("/dev/null", "/dev/../etc/null")
        refused(i, 22, "enter the device /dev/../etc/null: it must lie below /dev")


@suite.test
def shared_memory():
    with Image(shm_bytes=96 << 20) as i:
        i.made()
        seen = i.inside(lambda: os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize)
        equal(seen, 96 << 20, "bytes of /dev/shm")
        equal(i.inside(lambda: write("/dev/shm/of-the-step")), 1, "writing there")
        need(not os.path.exists("/dev/shm/of-the-step"), "it is on the node")
    with Image(shm_bytes=0) as i:
        i.made()
        inside = i.inside(lambda: os.stat("/dev/shm").st_dev)
        equal(inside, os.stat("/dev/shm").st_dev, "device of the node's own /dev/shm")


@suite.test
def kernel_files():
    """/proc is the node's (same processes); /sys cannot be changed, nor what is mounted below."""
    with Image() as i:
        i.made()
        for target, options in i.mounts().items():
            if target.startswith("/sys"):
                need("ro" in options, "%s: %s" % (target, options))
        need(len([t for t in i.mounts() if t.startswith("/sys/")]) > 0, "nothing is below /sys")
        here = os.getpid()
        equal(i.inside(lambda: os.path.exists("/proc/%d" % here)), True, "processes of the node")
        equal(
            i.inside(lambda: write("/sys/kernel/uevent_helper"), uid=0)
            if os.path.exists("/sys/kernel/uevent_helper")
            else "Read-only file system",
            "Read-only file system",
            "root's writing in /sys",
        )


@suite.test
def walls():
    """On the node's own root: directories of devices hold the job's only."""
    with Image(root=None, upper=None) as i:
        dri = i.path("dri")
        os.makedirs(dri + "/by-path")
        for name in ("renderD128", "renderD129", "card0"):
            os.mknod(os.path.join(dri, name), stat.S_IFCHR, os.makedev(1, 3))
            os.chmod(os.path.join(dri, name), 0o666)
        os.symlink("../renderD129", dri + "/by-path/pci")
        os.mkdir(i.path("infiniband"))
        i.box["walled"] = [dri, i.path("infiniband"), i.path("absent")]
        i.device(dri + "/renderD128", dri + "/renderD128")
        i.device("/dev/null", "/dev/null")
        seen = read("/proc/self/mountinfo")
        before = tree_hash(dri)
        i.made()
        equal(i.inside(lambda: os.listdir(dri)), ["renderD128"], "what is behind the wall")
        equal(i.inside(lambda: os.listdir(i.path("infiniband"))), [], "behind the other")
        equal(i.inside(lambda: write(dri + "/renderD128")), 1, "its device")
        need("/dev/null" not in i.mounts(), "a device that lies behind no wall was mounted")
        equal(
            i.inside(lambda: os.mkdir(dri + "/x"), uid=0),
            "Read-only file system",
            "making files there",
        )
        equal(i.inside(lambda: read("/run/moe-step")), "j1.a1.n0.test\n", "the marker")
        equal(i.inside(lambda: read("/etc/passwd")), read("/etc/passwd"), "files of the node")
        equal(read("/proc/self/mountinfo"), seen, "mounts that the node sees")
        equal(tree_hash(dri), before, "the directory on the node")
    with Image(root=None, upper=None) as i:
        os.mkdir(i.path("dri"))
        i.write("dri/card0", "no device")
        i.box["walled"] = [i.path("dri")]
        i.device(i.path("dri/card0"), i.path("dri/card0"))
        refused(i, 19, "take the device %s of this node: it is none" % i.path("dri/card0"))


@suite.test
def what_the_image_says():
    with Image() as i:
        i.made()
        equal(i.config, {"env": [], "workdir": None}, "of an image that says nothing")
    with Image() as i:
        i.write("image/etc/environment", 'PATH=/opt/bin:/bin\nA="1 2"\n')
        i.made()
        equal(
            i.config,
            {
                "env": [{"name": "PATH", "value": "/opt/bin:/bin"}, {"name": "A", "value": "1 2"}],
                "workdir": None,
            },
            "of a plain root",
        )
    with Image() as i:
        bundle(i, json.dumps({"process": {"env": ["A=1"], "cwd": "/w"}}))
        i.write("image/rootfs/etc/environment", "A=2\n")
        i.write("image/rootfs/here", "of the bundle\n")
        i.made()
        equal(i.config, {"env": [{"name": "A", "value": "1"}], "workdir": "/w"}, "of a bundle")
        equal(i.inside(lambda: read("/here")), "of the bundle\n", "its root")


def bundle(i, text):
    os.makedirs(i.path("image/rootfs/etc"))
    if text is not None:
        i.write("image/config.json", text)


@suite.test
def files_of_the_image_that_are_hostile():
    """A FIFO, a link to the node's secrets, too much, halves: each by its name, and none waits."""
    for name, is_bundle in (("etc/environment", False), ("config.json", True)):

        def case(make, error, what, name=name, is_bundle=is_bundle):
            with Image() as i:
                if is_bundle:
                    bundle(i, None)
                make(i, i.path("image", name))
                refused(i, error, "read %s of the image%s" % (name, what))

        no_file = ": it is no regular file"
        case(lambda i, p: os.mkfifo(p), 22, no_file)
        case(lambda i, p: os.symlink("/etc/shadow", p), 22, no_file)
        case(lambda i, p: os.mkdir(p), 22, no_file)
        case(lambda i, p: os.mknod(p, stat.S_IFCHR, os.makedev(1, 5)), 22, no_file)
        case(lambda i, p: (i.write(p, "secret"), os.chmod(p, 0o600)), 13, "")
        case(
            lambda i, p: i.write(p, "x" * ((1 << 20) + 1)), 27, ": it is larger than 1048576 bytes"
        )
    with Image() as i:
        i.write("image/etc/environment", "".join("V%d=1\n" % n for n in range(100000)))
        refused(i, 7, "read etc/environment of the image: it has more than 4096 variables")
    with Image() as i:
        i.write("image/etc/environment", "A=1\0\n")
        refused(i, 22, "read etc/environment of the image: it holds a NUL byte")
    for text in (
        json.dumps({"process": {"env": ["V%d=1" % n for n in range(100000)]}})[: 1 << 20],
        '{"process": {"env": [',
        '{"process": {"env": ["A=\\u0000"]}}',
        "[" * 100000,
        "",
    ):
        with Image() as i:
            bundle(i, text)
            error, what = i.start()
            need(
                error in (7, 22) and what.startswith("read config.json of the image: "),
                "%d %s" % (error, what),
            )
    with Image() as i:
        bundle(i, json.dumps({"process": {"env": ["V%d=" % n for n in range(5000)]}}))
        refused(i, 7, "read config.json of the image: it has more than 4096 variables")
    with Image() as i:
        bundle(i, '{"process": {"env": [%s{}]}}' % ("{}," * 300000))
        error, what = i.start()
        equal(error, 7, "errno of " + what)
    # a link on the way leads to what the image has there, never to the node's
    with Image() as i:
        os.rmdir(i.path("image/etc"))
        os.symlink("/../../../../../.." + i.path("node"), i.path("image/etc"))
        i.write("node/environment", "SECRET=1\n")
        i.made()
        equal(i.config["env"], [], "what is said")


@suite.test
def links_below_targets():
    """Where the image has a link for what is mounted, nothing is mounted nor made elsewhere."""
    for target in ("/data", "/deep/data"):
        for leads_to in ("/etc", "/node-directory", "../../../../../../../../etc", "absent"):
            with Image() as i:
                os.makedirs(os.path.dirname(i.root + target), exist_ok=True)
                link = i.path("node") if leads_to == "/node-directory" else leads_to
                os.symlink(link, i.root + target)
                i.mount(i.path("node"), target)
                refused(i, 40, "enter %s: it is a symbolic link in the image" % target)
    # a link on the way stays in the image
    with Image() as i:
        os.makedirs(i.path("image/inside"))
        os.symlink("/../../inside", i.path("image/data"))
        os.symlink(i.path("node"), i.path("image/out"))
        i.mount(i.path("node"), "/data/below")
        before = tree_hash(i.path("node"), "/etc")
        i.made()
        equal(i.inside(lambda: read("/inside/below/file")), "of the node\n", "where it is")
        equal(tree_hash(i.path("node"), "/etc"), before, "files of the node")
    with Image() as i:
        os.symlink(i.path("node"), i.path("image/out"))
        i.mount(i.path("node"), "/out/below")
        before = tree_hash(i.path("node"))
        need(i.start() is not None, "it is made")
        equal(tree_hash(i.path("node")), before, "files of the node")


@suite.test
def links_at_our_own_directories():
    for name in ("dev", "proc", "sys", "run"):
        for leads_to in ("/etc", "/tmp", "../../../../../etc", "absent"):
            with Image() as i:
                os.symlink(leads_to, i.path("image", name))
                refused(i, 40, "enter /%s: it is a symbolic link in the image" % name)
        with Image() as i:
            i.write("image/" + name, "a file")
            refused(i, 20, "enter /%s: it is no directory in the image" % name)
    with Image() as i:
        os.rmdir(i.path("image/etc"))
        os.symlink("/etc", i.path("image/etc"))
        i.mount("/etc/hostname" if os.path.exists("/etc/hostname") else "/etc/hosts", "/etc/hosts")
        seen = read("/proc/self/mountinfo")
        before = tree_hash("/etc")
        need(i.start() is not None, "/etc that leads to itself was entered")
        equal(tree_hash("/etc"), before, "/etc of the node")
        equal(read("/proc/self/mountinfo"), seen, "mounts that the node sees")


@suite.test
def nothing_is_made_on_the_node():
    """What a mount brings is not changed, also through a link of the image."""
    for target, link in (("/data/new/x", None), ("/link/x", "/data")):
        with Image() as i:
            if link:
                os.symlink(link, i.path("image/link"))
            i.mount(i.path("node"), "/data")
            i.mount(i.path("node"), target)
            part = "new" if not link else "x"
            refused(
                i,
                2,
                "enter %s: %s is missing there, and what comes from the node is not changed; "
                "make it on the node" % (target, part),
            )


@suite.test
def marker_cannot_be_forged():
    """Neither by the owner of the image, nor by mounts around it."""
    with Image() as i:
        for path, dirs, names in os.walk(i.root):
            os.chown(path, USER, USER)
        os.makedirs(i.path("image/run"))
        os.chown(i.path("image/run"), USER, USER)
        i.write("image/run/moe-step", "j9.a9.n9.other\n")
        os.symlink("/run", i.path("image/link"))
        i.write("node/forged", "j9.a9.n9.other\n")
        i.mount(i.path("node/forged"), "/link/moe-step")
        i.made()
        mark = "j1.a1.n0.test\n"
        equal(i.inside(lambda: read("/run/moe-step")), mark, "the marker")
        equal(i.inside(lambda: write("/own")), 1, "writing in the root, which is the user's")
        for what, attempt in (
            ("renaming /run", lambda: os.rename("/run", "/away")),
            ("renaming it", lambda: os.rename("/run/moe-step", "/run/x")),
            ("removing it", lambda: os.unlink("/run/moe-step")),
            ("writing it", lambda: write("/run/moe-step")),
            ("a file beside it", lambda: write("/run/x")),
        ):
            need(isinstance(i.inside(attempt), str), what + " is possible")
        equal(i.inside(lambda: read("/run/moe-step")), mark, "the marker")
    with Image() as i:
        i.mount(i.path("node"), "/run")
        refused(
            i,
            2,
            "enter /run/moe-step: moe-step is missing there, and what comes from the node is not "
            "changed; make it on the node",
        )
    for target in ("/", "//", "/etc/..", "data"):
        with Image() as i:
            i.mount(i.path("node"), target)
            refused(i, 22, "enter %s: it is no absolute path below /" % target)


@suite.test
def mounts_that_do_not_fit():
    with Image() as i:
        i.write("image/data", "a file")
        i.mount(i.path("node"), "/data")
        refused(i, 20, "enter /data: it is no directory in the image")
    with Image() as i:
        os.mkdir(i.path("image/data"))
        i.mount(i.path("node/file"), "/data")
        refused(i, 21, "enter /data: it is a directory in the image and a file on the node")
    with Image() as i:
        i.write("image/data", "a file")
        i.mount(i.path("node"), "/data/below")
        refused(i, 20, "enter /data/below: /data is no directory in the image")
    user = "open %%s on this node as the user (uid %d)" % USER
    with Image() as i:
        i.mount(i.path("vanished"), "/data")
        refused(i, 2, user % i.path("vanished"))
    with Image() as i:
        i.mount("relative", "/data")
        refused(i, 22, user % "relative")
    with Image() as i:
        os.makedirs(i.path("closed/data"))
        os.chmod(i.path("closed"), 0o700)
        i.mount(i.path("closed/data"), "/data")
        refused(i, 13, user % i.path("closed/data"))


@suite.test
def images_that_are_none():
    def case(error, make):
        with Image() as i:
            make(i)
            what = "open the image %s on this node as the user (uid %d)" % (i.box["root"], USER)
            refused(i, error, what)

    def closed(i):
        os.mkdir(i.path("closed"), 0o700)
        os.rename(i.root, i.path("closed/image"))
        os.mkdir(i.root)
        i.box["root"] = i.path("closed/image")

    case(20, lambda i: i.box.update(root=i.path("node/file")))
    case(2, lambda i: i.box.update(root=i.path("absent")))
    case(22, lambda i: i.box.update(root="image"))
    case(13, closed)


@suite.test
def killed_at_any_instant():
    """Whatever it was doing: the node sees no mount, and the image is as it was."""
    seen = read("/proc/self/mountinfo")
    for spins in range(0, 300000, 5000):
        with Image() as i:
            i.mount(i.path("node"), "/data")
            before = tree_hash(i.root, i.path("node"))
            i.write("step/box", json.dumps(i.box))
            with open(os.devnull, "w") as null:
                i.process = subprocess.Popen(
                    ["/bin/sh", "-c", 'exec "$0" "$1" 3>&1', BUILD + "/moe-namespace", i.step],
                    stdin=subprocess.PIPE,
                    stdout=null,
                )
            for _ in range(spins):
                pass
            i.process.kill()
            i.process.wait()
            equal(read("/proc/self/mountinfo"), seen, "mounts that the node sees")
            equal(tree_hash(i.root, i.path("node")), before, "files of the node")


def is_locked(path, how=fcntl.LOCK_EX):
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


@suite.test
def the_image_is_locked():
    with Image() as i:
        i.made()
        need(is_locked(i.root), "nobody holds a lock on the image")
        need(not is_locked(i.root, fcntl.LOCK_SH), "a second step could not use it")
        i.end()
        need(not is_locked(i.root), "the lock did not end with the maker")
        remover = os.open(i.root, os.O_RDONLY)
        fcntl.flock(remover, fcntl.LOCK_EX)
        equal(i.start(), (16, "use the image %s: it is being removed" % i.root), "the maker says")
        os.close(remover)


@suite.test
def a_brought_image_is_out_of_reach():
    """All see its files, and nobody on the node enters it; its account cannot have another one
    opened."""
    with Image() as i:
        i.write("image/config.json", json.dumps({"process": {"env": ["A=1"]}}))
        os.makedirs(i.path("image/rootfs/all"))
        os.makedirs(i.path("image/rootfs/bin"))
        i.write("image/rootfs/bin/x", "of the image\n")
        os.chmod(i.path("image/rootfs/all"), 0o777)
        os.mkdir(i.path("shared"))
        os.chmod(i.path("shared"), 0o700)
        os.rename(i.root, i.path("shared/it"))
        i.box["root"] = i.path("shared/it")
        refused(i, 13, "open the image %s on this node as the user (uid %d)" % (i.box["root"], USER))
        i.box["brought"] = True
        i.made()
        equal(i.config["env"], [{"name": "A", "value": "1"}], "what it says")
        equal(i.inside(lambda: read("/bin/x")), "of the image\n", "a file of it")
        equal(i.inside(lambda: write("/all/own")), 1, "writing where all may")
        equal(os.listdir(i.path("shared/it/rootfs/all")), [], "what the image has then")
        need(is_locked(i.box["root"]), "nobody holds a lock on the image")
    with Image() as i:
        os.symlink("/etc", i.path("link"))
        i.box.update(root=i.path("link"), brought=True)
        what = "open the image %s, which was brought to this node" % i.path("link")
        refused(i, 20, what)


@suite.test
def boxes_that_are_none():
    def case(what, **box):
        with Image(**box) as i:
            refused(i, 22, what)

    case("read the box: it names no user", uid=None)
    case("read the box: it names no user", gid=-1)
    case("read the box: it has no place for what the step writes", upper=None)
    case("read the box: it has no place for what the step writes", writable=None)
    with Image() as i:
        i.box = {"root": [1]}
        error, what = i.start()
        equal(error, 22, "errno of " + what)
        need(what.startswith("read the box: root"), what)
    with Image(upper="/nowhere/at/all") as i:
        refused(i, 2, "open the directory /nowhere/at/all for what the step writes")


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
