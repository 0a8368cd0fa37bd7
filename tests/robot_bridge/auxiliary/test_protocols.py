"""Each kind's protocol, by its fake."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
import torch

from rl_core.bundle import Bundle
from rl_core.errors import ArmstackError
from robot_bridge.auxiliary.protocols import PROTOCOLS, AdaptiveRecogniser, Kind, Prediction, PredictionError
from tests.robot_bridge.auxiliary.fakes import Average, Brightness, Clicker, Echo, LeaveOneOut, Noise, OneTimePad, Votes, grey_data

FAKES: dict[Kind, Any] = {
    "recogniser": Brightness(("dark", "bright"), 0.5, 8.0),
    "generator": Noise(),
    "transform": Average(),
    "selector": LeaveOneOut(),
    "fleet": Votes(),
    "private_inference": OneTimePad(),
    "dialogue": Echo(),
    "agent": Clicker(),
}


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_fake_follows_the_protocol_of_its_kind_and_of_no_other(kind: Kind) -> None:
    assert [name for name, protocol in PROTOCOLS.items() if isinstance(FAKES[kind], protocol)] == [kind]


def test_a_recogniser_is_pure_and_its_frames_are_judged_each_for_itself() -> None:
    recogniser, frames = FAKES["recogniser"], grey_data().frames
    whole, again, row = recogniser.predict(frames), recogniser.predict(frames), recogniser.predict(frames[3:4])
    whole.check(len(frames), recogniser.classes)
    assert np.array_equal(whole.scores, again.scores) and np.array_equal(whole.scores[3:4], row.scores)
    assert isinstance(recogniser, AdaptiveRecogniser)
    recogniser.remember(frames, whole)
    assert recogniser.seen == len(frames) and np.array_equal(recogniser.predict(frames).scores, whole.scores)
    assert recogniser.predict(frames, {"object": "anything"}).scores[:, 1].min() == 1.0


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"scores": np.zeros((2, 3), np.float32)}, r"scores: float32 \(2, 3\), valid: float32 \(2, 2\)"),
        ({"scores": np.zeros((2, 2))}, "scores: float64"),
        ({"scores": np.full((2, 2), np.nan, np.float32)}, "scores: NaN or infinity"),
        ({"map": np.zeros((2, 4), np.float32)}, "map: float32"),
        ({"map": np.full((2, 1, 1), np.inf, np.float32)}, "map: NaN or infinity"),
        ({"values": {"unknown": np.zeros((2, 1), np.float32)}}, r"values\['unknown'\]: float32 \(2, 1\), valid: float32 \(2,\)"),
        ({"values": {"dark": np.zeros(2, np.float32)}}, "'dark' is a class too"),
    ],
)
def test_a_prediction_that_breaks_the_protocol_is_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(PredictionError, match=says):
        Prediction(**{"scores": np.zeros((2, 2), np.float32), **changed}).check(2, ("dark", "bright"))


def test_a_generators_image_depends_on_seed_and_index_alone() -> None:
    three, two = (FAKES["generator"].sample({"level": 80}, seed=4, n=n, steps=2) for n in (3, 2))
    assert three.dtype == np.uint8 and three.shape == (3, 8, 8, 3)
    assert np.array_equal(three[:2], two) and not np.array_equal(three[0], three[1])
    assert FAKES["generator"].sample({}, seed=4, n=2, steps=90).mean() > two.mean() + 50


def test_a_transforms_bundle_names_its_parents_and_leaves_them_alone() -> None:
    parents = [Bundle(kind="recogniser", method="brightness", config={"n": n}, weights={"w": torch.tensor([float(n)])}) for n in (1, 3)]
    made, report = FAKES["transform"].apply(parents)
    assert made.weights["w"].tolist() == [2.0] and len(made.parents) == 2 and report == {"merged": 2}
    assert parents[0].weights["w"].tolist() == [1.0] and parents[0].parents == ()


def test_a_selector_values_every_episode_by_its_uuid() -> None:
    class _Episode:
        def __init__(self, uuid: str) -> None:
            self.uuid = uuid

    worth = {"good": 2.0, "idle": 0.0, "bad": -1.0}
    values = FAKES["selector"].values([_Episode(name) for name in worth], lambda names: sum(worth[name] for name in names))
    assert values == worth


def test_a_fleets_merge_does_not_depend_on_the_order_and_refuses_what_it_cannot_read() -> None:
    updates = [FAKES["fleet"].client_update(np.array(labels)) for labels in ([0, 0, 2], [1, 2])]
    assert all(isinstance(update, bytes) for update in updates)
    merged, other = FAKES["fleet"].merge(updates), FAKES["fleet"].merge(updates[::-1])
    assert merged.weights["counts"].tolist() == other.weights["counts"].tolist() == [2, 1, 2]
    with pytest.raises(ArmstackError, match="cannot be read"):
        FAKES["fleet"].merge([b"\x80\x04pickle"])


def test_private_inference_gives_the_clear_answer_to_the_client_and_nothing_to_the_server() -> None:
    frames = np.full((1, 8, 8, 3), 51, np.uint8)
    client = FAKES["private_inference"].client(seed=5)
    server = FAKES["private_inference"].server(client.evaluation_key())
    ciphertext = client.encrypt(frames)
    prediction = client.decrypt(server.evaluate(ciphertext))
    prediction.check(1, FAKES["private_inference"].classes)
    assert prediction.scores[0].tolist() == pytest.approx([0.8, 0.2], abs=1e-6)
    assert ciphertext != FAKES["private_inference"].client(seed=6).encrypt(frames)
    secret = client.secret.tobytes()
    assert secret not in ciphertext and all(secret not in value for value in vars(server).values())


def test_a_dialogue_and_an_agent_answer_in_json() -> None:
    reply = FAKES["dialogue"].handle({"text": "cube"}, {"objects": ["cube"]})
    assert reply == {"say": "cube, understood", "task": None}
    screen = {"controls": [{"id": 1, "name": "jog"}, {"id": 7, "name": "calibrate"}]}
    assert FAKES["agent"].step("calibrate the wrist", screen) == {"op": "click", "id": 7}
    assert FAKES["agent"].step("sing", screen) == {"op": "done"}
