"""All ranks of MPI at once, by mpi4py and nothing else. Runs on nodes, also with Python 3.6.

    mpi_together.py collective NAME SMALLEST LARGEST ITERATIONS
    mpi_together.py congestion ITERATIONS BULK LOAD
    mpi_together.py rounds SIZE ITERATIONS ROUNDS

collective: the mean time over the ranks, as OSU has it, of each size (bytes), twice the one before.
congestion: messages of 8 and of BULK bytes between two ranks and back, while the others rest, and
while each of these exchanges LOAD bytes with each (Chunduri and others, GPCNeT, SC19).
rounds: SIZE bytes both ways between the pairs of a round, all at once; ROUNDS is such as
`across 0:2 1:3/all 0:3 1:2`.

What arrived is compared with what is known; siteproof/parsers/mpi_together.py has the format.
"""

# ruff: noqa: T201, UP006, UP035
import sys
import time
from array import array
from typing import Callable, Iterator, Tuple

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.Get_rank(), WORLD.Get_size()
WARM_UP = 2
BLOCKS = 3  # of rest and of load in turn, so that neither has the better half of the time
REST = 0.002  # seconds between two looks of a rank that rests, and so leaves its core to others
TOLD = 7  # tag of the messages that begin and end a load
PERIOD = bytes(range(251))


