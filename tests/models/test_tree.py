"""Rule 6 and the sampler's distribution, on tables of known probabilities."""

import hashlib
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from transformers.generation import logits_process as hf
from whole import texts

from factrobust.models import tree
from factrobust.models.tree import HALVINGS, Stream, floors, log_norms, uniforms, weights

P = np.array([0.5, 0.3, 0.15, 0.05])
FIRST = (" a", " b", " c", " d")
TABLE = {"?": dict(zip(FIRST, P, strict=True)), " a": {".": 0.6, "!": 0.4}, " b": {".": 1.0}}


toy = pytest.fixture(lambda toy_model: toy_model(TABLE), scope="module")


def assert_close(found, expected):
    np.testing.assert_allclose(
        found,
        expected,
        rtol=1e-5,
        atol=1e-6,
    )


def assert_near(found, expected, atol):
    torch.testing.assert_close(
        found,
        expected,
        rtol=0,
        atol=atol,
    )


def assert_drawn(counts, shares):
    """Whether so many draws are what these shares, whatever their sum, may give."""
    expected = sum(counts) * shares / shares.sum()
    assert chisquare(counts, expected).pvalue > 1e-3


def draw(mass, numbers):
    return tree._draw(mass, tree.sums_before(mass), numbers)


def random_numbers(rows, streams):
    """Of each stream one a halving, in float64."""
    return torch.rand(
        rows,
        streams,
        HALVINGS,
        dtype=torch.float64,
    )


def random_logits(rows, size, seed=0):
    """Normal ones minus their maximum, [row, token]."""
    torch.manual_seed(seed)
    z = 2 * torch.randn(rows, size)
    return z - z.amax(dim=-1, keepdim=True)


@pytest.mark.parametrize("t", [0.5, 1.0, 2.0, 5.0])
def test_samples_follow_the_tempered_distribution(toy, t):
    """p ** (1 / t), normalised: no hidden top-k or top-p."""
    [row] = toy.sample(
        ["why?"],
        temperature=t,
        n=4000,
        max_new_tokens=1,
        seed=11,
    )
    counts = Counter(texts(row))
    assert {*counts} == {*FIRST}
    drawn = [counts[word] for word in FIRST]
    assert_drawn(drawn, P ** (1 / t))


def test_each_token_has_numbers_of_its_own(toy_model):
    coin = {" a": 0.5, " b": 0.5}
    toy = toy_model({"?": coin, " a": coin, " b": coin})
    [row] = toy.sample(
        ["why?"],
        temperature=1.0,
        n=2000,
        max_new_tokens=3,
        seed=2,
    )
    counts = Counter(texts(row))
    assert_drawn([*counts.values()], np.ones(8))  # with the same numbers every time it would be 2


def test_logprobs_of_samples_by_hand(toy):
    [row] = toy.sample(
        ["why?"],
        temperature=2.0,
        n=200,
        max_new_tokens=3,
        seed=1,
    )
    g = row[texts(row).index(" a!")]
    assert_close(np.exp(g.logprobs), [0.5, 0.4])
    # At t = 2 probabilities are proportional to their roots: 0.707107 of 1.865739, which all four
    # have together, and 0.632456 of 1.407053.
    assert_close(np.exp(g.tempered_logprobs), [0.378996, 0.449490])
    assert g.top_logprobs == []


def test_answers_under_truncation_by_hand(toy):
    question = ["why?"] * 3, [" a.", " b", " d"], [1.0, 0.5]
    a, b, d = np.exp(toy.temper(*question, min_p=0.25))
    # " a." and its second token, of 0.6 against 0.4: 0.5 / 0.95 x 0.6 at t = 1, and of the squares
    # 0.25 / 0.34 x 0.36 / 0.52.
    assert_close(a, [0.315789, 0.509050])
    assert_close(b, [0.315789, 0.264706])  # 0.3 / 0.95, and 0.09 / 0.34
    assert d.tolist() == [0, 0]
    _, b, d = np.exp(toy.temper(*question, top_p=0.97))
    # The first three hold 0.95 at t = 1, too little, and 0.9932 of the squares at t = 1/2.
    assert_close(b, [0.3, 0.248276])  # 0.09 / 0.3625
    assert_close(d, [0.05, 0])
    [[g]] = toy.sample(
        ["why?"],
        temperature=1.0,
        n=1,
        top_k=2,
        max_new_tokens=1,
    )
    share = np.exp(g.logprobs[0] - g.tempered_logprobs[0])
    assert_close(share, 0.8)


