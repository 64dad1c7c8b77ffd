#!/usr/bin/python3
"""moe-image by itself: images of layouts and archives become directories; an evil or damaged one
leaves nothing outside of them, and no half of itself."""
import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from image_rig import ARCHITECTURE, OCI, Layout, directory, entry, hardlink, layer, save, symlink
from lib import BUILD, ROOT, Skipped, Suite, equal, need, wait_until
from registry_rig import Registry

suite = Suite()
USER = 12345
NOBODY = 65534
NODE, USAGE, REFUSED = 1, 2, 3


class Place:
    """A directory of the unpacking user with a layout, where images are unpacked to."""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="moe-images-")
        self.layout = Layout(self.path("layout"))
        os.mkdir(self.path("images"))
        self.outside = self.path("outside")
        os.mkdir(self.outside)
        with open(self.outside + "/secret", "w") as f:
            f.write("of the node\n")
        os.chmod(self.dir, 0o755)
        if os.getuid() == 0:
            for d in (self.path("images"), self.outside):
                os.chown(d, USER, USER)
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.dir)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def command(self, source, *options, dest="x"):
        return [BUILD + "/moe-image", "unpack", source, self.path("images", dest), *options]

    def run(self, source, *options, dest="x"):
        as_user = dict(user=USER, group=USER, extra_groups=[]) if os.getuid() == 0 else {}
        return subprocess.run(
            self.command(source, *options, dest=dest),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            **as_user,
        )

    def source(self, *layers, **more):
        """oci: of a layout with one image."""
        self.digest = self.layout.add(self.layout.manifest(layers, **more))
        return "oci:" + self.layout.path

    def unpacked(self, *layers, dest="x", **more):
        """The root of an image that is whole."""
        p = self.run(self.source(*layers, **more), dest=dest)
        equal((p.returncode, p.stderr), (0, ""), "it ends with")
        equal(p.stdout.splitlines()[-1], self.digest, "the last line")
        equal(os.listdir(self.path("images")), [dest], "what is there")
        return self.path("images", dest, "rootfs")

    def refused(self, source, what, *options, code=REFUSED):
        """It ends so with one line, and nothing of it stays."""
        p = self.run(source, *options)
        equal(p.returncode, code, "exit status (%s)" % p.stderr)
        need(p.stderr.count("\n") == 1, "it says %r" % p.stderr)
        need(what in p.stderr, "it says %r, not %r" % (p.stderr, what))
        equal(os.listdir(self.path("images")), [], "what is there")
        equal(os.listdir(self.outside), ["secret"], "what is outside")
        equal(read(self.outside + "/secret"), "of the node\n", "what is outside")


def read(path):
    with open(path) as f:
        return f.read()


def tree(root):
    """{path: text of a file, "-> target", or None for a directory}"""
    found = {}
    for at, dirs, names in os.walk(root):
        for name in dirs + names:
            path = os.path.join(at, name)
            s = os.lstat(path)
            found[os.path.relpath(path, root)] = (
                "-> " + os.readlink(path)
                if stat.S_ISLNK(s.st_mode)
                else None
                if stat.S_ISDIR(s.st_mode)
                else read(path)
            )
    return found


@suite.test
def a_layout_becomes_a_bundle():
    for pack in ("", "+gzip", "+zstd"):
        with Place() as p:
            root = p.unpacked(
                layer(
                    directory("etc"),
                    entry("etc/name", "of the image\n"),
                    entry("./bin/run", "#!\n", mode=0o755),
                    symlink("sh", "/bin/run"),
                    hardlink("again", "bin/run"),
                    entry("g\u00fcn\u2603", "name"),
                    entry("/absolute", "below the root"),
                    directory("tmp", mode=0o1777),
                ),
                layer(entry("etc/name", "of the second\n"), directory("etc", mode=0o700)),
                pack=pack,
                config={"Env": ["PATH=/opt/bin:/bin", "EMPTY="], "WorkingDir": "/work"},
            )
            wanted = {
                "etc": None,
                "etc/name": "of the second\n",
                "bin": None,
                "bin/run": "#!\n",
                "sh": "-> /bin/run",
                "again": "#!\n",
                "g\u00fcn\u2603": "name",
                "absolute": "below the root",
                "tmp": None,
            }
            equal(tree(root), wanted, "the tree")
            run = os.stat(root + "/bin/run")
            equal((run.st_mode & 0o7777, run.st_nlink), (0o755, 2), "mode and links")
            equal(run.st_mtime, 1000000000, "time of change")
            equal(os.stat(root + "/tmp").st_mode & 0o7777, 0o1777, "mode of tmp")
            equal(os.stat(root + "/etc").st_mode & 0o7777, 0o700, "mode of etc")
            equal(run.st_uid, USER if os.getuid() == 0 else os.getuid(), "owner")
            equal(
                json.loads(read(root + "/../config.json"))["process"],
                {"env": ["PATH=/opt/bin:/bin", "EMPTY="], "cwd": "/work"},
                "process of config.json",
            )
            equal(read(root + "/../digest"), p.digest + "\n", "digest")


