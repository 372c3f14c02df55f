"""docs/reference is what schemas, catalogues and commands say now, and it leaves nothing out."""

import re
import tarfile

import click
import record
import reference
from clone import TOP
from places import listed

from siteproof import cli
from siteproof.record.samples import MEANINGS
from siteproof.sites import manual
from siteproof.sites.catalogue import read

READ = re.compile(r'environ(?:\.get)?[\[(]"([A-Z_]+)"|^VARIABLE = "([A-Z_]+)"', re.MULTILINE)
IN_SHELL = re.compile(r"\$\{(SITEPROOF_[A-Z_]+):?-")
NOT_A_USERS = {"SLURM_CONF", "SLURM_JOB_ID", "SLURM_JOB_NODELIST", "USER"}  # of Slurm, of the login
OF_TESTS = {"SITEPROOF_ROOT", "SITEPROOF_NEWEST_REFRAME"}


def test_the_pages_are_what_is_made_of_schemas_catalogues_and_help_now():
    assert reference.differing() == [], "'make golden' writes them anew"


def test_a_page_that_was_edited_and_one_that_nothing_makes_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    (tmp_path / "reference").mkdir()
    for path, text in reference.pages().items():
        path.write_text(text)
    assert reference.differing() == []
    (tmp_path / "reference.md").write_text("edited")
    (tmp_path / "reference/old.md").write_text("")
    assert [path.name for path in reference.differing()] == ["old.md", "reference.md"]


def test_every_command_metric_and_status_has_its_place():
    text = "".join(reference.pages().values())
    assert all(f"\n## siteproof {name}\n" in text for name in cli.COMMANDS)
    assert all(f"| `{name}` |" in text for name in [*read()[0], *MEANINGS])


def test_every_variable_that_the_package_or_a_script_reads_is_listed():
    found = set()
    for path in [*(TOP / "siteproof").rglob("*.py"), TOP / "reframe_settings.py"]:
        found |= {name for pair in READ.findall(path.read_text()) for name in pair if name}
    for folder in ("setup", "sbatch"):
        texts = [p.read_text() for p in (TOP / folder).iterdir() if p.is_file()]
        found |= {name for text in texts for name in IN_SHELL.findall(text)}
    assert found - set(manual.variables()) == NOT_A_USERS | OF_TESTS


def test_no_variable_is_listed_that_nothing_reads():
    files = [
        path
        for top in ("siteproof", "setup", "sbatch", "tests", "activate")
        for path in ((TOP / top).rglob("*") if (TOP / top).is_dir() else [TOP / top])
        if path.suffix in (".py", ".sh", "") and path.is_file()
    ]
    text = "\n".join(path.read_text() for path in files)
    assert [name for name in manual.variables() if name not in text] == []


def test_every_file_of_a_recorded_data_folder_has_its_place():
    wrong = []
    for packed in sorted(record.SETS.glob("*.tar.gz")):
        with tarfile.open(packed) as members:
            names = [one.name.partition("/")[2] for one in members if one.isfile()]
        of_data = [name for name in names if not name.startswith(("sites/", "sweeps/"))]
        wrong += [(packed.name, name) for name in of_data if not listed(name, manual.DATA)]
    assert not wrong


def test_who_writes_a_file_exists():
    writers = {one for place in manual.places() for one in place.writer.split(", ")}
    assert [writer for writer in sorted(writers) if not exists(writer)] == []


def exists(writer):
    """Whether there is such a program, command or option."""
    program, *words = writer.split()
    if "/" in program:
        return (TOP / program).exists()
    if program != "siteproof":
        return writer in ("reframe", "reframe -r", "people", "the nodes")
    command = cli.group
    for word in words:
        if word.startswith("--"):
            return word in {name for one in command.params for name in one.opts}
        command = command.get_command(click.Context(command), word)
        if command is None:
            return False
    return True
