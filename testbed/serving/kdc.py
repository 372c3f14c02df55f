"""A Kerberos realm with its KDC, and an sshd that takes its tickets and nothing else."""

from serving import lines, sftp
from serving.place import Place

WHAT = "Kerberos: MIT's KDC, and an sshd that takes its tickets"
PORT, BEHIND, KDC = 2222, 12222, 8888
REALM, WHO = "TEST", "alice"
PACKAGES = {
    "krb5kdc": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
    "kinit": "krb5-user",
    "sshd": "openssh-server",
}
FAULTS = {
    **lines.FAULTS,
    "expired-keytab": "the principal has another key than its keytab",
    "no-kdc": "the KDC has ended",
    "wrong-host-key": "the server shows another host key",
    "full-disk": "the folder has almost no room",
    "wrong-checksum": "each file is altered when it is written",
}


def start(place: Place) -> None:
    """The realm, its principals, KDC and sshd."""
    at = place.folder
    (at / "incoming").mkdir()
    for name in ("host", "other"):
        sftp.keygen(at / name)
    place.write("known_hosts", sftp.known_hosts(place, PORT))
    place.write(
        "krb5.conf",
        f"""\
[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 rdns = false
 dns_canonicalize_hostname = false
[realms]
 {REALM} = {{
  kdc = {place.address}:{KDC}
  auth_to_local = RULE:[1:$1@$0]({WHO}@{REALM})s/.*/root/
 }}
""",
        0o644,
    )
    place.write(
        "kdc.conf",
        f"""\
[kdcdefaults]
 kdc_listen = {place.address}:{KDC}
 kdc_tcp_listen = {place.address}:{KDC}
[realms]
 {REALM} = {{
  database_name = {at}/db
  key_stash_file = {at}/stash
  acl_file = {at}/acl
 }}
""",
    )
    place.run(["kdb5_util", "create", "-s", "-r", REALM, "-P", "of-the-test-bed"], env=_env(place))
    for name in (WHO, f"host/{place.address}"):
        _admin(place, f"addprinc -randkey {name}@{REALM}")
    _admin(place, f"ktadd -k {at}/keytab {WHO}@{REALM}")
    _admin(place, f"ktadd -k {at}/host.keytab host/{place.address}@{REALM}")
    (at / "keytab").chmod(0o600)
    _serve_kdc(place)
    _serve(place, "host")
    place.relay(PORT, BEHIND)


def probe(place: Place) -> None:
    """A ticket, and the greeting of sshd."""
    at = place.folder
    cache = f"{at}/probe"
    argv = ["kinit", "-k", "-t", f"{at}/keytab", "-c", cache, f"{WHO}@{REALM}"]
    place.run(argv, env=_env(place), timeout=5)
    place.hear(PORT, b"SSH-2.0-")


def facts(place: Place) -> dict[str, dict[str, object]]:
    """kinit with the keytab, then files by ssh."""
    at = place.folder
    entry: dict[str, object] = {
        "kind": "kerberos",
        "address": f"root@{place.address}:{PORT}",
        "folder": f"{at}/incoming",
        "principal": f"{WHO}@{REALM}",
        "keytab": f"{at}/keytab",
        "krb5_config": f"{at}/krb5.conf",
        "known_hosts": f"{at}/known_hosts",
    }
    return {"kerberos": entry}


def fault(place: Place, name: str, value: str) -> None:
    """Make it go wrong."""
    if lines.fault(place, name, value):
        return
    if name == "expired-keytab":
        _admin(place, f"cpw -randkey {WHO}@{REALM}")
    elif name == "no-kdc":
        place.stop("krb5kdc -n")
    elif name == "wrong-host-key":
        _serve(place, "other")
    elif name == "full-disk":
        place.fill(place.folder / "incoming")
    elif name == "wrong-checksum":
        place.corrupt(place.folder / "incoming")


def mend(place: Place) -> None:
    """As it was started; the principal has a new keytab."""
    place.spare(place.folder / "incoming")
    place.empty(place.folder / "incoming")
    place.stop("krb5kdc -n")
    (place.folder / "keytab").unlink(missing_ok=True)
    _admin(place, f"ktadd -k {place.folder}/keytab {WHO}@{REALM}")
    (place.folder / "keytab").chmod(0o600)
    _serve_kdc(place)
    _serve(place, "host")


def _env(place: Place) -> dict[str, str]:
    at = place.folder
    return {"KRB5_CONFIG": f"{at}/krb5.conf", "KRB5_KDC_PROFILE": f"{at}/kdc.conf"}


def _admin(place: Place, query: str) -> None:
    place.run(["kadmin.local", "-r", REALM, "-q", query], env=_env(place))


def _serve_kdc(place: Place) -> None:
    place.daemon(["/usr/sbin/krb5kdc", "-n"], env=_env(place))
    place.wait(KDC)


def _serve(place: Place, key: str) -> None:
    at = place.folder
    conf = place.write(
        "sshd.conf",
        f"""\
Port {BEHIND}
ListenAddress 127.0.0.1
HostKey {at}/{key}
PidFile none
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PubkeyAuthentication no
GSSAPIAuthentication yes
GSSAPIStrictAcceptorCheck no
PermitRootLogin yes
UsePAM no
Subsystem sftp internal-sftp
""",
    )
    place.stop(f"sshd -D -f {conf}")
    env = {"KRB5_CONFIG": f"{at}/krb5.conf", "KRB5_KTNAME": f"{at}/host.keytab"}
    env["KRB5RCACHENAME"] = f"file2:{at}/replays"  # its default is in /var/tmp
    place.daemon(["/usr/sbin/sshd", "-D", "-f", str(conf), "-e"], env=env)
    place.wait_inside(BEHIND)
