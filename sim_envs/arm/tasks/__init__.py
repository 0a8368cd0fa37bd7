"""The tasks of the native arm, by name."""

from sim_envs.arm.tasks.base import Task, World
from sim_envs.arm.tasks.goal_tasks import GOAL_TASKS
from sim_envs.arm.tasks.lift import Lift
from sim_envs.arm.tasks.pick_place import PickPlace
from sim_envs.arm.tasks.reach import Reach
from sim_envs.arm.tasks.sort import Sort
from sim_envs.arm.tasks.workbench import WORKBENCH, Workbench

TASKS: dict[str, Task] = {"reach": Reach(), "lift": Lift(), "pick_place": PickPlace(), "sort": Sort(), **WORKBENCH, **GOAL_TASKS}


def find_task(name: str) -> Task:
    """The task `name`.

    Raises:
        ValueError: there is none; names the tasks there are.
    """
    if name not in TASKS:
        raise ValueError(f"no task {name!r}; tasks: {', '.join(sorted(TASKS))}")
    return TASKS[name]


__all__ = ["TASKS", "WORKBENCH", "Lift", "PickPlace", "Reach", "Sort", "Task", "Workbench", "World", "find_task"]
