"""A workflow of the site's on Galaxy, its results and its time against a reference installation.

History and workflow are named by the job's mark. Galaxy keeps the names of purged histories and of
deleted workflows for its administrators; its users see neither, and no file is left.
The requests of bioblend are made by `web`, with its limits, certificates and reasons: bioblend
itself would follow variables of the environment, ~/.netrc, and what Galaxy sends as a place to
upload to.

Source: PTI-TR16-005, 4.3 (Jetstream).
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode, urlsplit

import bioblend
from bioblend.galaxy import GalaxyInstance

from siteproof import files
from siteproof.errors import UserError
from siteproof.services import web
from siteproof.services.steps import PREFIX, Job, Kind, StepFailed, Steps, marked
from siteproof.services.web import Answer, answering, ask, refused

MEBI = 1 << 20
ANSWER = 64 * MEBI  # bytes of an answer that is no file
LARGEST = 1 << 40  # bytes of an input
PART = 8 * MEBI  # of an upload, which is sent in several
_ID = re.compile(r"[0-9A-Za-z]{1,64}")  # as Galaxy encodes its numbers
_UPLOAD = re.compile(r"[0-9A-Za-z_+-]{1,200}")
_EXTENSION = re.compile(r"[a-z0-9_.-]{1,60}")
_ENCODED = re.compile(r"/[0-9a-f]{16,64}(?=/|$)")
_TUS = {"Tus-Resumable": "1.0.0"}  # the protocol of uploads


def _response(answer: Answer) -> SimpleNamespace:
    """An answer as bioblend expects one. Other statuses than 2xx are StepFailed before."""
    text = answer.body.decode("utf-8", "replace")
    return SimpleNamespace(
        status_code=answer.status, content=answer.body, text=text, json=answer.json
    )


class Galaxy(GalaxyInstance):
    """The Galaxy of a service, as the user of its API key. Methods raise StepFailed."""

    def __init__(self, job: Job) -> None:
        self._job = job
        super().__init__(job.service.address, key=job.secret("token"))

    def make_get_request(self, url: str, **how: Any) -> Any:
        """As bioblend's."""
        return _response(self.ask("GET", url, params=how.get("params")))

    def make_post_request(
        self,
        url: str,
        payload: dict[str, Any] | None = None,
        params: dict[str, Any] | None = None,
        files_attached: bool = False,
    ) -> Any:
        """As bioblend's; it attaches files for old versions of Galaxy only."""
        if files_attached:
            raise StepFailed("this Galaxy is older than 22.01")
        return self.ask("POST", url, payload, params).json()

    def make_delete_request(
        self, url: str, payload: dict[str, Any] | None = None, params: dict[str, Any] | None = None
    ) -> Any:
        """As bioblend's."""
        return _response(self.ask("DELETE", url, payload, params))

    def get_tus_uploader(self, path: str, **_: Any) -> Any:  # type: ignore[override]
        """What uploads a file, in place of tuspy."""
        return _Upload(self, Path(path))

    def sha256(self, history: str, dataset: Mapping[str, Any]) -> str:
        """The SHA-256 of a file of a history, of which nothing is kept here."""
        extension = f"{dataset.get('file_ext')}"
        known = extension if _EXTENSION.fullmatch(extension) else "data"
        place = f"histories/{history}/contents/{id_of(dataset)}/display?to_ext={known}"
        digest = hashlib.sha256()
        with answering(self._job, "GET", f"{self.url}/{place}", headers=self._login()) as response:
            if response.status != http.client.OK:
                raise refused(response.status, "download")
            while part := response.read(MEBI):
                digest.update(part)
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
        return digest.hexdigest()

    def _login(self) -> dict[str, str]:
        return {"x-api-key": self.key or ""}

    def ask(
        self,
        method: str,
        url: str,
        payload: Mapping[str, Any] | bytes | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request; its answer has a status of 2xx."""
        query = f"?{urlencode(params, doseq=True)}" if params else ""
        body = payload if isinstance(payload, bytes) else None
        if isinstance(payload, Mapping):
            body = json.dumps(payload).encode()
        sent = {"Content-Type": "application/json", **self._login(), **(headers or {})}
        answer = ask(self._job, method, url + query, body=body, headers=sent, most=ANSWER + 1)
        if len(answer.body) > ANSWER:
            raise StepFailed(f"an answer has more than {ANSWER} bytes")
        if not 200 <= answer.status < 300:
            raise refused(answer.status, _what(url), answer.said("err_msg"))
        return answer


class _Upload:
    """A file on its way to Galaxy by TUS, as bioblend uses it."""

    def __init__(self, galaxy: Galaxy, path: Path) -> None:
        self._galaxy, self._path = galaxy, path
        self.session_id = ""

    def upload(self) -> None:
        """Send the file, part by part."""
        try:
            with files.named(self._path, LARGEST) as handle:
                self.session_id = self._sent(handle)
        except FileNotFoundError:
            raise StepFailed(f"inputs: {self._path}: no such file") from None
        except UserError as error:
            raise StepFailed(f"inputs: {error}") from None

    def _sent(self, handle: int) -> str:
        """The name of the upload, when Galaxy has all bytes of an open file."""
        answer = self._send("POST", "", {"Upload-Length": f"{os.fstat(handle).st_size}"}, b"")
        name = answer.headers.get("location", "").rpartition("/")[2]
        if not _UPLOAD.fullmatch(name):
            raise StepFailed("the upload has no id")
        sent = 0
        while part := os.read(handle, PART):
            headers = {
                "Upload-Offset": f"{sent}",
                "Content-Type": "application/offset+octet-stream",
            }
            answer = self._send("PATCH", f"/{name}", headers, part)
            sent += len(part)
            if answer.headers.get("upload-offset") != f"{sent}":
                raise StepFailed(f"of an upload not all {sent} bytes have arrived")
        return name

    def _send(self, method: str, name: str, headers: Mapping[str, str], body: bytes) -> Answer:
        url = f"{self._galaxy.url}/upload/resumable_upload{name}"
        return self._galaxy.ask(method, url, body, headers={**_TUS, **headers})


def id_of(thing: Any, key: str = "id") -> str:
    """The identifier that Galaxy has given to a thing, which becomes part of URLs."""
    found = thing.get(key) if isinstance(thing, Mapping) else None
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise StepFailed("Galaxy gave no id")
    return found


def explain(error: Exception) -> Exception:
    """What bioblend raises, and what an answer of another shape causes, as StepFailed."""
    if isinstance(error, bioblend.ConnectionError):
        return StepFailed("the answer is not understood")
    if isinstance(error, LookupError | TypeError | AttributeError | ValueError):
        return StepFailed(f"the answer is not understood: {type(error).__name__}")
    return web.explain(error)


def _what(url: str) -> str:
    """A request in a word: its place below the API, without identifiers."""
    return _ENCODED.sub("", urlsplit(url).path.partition("/api/")[2])


PAUSE = 0.5  # seconds between two looks at a state
LARGEST_WORKFLOW = 16 * (1 << 20)  # bytes of its file
MAX_INVOCATIONS = 500  # of a workflow with those in it
_SCHEDULED = ("scheduled", "completed")  # of a workflow all of whose jobs are known
_REFUSED = ("failed", "cancelled", "cancelling")
_GOOD = ("ok", "skipped")
_BAD = ("error", "failed", "paused", "stopped", "stopping", "deleted", "deleting", "deleted_new")
_ARRIVED = ("ok", "empty")
_LOST = ("error", "failed_metadata", "discarded", "paused")
_THING = re.compile(r"(\S+) \((history|workflow)\)")
Model = dict[str, Any]  # what Galaxy sends


def test(job: Job, steps: Steps) -> None:
    """From the login to the comparison of the results, each step timed."""
    with steps.step("login"):
        galaxy = Galaxy(job)
        shown = galaxy.config.get_version()
        id_of(galaxy.users.get_current_user())
    number = f"{shown.get('version_major')}.{shown.get('version_minor')}"
    steps.condition(protocol=f"bioblend {version('bioblend')}", tool=f"Galaxy {number}")
    with steps.step("upload"):
        history = id_of(galaxy.histories.create_history(job.mark))
        inputs = _uploaded(galaxy, history, job)
    with steps.step("workflow"):
        workflow = id_of(galaxy.workflows.import_workflow_dict(named(job)))
    with steps.step("run"):
        ended, seconds = _run(galaxy, workflow, history, inputs, job)
    steps.value("run_time", Decimal(f"{seconds:.3f}"), "s")
    if reference := job.service.reference_time:
        share = seconds / float(reference.to("s"))
        steps.value("time_of_reference", Decimal(f"{share:.3f}"), "x")
    if not job.service.results:
        return
    with steps.step("results"):
        wrong = _differing(galaxy, history, ended, job.service.results)
        steps.value("differing_results", len(wrong), "count")
        if wrong:
            label, digest = next(iter(wrong.items()))
            expected = job.service.results[label]
            why = f"{label}: SHA-256 {digest[:16]}…, of the reference {expected[:16]}…"
            raise StepFailed(why, "checksum")


def found(job: Job) -> list[str]:
    """The histories of tests that are not purged, and the workflows."""
    galaxy = Galaxy(job)
    return sorted(
        {f"{name} ({kind})" for kind in ("history", "workflow") for name, _ in _ours(galaxy, kind)}
    )


def remove(job: Job, name: str) -> None:
    """Purge a history with what still runs in it, or delete a workflow; gone is no error."""
    match = _THING.fullmatch(name)
    if not match:
        return
    galaxy = Galaxy(job)
    for own in [one for called, one in _ours(galaxy, match[2]) if called == match[1]]:
        if match[2] == "workflow":
            galaxy.workflows.delete_workflow(own)
        else:
            _end(galaxy, own)
            galaxy.histories.delete_history(own, purge=True)


def named(job: Job) -> Model:
    """The site's workflow, named by the mark. Raises StepFailed if it does not fit the entry."""
    path = Path(job.service.workflow)
    try:
        workflow = files.loads(path, files.read_named(path, LARGEST_WORKFLOW))
    except OSError as error:
        raise StepFailed(f"workflow: {path}: {error.strerror}") from None
    except UserError as error:
        raise StepFailed(f"workflow: {error}") from None
    steps = workflow.get("steps") if isinstance(workflow, dict) else None
    if not isinstance(steps, dict):
        raise StepFailed(f"workflow: {path} is not a workflow as Galaxy exports it")
    known = [step for step in steps.values() if isinstance(step, dict)]
    inputs = {f"{s.get('label')}" for s in known if s.get("type") == "data_input"}
    outputs = {f"{o.get('label')}" for s in known for o in s.get("workflow_outputs") or ()}
    _must_have("input", inputs, job.service.inputs)
    _must_have("output", outputs, job.service.results)
    return {**workflow, "name": job.mark}


def seconds_of(invocation: Mapping[str, Any], jobs: list[Model]) -> float:
    """From the order to run to the end of the last job, by Galaxy's own clock."""
    if not jobs:
        raise StepFailed("the workflow has run no job")
    begun = datetime.fromisoformat(invocation["create_time"])
    return (max(datetime.fromisoformat(j["update_time"]) for j in jobs) - begun).total_seconds()


def _must_have(what: str, known: set[str], wanted: Mapping[str, str]) -> None:
    for label in wanted:
        if label not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise StepFailed(f"the workflow has no {what} '{label}'; it has: {listed}")


def _uploaded(galaxy: Galaxy, history: str, job: Job) -> dict[str, str]:
    """The identifier of each input's dataset, when all have arrived."""
    made = {}
    for label, path in job.service.inputs.items():
        sent = galaxy.tools.upload_file(path, history, file_name=label, to_posix_lines=False)
        made[label] = id_of(sent["outputs"][0])

    def state() -> str:
        for label, dataset in made.items():
            shown = galaxy.datasets.show_dataset(dataset)
            if shown["state"] in _LOST:
                why = f"upload of '{label}': {shown['state']}: {shown.get('misc_info') or ''}"
                raise StepFailed(why)
            if shown["state"] not in _ARRIVED:
                return f"the upload of '{label}' is {shown['state']}"
        return ""

    job.wait(state, PAUSE)
    return made


def _run(
    galaxy: Galaxy, workflow: str, history: str, inputs: Mapping[str, str], job: Job
) -> tuple[Model, float]:
    """Run the workflow to its end; what Galaxy then knows of it, and its seconds."""
    made = galaxy.workflows.invoke_workflow(
        workflow,
        inputs={label: {"src": "hda", "id": dataset} for label, dataset in inputs.items()},
        inputs_by="name",
        history_id=history,
    )
    identifier = id_of(made)
    jobs: list[Model] = []

    def state() -> str:
        invocations = _invocations(galaxy, identifier)
        jobs.clear()
        for part in invocations:
            jobs.extend(galaxy.jobs.get_jobs(invocation_id=id_of(part)))
        _must_not_have_failed(galaxy, invocations, jobs)
        return _still(invocations, jobs)

    job.wait(state, PAUSE)
    ended = galaxy.invocations.show_invocation(identifier)
    return ended, seconds_of(ended, jobs)


def _must_not_have_failed(galaxy: Galaxy, invocations: list[Model], jobs: list[Model]) -> None:
    for part in invocations:
        if part["state"] in _REFUSED:
            reasons = [f"{one.get('reason')}" for one in part.get("messages") or ()]
            raise StepFailed(": ".join([f"the workflow {part['state']}", *reasons]))
    failed = [one for one in jobs if one["state"] in _BAD]
    failed.sort(key=lambda one: one["state"] == "paused")  # those wait for one that has failed
    for one in failed:
        shown = galaxy.jobs.show_job(id_of(one), full_details=True)
        code = shown.get("exit_code")
        said = f"{shown.get('tool_stderr') or shown.get('stderr') or ''}".strip()
        exited = "" if code is None else f", exit code {code}"
        why = f"the job of {one.get('tool_id')}: {one['state']}{exited}"
        raise StepFailed(": ".join(filter(None, [why, said])))


def _still(invocations: list[Model], jobs: list[Model]) -> str:
    """What is not yet done."""
    for one in jobs:
        if one["state"] not in _GOOD:
            return f"the job of {one.get('tool_id')} is {one['state']}"
    waiting = [part["state"] for part in invocations if part["state"] not in _SCHEDULED]
    return f"the workflow is {waiting[0]}" if waiting else ""


def _invocations(galaxy: Galaxy, identifier: str) -> list[Model]:
    """A workflow that runs, and those in it."""
    found: list[Model] = []
    waiting = [identifier]
    while waiting and len(found) < MAX_INVOCATIONS:
        shown = galaxy.invocations.show_invocation(waiting.pop())
        found.append(shown)
        inner = [one for one in shown["steps"] if one.get("subworkflow_invocation_id")]
        waiting += [id_of(one, "subworkflow_invocation_id") for one in inner]
    return found


def _differing(
    galaxy: Galaxy, history: str, ended: Model, results: Mapping[str, str]
) -> dict[str, str]:
    """The results that are not those of the reference, with their SHA-256."""
    wrong = {}
    for label, expected in results.items():
        output = ended["outputs"].get(label)
        if output is None:
            raise StepFailed(f"{label}: not one file, but a collection, or not there")
        digest = galaxy.sha256(history, galaxy.datasets.show_dataset(id_of(output)))
        if digest != expected:
            wrong[label] = digest
    return wrong


def _end(galaxy: Galaxy, history: str) -> None:
    """Stop what still runs, or would be run, in a history."""
    for one in galaxy.invocations.get_invocations(history_id=history, include_terminal=False):
        galaxy.invocations.cancel_invocation(id_of(one))
    for one in galaxy.jobs.get_jobs(history_id=history):
        if one["state"] not in (*_GOOD, *_BAD):
            galaxy.jobs.cancel_job(id_of(one))


def _ours(galaxy: Galaxy, kind: str) -> list[tuple[str, str]]:
    """Names and identifiers of our workflows, or of histories, also of those not yet purged."""
    listed: list[Model] = []
    if kind == "workflow":
        listed = galaxy.workflows.get_workflows()
    for more in ({}, {"deleted": "True", "purged": "False"}) if kind == "history" else ():
        rules = {"name-contains": PREFIX, **more}
        params = {"q": list(rules), "qv": list(rules.values()), "keys": "id,name"}
        listed += galaxy.make_get_request(f"{galaxy.url}/histories", params=params).json()
    return [(f"{one['name']}", id_of(one)) for one in listed if marked(f"{one['name']}")]


KINDS = {"galaxy": Kind(test, found, remove, explain)}
