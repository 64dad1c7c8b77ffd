#!/usr/bin/python3
"""Experiments of an engine resolve to what the engine's own loader makes of them. Usage: test_experiments.py [TEST...]

tests/fixtures/primus holds a small tree of ours and what becomes of it; ../shared/data/primus, where it is, the vendor's own files and what the
vendor's own loader made of each."""
import gzip
import json
import os
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import BUILD, ROOT, Suite, equal, need

suite = Suite()
RESOLVE = os.path.join(BUILD, "tests/resolve/resolve")
SHARED = os.path.join(ROOT, "..", "shared/data/primus")
PREFIX = ["primus/cli/main.py", "train", "pretrain"]


def resolve(root, words, env=None):
    """The document, or the line on stderr."""
    command = [RESOLVE, root] + ["%s=%s" % pair for pair in sorted((env or {}).items())] + ["--"] + PREFIX + words
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, text=True)
    if r.returncode == 0:
        return json.loads(r.stdout)
    need(r.returncode == 2, "%s: status %d: %s" % (words, r.returncode, r.stderr[-500:]))
    need(r.stderr.count("\n") == 1 and r.stderr.strip(), "%s: not one line: %r" % (words, r.stderr))
    return r.stderr.strip()


def same(a, b):
    """Numbers by value; a truth value is no number, a text is no number."""
    if isinstance(a, bool) or isinstance(b, bool) or type(a) is str or type(b) is str:
        return type(a) is type(b) and a == b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    return a is None and b is None


def misplaced(root, got):
    """Keys whose place is no line that names them, as far as a line can."""
    texts, bad = {}, []
    for key, (file, line, word) in got["sources"].items():
        if word >= 0:
            continue
        path = got["files"][file]
        if path not in texts:
            texts[path] = open(os.path.join(root, path), encoding="utf-8").read().split("\n")
        if key.split(".")[-1] not in texts[path][line - 1]:
            bad.append("%s at %s:%d" % (key, path, line))
    return bad


class Count:
    def __init__(self):
        self.runs = self.good = self.keys = self.good_keys = 0
        self.bad = []

    def compare(self, name, expected, got):
        self.runs += 1
        if isinstance(got, str):
            self.keys += len(expected["merged"])
            self.bad.append("%s: refused: %s" % (name, got))
            return
        wrong = sorted(k for k in set(expected["merged"]) | set(got["merged"])
                       if k not in expected["merged"] or k not in got["merged"] or not same(expected["merged"][k], got["merged"][k]))
        self.keys += len(set(expected["merged"]) | set(got["merged"]))
        self.good_keys += len(set(expected["merged"]) | set(got["merged"])) - len(wrong)
        names = all(same(expected["meta"][k], got["names"].get(k)) for k in expected["meta"])
        module = expected["module"]["name"] == got["module"] and expected["module"]["framework"] == got["framework"]
        skipped = expected.get("skipped") or []
        if not wrong and names and module and skipped == got["skipped"]:
            self.good += 1
            return
        self.bad.append("%s: %s %s" % (name, ["%s: %r instead of %r" % (k, got["merged"].get(k, "nothing"), expected["merged"].get(k, "nothing")) for k in wrong[:4]],
                                       "" if names and module else "names or module: %s %s %s" % (got["names"], got["module"], got["framework"])))

    def refuse(self, name, expected, got):
        self.runs += 1
        if isinstance(got, str):
            self.good += 1
        else:
            self.bad.append("%s: loaded, but: %s" % (name, expected["error"]["text"]))

    def judge(self, what):
        print("%s: %d of %d runs, %d of %d keys" % (what, self.good, self.runs, self.good_keys, self.keys))
        need(not self.bad, "%s: %d differ\n%s" % (what, len(self.bad), "\n".join(self.bad[:12])))


def lines(name):
    with gzip.open(os.path.join(SHARED, name), "rt") as f:
        return [json.loads(line) for line in f]


def shared(test):
    if os.path.isdir(SHARED):
        suite.test(test)
    return test


@shared
def vendor_files():
    count = Count()
    for line in lines("merged-dev.jsonl.gz"):
        got = resolve(os.path.join(SHARED, "tree"), ["--config", line["file"]] + line["cli"], line["env"])
        name = "%s %s %s" % (line["file"], line["env"], line["cli"])
        if "error" in line:
            count.refuse(name, line, got)
        else:
            count.compare(name, line, got)
            if "files" in line and not isinstance(got, str):
                equal([f for f in got["files"] if "/platforms/" not in f], line["files"], "files of %s" % name)
                bad = misplaced(os.path.join(SHARED, "tree"), got)
                need(not bad, "%s: %s" % (name, bad[:5]))
    need(count.runs > 400, "only %d lines" % count.runs)
    count.judge("the vendor's files")


