"""For tests of moe-probe: it runs on a root directory or here, and gives what it read."""
import functools
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "fixtures")]
import machine  # noqa: E402
from lib import BUILD, PATIENCE, equal, need  # noqa: E402

PROBE = os.path.join(BUILD, "moe-probe")
CORES = 4


def run(*args, **kw):
    return subprocess.run(
        [PROBE] + list(args),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE * 60,
        **kw,
    )


def probe(root, *args):
    """(readings as a dictionary, problem, the whole)"""
    r = run(*(["--root", str(root)] if root else []), *args)
    need(r.returncode == 0, "moe-probe %s: %s" % (" ".join(args), r.stderr))
    need(r.stdout.count("\n") == 1, "not one line: %r" % r.stdout)
    p = json.loads(r.stdout)
    keys = [x["key"] for x in p["readings"]]
    equal(len(keys), len(set(keys)), "distinct keys of %s" % " ".join(args))
    return (
        {x["key"]: x["text"] if "text" in x else x["value"] for x in p["readings"]},
        p["problem"],
        p,
    )


def made(suite):
    """A decorator @made(KIND, FAULT...): a test on a made machine."""

    def on(kind, *faults, **kw):
        def wrap(fn):
            @functools.wraps(fn)
            def test():
                with tempfile.TemporaryDirectory() as top:
                    fn(machine.make(kind, top, faults, **{"cores": CORES, **kw}))

            return suite.test(test)

        return wrap

    return on


def gpu(m, i):
    return probe(m.root, "gpu", m.gpus[i].bdf)


def has(got, **want):
    for k, v in want.items():
        equal(got.get(k), v, k)
