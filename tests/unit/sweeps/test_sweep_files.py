"""Sweep files: every mistake in one line with its place, and what is allowed."""

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from random_cases import cases
from rows import rows

from siteproof.cli.lint import lint
from siteproof.errors import UserError, UserErrors
from siteproof.sweeps import reading

GOOD = """\
description: Rates against tasks
tool: ior
axes:
- {tasks: [1, 2, 4], tasks_per_node: [1], transfer: [64 KiB, 1 MiB]}
- {tasks: [8], tasks_per_node: [2], transfer: [1 MiB]}
fixed: {api: POSIX, layout: file_a_task, block: 1 GiB}
constraints: ['transfer <= block', 'tasks * block <= 4 GiB']
against: tasks
lines: tasks_per_node
repetitions: 3
order: ascending
point_limit: 5m
budget: 500 node-hours
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(reading.VARIABLE, str(tmp_path))
    monkeypatch.setattr(reading, "FOLDER", tmp_path)
    return tmp_path


def told(folder, text, name="mine"):
    """The mistakes of a sweep file, without the folder's name."""
    path = folder / f"{name}.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    _, documents = reading.examine()
    path.unlink()
    return [
        str(error).replace(f"{folder}/", "")
        for document in documents
        for error in document.sorted_mistakes()
    ]


def test_a_good_file_has_its_points_in_bytes(folder):
    (folder / "mine.yaml").write_text(GOOD)
    sweep = reading.load()["mine"]
    assert sweep.test == "Mine"
    assert [
        (p.tasks, p.tasks_per_node, p.nodes, p.values["transfer"]) for p in sweep.points[:6]
    ] == [(tasks, 1, tasks, str(size)) for tasks in (1, 2, 4) for size in (65536, 1048576)]
    assert len(sweep.points) == 3 * 6  # 8 tasks write more than 4 GiB
    assert sweep.points[0].own_dims == {"tasks": "1", "tasks_per_node": "1", "transfer": "65536"}
    assert sweep.points[0].fixed == {"api": "POSIX", "layout": "file_a_task", "block": str(2**30)}
    assert [p.trial for p in sweep.points] == 6 * [1] + 6 * [2] + 6 * [3]
    assert sweep.sweep.point_limit == 300


