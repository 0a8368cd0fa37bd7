import dataclasses
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from rl_core.contract import RobotContract
from rl_core.strap.corpus import list_demos, read_corpus_demo
from rl_core.strap.embedding import Embedding, ImageEmbedder, embedder_from_spec, fit_embedder
from rl_core.strap.encoders import EfficientNetLite, TokenEncoder, make_encoder
from rl_core.strap.sdtw import RetrievalError
from tests.rl_core.strap.retrieval.demos import CONTRACT, corpus


class MeanColour:
    """The mean colour of the upper and of the lower half: tells a picture from one that is upside down."""

    identity = "mean-colour"
    size = 6

    def __init__(self) -> None:
        self.pictures = 0

    def encode(self, frames: np.ndarray) -> np.ndarray:
        self.pictures += len(frames)
        half = frames.shape[1] // 2
        return np.concatenate([frames[:, :half].mean(axis=(1, 2)), frames[:, half:].mean(axis=(1, 2))], axis=1).astype(np.float32)


@pytest.fixture(scope="module")
def lite() -> EfficientNetLite:
    return EfficientNetLite()


def test_the_packaged_network_sees_what_is_in_a_photograph(lite) -> None:
    """Weights and the scale of the pixels are right: a wrong one ruins the class. ImageNet 652 is a military uniform."""
    import matplotlib

    photograph = np.asarray(Image.open(Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg").convert("RGB"))
    features = lite.encode(photograph[None, :600, :512])
    assert features.shape == (1, lite.size) and features.dtype == np.float32
    with torch.no_grad():
        scores = lite._net._fc(torch.from_numpy(features))[0]
    assert 652 in scores.topk(3).indices.tolist()


def test_encoding_does_not_depend_on_the_batch(lite) -> None:
    frames = corpus().episodes[0].observations["front"][:34]
    together = lite.encode(frames)
    np.testing.assert_allclose(together[33:], lite.encode(frames[33:34]), atol=1e-5)
    grey = lite.encode(frames[:1].mean(axis=-1, keepdims=True).astype(np.uint8))
    assert grey.shape == (1, 1280)
    with pytest.raises(RetrievalError, match=r"float64 and shape \(24, 24\); valid: uint8"):
        lite.encode(np.zeros((24, 24)))


def small_model(name: str, folder: Path) -> Path:
    """A network of the same kind, small and not trained, as `save_pretrained` writes it."""
    from transformers import CLIPImageProcessor, CLIPVisionConfig, CLIPVisionModel, Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "image_size": 224, "patch_size": 32}
    if name == "dinov2":
        Dinov2Model(Dinov2Config(**sizes)).save_pretrained(folder)
    else:
        CLIPVisionModel(CLIPVisionConfig(**sizes, intermediate_size=64)).save_pretrained(folder)
    CLIPImageProcessor().save_pretrained(folder)
    return folder


@pytest.mark.parametrize("name", ["dinov2", "clip"])
def test_tokens_are_averaged_over_the_layer_of_the_paper(name, tmp_path: Path) -> None:
    encoder = make_encoder(name, small_model(name, tmp_path))
    frames = np.random.default_rng(0).integers(0, 255, (3, 48, 48, 3), dtype=np.uint8)
    features = encoder.encode(frames)
    assert features.shape == (3, 32) and encoder.size == 32

    assert isinstance(encoder, TokenEncoder)
    resized = [Image.fromarray(frame).resize((224, 224), Image.Resampling.BILINEAR) for frame in frames]
    pixels = encoder._processor(images=resized, return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        found = encoder._net(pixels, output_hidden_states=True)
    tokens = found.last_hidden_state if name == "dinov2" else found.hidden_states[-2]
    assert tokens.shape == (3, 1 + 49, 32)
    np.testing.assert_allclose(features, tokens.mean(dim=1).numpy(), atol=1e-5)
    other = make_encoder(name, small_model(name, tmp_path / "again"))
    assert other.identity == encoder.identity and encoder.identity.startswith(name)


@pytest.mark.parametrize("name", ["dinov2", "clip"])
def test_weights_that_are_not_there_are_named(name, tmp_path: Path) -> None:
    with pytest.raises(RetrievalError, match=f"encoder {name}: no weights at .*or efficientnet-lite0"):
        make_encoder(name, tmp_path)
    with pytest.raises(RetrievalError, match="efficientnet-lite0 has its own"):
        make_encoder("efficientnet-lite0", tmp_path)


def upside_down(contract: RobotContract) -> RobotContract:
    channels = [dataclasses.replace(c, row_order="bottom_up") if c.kind == "image" else c for c in contract.observation]
    return dataclasses.replace(contract, observation=tuple(channels))


def test_pictures_stored_upside_down_are_turned_and_cameras_averaged() -> None:
    episode = corpus().episodes[0]
    front = episode.observations["front"]
    turned = dataclasses.replace(episode, observations={**episode.observations, "front": front[:, ::-1]})
    embedder = ImageEmbedder(MeanColour(), ("front",), None)
    upright = embedder.embed(episode, CONTRACT)
    assert upright.shape == (len(episode), 6)
    np.testing.assert_array_equal(embedder.embed(turned, upside_down(CONTRACT)), upright)
    assert not np.array_equal(embedder.embed(turned, CONTRACT), upright)

    side = dataclasses.replace(CONTRACT.channel("front"), name="side")
    both = dataclasses.replace(CONTRACT, observation=(*CONTRACT.observation, side))
    seen = dataclasses.replace(episode, observations={**episode.observations, "side": 255 - front})
    mean = ImageEmbedder(MeanColour(), ("front", "side"), None).embed(seen, both)
    np.testing.assert_allclose(mean, 127.5, atol=1e-3)


def test_a_cache_keeps_features_by_content_and_heals(tmp_path: Path) -> None:
    encoder = MeanColour()
    embedder = ImageEmbedder(encoder, ("front",), tmp_path)
    episode = corpus().episodes[0]
    first = embedder.embed(episode, CONTRACT)
    np.testing.assert_array_equal(embedder.embed(dataclasses.replace(episode, uuid="other"), CONTRACT), first)
    assert encoder.pictures == len(episode)
    (file,) = tmp_path.glob("*.npy")
    file.write_bytes(file.read_bytes()[:-50])
    np.testing.assert_array_equal(embedder.embed(episode, CONTRACT), first)
    assert encoder.pictures == 2 * len(episode)
    changed = dataclasses.replace(episode, observations={**episode.observations, "front": 255 - episode.observations["front"]})
    assert not np.array_equal(embedder.embed(changed, CONTRACT), first)


def test_states_are_standardised_and_a_mix_varies_equally_in_both(monkeypatch) -> None:
    monkeypatch.setattr("rl_core.strap.embedding.make_encoder", lambda *_: MeanColour())
    episodes = corpus().episodes
    state = fit_embedder(Embedding(features="state"), episodes, CONTRACT)
    rows = np.concatenate([state.embed(episode, CONTRACT) for episode in episodes])
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(rows.std(axis=0), 1, atol=1e-4)
    assert state.size == 4 and state.spec["channels"] == ["eef_pos", "gripper_pos"]

    wanted = Embedding(features="mix")
    mix = fit_embedder(wanted, episodes, CONTRACT)
    both = np.concatenate([mix.embed(episode, CONTRACT) for episode in episodes])
    assert both[:, :6].var(axis=0).sum() == pytest.approx(both[:, 6:].var(axis=0).sum(), rel=1e-3)
    again = embedder_from_spec(json.loads(json.dumps(mix.spec)), wanted)
    np.testing.assert_array_equal(again.embed(episodes[0], CONTRACT), mix.embed(episodes[0], CONTRACT))
    with pytest.raises(RetrievalError, match="holds features 'mix', asked for are 'state'"):
        embedder_from_spec(mix.spec, Embedding(features="state"))


def test_a_dimension_that_never_changes_stays_finite() -> None:
    episodes = [
        dataclasses.replace(e, observations={**e.observations, "gripper_pos": np.full((len(e) + 1, 1), 0.04, np.float32)})
        for e in corpus().episodes
    ]
    embedder = fit_embedder(Embedding(features="state"), episodes, CONTRACT)
    assert np.abs(embedder.embed(episodes[0], CONTRACT)[:, 3]).max() < 1e-6


def test_channels_that_are_not_there_are_listed() -> None:
    with pytest.raises(RetrievalError, match=r"\['wrist'\] not there; channels: \['eef_pos', 'gripper_pos', 'front'\]"):
        fit_embedder(Embedding(cameras=("wrist",)), corpus().episodes, CONTRACT)


def test_liberos_files_have_their_instruction_and_are_turned(tmp_path: Path) -> None:
    file = tmp_path / "KITCHEN_SCENE1_open_demo.hdf5"
    pictures = np.zeros((6, 8, 8, 3), np.uint8)
    pictures[:, :4] = 200
    with h5py.File(file, "w") as opened:
        data = opened.create_group("data")
        data.attrs["problem_info"] = json.dumps({"language_instruction": "open the top drawer"})
        data.attrs["env_args"] = json.dumps({"env_name": "Libero", "type": 1, "env_kwargs": {"robots": ["Panda"], "control_freq": 20}})
        demo = data.create_group("demo_0")
        demo.create_dataset("actions", data=np.zeros((6, 7)))
        demo.create_dataset("obs/agentview_rgb", data=pictures)
        demo.create_dataset("obs/ee_pos", data=np.zeros((6, 3)))
    (listed,) = list_demos(file)
    episode, contract = read_corpus_demo(listed)
    assert episode.meta["lang"] == "open the top drawer"
    (camera,) = [channel for channel in contract.observation if channel.kind == "image"]
    assert camera.row_order == "bottom_up"
    features = ImageEmbedder(MeanColour(), (camera.name,), None).embed(episode, contract)
    assert (features[:, :3] == 0).all() and (features[:, 3:] == 200).all()
