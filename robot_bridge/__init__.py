"""ROS 2 nodes, command filter, arms and the command line around the policies of `rl_core`.

Importing this package registers the worlds behind the command filter: `gymnasium.make("robot_bridge:armstack/LiftFiltered-v0")`.
"""

import gymnasium

_WORKBENCH = (
    "reach_block", "lift_block", "lift_can", "block_left", "block_right", "can_right", "push_button", "open_drawer", "drawer_can_right",
    "button_block_left", "can_left", "button_can_left", "can_left_shifted", "button_can_left_shifted",
)  # fmt: skip

for _task in ("reach", "lift", "pick_place", "sort", *_WORKBENCH):
    # Each id passes Gymnasium's checker in the tests; checking every step of every run would cost a tenth of the speed.
    gymnasium.register(
        id=f"armstack/{_task.title().replace('_', '')}Filtered-v0",
        entry_point="robot_bridge.control.filtered_env:FilteredEnv",
        kwargs={"task": _task},
        disable_env_checker=True,
    )
