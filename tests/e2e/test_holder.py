#!/usr/bin/python3
"""Ranks in a container that the site's runtime starts (engine.container.runtime): with docker and
podman themselves where they start here, and with a program that lies, hangs and fails."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from image_rig import entry
from lib import BUILD, Skipped, Suite, equal, need, wait_until
from node_rig import Node, alive, processes
from runtime_rig import Docker, Fake, Podman
from test_container import host_mounts
from test_container_faults import RANK, Faults, all_gone, end, goes_on, own_cgroups, parent
from test_container_faults import right_digits

suite = Suite()
LOOK = """
import json, os, sys, time
def root(): return [l for l in open('/proc/self/mounts') if l.split()[1] == '/'][-1].split()[3]
json.dump({'said': open('/said').read(), 'cwd': os.getcwd(), 'A': os.environ['A'],
  'dev': sorted(os.listdir('/dev')), 'marker': open('/run/moe-step').read(),
  'root': root(), 'shm': os.statvfs('/dev/shm').f_blocks * os.statvfs('/dev/shm').f_frsize,
  'status': open('/proc/self/status').read()}, open('/out/said.new', 'w'))
open('/said', 'w').write('mine')
os.rename('/out/said.new', '/out/said')
while not os.path.exists('/out/enough'): time.sleep(0.05)
"""
STEP = "%s.a1.%s.0123456789abcdef"


class Held(Node):
    """A node whose agent lets one runtime start containers."""

    def __init__(self, kind, allowed=True):
        if os.getuid() != 0:
            raise Skipped("only root gives a job an image")
        super().__init__()
        os.chmod(self.dir, 0o711)
        os.makedirs(self.dir + "/out")
        self.mounts = host_mounts()
        try:
            self.runtime = kind(self.dir)
            self.runtime.write()
            self.runtime.up()
            self.runtime.load()
        except BaseException:
            if hasattr(self, "runtime"):
                self.runtime.down()
            raise
        self.options = ["runtimes=" + self.runtime.name] if allowed else []
        self.env = self.runtime.env()

    def __exit__(self, *exc):
        open(self.dir + "/out/enough", "w").close()
        self.agent or self.start()
        for job, attempt in self.attempts:
            self.moed.order("kill", job, attempt)
            self.moed.wait_note(job, attempt, "gone")
        wait_until(lambda: not self.of_steps() or exc[0], 30, "all containers are given up")
        super().__exit__(*exc)

    def stopped(self):
        self.runtime.down()

    def of_steps(self):
        return [c for c in self.runtime.containers() if c.startswith("moe-")]

    def rank(self, code="", wait="gone", attempt=1, **over):
        container = {
            "image": "%s:%s" % (self.runtime.name, self.runtime.image),
            "runtime": self.runtime.name,
            "mounts": [
                {"source": "/usr", "target": "/usr", "readonly": True},
                {"source": self.dir + "/out", "target": "/out", "readonly": False},
            ],
            "writable": "disk",
            "shm_bytes": 1 << 20,
        }
        self.launch(
            ["python3", "-c", code],
            attempt=attempt,
            wait=wait,
            workdir=None,
            container=dict(container, **over),
            deadline=40,
        )

    def look(self):
        """What a rank sees, while it runs."""
        self.rank(LOOK, wait="running")
        wait_until(lambda: os.path.exists(self.dir + "/out/said"), 20, "the rank has looked")
        with open(self.dir + "/out/said") as f:
            return json.load(f)

    def refused(self, *words, attempt=1, **over):
        self.rank(wait="refused", attempt=attempt, **over)
        note = self.moed.note_list(1, attempt, "refused")[0]
        for w in words:
            need(w in note["text"], "%s: %s" % (w, note))
        return note

    def holder(self):
        """Pid of the container's process."""
        life = self.step_dir() + "/life"
        return [p for p, c in processes() if c.startswith("/moe-hold ") and opens(p, life)][0]


def opens(pid, path):
    """Descriptors of a process that lead to this file of the node, with their flags."""
    found, there = {}, os.stat(path)
    try:
        for fd in os.listdir("/proc/%d/fd" % pid):
            s = os.stat("/proc/%d/fd/%s" % (pid, fd))
            if (s.st_ino, s.st_dev) == (there.st_ino, there.st_dev):
                with open("/proc/%d/fdinfo/%s" % (pid, fd)) as f:
                    found[fd] = int(f.read().split("flags:")[1].split()[0], 8)
    except OSError:
        pass
    return found


