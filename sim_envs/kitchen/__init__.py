"""The Franka kitchen of gymnasium-robotics as a goal world, with a scripted demonstrator."""

import sim_envs.arm  # noqa: F401  imports MuJoCo without graphics, before a module here does
