"""The method: it learns the order of events, which averaging cannot; its bundle, its searcher, its baselines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rl_core.bundle import Bundle
from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.registry import find_method
from robot_bridge.auxiliary.stamped import StampedRecogniser
from robot_bridge.auxiliary.video import tempme
from robot_bridge.auxiliary.video.errors import VideoError
from robot_bridge.auxiliary.video.retrieval_figures import retrieval_figures
from robot_bridge.auxiliary.video.schedule import multiply_adds, plan_blocks
from robot_bridge.auxiliary.video.training import _batches
from tests.robot_bridge.auxiliary.video.colour_clips import CONFIG, FRAMES, SCHEDULE, colour_clips, film, loaded, says, trained

TEST = colour_clips(seed=1, each=1)
SECOND = 1_000_000_000


@pytest.fixture
def searcher(searcher_bundle: Path) -> tempme.ClipSearcher:
    return loaded(Bundle.load(searcher_bundle))


def test_it_learns_the_order_that_frames_apart_do_not_show(searcher: tempme.ClipSearcher, tiny: None, tmp_path: Path) -> None:
    found = tempme.evaluate(searcher, TEST)
    assert found["twins"] == 1.0 and found["r1"] >= 0.9 and found["r1_ordered"] == found["r1"]
    plain = tempme.train_plain(colour_clips(), CONFIG, tmp_path, seed=0, say=lambda text: None)
    other = tempme.evaluate(loaded(plain), TEST)
    assert other["twins"] <= 0.75 and other["r5"] == 1.0  # the colours are found, their order is not
    assert found["multiply_adds"] < other["multiply_adds"]


def test_a_bundle_gives_the_encoder_back_whatever_the_seed(searcher_bundle: Path) -> None:
    frames = TEST.frames[0]
    one, two = (
        loaded(Bundle.load(searcher_bundle)),
        tempme.load(Bundle.load(searcher_bundle), loaded(Bundle.load(searcher_bundle)).vlm.backbone),
    )  # type: ignore[attr-defined]
    assert np.array_equal(one.clip_vector(frames), two.clip_vector(frames))
    bundle = Bundle.load(searcher_bundle)
    assert bundle.metrics["trained"] == sum(values.numel() for values in one.encoder.parameters())
    assert not any(name.startswith("towers.frozen") for name in bundle.weights)


def test_training_is_the_same_twice(tiny: None, tmp_path: Path) -> None:
    one, two = (trained(tmp_path / name, epochs=2) for name in "ab")
    assert all(torch.equal(one.weights[name], two.weights[name]) for name in one.weights)


def test_a_stopped_training_goes_on_and_ends_as_one_that_was_not(tiny: None, tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", epochs=5)
    run, said, settings = tmp_path / "run", [], CONFIG.override(epochs=5)  # type: ignore[var-annotated]

    def stop(line: str) -> None:
        if line.startswith("epoch 3/5"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tempme.train(colour_clips(), settings, run, seed=0, say=stop)
    with pytest.raises(ArmstackError, match="training: a run with another config.lr, seed; valid: equal settings and data"):
        tempme.train(colour_clips(), settings.override(lr=0.1), run, seed=1, say=said.append)
    again = tempme.train(colour_clips(), settings, run, seed=0, say=said.append)
    told = [line for line in said if line.startswith("epoch ")]
    assert told[0].startswith("epoch 3/5: found in the run's folder") and len(told) == 3 and told[1].endswith(" s left")
    assert all(torch.equal(whole.weights[name], again.weights[name]) for name in whole.weights)
    assert whole.metrics == again.metrics
    said.clear()
    tempme.train(colour_clips(), settings, run, seed=0, say=said.append)  # stopped before the bundle was written
    (line,) = (line for line in said if line.startswith("epoch "))
    assert line.startswith("epoch 5/5: found in the run's folder")
    with pytest.raises(ArmstackError, match="training: a run with another config.epochs, config.schedule.*, method"):
        tempme.train_nothing(colour_clips(), settings, run, seed=0, say=said.append)  # the command would delete what is kept


def test_tome_costs_as_much_as_the_schedule_or_a_little_more(tiny: None, tmp_path: Path) -> None:
    bundle = tempme.train_inside(colour_clips(), CONFIG.override(epochs=0), tmp_path, seed=0, say=lambda text: None)
    inside = loaded(bundle).encoder
    assert inside.schedule.clip_blocks == () and inside.schedule.per_frame > 0
    budget = multiply_adds(plan_blocks(SCHEDULE, blocks=2, frames=FRAMES, tokens=17), inside.width)
    costs = [
        multiply_adds(plan_blocks(inside.schedule.override(per_frame=r), blocks=2, frames=FRAMES, tokens=17), inside.width)
        for r in (inside.schedule.per_frame, inside.schedule.per_frame + 1)
    ]
    assert costs[1] < budget <= costs[0] or costs[0] == costs[1]


def test_zero_shot_leaves_the_model_as_it_is(tiny: None, tmp_path: Path) -> None:
    found = loaded(tempme.train_nothing(colour_clips(), CONFIG, tmp_path, seed=0, say=lambda text: None))
    assert all(not block.up.any() for block in (*found.encoder.towers.vision, *found.encoder.towers.text))
    assert found.classes[0] in colour_clips().meanings and len(found.classes) == 12


def test_the_searcher_knows_when_it_saw_what(searcher: tempme.ClipSearcher) -> None:
    assert isinstance(searcher, StampedRecogniser) and searcher.find("a red mug then blue") == []
    generator = np.random.default_rng(5)
    films = [("red", "blue"), ("green", "yellow"), ("blue", "red")]
    stamps = []
    for number, turn in enumerate(films):
        for index, frame in enumerate(film(*turn, generator)):
            stamp = (100 * number + index) * SECOND // 2
            prediction = searcher.predict(frame[None])
            prediction.check(1, searcher.classes)
            searcher.remember_at(stamp, frame[None], prediction)
            searcher.remember_at(stamp + SECOND // 5, frame[None], prediction)  # too early after the last one: left out
            stamps.append(stamp)
    for number, turn in enumerate(films):
        first, *_, last = stamps[FRAMES * number : FRAMES * (number + 1)]
        best = searcher.find(says(*turn), top=2)[0]
        assert (best["start"], best["end"]) == (first, last) and -1 <= best["score"] <= 1
    with pytest.raises(VideoError, match="top: 0, valid: 1 or more"):
        searcher.find("a red mug", top=0)
    assert searcher.reset() == {"clips": 0} and searcher.find("a red mug") == []


def test_predicting_is_pure_and_scores_the_clip_that_the_frame_ends(searcher: tempme.ClipSearcher) -> None:
    generator = np.random.default_rng(6)
    searcher.set_vocabulary([says("red", "blue"), says("blue", "red")])
    frames = film("red", "blue", generator)
    for index, frame in enumerate(frames[:-1]):
        searcher.remember_at(index * SECOND // 2, frame[None], searcher.predict(frame[None]))
    one, two = searcher.predict(frames[-1:]), searcher.predict(frames[-1:])
    assert np.array_equal(one.scores, two.scores) and one.scores[0].argmax() == 0
    assert one.scores[0, 0] == pytest.approx(float(searcher.clip_vector(frames) @ searcher.text_vector(says("red", "blue"))), abs=1e-5)


def test_the_memory_is_bounded_and_a_new_recording_begins_anew(searcher_bundle: Path) -> None:
    bundle = Bundle.load(searcher_bundle)
    config = {**bundle.config, "settings": {**bundle.config["settings"], "remembered": 3}}
    searcher = loaded(replace(bundle, config=config))
    frame = film("red", "blue", np.random.default_rng(0))[:1]
    for index in range(30):
        searcher.remember_at(index * SECOND // 2, frame, searcher.predict(frame))
    assert len(searcher.memory) == 3
    searcher.remember_at(0, frame, searcher.predict(frame))  # simulated time began anew
    assert searcher.memory.window() and len(searcher.memory.window()) == 1


def test_more_frames_than_the_bundle_takes_are_refused(searcher: tempme.ClipSearcher) -> None:
    more = replace(TEST, frames=np.repeat(TEST.frames, 2, axis=1), lengths=TEST.lengths * 2)
    with pytest.raises(VideoError, match="clips of 8 frames; this bundle takes 1..4"):
        tempme.evaluate(searcher, more)


def test_the_registry_has_the_method_and_its_baselines() -> None:
    for name in ("tempme", "video-lora", "video-tome", "video-zero-shot"):
        method = find_method(name)
        assert method.family == "video" and set(method.asked) == {"find", "set_vocabulary", "reset"}
    assert not find_method("tempme").asked["find"].arguments["top"].needed


def test_clips_of_one_group_stay_in_one_batch() -> None:
    groups = np.array([0, 0, 1, 1, 2, 3, 3, 3, 4])
    batches = _batches(groups, 4, np.random.default_rng(0))
    for group in range(5):
        assert sum(bool((groups[batch] == group).any()) for batch in batches) <= 1
    assert all(1 < len(batch) <= 4 for batch in batches)


def test_figures_by_hand() -> None:
    data = replace(TEST, meanings=("a", "b", "c", "c", *TEST.meanings[4:]), ordered=np.arange(12) < 4)
    similarity = np.zeros((12, 12), np.float32)
    similarity[np.arange(12), np.arange(12)] = 1.0
    similarity[0, 1] = 2.0  # its twin is before it
    similarity[2, 2], similarity[2, 3] = -1.0, 1.0  # another clip of the same meaning is as good
    figures = retrieval_figures(similarity, data)
    assert figures["r1"] == pytest.approx(11 / 12) and figures["r5"] == 1.0
    assert figures["r1_ordered"] == 0.75 and figures["twins"] == 0.75 and figures["r1_other"] == 1.0
    ties = retrieval_figures(np.zeros((12, 12), np.float32), TEST)
    assert ties["r1"] == 0.0 and ties["twins"] == 0.0  # what cannot be told apart is not found
