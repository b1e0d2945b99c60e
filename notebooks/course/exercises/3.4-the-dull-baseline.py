r"""3.4 The dull baseline · implement, 12 minutes

A new predictor is worth something if it beats the dullest one that uses no model: the share of right answers among
**other** questions of the same relation. Write it for questions that were held out.

`train_relation` and `train_right` are arrays [training question], `test_relation` is an array [held-out question].
Relations with few training questions would give shares of 0 or 1. So add to each relation one imagined answer that is
right with the overall share of the training questions:

$$p = \frac{\text{right answers of the relation} + \text{overall share}}{\text{answers of the relation} + 1}.$$

A relation that is not among the training questions gets the overall share.
"""


# %% stub
def relation_share(train_relation, train_right, test_relation):
    return ...


# %% check
def check(relation_share):
    from factrobust.wording import prediction

    rng = np.random.default_rng(34)
    train = pd.DataFrame({"relation": rng.choice(list("abc"), 40)})
    train["correct"] = (rng.uniform(size=40) < 0.3).astype(int)
    test = pd.DataFrame({"relation": list("abcd")})
    truth = prediction.relation_share(train, test)
    arrays = train["relation"].to_numpy(), train["correct"].to_numpy(), test["relation"].to_numpy()
    found = relation_share(*arrays)
    given(found)
    found = np.asarray(found, dtype=float)
    assert found.shape == (4,), "Return one number a held-out question."
    assert np.isfinite(found[3]), "A relation without training questions needs a number, too."
    assert np.isclose(found[3], truth[3]), "A new relation gets the overall share."
    assert np.allclose(found, truth), f"A share is off by {np.abs(found - truth).max():.3f}."


# %% hints
"""
- `train_right[train_relation == name]` are the training answers of one relation.
- With no such answer the formula gives the overall share by itself.
"""


# %% solution
def relation_share(train_relation, train_right, test_relation):
    overall = train_right.mean()
    shares = []
    for name in test_relation:
        own = train_right[train_relation == name]
        shares.append((own.sum() + overall) / (len(own) + 1))
    return np.array(shares)


# %% use
from course import auc

for model, rows in data("groups").groupby("model"):
    relation, right = rows["relation"].to_numpy(), rows["correct"].to_numpy()
    fold = np.arange(len(rows)) % 5
    p = np.empty(len(rows))
    for k in range(5):
        p[fold == k] = relation_share(relation[fold != k], right[fold != k], relation[fold == k])
    print(
        f"{model}: AUC of the relation alone {auc(right, p).auc:.2f}, of Cert {auc(right, rows['cert']).auc:.2f}"
    )


# %% wrong
def relation_share(train_relation, train_right, test_relation):
    overall = train_right.mean()
    own = [train_right[train_relation == name] for name in test_relation]
    return np.array([right.mean() if len(right) else overall for right in own])


# %% wrong
def relation_share(train_relation, train_right, test_relation):
    return np.full(len(test_relation), train_right.mean())