@pytest.mark.parametrize(
    ("cuts", "warpers"),
    [
        ({"top_k": 7}, [hf.TopKLogitsWarper(7)]),
        ({"top_p": 0.6}, [hf.TopPLogitsWarper(0.6)]),
        ({"min_p": 0.2}, [hf.MinPLogitsWarper(0.2)]),
        (
            {"top_k": 40, "top_p": 0.9, "min_p": 0.05},
            [hf.TopKLogitsWarper(40), hf.TopPLogitsWarper(0.9), hf.MinPLogitsWarper(0.05)],
        ),
    ],
)
@pytest.mark.parametrize("t", [0.3, 1.0, 2.0])
def test_truncation_is_that_of_transformers(t, cuts, warpers):
    z = random_logits(20, 300, seed=1)
    theirs = z
    for warper in (hf.TemperatureLogitsWarper(t), *warpers):
        theirs = warper(None, theirs)
    low = floors(z, [t], cuts)
    assert (z >= low).equal(theirs.isfinite())
    mass = theirs.double().logsumexp(dim=-1)
    assert_close(log_norms(z, [t], low)[:, 0], mass)


@pytest.mark.parametrize(
    ("temperature", "logits", "token", "logprob", "tempered"),
    [
        # 0.0 is the lowest uniform number: it hits no token of probability 0 before the first other.
        (1.0, [-torch.inf, -torch.inf, 0.0, 0.0], 2, -0.693147, -0.693147),
        # Equation 2 at its lowest temperature, 1e-4: a gap of 1e-4 nats is one there, so the
        # tempered one is -log(1 + 1/e), and the plain one -log(1 + exp(-0.0001) + exp(-5)).
        (0.0, [-1e-4, 0.0, -5.0], 1, -0.696461, -0.313262),
    ],
)
def test_a_pick_by_hand(temperature, logits, token, logprob, tempered):
    stream = Stream(temperature, np.zeros((1, HALVINGS)))
    tree._pick(
        torch.tensor([logits]),
        [[stream]],
        0,
        lambda _: None,
        {},
    )
    assert stream.ids == [token]
    assert_close(stream.logprobs, [logprob])
    assert_close(stream.tempered, [tempered])


def test_a_sample_depends_on_itself_alone(toy):
    """Not on its batch, its order, or the other temperatures and samples of the call."""
    prompts = ["when and where and how?", "who?", "who?", "why?", "who?"]
    temperatures = [1.0, 2.0, 1.0, 0.0, 1.0]
    together = toy.sample(
        prompts,
        temperature=temperatures,
        n=9,
        seed=3,
    )
    [alone] = toy.sample(
        ["who?"],
        temperature=1.0,
        n=5,
        seed=3,
    )
    for row in (together[2], together[4]):  # asked twice
        assert texts(row[:5]) == texts(alone)
        for one, other in zip(alone, row[:5], strict=True):
            assert_close(one.logprobs, other.logprobs)

    def drawn(n, prompt="who?", seed=3, **more):
        [row] = toy.sample(
            [prompt],
            temperature=1.0,
            n=n,
            seed=seed,
            **more,
        )
        return texts(row)

    usual = drawn(40)
    assert usual[:5] == texts(alone)
    assert usual[:5] == drawn(5, max_new_tokens=9)
    assert usual != drawn(40, seed=4)
    assert usual != drawn(40, prompt="why?")


def test_uniforms_are_the_bits_of_a_hash():
    """Whoever changes this changes every recorded sample."""
    numbers = uniforms(
        7,
        "p",
        0.5,
        2,
        3,
    )
    digest = hashlib.shake_256(b"7\n0.5\n2\np").digest(8 * 3 * HALVINGS)
    expected = []
    for k in range(0, len(digest), 8):
        word = int.from_bytes(digest[k : k + 8], "little")
        expected.append((word >> 11) / 2**53)
    assert numbers.shape == (3, HALVINGS)
    assert numbers.flatten().tolist() == expected
    more = uniforms(
        7,
        "p",
        0.5,
        2,
        8,
    )
    assert more[:3].tolist() == numbers.tolist()


def test_a_token_by_hand():
    """Weights 1, 2, 3, 2: the halves of the vocabulary weigh 3 and 5, those of the upper one 3,
    2."""
    mass = torch.tensor([[1.0, 2.0, 3.0, 2.0]])
    numbers = torch.zeros(
        1,
        4,
        HALVINGS,
        dtype=torch.float64,
    )
    numbers[0, :, 0] = torch.tensor([0.374, 0.376, 0.376, 0.374])
    numbers[0, :, 1] = torch.tensor([0.34, 0.59, 0.61, 0.32])
    assert draw(mass, numbers).tolist() == [[1, 2, 3, 0]]


