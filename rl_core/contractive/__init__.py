"""Contractive dynamical policies (Abyaneh et al., ICLR 2025, arXiv 2412.07544): imitation by dynamics that contract for any parameters."""

from rl_core.contractive.certificate import Certificate, CertificateMonitor
from rl_core.contractive.config import ContractiveConfig
from rl_core.contractive.learner import ContractiveLearner
from rl_core.contractive.policy import ContractivePolicy, policy_from_bundle

__all__ = ["Certificate", "CertificateMonitor", "ContractiveConfig", "ContractiveLearner", "ContractivePolicy", "policy_from_bundle"]