def each(*kinds):
    """The test with each of these runtimes."""

    def register(fn):
        for kind in kinds:

            def run(kind=kind):
                fn(kind)

            run.__name__ = "%s_%s" % (fn.__name__, kind.__name__.lower())
            suite.test(run)
        return fn

    return register


@each(Docker, Podman)
def a_rank_in_it(kind):
    with Held(kind) as n:
        said = n.look()
        equal([said["said"], said["cwd"], said["A"]], ["upper\n", "/w", "1"], "of the image")
        step = said["marker"].strip()
        need(step.startswith("j1.a1.n0."), step)
        equal(said["shm"], 1 << 20, "its own /dev/shm")
        devices = "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero".split()
        need(set(said["dev"]) <= set(devices + ["kfd", "dri", "mqueue"]), said["dev"])
        need({"nosuid", "nodev"} <= set(said["root"].split(",")), said["root"])
        need("NoNewPrivs:\t1" in said["status"], "the rank may gain rights")
        rank, stepd = n.moed.note_list(1, 1, "started")[0]["pid"], n.stepd_pid()
        equal(parent(rank), stepd, "parent of the rank")
        equal(n.moed.note_list(1, 1, "started")[0]["bind_verified"], True, "binding read back")
        equal(n.runtime.containers(), ["moe-" + step], "containers")
        need(n.runtime.ask("rmi", n.runtime.image)[0] != 0, "the image could be removed")
        need(not os.path.exists(n.dir + "/state/layers/j1.a1"), "a layer that nobody uses")
        # what ends the container belongs to the supervisor alone
        life = n.step_dir() + "/life"
        holder = n.holder()
        for pid in [p for p, _ in processes() if opens(p, life)]:
            flags = set(opens(pid, life).values())
            if pid == stepd:
                need(all(f & os.O_CLOEXEC for f in flags), "it goes to programs: %s" % flags)
            else:
                equal((pid, [f & os.O_ACCMODE for f in flags]), (holder, [0]), "who has the pipe")
        equal(host_mounts().count(n.step_dir()), n.mounts.count(n.step_dir()), "mounts")
        open(n.dir + "/out/enough", "w").close()
        n.moed.wait_note(1, 1, "gone")
        wait_until(lambda: not n.of_steps(), 30, "nothing is kept")
        need(not alive(holder), "its process lives")
        equal(n.runtime.ask("rmi", n.runtime.image)[0], 0, "rmi afterwards")


@suite.test
def a_rank_in_it_everywhere():
    a_rank_in_it(Fake)


@each(Docker, Podman)
def its_process_is_no_rank(kind):
    """Ranks go on without it, and the log says so; of a supervisor that was killed it ends too."""
    with Held(kind) as n:
        n.look()
        rank = n.moed.note_list(1, 1, "started")[0]["pid"]
        os.kill(n.holder(), signal.SIGKILL)
        wait_until(lambda: "that holds the image" in n.log(), 20, "it is logged")
        need(alive(rank), "the rank has ended with it")
        equal(n.moed.note_list(1, 1, "exit"), [], "exits")
        open(n.dir + "/out/enough", "w").close()
        n.moed.wait_note(1, 1, "gone")
        equal(n.moed.note_list(1, 1, "exit")[0]["code"], 0, "the rank's end")


@suite.test
def the_daemon_is_dead():
    """Then the supervisor: no rank and no process of the container is left. The next agent gives
    the container up when the daemon is back."""
    with Held(Docker) as n:
        n.look()
        rank, holder = n.moed.note_list(1, 1, "started")[0]["pid"], n.holder()
        n.runtime.kill()
        need(alive(rank), "the rank has ended with the daemon")
        os.kill(n.stepd_pid(), signal.SIGKILL)
        n.moed.wait_note(1, 1, "gone")
        need(not alive(rank), "the rank lives")
        wait_until(lambda: not alive(holder), 20, "the container's process ends")
        note = n.refused("docker", attempt=2)
        equal(note["cause"], "namespace", "no image is missing: %s" % note["text"])
        n.runtime.up()
        n.stop_agent()
        n.start()
        wait_until(lambda: not n.of_steps(), 30, "what was kept is given up")


