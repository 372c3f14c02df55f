"""Globus by its SDK against the answers that its documentation gives: no transfer is made.

Those of submit_transfer, submit_delete, task_list, cancel_task and of a token are the SDK's own
fixtures; those of a folder and of one task, which it has not got, are the examples of
docs.globus.org/api/transfer.
"""

import json

import pytest
import responses
from globus_sdk import TransferClient
from globus_sdk.testing import RegisteredResponse, load_response
from rows import rows

from siteproof.services import globus, steps
from siteproof.services.steps import Job, StepFailed
from siteproof.sites import Service

SESSION = "20261125T120000Z-0123456"
ENDS = ("11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222")
FILES = {"one.dat": 1_000_000, "two.dat": 500_000}


def entry(name, size, kind="file"):
    return {"DATA_TYPE": "file", "name": name, "size": size, "type": kind, "user": "snakeoil"}


@pytest.fixture
def job(tmp_path):
    secret = tmp_path / "credentials"
    secret.write_text("client_id=33333333-3333-3333-3333-333333333333\nclient_secret=hidden1234\n")
    secret.chmod(0o600)
    keys = {"folder": "/in", "from_folder": "/out", "credentials": f"{secret}"}
    service = Service(
        kind="globus", address=">".join(ENDS), timeout="1 s", here="a", there="b", **keys
    )
    return Job("box", service, steps.mark(SESSION, "box"), tmp_path, "mine")


@pytest.fixture
def api(monkeypatch):
    """The service, whose folders and tasks a test gives."""
    monkeypatch.setattr(globus, "PAUSE", 1)
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        load_response("auth.oauth2_client_credentials_tokens", requests_mock=mock)
        for end in ENDS:
            answer(mock, f"/v0.10/endpoint/{end}", {"DATA_TYPE": "endpoint", "id": end})
        yield mock


def answer(mock, path, document, method="GET", status=200):
    RegisteredResponse(
        service="transfer", path=path, json=document, method=method, status=status
    ).add(requests_mock=mock)


def folder(mock, end, entries):
    document = {"DATA_TYPE": "file_list", "DATA": entries}
    answer(mock, f"/v0.10/operation/endpoint/{end}/ls", document)


def task(mock, identity, **keys):
    document = {
        "DATA_TYPE": "task",
        "status": "SUCCEEDED",
        "bytes_transferred": 1_500_000,
        "effective_bytes_per_second": 250_000,
        **keys,
    }
    answer(mock, f"/v0.10/task/{identity}", document)


def made(job):
    """The records of a test, and why it failed, if it did."""
    found = []
    try:
        globus.test(job, steps.Steps(found.append, job.seconds, globus.explain))
    except StepFailed as error:
        return found, (error.status, str(error))
    return found, None


def bodies(mock, path):
    return [json.loads(c.request.body) for c in mock.calls if c.request.url.endswith(path)]


def test_files_go_to_the_destination_and_back_and_globus_compares_checksums(job, api):
    folder(api, ENDS[0], [entry(*one) for one in FILES.items()] + [entry("x", 4096, "dir")])
    submitted = load_response(TransferClient.submit_transfer, requests_mock=api).metadata
    task(api, submitted["task_id"])
    answer(api, "/v0.10/submission_id", {"value": submitted["submission_id"]})
    found, failed = made(job)
    assert failed is None
    assert [r["end"]["step"] for r in found if "end" in r] == ["login", "quota", "put", "get"]
    there, back = bodies(api, "/transfer")
    assert there["verify_checksum"] is back["verify_checksum"] is True
    assert there["label"] == job.mark
    assert [(d["source_path"], d["destination_path"]) for d in there["DATA"]] == [
        (f"/out/{name}", f"/in/{job.mark}/{name}") for name in FILES
    ]
    assert [(d["source_path"], d["destination_path"]) for d in back["DATA"]] == [
        (f"/in/{job.mark}/{name}", f"/out/{job.mark}/{name}") for name in FILES
    ]
    assert (there["source_endpoint"], there["destination_endpoint"]) == ENDS
    assert (back["source_endpoint"], back["destination_endpoint"]) == ENDS[::-1]
    rates = [(r["value"], r["dims"]) for r in found if "metric" in r]
    assert rates == [
        ("0.25", {"sender": "a", "receiver": "b", "files": "2"}),
        ("0.25", {"sender": "b", "receiver": "a", "files": "2"}),
    ]
    assert "hidden1234" not in json.dumps(found)


