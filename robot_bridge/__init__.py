"""ROS 2 nodes, command filter, arms and the command line around the policies of `rl_core`.

Importing this package registers the worlds behind the command filter: `gymnasium.make("robot_bridge:armstack/LiftFiltered-v0")`.
"""

import gymnasium

for _name, _task in (("Reach", "reach"), ("Lift", "lift"), ("PickPlace", "pick_place")):
    # Each id passes Gymnasium's checker in the tests; checking every step of every run would cost a tenth of the speed.
    gymnasium.register(
        id=f"armstack/{_name}Filtered-v0",
        entry_point="robot_bridge.control.filtered_env:FilteredEnv",
        kwargs={"task": _task},
        disable_env_checker=True,
    )
