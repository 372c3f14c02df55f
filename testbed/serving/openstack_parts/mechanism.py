"""Ports of a hypervisor without guests, for neutron: bound at once, and to nothing.

It is copied into the Python packages of the test bed's OpenStack, and needs no agent on a host.
"""

from typing import Any

from neutron_lib import constants  # type: ignore[import-not-found]
from neutron_lib.api.definitions import portbindings  # type: ignore[import-not-found]
from neutron_lib.plugins.ml2 import api  # type: ignore[import-not-found]


class Driver(api.MechanismDriver):  # type: ignore[misc]
    """Binds each port on any host."""

    def initialize(self) -> None:
        """Nothing is to be prepared."""

    @property
    def connectivity(self) -> str:
        """Layer 2."""
        return str(portbindings.CONNECTIVITY_L2)

    def bind_port(self, context: Any) -> None:
        """Bind it to the first segment of its network."""
        segment = context.segments_to_bind[0][api.ID]
        details = {portbindings.CAP_PORT_FILTER: False}
        kind = portbindings.VIF_TYPE_BRIDGE
        context.set_binding(segment, kind, details, status=constants.PORT_STATUS_ACTIVE)
