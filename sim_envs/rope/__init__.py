"""A rope of beads on a table, shaped by pokes."""

import sim_envs.arm  # noqa: F401  imports MuJoCo without graphics, before a module here does
