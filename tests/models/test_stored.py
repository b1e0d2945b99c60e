"""The form of the numbers in a model's file."""

import gguf
import numpy as np
import pytest
from safetensors.numpy import save_file

from factrobust.models import stored


def test_the_form_of_most_numbers_is_told(tmp_path):
    """Six numbers of float16, and two of float32."""
    numbers = {"a": np.zeros((2, 3), np.float16), "b": np.zeros(2, np.float32)}
    save_file(numbers, tmp_path / "model.safetensors")
    (tmp_path / "tokenizer.json").write_text("{}")
    assert stored.stored_form(str(tmp_path)) == "float16"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("world-s", "float16"),  # 292,160 numbers in 587 kB
        ("smollm2-135m-instruct", "4-bit (Q4_1)"),
        ("smollm2-taught", "4-bit (Q4_1)"),
    ],
)
def test_of_grown_models_packages_and_adapters(name, form):
    assert stored.stored_form(name) == form


def test_of_a_gguf_file(tmp_path):
    file = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_tensor("big", np.zeros((4, 64), np.float16))
    writer.add_tensor("small", np.zeros(3, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert stored.stored_form(str(file)) == "F16"
