#!/usr/bin/python3
"""What docker does of the few things that docs/agent-in-image.md and config/runtimes/docker.yaml
ask of it, without docker: an image is an unpacked directory, a container a mount namespace with
that directory as its root and the host's pid, net and ipc namespaces. As with docker, everything
that a container started is killed when its first process ends (there by its cgroup, here by its
mount namespace). run, exec, stop, start, logs, save, image inspect, container inspect, ps, rm, rmi;
$DOCKER_DIR/images/NAME are the images. $DOCKER_DIR/says/VERB is said instead, by VERB.fails it
fails, with VERB.hangs it never ends."""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

TOP = os.environ.get("DOCKER_DIR", "/var/lib/docker")
# taken, and what they ask for is so here
FLAGS = ("-d", "--detach", "--privileged", "--no-healthcheck")
VALUED = (
    "--label",
    "--mount",
    "--entrypoint",
    "--uts",
    "--user",
    "--workdir",
    "--cap-drop",
    "--log-driver",
    "--name",
    "--pid",
    "--network",
    "--ipc",
    "--device",
    "--group-add",
    "--security-opt",
    "--ulimit",
    "-v",
)
# what a container with --privileged sees of the machine
HOST = ("/proc", "/sys", "/dev")

MAKE = r"""set -eu
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
printf '%s\n' "$BINDS" | while IFS=: read -r from to how; do
    if [ -d "$from" ]; then
        mkdir -p "$ROOT$to"
    else
        mkdir -p "$(dirname "$ROOT$to")"
        [ -e "$ROOT$to" ] || : >"$ROOT$to"
    fi
    mount --rbind "$from" "$ROOT$to"
    [ "$how" != ro ] || mount -o remount,bind,ro "$ROOT$to"
done
cd "$ROOT"
mkdir -p .host
pivot_root . .host
cd /
umount -l /.host
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
"""


def fail(text):
    sys.stderr.write("docker (a stand-in): %s\n" % text)
    sys.exit(125)


def place(name, *rest):
    return os.path.join(TOP, "containers", name, *rest)


def read(path):
    with open(path) as f:
        return f.read()


def members(space):
    """Processes whose mount namespace it is."""
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/ns/mnt" % p) == space:
                found.append(int(p))
        except OSError:
            continue
    return found


