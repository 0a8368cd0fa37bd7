"""What must be in order before anything of ROS 2 is started, said before it fails deep inside a node."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import MutableMapping
from pathlib import Path

from rl_core.errors import ArmstackError

DOMAINS = range(233)
LOCALHOST_PROFILE = Path(__file__).with_name("localhost_transport.xml")
_RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
_PROFILES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")


class RosEnvironmentError(ArmstackError):
    """ROS 2 cannot be used here; says what is missing or wrong and what to do."""


def prepare_ros_environment(env: MutableMapping[str, str] | None = None) -> None:
    """Checks that rclpy is there and ROS_DOMAIN_ID is a domain, and chooses the transports, unless the user did.

    Args:
        env: the nodes' environment, by default this process's. To be called before rclpy is initialised.

    Raises:
        RosEnvironmentError: rclpy is not installed, or ROS_DOMAIN_ID is no domain.
    """
    if importlib.util.find_spec("rclpy") is None:
        raise RosEnvironmentError("rclpy is not installed: pip install 'armstack[ros]', or source a ROS 2 installation")
    env = os.environ if env is None else env
    domain = env.get("ROS_DOMAIN_ID", "").strip()
    if domain and not (domain.isdecimal() and int(domain) in DOMAINS):
        raise RosEnvironmentError(f"ROS_DOMAIN_ID: {domain!r}, valid: a whole number from 0 to {DOMAINS[-1]}, or unset (0)")
    _leave_out_shared_memory(env)


def _leave_out_shared_memory(env: MutableMapping[str, str]) -> None:
    """Lets Fast DDS use UDP alone.

    A process that is killed leaves its shared-memory ports locked or half gone, and another node that closes such a port may end
    with a segmentation fault, the arm node too (Fast DDS 3.2.3; a like one is Fast-DDS issue 6501).
    """
    if any(env.get(name) for name in _PROFILES):
        return
    if env.get(_RANGE, "").strip().upper() == "LOCALHOST":
        # For LOCALHOST rmw_fastrtps chooses UDP and shared memory by itself, past the variable below.
        env[_PROFILES[0]] = str(LOCALHOST_PROFILE)
        env[_RANGE] = "SYSTEM_DEFAULT"
    else:
        env.setdefault("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4?sockets_size=4MB")
