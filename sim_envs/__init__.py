"""Simulated worlds for Gymnasium. Importing this package registers the `armstack/...` environments.

`gymnasium.make("sim_envs:armstack/Lift-v0")` imports it by itself.
"""

import gymnasium

_WORKBENCH = (
    "reach_block", "lift_block", "lift_can", "block_left", "block_right", "can_right", "push_button", "open_drawer", "drawer_can_right",
    "button_block_left", "can_left", "button_can_left", "can_left_shifted", "button_can_left_shifted",
)  # fmt: skip

for _task in ("reach", "lift", "pick_place", "sort", *_WORKBENCH):
    # The tests run Gymnasium's checker on each id; checking every step of every run again would only cost time.
    gymnasium.register(
        id=f"armstack/{_task.title().replace('_', '')}-v0",
        entry_point="sim_envs.arm.env:ArmEnv",
        kwargs={"task": _task},
        disable_env_checker=True,
    )

for _task in ("Lift", "Stack", "PickPlace", "PickPlaceCan", "NutAssembly", "Door", "ToolHang"):
    gymnasium.register(
        id=f"armstack/Robosuite{_task}-v0",
        entry_point="sim_envs.robosuite_tasks:RobosuiteEnv",
        kwargs={"task": _task},
        disable_env_checker=True,
    )

for _name, _worlds, _options in (
    ("Maze", "sim_envs.maze.worlds:MazeWorlds", {}),
    ("GoalPick", "sim_envs.arm.goal_worlds:ArmGoalWorlds", {"task": "goal_pick"}),
    ("GoalBin", "sim_envs.arm.goal_worlds:ArmGoalWorlds", {"task": "goal_bin"}),
    ("GoalRing", "sim_envs.arm.goal_worlds:ArmGoalWorlds", {"task": "goal_ring"}),
    ("Rope", "sim_envs.rope.worlds:RopeWorlds", {}),
    ("Kitchen", "sim_envs.kitchen.worlds:KitchenWorlds", {}),
):
    gymnasium.register(
        id=f"armstack/{_name}-v0",
        entry_point="sim_envs.goal_env:GoalEnv",
        kwargs={"worlds": _worlds, **_options},
        disable_env_checker=True,
    )

gymnasium.register(
    id="armstack/PointMassFork-v0",
    entry_point="sim_envs.point_mass:PointMassFork",
    max_episode_steps=40,
    disable_env_checker=True,
)

_EXPLORE = ("Walker", "Quadruped", "Hopper", "Reacher", "Pendulum", "Reach", "Push")
for _world in ("FourRooms", "UMaze", *(f"Explore{_name}" for _name in _EXPLORE)):
    gymnasium.register(
        id=f"armstack/{_world}-v0",
        entry_point="sim_envs.reward_free.worlds:make",
        vector_entry_point="sim_envs.reward_free.worlds:make_vector",
        kwargs={"world": _world},
        disable_env_checker=True,
    )
