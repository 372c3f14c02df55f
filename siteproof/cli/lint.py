"""siteproof lint: Check the files of every system, and print all mistakes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import click

from siteproof import files
from siteproof.answers import reachable
from siteproof.cli.shared import (
    OPEN_TO_ALL,
    by_system,
    flag,
    forms,
    print_rows,
    print_table,
    print_text,
    table,
)
from siteproof.cli.sites import FILES
from siteproof.errors import ExitCode, UserError
from siteproof.record.finding import Finding
from siteproof.record.pair_units import grouped
from siteproof.sites import Site, catalogue, manual
from siteproof.sites.schema.yamlfile import Document, shown
from siteproof.sites.site import examine, find, lint_sites, load, names, trust
from siteproof.spack import env_files as software
from siteproof.sweeps import reading as sweeps
from siteproof.sweeps.keys import SWEEPS_ONLY, TOOLS
from siteproof.units import count
from siteproof.verdict.others import asked
from siteproof.wording.findings import sentence

ANSWERS = ("criteria", "check", "derivation", "evidence", "not here")
NOT_HERE = "Add what is lacking, or 'not_here:' with the reason"
Found = Mapping[str, Sequence[object]]  # mistakes, warnings and gaps, by kind


@click.command()
@click.option(
    "--system",
    "systems",
    metavar="NAME",
    multiple=True,
    shell_complete=by_system,
    help="The system; several may be named. Without it, all systems, and the sweeps.",
)
@flag("--schema", "Print the JSON schema of the files instead.")
@flag("--coverage", "Print what can answer the criteria instead.")
@forms()
def lint(systems: tuple[str, ...], schema: bool, coverage: bool, form: str) -> None:
    """Check the files of every system, and of the sweeps, and print every mistake.

    A criterion that no mode, check, sweep, service or evidence of its site can answer is a mistake,
    unless it has 'not_here:' with the reason.

    Warnings name what is possible and not plausible, with the arithmetic. A gap is a value that is
    still to be filled in: '!gap' and what is missing; a criterion with a gap is not in force.

    Exit code 0: no mistake, whatever the warnings and gaps; 2: at least one mistake. --coverage
    shows of each system how many criteria a check, a derivation or a person's evidence can answer,
    and names those that nothing can yet.

    \b
    siteproof lint
    siteproof lint --system testbed
    siteproof lint --coverage
    siteproof lint --schema > site.schema.json
    """
    if schema:
        click.echo(json.dumps(manual.schema(FILES), indent=2))
        return
    chosen = [find(name, "lint") for name in dict.fromkeys(systems)] or names(broken=True)
    if coverage:
        _coverage(chosen, form)
        return
    swept, wrong = ([], []) if systems else sweeps.lint(chosen)
    documents = lint_sites(chosen)
    mistakes = [
        *wrong,
        *(mistake for document in documents for mistake in document.sorted_mistakes()),
        *software.everything(),
        *software.sites(chosen),
        *_checks(chosen),
        *(mistake for name in chosen for mistake in _unreachable(name)),
        *_data(chosen),
    ]
    warnings = [str(warning) for document in documents for warning in document.warnings]
    warnings += software.warnings(chosen)
    gaps = [gap for document in documents for gap in document.listed_gaps()]
    found: Found = {"mistake": mistakes, "warning": warnings, "gap": gaps}
    if form:
        print_rows(("kind", "text"), _rows(found), form)
    else:
        _print(found, _answer(chosen, swept, mistakes, documents))
    raise SystemExit(ExitCode.USAGE if mistakes or not chosen else ExitCode.PASS)


def _rows(found: Found) -> list[tuple[str, str]]:
    return [(kind, str(line)) for kind, lines in found.items() for line in lines]


def _print(found: Found, answer: str) -> None:
    """A line each, a mistake without a title, and the answer with the other counts."""
    for kind, lines in found.items():
        title = "" if kind == "mistake" else f"{kind}: "
        print_text(*map(str, lines), title=f"siteproof: {title}")
    others = {kind: len(lines) for kind, lines in found.items() if lines and kind != "mistake"}
    click.echo(", ".join([answer, *(count(number, kind) for kind, number in others.items())]))


def _coverage(chosen: list[str], form: str) -> None:
    """The table: what can answer the criteria of each system."""
    columns = (*ANSWERS, "nothing")
    names = ("system", *columns)
    rows: list[tuple[str, ...]] = []
    missing: dict[str, list[str]] = {}
    sums, gaps = Counter[str](), 0
    for name in chosen:
        site, lacks = load(name, whole=True), _lacking(name)
        gaps += _with_gaps(name)
        by = {key: _answered_by(site, key, lacks) for key in site.criteria}
        counts = Counter(by.values()) + Counter({"criteria": len(by)})
        sums += counts
        rows.append((name, *(str(counts[column]) for column in columns)))
        missing[name] = [key for key, how in by.items() if how == "nothing"]
    rows.append(("all", *(str(sums[column]) for column in columns)))
    if form:
        print_rows(names, rows, form)
        return
    print_table(table(names, rows, "What can answer the criteria", right=columns))
    for name, keys in missing.items():
        if keys:
            print_text(f"{name}, nothing: {', '.join(keys)}")
    can = sums["criteria"] - sums["nothing"] - sums["not here"]
    criteria = count(sums["criteria"], "criterion", "criteria")
    print_text(f"{can} of {criteria} in force can be answered")
    if gaps:
        more = count(gaps, "more criterion has a gap", "more criteria have gaps")
        print_text(f"{more}: not in force until it is filled in; 'siteproof lint' lists each gap")


def _with_gaps(name: str) -> int:
    """How many criteria of a site have a gap, or are one."""
    documents = [one for one in examine(name)[1] if one.path.name.startswith("criteria")]
    return len({place[:1] for document in documents for place in document.gaps})


def _answered_by(site: Site, key: str, lacks: Mapping[str, Finding]) -> str:
    """Which of ANSWERS can answer a criterion. lacks: why nothing can, by criterion."""
    criterion = site.criteria[key]
    if key in lacks:
        return "not here" if criterion.not_here else "nothing"
    if criterion.answered_by == "evidence":
        return "evidence"
    return "check" if site.catalogue[criterion.metric].check else "derivation"


def _lacking(name: str) -> dict[str, Finding]:
    """Why nothing of a site can answer a criterion, by criterion; of a site without a mistake.

    Of a system that consists of others: why too few of these can.
    """
    site = examine(name)[0]
    if site is None:
        return {}
    if not site.members:
        return _lacking_of(site)
    each = [_lacking_of(asked(site, member)) for member in site.members.values()]
    found = {}
    for key, criterion in site.criteria.items():
        reasons = [lacks[key] for lacks in each if key in lacks]
        if len(each) - len(reasons) < criterion.needed_of(len(each)):
            found[key] = reasons[0]
    return found


def _lacking_of(site: Site) -> dict[str, Finding]:
    """The same of one that is measured."""
    built = software.offering(site)
    points: dict[str, list[Mapping[str, str]]] = {}
    for file in sweeps.examine()[0].values():
        checks = [
            TOOLS[file.sweep.tool].check,
            *([reachable.TUNING] if file.sweep.turns_knobs else []),
        ]
        for check in checks:
            points.setdefault(check, []).extend(point.values for point in file.points)
    swept = reachable.Sweeps(points, {*SWEEPS_ONLY, reachable.TUNING})
    each = {key: reachable.lacking(built, one, swept) for key, one in site.criteria.items()}
    return {key: why for key, why in each.items() if why}


def _unreachable(name: str) -> Iterator[UserError]:
    """A mistake for each criterion that nothing of a site can answer, without `not_here`."""
    site, documents = examine(name)
    for key, why in _lacking(name).items() if site else ():
        if site and not site.criteria[key].not_here:
            document = next(one for one in documents if key in (one.data or {}))
            where = f"{shown(document.path)}:{document.line((key,))}"
            what = f"nothing of {name} can answer {key}: {sentence(why)}"
            yield UserError(where, what, hint=NOT_HERE)


def _checks(chosen: list[str]) -> list[UserError]:
    """Checks that are not where the catalogue places them."""
    known = sweeps.examine()[0].items()
    by_check = grouped((TOOLS[file.sweep.tool].check, name) for name, file in known)
    sites = [site for name in chosen if (site := examine(name)[0])]
    return catalogue.lint(sites, by_check, SWEEPS_ONLY)


def _data(chosen: list[str]) -> list[UserError]:
    """Folders that everybody may write to; a file system that maps this user to another."""
    for name in chosen:
        trust(name)
    top = files.perflogs() if files.perflogs().is_dir() else files.folder()
    folders = [path for name in chosen for path in files.open_to_all(files.perflogs(), name)]
    found = [UserError(path, OPEN_TO_ALL) for path in dict.fromkeys(folders)]
    if owner := files.mapped_owner(top):
        what = f"the file system shows files of this user as those of {owner}; they are not read"
        hint = f"If that is intended, add 'trusted_owners: [{owner}]' to system.yaml"
        found.append(UserError(top, what, hint=hint))
    return found


def _answer(
    chosen: list[str], swept: list[str], mistakes: list[UserError], documents: list[Document]
) -> str:
    if mistakes:
        # Of a file with too many, one line stands for the last ones.
        untold = sum(document.untold - 1 for document in documents if document.untold)
        wrong = {mistake.where.rpartition(":")[0] or mistake.where for mistake in mistakes}
        return f"{count(len(mistakes) + untold, 'mistake')} in {count(len(wrong), 'file')}"
    if not chosen:
        return "no site to check: SITEPROOF_SITES names the folder of sites"
    checked = count(len(chosen), "site")
    if swept:
        checked += f", {count(len(swept), 'sweep')}"
    return f"{checked}, no mistake"
