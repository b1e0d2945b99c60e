"""The probabilities of a toy model (tests/models/toy.py), written as a reader sees them."""


def chances(text: str) -> dict[str, dict[str, float]]:
    """A line a last token, behind it what follows it and how likely. In tokens _ is a space, and ↵
    ends a line."""
    table = {}
    for line in text.strip().splitlines():
        words = line.split()
        last, *following = [word.replace("_", " ").replace("↵", "\n") for word in words]
        probabilities = map(float, following[1::2])
        table[last] = dict(zip(following[::2], probabilities, strict=True))
    return table
