"""Which of ReFrame's options a run refuses, each with the name under which it was given."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from clone import TOP
from rows import rows

from siteproof import sites
from siteproof.checks import loading, options, plain
from siteproof.errors import UserError
from siteproof.sites import job_keys


@pytest.fixture(params=["thishost"])
def site(request, monkeypatch):
    monkeypatch.setenv("SITEPROOF_SITES", str(TOP / "site-config"))
    return sites.load(request.param)


def given(said=(), **values):
    """ReFrame's options where nothing is given but these; said: on the command line."""
    lists = ("prgenv", "vars", "parameterize", "job_options", "names", "exclude_names")
    nothing = {"mode": None, "system": None, "exclude_tags": [], **{name: [] for name in lists}}
    of_command = SimpleNamespace(**{name: values[name] for name in said})
    return SimpleNamespace(cmd_options=of_command, **(nothing | values))


def test_nothing_is_refused_where_nothing_is_given(site):
    options.refuse(given(clean_stagedir=True, distribute=None, hooks=[], purge_env=False), site)


@rows(
    "values, where",
    [
        ({"stage": "/x"}, "--stage"),
        ({"output": "/x"}, "--output"),
        ({"perflogdir": "/x"}, "--perflogdir"),
        ({"prefix": "/x"}, "--prefix"),
        ({"timestamp": object()}, "--timestamp"),
        ({"clean_stagedir": False}, "--dont-restage"),
        ({"save_log_files": True}, "--save-log-files"),
        ({"skip_sanity_check": True}, "--skip-sanity-check"),
        ({"hooks": ["choose_nodes"]}, "--disable-hook"),
        ({"distribute": "idle"}, "--distribute"),
        ({"flex_alloc_nodes": "all"}, "--flex-alloc-nodes"),
        ({"flex_alloc_strict": True}, "--flex-alloc-strict"),
        ({"user_modules": ["gcc"]}, "--module"),
        ({"unload_modules": ["gcc"]}, "--unload-module"),
        ({"module_mappings": ["a:b"]}, "--map-module"),
        ({"module_map_file": "f"}, "--module-mappings"),
        ({"module_paths": ["/x"]}, "--module-path"),
        ({"purge_env": True}, "--purge-env"),
        ({"non_default_craype": True}, "--non-default-craype"),
        ({"vars": ["nodes"]}, "-S nodes"),
        ({"parameterize": ["nodes"]}, "-P nodes"),
        ({"prgenv": ["system", "mlk"]}, "-p mlk"),
        ({"prgenv": ["["]}, "-p ["),
        ({"system": "thishost:nodes"}, "--system thishost:nodes"),
        ({"mode": "fast"}, "--mode"),
    ],
)
def test_an_option_is_refused_by_its_name(site, values, where):
    with pytest.raises(UserError) as refused:
        options.refuse(given(values, **values), site)
    assert refused.value.where == where


@rows(
    "variable, values",
    [
        ("RFM_STAGE_DIR", {"stage": "/x"}),
        ("RFM_OUTPUT_DIR", {"output": "/x"}),
        ("RFM_PERFLOG_DIR", {"perflogdir": "/x"}),
        ("RFM_TIMESTAMP_DIRS", {"timestamp": "%F"}),
        ("RFM_CLEAN_STAGEDIR", {"clean_stagedir": False}),
        ("RFM_SAVE_LOG_FILES", {"save_log_files": True}),
        ("RFM_FLEX_ALLOC_STRICT", {"flex_alloc_strict": True}),
        ("RFM_USER_MODULES", {"user_modules": ["gcc"]}),
        ("RFM_PURGE_ENVIRONMENT", {"purge_env": True}),
    ],
)
def test_a_variable_of_the_environment_is_refused_by_its_name(site, monkeypatch, variable, values):
    monkeypatch.setenv(variable, "x")
    with pytest.raises(UserError) as refused:
        options.refuse(given(**values), site)
    assert refused.value.where == variable


def test_the_prefix_of_a_users_own_tests_is_no_mistake(site, monkeypatch):
    monkeypatch.setenv("RFM_PREFIX", "/home/me")
    options.refuse(given(prefix="/home/me"), site)


def test_modules_are_loaded_where_the_site_has_a_modules_system(site):
    system = site.system.model_copy(update={"modules_system": "lmod"})
    options.refuse(given(user_modules=["gcc"]), replace(site, system=system))


