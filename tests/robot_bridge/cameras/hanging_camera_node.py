"""The camera node with a camera whose driver never returns."""

from robot_bridge.nodes.real_camera_node import RealCameraNode
from robot_bridge.nodes.spin import run
from tests.robot_bridge.cameras.fakes import HangingCamera

if __name__ == "__main__":
    raise SystemExit(run(lambda: RealCameraNode(make_camera=HangingCamera)))
