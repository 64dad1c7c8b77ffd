#!/usr/bin/python3
"""moectl plan as people and programs see it: text that fits the terminal, pictures of every
schedule, dumps of Primus, options that are wrong, files that are no files. No controller is
needed."""
import fcntl
import glob
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import xml.etree.ElementTree as tree

from lib import MOECTL, PATIENCE, ROOT, Suite, clean_env, equal, moectl, need

suite = Suite()
LARGE = os.path.join(ROOT, "config/recipes/moe-2t-768-mi355x.yaml")
SMALL = os.path.join(ROOT, "config/recipes/deepseek-v2-lite-mi355x.yaml")
DUMPS = os.path.join(ROOT, "../shared/data/primus/pp_vis")
SVG = "{http://www.w3.org/2000/svg}"
DENSE = """recipe: 1
name: dense
engine: {kind: command, argv: [/bin/true]}
model: {layers: %d, hidden: 4096, heads: 32, kv_heads: 8, head_dim: 128, ffn: 14336, vocab: 32000,\
 gated: true}
cluster: {gpus: %d, gpu: mi355x}
parallelism: {pp: %d, %s}
batch: {seq: 4096, micro: 1, global: %d}
"""


def on_terminal(width, *args):
    """What moectl writes to a terminal of so many columns, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    p = subprocess.Popen(
        [MOECTL] + list(args),
        env=clean_env(TERM="xterm"),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    need(p.wait(PATIENCE * 60) == 0, "exit status %s: %s" % (p.returncode, p.stderr.read()))
    p.stderr.close()
    return re.sub("\x1b\\[[0-9;]*m", "", text.decode()).replace("\r", "").split("\n")


def in_directory(fn):
    def run():
        top = tempfile.mkdtemp(prefix="moe-plan-")
        try:
            fn(top)
        finally:
            shutil.rmtree(top)

    run.__name__ = fn.__name__
    return suite.test(run)


@suite.test
def fits_the_terminal():
    """No line is wider than the terminal, of a plan, a search and a scaling."""
    for width in (80, 120):
        for words in (
            (LARGE,),
            (SMALL,),
            (LARGE, "--set", "parallelism=auto", "--scale", "768,1536", "--failures", "rate=3"),
        ):
            wide = [line for line in on_terminal(width, "plan", *words) if len(line) > width]
            need(not wide, "%d columns: %s" % (width, wide[:3]))


@suite.test
def says_what_matters():
    text = moectl("plan", LARGE).stdout
    for words in (
        r"^fits +yes: [0-9.]+ of 309.2 GB on the fullest GPU",
        r"^step +[0-9.]+ s \+/- [0-9]+ %: [0-9]+ tokens/s/GPU, [0-9]+ TFLOP/s/GPU, MFU [0-9.]+ %, "
        r"bubble [0-9.]+ %$",
        r"^time +compute [0-9.]+ s \([0-9.]+ %\), all-to-all",
        r"^note +assumed: every expert gets the same share of the tokens",
        r"^next +moectl submit .*--set parallelism=auto",
        r"spare nodes \d+, one is there for 95.0 %",
    ):
        need(re.search(words, text, re.M), "%s\n%s" % (words, text))
    need(
        re.search(
            r"^  cp 1 instead of 2 +step -[0-9.]+ % .*does not fit: [0-9.]+ of 309.2 GB$",
            text,
            re.M,
        ),
        "no neighbours of a plan that is given: " + text,
    )
    text = moectl("plan", LARGE, "--set", "parallelism=auto", "--top", "3").stdout
    need(
        re.search(r"^all with +tp 1", text, re.M)
        and re.search(
            r"^  ep [0-9]+ instead of [0-9]+ +step [+-][0-9.]+ % \([a-z -]+ [+-][0-9.]+ %\), "
            r"(takes|saves|does not fit: [0-9.]+ of)",
            text,
            re.M,
        ),
        text,
    )
    need("to write it down: parallelism: {tp: 1," in text, text)
    text = moectl("plan", LARGE, "--set", "parallelism.cp=1", "--gpu", "mi300x").stdout
    need(
        re.search(r"^fits +NO: .* GB are missing$", text, re.M)
        and "nearest plan that fits" in text,
        text,
    )


@suite.test
def failures_and_fabric():
    doc = json.loads(
        moectl("plan", LARGE, "--json", "--failures", "rate=13,restart=1m,spares=99.9%").stdout
    )["reliability"]
    other = json.loads(moectl("plan", LARGE, "--json").stdout)["reliability"]
    need(
        abs(doc["failures_per_day"] / other["failures_per_day"] - 2) < 1e-6
        and doc["spare_nodes"] > other["spare_nodes"],
        doc,
    )
    need([r["restart_s"] for r in doc["restarts"]] == [60, 30, 10], doc)
    need("kept_gpus" not in doc, doc)
    spares = moectl("plan", LARGE, "--set", "cluster.spares=2").stdout
    need("16 GPUs, 2.0 % of the GPU-seconds" in " ".join(spares.split()), spares)
    step = [
        json.loads(moectl("plan", LARGE.replace("mi355x", "mi300x"), "--json", *more).stdout)[
            "plans"
        ][0]
        for more in ((), ("--fabric", "leaf=8,spine=8"))
    ]
    need(
        step[1]["step_time_s"]["a2a"] > step[0]["step_time_s"]["a2a"]
        and any("leaf switches of 8 GPUs" in n for n in step[1]["notes"]),
        step[1]["notes"],
    )
    for words, says in (
        (("--failures", "rate=nan"), "rate=nan: must be"),
        (("--failures", "spares=100%"), "spares=100%"),
        (("--fabric", "leaf=8,spine=0.5"), "spine=0.5"),
        (("--fabric", "8"), "8 is none of"),
    ):
        r = moectl("plan", LARGE, *words, check=False)
        need(
            r.returncode == 2 and says in r.stderr and r.stderr.count("\n") == 1,
            "%s: %s" % (words, r.stderr),
        )


@in_directory
def every_schedule_has_a_picture(top):
    for schedule, pp, micro in (
        ("1f1b", 4, 8),
        ("interleaved", 4, 8),
        ("zb1p", 4, 8),
        ("zbv", 4, 8),
        ("v-half", 4, 8),
        ("v-min", 4, 8),
        ("dualpipe", 4, 8),
        ("interleaved", 24, 96),
    ):
        recipe, svg = os.path.join(top, "r.yaml"), os.path.join(top, "p.svg")
        open(recipe, "w").write(
            DENSE
            % (
                4 * pp,
                pp,
                pp,
                "schedule: %s, vpp: %d" % (schedule, 2 if schedule == "interleaved" else 1),
                micro,
            )
        )
        moectl("plan", recipe, "--svg", svg)
        root = tree.parse(svg).getroot()
        words = [t.text for t in root.iter(SVG + "text")]
        need("pp %d" % (pp - 1) in words and "pp %d" % pp not in words, schedule)
        need(
            any(
                w.startswith("plan: %s, %d stages" % (schedule, pp))
                and "%d micro-batches" % micro in w
                for w in words
                if w
            ),
            words[:40],
        )
        for word in ("forward", "backward", "idle", "memory", "rank"):
            need(word in words, "%s: no %s" % (schedule, word))
        pieces = [
            r for r in root.iter(SVG + "rect") if re.match("[fbw][0-7]", r.get("class") or "")
        ]
        split = any(r.get("class").startswith("w") for r in pieces)
        equal(
            split,
            schedule in ("zb1p", "zbv", "v-half", "v-min", "dualpipe"),
            "weight gradients of their own with " + schedule,
        )
        need(
            len(pieces) >= 2 * pp * min(micro, 8)
            and {"0", str(micro // (2 if schedule == "dualpipe" else 1) - 1)} <= set(words),
            "%s: %d pieces" % (schedule, len(pieces)),
        )
        right = float(root.get("width"))
        need(
            all(
                0 <= float(r.get("x")) and float(r.get("x")) + float(r.get("width")) <= right
                for r in pieces
            ),
            schedule + ": pieces beside the picture",
        )


@in_directory
def pictures_go_where_they_are_told(top):
    svg = os.path.join(top, "p.svg")
    open(svg, "w").write("what was there")
    moectl("plan", SMALL, "--svg", svg)
    need(open(svg).read().startswith("<svg"), "not replaced")
    os.symlink("p.svg", os.path.join(top, "link"))
    moectl("plan", LARGE, "--svg", os.path.join(top, "link"))
    need(
        os.path.islink(os.path.join(top, "link")) and "pp 23" in open(svg).read(),
        "a link is written through",
    )
    fifo = os.path.join(top, "fifo")
    os.mkfifo(fifo)
    r = moectl("plan", SMALL, "--svg", fifo, check=False)
    need(r.returncode == 1 and fifo in r.stderr, "a pipe without a reader: %s" % r.stderr)
    got = []
    reader = threading.Thread(target=lambda: got.append(open(fifo).read()))
    reader.start()
    # until the reader has opened it
    while moectl("plan", SMALL, "--svg", fifo, check=False).returncode:
        pass
    reader.join()
    need(got[0].startswith("<svg") and os.path.exists(fifo), "through a pipe")
    for path in (top, os.path.join(top, "none/p.svg")):
        r = moectl("plan", SMALL, "--svg", path, check=False)
        need(r.returncode == 1 and path in r.stderr and r.stderr.count("\n") == 1, r.stderr)


@in_directory
def a_full_disk_is_reported(top):
    """A device of our own stands for it: where no node can be made, /dev/full does, which must stay
    what it is."""
    full = os.path.join(top, "full")
    try:
        os.mknod(full, 0o20666, os.makedev(1, 7))
        open(full, "rb").close()
    except PermissionError:
        full = "/dev/full"
    r = moectl("plan", SMALL, "--svg", full, check=False)
    need(r.returncode == 1 and "No space left" in r.stderr and not os.path.isfile(full), r.stderr)


@in_directory
def dumps(top):
    if os.path.isdir(DUMPS):
        expected = json.load(open(os.path.join(DUMPS, "expected_bubble_iter7.json")))
        for name, figures in expected.items():
            svg = os.path.join(top, name + ".svg")
            doc = json.loads(
                moectl(
                    "plan",
                    LARGE,
                    "--json",
                    "--pp-dump",
                    os.path.join(DUMPS, name),
                    "--pp-iteration",
                    "7",
                    "--svg",
                    svg,
                ).stdout
            )["measured_pipeline"]
            need(
                abs(doc["iter_time_s"] * 1000 - figures["iter_time_ms"]) < 0.1
                and len(doc["ranks"]) == len(figures["rows_f_b_bubble_mem"]),
                doc,
            )
            text = open(svg).read()
            need(
                "plan: interleaved, 24 stages" in text and "run: 8 stages" in text,
                "both pipelines are drawn",
            )
    write = lambda name, text: open(os.path.join(top, name), "w").write(text)
    write("config.json", '{"pp_size":2,"vp_size":1,"num_mbs":1}')
    write("pp_rank_0.json", '{"1":{"total":10,"fwd_start":[0],"fwd_end":[5]}}')
    for rank, says in (
        (None, "pp_rank_1.json: No such file"),
        ("{", "pp_rank_1.json: JSON"),
        ("[]", "pp_rank_1.json: no iteration 1"),
        (
            '{"1":{"total":10,"fwd_start":[0,1],"fwd_end":[5]}}',
            "pp_rank_1.json: 2 times in fwd_start",
        ),
        ('{"1":{"total":10,"fwd_start":[7],"fwd_end":[5]}}', "ends before it starts"),
        ('{"1":{"total":10,"fwd_start":["x"],"fwd_end":[1e400]}}', "pp_rank_1.json"),
    ):
        if rank:
            write("pp_rank_1.json", rank)
        r = moectl("plan", SMALL, "--pp-dump", top, check=False)
        need(
            r.returncode == 2 and says in r.stderr and r.stderr.count("\n") == 1,
            "%s: %s" % (rank, r.stderr),
        )
    for kind, make in (
        ("a pipe", os.mkfifo),
        ("a link to itself", lambda p: os.symlink("pp_rank_1.json", p)),
        ("a directory", os.mkdir),
    ):
        path = os.path.join(top, "pp_rank_1.json")
        os.unlink(path) if os.path.lexists(path) and not os.path.isdir(path) else None
        make(path)
        r = moectl("plan", SMALL, "--pp-dump", top, check=False, timeout=60)
        need(r.returncode == 2 and "pp_rank_1.json" in r.stderr, "%s: %s" % (kind, r.stderr))


@in_directory
def anchors_that_are_none(top):
    path = os.path.join(top, "a.json")
    import yaml

    recipe = yaml.safe_load(open(SMALL))
    for measured, says in (
        ({"step_time_s": 1e308}, "1 of 1 runs"),
        ({"step_time_s": 1e-300, "memory_gb": 1}, "1 of 1 runs"),
        ({"step_time_s": -1}, "no run in"),
        ({"step_time_s": 0}, "no run in"),
        ({"step_time_s": "NaN"}, "no run in"),
        ({}, "no run in"),
    ):
        json.dump(
            {"anchor": 1, "runs": [{"recipe": recipe, "measured": measured}]}, open(path, "w")
        )
        r = moectl("plan", SMALL, "--anchor", path, "--json")
        need(
            says in r.stderr and r.stdout == moectl("plan", SMALL, "--json").stdout,
            "%s: %s" % (measured, r.stderr),
        )


@in_directory
def too_many_anchors(top):
    path = os.path.join(top, "a.json")
    json.dump({"anchor": 1, "runs": [{"recipe": {}, "measured": {}}] * 501}, open(path, "w"))
    r = moectl("plan", SMALL, "--anchor", path, check=False)
    need(
        r.returncode == 2 and "501 runs; more than 500" in r.stderr and r.stderr.count("\n") == 1,
        r.stderr,
    )


@in_directory
def documented_commands(top):
    """Every command with moectl plan in the documents runs as it is written."""
    os.symlink(os.path.join(ROOT, "config"), os.path.join(top, "config"))
    shutil.copy(SMALL, os.path.join(top, "recipe.yaml"))
    rows = "    1048576  262144  float  none  -1  100.0  10.0  10.0  0\n"
    open(os.path.join(top, "alltoall.txt"), "w").write(rows)
    open(os.path.join(top, "reduce.txt"), "w").write(rows)
    import yaml

    json.dump(
        {
            "anchor": 1,
            "runs": [{"recipe": yaml.safe_load(open(LARGE)), "measured": {"step_time_s": 9}}],
        },
        open(os.path.join(top, "runs.json"), "w"),
    )
    commands = []
    for name in [os.path.join(ROOT, "README.md")] + sorted(
        glob.glob(os.path.join(ROOT, "docs/*.md"))
    ):
        commands += [
            shlex.split(line, comments=True)
            for line in open(name)
            if re.match(r"\s*(build/)?moectl plan ", line)
        ]
    need(len(commands) >= 10, "only %d commands with moectl plan in the documents" % len(commands))
    for words in commands:
        if "--pp-dump" in words and not os.path.isdir(DUMPS):
            continue
        words = [os.path.join(DUMPS, "pp8") if w == "output/pp_data" else w for w in words[1:]]
        r = subprocess.run(
            [MOECTL] + words,
            cwd=top,
            env=clean_env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE * 120,
        )
        need(r.returncode == 0, "%s: %s" % (" ".join(words), r.stderr))


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
