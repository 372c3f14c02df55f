"""`siteproof sweep`: tables, sentences, what is missing by name, exit codes, figure."""

import re
from dataclasses import replace

import pytest
import sweeps_made
from sweeps_made import failed, of

from siteproof.curves import sweep_runs
from siteproof.record import manifest, samples


def write_rate(tasks, per_node):
    return min(104 * tasks, 3328)


def read_rate(tasks, per_node):
    return 75 * tasks


@pytest.fixture
def swept(world, monkeypatch):
    """A world with a sweep; `keep` writes samples, `ask` runs the command."""

    def keep(found):
        for name in {samples.file_name(s.header) for s in found}:
            mine = [s for s in found if samples.file_name(s.header) == name]
            samples.write(world.data / "perflogs", mine[0].header, mine)

    world.data.mkdir()
    sweeps_made.write_site(world.sites)
    world.file = sweeps_made.write_sweep(world.folder / "sweeps", monkeypatch)
    world.keep = keep
    world.ask = lambda *words, name="made_tasks": world.inside(
        "sweep",
        *([name] if name else []),
        "--system",
        "here",
        *words,
        SITEPROOF_SWEEPS=str(world.folder / "sweeps"),
    )
    return world


BOTH = {"Ior.write": write_rate, "Ior.read": read_rate}


def test_a_finished_sweep_is_exit_code_0_and_says_all(swept):
    swept.keep(of(swept.file, BOTH))
    done = swept.ask()
    assert (done.code, done.err) == (0, "")
    assert "session s0001: 33 of 33 points" in done.out
    lines = [line.strip() for line in done.out.splitlines()]
    assert (
        "Ior.write [best of all]: highest 3328 MiB/s at 32 tasks (median of 3), 104 a task "
        "against 104 of one; plateau from 32 tasks on, the first within 5 % of it; a rising and a "
        "flat line meet at 32 tasks"
    ) in lines
    assert (
        "Ior.read [best of all]: highest 37350 MiB/s at 498 tasks (median of 3), 75 a task against "
        "75 of one; plateau not reached: >498 tasks, the last doubling gained 100 %"
    ) in lines
    assert (
        "Ior.write [best of all]: 34.9 % of the model's bound, the link of 2 servers (9537 MiB/s)"
    ) in lines
    assert (
        "Ior.write: 3 tasks a node lose at most 5 % against one, with the same nodes: "
        "2 a node 0 %, 3 a node 0 %"
    ) in lines


def test_a_rate_above_its_bound_is_suspicious(swept):
    swept.keep(of(swept.file, BOTH))
    told = swept.ask().out
    assert "392 % of the model's bound, the link of 2 servers (9537 MiB/s)" in told
    assert (
        "Ior.read [best of all]: at 498 tasks 392 % of the link of 2 servers, more than it can "
        "carry: the bound is wrong, or the value comes from a cache"
    ) in told
    assert "392 % (above it)" in " ".join(told.split())


def test_the_table_has_range_number_and_a_tasks_part(swept):
    swept.keep(of(swept.file, {"Ior.write": write_rate}, cv=0.02))
    row = next(line for line in swept.ask().out.splitlines() if re.match(r" *1 +128 ", line))
    assert row.split() == ["1", "128", "3342", "3232", "3358", "3", "26.11", *("35", "%")]


def test_missing_points_are_named_and_are_exit_code_3(swept):
    swept.keep(of(swept.file, BOTH, points=range(1, 32)))
    done = swept.ask()
    assert done.code == 3
    assert "31 of 33 points" in done.out
    assert "missing: tasks=332 tasks_per_node=2 trial=3" in done.out
    assert "next: reframe -c sweeps/ -n '^MadeTasks%.*=scratch$' -r -S resume=s0001" in done.out


@pytest.mark.parametrize(
    ("status", "word", "code"), [("timeout", "failed", 1), ("interrupted", "not measured", 3)]
)
def test_a_failed_point_is_named_and_an_interrupted_one_is_no_failure(swept, status, word, code):
    swept.keep([*of(swept.file, BOTH, points=range(1, 33)), failed(swept.file, 33, status)])
    done = swept.ask()
    assert done.code == code
    assert "32 of 33 points" in done.out
    assert f"{word}: tasks=498 tasks_per_node=3 trial=3: {status}: because" in done.out


def test_a_resumed_session_and_the_one_before_are_one_run(swept):
    swept.keep([*of(swept.file, BOTH, points=range(1, 20)), failed(swept.file, 20)])
    swept.keep(of(swept.file, BOTH, run=2, points=range(20, 34), resumes=1))
    done = swept.ask()
    assert done.code == 0, done
    assert "session s0001, resumed by s0002: 33 of 33 points" in done.out
    assert swept.ask("--session", "s0001").out == done.out


