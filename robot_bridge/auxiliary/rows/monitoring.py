"""Monitoring: whether what is in view is known and real, and where people are."""

from __future__ import annotations

from robot_bridge.auxiliary.method import AuxiliaryMethod
from robot_bridge.auxiliary.rows.common import recogniser

ROWS: tuple[AuxiliaryMethod, ...] = (
    recogniser(
        "local-prompt",
        "LocalPromptConfig",
        "Local-Prompt: is the object known, and which part of it is not; from a few pictures",
        module="local_prompt",
        family="monitoring",
        paper="ICLR 2025, arXiv 2409.04796",
        evaluate="robot_bridge.auxiliary.monitoring.guard_evaluation:evaluate",
    ),
    recogniser(
        "mcm",
        "MCMConfig",
        "is the object known: the surest class of the whole picture",
        module="mcm",
        family="monitoring",
        paper="arXiv 2211.13445",
        evaluate="robot_bridge.auxiliary.monitoring.guard_evaluation:evaluate",
    ),
    recogniser(
        "gl-mcm",
        "MCMConfig",
        "is the object known: the same, and its surest region",
        module="mcm",
        family="monitoring",
        paper="arXiv 2304.04521",
        train="train_global_local",
        evaluate="robot_bridge.auxiliary.monitoring.guard_evaluation:evaluate",
    ),
    AuxiliaryMethod(
        name="manifold",
        family="monitoring",
        kind="recogniser",
        summary="is a frame from the camera or was it generated: how a diffusion model's density is curved around it",
        paper="ICLR 2025, arXiv 2504.15470",
        config="robot_bridge.auxiliary.monitoring.manifold.config:ManifoldConfig",
        train="robot_bridge.auxiliary.monitoring.manifold.training:train",
        load="robot_bridge.auxiliary.monitoring.manifold.training:load",
        evaluate="robot_bridge.auxiliary.monitoring.manifold.evaluation:evaluate",
        needs=("camera", "dataset"),
        read_data="robot_bridge.auxiliary.monitoring.manifold.frames:read_frames",
    ),
    AuxiliaryMethod(
        name="rfmamba",
        family="monitoring",
        kind="recogniser",
        summary="RFMamba: where a person is and what they do, from radar echoes, in the dark and behind walls",
        paper="ICLR 2025",
        config="robot_bridge.auxiliary.monitoring.rfmamba.config:RFMambaConfig",
        train="robot_bridge.auxiliary.monitoring.rfmamba.recogniser:train",
        load="robot_bridge.auxiliary.monitoring.rfmamba.recogniser:load",
        evaluate="robot_bridge.auxiliary.monitoring.rfmamba.evaluation:evaluate",
        needs=("radar", "dataset"),
        make_data="robot_bridge.auxiliary.monitoring.rfmamba.echo_data:make",
        read_data="robot_bridge.auxiliary.monitoring.rfmamba.echoes:read_recordings",
        resumes=True,
    ),
)
