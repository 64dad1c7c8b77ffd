#!/usr/bin/python3
"""moe-image fetch: from a registry on loopback into a layout, and from there into a directory."""
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from image_rig import ARCHITECTURE, Layout, entry, layer
from lib import BUILD, PATIENCE, Suite, clean_env, equal, need, wait_until
from registry_rig import Registry

suite = Suite()
NODE, USAGE, REFUSED = 1, 2, 3
AS_USER = dict(user=12345, group=12345, extra_groups=[]) if os.getuid() == 0 else {}
NOISE = bytes(os.urandom(600000))


class World:
    """A registry with an image of two layers, and a directory of a user."""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="moe-registry-")
        os.chmod(self.dir, 0o755)
        self.layout = Layout(self.dir + "/there")
        self.here = self.dir + "/mine/layout"
        os.mkdir(self.dir + "/mine")
        if AS_USER:
            os.chown(self.dir + "/mine", AS_USER["user"], AS_USER["group"])
        self.manifest = self.image(b"1")
        self.registry = Registry(self.layout, self.manifest).__enter__()
        self.layers = self.layout.read(self.manifest)["layers"]
        return self

    def __exit__(self, *exc):
        self.registry.__exit__()
        shutil.rmtree(self.dir)

    def image(self, data, **more):
        layers = [layer(entry("noise", NOISE)), layer(entry("which", data))]
        return self.layout.manifest(layers, pack="", **more)

    def auth(self, text, mode=0o600):
        path = self.dir + "/mine/auth.json"
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        if AS_USER:
            os.chown(path, AS_USER["user"], AS_USER["group"])
        return path

    def login(self, user):
        secret = base64.b64encode(user.encode()).decode()
        return self.auth(json.dumps({"auths": {self.registry.host: {"auth": secret}}}))

    def command(self, name=None, *options):
        name = name or "docker://%s/n/a/me:v1" % self.registry.host
        return [BUILD + "/moe-image", "fetch", name, self.here, *options]

    def run(self, name=None, *options):
        return subprocess.run(
            self.command(name, *options),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            env=clean_env(),
            timeout=60 * PATIENCE,
            **AS_USER,
        )

    def fetched(self, name=None, *options, manifest=None):
        p = self.run(name, *options)
        equal((p.returncode, p.stderr), (0, ""), "it ends with")
        digest = (manifest or self.manifest)["digest"]
        equal(p.stdout.splitlines()[-1], digest, "the last line")
        need(not [f for f in self.blobs() if f.endswith(".partial")], "parts that stay")
        return p.stdout.splitlines()

    def blobs(self):
        return sorted(os.listdir(self.here + "/blobs/sha256"))

    def refused(self, what, name=None, *options, code=REFUSED):
        p = self.run(name, *options)
        equal(p.returncode, code, "exit status (%s)" % p.stderr)
        need(p.stderr.count("\n") == 1, "it says %r" % p.stderr)
        need(what in p.stderr, "it says %r, not %r" % (p.stderr, what))
        need(not os.path.exists(self.here + "/index.json"), "an image is named")

    def unpacked(self, wanted, tag=":v1"):
        dest = self.dir + "/mine/image"
        p = subprocess.run(
            [BUILD + "/moe-image", "unpack", "oci:" + self.here + tag, dest],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **AS_USER,
        )
        equal((p.returncode, p.stderr), (0, ""), "unpacking ends with")
        with open(dest + "/rootfs/noise", "rb") as f:
            need(f.read() == NOISE, "other bytes")
        with open(dest + "/rootfs/which", "rb") as f:
            equal(f.read(), wanted, "the image")
        shutil.rmtree(dest)


