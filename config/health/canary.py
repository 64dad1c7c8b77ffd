#!/usr/bin/python3
"""Does each GPU compute right? Products of matrices of small whole numbers, whose every element is
known exactly beforehand: a GPU that returns anything else is broken and did not tell. Run by the
agent for the check gpu.canary, with the PCI addresses of the node's GPUs; torch for ROCm and for
CUDA have the same interface.

    canary.py 0000:05:00.0 0000:26:00.0
    canary.py --cpu                         the same on the processor: does it work here at all?

Prints a line for each: ADDRESS STATE TEXT. ok; crit: which element, expected and got, how many
repetitions differ; unknown: it could not be tried; skipped: there is no torch here, or none for
these GPUs. Only a wrong element is a word about the GPU.

Where torch is in images only, `python3 - ADDRESS ... < canary.py` in one of them is the same."""
import sys

# (u w' + v x') K out of a = u s' + v t' and b = s w' + t x': s and t are +-1 and orthogonal, so
# that the terms that must vanish do. Factors of at most 8, K a power of two of at most 2^17: each
# partial sum is exact in fp32, and the result, at most 128 K with 8 digits, in bf16.
SHAPES = ((4096, 4096, 8192), (1024, 8192, 4096), (256, 256, 131072))
DTYPES = ("bfloat16", "float32")
REPEATED = 8


def factors(torch, n, step):
    """-8 ... 8 in an order that no neighbours share."""
    return torch.arange(n, dtype=torch.float32) * step % 17 - 8


def signs(torch, k, period):
    return 1 - 2 * torch.floor(torch.arange(k, dtype=torch.float32) / period % 2)


def problem(torch, m, n, k):
    """Two matrices and their product, on the processor."""
    u, v = factors(torch, m, 3), factors(torch, m, 5)
    w, x = factors(torch, n, 7), factors(torch, n, 11)
    s, t = signs(torch, k, 1), signs(torch, k, 2)
    outer = torch.outer
    return (outer(u, s) + outer(v, t), outer(s, w) + outer(t, x), (outer(u, w) + outer(v, x)) * k)


def wrong_element(torch, got, right):
    """The first one, as a text; a NaN is no number either."""
    row, column = torch.nonzero(got != right)[0].tolist()
    return "element (%d,%d) is %.9g, should be %.9g" % (
        row,
        column,
        got[row, column].item(),
        right[row, column].item(),
    )


def try_device(torch, device, dtype, shape, matrices):
    """What is wrong; None: nothing."""
    a, b, right = (x.to(dtype) for x in matrices)
    a, b, first, n_wrong = a.to(device), b.to(device), None, 0
    for _ in range(REPEATED):
        got = torch.mm(a, b).cpu()
        if not torch.equal(got, right):
            n_wrong += 1
            first = first or wrong_element(torch, got, right)
    return first and "%s %s: %s; %d of %d repetitions differ" % (
        "x".join(map(str, shape)),
        str(dtype).replace("torch.", ""),
        first,
        n_wrong,
        REPEATED,
    )


def judge(torch, devices, problems, dtypes=DTYPES):
    """State and text for what is one GPU by its address, in partitions or not."""
    try:
        for device in devices:
            for dtype in dtypes:
                for shape, matrices in problems.items():
                    bad = try_device(torch, device, getattr(torch, dtype), shape, matrices)
                    if bad:
                        return "crit", bad
    except Exception as e:  # of torch, its libraries and the driver: anything
        return "unknown", "%s: %s" % (type(e).__name__, " ".join(str(e).split())[:300])
    return "ok", "%d products" % (len(devices) * len(dtypes) * len(problems) * REPEATED)


def address(properties):
    return "%04x:%02x:%02x.0" % (
        properties.pci_domain_id,
        properties.pci_bus_id,
        properties.pci_device_id,
    )


def devices_by_address(torch):
    found = {}
    for i in range(torch.cuda.device_count()):
        found.setdefault(address(torch.cuda.get_device_properties(i)), []).append("cuda:%d" % i)
    return found


def say(name, state, text):
    print(name, state, text, flush=True)


def main(names):
    """Exit status: that it came to its end."""
    try:
        import torch
    except (ImportError, OSError) as e:
        reason = "%s has no torch (%s)" % (sys.executable, e)
        return [say(name, "skipped", reason) for name in names]
    if names == ["--cpu"]:
        problems = {shape: problem(torch, *shape) for shape in SHAPES}
        # processors may add bfloat16 in bfloat16
        return say("cpu", *judge(torch, ["cpu"], problems, ["float32"]))
    if not torch.cuda.is_available():
        # that of PyPI is for CUDA; one that was installed for these GPUs should see them
        state = "unknown" if torch.version.hip else "skipped"
        reason = "the torch %s of %s has no GPU" % (torch.__version__, sys.executable)
        return [say(name, state, reason) for name in names]
    try:
        # parts of a sum stay in fp32
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        devices = devices_by_address(torch)
    except AttributeError as e:
        return [say(name, "skipped", "this torch is too old: %s" % e) for name in names]
    problems = {shape: problem(torch, *shape) for shape in SHAPES}
    for name in names:
        # a partition's function is not always 0
        mine = devices.get(name) or devices.get(name[:-1] + "0")
        if mine:
            say(name, *judge(torch, mine, problems))
        else:
            say(name, "unknown", "torch does not see it, but %s" % (" ".join(devices) or "none"))


if __name__ == "__main__":
    main(sys.argv[1:])