@rows(
    "word, name",
    [
        ("nodelist=node001", "nodelist"),
        ("--nodelist=node001", "nodelist"),
        ("-w node001", "w"),
        ("-wnode001", "w"),
        ("w=node001", "w"),
        ("#SBATCH --nodelist=node001", "nodelist"),
        ("nodel=node001", "nodel"),
        ("test-only", "test-only"),
    ],
)
def test_the_name_of_a_job_option(word, name):
    assert job_keys.job_option(word) == name


@rows(
    "word",
    ["nodelist=n1", "-wn1", "nodel=n1", "nodes=1", "N=1", "ntasks=1", "x=n1", "array=1-3"]
    + ["time=1", "t=1", "D=/tmp", "output=x", "test-only", "parsable", "Q", "requeue"],
)
def test_a_job_option_that_says_what_the_check_says_is_refused(monkeypatch, word):
    monkeypatch.setenv("SITEPROOF_SITES", str(TOP / "site-config"))
    with pytest.raises(UserError, match="is set by the check"):
        options.refuse(given(job_options=[word]), sites.load("testbed"))


@rows(
    "word",
    ["reservation=night", "account=a", "A=a", "partition=p", "p=p", "qos=q", "mem=1G", "begin=now"]
    + ["constraint=c", "exclusive", "cpus-per-task=4", "comment=x", "export=ALL", "--res=night"],
)
def test_other_job_options_reach_the_job(monkeypatch, word):
    monkeypatch.setenv("SITEPROOF_SITES", str(TOP / "site-config"))
    options.refuse(given(job_options=[word]), sites.load("testbed"))


@rows("word", ["mem=1G", "reservation=night"])
def test_a_job_option_without_a_scheduler_is_refused(site, word):
    with pytest.raises(UserError, match="no scheduler"):
        options.refuse(given(job_options=[word]), site)


# ---- what speaks of no check


class Stream:
    var_space = {"nodes": 1, "mode": 1}
    param_space = SimpleNamespace(params={"chunk": 1})  # as ReFrame: it iterates over values
    display_name = "Stream %chunk=0"
    tags = {"cpu"}


@rows(
    "values, variables, where",
    [
        ({}, ["nodse"], "-S nodse"),
        ({}, ["Stream.nodse"], "-S Stream.nodse"),
        ({}, ["Strem.nodes"], "-S Strem.nodes"),
        ({"parameterize": ["nodse=1,2"]}, [], "-P nodse"),
        ({"parameterize": ["Strem.nodes=1,2"]}, [], "-P Strem.nodes"),
        ({"names": ["Stream", "Hlp"]}, [], "-n Hlp"),
        ({"names": ["Strem"]}, [], "-n Strem"),
        ({"exclude_names": ["Hlp"]}, [], "-x Hlp"),
        ({"exclude_tags": ["cpus"]}, [], "-T cpus"),
    ],
)
def test_what_speaks_of_no_check_is_refused(values, variables, where):
    with pytest.raises(UserError) as refused:
        options.refuse_unknown(given(**values), {"Hpl"}, [Stream()], variables)
    assert refused.value.where == where


@rows(
    "values, variables",
    [
        ({}, ["nodes", "Stream.nodes", "Hpl.share", "Stream.chunk", "_rfm_dry_run"]),
        ({"parameterize": ["nodes=1,2", "Stream.chunk=0"]}, []),
        ({"names": ["^Str", "/1a2b3c4d", "Stream@0", "chunk=0"]}, []),
        ({"exclude_names": ["Hpl", "["]}, []),
        ({"exclude_tags": ["cpu|disk"]}, []),
    ],
)
def test_what_speaks_of_a_check_is_not(values, variables):
    options.refuse_unknown(given(**values), {"Hpl"}, [Stream()], variables)


@rows("wanted, named", [([], True), (["Else"], True), (["Stream"], False), (["/1a2b"], False)])
def test_a_plain_test_that_fits_nowhere_is_named_where_it_was_asked_for(monkeypatch, wanted, named):
    check = SimpleNamespace(
        display_name="Elsewhere", is_fixture=lambda: False, valid_systems=[], valid_prog_environs=[]
    )
    reported = []
    monkeypatch.setattr(loading, "report", reported.append)
    monkeypatch.setattr(plain.adapter, "fits", lambda check: False)
    active = SimpleNamespace(site=SimpleNamespace(name="example"))
    monkeypatch.setattr(plain.session, "current", lambda: active)
    monkeypatch.setattr(plain, "is_plain", lambda check: True)
    monkeypatch.setattr(plain, "_file", lambda check: "own.py")
    plain.report_unfit(wanted, [check])
    assert bool(reported) is named
