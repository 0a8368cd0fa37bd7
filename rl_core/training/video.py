"""MP4 of chosen episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rl_core.errors import ArmstackError
from rl_core.policy import Policy
from rl_core.training.rollout import rollout
from rl_core.training.worlds import MakeEnv, contract_of


def write_mp4(file: str | Path, frames: Iterable[NDArray[np.uint8]], fps: float) -> Path:
    """Writes (H, W, 3) uint8 RGB frames, first row on top, as H.264; odd sizes lose their last row or column.

    Raises:
        ArmstackError: there are no frames.
    """
    import av

    file = Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.stem}.part.mp4")
    count = 0
    with av.open(str(part), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000), options={"crf": "20"})
        stream.pix_fmt = "yuv420p"
        for image in frames:
            image = image[: image.shape[0] // 2 * 2, : image.shape[1] // 2 * 2]  # 4:2:0 wants even sizes
            if count == 0:
                stream.height, stream.width = image.shape[:2]
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")))
            count += 1
        if count:
            container.mux(stream.encode())
    if not count:
        part.unlink(missing_ok=True)
        raise ArmstackError(f"{file}: no frames to write")
    part.replace(file)
    return file


Picture = NDArray[np.uint8]
DrawWorld = Callable[[gymnasium.Env[Any, Any]], Callable[[], Picture]]
"""A world -> what gives the picture of its present state."""


def rendered(env: gymnasium.Env[Any, Any]) -> Callable[[], Picture]:
    """The world's own pictures."""
    return lambda: np.asarray(env.render())


def record_episode(policy: Policy, make_env: MakeEnv, seed: int, file: str | Path, *, draw: DrawWorld = rendered) -> Path:
    """Runs the episode of `seed` again, in a world made with `render_mode="rgb_array"`, and writes it as MP4 in true time.

    Args:
        policy: acts.
        make_env: makes the world.
        seed: of the episode.
        file: MP4; an older one is replaced.
        draw: gives the pictures.

    Raises:
        ArmstackError: the world does not render.
    """
    env = make_env()
    try:
        if env.render_mode != "rgb_array":
            raise ArmstackError(f"{env}: render_mode is {env.render_mode!r}; make it with render_mode='rgb_array'")
        picture = draw(env)
        frames = (picture() for _ in rollout(policy, [env], [seed]))
        return write_mp4(file, frames, 1.0 / contract_of(env).action.period_s)
    finally:
        env.close()
