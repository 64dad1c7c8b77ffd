#!/usr/bin/python3
"""Do the GPUs of this node compute right together? An all-to-all and all-reduces of whole numbers,
whose every element is known exactly beforehand in whatever order it is summed. Run by the agent
for the check gpu.collective, with the PCI addresses of the node's GPUs; torch for ROCm and for
CUDA have the same interface (RCCL is called nccl there, too).

    collective.py 0000:05:00.0 0000:26:00.0 ...
    collective.py --cpu 4              the same of processes over gloo: does it work here at all?

Prints a line for each: ADDRESS STATE TEXT. ok; crit: what came out wrong, and with whom; unknown:
it could not be tried, or something is wrong and no GPU can be named; skipped: there is nothing to
try with. In an all-to-all each block has a sender and a receiver. A sum has not: where that of all
GPUs is wrong, each two of them add by themselves. Who is wrong with most of the others is the odd
one.

One process for each GPU, forked when torch was imported and before any GPU was touched. Of a GPU
in partitions it is the first one. `python3 - ADDRESS ... < collective.py` is the same."""
import datetime
import multiprocessing
import multiprocessing.connection
import os
import shutil
import sys
import tempfile
import time

LIMIT_S = 35  # since BEGAN; the deadline of the check is a little more
VICTIMS_S = 2  # where one rank breaks, others may before the word of the first is heard
REPEATED = 8
BLOCK = (1 << 20) + 7  # elements from each GPU to each; no power of two, so that there are ends
SUMMED = (1 << 22) + 5
EXACT = {"bfloat16": 1 << 8, "float32": 1 << 24}  # all whole numbers up to these are in the format
BEGAN = time.monotonic()


def block(torch, sender, receiver):
    """32 bits that no other place of a block has, nor this place of another block."""
    x = torch.arange(BLOCK, dtype=torch.int64) * 2654435761 + sender * 69069 + receiver * 40503
    return (x % (1 << 32) - (1 << 31)).to(torch.int32)


def summand(torch, rank, most):
    """-most ... most"""
    x = torch.arange(SUMMED, dtype=torch.int64) * (2 * rank + 3) * 40503 + rank * 69069
    return x % (2 * most + 1) - most


def formats(cpu):
    return ["float32"] if cpu else list(EXACT)  # gloo of torch 1.13 sums no bfloat16


class Wrong:
    """What differs in repetitions of one thing: the first element of it, and how often."""

    def __init__(self, what):
        self.what, self.first, self.n = what, None, 0

    def look(self, torch, got, right):
        if torch.equal(got, right):
            return
        self.n += 1
        if not self.first:
            i = torch.nonzero(got != right)[0].item()
            self.first = "element %d is %.10g, should be %.10g" % (
                i,
                got[i].item(),
                right[i].item(),
            )

    def __str__(self):
        return "%s: %s; %d of %d repetitions differ" % (self.what, self.first, self.n, REPEATED)


def exchange(torch, me, world, device, tell):
    sent = torch.cat([block(torch, me, to) for to in range(world)]).to(device)
    right = [block(torch, by, me) for by in range(world)]
    wrong = [Wrong("all-to-all int32") for _ in right]
    for _ in range(REPEATED):
        got = torch.full_like(sent, -1)
        torch.distributed.all_to_all_single(got, sent)
        for by, arrived in enumerate(got.cpu().chunk(world)):
            wrong[by].look(torch, arrived, right[by])
    for by, w in enumerate(wrong):
        if w.n:
            tell("wrong", by, str(w))


def add(torch, dtype, me, members, group, device):
    """An all-reduce of these ranks: what came out wrong."""
    most, format = EXACT[dtype] // len(members), getattr(torch, dtype)
    right = sum(summand(torch, rank, most) for rank in members).to(format)
    mine, wrong = summand(torch, me, most).to(format), Wrong("all-reduce %s" % dtype)
    for _ in range(REPEATED):
        x = mine.clone().to(device)
        torch.distributed.all_reduce(x, group=group)
        wrong.look(torch, x.cpu(), right)
    return wrong