def halved(before, numbers):
    """The token that is left, by the weights `before` each token and all, with a number a
    halving."""
    low = 0
    high = len(before) - 1
    for number in numbers:
        if high - low == 1:
            break
        middle = (low + high) // 2
        share = (before[middle] - before[low]) / (before[high] - before[low])
        if number < share:
            high = middle
        else:
            low = middle
    return low


# No power of two, and more than a block of STEP tokens, or two.
SIZES = pytest.mark.parametrize("size", [1, 7, 21, 700, 1024, 5000])


@SIZES
def test_blocks_of_tokens_draw_as_single_ones_do(size):
    """Halving by sums over blocks against sums one token after the other."""
    mass = weights(random_logits(2, size))
    mass[:, 1::3] = 0  # tokens without weight at any place
    numbers = random_numbers(2, 300)
    drawn = draw(mass, numbers)
    for node in range(2):
        before = np.cumsum([0, *mass[node].tolist()])
        expected = [halved(before, stream) for stream in numbers[node].tolist()]
        assert drawn[node].tolist() == expected
        assert mass[node, expected].min() > 0


@SIZES
@pytest.mark.parametrize("p", [0.05, 0.9, 0.999, 1.0])
def test_a_nucleus_by_sums_over_blocks(size, p):
    z = random_logits(2, size)
    ranked = z.sort(descending=True).values
    sums = ranked.double().exp().cumsum(dim=-1)
    last = (sums < p * sums[:, -1:]).sum(dim=-1, keepdim=True)
    found = floors(z, [1.0], {"top_p": p})
    assert_near(found, ranked.gather(1, last), 1e-6)


def test_last_digits_of_the_logits_change_no_draw():
    """As when another batch or processor computes them; with one number for the distribution
    function inverted, 20 of these 8,000 draws change."""
    z = random_logits(1, 262_144)
    noise = 1e-5 * torch.randn(z.shape)
    near = (z + noise).clamp(max=0)
    numbers = random_numbers(1, 8_000)
    one = draw(weights(z, 1.3), numbers)
    other = draw(weights(near, 1.3), numbers)
    assert (one != other).sum() <= 1
    assert len(one.unique()) > 5_000  # it is that flat


def test_levels_by_hand():
    """Three answers: the second ends with its first token, the others share one node and part."""
    grown = []
    by_hidden_state = [
        [0.0, -9, -9],
        [-9, 0, -9],
        [0, 0, -99],
    ]
    logits = torch.tensor(by_hidden_state)

    def grow(parents, drawn):
        grown.append((parents, drawn))
        return torch.tensor([2] * len(parents))

    greedy = Stream(0.0, tree.NO_NUMBERS)
    low = Stream(1.0, np.full((3, HALVINGS), 0.0))
    high = Stream(1.0, np.full((3, HALVINGS), 0.9))
    tree.decode(
        torch.tensor([1, 0]),
        grow,
        lambda hidden: logits[hidden],
        [[greedy], [low, high]],
        ended=lambda prompt, ids: prompt == 0,
        check=lambda _: None,
        settings={"max_new_tokens": 3},
        chunk=1,
    )
    # Prompt 1's node has one child for both streams; that one has a child for each.
    assert grown == [([1], [0]), ([0, 0], [0, 1])]
    assert greedy.ids == [1]
    assert low.ids == [0, 0, 0]
    assert high.ids == [0, 1, 1]


def test_stop_and_end(toy_model):
    """A token that holds a space and the stop string is no part of the answer, nor is the end."""
    table = {
        "?": {" lira": 0.6, " x": 0.4},
        " lira": {" (": 0.7, ".": 0.3},
        "!": {"\n": 1.0},
        ":": {" yes": 1.0},
        " yes": {"</s>": 1.0},
    }
    toy = toy_model(table)
    made = toy.generate(["so?", "so!", "so:"], temperatures=[1.0], stop=["(", "\n"])
    assert texts(made) == [" lira", "", " yes"]
    for g, tokens in zip(made, [1, 0, 1], strict=True):
        assert len(g.token_ids) == tokens
        assert len(g.logprobs) == tokens
        assert len(g.top_logprobs) == tokens
    first = made[0]
    assert_close(np.exp(first.curve), [0.6])


