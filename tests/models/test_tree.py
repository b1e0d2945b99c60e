"""Rule 6 and the sampler's distribution, on tables of known probabilities."""

import hashlib
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from transformers.generation import logits_process as hf

from factrobust.models import tree
from factrobust.models.tree import HALVINGS, Stream, floors, log_norms, uniforms, weights

P = np.array([0.5, 0.3, 0.15, 0.05])
FIRST = (" a", " b", " c", " d")
TABLE = {"?": dict(zip(FIRST, P, strict=True)), " a": {".": 0.6, "!": 0.4}, " b": {".": 1.0}}


toy = pytest.fixture(lambda toy_model: toy_model(TABLE), scope="module")


def first_letters(toy: Any, **options: Any) -> np.ndarray:
    [row] = toy.sample(["why?"], max_new_tokens=1, **options)
    counts = Counter(g.text for g in row)
    assert set(counts) <= set(FIRST)
    return np.array([counts[w] for w in FIRST])


def assert_drawn(counts: Any, shares: Any) -> None:
    """Whether so many draws are what these shares, whatever their sum, may give."""
    assert chisquare(counts, sum(counts) * np.array(shares) / sum(shares)).pvalue > 1e-3


def draw(mass: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    return tree._draw(mass, tree.sums_before(mass), numbers)


@pytest.mark.parametrize("t", [0.5, 1.0, 2.0, 5.0])
def test_samples_follow_the_tempered_distribution(toy, t):
    """p ** (1 / t), normalised: no hidden top-k or top-p."""
    counts = first_letters(toy, temperature=t, n=4000, seed=11)
    assert_drawn(counts, P ** (1 / t))


def test_each_token_has_numbers_of_its_own(toy_model):
    coin = {" a": 0.5, " b": 0.5}
    toy = toy_model({"?": coin, " a": coin, " b": coin})
    [row] = toy.sample(["why?"], temperature=1.0, n=2000, max_new_tokens=3, seed=2)
    counts = Counter(g.text for g in row)
    assert_drawn([*counts.values()], [1] * 8)  # with the same numbers every time it would be 2


def test_logprobs_of_samples_by_hand(toy):
    [row] = toy.sample(["why?"], temperature=2.0, n=200, max_new_tokens=3, seed=1)
    roots = np.sqrt(P).sum()  # t = 2: probabilities are proportional to their roots
    g = {g.text: g for g in row}[" a!"]
    np.testing.assert_allclose(np.exp(g.logprobs), [0.5, 0.4], rtol=1e-6)
    second = np.sqrt(0.4) / (np.sqrt(0.4) + np.sqrt(0.6))
    np.testing.assert_allclose(np.exp(g.tempered_logprobs), [np.sqrt(0.5) / roots, second], 1e-6)
    assert g.top_logprobs == []


def test_answers_under_truncation_by_hand(toy):
    asked = ["why?"] * 3, [" a.", " b", " d"]
    [a, b, d] = np.exp(toy.temper(*asked, [1.0, 0.5], min_p=0.25))
    # " a." and its second token, of 0.6 against 0.4: 0.5 / 0.95 x 0.6 at t = 1.
    assert a == pytest.approx([0.5 / 0.95 * 0.6, 0.25 / 0.34 * 0.36 / 0.52], rel=1e-5)
    assert b == pytest.approx([0.3 / 0.95, 0.09 / 0.34], rel=1e-5)
    assert d.tolist() == [0, 0]
    [_, b, d] = np.exp(toy.temper(*asked, [1.0, 0.5], top_p=0.97))
    # The first three hold 0.95 at t = 1, too little, and 0.9932 of the squares at t = 1/2.
    assert b == pytest.approx([0.3, 0.09 / 0.3625], rel=1e-5)
    assert d == pytest.approx([0.05, 0], rel=1e-5)
    [[g]] = toy.sample(["why?"], temperature=1.0, n=1, top_k=2, max_new_tokens=1)
    assert np.exp(g.tempered_logprobs[0]) == pytest.approx(np.exp(g.logprobs[0]) / 0.8)


@pytest.mark.parametrize(
    "cuts",
    [{"top_k": 7}, {"top_p": 0.6}, {"min_p": 0.2}, {"top_k": 40, "top_p": 0.9, "min_p": 0.05}],
    ids=lambda cuts: " ".join(cuts),
)
@pytest.mark.parametrize("t", [0.3, 1.0, 2.0])
def test_truncation_is_that_of_transformers(t, cuts):
    warpers = {"top_k": hf.TopKLogitsWarper, "top_p": hf.TopPLogitsWarper}
    warpers["min_p"] = hf.MinPLogitsWarper
    z = torch.randn(20, 300, generator=torch.Generator().manual_seed(1)) * 2
    z -= z.amax(dim=-1, keepdim=True)
    theirs = hf.TemperatureLogitsWarper(t)(None, z)
    for name, value in cuts.items():
        theirs = warpers[name](value)(None, theirs)
    low = floors(z, [t], cuts)
    assert ((z >= low) == theirs.isfinite()).all()
    mass = theirs.double().logsumexp(dim=-1)
    assert log_norms(z, [t], low)[:, 0] == pytest.approx(mass, abs=1e-6)


@pytest.mark.parametrize(
    ("temperature", "logits", "token", "tempered"),
    [
        # 0.0 is the lowest uniform number: it hits no token of probability 0 before the first other.
        (1.0, [-torch.inf, -torch.inf, 0.0, 0.0], 2, np.log(0.5)),
        # Equation 2 at its lowest temperature, 1e-4: a gap of 1e-4 nats is one there.
        (0.0, [-1e-4, 0.0, -5.0], 1, -np.log1p(np.exp(-1))),
    ],
)
def test_a_pick_by_hand(temperature, logits, token, tempered):
    stream = Stream(temperature, np.zeros((1, HALVINGS)))
    tree._pick(torch.tensor([logits]), [[stream]], 0, lambda _: None, {})
    assert stream.ids == [token]
    assert stream.tempered == [pytest.approx(tempered, abs=1e-6)]
    expected = torch.tensor(logits).log_softmax(dim=0)[token].item()
    assert stream.logprobs == [pytest.approx(expected, abs=1e-6)]


def test_a_sample_depends_on_itself_alone(toy):
    """Not on its batch, its order, or the other temperatures and samples of the call."""
    prompts = ["why?", "who?", "when and where and how?"]
    [alone] = toy.sample(["who?"], temperature=1.0, n=5, seed=3)
    asked = [(p, t) for t in (2.0, 1.0, 0.0, 0.5) for p in reversed(prompts)] * 2
    every, temperatures = zip(*asked, strict=True)
    together = toy.sample(every, temperature=temperatures, n=9, seed=3)
    for k in (asked.index(("who?", 1.0)), asked.index(("who?", 1.0)) + 12):  # asked twice
        for one, other in zip(alone, together[k], strict=False):
            assert one.text == other.text
            np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-6)

    def texts(prompt: str, **options: Any) -> list[str]:
        return [g.text for g in toy.sample([prompt], temperature=1.0, **options)[0]]

    more = texts("who?", n=40, seed=3)
    assert more[:5] == [g.text for g in alone]
    assert more[:5] == texts("who?", n=5, seed=3, max_new_tokens=9)
    assert texts("who?", n=40, seed=4) != more
    assert texts("why?", n=40, seed=3) != more


