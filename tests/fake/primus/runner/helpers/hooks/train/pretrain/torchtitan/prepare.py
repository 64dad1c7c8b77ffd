"""Stands for the preparation of Primus' torchtitan backend: the tokenizer of a model, from a hub
with a token, unless it lies here already."""
import argparse
import os
import sys
import time
import urllib.request

parser = argparse.ArgumentParser()
for name in ("config", "data_path", "patch_args", "backend_path"):
    parser.add_argument("--" + name)
args, _ = parser.parse_known_args()
there = os.path.join(os.path.abspath(args.data_path), "torchtitan/stand-in")
if os.environ["NODE_RANK"] == "0" and not os.path.exists(there + "/tokenizer.json"):
    if not os.environ.get("HF_TOKEN"):
        sys.exit("[ERROR] HF_TOKEN not set. Please export HF_TOKEN before running prepare.")
    os.makedirs(there, exist_ok=True)
    request = urllib.request.Request(
        os.environ["HF_ENDPOINT"] + "/stand-in/tokenizer.json",
        headers={"Authorization": "Bearer " + os.environ["HF_TOKEN"]},
    )
    with urllib.request.urlopen(request) as answer, open(there + "/tokenizer.new", "wb") as f:
        f.write(answer.read())
    os.rename(there + "/tokenizer.new", there + "/tokenizer.json")
while not os.path.exists(there + "/tokenizer.json"):
    time.sleep(0.1)
print("extra.model.hf_assets_path=" + there)
