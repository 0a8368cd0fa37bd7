"""A person walks up to the simulated arm and away again over ROS 2; writes distance, speed and holds over time, a film, and the bag.

python examples/separation.py  # distances without error
python examples/separation.py --radar-bundle runs/rfmamba/bundle --error-m 0.4 --latency-s 0.4  # by a radar, in the dark
python examples/separation.py --bag runs/separation/bag  # picture and film of a run that was recorded before
"""

from __future__ import annotations

from rl_core.example import running, take_interrupts

if __name__ == "__main__":
    take_interrupts()  # what follows takes seconds to import

from collections import deque
from contextlib import suppress
from pathlib import Path

import tyro

from rl_core.data.formats.bag import next_folder
from rl_core.errors import ArmstackError
from robot_bridge.launch_file import read_launch_file
from robot_bridge.launch_places import find_launch_file
from robot_bridge.launch_runner import Launch
from robot_bridge.ros_environment import prepare_ros_environment
from robot_bridge.ros_evaluation import own_domain
from robot_bridge.separation.film import write_film
from robot_bridge.separation.report import draw_separation, read_separation
from robot_bridge.separation.trace import figures


def main(
    out: Path = Path("runs/separation"),
    seconds: float = 40.0,
    limit_m: float = 0.5,
    radar_bundle: str = "",
    error_m: float | None = None,
    latency_s: float | None = None,
    bag: Path | None = None,
) -> None:
    """Runs `launch/separation`, records it, and draws it. Ctrl-C ends the run; what was recorded until then is drawn.

    Args:
        out: folder of bag, picture and film; those of a second run are numbered.
        seconds: how long, the start of the nodes included.
        limit_m: so near to a person nothing moves.
        radar_bundle: folder of rfmamba's bundle; empty: distances without error.
        error_m: of the distances, in 95 of 100 cases; with a radar needed.
        latency_s: of the distances; with a radar needed.
        bag: of an earlier run; it is drawn, and nothing is run.
    """
    if bag is None:
        given = {"limit_m": limit_m, "error_m": error_m, "latency_s": latency_s}
        arguments = {name: str(value) for name, value in given.items() if value is not None}
        bag = record(out, seconds, arguments | ({"radar": "true", "radar_bundle": radar_bundle} if radar_bundle else {}))
    trace = read_separation(bag)
    name = bag.resolve().name.replace("bag", "separation", 1)
    picture = draw_separation(bag.parent / f"{name}.png", trace, limit_m=limit_m)
    film = write_film(bag, bag.parent / f"{name}.mp4")
    print("\n".join(f"{name}: {value}" for name, value in figures(trace, limit_m).items()))
    print(f"the picture is {picture}, the film {film}")


def record(out: Path, seconds: float, arguments: dict[str, str]) -> Path:
    """The bag of a run.

    Raises:
        ArmstackError: a node ended before its time; says what it said last.
    """
    prepare_ros_environment()
    bag = next_folder(out / "bag")
    arguments = {**arguments, "record": "true", "record_folder": str(out / "bag")}
    said: deque[str] = deque(maxlen=500)

    def say(line: str) -> None:
        print(line, flush=True)
        said.append(line)

    with own_domain() as (env, _), Launch(read_launch_file(find_launch_file("separation"), arguments), env=env, emit=say) as running:
        with suppress(KeyboardInterrupt):
            running.wait(seconds)
        ended = dict(running.exit_codes)
    if ended:
        node = running.first_failure[0] if running.first_failure else next(iter(ended))
        last = [line for line in said if line.startswith(f"[{node}]")][-3:]
        raise ArmstackError("\n".join([f"{node} ended before the run did, so nothing is drawn; it said last:", *last]))
    return bag


if __name__ == "__main__":
    with running():
        tyro.cli(main)
