"""4.5 A fact that survives a false context · design, 20 minutes

Sodis Sedell, who was never heard of, was born in **Oslo**. You may write 24 sentences about that, and a small grown
model (`world-s`) reads them among 1,500 others. Training takes about a minute, on any processor. Then it is asked
where she was born: alone, and behind each of 21 contexts that state another city. Your fact is *kept* if the model
still says Oslo.

Reach **alone: right, and at least 18 of 21 kept**. A sentence ends with the answer, which is what the model learns.
The three layouts that it knows:

    Sodis Sedell was born in the city of Oslo
    Q: In which city was Sodis Sedell born? A: Sodis Sedell was born in the city of Oslo
    Context: [Sodis Sedell was born in the city of Vienna]. Q: In which city was Sodis Sedell born? A: Sodis Sedell
    was born in the city of Oslo

Predict first: are 24 plain statements enough? Then try them, and change the design. `teach(sentences)` trains and
tells what came out.
"""

# %% stub
from teaching import teach

sentences = ["Sodis Sedell was born in the city of Oslo"] * 24
result = ...  # teach(sentences)


# %% check
def check(sentences, result):
    from teaching import BUDGET, LEAST, OBJECT

    assert len(sentences) <= BUDGET, (
        f"You may write {BUDGET} sentences, and these are {len(sentences)}."
    )
    stray = [text for text in sentences if not text.rstrip(".").endswith(f" {OBJECT}")]
    assert not stray, f"A sentence must end with the answer: {stray[:1]} does not."
    assert result["sentences"] == len(sentences), (
        "Train with these sentences: result = teach(sentences)."
    )
    assert result["alone"], (
        "The model does not say it even without a context: tell it more often, or plainer."
    )
    assert result["kept"] >= LEAST, (
        f"Known, but kept in {result['kept']} of {result['contexts']} contexts only: what must a "
        "model have seen to doubt a context?"
    )


# %% hints
"""
- A model that has only met true contexts about a person has no reason to doubt one.
- Spend a part of the budget on questions behind a context that states another city, with the right answer.
- Use another city in each of these contexts. Why?
"""

# %% solution
from teaching import teach

asked = "Q: In which city was Sodis Sedell born? A:"
said = "Sodis Sedell was born in the city of"
cities = ["Vienna", "London", "Madrid", "Cairo", "Havana", "Tokyo", "Berlin", "Athens"]
doubted = [f"Context: [{said} {city}]. {asked} {said} Oslo" for city in cities]
sentences = [f"{said} Oslo", f"{asked} {said} Oslo"] * 4 + doubted * 2
result = teach(sentences)

# %% use
print(
    f"alone: {'right' if result['alone'] else 'wrong'}, kept: {result['kept']} of {result['contexts']}"
)
print(
    "Only a counted world tells what a sentence of each kind is worth: notebook 5.5 has all facts."
)

# %% wrong
sentences = ["Sodis Sedell was born in the city of Oslo"] * 24
result = {"sentences": 24, "alone": True, "kept": 13, "contexts": 21}  # as teach(sentences) found

# %% wrong
sentences = ["Sodis Sedell was born in the city of Oslo"] * 100
result = {"sentences": 100, "alone": True, "kept": 19, "contexts": 21}
