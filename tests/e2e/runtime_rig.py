"""Container runtimes of a test's own: dockerd with a containerd beside it, podman with a store, and
tests/fake/docker.py, which does what it is told to. Each writes the data file that has agents ask
it (config/runtimes)."""
import os
import shutil
import signal
import subprocess
import sys

from image_rig import directory, entry, layer, save, symlink
from lib import BUILD, PATIENCE, ROOT, Daemon, Skipped, wait_until
from node_rig import processes

TREE = [directory(d) for d in "etc usr opt tmp w proc sys dev run root".split()]
TREE += [symlink(name, "usr/" + name) for name in ("bin", "sbin", "lib", "lib64")]


def unmount(dir, words):
    """Runtimes leave mounts of their own below the directory, and so does each of their commands
    that still runs."""
    asked = " ".join(words)
    wait_until(lambda: not [c for _, c in processes() if asked in c], 30, "its commands end")
    with open("/proc/self/mounts") as f:
        there = [line.split()[1] for line in f]
    for place in reversed([p for p in there if p.startswith(dir + "/")]):
        subprocess.run(["umount", place], capture_output=True)


class Runtime:
    """In the directory: data/runtimes/NAME.yaml, with the words of this one."""

    name, words, image = "docker", [], "x:1"
    # without the right to raise limits (CAP_SYS_RESOURCE) those of the runtimes cannot be had
    start = "--ulimit=nofile=1024, --ulimit=nproc=1000, "

    def __init__(self, dir):
        self.dir = dir

    def write(self, change=lambda text: text):
        os.makedirs(self.dir + "/data/runtimes", exist_ok=True)
        with open(ROOT + "/config/runtimes/%s.yaml" % self.name) as f:
            text = f.read().replace(": [%s, " % self.name, ": [%s, " % ", ".join(self.words))
        text = text.replace("run, --detach, ", "run, --detach, " + self.start)
        with open(self.dir + "/data/runtimes/%s.yaml" % self.name, "w") as f:
            f.write(change(text))

    def env(self):
        return {"MOE_DATA_DIR": self.dir + "/data"}

    def ask(self, *argv):
        r = subprocess.run(self.words + list(argv), capture_output=True, text=True)
        return r.returncode, r.stdout.strip(), r.stderr.strip()

    def tree(self, extra):
        return [layer(*TREE, entry("said", "lower\n"), *extra), layer(entry("said", "upper\n"))]

    def load(self, extra=()):
        """The image that jobs name; extra: entries that are in it."""
        save(self.dir + "/image.tar", self.tree(extra))
        code, _, said = self.ask("load", "-q", "-i", self.dir + "/image.tar")
        if code:
            raise Skipped("%s loads no image here: %s" % (self.name, said))

    def containers(self):
        return self.ask("ps", "--all", "--format", "{{.Names}}")[1].split()

    def up(self):
        pass

    def down(self):
        unmount(self.dir, self.words)


