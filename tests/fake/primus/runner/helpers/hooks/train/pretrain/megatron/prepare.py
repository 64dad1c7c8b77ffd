"""Stands for the preparation of Primus' Megatron backend: data from a hub, with a token, unless it
is mock data; the helper of data sets, built where Megatron lies; the same lines at the end."""
import argparse
import os
import subprocess
import sys
import time
import urllib.request

parser = argparse.ArgumentParser()
for name in ("config", "data_path", "patch_args", "backend_path", "mock_data"):
    parser.add_argument("--" + name)
args, _ = parser.parse_known_args()
megatron = os.path.abspath(args.backend_path or "third_party/Megatron-LM")
with open(args.config) as f:
    mock = (args.mock_data or ("true" if "mock_data: true" in f.read() else "false")) == "true"
if mock:
    print("'mock_data: true', Skipping dataset preparation.", file=sys.stderr)
else:
    prefix = os.path.join(
        os.path.abspath(args.data_path), "bookcorpus/stand-in/bookcorpus_text_sentence"
    )
    if os.environ["NODE_RANK"] == "0" and not os.path.exists(prefix + ".done"):
        if not os.environ.get("HF_TOKEN"):
            sys.exit("[ERROR] Environment variable HF_TOKEN must be set.")
        os.makedirs(os.path.dirname(prefix), exist_ok=True)
        request = urllib.request.Request(
            os.environ["HF_ENDPOINT"] + "/bookcorpus",
            headers={"Authorization": "Bearer " + os.environ["HF_TOKEN"]},
        )
        with urllib.request.urlopen(request) as answer, open(prefix + ".bin", "wb") as f:
            f.write(answer.read())
        open(prefix + ".done", "w").close()
    while not os.path.exists(prefix + ".done"):
        time.sleep(0.1)
    print("extra.train_data_path=" + prefix)
print("extra.backend_path=" + megatron)
sys.exit(
    subprocess.run(["make", "-C", os.path.join(megatron, "megatron/core/datasets")]).returncode
)