def test_one_session_may_resume_several_sweeps_each_of_its_own_session(swept):
    first = of(swept.file, BOTH, points=range(1, 20))
    rest = of(swept.file, BOTH, run=2, points=range(20, 34), resumes=1)
    other = [
        replace(
            s,
            header=replace(
                s.header,
                conditions={**s.header.conditions, "sweep": "other"},
                provenance={"resumes": "s0003"},
            ),
        )
        for s in rest
    ]
    assert {run.name: run.sessions for run in sweep_runs.collect([*first, *rest, *other])} == {
        "made_tasks": ("s0001", "s0002"),
        "other": ("s0002",),
    }


def test_size_classes_are_one_sweep(swept):
    swept.keep(of(swept.file, BOTH, points=range(1, 20), job="1"))
    swept.keep(of(swept.file, BOTH, points=range(20, 34), job="2"))
    assert "33 of 33 points" in swept.ask().out


def test_the_newest_run_counts_unless_another_is_asked_for(swept):
    swept.keep(of(swept.file, BOTH, campaign="old"))
    swept.keep(of(swept.file, {"Ior.write": lambda t, k: 7.0}, run=2))
    assert "highest 7 MiB/s" in swept.ask().out
    for words in (("--session", "s0001"), ("--campaign", "old")):
        done = swept.ask(*words)
        assert "highest 3328 MiB/s" in done.out
        assert "highest 7 MiB/s" not in done.out


def test_each_file_system_is_a_run_of_its_own(swept):
    swept.keep(
        [
            *of(swept.file, {"Ior.write": lambda t, k: 5.0}, job="1"),
            *of(swept.file, {"Ior.write": lambda t, k: 6.0}, place="work", job="2"),
        ]
    )
    out = swept.ask().out
    assert "compute system scratch, session s0001: 33 of 33 points" in out
    assert "compute system work, session s0001: 33 of 33 points" in out
    assert "highest 5 MiB/s at 1 task" in out
    assert "highest 6 MiB/s at 1 task" in out


def test_a_disk_of_ones_own_is_bound_by_no_network(swept):
    swept.keep(of(swept.file, BOTH, place="work"))
    assert "bound" not in swept.ask().out.replace("of the bound", "")


def test_a_sweep_file_that_has_changed_tells_no_completeness(swept):
    swept.keep(of(swept.file, BOTH))
    path = swept.folder / "sweeps" / "made_tasks.yaml"
    path.write_text(sweeps_made.TASKS.replace("498", "495"))
    done = swept.ask()
    assert done.code == 3
    assert "33 points; the file of sweep made_tasks was removed or has changed since" in done.out
    assert "plateau from 32 tasks on" in done.out
    path.unlink()
    gone = swept.ask()
    assert (gone.code, "plateau from 32 tasks on" in gone.out) == (3, True)


def test_points_that_the_partition_is_too_small_for_are_left_out_by_name(swept):
    path = swept.sites / "here" / "system.yaml"
    path.write_text(path.read_text().replace("n[001-166]", "n[001-128]"))
    fitting = [n for n, p in enumerate(swept.file.points, 1) if p.nodes <= 128]
    swept.keep(of(swept.file, BOTH, points=fitting))
    done = swept.ask()
    assert done.code == 0
    assert f"{len(fitting)} of {len(fitting)} points" in done.out
    assert "left out: 9 points of up to 166 nodes: partition compute has fewer, or they do not" in (
        done.out
    )


def test_points_that_a_run_says_it_could_not_measure_are_not_missing(swept):
    few = list(range(1, 4))
    others = f"4-{len(swept.file.points)}"
    swept.keep(of(swept.file, BOTH, points=few, provenance={"points": "3", "left_out": others}))
    done = swept.ask()
    assert "3 of 3 points" in done.out
    assert (done.code, f"left out: {len(swept.file.points) - 3} points" in done.out) == (0, True)


def test_numbers_that_are_no_points_are_one_line(swept):
    for wrong in ("4-99999999999", "x", "3-1"):
        swept.keep(of(swept.file, BOTH, provenance={"points": "3", "left_out": wrong}))
        done = swept.ask()
        assert (done.code, len(done.err.splitlines())) == (2, 1), wrong


def test_starved_ranks_are_told(swept):
    swept.keep(
        of(
            swept.file,
            {
                "Ior.write": write_rate,
                "Ior.write_slowest": lambda t, k: 10.0 if t < 64 else 2.0,
                "Ior.write_fastest": lambda t, k: 11.0,
            },
        )
    )
    out = swept.ask().out
    assert (
        "Ior.write: ranks differ at 64 tasks: the slowest has 18.2 % of the fastest's rate" in out
    )
    assert "Ior.write_slowest" not in out


def test_two_runs_stand_beside_each_other(swept):
    swept.keep(of(swept.file, BOTH))
    swept.keep(of(swept.file, {"Ior.write": lambda t, k: 2.0 * write_rate(t, k)}, run=2))
    target = swept.folder / "two.svg"
    done = swept.ask("--with", "s0001", "--figure", target)
    assert "highest 6656 MiB/s" in done.out
    assert "highest 3328 MiB/s" in done.out
    for name in ("s0001, tasks_per_node 1", "s0002, tasks_per_node 1"):
        assert f">{name}" in target.read_text()