def programs(*names):
    """Where they are, also where only root looks, and what `make deps-stores` has unpacked."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    path += ":%s/docker/usr/bin:%s/docker/usr/sbin" % (BUILD, BUILD)
    found = [shutil.which(n, path=path) for n in names]
    for name, where in zip(names, found):
        if not where:
            raise Skipped("%s is not installed" % name)
    return found


class Docker(Runtime):
    """dockerd with its state below the directory."""

    def __init__(self, dir):
        super().__init__(dir)
        self.client, self.dockerd, self.containerd, _ = programs(
            "docker", "dockerd", "containerd", "runc"
        )
        self.words = [self.client, "--host=unix://%s/docker.sock" % dir]
        self.daemons = []

    def spawn(self, *argv):
        path = ":".join(os.path.dirname(p) for p in (self.containerd, self.dockerd))
        with open(self.dir + "/runtime.log", "ab") as log:
            self.daemons.append(
                Daemon(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=dict(os.environ, PATH=path + ":/usr/sbin:/usr/bin:/sbin:/bin"),
                    start_new_session=True,
                )
            )

    def answers(self):
        if [p for p in self.daemons if p.poll() is not None]:
            with open(self.dir + "/runtime.log", errors="replace") as f:
                last = f.read().strip().splitlines()[-1:]
            raise Skipped("dockerd does not start here: %s" % "".join(last))
        return self.ask("version")[0] == 0

    def start_dockerd(self):
        self.spawn(
            self.dockerd,
            "--containerd=%s/containerd.sock" % self.dir,
            "--host=unix://%s/docker.sock" % self.dir,
            "--data-root=%s/docker" % self.dir,
            "--exec-root=%s/docker-exec" % self.dir,
            "--pidfile=%s/docker.pid" % self.dir,
            "--iptables=false",
            "--ip6tables=false",
            "--bridge=none",
            "--storage-driver=overlay2",
        )

    def up(self):
        with open(self.dir + "/containerd.toml", "w") as f:
            f.write(
                'version = 2\nroot = "%s/containerd"\nstate = "%s/containerd-run"\n'
                'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
                '[grpc]\n  address = "%s/containerd.sock"\n' % ((self.dir,) * 3)
            )
        self.spawn(self.containerd, "--config", self.dir + "/containerd.toml")
        self.start_dockerd()
        wait_until(self.answers, 30, "dockerd answers")

    def kill(self):
        """The daemon, and what it asks to run containers: nobody looks after them any more."""
        for p in self.daemons:
            p.send_signal(signal.SIGKILL)
        for p in self.daemons:
            p.wait(PATIENCE * 20)
        self.daemons = []
        for name in ("docker.pid", "docker.sock", "containerd.sock"):
            try:
                os.remove("%s/%s" % (self.dir, name))
            except FileNotFoundError:
                pass

    def down(self):
        for p in reversed(self.daemons):
            p.send_signal(signal.SIGTERM)
            p.wait(PATIENCE * 30)
        self.daemons = []
        super().down()


class Podman(Runtime):
    name = "podman"
    # nor is a control group's where the machine has no controllers there
    start = Runtime.start + "--pids-limit=-1, "

    def __init__(self, dir):
        super().__init__(dir)
        client, _ = programs("podman", "runc")
        self.words = [client, "--root=%s/store" % dir, "--runroot=%s/storerun" % dir]
        self.words += ["--storage-driver=overlay", "--runtime=runc"]


class Fake(Runtime):
    """$DOCKER_DIR/images/NAME is the image; it begins with programs of the node's."""

    start = '-v, "/usr:/usr:ro", '

    def __init__(self, dir):
        super().__init__(dir)
        self.words = [dir + "/client"]
        with open(self.words[0], "w") as f:
            f.write("#!/bin/sh\nexport DOCKER_DIR=%s/docker\n" % dir)
            f.write('exec %s -I %s/tests/fake/docker.py "$@"\n' % (sys.executable, ROOT))
        os.chmod(self.words[0], 0o755)

    def load(self, extra=()):
        top = self.dir + "/docker/images/" + self.image
        os.makedirs(top)
        for info, data in TREE + [entry("said", "upper\n")] + list(extra):
            path = os.path.join(top, info.name)
            if info.isdir():
                os.makedirs(path, exist_ok=True)
            elif info.issym():
                os.symlink(info.linkname, path)
            else:
                with open(path, "wb") as f:
                    f.write(data)

    def told(self, **says):
        """What a command says instead; VERB_hangs: it never ends, VERB_fails: it says that and
        fails."""
        os.makedirs(self.dir + "/docker/says", exist_ok=True)
        for verb, text in says.items():
            with open("%s/docker/says/%s" % (self.dir, verb.replace("_", ".")), "w") as f:
                f.write(text)

    def untold(self):
        shutil.rmtree(self.dir + "/docker/says", ignore_errors=True)
