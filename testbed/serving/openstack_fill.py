"""The databases of OpenStack as an operator leaves them: made once, kept in the cache."""

import hashlib
import json
import secrets
import shutil
from pathlib import Path

from serving import openstack_config, openstack_root, openstack_run
from serving.openstack_config import APIS, DATABASES, SITES
from serving.openstack_run import NEUTRON
from serving.place import Place

PARTS = Path(__file__).with_name("openstack_parts")
PACKAGES_OF_PYTHON = "usr/lib/python3/dist-packages"
COPIED = {  # of PARTS, into the packages of Python
    "hypervisor.py": "nova/virt/siteproof.py",
    "volumes.py": "cinder/volume/drivers/siteproof.py",
    "mechanism.py": "siteproof_mechanism.py",
}
ENTRY_POINT = {
    "METADATA": "Metadata-Version: 2.1\nName: siteproof-mechanism\nVersion: 1\n",
    "entry_points.txt": "[neutron.ml2.mechanism_drivers]\nsiteproof = siteproof_mechanism:Driver\n",
}
PROGRAMS = ("nova.cmd.compute", "cinder.cmd.volume")  # whose packages would bring libvirt and tgt
PROGRAM = "#!/usr/bin/python3\nimport sys\nfrom {module} import main\nsys.exit(main())\n"
SYNCS = (  # each line after the one before it has ended; lines run at the same time
    "keystone-manage db_sync && keystone-manage fernet_setup --keystone-user keystone"
    " --keystone-group keystone",
    "glance-manage --config-file /etc/glance/glance-api.conf db_sync",
    "placement-manage db sync && cinder-manage db sync",
    "nova-manage api_db sync && nova-manage cell_v2 map_cell0 --database_connection"
    " {database}/nova_cell0 && nova-manage db sync && nova-manage cell_v2 create_cell --name=cell1",
    f"neutron-db-manage {NEUTRON} upgrade head",
)


def digest(base: Path) -> str:
    """Of all that the filled databases depend on."""
    content = hashlib.sha256(base.name.encode())
    for path in (*sorted(PARTS.glob("*.py")), Path(openstack_config.__file__), Path(__file__)):
        content.update(path.read_bytes())
    return content.hexdigest()[:12]


def fill(place: Place, base: Path, layer: Path) -> None:
    """Make the databases, and enter what an operator enters: a minute."""
    partial = layer.parent / "cloud.partial"
    openstack_root.discard(partial)
    partial.mkdir()
    root = openstack_root.mount(place, [base], partial)
    _copy(root)
    openstack_run.configure(place)
    openstack_run.serve_below(place)
    for name in DATABASES:
        openstack_run.sql(place, f"CREATE DATABASE {name}")
    user = "'openstack'@'127.0.0.1'"
    openstack_run.sql(place, f"GRANT ALL ON *.* TO {user} IDENTIFIED BY 'openstack'")
    _sync(place)
    known = openstack_run.passwords(place)
    _bootstrap(place, known["admin"])
    openstack_run.serve_keystone(place)
    openstack_run.listens(place, "keystone")
    _seed(place, "people")
    openstack_run.serve(place)
    openstack_run.chroot(place, ["nova-manage", "cell_v2", "discover_hosts"])
    _seed(place, "cloud")
    openstack_run.end(place)
    shutil.rmtree(root / "var/lib/rabbitmq/mnesia")
    openstack_root.unmount(place)
    shutil.rmtree(partial / "upper/run")
    (partial / "upper").rename(layer)
    openstack_root.discard(partial)


def _copy(root: Path) -> None:
    """What Debian's packages do not have."""
    for name, target in COPIED.items():
        shutil.copy(PARTS / name, root / PACKAGES_OF_PYTHON / target)
    entry = root / PACKAGES_OF_PYTHON / "siteproof_mechanism-1.dist-info"
    entry.mkdir()
    for name, text in ENTRY_POINT.items():
        (entry / name).write_text(text)
    for module in PROGRAMS:
        program = root / "usr/local/bin" / module.replace(".cmd.", "-")
        program.write_text(PROGRAM.format(module=module))
        program.chmod(0o755)
    own = root / "etc/siteproof"
    own.mkdir()
    shutil.copy(PARTS / "seed.py", own)
    names = ("admin", "service", "siteproof")
    (own / "secrets").touch(0o600)
    (own / "secrets").write_text(json.dumps({name: secrets.token_hex(16) for name in names}))


def _sync(place: Place) -> None:
    """The tables of all databases."""
    begun = "".join(f'( {line} ) & all="$all $!"\n' for line in SYNCS)
    script = begun + 'for one in $all; do wait "$one"; done\n'
    script = script.format(database=openstack_config.DATABASE)
    openstack_run.chroot(place, ["sh", "-ec", script])


def _bootstrap(place: Place, password: str) -> None:
    argv = ["keystone-manage", "bootstrap", "--bootstrap-region-id", "RegionOne"]
    for interface in ("admin", "internal", "public"):
        argv += [f"--bootstrap-{interface}-url", "http://127.0.0.1:5000/v3"]
    openstack_run.chroot(place, argv, env={"OS_BOOTSTRAP_PASSWORD": password})


def _seed(place: Place, what: str) -> None:
    catalogue = {
        name: (kind, f"http://127.0.0.1:{port}{path}")
        for name, (port, kind, path) in APIS.items()
        if name != "keystone"  # which has entered itself
    }
    given = {**openstack_run.passwords(place), "catalogue": catalogue, "zones": SITES}
    argv = ["python3", "/etc/siteproof/seed.py", what]
    openstack_run.chroot(place, argv, given=json.dumps(given))