@suite.test
def an_image_comes_and_is_unpacked():
    with World() as w:
        lines = w.fetched()
        manifest = w.layout.read(w.manifest)
        size = sum(d["size"] for d in manifest["layers"] + [manifest["config"]])
        equal(lines[-2], "%d of %d bytes" % (size, size), "progress")
        w.unpacked(b"1")
        asked = len(w.registry.paths("blobs"))
        equal(asked, 3, "blobs that were asked for")
        w.fetched()
        equal(len(w.registry.paths("blobs")), asked, "blobs when it is there")
        # another image of the same layers, by a tag that has moved
        moved = w.image(b"2")
        w.registry.tags["v1"] = moved["digest"]
        w.fetched(manifest=moved)
        equal(len(w.registry.paths("blobs")), asked + 2, "blobs that are new")
        w.unpacked(b"2")
        # the old one, by its digest
        w.fetched("docker://%s/n/a/me@%s" % (w.registry.host, w.manifest["digest"]))
        w.unpacked(b"2")


@suite.test
def the_architecture_of_this_node_is_fetched():
    with World() as w:
        other = w.image(b"other", architecture="s390x")

        def of(manifest, architecture):
            return dict(manifest, platform={"os": "linux", "architecture": architecture})

        both = {"manifests": [of(other, "s390x"), of(w.manifest, ARCHITECTURE)]}
        w.registry.tags["v1"] = w.layout.blob(both, "index.v1+json")["digest"]
        w.fetched()
        w.unpacked(b"1")
    with World() as w:
        w.registry.tags["v1"] = w.image(b"other", architecture="s390x")["digest"]
        w.refused("it is for s390x, this node is " + ARCHITECTURE)
        equal(len(w.registry.paths("blobs")), 1, "blobs that were asked for")


@suite.test
def who_may():
    with World() as w:
        w.registry.user = "me:secret"
        w.refused("says 401 for a token: it is not there, or not for everybody; name credentials")
        path = w.login("me:wrong")
        w.refused("not for this user; check the entry of", None, "--auth", path)
        w.registry.tokens_hold = 2
        lines = w.fetched(None, "--auth", w.login("me:secret"))
        need("secret" not in "".join(lines), "the secret is shown")
        need(w.registry.tokens >= 2, "tokens: %d" % w.registry.tokens)
        w.unpacked(b"1")
    with World() as w:
        w.registry.user, w.registry.basic = "me:secret", True
        w.refused("says 401 for n/a/me v1")
        w.fetched(None, "--auth", w.login("me:secret"))
    with World() as w:
        host = w.registry.host
        for text, what in (
            ("{", "is no JSON"),
            ("[]", 'has no auths."%s".auth' % host),
            ('{"auths": {"other": {"auth": "eA=="}}}', 'has no auths."%s".auth' % host),
            (json.dumps({"auths": {host: {"auth": "a\r\nX: y"}}}), "has no auths."),
            (json.dumps({"auths": {host: {"auth": 1}}}), "has no auths."),
        ):
            w.refused(what, None, "--auth", w.auth(text))
        w.refused("others", None, "--auth", w.auth("{}", 0o644))
        w.refused("No such file", None, "--auth", "/nowhere")
        equal(w.registry.seen, [], "what was asked")


@suite.test
def credentials_in_what_is_no_file():
    """Nobody writes to a FIFO, and a pull that waits keeps others waiting."""
    with World() as w:
        fifo = w.dir + "/mine/fifo"
        os.mkfifo(fifo, 0o600)
        if AS_USER:
            os.chown(fifo, AS_USER["user"], AS_USER["group"])
        w.refused("fifo: it is no regular file", None, "--auth", fifo)


@suite.test
def a_password_goes_without_tls_to_this_machine_only():
    for realm in ("registry.invalid", "localhost:80@registry.invalid", "127.0.0.1.invalid"):
        with World() as w:
            w.registry.user, w.registry.realm = "me:secret", "http://%s/token" % realm
            w.refused('Protocol "http" ', None, "--auth", w.login("me:secret"))


@suite.test
def what_authorizes_goes_nowhere_else():
    with World() as w, Registry(w.layout, w.manifest) as store:
        w.registry.user = "me:secret"
        w.registry.link = "http://" + store.host
        w.fetched(None, "--auth", w.login("me:secret"))
        equal(len(store.paths("blobs")), 3, "blobs from the other place")
        equal({a for _, a, _ in store.seen}, {None}, "what authorized there")
        w.unpacked(b"1")