def test_uniforms_are_uniform_and_pinned():
    values = np.array([uniforms(0, "p", 1.0, i, 10) for i in range(1000)])
    assert values.shape == (1000, 10, HALVINGS)
    assert values.min() >= 0
    assert values.max() < 1
    assert chisquare(np.histogram(values, bins=20, range=(0, 1))[0]).pvalue > 1e-3
    related = np.corrcoef(values.reshape(1000, -1), rowvar=False)  # of each two numbers of a sample
    assert np.abs(related[np.triu_indices(len(related), 1)]).max() < 0.2
    # Whoever changes this changes every recorded sample.
    first = int.from_bytes(hashlib.shake_256(b"7\n0.5\n2\np").digest(8), "little") >> 11
    assert uniforms(7, "p", 0.5, 2, 3)[0, 0] == first / 2**53
    assert (uniforms(7, "p", 0.5, 2, 3) == uniforms(7, "p", 0.5, 2, 8)[:3]).all()


def test_a_token_by_hand():
    """Weights 1, 2, 3, 2: the halves of the vocabulary weigh 3 and 5, those of the upper one 3,
    2."""
    mass = torch.tensor([[1.0, 2.0, 3.0, 2.0]])
    numbers = torch.zeros(1, 4, HALVINGS, dtype=torch.float64)
    numbers[0, :, 0] = torch.tensor([0.374, 0.376, 0.376, 0.374])
    numbers[0, :, 1] = torch.tensor([0.34, 0.59, 0.61, 0.32])
    assert draw(mass, numbers).tolist() == [[1, 2, 3, 0]]