@shared
def made_files():
    count = Count()
    for line in lines("made-dev.jsonl.gz"):
        with tempfile.TemporaryDirectory() as root:
            os.symlink(os.path.abspath(os.path.join(SHARED, "tree/primus")), os.path.join(root, "primus"))
            for path, text in line["texts"].items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            got = resolve(root, ["--config", line["file"]] + line["cli"], line["env"])
        if "error" in line:
            count.refuse(line["file"], line, got)
        else:
            count.compare(line["file"], line, got)
    need(count.runs >= 60, "only %d lines" % count.runs)
    count.judge("made-up files")


WORDS = {"V": "8", "E": "", "N": "null", "S": "a b", "F": "1e-5", "Z": "007", "T": "True", "Q": "x:y"}


def one_key(text):
    """An experiment with this as its overrides, in a tree of its own."""
    return ("work_group: a\nuser_name: b\nexp_name: c\nworkspace: d\nmodules:\n  pre_trainer:\n    framework: m\n    config: none\n    model: none\n"
            "    overrides:\n%s" % text)


@shared
def words():
    """What becomes of a word: placeholders, YAML, the command line."""
    wrong, n = [], 0
    with tempfile.TemporaryDirectory() as root:
        for path in ("modules/m/none.yaml", "models/m/none.yaml"):
            os.makedirs(os.path.join(root, "primus/configs", os.path.dirname(path)))
            with open(os.path.join(root, "primus/configs", path), "w") as f:
                f.write("none: 1\n")
        os.symlink(os.path.abspath(os.path.join(SHARED, "tree/primus/configs/platforms")), os.path.join(root, "primus/configs/platforms"))
        for case in map(json.loads, open(os.path.join(SHARED, "coercion.jsonl"))):
            text, form, given, body = case["text"], case["form"], [], "      none: 2\n"
            if form == "placeholder":
                body = "      m: {k: %s}\n" % json.dumps(text)
            elif form == "yaml":
                body = "      m:\n        k:%s%s\n" % ("\n          " if ": " in text or text.startswith("- ") else " ", text)
            else:
                given = ["--k=" + text] if form == "cli" else shlex.split(text)
            with open(os.path.join(root, "e.yaml"), "w") as f:
                f.write(one_key(body))
            got = resolve(root, ["--config", "e.yaml"] + given if form != "argparse" else given + ["--config=e.yaml"][:"--exp " not in text], WORDS)
            n += 1
            if form == "argparse":
                # what is left when main took its own words: as overrides they are judged above
                left = resolve(root, ["--config", "e.yaml"] + case["value"]["left"], WORDS)
                want = "no such file" if case["value"]["config"] != "exp.yaml" else left
                good = want in got if isinstance(got, str) else got["merged"] == want["merged"]
            elif "error" in case:
                good = isinstance(got, str)
            elif isinstance(got, str):
                good = False
            elif form == "override":
                merged = {k: v for k, v in got["merged"].items() if k not in ("none", "model")}
                good = same(merged, flat(case["value"]))
            else:
                merged = {k: v for k, v in got["merged"].items() if k not in ("none", "model")}
                good = same(merged, flat({"k": case["value"]} if form == "cli" else {"m": {"k": case["value"]}}))
            if not good:
                wrong.append("%s: %s" % (case, got if isinstance(got, str) else got["merged"]))
    print("%d of %d words" % (n - len(wrong), n))
    need(not wrong, "\n".join(wrong[:20]))


def flat(value, prefix=""):
    if not isinstance(value, dict) or not value:
        return {prefix[1:]: value} if prefix else {}
    return {k: v for key in value for k, v in flat(value[key], "%s.%s" % (prefix, key)).items()}


@shared
def every_file_of_the_tree_is_read():
    """Those without an answer here too: none may be refused that is a whole experiment."""
    tree, refused, n = os.path.join(SHARED, "tree"), [], 0
    for directory, _, names in os.walk(os.path.join(tree, "examples")):
        for name in names:
            path = os.path.relpath(os.path.join(directory, name), tree)
            text = open(os.path.join(tree, path), encoding="utf-8").read()
            if not name.endswith(".yaml") or "modules:" not in text or "template" in name:
                continue
            n += 1
            got = resolve(tree, ["--config", path])
            if isinstance(got, str):
                refused.append("%s: %s" % (path, got))
    print("%d of %d experiments of the tree are read" % (n - len(refused), n))
    need(not refused, "\n".join(refused[:20]))


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
