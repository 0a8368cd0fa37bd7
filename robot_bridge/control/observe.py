"""ObservationAssembler: from channels that arrive one by one to the observation a policy's contract asks for."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from tensordict import TensorDict

from rl_core.contract import Channel, RobotContract
from rl_core.data.derived import add_derived
from rl_core.errors import ArmstackError
from robot_bridge.control.names import order_by_name


class ObservationError(ArmstackError):
    """A sample that does not fit its channel, or an observation that is not complete; names the channel and what would be valid."""


class ObservationAssembler:
    """Keeps the newest samples of each channel of a contract and gives them as one row.

    A channel `gripper_to_X_pos` that nobody sends follows from `X_pos` and `eef_pos` (`rl_core.data.derived`). A history's samples lie a
    policy period apart, as in training, however fast the channel comes: each is the one nearest to its time. A channel with history is
    filled up with its oldest sample until enough have come, so that the first inference meets no empty history.

    Args:
        contract: the policy's need; its observation channels are assembled.
    """

    def __init__(self, contract: RobotContract) -> None:
        self.contract = contract
        self._period_ns = round(contract.action.period_s * 1e9)
        self._channels = {channel.name: channel for channel in contract.observation}
        self._derived = {name for name in self._channels if name.startswith("gripper_to_")}
        for name in self._derived:
            for source in ("eef_pos", name.removeprefix("gripper_to_")):
                past = self._channels[name].history
                self._channels.setdefault(source, Channel(name=source, names=("x", "y", "z"), unit="m", frame="base", history=past))
        self.clear()

    def clear(self) -> None:
        """Forgets all samples (an episode begins)."""
        self._samples: dict[str, deque[tuple[NDArray, int]]] = {name: deque() for name in self._channels}

    @property
    def channels(self) -> tuple[str, ...]:
        """Channels that must be put: those of the contract that do not follow from others, and those they follow from."""
        return tuple(name for name in self._channels if name not in self._derived)

    def put(self, channel: str, value: ArrayLike, stamp_ns: int, names: Sequence[str] | None = None) -> None:
        """Takes a sample; one of a channel nobody needs is ignored, one older than the newest too.

        Args:
            channel: name in the contract.
            value: one sample, float64 or uint8.
            stamp_ns: when it was measured.
            names: names of the values where their order is the sender's own (joints); more may be there than are needed.

        Raises:
            ObservationError: wrong shape, not finite, or a quaternion whose norm is not 1.
            JointNameError: a name is missing or there twice.
        """
        need = self._channels.get(channel)
        if need is None:
            return
        sample = np.asarray(value)
        if names is not None:
            if sample.shape != (len(names),):
                raise ObservationError(f"{channel}: {sample.shape} values for {len(names)} names")
            sample = sample[order_by_name(names, need.names, allow_more=True)]
        if sample.shape != need.shape:
            raise ObservationError(f"{channel}: shape {sample.shape}, valid: {need.shape} for {need.names}")
        if need.kind != "image" and not np.isfinite(sample).all():
            raise ObservationError(f"{channel}: {sample.tolist()}, valid: finite numbers")
        if need.kind == "quaternion" and abs(float(np.linalg.norm(sample)) - 1) > 1e-3:
            raise ObservationError(f"{channel}: norm {np.linalg.norm(sample):.4f}, valid: 1 (x, y, z, w)")
        samples = self._samples[channel]
        if samples and stamp_ns < samples[-1][1]:
            return
        if samples and stamp_ns == samples[-1][1]:  # said once more
            samples.pop()
        samples.append((sample, stamp_ns))
        oldest_ns = stamp_ns - (need.history - 1) * self._period_ns
        while len(samples) > 1 and samples[1][1] <= oldest_ns:
            samples.popleft()

    def missing(self, now_ns: int) -> list[str]:
        """What keeps an observation from being acted on at `now_ns` (clock of stamps): empty when all is there and fresh."""
        problems = []
        for name in self.channels:
            samples, max_age_s = self._samples[name], self._channels[name].max_age_s
            if not samples:
                problems.append(f"{name}: nothing received")
            elif (age_s := (now_ns - samples[-1][1]) / 1e9) > max_age_s:
                problems.append(f"{name}: {age_s:.3f} s old, valid: {max_age_s} s")
        return problems

    def ready(self, now_ns: int) -> bool:
        """Whether an observation can be acted on at `now_ns`. That it equals the last one is no reason against it."""
        return not self.missing(now_ns)

    def assemble(self) -> tuple[TensorDict, int]:
        """One row, channel -> (1, ...) or (1, history, ...), float32 (images uint8), and the stamp of its oldest newest sample.

        Raises:
            ObservationError: a channel was never received.
        """
        empty = [name for name in self.channels if not self._samples[name]]
        if empty:
            raise ObservationError(f"nothing received on {empty}; needed: {list(self.channels)}")
        values = {name: self._history(self._channels[name], self._samples[name]) for name in self.channels}
        values = add_derived(values) if self._derived else values
        row = {}
        for channel in self.contract.observation:
            value = values[channel.name]
            value = value if channel.history > 1 else value[-1]
            row[channel.name] = torch.from_numpy(np.ascontiguousarray(value if channel.kind == "image" else value.astype(np.float32)))[None]
        return TensorDict(row, batch_size=[1]), min(self._samples[name][-1][1] for name in self.channels)

    def _history(self, channel: Channel, samples: deque[tuple[NDArray, int]]) -> NDArray:
        times = [samples[-1][1] - back * self._period_ns for back in reversed(range(channel.history))]
        return np.stack([min(samples, key=lambda sample: abs(sample[1] - time_ns))[0] for time_ns in times])
