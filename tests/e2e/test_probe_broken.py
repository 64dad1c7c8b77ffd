"""moe-probe on machines of which files are gone, wrong or hang: what cannot be read is named, is no
value, and costs nothing else."""
import ctypes
import math
import os
import re
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "fixtures")]
import machine  # noqa: E402
from lib import Suite, equal, need  # noqa: E402
from probe_rig import PROBE, probe, made, gpu, has  # noqa: E402

suite = Suite()
on = made(suite)


@on("mi300x", "gone=2")
def a_gpu_that_vanished(m):
    got, problem, _ = gpu(m, 2)
    equal(problem, m.gpus[2].bdf + ": no such device", "problem")
    equal(sorted(got), ["files", "read_ms"], "readings of nothing")
    has(gpu(m, 3)[0], xgmi_links=6)
    has(probe(m.root, "host")[0], gpus_pci=7, gpus_kfd=7)
    equal(
        probe(m.root, "nic", "mlx5_9")[1],
        "mlx5_9: no such device",
        "problem of a NIC that is not there",
    )


@on("mi300x")
def a_driver_that_does_not_say_the_domain(m):
    nodes = os.path.join(m.root, "sys/class/kfd/kfd/topology/nodes")
    for node in os.listdir(nodes):
        with open(os.path.join(nodes, node, "properties")) as f:
            lines = f.readlines()
        with open(os.path.join(nodes, node, "properties"), "w") as f:
            f.writelines(x for x in lines if not x.startswith("domain "))
    devices = os.path.join(m.root, "sys/bus/pci/devices")
    os.rename(
        os.path.join(devices, m.gpus[3].bdf), os.path.join(devices, "0001" + m.gpus[3].bdf[4:])
    )
    has(probe(m.root, "host")[0], gpus_pci=8, gpus_kfd=8, gpus_off_bus=0)


@on("mi300x", "no_pci=2")
def a_gpu_that_only_the_driver_lists(m):
    has(probe(m.root, "host")[0], gpus_pci=7, gpus_kfd=8, gpus_off_bus=1)
    m.write("{gpu0}/vendor", "garbage")
    has(probe(m.root, "host")[0], gpus_pci=7)  # its driver says whose it is
    os.unlink(os.path.join(m.root, "sys/bus/pci/drivers/amdgpu", m.gpus[0].bdf))
    got, problem, _ = probe(m.root, "host")
    need(
        "gpus_pci" not in got and "vendor" in (problem or ""),
        "a device that may be a GPU is counted as none: %s, %s" % (got.get("gpus_pci"), problem),
    )


@on("mi300x")
def bad_gpu_metrics(m):
    def fault(name):
        machine.FAULTS[name][2](m, 0)
        return gpu(m, 0)[:2]

    whole = m.where("{gpu0}/gpu_metrics")
    with open(whole, "rb") as f:
        good = f.read()
    for name, words in (
        ("metrics_short", "its size says 1664 bytes, there are 100"),
        ("metrics_long", "gpu_metrics: File too large"),
        ("metrics_empty", "0 bytes are no header"),
        ("metrics_version", "version 9.9 is not known"),
        ("metrics_ones", None),
    ):
        got, problem = fault(name)
        if words is None:
            equal(problem, None, "problem of %s" % name)
        else:
            need(words in (problem or ""), "%s: problem is %s" % (name, problem))
        # the files answer instead
        need(
            got["temp_junction_c"] > 20
            and got["power_w"] > 90
            and got["gfx_clock_mhz"] == 132
            and got["pcie_replay"] == 0,
            "%s: %s" % (name, got),
        )
        need(
            "metrics_counter" not in got or name == "metrics_short",
            "%s: residency without metrics" % name,
        )
        m.write("{gpu0}/gpu_metrics", good)
    m.write("{gpu0}/gpu_metrics", good[:110] + b"\0" * 17)
    need("1664" in gpu(m, 0)[1], "wrong size is not named")
    os.unlink(whole)
    got, problem, _ = gpu(m, 0)
    equal(problem, None, "problem without gpu_metrics")
    need(
        "gpu_metrics_version" not in got and got["temp_junction_c"] > 20,
        "without gpu_metrics: %s" % got,
    )


