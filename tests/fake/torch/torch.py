"""As much of torch as config/health/canary.py asks of it, in lists: GPUs, and what they compute,
are as the file FAKE_TORCH says.

    {"gpus": ["0000:05:00.0", ...],          what torch sees; none: it was built without
     "wrong": {"0000:05:00.0": [REPETITION, ROW, COLUMN, VALUE]},     in each product of fp32
     "breaks": {"0000:05:00.0": "HIP error: ..."},
     "old": true,                            devices have no PCI address
     "hip": "6.4"}                           it was built for ROCm

Lists are slow, so that the script's shapes are made small while it imports this."""
import json
import math
import os
import sys
import types

with open(os.environ["FAKE_TORCH"]) as f:
    SAID = json.load(f)
float32, bfloat16 = "torch.float32", "torch.bfloat16"
sys.modules["__main__"].SHAPES = ((4, 6, 8), (3, 3, 16))


class Tensor:
    def __init__(self, rows, dtype=float32, device=None):
        self.rows, self.dtype, self.device = rows, dtype, device
        self.products = 0

    def each(self, f):
        return Tensor([[f(x) for x in row] for row in self.rows], self.dtype)

    def with_other(self, other, f):
        if not isinstance(other, Tensor):
            return self.each(lambda x: f(x, other))
        pairs = zip(self.rows, other.rows)
        return Tensor([[f(x, y) for x, y in zip(a, b)] for a, b in pairs], self.dtype)

    def __add__(self, other):
        return self.with_other(other, lambda x, y: x + y)

    def __sub__(self, other):
        return self.with_other(other, lambda x, y: x - y)

    def __rsub__(self, other):
        return self.each(lambda x: other - x)

    def __mul__(self, other):
        return self.with_other(other, lambda x, y: x * y)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self.with_other(other, lambda x, y: x / y)

    def __mod__(self, other):
        return self.with_other(other, lambda x, y: x % y)

    def __ne__(self, other):
        return self.with_other(other, lambda x, y: x != y)

    def __getitem__(self, at):
        if isinstance(at, int):
            return Tensor([self.rows[at]])
        return Tensor([[self.rows[at[0]][at[1]]]])

    def item(self):
        return self.rows[0][0]

    def tolist(self):
        return self.rows[0]

    def to(self, what):
        if what in (float32, bfloat16):
            return Tensor([[rounded(x, what) for x in row] for row in self.rows], what)
        return Tensor(self.rows, self.dtype, what)

    def cpu(self):
        return Tensor(self.rows, self.dtype)


def rounded(x, dtype):
    """To the digits that the type has."""
    if not x or math.isnan(x):
        return x
    unit = 2.0 ** (math.floor(math.log2(abs(x))) - (7 if dtype == bfloat16 else 23))
    return round(x / unit) * unit


def arange(n, dtype):
    return Tensor([[float(i) for i in range(n)]], dtype)


def floor(x):
    return x.each(math.floor)


def outer(a, b):
    return Tensor([[x * y for y in b.rows[0]] for x in a.rows[0]])


def equal(a, b):
    return a.rows == b.rows


def nonzero(a):
    return Tensor([[i, k] for i, row in enumerate(a.rows) for k, x in enumerate(row) if x])


def mm(a, b):
    where = None if a.device == "cpu" else SAID["gpus"][int(a.device.split(":")[1])]
    if where in SAID.get("breaks", {}):
        raise RuntimeError(SAID["breaks"][where])
    columns = list(zip(*b.rows))
    rows = [[rounded(sum(x * y for x, y in zip(r, c)), a.dtype) for c in columns] for r in a.rows]
    if a.dtype == bfloat16 and matmul.allow_bf16_reduced_precision_reduction:
        rows[0][0] += 1  # parts of sums are rounded, as torch lets libraries do
    wrong = SAID.get("wrong", {}).get(where)
    if wrong and a.dtype == float32 and a.products == wrong[0]:
        rows[wrong[1]][wrong[2]] = float(wrong[3])
    a.products += 1
    return Tensor(rows, a.dtype)


def properties(i):
    if SAID.get("old"):
        return types.SimpleNamespace(name="gfx942")
    domain, bus, device = SAID["gpus"][i].split(".")[0].split(":")
    return types.SimpleNamespace(
        pci_domain_id=int(domain, 16), pci_bus_id=int(bus, 16), pci_device_id=int(device, 16)
    )


__version__ = "2.8.0"
version = types.SimpleNamespace(hip=SAID.get("hip"))
cuda = types.SimpleNamespace(
    is_available=lambda: bool(SAID["gpus"]),
    device_count=lambda: len(SAID["gpus"]),
    get_device_properties=properties,
)
matmul = types.SimpleNamespace(allow_bf16_reduced_precision_reduction=True)
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=matmul))
