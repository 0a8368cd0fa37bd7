"""The native MuJoCo arm: a Panda on a table, its tasks, its Gymnasium environment and its cameras."""

import os
import sys

# `import mujoco` loads a graphics library, or fails where MUJOCO_GL names one that is missing. Worlds need none, and `rendering` loads
# the one it has probed itself, so MuJoCo is imported without. The user's variable is left as it was. Who wants `mujoco.Renderer` as
# well imports mujoco first.
if "mujoco" not in sys.modules:
    _wanted = os.environ.get("MUJOCO_GL")
    os.environ["MUJOCO_GL"] = "disable"
    try:
        import mujoco  # noqa: F401
    finally:
        if _wanted is None:
            del os.environ["MUJOCO_GL"]
        else:
            os.environ["MUJOCO_GL"] = _wanted
