"""Real clients of the services of `testbed/services`: a file there and back.

Each gives what the client said, and whether the bytes are right.
"""

import hashlib
import os
import subprocess
from pathlib import Path

PATIENCE = 120  # seconds for an answer that comes


def run(*argv, limit=PATIENCE, **options):
    """A client; it is killed if it has no answer within some seconds."""
    words = ["timeout", "--signal=KILL", str(limit), *map(str, argv)]
    return subprocess.run(words, capture_output=True, text=True, **options)


def same(one, two):
    """Whether two files have the same bytes."""
    return hashlib.sha256(one.read_bytes()).digest() == hashlib.sha256(two.read_bytes()).digest()


def ssh_words(service, *more):
    words = ["-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
    words += ["-o", f"UserKnownHostsFile={service['known_hosts']}"]
    return [*words, "-o", "GlobalKnownHostsFile=/dev/null", *more]


def split(service):
    """Login and port of an address."""
    login, port = service["address"].rsplit(":", 1)
    return login, port


def by_sftp(service, data, *how, env=None):
    login, port = split(service)
    how = how or ("-i", service["key"], "-o", "IdentitiesOnly=yes")
    back = data.with_name("back")
    batch = f"put {data} {service['folder']}/x\nget {service['folder']}/x {back}\n"
    batch += f"rm {service['folder']}/x\n"
    words = ["sftp", "-b", "-", *ssh_words(service, *how), "-P", port, login]
    done = run(*words, input=batch, env=env)
    return done, back.exists() and same(data, back)


def by_rsync(service, data):
    login, port = split(service)
    ssh = ["ssh", *ssh_words(service, "-i", service["key"]), "-p", port]
    back, far = data.with_name("back"), f"{login}:{service['folder']}/x"
    for pair in ((data, far), (far, back)):
        done = run("rsync", "-e", " ".join(ssh), *pair)
        if done.returncode:
            break
    run(*ssh, login, f"rm -f {service['folder']}/x")
    return done, back.exists() and same(data, back)


def curl(service, *words, limit=PATIENCE):
    token = Path(service["token"]).read_text().strip()
    how = ["curl", "-sS", "--fail", "--cacert", service["certificates"], "-K", "-"]
    return run(*how, *words, input=f'header = "Authorization: Bearer {token}"\n', limit=limit)


def by_curl(service, data):
    back, far = data.with_name("back"), f"{service['address']}x"
    done = curl(service, "-T", data, far)
    if done.returncode == 0:
        done = curl(service, "-o", back, far)
        curl(service, "-X", "DELETE", far)
    return done, back.exists() and same(data, back)


def by_kerberos(service, data):
    env = os.environ | {
        "KRB5_CONFIG": service["krb5_config"],
        "KRB5CCNAME": f"FILE:{data.with_name('ticket')}",
    }
    done = run("kinit", "-k", "-t", service["keytab"], service["principal"], env=env)
    if done.returncode:
        return done, False
    how = "PubkeyAuthentication=no", "GSSAPIAuthentication=yes"
    return by_sftp(service, data, "-o", how[0], "-o", how[1], env=env)


CLIENTS = {"sftp": by_sftp, "rsync": by_rsync, "http": by_curl, "kerberos": by_kerberos}