def rounds(world):
    """Pairs of ranks: each pair once, nobody twice in a round."""
    ring = list(range(world + world % 2))
    for _ in ring[1:]:
        pairs = zip(ring, ring[: len(ring) // 2 - 1 : -1])
        yield [sorted(pair) for pair in pairs if max(pair) < world]
        ring.insert(1, ring.pop())


def add_all(torch, me, world, device, dtypes, store, tell):
    found = [add(torch, dtype, me, range(world), None, device) for dtype in dtypes]
    for w in found:
        if w.n:
            tell("wrong", None, str(w))
    store.set("sum %d" % me, "wrong" if any(w.n for w in found) else "right")
    if all(store.get("sum %d" % rank) == b"right" for rank in range(world)):
        return
    tell("at", "all-reduce of two")
    for pairs in rounds(world):
        groups = [torch.distributed.new_group(pair) for pair in pairs]
        for pair, group in zip(pairs, groups):
            for dtype in dtypes if me in pair else ():
                w = add(torch, dtype, me, pair, group, device)
                if w.n:
                    tell("wrong", sum(pair) - me, str(w))


def address(properties):
    return "%04x:%02x:%02x.0" % (
        properties.pci_domain_id,
        properties.pci_bus_id,
        properties.pci_device_id,
    )


class Untried(Exception):
    """What it is instead: unknown or skipped, and why."""


def device_of(torch, name):
    n = torch.cuda.device_count()
    if not n:
        # that of PyPI is for CUDA; one that was installed for these GPUs should see them
        state = "unknown" if torch.version.hip else "skipped"
        raise Untried(state, "the torch %s of %s has no GPU" % (torch.__version__, sys.executable))
    try:
        seen = [address(torch.cuda.get_device_properties(i)) for i in range(n)]
    except AttributeError as e:
        raise Untried("skipped", "this torch is too old: %s" % e)
    for mine in (name, name[:-1] + "0"):  # a partition's function is not always 0
        if mine in seen:
            return torch.device("cuda:%d" % seen.index(mine))
    raise Untried("unknown", "torch does not see it, but " + " ".join(seen))


def run(torch, me, names, cpu, dir, out):
    """One rank, a process of its own."""

    def tell(*words):
        out.send(words)

    dist, world = torch.distributed, len(names)
    torch.set_num_threads(1)  # threads of before the fork are not here
    for library in ("NCCL", "GLOO"):  # nothing leaves the node
        os.environ[library + "_SOCKET_IFNAME"] = "lo"
    try:
        device = torch.device("cpu") if cpu else device_of(torch, names[me])
        if not cpu:
            torch.cuda.set_device(device)
        store = dist.FileStore(os.path.join(dir, "store"), world)
        limit = datetime.timedelta(seconds=LIMIT_S)
        backend = "gloo" if cpu else "nccl"
        dist.init_process_group(backend, store=store, rank=me, world_size=world, timeout=limit)
        tell("at", "all-to-all")
        exchange(torch, me, world, device, tell)
        tell("at", "all-reduce")
        add_all(torch, me, world, device, formats(cpu), dist.PrefixStore("canary", store), tell)
        tell("done")
    except Untried as e:
        tell("broke", *e.args)
    except Exception as e:  # of torch, its libraries and the driver: anything
        text = "%s: %s" % (type(e).__name__, " ".join(str(e).split())[:300])
        tell("broke", "unknown", text)
    # others may still read this one's memory; and a hang at the end is no finding
    multiprocessing.parent_process().join()
    os._exit(0)


class Rank:
    def __init__(self, process, pipe):
        self.process, self.pipe = process, pipe
        self.at, self.done, self.died, self.broke, self.wrong = "start", False, False, None, []

    def hear(self):
        try:
            kind, *words = self.pipe.recv()
        except EOFError:
            self.died = True
            kind, words = "broke", ["unknown", "its process ended in the %s" % self.at]
        if kind == "at":
            self.at = words[0]
        elif kind == "wrong":
            self.wrong.append(words)
        elif kind == "done":
            self.done = True
        else:
            self.broke = words


def run_all(torch, names, cpu):
    """All ranks, until each is done, one breaks, or it is late."""
    fork, dir = multiprocessing.get_context("fork"), tempfile.mkdtemp(prefix="moe-collective-")
    ranks = []
    for me in range(len(names)):
        pipe, out = fork.Pipe(False)
        process = fork.Process(target=run, args=(torch, me, names, cpu, dir, out), daemon=True)
        process.start()
        out.close()
        ranks.append(Rank(process, pipe))
    until = BEGAN + LIMIT_S
    while True:
        waits = {rank.pipe: rank for rank in ranks if not rank.done and not rank.broke}
        left = max(until - time.monotonic(), 0)
        ready = multiprocessing.connection.wait(waits, left) if waits else ()
        if not ready:
            break
        for pipe in ready:
            waits[pipe].hear()
        if any(rank.broke for rank in ranks):
            until = min(until, time.monotonic() + VICTIMS_S)
    for rank in ranks:
        rank.process.kill()
    shutil.rmtree(dir, ignore_errors=True)
    return ranks


def odd_with(ranks):
    """Of each rank: with whom something was wrong, and what."""
    odd = [{} for _ in ranks]
    for me, rank in enumerate(ranks):
        for peer, text in rank.wrong:
            if peer is not None:
                odd[me].setdefault(peer, text)
                odd[peer].setdefault(me, text)
    return odd


def named(names, odd):
    """What is said of each GPU that can be named."""
    others = len(names) - 1
    itself = {me: "with itself: " + w[me] for me, w in enumerate(odd) if me in w}
    most = {
        me: "with %d of %d others, as %s: %s" % (len(w), others, names[min(w)], w[min(w)])
        for me, w in enumerate(odd)
        if me not in itself and 2 * len(w) > others
    }
    said = {**most, **itself}
    if len(said) == len(names):
        return {}
    pairs = [(me, peer) for me, w in enumerate(odd) for peer in w if not {me, peer} & set(said)]
    for me, peer in pairs:
        said[me] = "with %s (that GPU, this one or their link): %s" % (names[peer], odd[me][peer])
    return said


def untold(ranks):
    """Something that is wrong, where no GPU is named; None: nothing is."""
    all_wrong = [text for rank in ranks for _, text in rank.wrong]
    return "wrong, and no GPU can be named: %s" % all_wrong[0] if all_wrong else None


def trouble(names, ranks):
    """Why it did not come to its end: state and text; None: it did."""
    for name, rank in sorted(zip(names, ranks), key=lambda pair: not pair[1].died):
        if rank.broke:
            return rank.broke[0], "%s: %s" % (name, rank.broke[1])
    for name, rank in zip(names, ranks):
        if not rank.done:
            return "unknown", "not done within %d s: %s is in the %s" % (LIMIT_S, name, rank.at)
    return None


def judge(names, ranks, n_done):
    """State and text of each."""
    said = named(names, odd_with(ranks))
    rest = trouble(names, ranks) or ("ok", "%d collectives of %d GPUs" % (n_done, len(names)))
    if not said and untold(ranks):
        rest = "unknown", untold(ranks)
    return [("crit", said[me]) if me in said else rest for me in range(len(names))]


def skip(names, reason):
    return [(name, "skipped", reason) for name in names]


def lines(names):
    cpu = names[:1] == ["--cpu"]
    if cpu:
        names = ["cpu-%d" % i for i in range(int(names[1]))]
    if len(names) < 2:
        return skip(names, "there is no other GPU")
    try:
        import torch
        import torch.distributed
    except (ImportError, OSError) as e:
        return skip(names, "%s has no torch (%s)" % (sys.executable, e))
    what = "the torch %s of %s" % (torch.__version__, sys.executable)
    if not torch.distributed.is_available():
        return skip(names, what + " has no collectives")
    if not cpu and not torch.distributed.is_nccl_available():
        return skip(names, what + " has no RCCL or NCCL")
    said = judge(names, run_all(torch, names, cpu), REPEATED * (1 + len(formats(cpu))))
    return [(name, *words) for name, words in zip(names, said)]


if __name__ == "__main__":
    for line in lines(sys.argv[1:]):
        print(*line)
    sys.stdout.flush()
    os._exit(0)  # not waiting for a process that hangs in the kernel
