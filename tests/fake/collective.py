#!/usr/bin/python3
"""Stands in for rccl-tests: the ranks of a job meet at MASTER_ADDR, and rank 0 prints what a
collective of theirs would have reached. Words: slow=NODE, hang=NODE, fail=NODE, wrong=NODE, and
slow=NODE+NODE for the link between two."""
import os
import socket
import sys
import time

GBS = 300.0


def row(size, gbs, wrong):
    print(
        "%12d %12d  float  sum  -1  80.1  13.09  %.2f  %d" % (size, size // 4, gbs, wrong),
        flush=True,
    )


def meet(rank, world, node):
    """Rank 0 gets the nodes of all."""
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if rank:
        while True:
            try:
                with socket.create_connection(address) as s:
                    s.sendall(node.encode())
                    s.shutdown(socket.SHUT_WR)
                    return s.recv(1) and {node}
            except ConnectionRefusedError:
                time.sleep(0.01)
    nodes, peers = {node}, []
    with socket.create_server(address) as s:
        while len(peers) < world - 1:
            peers.append(s.accept()[0])
            nodes.add(peers[-1].makefile().read())
        for peer in peers:
            peer.sendall(b".")
    return nodes


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    node = os.environ["MOE_STEP"].split(".")[2]
    ills = [w.split("=") for w in sys.argv[1:]]
    if ["hang", node] in ills:
        time.sleep(100000)
    if ["fail", node] in ills:
        sys.exit("Test NCCL failure common.cu:958 'unhandled system error'")
    nodes = meet(rank, world, node)
    if rank:
        return
    slow = any(kind == "slow" and set(who.split("+")) <= nodes for kind, who in ills)
    wrong = any(kind == "wrong" and who in nodes for kind, who in ills)
    for size in (1 << 20, 1 << 26):
        row(size, GBS * (1 if size > 1 << 20 else 0.5) / (5 if slow else 1), 3 * wrong)


main()
