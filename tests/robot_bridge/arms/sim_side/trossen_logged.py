"""trossen-arm-sim in `.venv-sims`, which also writes where its joints are: `wall time [ns], simulated time [s], joints [rad]` a line."""

import sys
import time

from trossen_arm_sim import __main__ as program
from trossen_arm_sim.sim import WidowXSim

_log = open(sys.argv.pop(1), "w", buffering=1)
_start = WidowXSim.start


def _logged(self: WidowXSim) -> None:
    def write() -> None:
        joints = " ".join(f"{q:.6f}" for q in self.data.qpos[self._qpos_addr[:6]])
        _log.write(f"{time.time_ns()} {self.data.time:.4f} {joints}\n")

    self.add_step_hook(write)
    _start(self)


WidowXSim.start = _logged
program.main()