def test_a_source_with_more_than_the_quota_is_not_moved(job, api):
    folder(api, ENDS[0], [entry("large", 10**12)])
    _, failed = made(job)
    assert failed[0] == "generic"
    assert "/out of the source has 931.3 GiB, at most 65.25 MiB may be moved" in failed[1]
    assert bodies(api, "/transfer") == []


@pytest.mark.parametrize("status", [400, 401, 403])
def test_credentials_that_are_refused_are_a_login(job, api, status):
    api.replace(
        responses.POST,
        "https://auth.globus.org/v2/oauth2/token",
        json={"error": "invalid_client"},
        status=status,
    )
    _, failed = made(job)
    assert failed[0] == "login"
    assert f"HTTP status {status}" in failed[1]


def test_a_service_that_answers_500_is_asked_once(job, api):
    api.replace(
        responses.GET, f"https://transfer.api.globus.org/v0.10/endpoint/{ENDS[0]}", status=500
    )
    _, failed = made(job)
    assert failed[0] == "generic"
    assert "HTTP status 500" in failed[1]
    assert sum("/endpoint/" in call.request.url for call in api.calls) == 1


@rows(
    "keys, status",
    [
        ({"fatal_error": {"code": "VERIFY_CHECKSUM", "description": "differs"}}, "checksum"),
        ({"fatal_error": {"code": "PERMISSION_DENIED", "description": "no"}}, "login"),
        ({"nice_status": "CREDENTIALS_EXPIRED"}, "login"),
        ({"nice_status": "QUOTA_EXCEEDED"}, "generic"),
        ({"fatal_error": None, "nice_status": None}, "generic"),
    ],
)
def test_why_a_task_failed_is_in_its_own_words(keys, status):
    failed = globus.failed({"status": "FAILED", **keys})
    assert failed.status == status
    assert str(failed) in ("FAILED", "VERIFY_CHECKSUM: differs", "PERMISSION_DENIED: no") or (
        str(failed) == keys["nice_status"]
    )


def test_what_is_left_is_read_from_both_folders_and_from_tasks_that_have_not_ended(job, api):
    other = steps.mark(SESSION, "other")
    folder(api, ENDS[0], [entry("data", 4096, "dir")])
    folder(api, ENDS[1], [entry(job.mark, 4096, "dir")])
    document = {"DATA": [{"label": other, "task_id": "t"}, {"label": None}], "total": 2}
    answer(api, "/v0.10/task_list", document)
    assert globus.KINDS["globus"].found(job) == [job.mark, other]


def test_removal_cancels_the_task_and_removes_the_folder_where_it_is(job, api):
    folder(api, ENDS[0], [])
    folder(api, ENDS[1], [entry(job.mark, 4096, "dir")])
    cancelled = load_response(TransferClient.cancel_task, requests_mock=api).metadata["task_id"]
    answer(api, "/v0.10/task_list", {"DATA": [{"label": job.mark, "task_id": cancelled}]})
    deleted = load_response(TransferClient.submit_delete, requests_mock=api).metadata
    answer(api, "/v0.10/submission_id", {"value": deleted["submission_id"]})
    task(api, deleted["task_id"])
    globus.KINDS["globus"].remove(job, job.mark)
    assert any(call.request.url.endswith(f"/task/{cancelled}/cancel") for call in api.calls)
    (body,) = bodies(api, "/delete")
    assert (body["endpoint"], body["recursive"]) == (ENDS[1], True)
    assert [item["path"] for item in body["DATA"]] == [f"/in/{job.mark}"]
