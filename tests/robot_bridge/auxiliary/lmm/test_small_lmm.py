"""The caption decoder: what it learns, how it answers, what it keeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rl_core.bundle import Bundle
from robot_bridge.auxiliary.lmm.interface import LMMError
from robot_bridge.auxiliary.lmm.sampling import nucleus, sample
from robot_bridge.auxiliary.lmm.small import SmallLMM
from robot_bridge.auxiliary.lmm.visual_tokens import VisualTokens
from robot_bridge.auxiliary.lmm.vocabulary import ANSWER, END, UNKNOWN, Vocabulary
from tests.robot_bridge.auxiliary.lmm.small_lmm import CAPTIONS, QUESTION, eight_pictures, small_lmm
from tests.robot_bridge.auxiliary.tiny_vlm import tiny_vlm


@pytest.fixture(scope="module")
def learned() -> SmallLMM:
    """Knows eight captions by heart."""
    model = small_lmm()
    for _ in range(2):
        model.sft(eight_pictures(), [QUESTION] * 8, CAPTIONS, 60, 5e-3)
    return model


def test_eight_captions_are_learnt_and_greedily_said_word_for_word(learned: SmallLMM) -> None:
    said = learned.generate(eight_pictures(), [QUESTION] * 8)
    assert [answers[0] for answers in said] == list(CAPTIONS)


def test_pictures_and_prompts_are_paired_by_place(learned: SmallLMM) -> None:
    order = [5, 0, 0, 7, 3]
    said = learned.generate(eight_pictures()[order], [QUESTION] * 5, n=2)
    assert said == [[CAPTIONS[index]] * 2 for index in order]


def test_cached_sampling_equals_uncached() -> None:
    model = small_lmm("which one")  # untrained: answers are long and different
    prompts = [model.vocabulary.prompt(text) for text in ("what", QUESTION, "a red mug, next to a green bowl.")]
    visual = model.visual(eight_pictures()[:3])
    with torch.no_grad():
        for module in (model.decoder.embedding, model.decoder.blocks):
            for parameter in module.parameters():
                parameter.mul_(3.0)
    cached = sample(model.decoder, visual, prompts, 1, 0.0, 1.0, 12, torch.Generator())
    for row, prompt in enumerate(prompts):
        ids: list[int] = []
        for _ in range(12):
            with torch.no_grad():
                logits = model.decoder(visual[row : row + 1], torch.tensor([[*prompt, *ids]]))[0, -1]
            logits[[0, ANSWER, UNKNOWN]] = -torch.inf
            ids.append(int(logits.argmax()))
            if ids[-1] == END:
                break
        assert cached[row][0][: len(ids)] == ids and set(cached[row][0][len(ids) :]) <= {END}
    assert len({tuple(row[0]) for row in cached}) == 3


def test_logits_of_a_step_are_those_of_the_whole() -> None:
    model, visual = small_lmm(), None
    visual = model.visual(eight_pictures()[:2])
    prompts = [model.vocabulary.prompt("what"), model.vocabulary.prompt("what is this.")]
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    ids = torch.zeros(2, 5, dtype=torch.long)
    for row, prompt in zip(ids, prompts, strict=True):
        row[: len(prompt)] = torch.tensor(prompt)
    word = torch.tensor([7, 9])
    with torch.no_grad():
        first, seen = model.decoder.prefill(visual, ids, lengths, 2)
        second = model.decoder.step(word, lengths, seen)
        for row, prompt in enumerate(prompts):
            whole = model.decoder(visual[row : row + 1], torch.tensor([[*prompt, int(word[row])]]))[0]
            torch.testing.assert_close(first[row], whole[-2], atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(second[row], whole[-1], atol=1e-5, rtol=1e-4)


def test_the_nucleus_is_the_smallest_set_of_enough_probability() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.3, 0.5]]))
    assert torch.allclose(nucleus(logits, 1.0, 0.6), torch.tensor([[0.625, 0.375, 0, 0], [0, 0, 0.375, 0.625]]))
    assert torch.allclose(nucleus(logits, 1.0, 1.0), logits.exp())
    assert nucleus(logits, 1.0, 1e-6).tolist() == [[1, 0, 0, 0], [0, 0, 0, 1]]
    assert nucleus(logits, 0.1, 1.0)[0, 0] > 0.99


def test_equal_seeds_give_equal_answers_and_others_differ() -> None:
    model, frames = small_lmm(), eight_pictures()
    first = model.generate(frames, [QUESTION] * 8, 3, 1.0, 1.0, 10, seed=4)
    assert first == model.generate(frames, [QUESTION] * 8, 3, 1.0, 1.0, 10, seed=4)
    assert first != model.generate(frames, [QUESTION] * 8, 3, 1.0, 1.0, 10, seed=5)
    assert len({text for answers in first for text in answers}) > 12


def test_the_likelihood_is_that_of_the_answers_words(learned: SmallLMM) -> None:
    frames = eight_pictures()
    own = learned.log_likelihood(frames, [QUESTION] * 8, CAPTIONS)
    other = learned.log_likelihood(frames, [QUESTION] * 8, CAPTIONS[1:] + CAPTIONS[:1])
    assert (own > -0.5).all() and (other < own - 2).all()
    prompt, answer = learned.vocabulary.prompt(QUESTION), learned.vocabulary.answer(CAPTIONS[2])
    with torch.no_grad():
        log_p = learned.decoder(learned.visual(frames[2:3]), torch.tensor([[*prompt, *answer]]))[0].log_softmax(-1)
    by_hand = sum(float(log_p[len(prompt) - 1 + place, word]) for place, word in enumerate(answer))
    assert own[2] == pytest.approx(by_hand, abs=1e-4)
    assert learned.log_likelihood(frames[2:3], [QUESTION], CAPTIONS[2:3])[0] == pytest.approx(own[2], abs=1e-4)


def test_a_bundle_gives_the_same_answers(learned: SmallLMM, tmp_path: Path) -> None:
    folder = learned.save(tmp_path / "lmm")
    again = SmallLMM.load(folder, tiny_vlm())
    frames = eight_pictures()
    assert again.generate(frames, [QUESTION] * 8) == learned.generate(frames, [QUESTION] * 8)
    bundle = Bundle.load(folder)
    with pytest.raises(LMMError, match="here it would be .* valid: the same VLM"):
        SmallLMM.from_facts({**bundle.config, "identity": "another"}, bundle.weights, tiny_vlm())
    with pytest.raises(LMMError, match="weights of another model: embedding.weight"):
        small_lmm("one more word").restore(learned.trained())
    with pytest.raises(LMMError, match="weights of another model: more"):
        learned.restore({**learned.trained(), "more": torch.zeros(1)})
    Bundle(kind="vlm", method="small-vlm", config={}, weights={"w": torch.zeros(1)}).save(tmp_path / "other")
    with pytest.raises(LMMError, match="kind 'vlm', method 'small-vlm'; valid: 'lmm', 'caption-decoder'"):
        SmallLMM.load(tmp_path / "other", tiny_vlm())


def test_what_cannot_be_read_or_written_is_refused(learned: SmallLMM) -> None:
    frames = eight_pictures()
    with pytest.raises(LMMError, match="8 pictures with 7 texts"):
        learned.generate(frames, [QUESTION] * 7)
    with pytest.raises(LMMError, match="0 pictures"):
        learned.sft(frames[:0], [], [], 1, 1e-3)
    with pytest.raises(LMMError, match="words spoon are not in the vocabulary"):
        learned.sft(frames[:1], [QUESTION], ["a spoon."], 1, 1e-3)
    with pytest.raises(LMMError, match="4 words with the mark, and 79 for the answer; valid: at most 80 together"):
        learned.generate(frames[:1], ["what is this"], max_tokens=79)
    with pytest.raises(LMMError, match="epochs = 0"):
        learned.sft(frames[:1], [QUESTION], CAPTIONS[:1], 0, 1e-3)
    assert learned.generate(frames[:1], ["is this a spoon."])  # a prompt may hold any word


def test_words_go_there_and_back() -> None:
    words = Vocabulary.of(["This is a HEX nut, isn't it."])
    ids = words.answer("this is a hex nut, a nut.")
    assert ids[-1] == END and words.text(ids) == "this is a hex nut, a nut."
    assert words.text([*ids, *ids]) == "this is a hex nut, a nut."
    assert words.prompt("a spoon") == [words.prompt("a")[0], UNKNOWN, ANSWER]
    for wrong, says in ((("a", "a"), "a word twice"), (("a b",), "valid: words of a-z")):
        with pytest.raises(LMMError, match=says):
            Vocabulary(wrong)


def test_visual_tokens_of_a_camera_are_forgotten_in_time() -> None:
    vlm, frames = tiny_vlm(), eight_pictures()
    kept, bounded = VisualTokens(vlm, 2), VisualTokens(vlm, 2, most=3)
    tokens = kept(frames)
    assert tokens.shape == (8, 5, 24) and kept.count == 5 and kept.width == 24
    assert torch.equal(torch.cat([bounded(frame[None]) for frame in frames]), tokens)
    assert len(bounded._cache._known) <= 3 < len(kept._cache._known)
    assert torch.equal(bounded(np.stack([frames[1], frames[1]])), tokens[[1, 1]])