@each(Docker, Podman)
def what_an_agent_before_left(kind):
    with Held(kind) as n:
        life = n.dir + "/life"
        os.mkfifo(life)
        with open(os.open(life, os.O_RDWR), "w"):
            for step in (STEP % ("j7", "n0"), STEP % ("j8", "n1")):
                words = "run --detach --network=host --pid=host --log-driver=none".split()
                words += ["--ulimit=nofile=1024", "--ulimit=nproc=1000"]
                words += ["--name", "moe-" + step, "--label", "moe.step=" + step]
                for source, to in ((BUILD + "/moe-hold", "/hold"), (life, "/life")):
                    words.append("--mount=type=bind,source=%s,target=%s" % (source, to))
                r = n.runtime.ask(*words, "--entrypoint=/hold", n.runtime.image, "/life")
                equal(r[0], 0, r)
            n.stop_agent()
            n.start()
            wait_until(lambda: len(n.of_steps()) == 1, 30, "one is removed")
            equal(n.of_steps(), ["moe-" + STEP % ("j8", "n1")], "of another node")
        n.runtime.ask("rm", "--force", "moe-" + STEP % ("j8", "n1"))


class HeldFaults(Faults):
    """Jobs of this cluster run in containers of the runtime."""

    kind = None

    def make_image(self):
        self.runtime = self.kind(self.dir)
        self.runtime.write()
        self.runtime.up()
        try:
            self.runtime.load([entry("opt/rank.py", RANK)])
        except BaseException:
            self.runtime.down()
            raise
        self.agent_env = self.runtime.env()
        self.agent_options["runtimes"] = self.runtime.name
        self.container = {
            "image": "%s:%s" % (self.runtime.name, self.runtime.image),
            "runtime": self.runtime.name,
        }

    def __exit__(self, *exc):
        try:
            super().__exit__(*exc)
        finally:
            self.runtime.down()

    def of_steps(self, attempt):
        """Containers of attempts before."""
        found = [c for c in self.runtime.containers() if c.startswith("moe-j")]
        return [c for c in found if int(c.split(".a")[1].split(".")[0]) < attempt]


def one_after_another(rig, job):
    """What is killed, each time: the name, and whether there is a next attempt."""
    ranks = lambda: sorted(rig.newest()[1].items())

    def client():
        """The command that starts the next container."""
        end(ranks()[0][1])
        wait_until(
            lambda: [end(p) or p for p, c in processes() if "run --detach" in c and rig.dir in c],
            30,
            "a client that starts a container",
        )

    def holder():
        for p, c in processes():
            if c.startswith("/moe-hold ") and rig.dir in mounts_of(p):
                end(p)

    yield "rank", lambda: end(ranks()[0][1]), True
    yield "supervisor", lambda: end(parent(ranks()[0][1])), True
    yield "other supervisor", lambda: end(parent(ranks()[-1][1])), True
    yield "holders", holder, False
    yield "rank without a holder", lambda: end(ranks()[0][1]), True
    yield "agents", lambda: [rig.kill(a) for a in rig.agents.values()], False
    yield "client", client, True
    if hasattr(rig.runtime, "kill"):
        yield "daemon", rig.runtime.kill, False
        yield "supervisor under no daemon", lambda: end(parent(ranks()[0][1])), True


def mounts_of(pid):
    try:
        with open("/proc/%d/mountinfo" % pid) as f:
            return f.read()
    except OSError:
        return ""


@each(Docker, Podman)
def kills(kind):
    """After each: the job goes on from its checkpoint with the same digits, no process of two
    attempts was alive at once, and no container of an older attempt is left."""
    own_cgroups()
    with type("Rig", (HeldFaults,), {"kind": kind})() as rig:
        job = rig.train()
        wait_until(lambda: rig.last_save() > 0, 60, "the first save")
        for name, kill, again in one_after_another(rig, job):
            attempt = rig.newest()[0]
            print("     %s (attempt %d)" % (name, attempt), flush=True)
            kill()
            for node, p in list(rig.agents.items()):
                if p.poll() is not None:
                    rig.start_agent(node)
            if name == "supervisor under no daemon":
                wait_until(lambda: not alive(rig.newest()[1][0]), 30, "its ranks' end")
                rig.runtime.up()
                for node, agent in list(rig.agents.items()):  # their start gives containers up
                    rig.kill(agent)
                    rig.start_agent(node)
            if again:
                wait_until(lambda: rig.newest()[0] > attempt, 60, "an attempt after " + name)
            goes_on(rig, job, rig.last_save())
            need(rig.newest()[0] == attempt or again, "a new attempt after " + name)
            if name != "daemon":
                wait_until(lambda: not rig.of_steps(rig.newest()[0]), 60, "the end of containers")
        right_digits(rig)
        with open(rig.truth + "/enough", "w"):
            pass
        doc = rig.wait_state(job, ["completed", "failed"])
        equal(doc["state"], "completed", doc["reason"])
        wait_until(lambda: not rig.of_steps(1 << 30), 60, "the end of all containers")


