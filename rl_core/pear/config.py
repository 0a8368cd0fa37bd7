"""PEAR's configuration. Sources: [paper] arXiv 2306.06394, [code] the first author's public code of the same method family
(github.com/Utsavz/piper, CRISP), [here] decided in this package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rl_core.training.config import Config, ConfigError

VariantName = Literal["pear", "rpl", "hier", "hier_neg", "hac", "raps", "flat", "discriminator_ac", "bc"]
Level = Literal["low", "high"]


@dataclass(frozen=True, kw_only=True)
class Switches:
    """What a variant turns on; PEAR and its baselines are one code path.

    Attributes:
        learned: the levels that are trained; `low` alone is a flat policy that acts towards g*, `high` alone drives scripted primitives.
        relabeling: how demonstrations become the higher level's data: adaptive (PEAR), windows (every future state within fixed
            windows of c steps, as relay policy learning does), none.
        imitates: demonstrations enter the actors' losses.
        reinforces: critics are trained and lead the actors, and worlds are stepped.
        margin: the margin term is added where its weight is above 0.
        miss_penalty: the higher level is charged for a subgoal that the lower one missed.
        hindsight_actions: the higher level learns that it asked for what was achieved, and misses of tested subgoals are penalised.
        discriminator_reward: the reward is the discriminator's output.
    """

    learned: tuple[Level, ...] = ("low", "high")
    relabeling: Literal["adaptive", "windows", "none"] = "none"
    imitates: bool = False
    reinforces: bool = True
    margin: bool = False
    miss_penalty: bool = False
    hindsight_actions: bool = False
    discriminator_reward: bool = False


VARIANTS: Mapping[VariantName, Switches] = {
    "pear": Switches(relabeling="adaptive", imitates=True, margin=True),
    "rpl": Switches(relabeling="windows", imitates=True),
    "hier": Switches(),
    "hier_neg": Switches(miss_penalty=True),
    "hac": Switches(hindsight_actions=True),
    "raps": Switches(learned=("high",)),
    "flat": Switches(learned=("low",)),
    "discriminator_ac": Switches(learned=("low",), discriminator_reward=True),
    "bc": Switches(learned=("low",), imitates=True, reinforces=False),
}


@dataclass(frozen=True, kw_only=True)
class PEARConfig(Config):
    """Hyperparameters; the defaults, which are also the preset `paper`, are the authors' code's."""

    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {},
        # A quarter of the rows in a batch, so the weights of sums over rows are four times as large, that of cloning among them.
        "cpu": {
            "imitation": "bc",
            "hidden": (256, 256),
            "batch_size": 256,
            "expert_rows": 32,
            "il_weight": 0.0312,
            "margin_low": 4e-4,
            "replay_size": 1_000_000,
        },
    }

    variant: VariantName = "pear"
    """The method, or a baseline in the same code: relay policy learning (rpl), two-level SAC + HER (hier), that with a charge for missed
    subgoals (hier_neg), hac, scripted primitives (raps), one level (flat), discriminator-actor-critic, cloning only (bc) [paper]."""
    imitation: Literal["bc", "irl"] = "irl"
    """How demonstrations enter the actors' losses: cloning, or a least-squares adversary [paper]."""
    primitive_steps: int = 15
    """c, steps the lower level acts for one subgoal; maze 15, pick 7, bin 8, hollow 10, kitchen 17 [code]."""
    rebuild_every: int = 50
    """p, episodes between two relabellings of the demonstrations; 0 = only before the first episode (ablation) [code: 50 or 100]."""
    threshold: Literal["absolute", "normalized"] = "absolute"
    """Below what a state is out of reach: the value of a goal c steps away less threshold_margin, as measured from that of being at a goal,
    or threshold_percent of the spread of Q over the demonstration's future [here; code: normalized]."""
    threshold_margin: float = 2.0
    """How far below the value of a goal c steps away the absolute threshold lies [here]."""
    threshold_percent: int = 10
    """The normalized threshold, of 100; 0 = never out of reach, which is fixed windows of c steps [code: 10 in the maze, 0 elsewhere]."""
    margin_low: float = 1e-4
    """Weight of the margin term in the lower critic, whose values decide what counts as reachable; 0 = off [paper]."""
    margin_high: float = 0.0
    """The same in the higher critic [code: there, but off]."""
    rl_weight: float = 1e-3
    """lambda_1, weight of SAC's part of an actor's loss [code]."""
    il_weight: float = 0.0078
    """lambda_2, weight of imitation, a sum over rows for bc, a mean for irl; 0.001 in maze and kitchen, 0.005 for pick and bin [code]."""
    action_l2: float = 1.0
    """eta, weight of the mean square of the actors' actions, inside SAC's part [code]."""
    q_filter: bool = True
    """Clone only rows whose demonstrated action the critic values above the actor's own [code]."""
    entropy: float = 0.05
    """alpha, SAC's fixed entropy weight [code]."""
    gamma: float = 0.99
    """Discount of both levels, by decision [code]."""
    hidden: tuple[int, ...] = (512, 512, 512)
    """Widths of the hidden layers of actors, critics and discriminators [code]."""
    actor_lr: float = 1e-3
    """Adam's learning rate of the actors [code]."""
    critic_lr: float = 1e-3
    """Adam's learning rate of the critics [code]."""
    discriminator_lr: float = 1e-3
    """Adam's learning rate of the discriminators [code]."""
    batch_size: int = 1024
    """Rows in a batch of a level, those of demonstrations included [code]."""
    expert_rows: int = 128
    """Rows from demonstrations at the end of a batch, where the variant uses them [code]."""
    updates_per_episode: int = 10
    """Gradient steps of each level for each episode, followed by one step of the target networks [code]."""
    polyak_kept: float = 0.8
    """Share of the target networks that is kept at their step once an episode [code]."""
    replay_size: int = 10_000_000
    """Rows kept of each level [code]."""
    relabelled_goals: int = 4
    """k, hindsight goals for each original one, from the future of the same episode (lower level: of the same subgoal) [code]."""
    random_share: float = 0.2
    """Probability of a uniformly random action (or subgoal) while collecting [code]."""
    exploration_noise: float = 0.05
    """Standard deviation of the noise on actions and subgoals while collecting [code]."""
    demonstrations: int = 100
    """Demonstrations asked of the world [code; kitchen 28]."""
    rows: int = 1
    """World rows that run an episode each, between updates [here]."""
    observation_clip: float = 200.0
    """Observations and goals are clipped to this before they are normalised [code]."""
    normalized_clip: float = 5.0
    """Bound on normalised observations and goals [code]."""
    normalized_eps: float = 0.01
    """Least standard deviation that is divided by [code]."""
    subgoal_test_every: int = 3
    """hac: every such episode tests subgoals: the lower level acts without exploration, and a miss costs c [code]."""
    miss_penalty: float = 1.0
    """hier_neg: what the higher level is charged for a missed subgoal [here]."""

    def __post_init__(self) -> None:
        self.require_least(primitive_steps=1, rebuild_every=0, threshold_margin=0, margin_low=0, margin_high=0, hidden=1)
        self.require_least(rl_weight=0, il_weight=0, action_l2=0, entropy=0, updates_per_episode=1, rows=1, relabelled_goals=0)
        self.require_least(demonstrations=1, exploration_noise=0, subgoal_test_every=1, miss_penalty=0, batch_size=2, expert_rows=1)
        self.require_above_zero("actor_lr", "critic_lr", "discriminator_lr", "observation_clip", "normalized_clip", "normalized_eps")
        for name, low, high in (("gamma", 0, 1), ("polyak_kept", 0, 1), ("random_share", 0, 1.0 + 1e-9), ("threshold_percent", 0, 101)):
            if not low <= getattr(self, name) < high:
                raise ConfigError(f"PEARConfig.{name}: {getattr(self, name)}, valid: {low} .. {round(high)}")
        if self.expert_rows >= self.batch_size:
            raise ConfigError(f"PEARConfig.expert_rows: {self.expert_rows}, valid: below batch_size ({self.batch_size})")
        if self.rebuild_every % self.rows:
            raise ConfigError(f"PEARConfig.rebuild_every: {self.rebuild_every}, valid: a multiple of rows ({self.rows}), or 0")

    @property
    def switches(self) -> Switches:
        """What the variant turns on."""
        return VARIANTS[self.variant]

    @property
    def uses_demonstrations(self) -> bool:
        """Whether batches end with rows from demonstrations."""
        return self.switches.imitates or self.switches.discriminator_reward
