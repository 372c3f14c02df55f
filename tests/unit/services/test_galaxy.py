"""What of Galaxy can be tested without one: keys, the workflow's file, hostile answers, limits."""

import hashlib
import json
import time
from unittest.mock import MagicMock

import pytest
from rows import rows
from served import MARK, pages, step

from siteproof.errors import UserError
from siteproof.services import galaxy
from siteproof.services.galaxy import Galaxy, id_of
from siteproof.services.steps import Job, StepFailed
from siteproof.sites import Service

DIGEST = hashlib.sha256(b"").hexdigest()
ENTRY = {
    "kind": "galaxy",
    "address": "https://galaxy.host/prefix/",
    "token": "/etc/siteproof/galaxy_key",
    "workflow": "/etc/siteproof/workflow.ga",
    "inputs": {"reads": "/etc/siteproof/reads.fastq"},
    "results": {"variants": DIGEST},
}
STEPS = {
    "0": {"id": 0, "type": "data_input", "label": "reads"},
    "1": {"id": 1, "type": "tool", "workflow_outputs": [{"label": "variants"}]},
}
KEY = "0123456789abcdef"


def service(**more):
    return Service.model_validate({**ENTRY, **more})


@pytest.fixture
def job(tmp_path):
    """Makes a job with an API key; more: keys of the service."""

    def make(**more):
        (tmp_path / "key").write_text(f"{KEY}\n")
        (tmp_path / "key").chmod(0o600)
        entry = service(**{"token": f"{tmp_path}/key", "timeout": "1 s", **more})
        return Job("one", entry, MARK, tmp_path, "example")

    return make


@pytest.fixture
def file_of(tmp_path, job):
    """Makes a job whose workflow's file has a content."""

    def make(content, **more):
        path = tmp_path / "workflow.ga"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return job(workflow=f"{path}", **more)

    return make


def test_a_service_reaches_another_process_as_it_is_written():
    given = service(reference_time="2 min")
    assert Service.model_validate(given.as_written()) == given
    assert given.reference_time.to("s") == 120
    assert not given.transfers and given.bytes_written == 0


@rows(
    "more, why",
    [
        ({"inputs": {}}, "kind galaxy without 'inputs'"),
        ({"workflow": ""}, "kind galaxy without 'workflow'"),
        ({"workflow": "workflow.ga"}, "is not valid"),
        ({"inputs": {"reads": "reads.fastq"}}, "is not valid"),
        ({"inputs": {"re\nads": "/reads"}}, "is not valid"),
        ({"results": {"variants": DIGEST.upper()}}, "is not valid"),
        ({"results": {"": DIGEST}}, "is not valid"),
        ({"reference_time": "0 s"}, "not above 0"),
        ({"reference_time": "2 MB"}, "2 MB"),
        ({"bucket": "x"}, "'bucket' with kind galaxy"),
        ({"address": "galaxy.host"}, "not an address of kind galaxy"),
    ],
)
def test_a_key_that_does_not_fit_is_refused(more, why):
    with pytest.raises((ValueError, UserError)) as error:
        service(**more)
    assert why in str(error.value)


def test_a_workflow_is_named_by_the_mark_and_otherwise_as_the_site_wrote_it(file_of):
    given = {"name": "Mapping", "steps": STEPS, "tags": ["x"]}
    assert galaxy.named(file_of(given)) == {**given, "name": MARK}


@rows(
    "content, why",
    [
        ("", "broken JSON"),
        ("[]", "not a workflow as Galaxy exports it"),
        ({"steps": []}, "not a workflow as Galaxy exports it"),
        ({"steps": {}}, "no input 'reads'; it has: none"),
        ({"steps": {"0": STEPS["0"]}}, "no output 'variants'; it has: none"),
        ({"steps": {"0": {**STEPS["0"], "label": "a"}, "1": STEPS["1"]}}, "'reads'; it has: a"),
    ],
)
def test_a_workflow_that_does_not_fit_the_entry_is_named(file_of, content, why):
    with pytest.raises(StepFailed) as error:
        galaxy.named(file_of(content))
    assert (error.value.status, why in str(error.value)) == ("generic", True)