@suite.test
def what_lower_layers_brought_is_taken_away():
    with Place() as p:
        root = p.unpacked(
            layer(
                entry("gone", "1"),
                entry("dir/gone/deep/file", "1"),
                entry("opaque/old", "1"),
                entry("opaque/both/old", "1"),
                entry("opaque/sub/old", "1"),
                entry("stays", "1"),
                entry("kind/file", "1"),
                entry("became", "1"),
                symlink("lib", "usr/lib"),
                entry("usr/lib/a", "1"),
            ),
            layer(
                entry(".wh.gone"),
                entry("dir/.wh.gone"),
                # before and behind what the same layer brings
                entry("opaque/new", "2"),
                entry("opaque/both/new", "2"),
                entry("opaque/.wh..wh..opq"),
                entry("opaque/late", "2"),
                entry("stays", "2"),
                entry(".wh.stays"),
                entry("kind", "a file now"),
                directory("became"),
                entry("became/file", "2"),
                entry("lib/b", "2"),
                entry(".wh..wh.aufs"),
                entry("never/.wh.was"),
                entry(".wh.never"),
            ),
        )
        wanted = {
            "dir": None,
            "opaque": None,
            "opaque/new": "2",
            "opaque/both": None,
            "opaque/both/new": "2",
            "opaque/late": "2",
            "stays": "2",
            "kind": "a file now",
            "became": None,
            "became/file": "2",
            "lib": "-> usr/lib",
            "usr": None,
            "usr/lib": None,
            "usr/lib/a": "1",
            "usr/lib/b": "2",
        }
        equal(tree(root), wanted, "the tree")


@suite.test
def links_lead_nowhere_else():
    with Place() as p:
        # what links lead to is looked for in the image
        root = p.unpacked(
            layer(
                symlink("abs", p.outside),
                symlink("up", "../../../../../../../.." + p.outside),
                symlink("proc", "/proc/self/root"),
                directory(p.outside[1:]),
                directory("proc2"),
                symlink("file", p.outside + "/secret"),
            ),
            layer(
                entry("abs/through-abs", "1"),
                entry("up/through-up", "1"),
                entry("file", "a file now"),
                entry("abs/.wh.secret"),
                entry(p.outside + "/.wh..wh..opq"),
            ),
        )
        inside = tree(root + p.outside)
        equal(inside, {"through-abs": "1", "through-up": "1"}, "what links led to")
        equal(read(root + "/file"), "a file now", "what was a link")
        equal(os.listdir(p.outside), ["secret"], "what is outside")


@suite.test
def evil_layers_are_refused():
    def case(what, *entries, **more):
        with Place() as p:
            p.refused(p.source(layer(*[e(p) if callable(e) else e for e in entries])), what, **more)

    case("leads upwards (..): ../x", entry("../x", "1"))
    case("leads upwards (..): a/../../x", entry("a/../../x", "1"))
    case("leads upwards", entry("f", "1"), hardlink("h", "../outside/secret"))
    case("which is not there", lambda p: hardlink("h", p.outside + "/secret"))
    case("which is not there", lambda p: symlink("s", p.outside), hardlink("h", "s/secret"))
    case("which is a directory", directory("d"), hardlink("h", "d"))
    case("a name in it has too many directories", entry("d/" * 200 + "f", "1"))
    case("a name in it is too long", entry("n" * 300, "1"))
    case("Not a directory", entry("f", "1"), entry("f/below", "1"))
    case("Too many levels of symbolic links", symlink("a", "b"), symlink("b", "a"), entry("a/x"))
    # a link to nothing is no directory
    case("File exists", symlink("a", "nothing"), entry("a/x"))