@on("mi300x")
def what_no_gpu_can_have(m):
    """Firmware that says nonsense: named, no value, and no finding may rest on it. Where
    gpu_metrics says nonsense, the files answer."""
    whole = m.where("{gpu0}/gpu_metrics")
    with open(whole, "rb") as f:
        good = f.read()
    for at, value, key, words in (
        (4, 65000, "temp_junction_c", "gpu_metrics: temp_junction_c is 65000 C"),
        (10, 40000, "power_w", "gpu_metrics: power_w is 40000 W"),
    ):
        m.write("{gpu0}/gpu_metrics", good[:at] + struct.pack("<H", value) + good[at + 2 :])
        got, problem, _ = gpu(m, 0)
        need(
            words in (problem or "") and 20 < got[key] < 800,
            "%s: %s, problem is %s" % (words, got.get(key), problem),
        )
    m.write("{gpu0}/gpu_metrics", good)
    os.unlink(whole)
    for path, text, key, words in (
        (
            "{hwmon0}/temp1_crit",
            "0",
            "temp_junction_crit_c",
            "temp1_crit: temp_junction_crit_c is 0 C, which no GPU has (40 to 200)",
        ),
        ("{hwmon0}/power1_cap", "6000000000", "power_cap_w", "power1_cap: power_cap_w is 6000 W"),
        (
            "{gpu0}/mem_info_vram_used",
            str(1 << 50),
            "vram_used_bytes",
            "mem_info_vram_used: more than mem_info_vram_total: '%d" % (1 << 50),
        ),
        (
            "{gpu0}/current_link_width",
            "254",
            "pcie_width",
            "current_link_width: pcie_width is 254 lanes",
        ),
        (
            "{gpu0}/pp_dpm_sclk",
            "0: 99000Mhz *",
            "gfx_clock_mhz",
            "pp_dpm_sclk: gfx_clock_mhz is 99000 MHz",
        ),
    ):
        with open(m.where(path)) as f:
            before = f.read().rstrip("\n")
        m.write(path, text)
        got, problem, _ = gpu(m, 0)
        need(
            key not in got and words in (problem or ""),
            "%s: %s, problem is %s" % (words, got.get(key), problem),
        )
        m.write(path, before)
    m.write("{gpu0}/gpu_busy_percent", "100")
    for path in ("{hwmon0}/power1_average", "{hwmon0}/power1_input"):
        if os.path.exists(m.where(path)):
            m.write(path, "0")
    got, problem, _ = gpu(m, 0)
    need(
        "power_w" not in got
        and "its sensors: busy_pct is 100 and power_w is 0: no GPU that works draws no power"
        in (problem or ""),
        "busy without power: %s, %s" % (got, problem),
    )


