"""A person walks up to the simulated arm and away again over ROS 2; writes distance, speed and holds over time, and the bag.

python examples/separation.py  # distances without error
python examples/separation.py --radar-bundle runs/rfmamba/bundle --error-m 0.4 --latency-s 0.4  # by a radar, in the dark
"""

from __future__ import annotations

from pathlib import Path

import tyro

from rl_core.data.formats.bag import next_folder
from rl_core.errors import ArmstackError
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.launch_runner import Launch
from robot_bridge.ros_environment import prepare_ros_environment
from robot_bridge.ros_evaluation import own_domain
from robot_bridge.separation.report import draw_separation, read_separation
from robot_bridge.separation.trace import figures


def main(
    out: Path = Path("runs/separation"),
    seconds: float = 40.0,
    limit_m: float = 0.5,
    radar_bundle: str = "",
    error_m: float = 0.05,
    latency_s: float = 0.1,
) -> None:
    """Runs `launch/separation`, records it, and draws it.

    Args:
        out: folder of bag and picture.
        seconds: how long, the start of the nodes included.
        limit_m: so near to a person nothing moves.
        radar_bundle: folder of rfmamba's bundle; empty: distances without error.
        error_m: of the distances, in 95 of 100 cases.
        latency_s: of the distances.
    """
    prepare_ros_environment()
    bag = next_folder(out / "bag")
    given = {"record": "true", "record_folder": str(out / "bag"), "limit_m": str(limit_m), "error_m": str(error_m)}
    given |= {"latency_s": str(latency_s), "radar": str(bool(radar_bundle)).lower(), "radar_bundle": radar_bundle}
    with own_domain() as (env, _), Launch(read_launch_file(find_launch_file("separation"), given), env=env) as running:
        running.wait(seconds)
    trace = read_separation(bag)
    picture = draw_separation(out / "separation.png", trace, limit_m=limit_m)
    print("\n".join(f"{name}: {value}" for name, value in figures(trace, limit_m).items()))
    print(f"the picture is {picture}")


if __name__ == "__main__":
    try:
        tyro.cli(main)
    except ArmstackError as error:
        raise SystemExit(str(error)) from error
