"""A model that answers by a rule, so that every number is known."""

from factrobust.models.interface import Generation, Model, ModelError

CAPITALS = {
    "Kenya": "Nairobi",
    "Peru": "Lima",
    "Italy": "Rome",
    "Norway": "Oslo",
    "Cuba": "Havana",
}


class Rule(Model):
    """A model that answers by a rule of the last question; P_t of an answer is e^(-0.2 t)."""

    def __init__(self, rule, name="rule", fails_after=10**9, **about):
        about = {"fingerprint": name, "prompt_format": "two-shot", "chat": None} | about
        super().__init__(name=name, **about)
        self.rule, self.asked, self.fails_after = rule, 0, fails_after

    def answer(self, job):
        for i, request in enumerate(job.requests):
            self.asked += 1
            if self.asked > self.fails_after:
                raise ModelError(
                    f"{self.name}: the budget of {self.fails_after} requests is used up"
                )
            question = request["prompt"].rpartition("Q: ")[2].removesuffix("\nA:")
            text = self.rule(question)
            if job.operation == "temper":
                yield [i], [[-0.2 * t for t in job.settings["temperatures"]]]
                continue
            curve = [-0.2 * t for t in job.settings.get("temperatures", [])]
            tokens = ([1], [-0.2], [[("a", -0.2), ("b", -1.8)]]) if text else ([], [], [])
            said = Generation(request["prompt"], text, *tokens, curve=curve if text else [])
            yield [i], [[said] * job.settings["n"] if job.operation == "sample" else said]


def knows(*countries):
    """Memory alone, in any wording."""
    lower = {name.lower(): CAPITALS[name] for name in countries}

    def rule(question):
        last = (
            question.lower().rpartition(". ")[2]
            if "the answer to" in question.lower()
            else question
        )
        return next((city for name, city in lower.items() if name in last.lower()), "Paris")

    return rule


def copies(question):
    """It repeats a context, whomever that is about, and knows all else."""
    before, stated, _ = question.rpartition(". What")
    return before.rpartition(" is ")[2] if stated else knows(*CAPITALS)(question)


def repeats(question):
    """It says what a sentence before the question states of the country that is asked, and knows all else."""
    sentence, stated, asked = question.rpartition(". What")
    about = next((name for name in CAPITALS if name in asked), "")
    if stated and about and about in sentence and " is " in sentence:
        return sentence.rpartition(" is ")[2]
    return knows(*CAPITALS)(question)
