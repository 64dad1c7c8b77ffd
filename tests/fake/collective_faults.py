#!/usr/bin/python3
"""config/health/collective.py over gloo with faults that are made, small and in a hurry; one behind
the other, since torch takes seconds to begin.

    collective_faults.py '{"NAME": [RANKS, FAULTS], ...}'       prints {"NAME": LINES, ...}

FAULTS, each with numbers of ranks and of calls:
    {"sent": [[SENDER, RECEIVER, CALL], ...]   one bit of this block arrives otherwise
     "added": [[RANK, CALL], ...]              what this rank adds is 1 too much; CALL -1: each
     "all_only": true                          that is so in sums of all ranks only
     "hangs": RANK, "dies": RANK, "raises": RANK}       in its first all-reduce"""
import importlib.util
import json
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

SCRIPT = os.path.join(os.path.dirname(__file__), "../../config/health/collective.py")
faults = {}
exchange, add, calls = dist.all_to_all_single, dist.all_reduce, {"exchange": 0, "add": 0}


def wrong_exchange(got, sent):
    exchange(got, sent)
    for sender, receiver, call in faults.get("sent", []):
        if dist.get_rank() == receiver and calls["exchange"] == call:
            got.view(dist.get_world_size(), -1)[sender][17] ^= 1 << 30
    calls["exchange"] += 1


def wrong_add(x, group=None):
    me = dist.get_rank()
    if faults.get("hangs") == me:
        signal.pause()
    if faults.get("dies") == me:
        os.kill(os.getpid(), signal.SIGKILL)
    if faults.get("raises") == me:
        raise RuntimeError("NCCL error:\nunhandled system error")
    for rank, call in faults.get("added", []):
        if rank == me and call in (-1, calls["add"]) and not (group and faults.get("all_only")):
            x[5] += 1
    calls["add"] += 1
    add(x, group=group)


dist.all_to_all_single, dist.all_reduce = wrong_exchange, wrong_add
spec = importlib.util.spec_from_file_location("collective", SCRIPT)
collective = importlib.util.module_from_spec(spec)
spec.loader.exec_module(collective)
collective.BLOCK, collective.SUMMED = 1007, 4099
said = {}
for name, (ranks, faults) in json.loads(sys.argv[1]).items():
    collective.BEGAN = time.monotonic()
    collective.LIMIT_S = 15 if "hangs" in faults else 300
    said[name] = collective.lines(["--cpu", str(ranks)])
print(json.dumps(said))
sys.stdout.flush()
os._exit(0)
