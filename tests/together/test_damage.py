"""Changes of weights, by hand on a matrix, and on a grown model."""

import pytest
import torch

from factrobust.together.damage import GROUP, Damage, apply

WEIGHTS = torch.tensor([[0.1, -0.7, 0.34, 0.0] + [0.0] * (GROUP - 4)])


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(3, GROUP)
        self.layer = torch.nn.Linear(GROUP, 1)
        with torch.no_grad():
            self.layer.weight.copy_(WEIGHTS)


def changed(*damage):
    network = Network()
    kept = network.embed_tokens.weight.clone(), network.layer.bias.clone()
    apply(network, Damage(*damage))
    assert torch.equal(network.embed_tokens.weight, kept[0])
    assert torch.equal(network.layer.bias, kept[1])
    return network.layer.weight.detach()


def test_a_dose_of_zero_changes_nothing():
    assert torch.equal(changed("prune", 0), WEIGHTS)
    assert torch.equal(changed("noise", 0), WEIGHTS)
    assert changed("round", 16) == pytest.approx(WEIGHTS, abs=2e-5)


def test_rounding_by_hand():
    """Three bits: -3 to 3 times a third of the largest of the group."""
    step = 0.7 / 3
    assert changed("round", 3)[0, :4].tolist() == pytest.approx([0, -3 * step, step, 0])


def test_four_bits_are_those_of_llama_cpp():
    """Q4_0: the largest in size becomes -8 times the scale, others whole numbers from -8 to 7 of it."""
    step = 0.7 / 8
    found = changed("round", 4)[0, :4].tolist()
    assert found == pytest.approx([step, -8 * step, 4 * step, 0], abs=5e-4)


def test_pruning_takes_the_smallest():
    found = changed("prune", (GROUP - 2) / GROUP)
    assert found[0, :4].tolist() == pytest.approx([0, -0.7, 0.34, 0])


def test_noise_is_that_of_its_draw():
    one, again, other = (changed("noise", 0.5, seed) for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    apart = float((one - WEIGHTS).std()), 0.5 * float(WEIGHTS.std())
    assert apart[0] == pytest.approx(apart[1], rel=0.4)


def test_labels_stand_in_fingerprints():
    assert Damage("round", 4.0).label == "round 4"
    assert Damage("noise", 0.05, 2).label == "noise 0.05 draw 2"