def known(key: int, size: int) -> bytearray:
    """Bytes that differ by key and by place."""
    first = key % len(PERIOD)
    return bytearray(((PERIOD[first:] + PERIOD[:first]) * (size // len(PERIOD) + 1))[:size])


def raw(buffer: bytearray) -> "list[object]":
    """A buffer as mpi4py takes it."""
    return [buffer, MPI.BYTE]


# An operation, the buffer of its result, and what has to be in it.
Operation = Tuple[Callable[[], None], bytearray, bytearray]
Row = Tuple[str, float, str, str, int]  # metric, value, unit, its place; how many are wrong


def allreduce(size: int) -> Operation:
    """Sums of whole numbers of 8 bytes."""
    send = bytearray(array("q", [(RANK + 1) * (i % 7 + 1) for i in range(size // 8)]).tobytes())
    total = RANKS * (RANKS + 1) // 2
    wanted = bytearray(array("q", [total * (i % 7 + 1) for i in range(size // 8)]).tobytes())
    result = bytearray(size)
    both = [send, MPI.INT64_T], [result, MPI.INT64_T]
    return lambda: WORLD.Allreduce(*both, op=MPI.SUM), result, wanted


def alltoall(size: int, group: MPI.Comm = WORLD) -> Operation:
    """From each to each a block of its own."""
    own, every = group.Get_rank(), range(group.Get_size())
    send = bytearray().join([known(13 * own + 31 * to, size) for to in every])
    wanted = bytearray().join([known(13 * of + 31 * own, size) for of in every])
    result = bytearray(len(wanted))
    return lambda: group.Alltoall(raw(send), raw(result)), result, wanted


def allgather(size: int) -> Operation:
    """From each to all a block."""
    send, result = known(RANK, size), bytearray(size * RANKS)
    wanted = bytearray().join([known(rank, size) for rank in range(RANKS)])
    return lambda: WORLD.Allgather(raw(send), raw(result)), result, wanted


def bcast(size: int) -> Operation:
    """From rank 0 to all."""
    wanted = known(1, size)
    result = wanted if RANK == 0 else bytearray(size)
    return lambda: WORLD.Bcast(raw(result), 0), result, wanted


def barrier(_: int) -> Operation:
    """Nothing is sent."""
    return WORLD.Barrier, bytearray(), bytearray()


COLLECTIVES = {each.__name__: each for each in (allreduce, alltoall, allgather, bcast, barrier)}


def collective(name: str, least: str, most: str, turns: str) -> Iterator[Row]:
    """Yield the row of each size, and whether a message was wrong."""
    size, iterations = int(least), int(turns)
    while size <= int(most):
        operation, result, wanted = COLLECTIVES[name](size)
        spent = 0.0
        for turn in range(WARM_UP + iterations):
            WORLD.Barrier()
            begin = MPI.Wtime()
            operation()
            spent += MPI.Wtime() - begin if turn >= WARM_UP else 0.0
        if result is not wanted:
            result[:] = bytes(len(result))
        operation()
        wrong = WORLD.allreduce(int(result != wanted))
        mean = WORLD.allreduce(spent) / RANKS / iterations
        if name == "barrier":
            yield "barrier", mean * 1e6, "us", "", wrong
            return
        yield name, mean * 1e6, "us", f"size={size}", wrong
        size *= 2


def quantile(values: "list[float]", share: float) -> float:
    """The value that so large a share of all does not exceed."""
    return sorted(values)[max(0, -int(-len(values) * share // 1) - 1)]


def tell(rank: int) -> None:
    """That a load is there, or no longer wanted."""
    WORLD.Send(raw(bytearray(1)), rank, TOLD)


def congestion(turns: str, large: str, each: str) -> Iterator[Row]:
    """Yield the rows of rank 0, and whether a message was wrong."""
    bulk, ends = int(large), (0, RANKS // 2)
    others = [rank for rank in range(RANKS) if rank not in ends]
    group = WORLD.Split(int(RANK in ends), RANK)
    found: dict[str, dict[int, list[float]]] = {no: {8: [], bulk: []} for no in ("no", "yes")}
    wrong, rate = 0, 0.0
    for load in ("no", "yes") * BLOCKS:
        WORLD.Barrier()
        if RANK in ends:
            wrong += measure(ends, others, load == "yes", int(turns), found[load])
        elif load == "yes":
            bad, moved = exchange(group, int(each), others[0] == RANK)
            wrong, rate = wrong + bad, rate + moved / BLOCKS
        else:
            rest()
    wrong, rate = WORLD.allreduce(wrong), WORLD.allreduce(rate)
    for load, times in found.items() if RANK == 0 else ():
        where = "load=" + load
        yield "latency", quantile(times[8], 0.5) * 1e6, "us", where, wrong
        yield "latency_p99", quantile(times[8], 0.99) * 1e6, "us", where, wrong
        yield "bandwidth", bulk / quantile(times[bulk], 0.5) / 1e6, "MB/s", where, wrong
    yield "moved", rate / 1e6, "MB/s", "", wrong


def measure(
    ends: "tuple[int, int]",
    others: "list[int]",
    loaded: bool,
    turns: int,
    times: "dict[int, list[float]]",
) -> int:
    """What both ends do, rank 0 from when the load is there; how many messages were wrong."""
    if RANK == 0 and loaded:
        WORLD.Recv(raw(bytearray(1)), others[0], TOLD)
    least = min(times)
    wrong = [
        trips(ends, size, turns if size == least else turns // 10 + 1, own)
        for size, own in times.items()
    ]
    if RANK == 0:
        for rank in others[:1] if loaded else others:
            tell(rank)
    return sum(wrong)


def rest() -> None:
    """Wait for rank 0, and load nothing."""
    over = WORLD.Irecv(raw(bytearray(1)), 0, TOLD)
    while not over.Test():
        time.sleep(REST)


def trips(ends: "tuple[int, int]", size: int, count: int, times: "list[float]") -> int:
    """Messages from the first end to the second and back; how many came back as others.

    times: at the first end gets half of each round trip, in seconds.
    """
    wrong, answer = 0, bytearray(size)
    for turn in range(WARM_UP + count):
        message = known(turn, size)
        if ends[1] == RANK:
            WORLD.Recv(raw(answer), ends[0])
            WORLD.Send(raw(answer), ends[0])
            continue
        begin = MPI.Wtime()
        WORLD.Send(raw(message), ends[1])
        WORLD.Recv(raw(answer), ends[1])
        if turn >= WARM_UP:
            times.append((MPI.Wtime() - begin) / 2)
        wrong += int(answer != message)
    return wrong


def exchange(group: MPI.Comm, size: int, leads: bool) -> "tuple[int, float]":
    """The load, until rank 0 ends it: whether the last message was wrong, and bytes/s received."""
    operation, result, wanted = alltoall(size, group)
    stop, turns = bytearray(1), 0
    over = WORLD.Irecv(raw(bytearray(1)), 0, TOLD) if leads else MPI.REQUEST_NULL
    begin = MPI.Wtime()
    while not stop[0]:
        operation()
        turns += 1
        if leads:
            if turns == 1:
                tell(0)
            stop[0] = over.Test()
        group.Bcast(raw(stop), 0)
    return int(result != wanted), turns * (len(result) - size) / (MPI.Wtime() - begin)


def rounds(size: str, turns: str, text: str) -> Iterator[Row]:
    """Yield a row of each pair: the rate of one direction while both are used."""
    for number, line in enumerate(text.split("/")):
        kind, *pairs = line.split()
        ends = [(int(a), int(b)) for a, b in (pair.split(":") for pair in pairs)]
        peer = dict(ends + [(b, a) for a, b in ends]).get(RANK, RANK)
        spent, bad = both_ways(peer, int(size), int(turns))
        wrong, times = WORLD.allreduce(bad), WORLD.allgather(spent)
        for a, b in ends:
            rate = int(size) * int(turns) / max(times[a], times[b]) / 1e6
            yield "pair", rate, "MB/s", f"kind={kind} round={number} a={a} b={b}", wrong


def both_ways(peer: int, size: int, turns: int) -> "tuple[float, int]":
    """The seconds that messages to and from a peer take, and whether the last one was wrong."""
    message, result = known(13 * RANK + 31 * peer, size), bytearray(size)
    begin = 0.0
    for turn in range(WARM_UP + turns):
        if turn == WARM_UP:
            WORLD.Barrier()
            begin = MPI.Wtime()
        if peer != RANK:
            WORLD.Sendrecv(raw(message), peer, recvbuf=raw(result), source=peer)
    spent = MPI.Wtime() - begin
    return spent, int(peer != RANK and result != known(13 * peer + 31 * RANK, size))


def main(mode: str, *words: str) -> None:
    """Print what rank 0 has."""
    count = 0
    if RANK == 0:
        print(f"# mpi_together {mode}, {RANKS} ranks", flush=True)
    for metric, value, unit, where, wrong in MODES[mode](*words):
        count += 1
        if RANK == 0 and wrong:
            print(f"wrong {metric} {where}", flush=True)
        elif RANK == 0:
            print(f"{metric} {value:.3f} {unit} {where}".rstrip(), flush=True)
    if RANK == 0:
        print(f"# end of {count} values", flush=True)


MODES: "dict[str, Callable[..., Iterator[Row]]]" = {
    "collective": collective,
    "congestion": congestion,
    "rounds": rounds,
}
if __name__ == "__main__":
    main(*sys.argv[1:])