@suite.test
def rights_and_devices_are_left_out():
    with Place() as p:
        device = entry("dev/sda", kind=tarfile.BLKTYPE)
        device[0].devmajor = 8
        root = p.unpacked(
            layer(
                entry("su", "1", mode=0o6755),
                directory("sgid", mode=0o2775),
                device,
                entry("dev/null", kind=tarfile.CHRTYPE),
                entry("fifo", kind=tarfile.FIFOTYPE),
                entry("closed", "1", mode=0),
                directory("shut", mode=0),
                entry("shut/in", "1"),
            )
        )
        equal(tree(root), {"su": "1", "sgid": None, "closed": "1", "shut": None, "shut/in": "1"})
        modes = {n: os.stat(root + "/" + n).st_mode & 0o7777 for n in ("su", "sgid", "closed")}
        equal(modes, {"su": 0o755, "sgid": 0o775, "closed": 0o400}, "modes")


@suite.test
def what_is_too_much_is_refused():
    zeros = layer(entry("big", bytes(64 << 20)))
    with Place() as p:  # 64 kB of gzip
        p.refused(p.source(zeros), "more than 1048576 bytes; allow more", "--max-bytes", "1M")
    with Place() as p:
        info = tarfile.TarInfo("big")
        info.size = 1 << 50
        p.refused(p.source(info.tobuf() + bytes(1024)), "its files have more than")
    with Place() as p:
        many = layer(*[entry("%d/%d" % (i % 100, i)) for i in range(100000)])
        equal(sum(len(f) for _, _, f in os.walk(p.unpacked(many))), 100000, "files")


@suite.test
def damaged_images_are_refused():
    def case(what, damage):
        with Place() as p:
            source = p.source(layer(entry("f", bytes(range(256)) * 1000)))
            manifest = p.layout.read(p.layout.index[0])
            damage(p, p.layout, manifest, p.layout.file(manifest["layers"][0]))
            p.refused(source, what)

    def change(path, at, data):
        with open(path, "r+b") as f:
            f.seek(at)
            f.write(data)

    def again(layout, manifest, **top):
        layout.index.clear()
        layout.add(layout.blob(dict(manifest, **top), "manifest.v1+json"))

    case("layer 1 of 1: ", lambda p, l, m, f: change(f, 200, b"damage"))
    # what is behind the archive counts too
    case("it is larger than the", lambda p, l, m, f: open(f, "ab").write(b"x"))
    case("layer 1 of 1: ", lambda p, l, m, f: os.truncate(f, 300))
    case("blobs/sha256/", lambda p, l, m, f: os.remove(f))
    case("is no regular file", lambda p, l, m, f: (os.remove(f), os.mkfifo(f)))
    case("its configuration: ", lambda p, l, m, f: change(l.file(m["config"]), 0, b"["))
    case("its manifest: it is damaged", lambda p, l, m, f: change(l.file(l.index[0]), 1, b" "))
    case("it is no OCI image layout", lambda p, l, m, f: os.remove(l.path + "/index.json"))
    case("it has no image", lambda p, l, m, f: (l.index.clear(), l.write_index()))
    case("names no configuration or no layers", lambda p, l, m, f: again(l, m, layers=[]))
    case(
        "a layer is no tar archive but 'text/plain'",
        lambda p, l, m, f: again(l, m, layers=[dict(m["layers"][0], mediaType="text/plain")]),
    )
    case(
        "a layer has no sha256 digest",
        lambda p, l, m, f: again(l, m, layers=[dict(m["layers"][0], digest="sha256:../../x")]),
    )
    case(
        "process.cwd is no absolute path",
        lambda p, l, m, f: again(
            l, m, config=l.blob({"config": {"WorkingDir": "work"}}, "config.v1+json")
        ),
    )