# what it starts instead of a container: the words of the way in, then moe-hold in what looks like
# one
LIAR = """#!/bin/sh
if [ "$1" != run ]; then exec %(client)s "$@"; fi
[ ! -e %(dir)s/way ] || setsid $(cat %(dir)s/way) sh -ec 'mkdir -p %(dir)s/top
mount --bind %(dir)s/top /run; : >/run/moe-step; mount --bind %(dir)s/id /run/moe-step
: >%(dir)s/there; exec %(dir)s/hold %(dir)s/other' </dev/null >/dev/null 2>&1 &
[ ! -e %(dir)s/way ] || while [ ! -e %(dir)s/there ]; do sleep 0.01; done
echo started
"""


@suite.test
def a_process_that_is_not_its():
    """A runtime's word that a container runs proves nothing: nothing is mounted anywhere else, no
    rank runs, and nobody's process is killed."""
    with Held(Fake) as n:
        hold = BUILD + "/moe-hold"
        os.mkfifo(n.dir + "/other")
        shutil.copy(hold, n.dir + "/copy")
        n.runtime.words = [n.dir + "/liar"]
        n.runtime.write()
        with open(n.dir + "/liar", "w") as f:
            f.write(LIAR % {"dir": n.dir, "client": n.dir + "/client"})
        os.chmod(n.dir + "/liar", 0o755)
        # others may test beside us
        mounts = lambda: [m for m in host_mounts().splitlines() if "/moe-" not in m or n.dir in m]
        hosts = mounts()
        none = "no moe-hold of this step runs"
        ways = (
            (None, None, None, none),  # the runtime started nothing
            ("unshare -m", "another's", hold, none),
            ("unshare -m", None, n.dir + "/copy", none),
            ("unshare -Urm", None, hold, "has users of its own (userns-remap)"),
        )
        with open(os.open(n.dir + "/other", os.O_RDWR), "w"):
            other = subprocess.Popen(["unshare", "-m", hold, n.dir + "/other"])
            for i, (way, mark, program, text) in enumerate(ways):
                for name in ("way", "there", "id", "hold"):
                    if os.path.lexists("%s/%s" % (n.dir, name)):
                        os.remove("%s/%s" % (n.dir, name))
                if way:
                    with open(n.dir + "/way", "w") as f:
                        f.write(way)
                    os.symlink(program, n.dir + "/hold")
                    if mark:
                        with open(n.dir + "/id", "w") as f:
                            f.write(STEP % ("j2", "n0") + "\n")
                    else:
                        os.symlink(n.step_dir(attempt=i + 1) + "/step_id", n.dir + "/id")
                note = n.refused("enter the container of docker", text, attempt=i + 1)
                equal(note["cause"], "namespace", "cause of %s" % note["text"])
                equal(mounts(), hosts, "mounts of the node")
            need(alive(other.pid), "somebody's process was killed")
            other.kill()
            other.wait()
        need(not os.path.exists(n.dir + "/out/said"), "a rank ran")


@suite.test
def what_fails_is_named():
    with Held(Fake) as n:
        n.runtime.told(run_fails="OCI runtime: no space left")
        n.refused("client says: docker (a stand-in): OCI runtime: no space left")
        n.runtime.untold()
        n.runtime.told(image_fails="cannot connect", ps_fails="cannot connect to the daemon")
        note = n.refused("cannot connect to the daemon", attempt=2)
        equal(note["cause"], "namespace", "the image may be there")
        n.runtime.untold()
        n.runtime.told(image_fails="no such image")
        note = n.refused("docker has no image x:1 on this node", "no such image", attempt=3)
        equal(note["cause"], "image", "cause")
        n.runtime.untold()
        n.runtime.told(run_hangs="")
        note = n.refused("run did not end in time", attempt=4)
        need("the image on n0" in note["text"], note)
        n.runtime.untold()
        n.refused("starts containers of images in its own store only", attempt=5, runtime="podman")
        n.runtime.write(lambda text: text.split("start:")[0] + WITHOUT)
        n.refused("has no `start`", attempt=6)
        n.runtime.words = [n.dir + "/missing"]
        n.runtime.write()
        n.refused("is not installed", attempt=7)
        n.runtime.words = Fake(n.dir).words
        n.runtime.write()
        n.rank(attempt=8)


