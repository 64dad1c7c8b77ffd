#!/usr/bin/python3
"""Ranks that are root in their image and the job's user on the node (engine.container.user: root).
Real agents and supervisors."""
import ctypes
import json
import os
import pwd
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, Skipped, Suite, equal, need, wait_until
from node_rig import Node, alive
from test_container import container, host_mounts, image_of, layers, say
from test_devices import Shared
from test_exec import STAY, ask, pids, run
from test_namespace import ESCAPES, ranks

suite = Suite()
WHO = pwd.getpwnam("nobody")
GROUP = 44444
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000


def accounts():
    """In a mount namespace of this suite's, nobody is in one more group."""
    if os.getuid() != 0:
        return
    with tempfile.NamedTemporaryFile("w") as f:
        with open("/etc/group") as of_node:
            f.write(of_node.read() + "moe-gpu:x:%d:nobody\n" % GROUP)
        f.flush()
        os.chmod(f.name, 0o644)
        for r in (
            LIBC.unshare(CLONE_NEWNS),
            LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None),
            LIBC.mount(f.name.encode(), b"/etc/group", None, MS_BIND, None),
        ):
            need(r == 0, "errno %d" % ctypes.get_errno())


def owned_by_user(root):
    for path, dirs, names in os.walk(root):
        for p in [path] + [os.path.join(path, x) for x in names + dirs]:
            os.lchown(p, WHO.pw_uid, WHO.pw_gid)


def bundle_of(n, name="bundle", config="{}"):
    """An image that root has unpacked for everybody."""
    root = image_of(n, name=name + "/rootfs")
    with open(os.path.join(n.dir, name, "config.json"), "w") as f:
        f.write(config)
    return os.path.join(n.dir, name)


def as_root(n, code, **over):
    root = over.pop("root", None) or bundle_of(n)
    return say(n, code, user="nobody", inside="root", root=root, **over)


def launch(node, argv, mounts=(), root=None, wait="running", attempt=1, **over):
    os.makedirs(node.dir + "/out", exist_ok=True)
    os.chmod(node.dir + "/out", 0o777)
    node.launch(
        argv,
        attempt=attempt,
        user="nobody",
        workdir="/out",
        wait=wait,
        container=container(
            root or bundle_of(node),
            [(node.dir + "/out", "/out", False)] + list(mounts),
            user="root",
        ),
        **over,
    )


def status(pid, *keys):
    with open("/proc/%d/status" % pid) as f:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    return [lines[k] for k in keys]


@suite.test
def root_inside_and_the_user_outside():
    """Of an image that root has unpacked for everybody, and of one that is the user's own."""
    for own in (False, True):
        with Node() as n:
            root = bundle_of(n)
            if own:
                owned_by_user(root)
            before = host_mounts()
            said = as_root(
                n,
                "  import getpass, pwd\n"
                "  open('/out/mine', 'w').close()\n"
                "  os.makedirs('/opt/venv/lib'); open('/opt/venv/lib/x', 'w').write('1')\n"
                "  open('/of_image', 'a').write('more')\n"
                "  os.remove('/etc/environment')\n"
                "  return [os.getuid(), os.getgid(), pwd.getpwuid(0)[0], getpass.getuser(),\n"
                "    os.stat('/of_image').st_uid, os.stat('/opt').st_gid,\n"
                "    os.stat('/out/mine').st_uid, open('/of_image').read()]",
                root=root,
            )
            equal(
                said,
                [0, 0, "root", "root", 0, 0, 0, "of the image\nmore"],
                "who the rank is, and whose files are",
            )
            s = os.stat(n.dir + "/out/mine")
            equal((s.st_uid, s.st_gid), (WHO.pw_uid, WHO.pw_gid), "owner of its file on the node")
            need(not os.path.exists(root + "/rootfs/opt/venv"), "the image was written")
            equal(host_mounts(), before, "mounts of the node")
            note = n.moed.note_list(1, 1, "started")[0]
            equal(note["bind_verified"], True, "binding read back")
            wait_until(lambda: not layers(n), 20, "the layers are removed")


