"""4.5 A fact that survives a false context · design, 20 minutes

Sodis Sedell, who was never heard of, was born in **Oslo**. You may write 24 sentences about that, and a small grown
model (`world-s`) reads them among 1,000 others: three times anew, with other sentences beside them, in about a minute.
Then it is asked where she was born: alone, and behind contexts that state **a city which none of your sentences names**.
Your fact is *kept* if the model still says Oslo. A model that ignores every context would pass that, so it is asked as
well behind contexts about 60 strangers, of whom it knows nothing: does it still read them?

Reach three things: **alone right in all three trainings, at least 80% kept, and of the strangers' contexts at least 90%
as many read as before**. A sentence ends with the answer, which is what the model learns. The three layouts that it
knows:

    Sodis Sedell was born in the city of Oslo
    Q: In which city was Sodis Sedell born? A: Sodis Sedell was born in the city of Oslo
    Context: [Sodis Sedell was born in the city of Vienna]. Q: In which city was Sodis Sedell born? A: Sodis Sedell
    was born in the city of Oslo

Predict first: what do 24 plain statements keep? Then try them, and change the design. `teach(sentences)` trains and
tells what came out.
"""

# %% stub
from teaching import teach

sentences = ["Sodis Sedell was born in the city of Oslo"] * 24
result = ...  # teach(sentences)


# %% check
def check(sentences, result):
    from teaching import BUDGET, KEPT, OBJECT, READ

    assert len(sentences) <= BUDGET, (
        f"You may write {BUDGET} sentences, and these are {len(sentences)}."
    )
    stray = [text for text in sentences if not text.rstrip(".").endswith(f" {OBJECT}")]
    assert not stray, f"A sentence must end with the answer: {stray[:1]} does not."
    assert result["sentences"] == len(sentences), (
        "Train with these sentences: result = teach(sentences)."
    )
    assert result["alone"] == result["trainings"], (
        "Without a context it is not said in every training: tell it more often, or plainer."
    )
    assert result["kept"] >= KEPT * result["contexts"], (
        f"Known, but kept in {result['kept']} of {result['contexts']} unseen contexts only: what must a "
        "model have seen to doubt a context?"
    )
    assert result["read"] >= READ * result["read_before"], (
        f"Kept, but of the strangers' contexts {result['read']} are read, and {result['read_before']} "
        "before: it ignores contexts."
    )


# %% hints
"""
- A model that has only met true contexts about a person has no reason to doubt one.
- Spend the larger part of the budget on questions behind a context that states another city, with the right answer.
- It is asked with cities that it never doubted. With Vienna alone, 16 times, about 60% are kept: would more cities, or
  more sentences, carry further? Name four at least, and leave the most unnamed.
"""

# %% solution
from teaching import teach

asked = "Q: In which city was Sodis Sedell born? A:"
said = "Sodis Sedell was born in the city of"
doubted = [
    f"Context: [{said} {city}]. {asked} {said} Oslo"
    for city in ["Amsterdam", "Athens", "Berlin", "Boston"]
]
sentences = [f"{said} Oslo", f"{asked} {said} Oslo"] * 2 + doubted * 5
result = teach(sentences)

# %% use
print(f"alone: right in {result['alone']} of {result['trainings']} trainings")
print(f"kept: {result['kept']} of {result['contexts']} contexts with cities that were never named")
print(
    f"strangers: {result['read']} of {result['strangers']} contexts are read, {result['read_before']} before"
)
print("Notebook 5.4 asks this of all facts, and whether a model reads whom a context is about.")

# %% wrong
sentences = ["Sodis Sedell was born in the city of Oslo"] * 24
# As teach(sentences) found:
result = {"sentences": 24, "trainings": 3, "alone": 3, "kept": 10, "contexts": 63}

# %% wrong
sentences = ["Sodis Sedell was born in the city of Oslo"] * 100
result = {"sentences": 100, "trainings": 3, "alone": 3, "kept": 60, "contexts": 63}

# %% wrong
sentences = ["Sodis Sedell was born in the city of Oslo"] * 24
# A model that ignores every context:
result = {"sentences": 24, "trainings": 3, "alone": 3, "kept": 63, "contexts": 63}
result |= {"strangers": 180, "read": 4, "read_before": 174}