def test_a_workflow_that_is_not_there_is_named(job):
    with pytest.raises(StepFailed, match="workflow: /etc/siteproof/workflow.ga: no such file"):
        galaxy.named(job())


def test_the_time_is_from_the_order_to_the_end_of_the_last_job():
    begun = {"create_time": "2026-11-25T17:55:14.196072"}
    jobs = [{"update_time": f"2026-11-25T17:55:{end}"} for end in ("47.284432", "32.116548")]
    assert galaxy.seconds_of(begun, jobs) == pytest.approx(33.08836)


@rows("digests, differing", [({"variants": DIGEST}, 1), ({}, None)])
def test_results_are_compared_only_where_the_site_states_them(job, monkeypatch, digests, differing):
    monkeypatch.setattr(galaxy, "Galaxy", MagicMock())
    monkeypatch.setattr(galaxy, "id_of", lambda *_: "1")
    monkeypatch.setattr(galaxy, "named", lambda _: {})
    monkeypatch.setattr(galaxy, "_uploaded", lambda *_: {})
    monkeypatch.setattr(galaxy, "_run", lambda *_: ({}, 2.0))
    monkeypatch.setattr(galaxy, "_differing", lambda *_: {"variants": "0" * 64})
    steps = MagicMock()
    steps.step.return_value.__exit__.return_value = True  # the failed step is noted
    galaxy.test(job(results=digests), steps)
    values = {call.args[0]: call.args[1] for call in steps.value.call_args_list}
    assert values.get("differing_results") == differing


@rows(
    "shown, why",
    [
        ({"exit_code": 1, "stderr": "no index\n"}, "the job of bwa: error, exit code 1: no index"),
        ({"exit_code": None, "tool_stderr": ""}, "the job of bwa: error"),
        ({}, "the job of bwa: error"),
    ],
)
def test_a_job_that_failed_is_named_with_what_galaxy_knows_of_its_end(shown, why):
    failed = {"id": KEY, "tool_id": "bwa", "state": "error"}
    server = MagicMock()
    server.jobs.show_job.return_value = shown
    with pytest.raises(StepFailed) as raised:
        galaxy._must_not_have_failed(server, [], [failed])
    assert str(raised.value) == why


def test_a_workflow_without_a_job_has_no_time():
    with pytest.raises(StepFailed, match="has run no job"):
        galaxy.seconds_of({"create_time": "2026-11-25T17:55:14"}, [])


@rows("thing", [None, [], {}, {"id": 5}, {"id": ""}, {"id": "../histories/1"}, {"id": "1?x=1"}])
def test_what_is_no_identifier_becomes_no_part_of_a_url(thing):
    with pytest.raises(StepFailed, match="Galaxy gave no id"):
        id_of(thing)


@rows("error", [KeyError("id"), TypeError(), AttributeError(), ValueError()])
def test_an_answer_of_another_shape_is_named_without_its_content(error):
    with pytest.raises(StepFailed, match="the answer is not understood"), step(galaxy.explain):
        raise error


def galaxy_of(job, answers, **more):
    """A Galaxy behind which a server answers."""
    return pages(answers), lambda at: Galaxy(job(address=f"http://{at}", **more))


@rows(
    "answer, status, why",
    [
        (
            (401, {}, b'{"err_msg": "No such key"}'),
            "login",
            r"HTTP status 401 \(version\): No such",
        ),
        ((500, {}, b"<html>"), "generic", r"HTTP status 500 \(version\)$"),
        ((302, {"Location": "http://elsewhere/"}, b""), "generic", r"HTTP status 302 \(version\)"),
        ((200, {}, b"<html>"), "generic", "not JSON"),
        ((200, {}, b""), "generic", "not understood"),
        ((200, {}, b"[" * 5000), "generic", "not JSON"),
    ],
)
def test_an_answer_that_is_none_has_a_status_and_a_reason(job, answer, status, why):
    served, made = galaxy_of(job, {"/api/version": answer})
    with served as at, pytest.raises(StepFailed, match=why) as error, step(galaxy.explain):
        made(at).config.get_version()
    assert error.value.status == status