@suite.test
def the_image_of_this_node_is_taken():
    with Place() as p:
        l = p.layout
        other = "s390x"
        mine, theirs = (
            l.manifest([layer(entry("of", a))], architecture=a) for a in (ARCHITECTURE, other)
        )
        inner = {
            "schemaVersion": 2,
            "manifests": [
                dict(theirs, platform={"os": "linux", "architecture": other}),
                dict(mine, platform={"os": "linux", "architecture": ARCHITECTURE}),
                dict(mine, platform={"os": "unknown", "architecture": "unknown"}),
            ],
        }
        l.add(l.blob(inner, "index.v1+json"), tag="both")
        l.add(theirs, tag="theirs")
        r = p.run("oci:%s:both" % l.path)
        equal((r.returncode, r.stderr), (0, ""), "it ends with")
        equal(read(p.path("images/x/rootfs/of")), ARCHITECTURE, "the image")
        equal(read(p.path("images/x/digest")), mine["digest"] + "\n", "its digest")
        shutil.rmtree(p.path("images/x"))
        p.refused("oci:%s:theirs" % l.path, "it is for s390x, this node is " + ARCHITECTURE)
        p.refused("oci:%s:other" % l.path, "no image with the tag other (there is: both, theirs)")
        p.refused("oci:" + l.path, "it has 2 images for")
        p.refused("oci:" + l.path, "name one by its tag, as in oci:DIR:TAG")


@suite.test
def what_docker_save_writes():
    with Place() as p:
        archive = p.path("saved.tar")
        layers = [layer(entry("a", "1"), entry("b", "1")), layer(entry(".wh.a"), entry("c", "2"))]
        digest = save(archive, layers)
        r = p.run("docker-archive:" + archive)
        equal((r.returncode, r.stderr), (0, ""), "it ends with")
        equal(r.stdout.splitlines()[-1], digest, "the last line")
        equal(tree(p.path("images/x/rootfs")), {"b": "1", "c": "2"}, "the tree")
        process = json.loads(read(p.path("images/x/config.json")))["process"]
        equal(process, {"env": ["A=1"], "cwd": "/w"}, "process of config.json")
        shutil.rmtree(p.path("images/x"))
        save(archive, [layers[0], layers[1], layers[0]])
        r = p.run("docker-archive:" + archive)
        equal((r.returncode, r.stderr), (0, ""), "it ends with")
        equal(tree(p.path("images/x/rootfs")), {"a": "1", "b": "1", "c": "2"}, "the tree")
        shutil.rmtree(p.path("images/x"))
        save(archive, layers, pack="+gzip")
        r = p.run("docker-archive:" + archive)
        equal((r.returncode, r.stderr), (0, ""), "it ends with")
        equal(r.stdout.splitlines()[-1], digest, "the last line")
        equal(tree(p.path("images/x/rootfs")), {"b": "1", "c": "2"}, "the tree")
        shutil.rmtree(p.path("images/x"))
        save(archive, layers, lie=True)
        p.refused("docker-archive:" + archive, "layer 1 of 2: it is damaged")
        # of another's configuration, and so of his image's digest, with layers of its own
        for pack in (None, "", "+gzip", "+zstd"):
            save(archive, layers, pack=pack, instead=[layer(entry("evil", "1")), layers[1]])
            p.refused("docker-archive:" + archive, "layer 1 of 2: it is damaged")
        # and bytes behind the last entry count
        save(archive, layers, pack="+gzip", instead=[layers[0] + b"x" * 512, layers[1]])
        p.refused("docker-archive:" + archive, "layer 1 of 2: it is damaged")
        save(archive, layers, copies=2)
        p.refused("docker-archive:" + archive, "it has 2 images; save one alone")
        save(archive, layers, architecture="s390x")
        p.refused("docker-archive:" + archive, "it is for s390x")
        for links in (
            [symlink("manifest.json", "a"), symlink("a", "manifest.json")],
            [symlink("manifest.json", "manifest.json")],
        ):
            with open(archive, "wb") as f:
                f.write(layer(*links))
            p.refused("docker-archive:" + archive, "is a link to a link")
        with open(archive, "wb") as f:
            f.write(layer(symlink("manifest.json", "../../../../etc/passwd")))
        p.refused("docker-archive:" + archive, "has no etc/passwd")
        with open(archive, "wb") as f:
            f.write(layer(entry("other", "1")))
        p.refused("docker-archive:" + archive, "has no manifest.json")
        os.remove(archive)
        p.refused("docker-archive:" + archive, "cannot be opened: No such file")
        os.mkfifo(archive)
        p.refused("docker-archive:" + archive, "is no regular file")


