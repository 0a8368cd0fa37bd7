"""What the hierarchical baselines make of the higher level's rows, besides hindsight goals."""

from __future__ import annotations

import torch
from tensordict import TensorDict

from rl_core.pear.config import PEARConfig
from rl_core.pear.worlds import GoalSpace


def higher_batch(batch: TensorDict, space: GoalSpace, config: PEARConfig) -> TensorDict:
    """Rows of the higher level as the variant learns from them; `action` is the subgoal u in [-1, 1].

    hier_neg: r - miss_penalty where the subgoal was missed. hac (arXiv 1712.00948): in rows that tested a subgoal and missed it the reward
    is -c and nothing follows; in all others the action becomes the subgoal that was achieved, as if the lower level were perfect.
    """
    switches = config.switches
    if not (switches.miss_penalty or switches.hindsight_actions):
        return batch
    size = space.size
    achieved = batch["next_observation"][:, -2 * size : -size]
    missed = torch.from_numpy(~space.reached(achieved.numpy(), space.decode(batch["action"]).numpy()))
    if switches.miss_penalty:
        batch["reward"] = batch["reward"] - config.miss_penalty * missed
    if switches.hindsight_actions:
        failed = missed & (batch["tested"] > 0)
        batch["action"] = torch.where(failed.unsqueeze(1), batch["action"], space.encode(achieved))
        batch["reward"] = torch.where(failed, -float(config.primitive_steps), batch["reward"])
        batch["terminal"] = torch.where(failed, 1.0, batch["terminal"])
    return batch