def launch(name):
    """The container's first process, and one that waits for its end and ends the others, as a shim
    does."""
    spec = json.loads(read(place(name, "spec")))
    root = place(name, "root")
    env = dict(
        os.environ, ROOT=root, BINDS="\n".join(["%s:%s" % (p, p) for p in HOST] + spec["binds"])
    )
    if os.fork():
        end = time.monotonic() + 10
        while not os.path.exists(place(name, "pid")) and time.monotonic() < end:
            time.sleep(0.01)
        return
    os.setsid()
    log = os.open(place(name, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open("/dev/null", os.O_RDONLY)
    for fd, to in ((null, 0), (log, 1), (log, 2)):
        os.dup2(fd, to)
    own = os.readlink("/proc/self/ns/mnt")
    first = subprocess.Popen(
        ["unshare", "--mount", "/bin/sh", "-c", MAKE, "container"] + spec["command"], env=env
    )
    while os.readlink("/proc/%d/ns/mnt" % first.pid) == own:
        time.sleep(0.01)
    space = os.readlink("/proc/%d/ns/mnt" % first.pid)
    with open(place(name, "pid.new"), "w") as f:
        f.write("%d %s" % (first.pid, space))
    os.rename(place(name, "pid.new"), place(name, "pid"))
    first.wait()
    while members(space):
        for p in members(space):
            try:
                os.kill(p, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)
    os.unlink(place(name, "pid"))
    os._exit(0)


def bind_of(value):
    """FROM:TO[:ro] of type=bind,source=FROM,target=TO[,readonly]"""
    words = dict((w.split("=", 1) + [""])[:2] for w in value.split(","))
    if not os.path.exists(words["source"]):
        fail("bind source path does not exist: %s" % words["source"])
    return "%s:%s%s" % (words["source"], words["target"], ":ro" if "readonly" in words else "")


def run(words):
    name, binds, label, first = None, [], "", []
    while words and words[0].startswith("-"):
        word = words.pop(0)
        option, _, value = word.partition("=")
        if word in FLAGS:
            continue
        if option not in VALUED:
            fail("%s is not known here" % word)
        value = value or words.pop(0)
        if option == "--name":
            name = value
        elif option in ("--pid", "--network", "--ipc") and value != "host":
            fail("%s: only host is known here" % word)
        elif option == "-v":
            binds.append(value)
        elif option == "--mount":
            binds.append(bind_of(value))
        elif option == "--label":
            label = value
        elif option == "--entrypoint":
            first = [value]
    words[0] = names().get(words[0], words[0])
    image = os.path.join(TOP, "images", words.pop(0))
    if not os.path.isdir(image):
        fail("no image %s" % image)
    if os.path.exists(place(name)):
        fail("a container %s is there already" % name)
    os.makedirs(place(name))
    subprocess.run(["cp", "-a", image, place(name, "root")], check=True)
    with open(place(name, "spec"), "w") as f:
        json.dump({"binds": binds, "command": first + words, "label": label}, f)
    launch(name)
    print("3f0c5be4a1d2" * 5 + "3f0c")


def id_of(image):
    return hashlib.sha256(image.encode()).hexdigest()


def names():
    """Of images, by their ids."""
    top = os.path.join(TOP, "images")
    return {id_of(i): i for i in os.listdir(top)} if os.path.isdir(top) else {}


def inspect_image(how, image):
    image = names().get(image, image)
    if not os.path.isdir(os.path.join(TOP, "images", image)):
        fail("No such image: %s" % image)
    print("sha256:" + id_of(image))
    if "json" in how:
        print('\n{"Env": ["A=1"], "WorkingDir": "/w"}')


def inspect_container(name):
    if not os.path.exists(place(name, "spec")):
        fail("No such container: %s" % name)
    print(first_of(name)[0] if os.path.exists(place(name, "pid")) else 0)


def ps(labels):
    top = os.path.join(TOP, "containers")
    for name in os.listdir(top) if os.path.isdir(top) else []:
        if os.path.exists(place(name, "spec")):
            print(json.loads(read(place(name, "spec")))["label"][9:] if labels else name)


def rm(name):
    if not os.path.exists(place(name)):
        fail("No such container: %s" % name)
    end = time.monotonic() + 10
    while os.path.exists(place(name, "pid")) and time.monotonic() < end:
        left = members(first_of(name)[1])
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        if not left:  # and nobody looked after it
            break
        time.sleep(0.01)
    shutil.rmtree(place(name))


def rmi(image):
    for name in os.listdir(os.path.join(TOP, "containers")):
        fail("conflict: container %s is using its referenced image" % name)
    shutil.rmtree(os.path.join(TOP, "images", image))


def told(verb):
    """What the test wants instead, or before."""
    says = os.path.join(TOP, "says", verb)
    while os.path.exists(says + ".hangs"):
        time.sleep(1)
    if os.path.exists(says + ".fails"):
        fail(read(says + ".fails"))
    if os.path.exists(says):
        sys.stdout.write(read(says))
        sys.exit(0)


def first_of(name):
    if not os.path.exists(place(name, "pid")):
        fail("container %s is not running" % name)
    pid, space = read(place(name, "pid")).split()
    return int(pid), space


def stop(name):
    pid, _ = first_of(name)
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + 10
    while os.path.exists(place(name, "pid")):
        if time.monotonic() > end and os.path.exists("/proc/%d" % pid):
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    print(name)


def save(to, image):
    """One layer, as docker before 25 writes it."""
    with tempfile.TemporaryDirectory() as d:
        layer = os.path.join(d, "layer.tar")
        with tarfile.open(layer, "w") as t:
            t.add(os.path.join(TOP, "images", image), arcname=".")
        with open(layer, "rb") as f:
            digest = "sha256:" + hashlib.sha256(f.read()).hexdigest()
        config = {
            "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine],
            "os": "linux",
            "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "WorkingDir": "/workspace"},
            "rootfs": {"type": "layers", "diff_ids": [digest]},
        }
        text = json.dumps(config)
        named = hashlib.sha256(text.encode()).hexdigest() + ".json"
        manifest = [{"Config": named, "RepoTags": [image], "Layers": ["layer.tar"]}]
        for name, what in ((named, text), ("manifest.json", json.dumps(manifest))):
            with open(os.path.join(d, name), "w") as f:
                f.write(what)
        with tarfile.open(to, "w") as t:
            for name in os.listdir(d):
                t.add(os.path.join(d, name), arcname=name)


def main(verb, words):
    if verb in ("image", "container"):
        verb, words = "%s %s" % (verb, words[0]), words[1:]
    told({"image inspect": "image"}.get(verb, verb))
    if verb == "run":
        run(words)
    elif verb == "image inspect":
        inspect_image(words[1], words[-1])
    elif verb == "container inspect":
        inspect_container(words[-1])
    elif verb == "ps":
        ps("label=moe.step" in words)
    elif verb == "rm":
        rm(words[-1])
    elif verb == "rmi":
        rmi(words[-1])
    elif verb == "exec":
        pid, _ = first_of(words[0])
        os.execvp(
            "nsenter",
            [
                "nsenter",
                "--mount=/proc/%d/ns/mnt" % pid,
                "--root=/proc/%d/root" % pid,
                "--wd=/proc/%d/root" % pid,
            ]
            + words[1:],
        )
    elif verb == "stop":
        stop(words[0])
    elif verb == "start":
        launch(words[0])
        print(words[0])
    elif verb == "save" and words[0] == "-o":
        save(words[1], words[2])
    elif verb == "logs":
        sys.stdout.write(read(place(words[0], "log")))
    else:
        fail("%s is not known here" % verb)


main(sys.argv[1], sys.argv[2:])
