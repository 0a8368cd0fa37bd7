"""Simulated worlds for Gymnasium. Importing this package registers the `armstack/...` environments.

`gymnasium.make("sim_envs:armstack/Lift-v0")` imports it by itself.
"""

import gymnasium

for _name, _task in (("Reach", "reach"), ("Lift", "lift"), ("PickPlace", "pick_place")):
    # The tests run Gymnasium's checker on each id; checking every step of every run again would only cost time.
    gymnasium.register(
        id=f"armstack/{_name}-v0",
        entry_point="sim_envs.arm.env:ArmEnv",
        kwargs={"task": _task},
        disable_env_checker=True,
    )

for _task in ("Lift", "Stack", "PickPlace", "NutAssembly", "Door", "ToolHang"):
    gymnasium.register(
        id=f"armstack/Robosuite{_task}-v0",
        entry_point="sim_envs.robosuite_tasks:RobosuiteEnv",
        kwargs={"task": _task},
        disable_env_checker=True,
    )

gymnasium.register(
    id="armstack/PointMassFork-v0",
    entry_point="sim_envs.point_mass:PointMassFork",
    max_episode_steps=40,
    disable_env_checker=True,
)
