"""The program of gpu.canary with a torch that is none (tests/fake/torch): what it says, and the
check that runs it so."""
import json
import os
import subprocess
import sys

from lib import ROOT

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


def check(said, dir, when="doubt"):
    """The shipped check as a site's, with these GPUs."""
    env = ", ".join("'%s=%s'" % item for item in environment(said, dir).items())
    return (
        "checks:\n  - {id: gpu.canary, what: the GPU computes wrong, next: replace it, source: x,"
        " area: gpu, needs: gpu, when: [%s], argv: [env, %s, %s, '{data:health/canary.py}'],"
        " hardware: true, action: cordon, deadline: 50s}\n" % (when, env, sys.executable)
    )