@suite.test
def it_goes_on_where_it_was_cut():
    with World() as w:
        # the configuration comes whole, the first layer in pieces
        w.registry.cut = [1 << 20, 100000, 0, 200000]
        w.fetched()
        ranges = [r for path, _, r in w.registry.seen if w.layers[0]["digest"] in path]
        equal(ranges, [None, "bytes=100000-", "bytes=100000-", "bytes=300000-"], "ranges")
        w.unpacked(b"1")
    with World() as w:  # one that knows no ranges begins again
        w.registry.cut, w.registry.ranges = [1 << 20, 100000, 200000], False
        w.fetched()
        w.unpacked(b"1")
    with World() as w:  # never further
        w.registry.cut = [1 << 20] + [0] * 100
        w.refused("layer 1 of 2: ", code=NODE)
    with World() as w:
        w.registry.fail = 2
        w.fetched()


@suite.test
def a_killed_one_goes_on():
    with World() as w:
        w.registry.silent.set()
        w.registry.cut = [1 << 20]
        part = w.here + "/blobs/sha256/" + w.layers[0]["digest"].split(":")[1] + ".partial"
        with open(os.devnull, "w") as null:
            p = subprocess.Popen(w.command(), stdout=null, env=clean_env(), cwd="/", **AS_USER)
        wait_until(lambda: os.path.exists(part) and os.path.getsize(part) > 0, 20, "a piece")
        other = w.run()
        equal(other.returncode, NODE, "a second one beside it")
        need("another process fetches an image to" in other.stderr, other.stderr)
        p.send_signal(signal.SIGKILL)
        p.wait()
        w.registry.silent.clear()
        w.fetched()
        equal(w.registry.seen[-2][2], "bytes=100-", "range of the first layer")
        w.unpacked(b"1")


@suite.test
def a_silent_one_is_given_up():
    with World() as w:
        w.registry.silent.set()
        w.registry.cut = [1 << 20]
        w.refused("no bytes of it, for 1 s", None, "--silence", "1s", code=NODE)


@suite.test
def other_bytes_are_refused():
    with World() as w:
        size = w.layers[0]["size"]
        w.registry.evil[w.layers[0]["digest"]] = bytes(size)
        w.refused("layer 1 of 2: its bytes have another digest", code=NODE)
        w.registry.evil[w.layers[0]["digest"]] = bytes(size + 1)
        w.refused("layer 1 of 2: it is larger than the image says", code=NODE)
        w.registry.evil.clear()
        w.fetched()
        # what was damaged on the disk comes again
        with open(w.here + "/blobs/sha256/" + w.layers[1]["digest"].split(":")[1], "r+b") as f:
            f.write(b"damage")
        w.fetched()
        w.unpacked(b"1")
    with World() as w:
        w.registry.evil[w.manifest["digest"]] = b"{}"
        name = "docker://%s/n/a/me@%s" % (w.registry.host, w.manifest["digest"])
        w.refused("with bytes of the digest", name, code=NODE)
        w.refused("names no configuration or no layers")


@suite.test
def names_and_mirrors():
    with World() as w:
        host = w.registry.host
        for name in ("docker.io/rocm/x:v1", "rocm/x:v1"):
            w.fetched("docker://" + name, "--mirror", "docker.io/rocm/x=%s/n/a/me" % host)
        shutil.rmtree(w.here)
        w.refused("has no n/a/me v2", "docker://%s/n/a/me:v2" % host)
        w.refused("has no n/a/me latest", "docker://%s/n/a/me" % host)
        w.refused("is no name of an image", "docker://%s/n/a/../me" % host)
        w.refused("is no image of a registry", host + "/n/a/me")
        w.refused("connect", "docker://127.0.0.1:1/x", code=NODE)
        p = w.run(None, "--mirror", "x")
        equal(p.returncode, USAGE, "exit status")
        for words in (["--max-bytes", "1G"], ["--silence", "1ms"], ["--auth"]):
            equal(w.run(None, *words).returncode, USAGE, "exit status of %s" % words)


sys.exit(1 if suite.main() else 0)
