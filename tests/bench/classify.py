#!/usr/bin/python3
"""How often `moectl classify` is right: on the logs of ../shared/data/engines/logs, whose manifest
says of each which class it is, and where it is from. The signatures were made with these at hand;
CLASSIFY_LOGS=DIR: others that nobody had seen, with such a manifest. One JSON line per figure, as
bench.py prints them; what was said of each log is in build/bench/classify.txt."""
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))
GIVEN = os.environ.get("CLASSIFY_LOGS")
LOGS = GIVEN or os.path.join(ROOT, "../shared/data/engines/logs")
RAW = os.path.join(BUILD, "bench/classify.txt")


def said(name):
    """Logs of kernels are called so."""
    source = "--kernel" if name.startswith("kernel") else "--log"
    command = [os.path.join(BUILD, "moectl"), "classify", source, os.path.join(LOGS, name)]
    answer = subprocess.run(command + ["--json"], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(answer)["class"]


def figure(metric, value, unit, n):
    line = {"bench": "classify", "metric": metric, "value": value, "unit": unit, "n": n}
    print(json.dumps({**line, "raw": os.path.relpath(RAW, ROOT)}))


def main():
    try:
        with open(os.path.join(LOGS, "manifest.json")) as f:
            logs = json.load(f)
    except OSError as e:
        sys.stderr.write("classify: no logs are judged: %s; set CLASSIFY_LOGS\n" % e)
        sys.exit(1 if GIVEN else 0)
    rows = [(said(log["file"]), log["expected_class"], log["file"]) for log in logs]
    os.makedirs(os.path.dirname(RAW), exist_ok=True)
    with open(RAW, "w") as f:
        f.writelines("%s %s %s\n" % row for row in rows)
    right = [got in wanted.split("_or_") for got, wanted, _ in rows]
    figure("right", round(sum(right) / len(rows), 4), "share", len(rows))
    cordons = [got == "node_fault" for got, wanted, _ in rows if wanted == "user_error"]
    figure("user errors taken for hardware", sum(cordons), "logs", len(cordons))


if __name__ == "__main__":
    main()