# No power of two, and more than a block of STEP tokens, or two.
@pytest.mark.parametrize("size", [1, 7, 21, 700, 1024, 5000])
def test_blocks_of_tokens_draw_as_single_ones_do(size):
    """Halving by sums over blocks, and top-p by them, against sums one token after the other."""
    generator = torch.Generator().manual_seed(size)
    z = torch.randn(2, size, generator=generator)
    z -= z.amax(dim=-1, keepdim=True)
    mass = weights(z)
    numbers = torch.rand(2, 300, HALVINGS, generator=generator).double()
    mass[:, 1::3] = 0  # tokens without weight at any place
    cumulative = torch.nn.functional.pad(mass.double().cumsum(dim=-1), (1, 0)).numpy()
    drawn = draw(mass, numbers)
    for node, stream in np.ndindex(2, 300):
        low = 0
        high = size
        total = cumulative[node]
        for number in numbers[node, stream, : (size - 1).bit_length()].tolist():
            middle = (low + high) // 2
            upper = number * (total[high] - total[low]) >= total[middle] - total[low]
            low, high = (middle, high) if upper else (low, middle)
        assert drawn[node, stream] == low
        assert mass[node, low] > 0
    ranked = -np.sort(-z.numpy(), axis=-1)
    below = np.cumsum(np.exp(ranked, dtype=float), axis=-1)
    for p in (0.05, 0.9, 0.999, 1.0):
        kept = (below < p * below[:, -1:]).sum(-1)
        lowest = np.take_along_axis(ranked, kept[:, None], -1)
        assert floors(z, [1.0], {"top_p": p}).numpy() == pytest.approx(lowest, abs=1e-6)


def test_last_digits_of_the_logits_change_no_draw():
    """As when another batch or processor computes them; with one number for the distribution
    function inverted, 20 of these 8,000 draws change."""
    generator = torch.Generator().manual_seed(0)
    z = 3 * torch.randn(1, 262_144, generator=generator)
    near = z + 1e-5 * torch.randn(z.shape, generator=generator)
    numbers = torch.rand(1, 8_000, HALVINGS, generator=generator, dtype=torch.float64)
    one, other = (draw(weights((x - x.amax()) / 2), numbers) for x in (z, near))
    assert (one != other).sum() <= 1
    assert len(one.unique()) > 5_000  # it is that flat


