"""What Siteproof leaves on a disk, and the environment variables that it reads: for the reference.

A test compares both with what the programs really write and read.
"""

from __future__ import annotations

from typing import NamedTuple

DATA, CLONE, CACHE = "data folder", "clone", "cache folder"


class Place(NamedTuple):
    """A file or folder. path: a glob; SYSTEM, PARTITION, SESSION, USER, NAME: any name.

    below: one of DATA, CLONE, CACHE. deletable: what is lost with it, or that nothing is.
    """

    below: str
    path: str
    writer: str
    what: str
    deletable: str


NOTHING = "yes: it is made again"
NEVER = "no: it is the only record"

PLACES = (
    Place(
        DATA,
        "perflogs/SYSTEM/PARTITION/SESSION.*.jsonl",
        "reframe -r, siteproof collect",
        "The samples of one job: a header, then a line each.",
        NEVER,
    ),
    Place(
        DATA,
        "perflogs/SYSTEM/PARTITION/SESSION.*.fields.json.gz",
        "reframe -r, siteproof collect",
        "The descriptions of the nodes of one job.",
        NEVER,
    ),
    Place(
        DATA,
        "perflogs/SYSTEM/PARTITION/*.log",
        "reframe -r",
        "ReFrame's own perflog, with the headline metrics, for tools made for it.",
        "yes: Siteproof does not read it; it is not made again",
    ),
    Place(
        DATA,
        "perflogs/SYSTEM/published/*.jsonl",
        "siteproof import",
        "Values that others have published.",
        "yes: published.csv is imported again",
    ),
    Place(
        DATA,
        "perflogs/SYSTEM/imported/*",
        "siteproof import",
        "Copies of perflogs and reports of plain ReFrame, with the options of their import.",
        "no, unless the originals are kept",
    ),
    Place(
        DATA,
        "perflogs/SYSTEM/.sessions/*",
        "reframe -r",
        "The number of each session, which gives its place in their order.",
        "no: the order of sessions would follow clocks",
    ),
    Place(
        DATA,
        "perflogs/SYSTEM/accepted/*.json",
        "siteproof accept",
        "Which campaign was accepted, by whom, and when.",
        NEVER,
    ),
    Place(
        DATA,
        "perflogs/SYSTEM/trend/*",
        "siteproof trend ack",
        "Acknowledged changes of the history.",
        NEVER,
    ),
    Place(
        DATA,
        "perflogs/SYSTEM/evidence/*",
        "siteproof evidence",
        "What a person has shown, with the hash of the document.",
        NEVER,
    ),
    Place(
        DATA, "perflogs/SYSTEM/repairs/*.json", "siteproof repaired", "Who repaired what.", NEVER
    ),
    Place(
        DATA,
        "perflogs/SYSTEM/probes/*.probes",
        "siteproof probe",
        "Whether each service answered, a line a look.",
        NEVER,
    ),
    Place(
        DATA,
        "perflogs/SYSTEM/node_events/*.events",
        "siteproof availability --fetch",
        "What Slurm's accounting knows of nodes that were down.",
        "no: Slurm may have forgotten it",
    ),
    Place(
        DATA,
        "perflogs/SYSTEM/gate.jsonl",
        "siteproof gate --apply",
        "What the gate did, and which reservation is its own.",
        "no: the gate would no longer know its quarantine",
    ),
    Place(
        DATA,
        "perflogs/SYSTEM/.gate/*",
        "siteproof gate --apply",
        "Who acts as the gate now.",
        "while no gate runs",
    ),
    Place(
        DATA,
        "perflogs/.set-aside/*",
        "siteproof collect, reframe -r",
        "Stage directories that could not be collected; what somebody discarded, and why.",
        "no: a result that is missing would be forgotten",
    ),
    Place(
        DATA,
        "stage/SESSION/*",
        "reframe -r, the nodes",
        "Scripts and raw files of the jobs of a session.",
        "when its jobs have ended and 'siteproof collect' names none of it",
    ),
    Place(
        DATA,
        "stage/.turn-*",
        "reframe -r",
        "Whose turn it is to measure.",
        "while no run is under way",
    ),
    Place(
        DATA,
        "output/USER/*",
        "reframe -r",
        "ReFrame's run reports, results database and topology of one operator.",
        "yes: 'reframe --restore-session' and '--failed' need the newest report",
    ),
    Place(DATA, "output/reframe-USER.log*", "reframe", "ReFrame's log of one operator.", "yes"),
    Place(
        DATA,
        "output/SYSTEM/*",
        "reframe -r",
        "What ReFrame keeps of tests that passed.",
        "yes: Siteproof does not read it",
    ),
    Place(
        DATA,
        "output/reports/NAME/*",
        "sbatch/evening, sbatch/daily",
        "The page and the exports of a campaign.",
        "yes: 'siteproof report' and 'siteproof export' make them again",
    ),
    Place(
        DATA,
        "output/cache/*",
        "siteproof",
        "The cache folder of each user, where nothing else is named.",
        NOTHING,
    ),
    Place(
        DATA,
        "software/*",
        "siteproof build",
        "Software that Spack built, and what it downloaded for it.",
        "yes: 'siteproof build' takes its time again",
    ),
    Place(CACHE, "history-*", "siteproof", "The store: Parquet files made from perflogs.", NOTHING),
    Place(CACHE, "matplotlib/*", "siteproof report", "The list of fonts.", NOTHING),
    Place(CLONE, ".venv", "setup/venv", "The Python libraries.", NOTHING),
    Place(CLONE, ".mkl", "setup/mkl", "Intel MKL for Hpl.", NOTHING),
    Place(
        CLONE,
        "wheels",
        "setup/wheels",
        "Python libraries to carry to a login node without network.",
        NOTHING,
    ),
    Place(
        CLONE,
        "site-config",
        "people, siteproof sites new",
        "The sites, where SITEPROOF_SITES names no other folder.",
        "no",
    ),
)

VARIABLES = {  # that a user may set; those of the jobs and of the tests are not listed
    "SITEPROOF_SITES": "The folder of the sites; site-config/ of the clone, if it is not set.",
    "SITEPROOF_DATA": "The data folder, with perflogs/, stage/ and output/; the clone, if it is "
    "not set. Compute nodes must see it.",
    "SITEPROOF_SYSTEM": "The system of this machine, instead of what it is recognised by.",
    "SITEPROOF_CAMPAIGN": "The campaign to which a run, a retest and the evening script belong.",
    "SITEPROOF_CACHE": "The cache folder of this user; without it siteproof/ in XDG_CACHE_HOME, "
    "else output/cache/ of the data folder, else ~/.cache/siteproof where others may write there.",
    "XDG_CACHE_HOME": "The folder of all caches of this user.",
    "SITEPROOF_SWEEPS": "The folder of the sweeps, instead of sweeps/ of the clone.",
    "SITEPROOF_CLONE": "The clone; '. ./activate' sets it.",
    "SITEPROOF_WHEELS": "A folder of wheels for setup/venv, without network.",
    "SITEPROOF_SEED": "Of tests: the seed of random cases, 1 by default; 'random' draws another.",
    "SPACK_ROOT": "The Spack of 'siteproof build', where none is on PATH.",
    "RFM_CHECK_SEARCH_PATH": "Further folders of tests, as ReFrame reads it.",
    "NO_COLOR": "Set: no colours.",
    "FORCE_COLOR": "Set: colours of ReFrame also where the output is no terminal.",
    "TERM": "dumb: no colours.",
    "COLUMNS": "How wide the output is, where it is no terminal.",
}