@on("mi300x")
def all_ones(m):
    """Registers that do not answer: never a temperature of 4 million degrees or 4 billion
    errors."""

    def said(key_files, values):
        whole = m.where("{gpu0}/gpu_metrics")
        with open(whole, "rb") as f:
            metrics = f.read()
        os.unlink(whole)
        kept = {}
        for path, text in values.items():
            with open(m.where(path)) as f:
                kept[path] = f.read().rstrip("\n")
            m.write(path, text)
        got, problem, _ = gpu(m, 0)
        for key in key_files:
            need(key not in got, "%s is %s of %s" % (key, got.get(key), values))
        for path, text in kept.items():
            m.write(path, text)
        m.write("{gpu0}/gpu_metrics", metrics)
        return got, problem

    temps = ["{hwmon0}/temp%d_input" % i for i in (1, 2)]
    equal(
        said(["temp_junction_c", "temp_mem_c"], dict.fromkeys(temps, "4294967295"))[1],
        None,
        "32 bits of no value",
    )
    problem = said(["temp_junction_c", "temp_mem_c"], dict.fromkeys(temps, "65535000"))[1]
    need(
        "temp1_input: temp_junction_c is 65535 C, which no GPU has (-40 to 200): '65535000"
        in (problem or "")
        and "temp2_input" in problem,
        "problem is %s" % problem,
    )
    need(
        "gpu_busy_percent: busy_pct is 65535 %"
        in (said(["busy_pct"], {"{gpu0}/gpu_busy_percent": "65535"})[1] or ""),
        "a share of 65535 %",
    )
    equal(said(["xgmi_error"], {"{gpu0}/xgmi_error": "0xffffffff"})[1], None, "no count of errors")
    got, problem = said(
        ["pcie_width", "pcie_width_max"],
        {
            "{gpu0}/current_link_width": "63",
            "{gpu0}/max_link_width": "63",
            "{gpu0}/current_link_speed": "Unknown",
        },
    )
    need(
        "current_link_width: all bits are set: the device does not answer on its bus"
        in (problem or ""),
        "a dead device: %s" % problem,
    )
    got, problem = said(["device_id"], {"{gpu0}/vendor": "0xffff", "{gpu0}/device": "0xffff"})
    need(
        "vendor: all bits are set" in (problem or "") and got["ras_ue"] == 0,
        "its driver still tells whose it is: %s, %s" % (problem, got),
    )
    for key in ("link_downed", "symbol_error"):
        m.write("{ib0}/ports/1/counters/" + key, "4294967295")
    got = probe(m.root, "nic", "mlx5_0")[0]
    need(
        "link_downed" not in got and "symbol_error" not in got and got["rcv_errors"] == 0,
        "a card's counters: %s" % got,
    )


@on("mi300x")
def read_errors(m):
    """EIO and EISDIR stand for EBUSY and EINVAL during a reset: reading /proc/self/mem at 0 fails
    with EIO."""

    def broken(path):
        full = m.where(path)
        os.unlink(full)
        os.symlink("/proc/self/mem", full)

    broken("{gpu1}/ras/umc_err_count")
    broken("{gpu1}/mem_info_vram_used")
    machine.unreadable(m, "{gpu1}/current_link_width")
    got, problem, _ = gpu(m, 1)
    for words in (
        "ras/umc_err_count: Input/output error",
        "mem_info_vram_used: Input/output error",
        "current_link_width: Is a directory",
    ):
        need(words in problem, "%s is not in: %s" % (words, problem))
    for key in ("ras_ue", "ras_ce", "vram_used_bytes", "pcie_width"):
        need(key not in got, "%s was read from a broken file" % key)
    has(got, vram_total_bytes=206141652992, pcie_width_max=16, xgmi_links=7)


@on("mi300x")
def everything_broken(m):
    """Every file of a GPU as garbage, as nothing, as all ones: a probe comes out each time."""
    for text in (
        b"\xff\xfe\0garbage\n\n:::",
        b"",
        b"18446744073709551615",
        b"0xffffffff\n",
        b"ue: -5\nce: 99999999999999999999\n",
        b"A" * 70000,
    ):
        for top, _, files in os.walk(m.where("{gpu2}")):
            for name in files:
                full = os.path.join(top, name)
                if not os.path.islink(full):
                    with open(full, "wb") as f:
                        f.write(text)
        got, problem, whole = gpu(m, 2)
        equal(whole["area"], "gpu", "area")
        need(
            all(not isinstance(v, float) or math.isfinite(v) for v in got.values()),
            "readings: %s" % got,
        )
        need("pcie_width" not in got or got["pcie_width"] >= 0, "width %s" % got.get("pcie_width"))
        need(
            len(text) < 65537 or "File too large" in problem,
            "a file of 70000 bytes is no problem: %s" % problem,
        )