def test_levels_by_hand():
    """Three answers: the second ends with its first token, the others share one node and part."""
    grown = []
    logits = torch.tensor([[0.0, -9, -9], [-9, 0, -9], [0, 0, -99]])  # by a node's hidden state

    def grow(parents: list[int], drawn: list[int]) -> torch.Tensor:
        grown.append((parents, drawn))
        return torch.tensor([2] * len(parents))

    low, high = (np.full((3, HALVINGS), number) for number in (0.0, 0.9))
    streams = [[Stream(0.0, tree.NO_NUMBERS)], [Stream(1.0, low), Stream(1.0, high)]]
    tree.decode(
        torch.tensor([1, 0]),
        grow,
        lambda hidden: logits[hidden],
        streams,
        ended=lambda prompt, ids: prompt == 0,
        check=lambda _: None,
        settings={"max_new_tokens": 3},
        chunk=1,
    )
    # Prompt 1's node has one child for both streams; that one has a child for each.
    assert grown == [([1], [0]), ([0, 0], [0, 1])]
    assert [[s.ids for s in row] for row in streams] == [[[1]], [[0, 0, 0], [0, 1, 1]]]


def test_stop_and_end(toy, toy_model):
    [g] = toy.generate(["why?"], stop=["."])
    assert g.text == " a"
    assert len(g.token_ids) == 1
    assert len(g.logprobs) == 1
    assert len(g.top_logprobs) == 1
    other = toy_model({"?": {"\n": 1.0}, "!": {" yes": 1.0}, " yes": {"</s>": 1.0}})
    [empty, ended] = other.generate(["so?", "so!"], stop=["\n"])
    assert empty.text == ""
    assert empty.token_ids == []
    assert empty.logprobs == []
    assert (ended.text, len(ended.token_ids)) == (" yes", 1)  # the end token is no part of it
    # A token that holds a space and the stop string is no part of the answer.
    toy = toy_model({"?": {" lira": 0.5, " x": 0.5}, " lira": {" (": 0.6, ".": 0.4}})
    [g] = toy.generate(["so?"], temperatures=[1.0], stop=["("])
    assert g.text == " lira"
    assert len(g.token_ids) == 1
    assert np.exp([*g.logprobs, *g.curve]) == pytest.approx([0.5, 0.5])
    assert toy.temper(["so?"], [g.token_ids], [1.0])[0] == pytest.approx(g.curve)


def test_blank_beginnings_do_not_end_an_answer(toy_model):
    """With skip_blank a stop string counts after the first words; without, at once."""
    table = {"?": {"\n": 1.0}, "\n": {" ": 0.9, " yes": 0.1}, " ": {" yes\n": 1.0}}
    toy = toy_model(table | {" yes": {"\n": 1.0}, " yes\n": {" no": 1.0}, "!": {"\n ": 1.0}})
    how = {"max_new_tokens": 6, "stop": ["\n"], "skip_blank": True}
    [g, ended] = toy.generate(["so?", "so!"], **how)
    assert g.text == "\n  yes"
    assert ended.text == "\n "
    assert np.exp(g.logprobs) == pytest.approx([1, 0.9, 1])
    assert len(g.token_ids) == len(g.top_logprobs) == 3
    [row] = toy.sample(["so?"], temperature=1.0, n=50, **how)
    assert {(s.text, len(s.token_ids)) for s in row} == {("\n  yes", 3), ("\n yes", 2)}
    assert {len(s.tempered_logprobs) for s in row} == {2, 3}
    assert toy.generate(["so?"], **how | {"skip_blank": False})[0].token_ids == []


def test_top_logprobs_by_hand(toy):
    a, b, c = toy.generate(["why?", "who?", "why?"], max_new_tokens=1)
    assert a == c
    for g in (a, b):
        [top] = g.top_logprobs
        assert len(top) == 10
        assert [w for w, _ in top[:4]] == list(FIRST)
        np.testing.assert_allclose(np.exp([p for _, p in top[:4]]), P, rtol=1e-6)
        assert all(p == -1e9 for _, p in top[4:])


