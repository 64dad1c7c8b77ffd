#!/usr/bin/python3
"""Boots a machine, says so, and keeps it until its input ends: what test_interrupted.py interrupts.
Usage, by tests/booted/run: hold.py DIR."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from machines import Machine, Network  # noqa: E402

work = os.path.join(os.path.abspath(sys.argv[1]), "machines")
os.makedirs(work, exist_ok=True)
Network(work)
machine = Machine(work, os.path.join(os.path.abspath(sys.argv[1]), "base"), "held", "10.77.0.9", ())
machine.boot()
print("up", flush=True)
sys.stdin.read()
machine.off()
