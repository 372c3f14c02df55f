"""Kerberos: a ticket by the site's keytab, then files by SFTP with that ticket alone.

The ticket is kept in the scratch folder of the test, and ends with it.
"""

from __future__ import annotations

import os
import re
from contextlib import closing

from siteproof.services import ssh, transfers
from siteproof.services.sftp import Sftp
from siteproof.services.steps import Job, StepFailed, Steps, private

_AUTH = (
    "PreferredAuthentications gssapi-with-mic",
    "GSSAPIAuthentication yes",
    "PubkeyAuthentication no",
)
_DELEGATE = "GSSAPIDelegateCredentials"
_DEFAULT = re.compile(r"^Default principal: (\S+)$", re.MULTILINE)
# What a user calls "I cannot get in"; all else of kinit is a fault of the service.
_LOGIN = re.compile(
    "Preauthentication failed|Password incorrect|not found in Kerberos database|expired"
    "|revoked|no suitable keys|Key table|keytab|Clock skew"
)


def test(job: Job, steps: Steps) -> None:
    """A ticket, and files to the service and back."""
    with steps.step("ticket"):
        ticket(job)
    with closing(_client(job)) as client:
        transfers.transfer(job, steps, client)
    if job.service.forward:
        with steps.step("forward"):
            forwarded(job)


def ticket(job: Job) -> None:
    """Get one by the keytab, and see that it is there and whose it is."""
    service = job.service
    private("keytab", service.keytab)
    argv = ["kinit", "-f" if service.forward else "-F", "-k", "-t", service.keytab]
    got = transfers.run(job, [*argv, "--", service.principal], env=_env(job))
    if got.code:
        raise refused(got.errors)
    shown = transfers.run(job, ["klist"], env=_env(job))
    if principal(shown.out) != service.principal:
        raise StepFailed("login", f"klist shows no ticket of {service.principal}")


def forwarded(job: Job) -> None:
    """Pass the ticket on to the far end, where it must be of the same principal."""
    far = ssh.Ssh(job, (*_AUTH, f"{_DELEGATE} yes"), _env(job))
    if principal(far.printed("klist")) != job.service.principal:
        raise StepFailed("login", f"the far end has no ticket of {job.service.principal}")


def principal(text: str) -> str:
    """Whose tickets klist shows; empty: nobody's."""
    match = _DEFAULT.search(text)
    return match[1] if match else ""


def refused(text: str) -> StepFailed:
    """Why kinit gave no ticket, by what it wrote."""
    why = (text.strip().splitlines() or ["kinit ended without a ticket"])[-1]
    return StepFailed("login" if _LOGIN.search(why) else "generic", why)


def _client(job: Job) -> Sftp:
    return Sftp(job, ssh.Ssh(job, (*_AUTH, f"{_DELEGATE} no"), _env(job)), "sftp by Kerberos")


def _client_with_ticket(job: Job) -> Sftp:
    ticket(job)
    return _client(job)


def _env(job: Job) -> dict[str, str]:
    """Where the tools of Kerberos find the ticket and, if the site has one, its configuration."""
    config = {"KRB5_CONFIG": job.service.krb5_config} if job.service.krb5_config else {}
    cache = {"KRB5CCNAME": f"FILE:{job.scratch}/ticket"}
    return {**os.environ, **cache, **config, "LC_ALL": "C"}


_KIND = transfers.Kind(_client_with_ticket)
found, remove = _KIND.found, _KIND.remove