def test_the_curve_of_a_greedy_answer_by_hand(toy):
    [g] = toy.generate(["why?"], temperatures=[0.5, 1.0, 2.0], stop=["!"])
    hand = [(p**x).max() / (p**x).sum() for x in (2, 1, 0.5) for p in (P, np.array([0.6, 0.4]))]
    assert np.exp(g.curve) == pytest.approx(np.prod(np.reshape(hand, (3, 2)), axis=1), rel=1e-5)
    assert g.entropies == pytest.approx([-P @ np.log(P), -0.6 * np.log(0.6) - 0.4 * np.log(0.4)])
    [plain] = toy.generate(["why?"])
    assert plain.curve == []
    assert plain.entropies == []
    # What is cut off the answer does not count.
    [short] = toy.generate(["why?"], temperatures=[1.0], stop=["."])
    assert short.text == " a"
    assert short.curve == [pytest.approx(np.log(0.5))]


# One block of tokens, exactly one, several, and several and a rest.
@pytest.mark.parametrize("vocabulary", [5, 1 << 15, 49_152, 100_003])
def test_log_norms_of_all_and_of_what_is_left_equal_float64(vocabulary):
    temperatures = [1e-4, *np.geomspace(0.01, 10, 13).tolist()]
    z = torch.randn(3, vocabulary, generator=torch.Generator().manual_seed(0)) * 4
    if vocabulary > 1000:
        z[2, z[2].argmin()] = -45.0  # far below its neighbours
        equals = z[2].argsort()[-600:-400]  # the likeliest's last has equals
        z[2, equals] = z[2].sort().values[-500]
    z -= z.amax(dim=-1, keepdim=True)
    if vocabulary == 49_152:
        z[1, z[1].argsort()[:45]] = -torch.inf  # not by bins
    tempered = z.double()[..., None] / torch.tensor(temperatures, dtype=torch.float64)
    found = log_norms(z, temperatures)
    torch.testing.assert_close(found, tempered.logsumexp(dim=1), rtol=0, atol=2e-6)
    for cuts in ({"top_k": 20}, {"top_p": 0.9}, {"top_k": 20, "top_p": 0.8}, {"min_p": 0.1}):
        low = floors(z, temperatures, cuts)
        is_left = z[..., None] >= low[:, None]
        left = tempered.masked_fill(~is_left, -torch.inf).logsumexp(dim=1)
        torch.testing.assert_close(log_norms(z, temperatures, low), left, rtol=0, atol=2e-6)


# -- ties: the lowest token id, as argmax ----------------------------------------------------------


def test_where_tokens_tie_all_ways_take_the_lowest_id(toy_model):
    words = {f" w{i:02d}": 1 / 16 for i in range(16)}
    for several in (words, words | {" w00": 0.0, " w01": 0.125}):
        toy = toy_model({":": several})
        ids = torch.tensor([toy.tokenizer("A:").input_ids])
        with torch.no_grad():
            logits = toy.network(input_ids=ids).logits[0, -1]
        [g] = toy.generate(["A:"], max_new_tokens=1)
        [[s]] = toy.sample(["A:"], temperature=0, n=1, max_new_tokens=1)
        assert g.token_ids == s.token_ids == [int(logits.argmax())]
    # Of sixteen that tie the ten with the lowest ids are told, in their order.
    [g] = toy_model({":": words}).generate(["A:"], max_new_tokens=1)
    assert [token for token, _ in g.top_logprobs[0]] == [f" w{i:02d}" for i in range(10)]


def test_likeliest_by_hand():
    logits = torch.tensor([[1.0, 3.0, 2.0, 3.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]])
    best = tree.likeliest(logits, 3)
    assert best.indices.tolist() == [[1, 3, 2], [5, 4, 3]]
    assert best.values.tolist() == [[3.0, 3.0, 2.0], [5.0, 4.0, 3.0]]
    assert tree.likeliest(logits, 4).indices.tolist() == [[1, 3, 2, 0], [5, 4, 3, 2]]
    assert tree.likeliest(logits, 1).indices.tolist() == [[1], [5]]
    wide = torch.zeros(2, 50_000)
    wide[1, 40_000:] = 1.0
    for k in (1, 10):
        assert tree.likeliest(wide, k).indices.tolist() == [
            [*range(k)],
            [*range(40_000, 40_000 + k)],
        ]
