"""What tests share that ask a toy model (tests/models/toy.py)."""


def chances(text: str) -> dict[str, dict[str, float]]:
    """The probabilities of a toy model, written as a reader sees them.

    A line a last token, behind it what follows it and how likely. In tokens _ is a space, and ↵
    ends a line."""
    table = {}
    for line in text.strip().splitlines():
        words = line.split()
        last, *following = [word.replace("_", " ").replace("↵", "\n") for word in words]
        probabilities = map(float, following[1::2])
        table[last] = dict(zip(following[::2], probabilities, strict=True))
    return table


def jobs_of(model, monkeypatch):
    """The jobs that a model is asked from here on; the list grows with them."""
    jobs = []
    answer = model.answer

    def noted(job):
        jobs.append(job)
        return answer(job)

    monkeypatch.setattr(model, "answer", noted)
    return jobs