def test_an_answer_has_a_limit(job, monkeypatch):
    monkeypatch.setattr(galaxy, "ANSWER", 10)
    served, made = galaxy_of(job, {"/api/version": (200, {}, b'{"version_major": "26.1"}')})
    with served as at, pytest.raises(StepFailed, match="more than 10 bytes"):
        made(at).config.get_version()


@pytest.mark.deep
def test_a_silent_galaxy_is_a_timeout(job):
    served, made = galaxy_of(job, {"/api/version": lambda _: time.sleep(2)})
    with served as at, pytest.raises(TimeoutError):
        made(at).config.get_version()


def test_a_result_is_hashed_and_its_extension_is_data(job):
    place = "/api/histories/1a/contents/2b/display?to_ext="
    answers = {f"{place}txt": (200, {}, b"figures"), f"{place}data": (200, {}, b"hostile")}
    served, made = galaxy_of(job, answers)
    with served as at:
        api = made(at)
        digests = [
            api.sha256("1a", {"id": "2b", "file_ext": name}) for name in ("txt", "a&x=/../b")
        ]
    assert digests == [hashlib.sha256(text).hexdigest() for text in (b"figures", b"hostile")]


def test_a_result_that_ends_in_the_middle_has_no_checksum(job):
    def cut(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b"half")

    served, made = galaxy_of(job, {"/api/histories/1a/contents/2b/display?to_ext=txt": cut})
    with served as at, pytest.raises(StepFailed, match="ended in the middle"), step(galaxy.explain):
        made(at).sha256("1a", {"id": "2b", "file_ext": "txt"})


def uploading(location, offset, seen):
    """What a server answers to an upload. offset: what it has then; seen: gets what has arrived."""

    def part(handler):
        seen.append((handler.headers["Upload-Offset"], handler.body))
        handler.send_response(204)
        handler.send_header("Upload-Offset", offset)
        handler.end_headers()

    begin = (201, {"Location": location}, b"")
    place = "/api/upload/resumable_upload"
    return {place: begin, f"{place}/abc": part}


def test_an_upload_goes_to_galaxy_wherever_its_answer_points_to(job, tmp_path):
    (tmp_path / "reads").write_bytes(b"ACGT")
    seen = []
    served, made = galaxy_of(job, uploading("http://127.0.0.1:9/elsewhere/abc", "4", seen))
    with served as at:
        upload = made(at).get_tus_uploader(f"{tmp_path}/reads")
        upload.upload()
    assert (upload.session_id, seen) == ("abc", [("0", b"ACGT")])


@rows(
    "location, offset, why",
    [("/x/a?b=c", "4", "has no id"), ("", "4", "has no id"), ("/x/abc", "3", "not all 4 bytes")],
)
def test_an_upload_that_galaxy_does_not_take_is_named(job, tmp_path, location, offset, why):
    (tmp_path / "reads").write_bytes(b"ACGT")
    served, made = galaxy_of(job, uploading(location, offset, []))
    with served as at, pytest.raises(StepFailed, match=why):
        made(at).get_tus_uploader(f"{tmp_path}/reads").upload()


def test_an_input_that_is_not_there_is_named(job):
    with pytest.raises(StepFailed, match="inputs: /nowhere/reads: no such file"):
        Galaxy(job()).get_tus_uploader("/nowhere/reads").upload()


def test_nothing_of_the_environment_steers_it(job, monkeypatch, tmp_path):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    seen = []

    def version(handler):
        seen.append(dict(handler.headers))
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b'{"version_major": "26.1"}')

    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", f"{tmp_path}/.netrc")
    served, made = galaxy_of(job, {"/api/version": version})
    with served as at:
        assert made(at).config.get_version() == {"version_major": "26.1"}
    assert seen[0]["x-api-key"] == KEY and "Authorization" not in seen[0]
