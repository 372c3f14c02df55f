"""What OpenSSH, its sftp, rsync, df and kinit print: recorded from real ones, in Debian 12."""

import pytest
from rows import rows

from siteproof.services import sftp, ssh, steps
from siteproof.services.steps import Job
from siteproof.sites import Service

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Host key for [127.0.0.1]:2299 has changed and you have requested strict checking.
Host key verification failed.
"""
UNKNOWN = """\
No ED25519 host key is known for [127.0.0.1]:2299 and you have requested strict checking.
Host key verification failed.
"""
REASONS = [
    (CHANGED, "login", "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!"),
    (UNKNOWN, "login", UNKNOWN.splitlines()[0]),
    (
        "root@127.0.0.1: Permission denied (publickey).\r\nConnection closed\n",
        "login",
        "root@127.0.0.1: Permission denied (publickey).",
    ),
    (
        'Load key "/k": error in libcrypto\nroot@h: Permission denied (publickey).\n',
        "login",
        'Load key "/k": error in libcrypto',
    ),
    (
        "ssh: connect to host 127.0.0.1 port 2297: Connection refused\r\n",
        "generic",
        "put: ssh: connect to host 127.0.0.1 port 2297: Connection refused",
    ),
    (
        "Connection timed out during banner exchange\r\nConnection to 127.0.0.1 port 1 timed out\n",
        "timeout",
        "Connection timed out during banner exchange",
    ),
    (
        "Control socket connect(/tmp/x/ssh): Connection refused\nstat remote: No such file\n",
        "generic",
        "put: stat remote: No such file",
    ),
    ('remote open("/in/x"): Permission denied\n', "generic", None),
    ("", "generic", "put: the connection was closed"),
    ("Connection closed\n", "generic", "put: the connection was closed"),
    ("\x00\x1b[31m@@@\n", "generic", None),
]


@rows("text, status, why", REASONS)
def test_why_ssh_ended_is_the_line_that_says_it(text, status, why):
    failed = ssh.refused(text, "put")
    assert failed.status == status
    assert why in (None, str(failed))


@rows(
    "address, parts",
    [
        ("host", ("", "host", "")),
        ("alice@host.org:22", ("alice", "host.org", "22")),
        ("a.b-c@[fe80::1]:2222", ("a.b-c", "fe80::1", "2222")),
        ("[::1]", ("", "::1", "")),
    ],
)
def test_an_address_has_a_user_a_host_and_a_port(address, parts):
    assert ssh.parts(address) == parts


def test_what_is_no_address_in_brackets_is_named():
    with pytest.raises(steps.StepFailed, match=r"'a@\[1.2\]:22' is not an address"):
        ssh.parts("a@[1.2]:22")


def test_the_configuration_trusts_the_sites_host_keys_and_asks_nobody(tmp_path):
    entry = Service(
        kind="sftp",
        address="alice@host:23",
        folder="/in",
        key="/keys/100% mine",
        known_hosts="/keys/known hosts",
    )
    job = Job("box", entry, steps.mark("20261125T120000Z-0123456", "box"), tmp_path, "mine")
    connection = ssh.Ssh.by_key(job)
    lines = connection.config.read_text().splitlines()
    assert 'IdentityFile "/keys/100%% mine"' in lines
    assert 'UserKnownHostsFile "/keys/known hosts"' in lines
    assert {"HostName host", "User alice", "Port 23", "BatchMode yes"} <= set(lines)
    assert {"StrictHostKeyChecking yes", "IdentityAgent none"} <= set(lines)


def test_sums_are_those_of_sha256sum_and_nothing_else():
    good = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert ssh.checksums(f"{good}  large\nWelcome!\n{good[:60]}  short\n") == {"large": good}


SFTP_DF = """\
        Size         Used        Avail       (root)    %Capacity
   263174212    140023652    109716732    123150560          53%
"""


def test_free_room_by_sftp_is_that_of_users():
    assert sftp.free(sftp._SFTP_DF, SFTP_DF) == 109716732 * 1024


@rows("text", ["", SFTP_DF.splitlines()[0], SFTP_DF[:90], "a b c d 53%"])
def test_no_room_is_known_without_a_whole_table_of_sftp(text):
    assert sftp.free(sftp._SFTP_DF, text) is None


DF = """\
Filesystem     1024-blocks      Used Available Capacity Mounted on
/dev/vda1        263174212 140023652 109716732      57% /
"""


@rows("device", ["/dev/vda1", "//server/share of all", "tank/home"])
def test_free_room_by_df_is_that_of_users(device):
    assert sftp.free(sftp._DF, DF.replace("/dev/vda1", device)) == 109716732 * 1024


@rows("text", ["", DF.splitlines()[0], DF[:110], "df: .: Stale file handle\n"])
def test_no_room_is_known_without_a_whole_table_of_df(text):
    assert sftp.free(sftp._DF, text) is None


def test_a_path_in_a_command_of_sftp_is_quoted():
    assert sftp.quoted('/in "a" \\b') == '"/in \\"a\\" \\\\b"'


KLIST = """\
Ticket cache: FILE:/tmp/x/ticket
Default principal: alice@TEST

Valid starting       Expires              Service principal
11/25/2026 13:11:50  11/26/2026 13:11:50  krbtgt/TEST@TEST
"""


def test_klist_says_whose_tickets_it_shows():
    assert sftp.principal(KLIST) == "alice@TEST"
    assert sftp.principal("klist: No credentials cache found (filename: /tmp/x)\n") == ""


@rows(
    "text, status",
    [
        ("kinit: Password incorrect while getting initial credentials", "login"),
        ("kinit: Preauthentication failed while getting initial credentials", "login"),
        ("kinit: Keytab contains no suitable keys for eve@TEST while getting", "login"),
        ("kinit: Client 'eve@TEST' not found in Kerberos database while", "login"),
        ("kinit: Client's entry in database has expired while getting", "login"),
        ("kinit: Cannot contact any KDC for realm 'TEST' while getting", "generic"),
        ("", "generic"),
    ],
)
def test_why_kinit_gave_no_ticket(text, status):
    failed = sftp.no_ticket(text)
    assert failed.status == status
    assert str(failed)