@rows(
    "old, new, line",
    [
        (
            "tool: ior",
            "tool: iorr",
            "mine.yaml:2: unknown value 'iorr' (did you mean 'ior'?) in tool",
        ),
        (
            "lines: tasks_per_node",
            "line: x",
            "mine.yaml:9: unknown key 'line' (did you mean 'lines'?)",
        ),
        ("tasks: [8]", "task: [8]", "unknown axis 'task' (did you mean 'tasks'?)"),
        ("api: POSIX", "api: posix", "api: unknown value 'posix'"),
        ("api: POSIX", "api: POSIX, depth: 3", "unknown axis 'depth'"),
        ("64 KiB", "64 apples", "transfer: unknown value '64 apples' in axes. Allowed: a size"),
        ("64 KiB", "0.3 B", "transfer: unknown value '0.3 B'"),
        ("64 KiB", "$(id)", "transfer: unknown value '$(id)'"),
        (
            "[1, 2, 4]",
            "[1, 2, -4]",
            "mine.yaml:3: tasks: unknown value '-4' in axes. Allowed: 1, 2, 3 …",
        ),
        ("[1, 2, 4]", "[1, 2, 0]", "tasks: unknown value '0'"),
        ("[1, 2, 4]", "[]", "an axis without a value"),
        (", block: 1 GiB", "", "ior needs 'block'"),
        ("against: tasks", "against: depth", "'depth' is not an axis of this sweep"),
        ("against: tasks\n", "", "missing key 'against'"),
        ("'transfer <= block'", "'transfer is small'", "'transfer is small' is not a constraint"),
        ("'transfer <= block'", "'transfr <= block'", "is not an axis"),
        (
            "'transfer <= block'",
            "'block < transfer'",
            "mine.yaml:7: no point meets them in constraints",
        ),
        ("repetitions: 3", "repetitions: 0", "mine.yaml:10: '0' is below 1 in repetitions"),
        (
            "repetitions: 3",
            "repetitions: 1001",
            "mine.yaml:10: '1001' is above 1000 in repetitions",
        ),
        ("repetitions: 3", "repetitions: x", "'x' is not a whole number in repetitions"),
        (
            "order: ascending",
            "order: any",
            "unknown value 'any' in order. Allowed: ascending, random",
        ),
        ("point_limit: 5m", "point_limit: 5", "'5' is not a duration in point_limit"),
        ("point_limit: 5m", "point_limit: 25h", "'25h' is longer than a day"),
        ("point_limit: 5m\n", "", "missing key 'point_limit'"),
        ("500 node-hours", "500", "'500' is not a budget in budget"),
        ("api: POSIX", "api: [POSIX, MPIIO]", "a list is not text in fixed.api"),
        ("api: POSIX", "knob.x: 3", "'knob.x' is not a knob"),
        ("repetitions: 3", "repetitions: 3\nrepetitions: 4", "key 'repetitions' a second time"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(folder, old, new, line):
    assert old in GOOD
    found = told(folder, GOOD.replace(old, new))
    assert len(found) == 1, found
    assert line in found[0]
    assert found[0].startswith("mine.yaml:")


def test_wrong_axes_are_told_together_with_wrong_keys(folder):
    wrong = (
        GOOD.replace("[1, 2, 4]", "[1, 2, x]")
        .replace("POSIX", "posix")
        .replace("order: ascending", "order: any")
    )
    assert [line.rpartition(" in ")[2].partition(".")[0] for line in told(folder, wrong)] == [
        "axes",
        "fixed",
        "order",
    ]


def test_a_run_of_messages_gives_all_sizes_so_that_several_are_a_mistake(folder):
    found = told(
        folder,
        "description: x\ntool: messages\naxes: {size: [1 KiB, 2 KiB]}\n"
        "against: size\npoint_limit: 9s\n",
    )
    assert "several values of 'size'" in found[0]


@rows("name", ["Ior", "ior-tasks", "1st", "a__b", "ä"])
def test_a_name_that_makes_no_class_is_a_mistake(folder, name):
    assert "is not a name of a sweep" in told(folder, GOOD, name)[0]


def test_two_files_of_one_test_are_a_mistake(folder):
    (folder / "ior_1.yaml").write_text(GOOD)
    assert "the same name as" in told(folder, GOOD, "ior1")[0]


def test_the_users_own_sweeps_are_beside_those_of_the_clone(tmp_path, monkeypatch):
    (tmp_path / "mine.yaml").write_text(GOOD)
    monkeypatch.setenv(reading.VARIABLE, str(tmp_path))
    assert {"mine", "ior_tasks"} <= set(reading.load())
    monkeypatch.setenv(reading.VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="is not a folder"):
        reading.load()


def test_a_sweep_of_more_points_than_anybody_measures_is_refused_before_they_are_made(folder):
    many = ", ".join(map(str, range(1, 1000)))
    text = GOOD.replace("[1, 2, 4]", f"[{many}]").replace("[64 KiB, 1 MiB]", f"[{many}]")
    assert "more than 20000 points" in told(folder, text)[0]
    knobs = "".join(f"    knob.sysctl.net.x{n}: [1, 2]\n" for n in range(40))
    text = GOOD + f"knobs:\n  corners: true\n  one_at_a_time:\n{knobs}"
    assert "more than 20000 points" in told(folder, text)[0]


@pytest.mark.deep
def test_lint_tells_the_mistakes_of_sweeps_too_and_that_one_names_a_system(folder):
    (folder / "mine.yaml").write_text(GOOD.replace("tool: ior", "tool: iorr"))
    (folder / "other.yaml").write_text(GOOD.replace("Rates against", "What testbed does with"))
    done = CliRunner().invoke(lint, [])
    assert done.exit_code == 2
    assert "mine.yaml:2: unknown value 'iorr'" in done.output
    assert "other.yaml:1: " in done.output and "the system 'testbed'" in done.output


def test_systems_that_a_sweep_names_are_told_in_one_order(folder):
    systems = [f"system{number}" for number in range(9)]
    (folder / "mine.yaml").write_text(GOOD.replace("Rates against", " ".join(systems)))
    found = [str(error) for error in reading.lint(systems)[1]]
    assert [text.split("'")[1] for text in found] == systems


def test_the_shipped_sweeps_have_points():
    assert all(sweep.points for sweep in reading.load().values())


TREE = yaml.safe_load(GOOD)
ODD = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.text(max_size=8),
    st.lists(st.text(max_size=3), max_size=2),
    st.just({}),
    st.just([]),
    st.just({"tasks": {"tasks": 1}}),
    st.just("9" * 400),
    st.just("1e999 GiB"),
)


@cases(60, suppress=(HealthCheck.function_scoped_fixture,))
@given(key=st.sampled_from([*TREE, "knobs", "nonsense"]), value=ODD, inside=st.booleans())
def test_whatever_stands_in_a_file_is_told_in_lines(folder, key, value, inside):
    tree = yaml.safe_load(GOOD)
    if inside and isinstance(tree.get(key), dict):
        tree[key] = {**tree[key], "block": value}
    else:
        tree[key] = value
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(tree, allow_unicode=True))
    try:
        assert reading.load()["mine"].points
    except UserErrors as error:
        assert all("mine.yaml:" in line for line in str(error).splitlines())