class Opened:
    """Files below a directory that are opened while it is entered: inotify, so that no list has to
    be kept."""

    OPEN, ISDIR = 0x20, 0x40000000

    def __init__(self, top):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd, self.dirs, self.top = (
            self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC),
            {},
            top,
        )
        need(self.fd >= 0, "inotify_init1: %s" % os.strerror(ctypes.get_errno()))
        for dir, _, _ in os.walk(top):
            wd = self.libc.inotify_add_watch(self.fd, os.fsencode(dir), self.OPEN)
            need(wd >= 0, "inotify_add_watch %s: %s" % (dir, os.strerror(ctypes.get_errno())))
            self.dirs[wd] = dir

    def __enter__(self):
        self.files = set()
        return self

    def __exit__(self, *exc):
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                wd, mask, _, n = struct.unpack_from("iIII", data, at)
                name = data[at + 16 : at + 16 + n].rstrip(b"\0").decode()
                need(wd >= 0, "events were lost")
                if name and not mask & self.ISDIR:
                    self.files.add(os.path.relpath(os.path.join(self.dirs[wd], name), self.top))
                at += 16 + n

    def close(self):
        os.close(self.fd)


# what a file may turn into -> what it then holds; None = a directory
BROKEN = {
    "garbage": b"\xff\xfe\0garbage\n\n:::\x80",
    "empty": b"",
    "a directory": None,
    "digits": b"7" * 1000000,
    "control": b"\x01\x1b[2J\x07\r\x02",
    "words": b"what is this\n",
}

# readings that a broken file may take away although they are there without the file: sums over
# several files, and what tells two things from one
TOGETHER = (
    ("_err_count", "ras_"),
    ("/edac/", "edac_"),
    ("topology/nodes/", "xgmi_links"),
    ("topology/nodes/", "gpus_"),
    ("/vendor", "gpus_pci"),
    ("/class", "gpus_pci"),
    ("/gids/", "gid_rocev2"),
    ("/gid_attrs/", "gid_rocev2"),
    ("/gpu_id", "foreign"),
    ("/vram_", "foreign"),
    ("/gpu_id", "ended_pids"),
    ("/vram_", "ended_pids"),
    ("/status", "ended_pids"),
)

# texts that may be any: what is reported is what is in the file
ANY_TEXT = re.compile(
    r"vbios_version|fw_ver$|fw_version/|/version$|osrelease|/node_guid|xgmi_hive_id|"
    r"power_dpm_force|operstate|bios_version|product_name|scaling_governor|link_layer|"
    r"hwmon\d+/(name|temp\d+_label)|"
    r"dev/kmsg|srcversion|proc/cmdline"
)

# without a form of their own: a process writes there what it likes; of device nodes only whether
# they open counts
NO_FORM = re.compile(r"proc/\d+/(environ|comm)$|dev/dri/")

TIMES = {"files", "read_ms", "driver_canary_ms"}


def areas_of(m):
    nics = [os.path.basename(d.ib) for d in m.nics]
    return (
        [("gpu", g.bdf) for g in m.gpus]
        + [("gpu", "--sensors", m.gpus[0].bdf)]
        + [("nic", n) for n in nics]
        + [("host",), ("stack",), ("klog",)]
    )


def owner(m, file):
    """The device whose own the file is; None: of the node."""
    for d in m.gpus + m.nics:
        if file.startswith(d.path + "/"):
            return d.bdf if d in m.gpus else os.path.basename(d.ib)
    for i, g in enumerate(m.gpus):
        if file.startswith(
            "sys/class/kfd/kfd/topology/nodes/%d/" % m.kfd_nodes[i] if m.kfd_nodes else "\0"
        ):
            return g.bdf
    return None


def put(full, content):
    if os.path.isdir(full):
        os.rmdir(full)
    elif os.path.lexists(full):
        os.unlink(full)
    if content is None:
        os.mkdir(full)
    elif content is not ...:
        with open(full, "wb") as f:
            f.write(content)


def told(m, area):
    got, problem, whole = probe(m.root, *area)
    texts = [problem or "", whole["identity"] or ""] + [
        v for v in got.values() if isinstance(v, str)
    ]
    need(all(t.isprintable() for t in texts), "%s: not cleaned: %s" % (area, texts))
    need(
        all(len(t.encode()) <= 1003 for t in texts[1:]) and len(problem or "") < 4096,
        "%s: unbounded" % (area,),
    )
    return {k: v for k, v in got.items() if k not in TIMES}, problem


