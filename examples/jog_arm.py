"""Moves one joint of a running arm by 0.1 rad and back, as any sender has to: take authority, command by name, let go.

armstack launch sim_policy bundle:=...     # or any graph with an arm node
python examples/jog_arm.py
"""

import json
import time
import uuid

import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

JOINT, STEP_RAD, SECONDS = "panda_joint1", 0.1, 2.0
CALLS = QoSProfile(depth=10, durability=DurabilityPolicy.VOLATILE)


def main() -> float:
    """Returns how far the joint moved at most, rad."""
    rclpy.init()
    node = rclpy.create_node("jog_arm")
    newest: list[JointState] = []
    node.create_subscription(JointState, "joint_states", lambda message: newest.append(message), 10)
    answers: list[str] = []
    node.create_subscription(String, "arm/authority/response", lambda message: answers.append(message.data), CALLS)
    requests = node.create_publisher(String, "arm/authority/request", CALLS)
    commands = node.create_publisher(JointTrajectory, "arm/command", 10)

    def spin_until(condition, timeout_s: float = 10.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit("no answer from the arm node: is it running in this ROS_DOMAIN_ID?")
            rclpy.spin_once(node, timeout_sec=0.05)

    def ask(operation: str) -> None:
        call = uuid.uuid4().hex
        requests.publish(String(data=json.dumps({"id": call, "op": operation, "source": "teleop"})))
        spin_until(lambda: any(json.loads(answer)["id"] == call for answer in answers))

    spin_until(lambda: newest and requests.get_subscription_count() and commands.get_subscription_count())
    start = newest[-1]
    index = list(start.name).index(JOINT)
    ask("take")
    begin, furthest = time.monotonic(), 0.0
    while (elapsed := time.monotonic() - begin) < SECONDS:
        target = list(start.position)
        target[index] += STEP_RAD if elapsed < SECONDS / 2 else 0.0
        command = JointTrajectory(joint_names=start.name)
        command.header.stamp = newest[-1].header.stamp  # the oldest observation this command was made from
        command.header.frame_id = "teleop"
        point = JointTrajectoryPoint(positions=target)
        point.time_from_start.nanosec = 100_000_000
        command.points = [point]
        commands.publish(command)
        rclpy.spin_once(node, timeout_sec=0.05)
        furthest = max(furthest, abs(newest[-1].position[index] - start.position[index]))
    ask("release")
    node.destroy_node()
    rclpy.shutdown()
    return furthest


if __name__ == "__main__":
    print(f"{JOINT} moved by {main():.3f} rad")
