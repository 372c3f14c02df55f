"""The settings of each OpenStack service of the test bed: names of files, and their text."""

from collections.abc import Mapping

SITES = ("site-a", "site-b")
APIS = {  # port, kind in the catalogue, path
    "keystone": (5000, "identity", "/v3"),
    "glance": (9292, "image", ""),
    "placement": (8778, "placement", ""),
    "nova": (8774, "compute", "/v2.1"),
    "neutron": (9696, "network", ""),
    "cinder": (8776, "volumev3", "/v3/%(project_id)s"),
}
DATABASES = (
    "keystone",
    "glance",
    "placement",
    "nova",
    "nova_api",
    "nova_cell0",
    "cinder",
    "neutron",
)
DATABASE = "mysql+pymysql://openstack:openstack@127.0.0.1"  # in namespaces of its own
QUEUE = "transport_url = rabbit://guest:guest@127.0.0.1"
KEYSTONE = f"""\
[database]
connection = {DATABASE}/keystone
[identity]
password_hash_rounds = 4
[token]
provider = fernet
expiration = 86400
[cache]
enabled = true
backend = dogpile.cache.memcached
memcache_servers = 127.0.0.1:11211
"""
GLANCE = f"""\
[DEFAULT]
{QUEUE}
workers = 0
bind_host = 127.0.0.1
enabled_backends = files:file
[database]
connection = {DATABASE}/glance
[glance_store]
default_backend = files
[files]
filesystem_store_datadir = /var/lib/glance/images
[paste_deploy]
flavor = keystone
{{auth}}
"""
PLACEMENT = f"""\
[api]
auth_strategy = keystone
[placement_database]
connection = {DATABASE}/placement
{{auth}}
"""
# No agents: ports are bound by mechanism.py. What nova learns of a port, it learns at its creation.
NEUTRON = f"""\
[DEFAULT]
core_plugin = ml2
service_plugins =
{QUEUE}
api_workers = 0
rpc_workers = 0
rpc_state_report_workers = 0
bind_host = 127.0.0.1
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = false
dhcp_agent_notification = false
[database]
connection = {DATABASE}/neutron
[oslo_concurrency]
lock_path = /var/lib/neutron/lock
[quotas]
quota_port = 5000
{{auth}}
"""
ML2 = """\
[ml2]
type_drivers = vxlan
tenant_network_types = vxlan
mechanism_drivers = siteproof
[ml2_type_vxlan]
vni_ranges = 1:1000
[securitygroup]
enable_security_group = false
"""
# The intervals: what a hypervisor reports again and again costs more than 640 servers' starts.
NOVA = f"""\
[DEFAULT]
state_path = /var/lib/nova
my_ip = 127.0.0.1
{QUEUE}
enabled_apis = osapi_compute
osapi_compute_workers = 1
osapi_compute_listen = 127.0.0.1
compute_driver = siteproof.Driver
cpu_allocation_ratio = 16.0
ram_allocation_ratio = 4.0
allow_resize_to_same_host = true
vif_plugging_timeout = 0
vif_plugging_is_fatal = false
rpc_response_timeout = 180
update_resources_interval = 600
heal_instance_info_cache_interval = -1
sync_power_state_interval = -1
[api_database]
connection = {DATABASE}/nova_api
[database]
connection = {DATABASE}/nova
max_pool_size = 20
[compute]
resource_provider_association_refresh = 0
[quota]
instances = 1000
cores = 4000
ram = 1000000
[conductor]
workers = 1
[scheduler]
workers = 1
[filter_scheduler]
track_instance_changes = false
[glance]
api_servers = http://127.0.0.1:9292
[vnc]
enabled = true
[cinder]
os_region_name = RegionOne
catalog_info = volumev3::internalURL
{{login}}
[neutron]
{{login}}
[placement]
{{login}}
[service_user]
send_service_user_token = true
{{login}}
[oslo_concurrency]
lock_path = /var/lib/nova/lock
{{auth}}
"""
HOST = """\
[DEFAULT]
host = {site}
state_path = /var/lib/nova/{site}
[oslo_concurrency]
lock_path = /var/lib/nova/{site}/lock
"""
# A service that does not report stays known as up, so that what is given to it waits.
CINDER = f"""\
[DEFAULT]
{QUEUE}
auth_strategy = keystone
host = storage
enabled_backends = siteproof
default_volume_type = siteproof
osapi_volume_workers = 1
osapi_volume_listen = 127.0.0.1
glance_api_servers = http://127.0.0.1:9292
state_path = /var/lib/cinder
service_down_time = 86400
quota_volumes = 1000
quota_snapshots = 1000
quota_gigabytes = 10000
[siteproof]
volume_driver = cinder.volume.drivers.siteproof.Driver
volume_backend_name = siteproof
[database]
connection = {DATABASE}/cinder
[oslo_concurrency]
lock_path = /var/lib/cinder/lock
[service_user]
send_service_user_token = true
{{login}}
{{auth}}
"""
# Its process number is another one in /proc, where it would look.
RABBITMQ = "vm_memory_calculation_strategy = allocated\n"
LOGIN = """\
auth_url = http://127.0.0.1:5000/v3
auth_type = password
project_domain_name = Default
user_domain_name = Default
project_name = service
username = service
password = {password}
region_name = RegionOne
valid_interfaces = internal
"""
AUTH = """\
[keystone_authtoken]
www_authenticate_uri = http://127.0.0.1:5000/v3
memcached_servers = 127.0.0.1:11211
service_token_roles_required = true
interface = internal
{login}"""
FOLDERS = (
    "var/lib/neutron/lock",
    "var/lib/cinder/lock",
    "var/lib/cinder/volumes",
    "var/lib/nova/lock",
    *(f"var/lib/nova/{site}/lock" for site in SITES),
)


def files(password: str) -> Mapping[str, str]:
    """Each file of settings below /etc, and its text.

    password: of the user that the services are to each other.
    """
    login = LOGIN.format(password=password)
    auth = AUTH.format(login=login)
    return {
        "rabbitmq/rabbitmq.conf": RABBITMQ,
        "keystone/keystone.conf": KEYSTONE,
        "glance/glance-api.conf": GLANCE.format(auth=auth),
        "placement/placement.conf": PLACEMENT.format(auth=auth),
        "neutron/neutron.conf": NEUTRON.format(auth=auth),
        "neutron/plugins/ml2/ml2_conf.ini": ML2,
        "nova/nova.conf": NOVA.format(auth=auth, login=login),
        "cinder/cinder.conf": CINDER.format(auth=auth, login=login),
        **{f"nova/{site}.conf": HOST.format(site=site) for site in SITES},
    }
