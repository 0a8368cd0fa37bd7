"""Quality-of-service profiles, and endpoints that say so when two of them cannot talk.

DDS drops a pair with incompatible profiles without a word to the user. Every publisher and subscription of the project is made
here and turns the incompatible-QoS event into one error that names the topic, the policy and both sides.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSPolicyKind, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

SENSOR = QoSProfile(
    depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE
)
"""Images: only the newest counts, a lost one is not sent again."""

STREAM = QoSProfile(depth=10, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE)
"""Joint states, commands, requests."""

LATCHED = QoSProfile(
    depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
"""Contracts and states: who comes later gets the last one."""

EVENTS = QoSProfile(
    depth=10, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
"""Episodes and authority: who comes later gets the last ones in order, and two changes at once do not overwrite each other."""

LENIENT = QoSProfile(
    depth=10, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE
)
"""A subscription that no publisher's profile is refused by."""

_FIELD = {
    QoSPolicyKind.RELIABILITY: "reliability",
    QoSPolicyKind.DURABILITY: "durability",
    QoSPolicyKind.HISTORY: "history",
    QoSPolicyKind.DEADLINE: "deadline",
    QoSPolicyKind.LIVELINESS: "liveliness",
    QoSPolicyKind.LIFESPAN: "lifespan",
}


def _report(node: Node, topic: str, mine: str, profile: QoSProfile, policy: QoSPolicyKind) -> None:
    field = _FIELD.get(policy, "")
    name = node.resolve_topic_name(topic)
    others = node.get_publishers_info_by_topic(name) if mine == "subscription" else node.get_subscriptions_info_by_topic(name)
    other = "publisher" if mine == "subscription" else "subscription"

    def value(found: QoSProfile) -> str:
        return getattr(getattr(found, field), "name", str(getattr(found, field))) if field else "?"

    differing = [f"{o.node_namespace.rstrip('/')}/{o.node_name} has {value(o.qos_profile)}" for o in others]
    differing = [text for text in differing if not text.endswith(f" {value(profile)}")]
    node.get_logger().error(
        f"no data on topic {name}: incompatible QoS policy {policy.name}; this {mine} of {node.get_fully_qualified_name()} has "
        f"{value(profile)}, the {other} {', '.join(differing) or 'has another'}; give both sides the same {field or policy.name.lower()}"
    )


def subscribe(
    node: Node,
    message_type: type[Any],
    topic: str,
    callback: Callable[..., None],
    profile: QoSProfile = STREAM,
    *,
    with_info: bool = False,
    raw: bool = False,
) -> Subscription[Any]:
    """A subscription that reports an incompatible publisher; with `with_info` the callback gets `(message, MessageInfo)`."""
    events = SubscriptionEventCallbacks(
        incompatible_qos=lambda event: _report(node, topic, "subscription", profile, QoSPolicyKind(event.last_policy_kind))
    )
    handler = _two_arguments(callback) if with_info else callback
    return node.create_subscription(message_type, topic, handler, profile, event_callbacks=events, raw=raw)


def subscribe_to_any(node: Node, message_type: type[Any], topic: str, callback: Callable[[Any, Any], None]) -> None:
    """Two subscriptions that together refuse no publisher: what is reliable comes reliably, what is latched comes late too.

    `callback(message, MessageInfo)` may get a message twice.
    """
    quiet = SubscriptionEventCallbacks(use_default_callbacks=False)  # one of the two is always incompatible with a weaker publisher
    for profile in (LENIENT, EVENTS):
        node.create_subscription(message_type, topic, _two_arguments(callback), profile, event_callbacks=quiet)


def advertise(node: Node, message_type: type[Any], topic: str, profile: QoSProfile = STREAM) -> Publisher[Any]:
    """A publisher that reports an incompatible subscription."""
    events = PublisherEventCallbacks(
        incompatible_qos=lambda event: _report(node, topic, "publisher", profile, QoSPolicyKind(event.last_policy_kind))
    )
    return node.create_publisher(message_type, topic, profile, event_callbacks=events)


def _two_arguments(callback: Callable[[Any, Any], None]) -> Callable[..., None]:
    # rclpy reads the signature to see whether the message info is wanted. The EventsExecutor of rclpy 9.1 then passes message and
    # info as one tuple, the other executors as two arguments; both are taken here.
    def handler(*values: Any) -> None:
        message, info = values[0] if len(values) == 1 else values
        callback(message, info)

    handler.__signature__ = inspect.signature(lambda message, info: None)  # type: ignore[attr-defined]
    return handler