def test_blank_beginnings_do_not_end_an_answer(toy_model):
    """With skip_blank a stop string counts after the first words; without, at once."""
    table = {
        "?": {"\n": 1.0},
        "\n": {" ": 0.9, " yes": 0.1},
        " ": {" yes\n": 1.0},
        " yes": {"\n": 1.0},
        " yes\n": {" no": 1.0},
        "!": {"\n ": 1.0},
    }
    toy = toy_model(table)
    g, ended = toy.generate(["so?", "so!"], stop=["\n"], skip_blank=True)
    assert g.text == "\n  yes"
    assert ended.text == "\n "
    assert_close(np.exp(g.logprobs), [1, 0.9, 1])
    assert len(g.token_ids) == len(g.top_logprobs) == 3
    [row] = toy.sample(
        ["so?"],
        temperature=1.0,
        n=50,
        stop=["\n"],
        skip_blank=True,
    )
    tokens = {"\n  yes": 3, "\n yes": 2}
    assert {*texts(row)} == {*tokens}
    for one in row:
        assert len(one.token_ids) == tokens[one.text]
        assert len(one.tempered_logprobs) == tokens[one.text]
    [plain] = toy.generate(["so?"], stop=["\n"])
    assert plain.token_ids == []


def test_top_logprobs_by_hand(toy):
    a, b, c = toy.generate(["why?", "who?", "why?"], max_new_tokens=1)
    assert a == c
    for g in (a, b):
        words, logprobs = zip(*g.top_logprobs[0], strict=True)
        assert words[:4] == FIRST
        assert_close(np.exp(logprobs[:4]), P)
        assert logprobs[4:] == (-1e9,) * 6


def test_the_curve_of_a_greedy_answer_by_hand(toy):
    [g] = toy.generate(["why?"], temperatures=[0.5, 1.0, 2.0], stop=["!"])
    # Squares: 0.25 / 0.365 x 0.36 / 0.52; 0.5 x 0.6; roots: 0.378996 x 0.550510.
    assert_close(np.exp(g.curve), [0.474183, 0.3, 0.208641])
    # Minus the sum of p log p, of 0.5, 0.3, 0.15 and 0.05, and of 0.6 and 0.4.
    assert_close(g.entropies, [1.142120, 0.673012])
    [plain] = toy.generate(["why?"])
    assert plain.curve == plain.entropies == []
    # What is cut off the answer does not count.
    [short] = toy.generate(["why?"], temperatures=[1.0], stop=["."])
    assert short.text == " a"
    assert_close(np.exp(short.curve), [0.5])


def logits_with_equals(vocabulary):
    """Three rows; in wide ones a token far below its neighbours, and the likeliest's last has
    equals."""
    z = 2 * random_logits(3, vocabulary)
    if vocabulary > 1000:
        order = z[2].argsort()
        z[2, order[0]] = -62.0
        z[2, order[-600:-400]] = z[2, order[-500]].clone()
    if vocabulary == 49_152:
        z[1, :45] = -torch.inf  # not by bins
    return z


# One block of tokens, exactly one, several, and several and a rest.
@pytest.mark.parametrize("vocabulary", [5, 1 << 15, 49_152, 100_003])
def test_log_norms_of_all_and_of_what_is_left_equal_float64(vocabulary):
    temperatures = [1e-4, *np.geomspace(0.01, 10, 13).tolist()]
    z = logits_with_equals(vocabulary)
    tempered = z.double()[..., None] / torch.tensor(temperatures, dtype=torch.float64)
    found = log_norms(z, temperatures)
    assert_near(found, tempered.logsumexp(dim=1), 2e-6)
    for cuts in ({"top_k": 20}, {"top_p": 0.9}, {"top_k": 20, "top_p": 0.8}, {"min_p": 0.1}):
        low = floors(z, temperatures, cuts)
        is_out = z[..., None] < low[:, None]
        left = tempered.masked_fill(is_out, -torch.inf).logsumexp(dim=1)
        found = log_norms(z, temperatures, low)
        assert_near(found, left, 2e-6)


# -- ties: the lowest token id, as argmax ----------------------------------------------------------

WORDS = [f" w{i:02d}" for i in range(16)]


def test_where_tokens_tie_all_ways_take_the_lowest_id(toy_model):
    toy = toy_model({":": dict.fromkeys(WORDS, 1 / 16)})
    [g] = toy.generate(["A:"], max_new_tokens=1)
    [[s]] = toy.sample(
        ["A:"],
        temperature=0,
        n=1,
        max_new_tokens=1,
    )
    assert g.text == s.text == " w00"
    # Of sixteen that tie the ten with the lowest ids are told, in their order.
    assert [word for word, _ in g.top_logprobs[0]] == WORDS[:10]


@pytest.mark.parametrize("k", [1, 3, 10])
def test_the_likeliest_of_equal_ones_in_their_order(k):
    torch.manual_seed(0)
    logits = torch.randint(4, (5, 50_000)).float()
    order = (-logits).argsort(dim=-1, stable=True)
    best = tree.likeliest(logits, k)
    assert best.indices.equal(order[:, :k])
    assert best.values.equal(logits.gather(1, best.indices))