def test_a_run_of_another_system_stands_beside_and_decides_nothing(swept):
    other = swept.sites / "there"
    other.mkdir()
    for path in (swept.sites / "here").iterdir():
        (other / path.name).write_text(
            path.read_text()
            .replace("system: here", "system: there")
            .replace("{fallback: true}", "{hostname: there}")
        )
    swept.keep(of(swept.file, BOTH))
    swept.keep(
        of(swept.file, {"Ior.write": lambda t, k: 7.0}, points=range(1, 30), run=5, system="there")
    )
    done = swept.ask("--with", "there:s0005", "--figure", swept.folder / "both.svg")
    assert done.code == 0, done
    assert "there: compute system scratch, session s0005: 29 of 33 points" in done.out
    drawn = (swept.folder / "both.svg").read_text()
    for name in ("here s0001, tasks_per_node 1", "there s0005, tasks_per_node 1"):
        assert f">{name}" in drawn


def test_a_figure_is_the_same_bytes_each_time_and_has_its_texts(swept):
    swept.keep(of(swept.file, BOTH, cv=0.02))
    files = []
    for name in ("a.svg", "b.svg"):
        assert swept.ask("--figure", swept.folder / name).code == 0
        files.append((swept.folder / name).read_text())
    assert files[0] == files[1]
    for text in (
        "Ior.write, MiB/s",
        "tasks",
        "plateau 32 tasks",
        "plateau &gt;498 tasks",
        "bound: at the end the link of 2 servers, 9537 MiB/s",
    ):
        assert f"{text}</text>" in files[0], text
    assert swept.ask("--figure", swept.folder / "c.png").code == 0
    assert (swept.folder / "c.png").read_bytes().startswith(b"\x89PNG")


def test_without_a_name_the_sweeps_are_listed_with_their_newest_run(swept):
    assert "made_tasks" in swept.ask(name="").out
    assert " none " in next(r for r in swept.ask(name="").out.splitlines() if "made_tasks" in r)
    swept.keep(of(swept.file, BOTH))
    done = swept.ask(name="")
    row = next(line for line in done.out.splitlines() if "made_tasks" in line)
    assert done.code == 0
    assert row.split()[:3] == ["made_tasks", "33", "s0001"]


def test_a_sweep_that_was_never_run_says_how_and_is_exit_code_3(swept):
    done = swept.ask()
    assert (done.code, done.out) == (
        3,
        "made_tasks: not measured yet: reframe -c sweeps/ -n MadeTasks -r\n",
    )


def test_rates_that_memory_may_have_made_are_called_cached(swept):
    made = of(swept.file, BOTH)
    swept.keep(made)
    assert "cached" not in swept.ask().out
    swept.keep([replace(s, own_conditions={**s.own_conditions, "cached": "yes"}) for s in made])
    assert "Ior.read, Ior.write: cached, as memory could hold" in swept.ask().out


def test_a_sweep_whose_first_points_nobody_has_collected_is_not_called_unmeasured(swept):
    stage = swept.data / "stage" / "S" / "made" / "MadeTasks_1a2b"
    stage.mkdir(parents=True)
    (stage / manifest.NAME).write_text("{}", encoding="utf-8")
    done = swept.ask()
    assert (done.code, done.out) == (
        3,
        "made_tasks: begun, and no point is collected yet: siteproof collect\n",
    )


WRONG = [
    (
        ["--figure", "a.pdf"],
        "--figure: 'a.pdf' is not a figure's file. Allowed: FILE.svg, FILE.png.",
    ),
    (["--session", "s9"], "--session: no run of the sweep in 's9'. Allowed: s0001."),
    (["--campaign", "x"], "--campaign: no run of the sweep in 'x'"),
    (["--with", "here:"], "--with: 'here:' names no session. Allowed: SESSION, SYSTEM:SESSION."),
]


def test_wrong_usage_is_one_line_and_exit_code_2(swept):
    swept.keep(of(swept.file, BOTH))
    for words, told in WRONG:
        done = swept.ask(*words)
        assert (done.code, done.out, done.err) == (2, "", f"siteproof: {told}\n"), words


def test_an_unknown_sweep_is_told_with_the_nearest(swept):
    done = swept.ask(name="made_task")
    assert done.code == 2
    assert "no sweep 'made_task' (did you mean 'made_tasks'?)" in done.err


def test_a_broken_sweep_file_is_told_by_its_line(swept):
    (swept.folder / "sweeps" / "made_tasks.yaml").write_text("tool: ior\n")
    done = swept.ask()
    assert done.code == 2
    assert "made_tasks.yaml:1: missing key 'description'" in done.err
