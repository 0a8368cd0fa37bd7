"""dm_control's walker, quadruped, hopper and reacher as reward-free worlds, with the task rewards of unsupervised RL."""
