"""A web page, such as a gateway's or a portal's first one: status, content, certificate."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urljoin

from siteproof.services.asking import Answer, ask, is_tls, split, valid_until
from siteproof.services.steps import Job, StepFailed, Steps

MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)


def test(job: Job, steps: Steps) -> None:
    """The page after redirects; the days left of its certificate."""
    with steps.step("page"):
        url, answer = page(job)
        if answer.status != job.service.http_status:
            raise StepFailed("generic", f"HTTP status {answer.status} (GET)")
        if job.service.content not in answer.body.decode("utf-8", "replace"):
            why = f"the page does not have '{job.service.content[:60]}'"
            raise StepFailed("generic", why)
    with_tls = [one for one in {job.service.address, url} if is_tls(split(one))]
    if with_tls:
        with steps.step("certificate"):
            left = min(valid_until(job, one) for one in with_tls) - datetime.now(UTC)
        steps.value("certificate_days", round(left.total_seconds() / 86_400, 2), "d")


def page(job: Job) -> tuple[str, Answer]:
    """The page of the service's address, with the URL at which redirects end."""
    url = job.service.address
    for _ in range(MAX_REDIRECTS + 1):
        answer = ask(job, "GET", url)
        location = answer.headers.get("location", "")
        if answer.status == job.service.http_status or answer.status not in _REDIRECTS:
            return url, answer
        if not location:
            raise StepFailed("generic", f"HTTP status {answer.status} without a Location (GET)")
        url, before = urljoin(url, location), url
        if is_tls(split(before)) and not is_tls(split(url)):
            raise StepFailed("generic", "a redirect from https to http")
    raise StepFailed("generic", f"more than {MAX_REDIRECTS} redirects")


def found(job: Job) -> list[str]:
    """Nothing: a page is only read."""
    return []


def remove(job: Job, name: str) -> None:
    """Nothing is there to be removed."""