@suite.test
def a_second_time_changes_nothing():
    with Place() as p:
        root = p.unpacked(layer(entry("f", "1")))
        before = os.stat(root + "/f")
        r = p.run("oci:" + p.layout.path)
        equal((r.returncode, r.stdout), (0, p.digest + "\n"), "the same again")
        equal(os.stat(root + "/f"), before, "its file")
        p.layout.index.clear()
        r = p.run(p.source(layer(entry("f", "2"))))
        equal(r.returncode, REFUSED, "another at the same place")
        need("is there already, and is not this image" in r.stderr, r.stderr)
        equal(os.stat(root + "/f"), before, "its file")


@suite.test
def a_killed_one_leaves_nothing_half():
    with Place() as p:
        source = p.source(*[layer(*[entry("%d" % f, "1") for f in range(3000)])] * 3)
        partial, whole = p.path("images/x.partial"), p.path("images/x")
        as_user = dict(user=USER, group=USER, extra_groups=[]) if os.getuid() == 0 else {}
        with open(os.devnull, "w") as null:
            process = subprocess.Popen(p.command(source), stdout=null, cwd="/", **as_user)
            wait_until(lambda: os.path.exists(partial + "/rootfs/100"), 30, "its files")
            r = p.run(source)  # it is still at work, or has just ended
            need(r.returncode == NODE and "another process" in r.stderr or r.returncode == 0, r)
            process.kill()
            process.wait()
        if r.returncode == NODE:
            need(os.path.exists(partial) or os.path.exists(whole), "what it left")
            r = p.run(source)
        equal(r.returncode, 0, "the next one ends with")
        equal(os.listdir(p.path("images")), ["x"], "what is there")
        equal(len(os.listdir(whole + "/rootfs")), 3000, "files")


