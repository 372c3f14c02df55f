"""Which group or node a matrix of pairs names, on made data of which the truth is known.

    python3 benchmarks/score_groups.py [--seed 4242] [--rounds 20]

Every pair of nodes has a value with normal noise, as in the rounds of Bisection. Planted are one or
two slow nodes; leaves (groups all of whose pairs are slow), uplinks (the pairs to other groups),
trunks (those between two groups); or nothing. Exact: all that was planted is named and no other
node or group; told: all that was planted is. Of a leaf either the group or all of its nodes count.
"""

from __future__ import annotations

import argparse
from itertools import combinations, product

import numpy as np

from siteproof.analysis.attribution import blame, over_groups

Pair = tuple[str, str]
SHAPES = ((4, 4), (4, 8), (8, 4), (8, 8))  # groups, and nodes of each
SPREADS = (0.02, 0.05)  # of the values of healthy pairs
LOSSES = (0.1, 0.3, 0.6)
PLANTED = (
    *("nothing", "1 node", "2 nodes", "1 leaf", "2 leaves", "1 uplink", "2 uplinks", "1 trunk"),
)


def main() -> None:
    """Print a row for each thing that is planted."""
    parser = argparse.ArgumentParser(description="Score the groups and nodes that matrix names.")
    parser.add_argument("--seed", type=int, default=4242)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    chance = np.random.default_rng(given.seed)
    print("| planted | groups | matrices | exact | told | with a false group | with a false node |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for planted, number in product(PLANTED, sorted({groups for groups, _ in SHAPES})):
        shapes = [shape for shape in SHAPES if shape[0] == number]
        scores = np.zeros(5, int)
        for case in product(shapes, SPREADS, LOSSES):
            for _ in range(given.rounds):
                scores += score(chance, planted, *case)
        matrices, *rest = scores.tolist()
        shares = " | ".join(f"{100 * n / matrices:.1f} %" for n in rest)
        print(f"| {planted} | {number} | {matrices} | {shares} |")


def score(
    chance: np.random.Generator, planted: str, shape: tuple[int, int], spread: float, loss: float
) -> tuple[int, int, int, int, int]:
    """One matrix; whether the answer is exact, told, with a false group, with a false node."""
    groups = {f"g{g}": [f"g{g}n{n}" for n in range(shape[1])] for g in range(shape[0])}
    home = {node: name for name, members in groups.items() for node in members}
    count, what = int(planted[0]) if planted[0].isdigit() else 0, planted.rpartition(" ")[2]
    of_nodes = what.startswith("node")
    choices = list(home) if of_nodes else list(groups)
    ends = 2 if what == "trunk" else count
    bad = {choices[i] for i in chance.choice(len(choices), ends, replace=False)} if count else set()

    def is_slow(a: str, b: str) -> bool:
        if of_nodes:
            return a in bad or b in bad
        if what == "trunk":
            return {home[a], home[b]} == bad
        touched = home[a] in bad or home[b] in bad
        return touched and (what.startswith("lea") or home[a] != home[b])

    values = {
        (a, b): 100 * (1 + spread * chance.standard_normal()) * (1 - loss if is_slow(a, b) else 1)
        for a, b in combinations(home, 2)
    }
    sets = [frozenset(members) for members in groups.values()]
    found = blame(values, "higher", groups=sets)
    of_groups = blame(over_groups(values, "higher", groups), "higher")
    named = {c.node for c in of_groups.culprits} if found.bad else set()
    trunks = {frozenset(pair) for pair in of_groups.links} if found.bad else set()
    nodes = {c.node for c in found.culprits}
    if of_nodes:
        told, false_group, false_node = bad <= nodes, bool(named or trunks), bool(nodes - bad)
    else:
        wanted = {frozenset(bad)} if what == "trunk" else set()
        groups_wanted = set() if what == "trunk" else bad
        leaves = bad if what.startswith("lea") else set()
        told = groups_wanted <= named and wanted <= trunks
        false_group = bool(named - groups_wanted or trunks - wanted)
        false_node = any(home[node] not in leaves for node in nodes)
    exact = told and not false_group and not false_node
    return 1, int(exact), int(told), int(false_group), int(false_node)


if __name__ == "__main__":
    main()
