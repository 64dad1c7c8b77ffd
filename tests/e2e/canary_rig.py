"""The program of gpu.canary with a torch that is none (tests/fake/torch): what it says, the check
that runs it so, and nodes with that check."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
import machine
from lib import ROOT, wait_until
from rig import Rig

SCRIPT = os.path.join(ROOT, "config/health/canary.py")
FAKE = os.path.join(ROOT, "tests/fake/torch")


def environment(said, dir):
    """Variables with which `python3 SCRIPT` finds GPUs that are as said."""
    path = os.path.join(dir, "torch.json")
    with open(path + ".new", "w") as f:
        json.dump(said, f)
    os.rename(path + ".new", path)
    return {"PYTHONPATH": FAKE, "FAKE_TORCH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def canary(names, env):
    """Its lines, as [address, state, text]."""
    run = subprocess.run(
        [sys.executable, SCRIPT] + list(names),
        env=dict(os.environ, **env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if run.returncode:
        raise AssertionError("canary.py: %d: %s" % (run.returncode, run.stderr))
    return [line.split(" ", 2) for line in run.stdout.splitlines()]


def check(env):
    """The shipped checks as a site's, with these variables."""
    words = ", ".join("'%s=%s'" % item for item in env.items())
    return "checks:\n" + "".join(
        "  - {id: gpu.%s, what: the GPU computes wrong, next: replace it, source: x,"
        " area: gpu, needs: gpu, when: [doubt], argv: [env, %s, %s, '{data:health/%s.py}'],"
        " hardware: true, action: cordon, deadline: 50s}\n" % (name, words, sys.executable, name)
        for name in ("canary", "collective")
    )


class Canaries(Rig):
    """Nodes that are made machines of eight GPUs, each with a torch of its own.
    torch: whether there is one."""

    LOOKS = ("probe_device", "probe_host", "probe_klog", "probe_sensors")

    def __init__(self, nodes=2, torch=True):
        self.top, self.torch = tempfile.mkdtemp(prefix="moe-root-"), torch
        super().__init__(nodes=nodes, gpus_per_node=0, agent={look: "1s" for look in self.LOOKS})
        self.agent_options["only_fake_gpus"] = False
        for i in range(nodes):
            root = self.of("node-%d" % i, "root")
            self.machine = machine.make("mi300x", root, cores=8)
        self.gpus = [g.bdf for g in self.machine.gpus]

    def of(self, node, what):
        os.makedirs(os.path.join(self.top, node), exist_ok=True)
        return os.path.join(self.top, node, what)

    def computes(self, node, wrong=None):
        """wrong: the GPU whose products of fp32 have one wrong bit."""
        said = {"gpus": self.gpus, "wrong": {wrong: [5, 2, 1, 8.000001]} if wrong else {}}
        return environment(said, self.of(node, ""))

    def spawn(self, program, name, options, args=(), **env):
        if name.startswith("node-"):
            variables = self.computes(name)
            if not self.torch:
                with open(self.of(name, "torch.py"), "w") as f:
                    f.write("raise ImportError('No module named torch')\n")
                variables["PYTHONPATH"] = self.of(name, "")
            os.makedirs(self.of(name, "data/health"), exist_ok=True)
            with open(self.of(name, "data/health/site.yaml"), "w") as f:
                f.write(check(variables))
            options = dict(options, topology=self.of(name, "root"))
            env = dict(env, MOE_DATA_DIR=self.of(name, "data"))
        return super().spawn(program, name, options, args=args, **env)

    def up(self):
        super().up()
        wait_until(
            lambda: all(
                self.node(n["name"])["preflight_done"] for n in self.json("nodes")["items"]
            ),
            60,
            "preflight checks",
        )

    def down(self, check=True):
        super().down(check)
        shutil.rmtree(self.top, ignore_errors=True)

    def node(self, name):
        return self.json("node", name)

    def canaries(self, node):
        """[state, text] of its check, by GPU."""
        checks = self.node(node)["checks"]
        return {c["object"]: [c["state"], c["text"]] for c in checks if c["check"] == "gpu.canary"}

    def said(self, node, kind):
        return [
            e["message"]
            for e in self.json("events")["items"]
            if e["node"] == node and e["type"] == kind
        ]
