"""A model that answers by a rule, so that every number is known."""

from factrobust.models.interface import Generation, Model

CAPITALS = {
    "Kenya": "Nairobi",
    "Peru": "Lima",
    "Italy": "Rome",
    "Norway": "Oslo",
    "Cuba": "Havana",
}


class Rule(Model):
    """A model that answers by a rule of the last question; P_t of an answer is e^(-0.2 t)."""

    def __init__(self, rule, name="rule", **about):
        usual = {"fingerprint": name, "prompt_format": "two-shot", "chat": None}
        super().__init__(name=name, **(usual | about))
        self.rule = rule
        self.asked = 0

    def answer(self, job):
        for i, request in enumerate(job.requests):
            self.asked += 1
            answer = self.answer_to(request["prompt"], job)
            yield [i], [answer]

    def answer_to(self, prompt, job):
        temperatures = job.settings.get("temperatures", [])
        curve = [-0.2 * t for t in temperatures]
        if job.operation == "temper":
            return curve
        _, _, question = prompt.rpartition("Q: ")
        text = self.rule(question.removesuffix("\nA:"))
        answer = Generation(prompt, text, [], [])
        if text:
            tops = [[("a", -0.2), ("b", -1.8)]]
            answer = Generation(prompt, text, [1], [-0.2], tops, curve=curve)
        if job.operation == "sample":
            return [answer] * job.settings["n"]
        return answer


def knows(*countries):
    """Memory alone, in any wording."""

    def rule(question):
        text = question.lower()
        if "the answer to" in text:
            _, _, text = text.rpartition(". ")
        for name in countries:
            if name.lower() in text:
                return CAPITALS[name]
        return "Paris"

    return rule


def copies(question):
    """It repeats a context, whomever that is about, and knows all else."""
    before, stated, _ = question.rpartition(". What")
    if stated:
        return before.rpartition(" is ")[2]
    return knows(*CAPITALS)(question)


def repeats(question):
    """It says what a sentence before the question states of the country that is asked, and knows
    all else."""
    sentence, stated, asked = question.rpartition(". What")
    about = next((name for name in CAPITALS if name in asked), "")
    if stated and about and about in sentence and " is " in sentence:
        return sentence.rpartition(" is ")[2]
    return knows(*CAPITALS)(question)


def number(question):
    """It knows all that asks for a number."""
    _, _, asked = question.rpartition("number ")
    number, _, _ = asked.partition("?")
    return f"n{number}"
