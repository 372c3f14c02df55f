"""The reason of a failure is the first signal or error with its node, not the launcher's end."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rows import rows

from siteproof import nodesets
from siteproof.collect import cause

ENDS = Path(__file__).with_name("ends")
KNOWN = {  # signal, code, node, rank, memory, and what the reason holds
    "openmpi-4.1.4-out_of_memory": (9, 0, "node007", "1", False, ""),
    "openmpi-4.1.4-segv": (11, 0, "node007", "", False, ""),
    "openmpi-4.1.4-abort": (6, 0, "node007", "", False, ""),
    "openmpi-4.1.4-mpi_abort": (0, 5, "", "1", False, "MPI_Abort with code 5"),
    "openmpi-4.1.4-exception": (0, 0, "", "", False, "ValueError: no such file system"),
    "openmpi-4.1.4-exit_3": (0, 0, "", "", False, "cannot open input.dat: No such file"),
    "openmpi-4.1.4-no_library": (0, 0, "", "", False, "libbench_f.so: cannot open shared object"),
    "mpich-4.0.2-out_of_memory": (9, 0, "node007", "", False, ""),
    "mpich-4.0.2-segv": (11, 0, "node007", "", False, ""),
    "srun-22.05.8-segv": (11, 0, "node002", "1", False, ""),
    "srun-22.05.8-killed": (9, 0, "node002", "1", False, ""),
    "srun-22.05.8-exit_3": (0, 3, "node002", "1", False, "bench: cannot open input.dat"),
    "srun-22.05.8-exception": (0, 1, "node002", "1", False, "KeyError: 'missing'"),
    "srun-22.05.8-no_library": (0, 127, "node001", "0", False, "libbench_f.so: cannot open shared"),
    "srun-22.05.8-segv_and_trace": (11, 0, "node002", "", False, ""),
    "srun-22.05.8-scancel": (15, 0, "node002", "1", False, ""),
    "composed-srun-out_of_memory": (9, 0, "node003", "2-3", True, "Detected 1 oom_kill event"),
    "composed-srun-20.11-out_of_memory": (9, 0, "node-01-03", "4", True, "oom-kill event"),
    "composed-srun-memory_limit": (9, 0, "node002", "", True, "exceeded memory limit"),
    "composed-intel-2021-killed": (9, 0, "node009", "6", False, ""),
    "composed-openmpi-5-killed": (9, 0, "node004", "2", False, ""),
    "composed-mpich-exit_139": (11, 0, "node012", "", False, ""),
    "composed-ior-no_space": (0, 255, "node002", "3", False, "errno 28, No space left on device"),
    "composed-shell-killed": (9, 0, "", "", False, "Killed python3 main.py"),
}
LAUNCHERS = ("noticed that", "CANCELLED", "Primary job", "BAD TERMINATION", "Terminated", "----")


def read(name):
    return (ENDS / f"{name}.txt").read_text()


def test_every_recorded_end_is_known():
    assert {path.stem for path in ENDS.glob("*.txt")} == set(KNOWN)


@rows("name", KNOWN)
def test_the_first_signal_or_error_is_found_with_its_node(name):
    number, code, node, rank, memory, words = KNOWN[name]
    found = cause.first(read(name))
    assert (found.signal, found.code, found.node, found.rank) == (number, code, node, rank)
    assert found.memory == memory
    assert words in found.words


@rows("name", [name for name, known in KNOWN.items() if known[-1]])
def test_the_reason_is_not_what_the_launcher_says_of_itself(name):
    told = cause.message("", read(name))
    assert KNOWN[name][-1] in told
    assert not any(word in told for word in LAUNCHERS)


@rows("text", ["", "\n", "step 3 of 9\n", "0 errors\n", "no error\n"])
def test_an_output_without_signal_or_error_has_no_cause(text):
    assert cause.first(text) is None


def test_without_a_cause_the_last_words_are_told_errors_first():
    assert cause.message("said on stdout", "") == "said on stdout"
    assert cause.message("said on stdout", "oh\nwell") == "oh well"
    assert cause.message("", " ") == ""


def test_what_a_launcher_has_ended_is_no_cause_where_a_rank_says_more():
    text = "srun: error: n1: task 0: Killed\n"
    assert cause.first(f"bench: cannot write\n{text}").signal == 0
    assert cause.first(text).signal == 9


def test_a_fault_goes_before_the_errors_of_the_ranks_that_lost_it():
    text = "MPI error: lost connection\nsrun: error: n[2-3]: tasks 1-2: Bus error (core dumped)\n"
    assert (cause.first(text).signal, cause.first(text).node) == (7, "n[2-3]")


def test_srun_names_the_nodes_whose_task_died_and_not_those_that_were_asked_to_end():
    found = cause.ended_by_slurm(
        "srun: error: n[1-2]: tasks 0-1: Out Of Memory\nsrun: error: n3: task 2: Killed\n"
        "srun: error: n4: task 3: Terminated\nsrun: error: n5: task 4: Exited with exit code 1\n"
        "srun: error: n[6-: task 5: Killed\n"
    )
    assert {node: (c.signal, c.memory) for node, c in found.items()} == {
        "n1": (9, True),
        "n2": (9, True),
        "n3": (9, False),
    }


@given(st.lists(st.sampled_from([line for name in KNOWN for line in read(name).splitlines()])))
def test_lines_in_any_order_are_read(lines):
    text = "\n".join(lines)
    found = cause.first(text)
    assert found is None or isinstance(found.signal, int)
    assert len(cause.message("", text)) <= 2 * cause.TAIL
    assert "\n" not in cause.message("", text)


@given(st.text())
def test_any_text_is_read(text):
    assert all(c.isprintable() for c in cause.message(text, text[::-1]))
    cause.ended_by_slurm(text)


def test_a_huge_output_is_read_at_both_ends():
    text = "x\n" * 300_000 + "Traceback (most recent call last):\n  at\nOSError: gone\n"
    assert cause.message(text, "") == "OSError: gone"


def test_a_report_that_is_cut_short_still_says_what_it_was():
    rule, where = "=" * 80, "=   RANK 3 PID 17 RUNNING AT node007"
    box = f"{rule}\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n{where}\n"
    for text in (box, f"{box}=   something else\n{rule}\nKilled (signal 9)\n"):
        found = cause.first(text)
        assert (found.words, found.node, found.rank) == ("a rank ended badly", "node007", "3")
    for text in ("", "  File x\n", "  File x\n\n    y\n"):
        found = cause.first(f"Traceback (most recent call last):\n{text}")
        assert found.words == "a Python exception", text


def test_of_a_text_without_end_the_beginning_and_the_end_are_read(monkeypatch):
    monkeypatch.setattr(cause, "MAX_TEXT", 1000)
    filling = f"{'x' * 5000}\n"
    hidden = f"{filling}error: hidden\n{filling}"
    assert cause.first(hidden) is None
    assert cause.first(f"error: begin\n{hidden}").words == "error: begin"
    assert cause.first(f"{hidden}error: end\n").words == "error: end"


def test_a_list_of_nodes_is_not_read_again_and_again(monkeypatch):
    asked = []
    parse = nodesets.parse
    monkeypatch.setattr(nodesets, "MAX_NODES", 100)
    monkeypatch.setattr(nodesets, "parse", lambda text: asked.append(text) or parse(text))
    lines = [f"srun: error: n[1-40]: task {n}: Segmentation fault" for n in range(50)]
    assert len(cause.ended_by_slurm("\n".join(lines))) == 40
    assert len(asked) == 3
