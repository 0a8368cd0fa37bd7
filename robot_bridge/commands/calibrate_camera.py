"""`armstack calibrate-camera`: from views of a board to the file with a camera's lens and its pose on the hand or in the base frame."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro

from rl_core.camera_calibration import CameraCalibration
from robot_bridge.cameras.board import Board
from robot_bridge.cameras.calibration import CalibrationError, StoredCalibration
from robot_bridge.cameras.hand_eye import FEWEST_VIEWS, Mount, calibrate, find_views
from robot_bridge.cameras.registry import require_opencv
from robot_bridge.cameras.views import POSES, ViewFolder, read_views
from robot_bridge.commands.output import console, emit_json, figures_table
from robot_bridge.output_places import check_file, check_folder


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Measure a camera's lens and where it is, from views of a board.

    The camera is on the hand and the board lies still, or the camera stands and the board is on the hand. The arm stands still in
    every view and is turned between them, about two axes at least. VIEWS is a folder of pictures with poses.json, or a bag of a run in
    which the arm stopped at every view; with --live it is filled first.

    Example: armstack calibrate-camera runs/views --mount hand --board.square-m 0.03 --board.marker-m 0.022 --out wrist.json
    """

    views: tyro.conf.Positional[Path]
    """Folder of pictures and poses.json, or a bag."""
    mount: Mount
    """hand: the camera is on the hand; fixed: it stands, and the board is on the hand."""
    out: Path
    """File to write; parameter `calibration` of the camera node."""
    board: Board = field(default_factory=Board)
    """What was printed."""
    live: bool = False
    """Take views from the running graph first, one each time Enter is pressed."""
    camera: str = "front"
    """Name of the camera in the graph or the bag."""
    namespace: str = ""
    """Namespace of the arm there."""
    max_px: float = 1.0
    """Largest reprojection error, root mean square, pixels; over it nothing is written."""
    max_mm: float = 5.0
    """Largest hand-eye residual, root mean square, mm; over it nothing is written."""
    max_deg: float = 1.0
    """Largest hand-eye residual, root mean square, degrees; over it nothing is written."""
    json: bool = False
    """Print the figures as one JSON object, the last line."""


def main(argv: list[str]) -> int:
    """Runs the command line."""
    arguments = tyro.cli(Arguments, args=argv, prog="armstack calibrate-camera")
    require_opencv("calibrate-camera")
    check_file(arguments.out, "--out")
    if arguments.live:
        _take_views(arguments)
    pictures = list(read_views(arguments.views, camera=arguments.camera, namespace=arguments.namespace))
    views, without, size = find_views(pictures, arguments.board)
    if without:
        console.print(f"the board was not found in {len(without)} of {len(pictures)} views: {', '.join(without)}")
    stored = calibrate(views, size, arguments.mount)
    figures_table(f"camera {'on the hand' if arguments.mount == 'hand' else 'that stands'}", _shown(stored))
    _check(stored, arguments)
    stored.save(arguments.out)
    console.print(f"wrote {arguments.out}; give it to the camera node: -p calibration:={arguments.out}")
    if arguments.json:
        emit_json({**stored.figures, "out": str(arguments.out)})
    return 0


def _shown(stored: StoredCalibration) -> dict[str, object]:
    found: CameraCalibration = stored.calibration
    fx, fy, cx, cy = found.matrix
    return {
        **stored.figures,
        f"position in {found.frame} [m]": found.position,
        f"quaternion in {found.frame} (x, y, z, w)": found.quaternion,
        "fx, fy, cx, cy [px]": (fx, fy, cx, cy),
        "k1, k2, p1, p2, k3": found.distortion,
    }


def _check(stored: StoredCalibration, arguments: Arguments) -> None:
    bounds = {
        "reprojection_px": ("--max-px", arguments.max_px),
        "residual_mm": ("--max-mm", arguments.max_mm),
        "residual_deg": ("--max-deg", arguments.max_deg),
    }
    over = [
        f"{figure} {stored.figures[figure]:.3g}, valid: {bound:g} or less ({option})"
        for figure, (option, bound) in bounds.items()
        if not stored.figures[figure] <= bound
    ]
    if over:
        causes = (
            "a board of other measures than given, views taken while the arm moved, a board or camera that slipped, poses of another frame"
        )
        raise CalibrationError(f"{'; '.join(over)}; nothing was written. Common causes: {causes}")


def _take_views(arguments: Arguments) -> None:
    check_folder(arguments.views, "VIEWS")
    if arguments.views.is_dir() and any(arguments.views.iterdir()) and not (arguments.views / POSES).is_file():
        raise CalibrationError(f"{arguments.views}: has files but no {POSES}; valid with --live: a new folder, or one of views to add to")
    from robot_bridge.ros_environment import prepare_ros_environment

    prepare_ros_environment()
    from robot_bridge.cameras.live_views import LiveViews

    with _node(arguments.namespace) as node:
        live, folder, taken = LiveViews(node, arguments.camera), ViewFolder(arguments.views), 0
        console.print(f"Bring the arm to a view, let it stand, press Enter; {FEWEST_VIEWS} or more, turned differently. q and Enter ends.")
        while (line := sys.stdin.readline()) and line.strip() != "q":
            try:
                pixels, hand = live.take()
                if arguments.board.find(pixels) is None:
                    raise CalibrationError("the board is not seen whole enough")
            except CalibrationError as error:
                console.print(f"not taken: {error}")
                continue
            taken += 1
            console.print(f"{taken}: {folder.add(pixels, hand)}")


@contextmanager
def _node(namespace: str) -> Iterator[Any]:
    import rclpy
    from rclpy.node import Node

    from robot_bridge.nodes.spin import SpinThread

    started = not rclpy.ok()
    if started:
        rclpy.init(args=[])
    node = Node("calibrate_camera", namespace=namespace)
    try:
        with SpinThread(node):
            yield node
    finally:
        node.destroy_node()
        if started:
            rclpy.try_shutdown()
