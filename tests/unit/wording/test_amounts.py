"""How a value and a change are written, whatever the command."""

from siteproof.wording.findings import change, quantity, stated


def test_a_value_has_the_prefix_with_which_it_can_be_read():
    for value, unit, shown in (
        (8_712_076_343, "b/s", "8.712 Gb/s"),
        (5288.04, "MB/s", "5288 MB/s"),
        (61_032_000, "KiB", "58.2 GiB"),
        (0.000_004_2, "s", "4.2 us"),
        (0.000_61, "GB/s", "610 kB/s"),
        (1_234_567, "count", "1234567"),
        (0, "b/s", "0 b/s"),
        (3_000_000, "kJ/mol", "3000000 kJ/mol"),
    ):
        assert quantity(value, unit) == shown


def test_a_change_by_much_is_told_as_so_many_times():
    for share, shown in (
        (510.3, "511 times"),
        (1465, "1466 times"),
        (-0.0523, "-5.2 %"),
        (0.105, "+10.5 %"),
        (9.99, "+999.0 %"),
        (0.0001, "0 %"),
        (float("inf"), "from 0"),
    ):
        assert change(share) == shown


def test_a_limit_is_in_the_unit_and_digits_of_who_has_set_it():
    for value, unit, shown in (
        (2295, "GFLOPS", "2295 GFLOPS"),
        (177.385, "GB/s", "177.385 GB/s"),
        (8_500_000_000, "b/s", "8500000000 b/s"),
        (0.5, "", "0.5"),
    ):
        assert stated(value, unit) == shown
