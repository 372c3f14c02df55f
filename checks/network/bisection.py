"""Bandwidth between the halves of a partition, and of all pairs of nodes while others are measured.

Effective bisection bandwidth: Hoefler, Schneider and Lumsdaine, Multistage Switches are not
Crossbars (2008). Every node of a round exchanges data with another one, all at once.
"""

import reframe as rfm

from siteproof.checks import TogetherCheck
from siteproof.parsers import mpi_together
from siteproof.sites import pairs


@rfm.simple_test
class Bisection(TogetherCheck):
    """Rounds between the first half of the nodes and the second; then those of all pairs.

    Of more than some 60 nodes only as many rounds of all pairs as one result may hold.
    """

    descr = "Bandwidth between the halves of a partition, and of all pairs in rounds"
    tool = "bisection"
    script = "bisection.sh"
    features = ("mpi4py",)
    parsers = {"mpi4py": mpi_together}
    derive = "network.bisection"
    metrics = ("bandwidth", "pair")
    headline = ("bandwidth",)
    iterations_of = {"quick": 5, "maintenance": 20, "acceptance": 100}

    size = 2**20  # bytes of a message
    shifts = 8  # rounds between the halves
    most_pairs = 1900

    def rounds(self, tasks: int) -> str:
        """All rounds of so many ranks, as the program reads them."""
        ranks = [str(rank) for rank in range(tasks)]
        every = pairs.Circle(tuple(ranks), frozenset(ranks), frozenset(ranks))
        kinds = {
            "across": pairs.across(ranks, self.shifts),
            "all": every[: self.most_pairs // max(1, tasks // 2)],
        }
        return "/".join(
            " ".join([kind, *map(":".join, together)])
            for kind, rounds in kinds.items()
            for together in rounds
        )

    def settings(self) -> dict[str, str]:
        """The size, and the rounds of each number of ranks."""
        counts = {point.tasks for point in self.points.values()}
        rounds = {f"ROUNDS_{count}": self.rounds(count) for count in sorted(counts)}
        return {**super().settings(), "SIZE": str(self.size), **rounds}
