#!/usr/bin/python3
"""Jobs in images by an agent that is not root (moectl local up): it makes the step's namespaces in
a user namespace of its own account. Real agents and supervisors."""
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import ROOT, Suite, equal, need, wait_until
from node_rig import Node, alive
from test_container import container, host_mounts, image_of, layers, say
from test_exec import STAY, ask, pids, run
from test_namespace import ESCAPES, ranks

suite = Suite()
USER, GROUP = 33, 44444


def give(root):
    for path, dirs, names in os.walk(root):
        for p in [path] + [os.path.join(path, x) for x in names + dirs]:
            os.chown(p, USER, USER, follow_symlinks=False)


class OfUser(Node):
    """Its agent is an ordinary user with one more group."""

    def command(self):
        args, env = super().command()
        ids = ["--reuid", str(USER), "--regid", str(USER), "--groups", str(GROUP)]
        env["MOE_DATA_DIR"] = self.dir + "/config"
        return ["/usr/bin/setpriv"] + ids + args, env

    def start(self):
        if not os.path.exists(self.dir + "/bin"):
            self.own_helpers()
            shutil.copytree(os.path.join(ROOT, "config"), self.dir + "/config")
            give(self.dir)
        super().start()


def own_image(n, **over):
    root = image_of(n, **over)
    os.makedirs(n.dir + "/out", exist_ok=True)
    give(root)
    give(n.dir + "/out")
    return root


@suite.test
def an_image_of_the_users_own():
    """As the user, and as root inside; nothing of it stays."""
    for inside, ids in (("self", [USER, USER]), ("root", [0, 0])):
        with OfUser() as n:
            info = n.moed.hellos[-1]["info"]
            need(info.get("images") and info.get("image_root"), "it says that it runs no images")
            root = own_image(n)
            before = host_mounts()
            said = say(
                n,
                "  open('/out/mine', 'w').close()\n"
                "  os.makedirs('/opt/venv/lib'); open('/opt/venv/lib/x', 'w').write('1')\n"
                "  os.remove('/of_image')\n"
                "  return [os.getuid(), os.getgid(), os.stat('/etc').st_uid, os.getcwd(),\n"
                "    os.statvfs('/dev/shm').f_blocks * os.statvfs('/dev/shm').f_frsize,\n"
                "    open('/opt/prepared').read()]",
                root=root,
                inside=inside,
                workdir="/opt",
                prepare=["/bin/sh", "-c", "id -u > /opt/prepared"],
            )
            equal(said[:2], ids, "who the rank is")
            equal(said[2:], [ids[0], "/opt", 64 << 20, "%d\n" % ids[0]], "what it sees")
            s = os.stat(n.dir + "/out/mine")
            equal((s.st_uid, s.st_gid), (USER, USER), "owner of its file on the node")
            need(os.path.exists(root + "/of_image"), "the image was written")
            equal(host_mounts(), before, "mounts of the node")
            wait_until(lambda: not layers(n), 20, "the layers are removed")


@suite.test
def no_rights_inside():
    with OfUser() as n:
        root = own_image(n)
        n.launch(["sleep", "1000"], workdir="/opt", container=container(root))
        with open("/proc/%d/status" % ranks(n)[0]) as f:
            lines = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        equal([lines["CapEff"], lines["CapPrm"]], ["0" * 16] * 2, "rights of the rank")
        equal(lines["NoNewPrivs"], "1", "no_new_privs")
        equal(lines["Groups"].split(), [str(GROUP)], "its groups on the node")
        got = run(n, ["sh", "-c", "id -u; cat /of_image"])
        equal(got["out"], "%d\nof the image\n" % USER, "a command beside it")


@suite.test
def escaped():
    """The fourth net: no cgroup, no parent, no environment."""
    for inside in ("self", "root"):
        with OfUser(options=["use_cgroup=no"]) as n:
            root = own_image(n)
            n.launch(
                ["python3"] + ESCAPES[1:],
                n=2,
                workdir="/out",
                container=container(root, [(n.dir + "/out", "/out", False)], user=inside),
            )
            wait_until(lambda: len(pids(n, "out/escaped")) == 2, 20, "each rank leaves one")
            ask(n, ["python3"] + STAY[1:], ms=600000)
            wait_until(lambda: len(pids(n, "out/escaped")) == 3, 20, "and the command")
            os.kill(n.stepd_pid(), signal.SIGKILL)
            n.moed.wait_note(1, 1, "gone")
            equal([p for p in pids(n, "out/escaped") if alive(p)], [], "that live")


@suite.test
def ends_with_its_supervisor():
    """By PDEATHSIG alone: no cgroup, and no agent that looks."""
    with OfUser(options=["use_cgroup=no"]) as n:
        n.launch(["sleep", "1000"], n=2, workdir="/opt", container=container(own_image(n)))
        pid, stepd = ranks(n), n.stepd_pid()
        n.stop_agent()
        os.kill(stepd, signal.SIGKILL)
        wait_until(lambda: not [p for p in pid if alive(p)], 20, "the ranks end")
        n.start()
        n.moed.wait_note(1, 1, "gone")


@suite.test
def an_image_of_another_account():
    """Refused, with the way out."""
    with OfUser() as n:
        root = image_of(n)
        for attempt, inside in ((1, "self"), (2, "root")):
            c = container(root, user=inside)
            n.launch(["true"], attempt=attempt, workdir=None, container=c, wait="refused")
            note = n.moed.note_list(1, attempt, "refused")[0]
            equal(note["cause"], "image", "cause of " + note["text"])
            text = "it is another account's, and the agent is not root; unpack it as uid %d" % USER
            need(text in note["text"], "text: %s" % note["text"])
        wait_until(lambda: not layers(n), 20, "the layers are removed")


@suite.test
def a_machine_without_user_namespaces():
    """It says so, and refuses what it is given all the same."""
    with OfUser() as n:
        n.stop_agent()
        with open(n.bin + "/moe-discover.real", "wb") as f, open(
            n.bin + "/moe-discover", "rb"
        ) as g:
            f.write(g.read())
        os.chmod(n.bin + "/moe-discover.real", 0o755)
        os.remove(n.bin + "/moe-discover")
        with open(n.bin + "/moe-discover", "w") as f:
            f.write(
                '#!/bin/sh\n"$0.real" "$@" | ' "sed 's/\"image_root\":true/\"image_root\":false/'\n"
            )
        os.chmod(n.bin + "/moe-discover", 0o755)
        n.start()
        need(not n.moed.hellos[-1]["info"].get("images"), "it says that it runs images")
        n.launch(["true"], workdir=None, container=container(own_image(n)), wait="refused")
        text = n.moed.note_list(1, 1, "refused")[0]["text"]
        need("the agent on n0 is not root, and that machine gives others no user" in text, text)


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
