"""Machines booted by systemd-nspawn: each has its own overlay of one tree, its own PID 1, and a
network of ours. To be used in mount, PID and network namespaces of one's own (the suite is
started in them), so that nothing is left of them when the caller ends, however it ends. What is
not as on iron: one kernel for all, its boot id and clock; limits of memory and CPU are not
enforced."""
import contextlib
import ctypes
import os
import re
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from lib import Failed, wait_until  # noqa: E402

BRIDGE = "br0"
GROUP = os.environ.get("BOOTED_GROUP", "booted")  # cgroups of our machines begin with it
ENVIRONMENT = [
    "env",
    "-i",
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "TERM=dumb",
    "HOME=/root",
    "LANG=C.UTF-8",
    "DEBIAN_FRONTEND=noninteractive",
]
# the network comes up in the boot, as on any server
NETWORK = """[Unit]
Before=network-online.target
DefaultDependencies=no
After=local-fs.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=ip link set host0 up
ExecStart=ip address add %s/24 dev host0
# units with a /proc of their own see the boot id of the machine around
ExecStart=sh -c "sed 's/-//g; s/^/MOE_BOOT_ID=/' /proc/sys/kernel/random/uuid >/run/booted.env"
[Install]
WantedBy=multi-user.target network-online.target
"""
# scp, for machines without ssh: each sees the trees of all
SCP = """#!/bin/sh
set -e
for last; do :; done
host=${last%%:*} path=${last#*:}
[ "$1" = -p ] && shift
while [ $# -gt 1 ]; do cp -p "$1" "/machines/$host/root$path"; shift; done
"""


def run(*words, **more):
    return subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True, **more
    ).stdout


def join(namespace):
    """The network namespace of an open file, by this thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace.fileno(), 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def cgroup_hierarchies():
    """cgroup 2, and systemd's own of version 1 where there is one."""
    with open("/proc/mounts") as f:
        found = [
            words.split()[1]
            for words in f
            if re.match(r"\S+ \S+ cgroup2 |\S+ \S+ cgroup \S*name=systemd", words)
        ]
    return [m for m in found if os.access(m, os.W_OK)]


def removed(group):
    """Processes that were killed leave their cgroup a little later."""
    subprocess.run(
        ["find", group, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"],
        stderr=subprocess.DEVNULL,
    )
    return not os.path.exists(group)


class Network:
    def __init__(self, work):
        run("mount", "-t", "tmpfs", "none", work)
        run("mount", "--make-shared", work)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "link", "set", BRIDGE, "up")


