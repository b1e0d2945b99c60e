"""2.1 Which tokens are the answer? · implement, 10 minutes

To score an answer, a program turns `prompt + answer` into tokens and adds up the log-probabilities of the answer's
tokens. Which are these? A token may begin in the prompt and end in the answer. Paper 2 takes the **smallest suffix of
tokens that covers the answer**: every token that holds at least one character of the answer.

`spans` is a list of (first character, character after the last) of each token of the whole text. `length` is the
number of characters of the prompt. Return the place of the first token that counts.
"""


# %% stub
def first_of_answer(spans, length):
    return ...


# %% check
def check(first_of_answer):
    from types import SimpleNamespace

    from factrobust.models.tokens import encode_pair

    class Tokenizer:
        bos_token_id = None

        def __call__(self, text, **how):
            return SimpleNamespace(input_ids=[*range(12)], offset_mapping=spans)

    rng = np.random.default_rng(21)
    for _ in range(30):
        ends = np.cumsum(rng.integers(1, 5, 12))
        spans = list(zip([0, *map(int, ends[:-1])], map(int, ends), strict=True))
        length = int(rng.integers(spans[0][1], ends[-1]))
        _, truth = encode_pair(Tokenizer(), "x" * length, "y", bos=[])
        found = first_of_answer(spans, length)
        given(found)
        assert found >= truth, "You count a token that lies wholly in the prompt."
        assert found <= truth, "You leave out a token that holds a character of the answer."


# %% hints
"""
- Character number `length` is the first one of the answer.
- A token belongs to the answer if it ends behind the prompt, wherever it begins.
"""


# %% solution
def first_of_answer(spans, length):
    return next(i for i, (_, end) in enumerate(spans) if end > length)


# %% use
prompt, tokens = (
    "In 1998, who led Kenya?",
    ["In", " 1998", ",", " who", " led", " Kenya", "? Daniel", " Moi"],
)
ends = np.cumsum([len(token) for token in tokens])
spans = list(zip([0, *ends[:-1]], ends, strict=True))
print("counted as the answer:", tokens[first_of_answer(spans, len(prompt)) :])


# %% wrong
def first_of_answer(spans, length):
    return next((i for i, (start, _) in enumerate(spans) if start >= length), len(spans))


# %% wrong
def first_of_answer(spans, length):
    return next(i for i, (_, end) in enumerate(spans) if end >= length)