@suite.test
def nothing_is_gained_outside():
    """Every id of the process is the user's, also behind a set-user-id program of root's; it may
    not mount, nor change its root, and so cannot put its marker away."""
    ids = os.path.join(BUILD, "tests/fake/ids")
    with open(ids, "rb") as f:
        if b"/ld-linux" in f.read():
            raise Skipped("a sanitized build has no static program")
    with Node() as n:
        root = bundle_of(n)
        shutil.copy(ids, root + "/rootfs/opt/ids")
        os.chmod(root + "/rootfs/opt/ids", 0o4755)
        os.makedirs(root + "/rootfs/mnt")
        code = (
            "import ctypes, json, os, subprocess, sys, time\n"
            "c = ctypes.CDLL(None, use_errno=True)\n"
            "def tried(f, *a):\n"
            "  try:\n    r = f(*a)\n    return ctypes.get_errno() if r == -1 else 0\n"
            "  except OSError as e:\n    return e.errno\n"
            "said = [subprocess.check_output(['/opt/ids']).decode(),\n"
            "  [tried(c.mount, b'none', b'/mnt', b'tmpfs', 0, None),\n"
            "  tried(c.umount2, b'/run/moe-step', 2), tried(os.chroot, '/opt'),\n"
            "  tried(os.rename, '/run', '/gone'), tried(os.remove, '/run/moe-step'),\n"
            "  tried(open, '/run/moe-step', 'w'), tried(os.mknod, '/opt/null', 0o20666, 259),\n"
            "  tried(os.setuid, 1), tried(os.kill, 1, 0), tried(os.setns, 0)\n"
            "    if hasattr(os, 'setns') else 9]]\n"
            "json.dump(said, open('said.new', 'w'))\n"
            "os.rename('said.new', 'said')\n"
            "time.sleep(1000)\n"
        )
        launch(n, ["python3", "-c", code], root=root)
        wait_until(lambda: os.path.exists(n.dir + "/out/said"), 20, "the rank has tried")
        pid = ranks(n)[0]
        with open(n.dir + "/out/said") as f:
            said = json.load(f)
        equal(said[0], "0 0\n", "ids inside")
        need(0 not in said[1], "errno of each: %s" % said[1])
        ids = "\t".join([str(WHO.pw_uid)] * 4)
        equal(status(pid, "Uid", "Gid", "NoNewPrivs"), [ids, ids, "1"], "its ids on the node")
        caps = status(pid, "CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")
        equal(caps, ["00000000800000db"] * 3 + ["0" * 16] * 2, "its rights inside")
        with open("/proc/%d/root/run/moe-step" % pid) as f:
            need(f.read().startswith("j1.a1.n0."), "its marker")
        stat = os.stat(n.dir + "/state/layers/j1.a1")
        equal((stat.st_mode & 0o777, stat.st_uid), (0o700, WHO.pw_uid), "the layer's directory")
        equal(os.stat(n.dir + "/state/layers").st_mode & 0o777, 0o700, "and the one above")


@suite.test
def devices_by_group():
    """The other groups of the account open devices; who lacks the group does not."""
    with Shared() as n:
        kfd = n.top + "/dev/kfd"
        os.chown(kfd, 0, GROUP)
        os.chmod(kfd, 0o660)
        tries = "  try:\n    os.close(os.open('/dev/kfd', os.O_RDWR))\n"
        tries += "  except OSError as e:\n    return e.strerror\n  return os.getgroups()"
        equal(sorted(as_root(n, tries)), [0, 65534], "with the group, which has no name inside")
        os.chown(kfd, 0, GROUP + 1)
        equal(as_root(n, tries, root=n.dir + "/bundle"), "Permission denied", "without")


@suite.test
def everything_of_the_step_is_there():
    """engine.prepare, what it left in the layer, moe-config and moectl exec."""
    with Node() as n:
        root = bundle_of(n)
        said = as_root(
            n,
            "  return [open('/opt/prepared').read(), os.stat('/opt/prepared').st_uid]",
            root=root,
            prepare=["/bin/sh", "-c", "id -u > /opt/prepared"],
        )
        equal(said, ["0\n", 0], "what engine.prepare has left")
        with open(root + "/rootfs/opt/exp.yaml", "w") as f:
            f.write("modules: {x: [\n")
        os.chmod(root + "/rootfs/opt/exp.yaml", 0o600)
        launch(
            n,
            ["python3", "primus/cli/main.py", "train", "pretrain", "--config", "/opt/exp.yaml"],
            root=root,
            attempt=2,
            config="primus",
            wait="refused",
        )
        note = n.moed.note_list(1, 2, "refused")[0]
        need("/opt/exp.yaml:" in note["text"], "it names no line of the file: " + note["text"])
        launch(n, ["sleep", "1000"], root=root, attempt=3)
        got = run(
            n, ["sh", "-c", "id -u; cat /of_image; echo x > /opt/by_exec; ls -n /opt"], attempt=3
        )
        need(got["out"].startswith("0\nof the image\n") and "by_exec" in got["out"], got)
        n.moed.order("kill", 1, 3)
        n.moed.wait_note(1, 3, "gone")