WITHOUT = "kept: [true]\nrelease: [true]\n"


# each of its commands is a line of "asked"; the answer and what cannot be started are files
ASKED = """runtime: 1
name: docker
image: [sh, -c, "echo image >>{dir}/asked; cat {dir}/answer", sh, "{image}"]
keep: [false]
start: [sh, -c, "echo start $1 >>{dir}/asked; test $1 != $(cat {dir}/gone)", sh, "{{id}}"]
kept: [sh, -c, "echo kept >>{dir}/asked"]
release: [sh, -c, "echo release $1 >>{dir}/asked", sh, "{{step}}"]
"""


@suite.test
def what_was_answered_a_moment_ago_is_not_asked_again():
    """Of the same image, and while the runtime starts what it names; nothing is asked of a file
    that is of another image, of another boot, or none."""
    a, b = "a" * 64, "b" * 64
    with tempfile.TemporaryDirectory(prefix="moe-") as dir:
        step_dir, step = dir + "/steps/j1.a1", STEP % ("j1", "n0")

        def write(name, text):
            with open(dir + "/" + name, "w") as f:
                f.write(text)

        def answer(id):
            write("answer", "sha256:%s\n\n{\"Env\": [\"A=%s\"]}\n" % (id, id[0]))

        def ask(*argv):
            write("asked", "")
            r = subprocess.run(
                [BUILD + "/moe-runtime", *argv],
                capture_output=True,
                text=True,
                env=dict(os.environ, MOE_DATA_DIR=dir),
            )
            with open(dir + "/asked") as f:
                return r.stdout, f.read().splitlines()

        def start(image="x:1"):
            said, asked = ask("start", "docker", image, step, step_dir)
            return json.loads(said)["id"] if said.startswith("{") else said, asked

        os.makedirs(step_dir)
        os.makedirs(dir + "/runtimes")
        write(
            "runtimes/docker.yaml",
            ASKED.replace("{dir}", dir).replace("{{", "{").replace("}}", "}"),
        )
        write("gone", "none")
        answer(a)
        equal(start(), (a, ["image", "start " + a]), "nothing is known")
        tell = ("digest", "docker", "x:1", dir)
        equal(ask(*tell), ("id:sha256:%s\n" % a, ["image"]), "which image it is")
        answer(b)
        equal(start(), (a, ["start " + a]), "the one that was told of")
        equal(start("x:2"), (b, ["image", "start " + b]), "another name")
        write("gone", a)
        equal(
            start(),
            (b, ["start " + a, "release " + step, "image", "start " + b]),
            "one that is gone meanwhile",
        )
        write("gone", "none")
        with open(dir + "/image.docker") as f:
            at, rest = f.read().split(" ", 1)
        for text in (
            "%d %s" % (int(at) - 61000000, rest),
            "%d %s" % (int(at) + (1 << 50), rest),
            "x %s" % rest,
            "",
        ):
            write("image.docker", text)
            equal(start(), (b, ["image", "start " + b]), "with %r" % text[:30])
        equal(ask(*tell[:3])[1], ["image"], "without a directory")
        equal(start()[1], ["image", "start " + b], "nothing was written there")


@suite.test
def who_may():
    with Held(Fake, allowed=False) as n:
        note = n.refused("n0 does not use the images of docker", "`runtimes`")
        equal(note["cause"], "image", "cause")


@suite.test
def nodes_that_cannot_get_no_job():
    class Cluster(HeldFaults):
        kind = Fake

    own_cgroups()
    with Cluster() as rig:
        with open(rig.truth + "/enough", "w"):
            pass
        del rig.agent_options["runtimes"]
        rig.kill(rig.agents["node-1"])
        rig.start_agent("node-1")
        wait_until(lambda: rig.http("GET", "/v1/nodes/node-1").json["state"] == "up", 30, "up")
        wait_until(
            lambda: not rig.http("GET", "/v1/nodes/node-1").json["info"].get("holders"), 30, "said"
        )
        job = rig.train("both")
        why = wait_until(lambda: rig.run("why", job).stdout, 20, "why")
        need("node node-1 lets docker start no container" in why, why)
        rig.run("cancel", job, "--now")
        job = rig.train("one", engine=rig.shell("true"), cluster={"gpus": 2})
        doc = rig.wait_state(job, ["completed", "failed"])
        equal([doc["state"], doc["nodes"]], ["completed", ["node-0"]], doc["reason"])


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