class Machine:
    def __init__(self, work, base, name, address, hosts):
        self.work, self.name, self.address, self.process = work, name, address, None
        self.dir = os.path.join(work, name)
        self.root = os.path.join(self.dir, "root")
        for d in ("up", "work", "root"):
            os.makedirs(os.path.join(self.dir, d))
        run(
            "mount",
            "-t",
            "overlay",
            "booted-" + name,
            "-o",
            "lowerdir=%s,upperdir=%s/up,workdir=%s/work" % (base, self.dir, self.dir),
            self.root,
        )
        self.write("/etc/hostname", name + "\n")
        self.write(
            "/etc/hosts",
            "127.0.0.1 localhost\n" + "".join("%s %s\n" % (a, " ".join(n)) for a, n in hosts),
        )
        self.write("/etc/systemd/system/booted-network.service", NETWORK % address)
        self.write(
            "/etc/systemd/system/moe-agent.service.d/booted.conf",
            "[Service]\nEnvironmentFile=/run/booted.env\n",
        )
        self.write("/usr/local/bin/scp", SCP, 0o755)
        for target in ("multi-user", "network-online"):
            wants = "%s/etc/systemd/system/%s.target.wants" % (self.root, target)
            os.makedirs(wants, exist_ok=True)
            os.symlink("../booted-network.service", wants + "/booted-network.service")

    def write(self, path, text, mode=0o644):
        os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
        with open(self.root + path, "w") as f:
            f.write(text)
        os.chmod(self.root + path, mode)

    def read(self, path):
        with open(self.root + path) as f:
            return f.read()

    def groups(self):
        return ["%s/%s-%s" % (h, GROUP, self.name) for h in cgroup_hierarchies()]

    def boot(self):
        """nspawn ends with 133 when its machine reboots: then it is started again, as a machine's
        firmware would."""
        for g in self.groups():
            wait_until(lambda: removed(g), 20, "nothing of an earlier run is left in %s" % g)
            os.makedirs(g)
        nspawn = [
            "systemd-nspawn",
            "-q",
            "-D",
            self.root,
            "-M",
            self.name,
            "--register=no",
            "--keep-unit",
            "--network-bridge=" + BRIDGE,
            "--resolv-conf=off",
            "--timezone=off",
            "--bind=%s:/machines" % self.work,
            "--console=pipe",
            "-b",
        ]
        script = "".join(
            "echo 0 >%s/cgroup.procs; " % g for g in self.groups()
        ) + "while :; do %s; [ $? = 133 ] || break; done" % " ".join(map(shlex.quote, nspawn))
        with open(os.path.join(self.dir, "console"), "a") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
            )
        self.wait_up()

    def wait_up(self):
        wait_until(
            lambda: self.sh("systemctl is-system-running", check=False).stdout.strip()
            in ("running", "degraded"),
            60,
            "%s is up" % self.name,
        )

    def init(self):
        """PID 1 of the machine, as a pid out here; None while it is off."""
        at = [self.process.pid]
        for _ in range(4):
            below = []
            for pid in at:
                try:
                    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
                        below += [int(p) for p in f.read().split()]
                except OSError:
                    pass
            for pid in below:
                try:
                    with open("/proc/%d/status" % pid) as f:
                        if re.search(r"^NSpid:\t.*\t1$", f.read(), re.M) and os.readlink(
                            "/proc/%d/ns/pid" % pid
                        ) != os.readlink("/proc/self/ns/pid"):
                            return pid
                except OSError:
                    pass
            at = below
        return None

    @contextlib.contextmanager
    def network(self):
        """What is bound in here is bound in the machine's network."""
        with open("/proc/self/ns/net") as own, open("/proc/%d/ns/net" % self.init()) as its:
            join(its)
            try:
                yield
            finally:
                join(own)

    def enter(self, *words):
        pid = self.init()
        if not pid:
            raise Failed("%s is off" % self.name)
        return [
            "nsenter",
            "-t",
            str(pid),
            "-m",
            "-u",
            "-i",
            "-n",
            "-p",
            "-r",
            "-w",
            "--",
            *ENVIRONMENT,
            *words,
        ]

    def sh(self, script, user=None, check=True, timeout=60):
        """A script in the machine, as a login of root or of a user; the result has returncode and
        stdout, which holds what went to stderr too."""
        words = (
            ["bash", "-euo", "pipefail", "-c", script]
            if not user
            else ["runuser", "-l", user, "-c", script]
        )
        r = subprocess.run(
            self.enter(*words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
        )
        if check and r.returncode != 0:
            raise Failed(
                "on %s: %s: exit status %d\n%s"
                % (self.name, script, r.returncode, r.stdout[-3000:])
            )
        return r

    def out(self, script, **more):
        return self.sh(script, **more).stdout.strip()

    def reboot(self):
        before = self.init()
        self.sh("systemctl reboot", check=False)
        wait_until(lambda: self.init() not in (None, before), 60, "%s reboots" % self.name)
        self.wait_up()

    def off(self):
        """As when the power goes: nothing is said to anybody. Its cgroups are removed."""
        if self.process:
            pid = self.init()
            self.process.kill()
            if pid:
                os.kill(pid, 9)
            self.process.wait()
        for group in self.groups():
            wait_until(lambda: removed(group), 20, "%s is empty" % group)