def changed(a, b):
    return {k for k in set(a) | set(b) if a.get(k) != b.get(k)}


def broken_one_at_a_time(kind, **kw):
    with tempfile.TemporaryDirectory() as top:
        m = machine.make(kind, top, cores=2, **kw)
        opened, users, before = Opened(top), {}, {}
        for area in areas_of(m):
            with opened:
                before[area] = told(m, area)
            for f in opened.files:
                users.setdefault(f, []).append(area)
        opened.close()
        users = {f: areas for f, areas in users.items() if not NO_FORM.match(f)}
        need(len(users) > 25, "only %d files are read" % len(users))
        wrong = []
        for file in sorted(users):
            full = os.path.join(top, file)
            with open(full, "rb") as f:
                good = f.read()
            put(full, ...)
            without = {area: changed(before[area][0], told(m, area)[0]) for area in users[file]}
            for name, content in BROKEN.items():
                put(full, content)
                for area in users[file]:
                    readings, problem = told(m, area)
                    other = changed(before[area][0], readings)
                    where = "%s as %s, %s" % (file, name, " ".join(area))
                    together = {
                        k
                        for k in other
                        if any(part in file and k.startswith(prefix) for part, prefix in TOGETHER)
                    }
                    if area[0] in ("gpu", "nic") and owner(m, file) not in (None, area[-1]):
                        if other or problem != before[area][1]:
                            wrong.append("%s: of another device: %s %s" % (where, other, problem))
                    elif (
                        problem is None
                        and other
                        and not (name == "empty" and file.endswith("/gpu_vram_bad_pages"))
                        and not (name in ("words", "digits") and ANY_TEXT.search(file))
                    ):
                        wrong.append(
                            "%s: taken for a value: %s"
                            % (where, {k: readings.get(k) for k in other})
                        )
                    elif (
                        problem is not None
                        and os.path.basename(file) not in problem
                        and "see moe-probe host" not in problem
                    ):
                        wrong.append("%s: not named: %s" % (where, problem))
                    elif problem is not None and other - without[area] - together:
                        wrong.append(
                            "%s: the rest is not read: %s"
                            % (where, sorted(other - without[area] - together))
                        )
                    elif problem is not None and together & set(readings):
                        wrong.append(
                            "%s: reported without a part of it: %s"
                            % (where, {k: readings[k] for k in together & set(readings)})
                        )
                    elif (
                        name in ("garbage", "control", "a directory")
                        and problem is None
                        and area != ("host",)
                        and without[area]
                    ):
                        wrong.append("%s: not a problem" % where)
            put(full, good)
        need(not wrong, "%d of %d files:\n%s" % (len(wrong), len(users), "\n".join(wrong)))


@suite.test
def each_file_broken_in_each_way():
    """Each file that is read, one at a time, as garbage, as nothing, as a directory, as a megabyte
    of digits, as control bytes, as words: it is named and gives no reading, all else is read."""
    broken_one_at_a_time("mi355x", gpus=2, faults=["foreign=1", "ras_ue=1", "klog=0"])


@suite.test
def each_file_of_an_nvidia_gpu_broken_in_each_way():
    broken_one_at_a_time("h200-vm")


@on("mi300x")
def a_hanging_read_ends_with_the_process(m):
    """A FIFO that nobody writes to hangs an open as a wedged driver hangs a read: the probe of this
    GPU hangs, that of another does not, and it can be killed."""
    os.unlink(m.where("{gpu3}/mem_info_vram_used"))
    os.mkfifo(m.where("{gpu3}/mem_info_vram_used"))
    child = subprocess.Popen(
        [PROBE, "--root", m.root, "gpu", m.gpus[3].bdf], stdout=subprocess.PIPE
    )
    try:
        equal(gpu(m, 2)[1], None, "problem of another GPU")
        equal(child.poll(), None, "the probe of the wedged GPU has ended")
    finally:
        child.kill()
        child.communicate()


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
