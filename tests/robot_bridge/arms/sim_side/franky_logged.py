"""franky-sim in `.venv-sims`, which also writes where its joints are: `wall time [ns], simulated time [s], joints [rad]` a line."""

import sys
import time

from franky_sim import run_server
from franky_sim.mujoco_simulator import MujocoSimulator

_log = open(sys.argv.pop(1), "w", buffering=1)
_step = MujocoSimulator._step
_steps = 0


def _logged(self: MujocoSimulator) -> None:
    global _steps
    _step(self)
    _steps += 1
    if _steps % 5 == 0:
        data, addresses = self._mj_data, self._robots[0]._qpos_addrs
        _log.write(f"{time.time_ns()} {data.time:.4f} {' '.join(f'{data.qpos[a]:.6f}' for a in addresses)}\n")


MujocoSimulator._step = _logged
run_server.main()
