#!/usr/bin/python3
"""Kills at seeded instants around a job in an image, whose ranks leave processes with an empty
environment in sessions of their own: a rank, a supervisor, an agent, moed, the maker of the
namespace at one of its system calls, a command beside a rank; alone, or two soon after one
another. After each: the job goes on from its checkpoint with the same digits, no process of an
attempt lived when a newer one's rank 0 began, the node has no mount and no directory more.
node-0 has control groups, node-1 has none. The instants come from a seed that is printed;
FAULTS_SEED and FAULTS_KILLS choose others."""
import ctypes
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, PATIENCE, Failed, Skipped, Suite, equal, need, wait_until
from node_rig import processes
from rig import Rig, alive
from test_container import host_mounts, image_of

suite = Suite()
KILLS = int(os.environ.get("FAULTS_KILLS", "100"))
SEED = int(os.environ.get("FAULTS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
SAVE_EVERY = 5
# One state per rank, of which each iteration makes the next: what is resumed from another
# checkpoint, or from none, has other digits. Every process of an attempt shares a lock on its
# file ATTEMPT.alive, also what leaves the rank.
RANK = """
import fcntl, hashlib, os, signal, socket, sys, time
rank, attempt = int(os.environ["RANK"]), int(os.environ["MOE_ATTEMPT"])
truth, saved = os.environ["TRUTH"], os.environ["MOE_CHECKPOINT_DIR"]


def tell(name, line):
    with open("%s/%s" % (truth, name), "a") as f:
        f.write(line + "\\n")


def held(other):
    with open("%s/%d.alive" % (truth, other), "w") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def starts():
    with open(truth + "/starts") as f:
        return [int(line.split()[0]) for line in f]


mine = os.open("%s/%d.alive" % (truth, attempt), os.O_RDWR | os.O_CREAT)
fcntl.flock(mine, fcntl.LOCK_SH)
tell("starts", "%d %d %d" % (attempt, rank, os.getpid()))
if max(starts()) > attempt:
    tell("overlaps", "rank %d of attempt %d began behind a newer one" % (rank, attempt))
if rank == 0:
    for other in sorted({a for a in starts() if a < attempt}):
        if held(other):
            tell("overlaps", "attempt %d began while %d lived" % (attempt, other))
os.set_inheritable(mine, True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", "1003"], {})
    os._exit(0)
os.wait()
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


def say(*words):
    try:
        notify.sendto("\\n".join(words).encode(), os.environ["MOE_NOTIFY_SOCKET"])
    except OSError:
        pass


with open("/opt/written-%d" % rank, "w") as f:
    f.write("x" * 5000)
say("READY=1", "PHASE=train")
i, state = int(os.environ.get("MOE_RESUME_ITERATION", "-1")), "begin-%d" % rank
if i > 0:
    with open("%s/iter_%07d/%d" % (saved, i, rank)) as f:
        state = f.read()
i = max(i, 0)
while not os.path.exists(truth + "/enough"):
    i += 1
    state = hashlib.sha256(("%s %d" % (state, i)).encode()).hexdigest()
    time.sleep(0.01)
    say("ITERATION=%d" % i, "LOSS=1.0")
    if i % %(every)d:
        continue
    # each rank its own part, rank 0 the marker when all parts are there
    path = "%s/iter_%07d" % (saved, i)
    os.makedirs(path, exist_ok=True)
    part = "%s/%d" % (path, rank)
    with open(part + ".new", "w") as f:
        f.write(state)
    os.rename(part + ".new", part)
    while rank == 0 and not all(os.path.exists("%s/%d" % (path, r)) for r in range(4)):
        if os.path.exists(truth + "/enough"):
            sys.exit()  # another one has ended before this save
        time.sleep(0.002)
    if rank == 0:
        with open(path + "/COMPLETE", "w") as f:
            f.write("%d\\n" % i)
        say("CHECKPOINT=" + path, "ITERATION=%d" % i)
""".replace(
    "%(every)d", str(SAVE_EVERY)
)
# the maker dies at a system call that the test has chosen, once
MAKER = """#!/bin/sh
if mv %(dir)s/maker.at %(dir)s/maker.taken 2>/dev/null; then
	read -r call n <%(dir)s/maker.taken
	exec strace -D -qq -o /dev/null -e "trace=$call" -e "inject=$call:signal=SIGKILL:when=$n" \\
		%(real)s/moe-namespace "$@"
fi
exec %(real)s/moe-namespace "$@"
"""
# (system call, how often it is made at least)
MAKER_CALLS = (
    ("unshare", 1),
    ("mount", 8),
    ("open_tree", 2),
    ("move_mount", 4),
    ("pivot_root", 1),
    ("openat", 40),
    ("write", 1),
)
BESIDE = "exec 9<$TRUTH/$MOE_ATTEMPT.alive; flock -s 9; touch $TRUTH/beside; sleep 1004"
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18


def own_cgroups():
    """cgroup2 where the machine has mounted none: in a mount namespace of this process."""
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if (
        libc.unshare(CLONE_NEWNS) < 0
        or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) < 0
        or subprocess.call(["mount", "-t", "cgroup2", "none", "/sys/fs/cgroup"]) != 0
    ):
        raise Skipped("this machine mounts no cgroup2")


class Faults(Rig):
    """A node with control groups and one without; both start their programs from a directory of
    the test's."""

    def __init__(self, **over):
        if os.getuid() != 0:
            raise Skipped("only root gives a job an image")
        super().__init__(nodes=2, gpus_per_node=2, **over)
        self.truth, self.bin = self.dir + "/truth", self.dir + "/bin"
        self.saved = self.dir + "/ckpt"
        for d in (self.truth, self.bin, self.saved):
            os.makedirs(d)
        for name in os.listdir(BUILD):
            if name.startswith("moe-"):
                shutil.copy(os.path.join(BUILD, name), self.bin)
        with open(self.bin + "/moe-namespace", "w") as f:
            f.write(MAKER % {"dir": self.dir, "real": os.path.abspath(BUILD)})
        self.make_image()

    def make_image(self):
        self.image = image_of(self)
        self.container = {"image": "dir:" + self.image}
        with open(self.image + "/opt/rank.py", "w") as f:
            f.write(RANK)

    def start_agent(self, node, boot_id=None):
        dirs = {k: os.path.join(self.dir, k, node) for k in ("state", "run")}
        for d in dirs.values():
            os.makedirs(d, exist_ok=True)
        self.agents[node] = self.spawn(
            self.bin + "/moe-agent",
            node,
            dict(
                self.agent_options,
                node=node,
                state_dir=dirs["state"],
                runtime_dir=dirs["run"],
                use_cgroup="yes" if node == "node-0" else "no",
            ),
            **self.agent_env,
        )

    def train(self, name="faults", **top):
        recipe = {
            "recipe": 1,
            "name": name,
            "engine": {
                "kind": "command",
                "argv": ["/usr/bin/python3", "-I", "-S", "/opt/rank.py"],
                "container": dict(self.container, mounts=["/usr:ro", self.truth]),
            },
            "cluster": {"gpus": 4},
            "checkpoint": {"dir": self.saved, "every": SAVE_EVERY},
            "env": {"TRUTH": self.truth},
            "recovery": {"max_cycles_without_progress": 100, "backoff": 0},
            "stop": {"grace": "2s"},
        }
        return self.submit(json.dumps(dict(recipe, **top)))

    def shell(self, text):
        """An engine that is a line of shell in the image."""
        return {
            "kind": "command",
            "argv": ["/bin/sh", "-c", text],
            "container": dict(self.container, mounts=["/usr:ro"]),
        }

    def lines(self, name):
        try:
            with open(self.truth + "/" + name) as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return []

    def newest(self):
        """(attempt, {rank: pid}) of the newest attempt that has a rank."""
        starts = [[int(w) for w in line.split()] for line in self.lines("starts")]
        attempt = max([s[0] for s in starts] or [0])
        return attempt, {s[1]: s[2] for s in starts if s[0] == attempt}

    def last_save(self):
        done = [
            int(d[5:])
            for d in os.listdir(self.saved)
            if d.startswith("iter_") and os.path.exists("%s/%s/COMPLETE" % (self.saved, d))
        ]
        return max(done or [0])

    def left(self, older_than=1 << 30):
        """Directories of steps, other than of the newest attempts."""
        found = []
        for i in range(self.nodes):
            for d in ("state/node-%d/layers" % i, "run/node-%d/steps" % i):
                names = os.listdir(self.dir + "/" + d) if os.path.isdir(self.dir + "/" + d) else []
                for name in names:
                    a = name.rpartition(".a")[2]
                    if not a.isdigit() or int(a) < older_than:
                        found.append(d + "/" + name)
        return found


def parent(pid):
    with open("/proc/%d/stat" % pid) as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


def end(pid):
    """Of a process that may have ended meanwhile; init is nobody's."""
    try:
        if pid and pid > 1:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def of(pid):
    """Where its descriptors lead: whose it is, though it has no environment."""
    found = []
    try:
        for fd in os.listdir("/proc/%d/fd" % pid):
            found.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
    except OSError:
        pass
    return " ".join(found)


def held_by(rig, word):
    """Processes of a command, by the lock of an attempt that they share."""
    return [p for p, c in processes() if c.startswith(word) and rig.truth in of(p)]


class Killer:
    """One of each kind may be killed at any time; how says what was done."""

    def __init__(self, rig, job, rng):
        self.rig, self.job, self.rng = rig, job, rng
        self.kills, self.beside, self.found = {}, [], 0

    def rank(self):
        end(self.rng.choice(sorted(self.rig.newest()[1].values())))

    def stepd(self):
        rank = self.rng.choice(sorted(self.rig.newest()[1].values()))
        end(self.supervisor(rank))

    def supervisor(self, rank):
        """Of a rank that may have ended meanwhile: of any."""
        try:
            return parent(rank)
        except OSError:
            mark = self.rig.dir + "/run/"
            found = [p for p, c in processes() if "moe-stepd" in c and mark in c]
            return self.rng.choice(sorted(found) or [None])

    def agent(self):
        name = "node-%d" % self.rng.randrange(2)
        self.rig.kill(self.rig.agents[name])

    def moed(self):
        self.rig.kill(self.rig.moed)

    def maker(self):
        """A rank's death makes the next attempt, of which one maker dies."""
        call, n = self.rng.choice(MAKER_CALLS)
        with open(self.rig.dir + "/maker.new", "w") as f:
            f.write("%s %d\n" % (call, self.rng.randint(1, n)))
        os.rename(self.rig.dir + "/maker.new", self.rig.dir + "/maker.at")
        self.rank()

    def command(self):
        """The command beside a rank, or the process that runs it."""
        beside = self.rig.truth + "/beside"
        if os.path.exists(beside):
            os.remove(beside)
        words = ["exec", self.job, str(self.rng.randrange(4)), "--", "/bin/sh", "-c", BESIDE]
        p = self.rig.popen(*words)
        self.beside.append(p)
        wait_until(lambda: os.path.exists(beside) or p.poll() is not None, 20, "it runs")
        found = held_by(self.rig, "/bin/sh -c exec 9<")
        self.found += len(found)
        for pid in found[:1]:
            try:
                end(self.rng.choice([pid, parent(pid)]))
            except OSError:
                pass  # it has ended

    def one(self):
        kind = self.rng.choice(["rank", "stepd", "stepd", "agent", "moed", "maker", "command"])
        getattr(self, kind)()
        self.kills[kind] = self.kills.get(kind, 0) + 1
        return kind


def bring_back(rig):
    if rig.moed.poll() is not None:
        rig.start_moed()
    for node, p in list(rig.agents.items()):
        if p.poll() is not None:
            rig.start_agent(node)


def goes_on(rig, job, before):
    """A save that is newer than all before, of an attempt with four ranks; nothing of older
    attempts is left."""

    def there():
        seen = rig.job(job)
        need(seen["state"] not in ("failed", "completed", "cancelled"), seen["reason"])
        return rig.last_save() > before and len(rig.newest()[1]) == 4

    wait_until(there, 60, "a save after %d" % before)
    equal(rig.lines("overlaps"), [], "overlaps of attempts")
    attempt = rig.newest()[0]
    wait_until(lambda: not rig.left(attempt), 30, "the end of what older attempts had")


def right_digits(rig):
    """All saves, by the rule of the rank's text."""
    states = ["begin-%d" % r for r in range(4)]
    for i in range(1, rig.last_save() + 1):
        states = [hashlib.sha256(("%s %d" % (s, i)).encode()).hexdigest() for s in states]
        path = "%s/iter_%07d" % (rig.saved, i)
        if os.path.exists(path + "/COMPLETE"):
            for r in range(4):
                with open("%s/%d" % (path, r)) as f:
                    equal(f.read(), states[r], "state of rank %d at %d" % (r, i))


def all_gone(rig, mounts):
    wait_until(lambda: not rig.left(), 30, "the end of all directories")
    equal(host_mounts(), mounts, "mounts of the node")
    equal(held_by(rig, ""), [], "processes that are left")


@suite.test
def kills_at_random():
    rng = random.Random(SEED)
    print("     FAULTS_SEED=%d FAULTS_KILLS=%d" % (SEED, KILLS), flush=True)
    own_cgroups()
    begin = time.monotonic()
    with Faults() as rig:
        mounts = host_mounts()
        job = rig.train()
        wait_until(lambda: rig.last_save() > 0, 60, "the first save")
        k, done, how = Killer(rig, job, rng), 0, []
        while done < KILLS:
            before = rig.last_save()
            time.sleep(rng.random() * 0.05)
            how = [k.one()]
            if rng.random() < 0.3:
                time.sleep(rng.random() * 0.08)
                bring_back(rig)
                how.append(k.one())
            done += len(how)
            bring_back(rig)
            try:
                goes_on(rig, job, before)
            except Failed as e:
                raise Failed("after %s, %d kills: %s" % ("+".join(how), done, e))
        equal(host_mounts(), mounts, "mounts of the node")
        right_digits(rig)
        with open(rig.truth + "/enough", "w"):
            pass
        doc = rig.wait_state(job, ["completed", "failed"])
        equal(doc["state"], "completed", doc["reason"])
        for p in k.beside:
            p.wait(PATIENCE * 20)
        all_gone(rig, mounts)
        need(k.found or not k.beside, "no command beside a rank was seen")
        print(
            "     %d kills (%s), %d attempts, %d iterations, %.0f s"
            % (done, k.kills, doc["attempt"], rig.last_save(), time.monotonic() - begin),
            flush=True,
        )


def each_kind_of_node(fn):
    """Once with the node that has control groups, once with the other."""

    def run():
        own_cgroups()
        for node in ("node-0", "node-1"):
            with Faults() as rig:
                fn(rig, node)

    run.__name__ = fn.__name__
    return suite.test(run)


@each_kind_of_node
def stopped_supervisor(rig, node):
    """It answers nobody and holds its lock: nothing is killed and nothing begins beside it, also
    with a new agent and when a rank of it has died; killed while it stands, nothing is left."""
    mounts = host_mounts()
    job = rig.train()
    wait_until(lambda: rig.last_save() > 0, 60, "the first save")
    ranks = {r["rank"]: r for r in rig.json("ranks", job)["items"]}
    mine = [r["pid"] for r in ranks.values() if r["node"] == node]
    stepd = parent(mine[0])
    os.kill(stepd, signal.SIGSTOP)
    rig.kill(rig.agents[node])
    rig.start_agent(node)
    end(mine[0])
    wait_until(lambda: not alive(mine[0]), 20, "the rank's end")
    rig.quiet(1, lambda: rig.newest()[0] == 1 and alive(mine[1]), "the first attempt")
    before = rig.last_save()
    os.kill(stepd, signal.SIGKILL)
    goes_on(rig, job, before)
    equal(rig.newest()[0], 2, "attempt")
    rig.run("cancel", job, "--now")
    rig.wait_state(job, "cancelled")
    all_gone(rig, mounts)


@suite.test
def full_disk_of_the_layers():
    """A rank that fills it is told so, and the next launch says what it could not make; when there
    is room again the node takes work, and nothing is left."""
    own_cgroups()
    with Faults() as rig:
        layers = rig.dir + "/state/node-0/layers"
        os.makedirs(layers)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m,nr_inodes=100", "none", layers], check=True
        )
        mounts = host_mounts()
        fill = "dd if=/dev/zero of=/opt/big bs=64k; echo ended with $?; test $? = 0"
        job = rig.train("fills", engine=rig.shell(fill), cluster={"gpus": 2})
        doc = rig.wait_state(job, ["completed", "failed"])
        node = doc["nodes"][0]
        said = rig.run("logs", job, "--rank", "0").stdout
        need(node != "node-0" or "No space left on device" in said, said)
        wait_until(lambda: not rig.left(), 30, "what it wrote is removed")
        for n in range(200):  # no room for one more directory
            try:
                os.mkdir("%s/gone-not.%d" % (layers, n))
            except OSError:
                break
        job = rig.train("refused", engine=rig.shell("true"), cluster={"gpus": 4})
        doc = rig.wait_state(job, ["completed", "failed"])
        said = rig.run("why", job).stdout
        need("No space left on device" in said and "node-0" in said, said)
        equal(rig.lines("starts"), [], "ranks that began")
        for name in os.listdir(layers):
            if name.startswith("gone-not."):
                os.rmdir(layers + "/" + name)
        job = rig.train("after", engine=rig.shell("true"), cluster={"gpus": 4})
        equal(rig.wait_state(job, ["completed", "failed"])["state"], "completed", "after it")
        all_gone(rig, mounts)
        subprocess.run(["umount", layers], check=True)


@suite.test
def image_removed_while_it_runs():
    """Ranks whose image was replaced go on; the next attempt of one that is gone says so, and what
    was saved stays."""
    own_cgroups()
    with Faults() as rig:
        mounts = host_mounts()
        job = rig.train()
        wait_until(lambda: rig.last_save() > 0, 60, "the first save")
        os.rename(rig.image, rig.image + ".away")
        shutil.copytree(rig.image + ".away", rig.image, symlinks=True)
        shutil.rmtree(rig.image + ".away")
        goes_on(rig, job, rig.last_save())
        equal(rig.newest()[0], 1, "attempt of ranks whose image was replaced")
        shutil.rmtree(rig.image)
        end(rig.newest()[1][0])
        doc = rig.wait_state(job, ["failed"])
        need(rig.image in rig.run("why", job).stdout, rig.run("why", job).stdout)
        need("image" in doc["reason"], doc["reason"])
        right_digits(rig)
        all_gone(rig, mounts)


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