@suite.test
def ends_with_its_supervisor():
    """By PDEATHSIG alone: no cgroup, and no agent that looks."""
    with Node(options=["use_cgroup=no"]) as n:
        launch(n, ["sleep", "1000"], n=2)
        pid, stepd = ranks(n), n.stepd_pid()
        n.stop_agent()
        os.kill(stepd, signal.SIGKILL)
        wait_until(lambda: not [p for p in pid if alive(p)], 20, "the ranks end")
        n.start()
        n.moed.wait_note(1, 1, "gone")


@suite.test
def escaped():
    """No cgroup, no parent, no environment: found by the namespace, of a rank and of a command."""
    with Node(options=["use_cgroup=no"]) as n:
        launch(n, ["python3"] + ESCAPES[1:], n=2)
        wait_until(lambda: len(pids(n, "out/escaped")) == 2, 20, "each rank leaves one")
        ask(n, ["python3"] + STAY[1:], ms=600000)
        wait_until(lambda: len(pids(n, "out/escaped")) == 3, 20, "and the command")
        os.kill(n.stepd_pid(), signal.SIGKILL)
        n.moed.wait_note(1, 1, "gone")
        equal([p for p in pids(n, "out/escaped") if alive(p)], [], "of those that escaped live")


@suite.test
def heartbeats_are_read():
    """The engine's files are in the layer and only root's: the reader is root there, too."""
    with Node() as n:
        code = (
            "import json, os, time\n"
            "os.makedirs('/opt/beats', 0o700)\n"
            "with open('/opt/beats/rank0.jsonl', 'w') as f:\n"
            "  f.write(json.dumps({'step': 7}) + '\\n')\n"
            "os.chmod('/opt/beats/rank0.jsonl', 0)\n"
            "time.sleep(1000)\n"
        )
        beats = {"dir": "/opt/beats", "file": "rank{rank}[.]jsonl", "iteration": "step"}
        launch(n, ["python3", "-c", code], heartbeat=beats)
        n.moed.wait(
            lambda: n.moed.progress.get((1, 1), {}).get(0, {}).get("iteration") == 7,
            20,
            "the iteration of the file",
        )


@suite.test
def images_that_are_not_shared():
    """What would become the user's is refused, with the way out, and nothing is started."""
    with Node() as n:
        cases = []

        def case(text, root):
            cases.append((text, root))

        plain = image_of(n, "plain")
        case("uid 0 shares only bundles (config.json beside rootfs) that nobody else", plain)
        case("uid 0 shares only bundles", "/etc")
        theirs = bundle_of(n, "theirs")
        os.chown(theirs + "/rootfs", 4321, 4321)
        case("it belongs to uid 4321; unpack it as the user (uid %d)" % WHO.pw_uid, theirs)
        for i, path in enumerate(("", "/config.json", "/rootfs")):
            mine = bundle_of(n, "mine%d" % i)
            os.chmod(mine + path, 0o777)
            case("uid 0 shares only bundles", mine)
        users = bundle_of(n, "users")
        os.chown(users, WHO.pw_uid, WHO.pw_gid)
        case("uid 0 shares only bundles", users)
        for attempt, (text, root) in enumerate(cases):
            launch(n, ["true"], root=root, attempt=attempt + 1, wait="refused")
            note = n.moed.note_list(1, attempt + 1, "refused")[0]
            equal(note["cause"], "image", "cause of " + note["text"])
            need(text in note["text"], "text: %s" % note["text"])
        wait_until(lambda: not layers(n), 20, "the layers are removed")


@suite.test
def other_ways_to_write():
    with Node() as n:
        root = bundle_of(n)
        attempt = (
            "  try:\n    open('/opt/x', 'w')\n  except OSError as e:\n    return e.strerror\n"
            "  open('/tmp/x', 'w')\n  return None"
        )
        equal(as_root(n, attempt, root=root, writable="tmpfs"), None, "in memory")
        equal(as_root(n, attempt, root=root, writable="no"), "Read-only file system", "nowhere")


if __name__ == "__main__":
    accounts()
    sys.exit(1 if suite.main() else 0)