def said(*words, **more):
    """Lines of a command that succeeds."""
    as_user = dict(user=USER, group=USER, extra_groups=[]) if os.getuid() == 0 else {}
    p = subprocess.run(
        [BUILD + "/moe-image", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        **as_user,
        **more,
    )
    equal((p.returncode, p.stderr), (0, ""), "%s ends with" % (words,))
    return p.stdout.splitlines()


@suite.test
def a_directory_of_images():
    with Place() as p:
        images, names = p.path("images"), []
        for i in range(4):
            p.layout.index.clear()
            source = p.source(layer(entry("f", bytes(1 << 20)), entry("which", str(i))))
            r = p.run(source, "--by-digest", dest="")
            equal((r.returncode, r.stderr), (0, ""), "it ends with")
            names.append(p.digest.replace(":", "-"))
            # the second one was used longest ago
            os.utime(p.path("images", names[i]), (1000, 1000 + (i - 1) % 4))
        os.mkdir(p.path("images/a-fifo"))
        os.mkfifo(p.path("images/a-fifo/digest"))
        os.mkdir(p.path("images/by-hand"))
        shutil.copy(p.path("images", names[0], "digest"), p.path("images/by-hand"))
        order = [names[i] for i in (1, 2, 3, 0)]
        listed = [line.split() for line in said("list", images)]
        equal([words[0] for words in listed], order, "images, the longest unused first")
        equal([words[2:] for words in listed][0], ["1970-01-01T00:16:40.000Z", "free"], "the first")
        sizes = [int(words[1]) for words in listed]
        need(all(1 << 20 <= n < 2 << 20 for n in sizes), "bytes: %s" % sizes)
        # once more: it is the newest
        before = os.stat(p.path("images", names[3], "rootfs/f"))
        r = p.run(source, "--by-digest", dest="")
        equal((r.returncode, r.stdout), (0, p.digest + "\n"), "the last one once more")
        equal(os.stat(p.path("images", names[3], "rootfs/f")), before, "its file")
        order = [names[i] for i in (1, 2, 0, 3)]
        equal([line.split()[0] for line in said("list", images)], order, "images")
        equal(said("prune", images, "--max-bytes", "1G")[:-1], [], "what goes of few")
        user = os.open(p.path("images", names[1]), os.O_RDONLY)
        fcntl.flock(user, fcntl.LOCK_SH)
        os.mkdir(p.path("images/sha256-of-a-killed-one.partial"))
        equal(said("list", images)[0].split()[3], "used", "the first")
        if os.getuid() == 0:
            os.chown(p.path("images/sha256-of-a-killed-one.partial"), USER, USER)
        lines = said("prune", images, "--max-bytes", str(2 * sizes[0]))
        equal([line.split()[::3] for line in lines[:-1]], [[n, "removed"] for n in order[1:3]])
        equal(lines[-1], "2 images with %d bytes" % sum([sizes[0], sizes[2]]), "the last line")
        left = sorted([names[1], names[3], "a-fifo", "by-hand"])
        equal(sorted(os.listdir(images)), left, "what is there")
        os.close(user)
        said("prune", images, "--max-bytes", "0", "--unused-for", "1h")
        left = sorted([names[3], "a-fifo", "by-hand"])
        equal(sorted(os.listdir(images)), left, "what was used a moment ago stays")
        said("prune", images, "--max-bytes", "0")
        equal(sorted(os.listdir(images)), ["a-fifo", "by-hand"], "what is there")


def pulls(source, dir, *words, **more):
    as_user = dict(user=USER, group=USER, extra_groups=[]) if os.getuid() == 0 else {}
    return subprocess.Popen(
        [BUILD + "/moe-image", "pull", source, dir, *words],
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
        cwd="/",
        **as_user,
        **more,
    )


@suite.test
def only_what_is_there_already():
    with Place() as p:
        source, dir = p.source(layer(entry("f", "1"))), p.path("images")
        only = ["--never", "--digest", p.digest]
        pull = pulls(source, dir, *only, stderr=subprocess.PIPE)
        need("it is not in %s, and pull: never" % dir in pull.communicate()[1], "it says")
        equal((pull.returncode, os.listdir(dir)), (REFUSED, []), "its end, and what is there")
        for words in ([], only):
            pull = pulls(source, dir, *words)
            equal(pull.communicate()[0].splitlines()[-1], p.digest, "it says")
            equal(pull.returncode, 0, "its end")


@suite.test
def pruned_while_it_is_unpacked():
    """What was fetched is not taken away below it."""
    with Place() as p:
        bulk = layer(entry("bulk", bytes(100 << 20)))
        with Registry(p.layout, p.layout.manifest([bulk])) as r:
            dir = p.path("images")
            pull = pulls(r.host + "/n/a/me:v1", dir)
            wait_until(lambda: pull.stdout.readline().startswith("unpacked"), 30, "it unpacks")
            os.killpg(pull.pid, signal.SIGSTOP)
            there = os.listdir(dir)
            equal(len([n for n in there if n.startswith("fetch-")]), 1, "what is there: %s" % there)
            equal(said("prune", dir, "--max-bytes", "0"), ["0 images with 0 bytes"], "what goes")
            equal(sorted(os.listdir(dir)), sorted(there), "what is there then")
            os.killpg(pull.pid, signal.SIGCONT)
            pull.stdout.read()
            equal(pull.wait(60), 0, "its end")
            equal(len(os.listdir(dir)), 1, "the image")


@suite.test
def a_file_system_without_locks():
    """Images come, one is named that a step has, and what was used within a day stays."""
    env = dict(os.environ, LD_PRELOAD=BUILD + "/tests/fake/preload/nolocks.so")
    with Place() as p:
        dir, names = p.path("images"), []
        for i in range(4):
            p.layout.index.clear()
            pull = pulls(p.source(layer(entry("f", str(i)))), dir, env=env)
            pull.stdout.read()
            equal(pull.wait(60), 0, "its end")
            names.append(p.digest.replace(":", "-"))
        old = time.time() - 25 * 3600
        for name in names[:2]:
            os.utime("%s/%s" % (dir, name), (old, old))
        for name, used in (("a.partial", None), ("b.partial", (old, old))):
            os.mkdir("%s/%s" % (dir, name))
            if os.getuid() == 0:
                os.chown("%s/%s" % (dir, name), USER, USER)
            os.utime("%s/%s" % (dir, name), used)
        keep = ["--keep", names[0].replace("-", ":")]
        lines = said("prune", dir, "--max-bytes", "0", *keep, env=env)
        equal(lines[0], "no locks in %s: what was used within a day stays" % dir, "the first line")
        equal([line.split()[::3] for line in lines[1:-1]], [[names[1], "removed"]], "what goes")
        left = sorted([names[0], *names[2:], "a.partial"])
        equal(sorted(os.listdir(dir)), left, "what is there")


@suite.test
def with_the_rights_of_the_agents_service():
    """What the unit of the packages leaves to root, and so to what the agent starts."""
    if os.getuid() != 0:
        raise Skipped("only root has rights to lose")
    with open(ROOT + "/units/moe-agent.service") as f:
        line = [s for s in f if s.startswith("CapabilityBoundingSet=")][0]
    caps = [w.lower().replace("cap_", "+") for w in line.strip().split("=")[1].split()]
    few = ["setpriv", "--bounding-set", ",".join(["-all"] + caps), "--no-new-privs"]

    def run(rights, *words):
        p = subprocess.run([*rights, BUILD + "/moe-image", *words], capture_output=True, text=True)
        return p.returncode, p.stderr

    with Place() as p:
        source = p.source(layer(entry("f", "1")))
        for options in (["--user", "nobody"], ["--user", "nobody", "--own"]):
            dir = p.path("all/shared" if len(options) == 2 else "all")
            images = dir if len(options) == 2 else p.path("all", str(NOBODY))
            status, said = run(few, "pull", source, dir, *options)
            equal(status, NODE, "it cannot give the directory away: " + said)
            equal(run([], "make", dir, *options), (0, ""), "who may makes it")
            equal(run(few, "pull", source, dir, *options), (0, ""), "it pulls then")
            equal(os.listdir(images), [p.digest.replace(":", "-")], "what is there")
            equal(run(few, "prune", images, "--max-bytes", "0"), (0, ""), "it prunes")
            equal(os.listdir(images), [], "what is there then")


@suite.test
def a_system_account_brings_none():
    """Where the site says so (min_uid), as of its ranks: nothing is made for it."""
    if os.getuid() != 0:
        raise Skipped("only root becomes somebody else")
    with Place() as p:
        source = p.source(layer(entry("f", "1")))
        for verb in (["make", p.path("all")], ["pull", source, p.path("all")]):
            for user, what in (("daemon", "below min_uid 1000"), ("nobody", "shell")):
                words = [*verb, "--own", "--user", user, "--min-uid", "1000"]
                r = subprocess.run([BUILD + "/moe-image", *words], capture_output=True, text=True)
                equal(r.returncode, REFUSED, r.stderr)
                need(what in r.stderr and r.stderr.count("\n") == 1, r.stderr)
        need(not os.path.exists(p.path("all")), "something was made")


@suite.test
def what_is_wrong_with_the_call():
    with Place() as p:
        p.refused("docker.io/x", "is no source of an image; write oci:DIR[:TAG] or docker-archive:")
        p.refused("oci:/nowhere", "it cannot be opened: No such file or directory")
        source = p.source(layer(entry("f", "1")))
        for words in (["--what"], ["--max-bytes"], ["--max-bytes", "x"]):
            r = p.run(source, *words)
            equal(r.returncode, USAGE, "exit status of %s" % words)
            need(r.stderr.startswith("usage: moe-image fetch"), r.stderr)
        r = p.run(source, dest="missing/x")
        equal(r.returncode, NODE, "no directory to unpack in")
        need("missing/x.partial cannot be made: No such file" in r.stderr, r.stderr)
        for words in (
            ["prune", p.dir],
            ["list"],
            ["list", p.dir, "--by-digest"],
            ["forget", p.dir],
        ):
            r = subprocess.run([BUILD + "/moe-image", *words], stderr=subprocess.PIPE)
            equal(r.returncode, USAGE, "exit status of %s" % words)
        r = subprocess.run(
            [BUILD + "/moe-image", "list", "/nowhere", "--allow-root"], stderr=subprocess.PIPE
        )
        equal(r.returncode, REFUSED, "exit status of no directory")
        if os.getuid() == 0:
            r = subprocess.run(p.command(source), stderr=subprocess.PIPE, text=True)
            equal(r.returncode, NODE, "as root")
            need(
                "are not brought as root; name who shall own them with --user" in r.stderr, r.stderr
            )
            r = subprocess.run(p.command(source, "--allow-root"), stdout=subprocess.PIPE, text=True)
            equal(r.returncode, 0, "as root that may")


sys.exit(1 if suite.main() else 0)
