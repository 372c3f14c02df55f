"""What others call a unit, and what it is called here."""

from siteproof import units
from siteproof.record import samples


def test_units_have_their_names_here_or_none():
    for printed, name in (
        ("MB/s", "MB/s"),
        ("GB/sec", "GB/s"),
        ("MBytes/sec", "MB/s"),
        ("KB/s", "kB/s"),
        ("GiB/s", "GiB/s"),
        ("Gbps", "Gb/s"),
        ("Mbit/s", "Mbit/s"),
        ("Gflop/s", "GFLOPS"),
        ("GFlops/s", "GFLOPS"),
        ("GFLOPS", "GFLOPS"),
        ("Gflops/seconds", "GFLOPS"),
        ("usec", "us"),
        ("\u00b5s", "us"),
        ("seconds", "s"),
        ("%", "%"),
        ("iterations", ""),
        ("days/ns", "days/ns"),
        ("ns/d", "ns/day"),
        ("tokens/sec", "tokens/s"),
        ("turns/sec", ""),
        ("ns", "ns"),
        ("turns", ""),
        ("text", ""),
        ("", ""),
        ("Gflop", ""),
        ("mB/s", ""),
    ):
        assert samples.known_unit(printed) == name, (printed, name)
        assert name == "" or name in units.UNITS, (printed, name)
