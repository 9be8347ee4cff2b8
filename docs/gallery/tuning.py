# %% [markdown]
# # Tuning
#
# `tune` tries methods and parameters on small parts of the data and lets the better ones go on to more rows.

# %%
from labelwood.data.synth import Shape, synth
from labelwood.tuning import tune

rows = synth(Shape(n_rows=8000, n_labels=300, n_features=1500, branching=4, levels=3), seed=0)
trials = []
tuned = tune(
    rows.X,
    rows.Y,
    budget=20,
    metric="P@1",
    candidates=[
        ("linear-tree", {}),
        ("linear-tree", {"max_leaf": 20}),
        ("linear-tree", {"loss": "logistic"}),
        ("linear-tree", {"C": 0.1}),
        ("one-vs-rest", {}),
        ("online-tree", {}),
    ],
    n_jobs=1,
    report=lambda trial, share: trials.append(trial),
)
print(tuned.why)

# %% [markdown]
# A line is a candidate. The better ones go on to more rows first; the others follow while there is time.

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(6, 3))
for name in dict.fromkeys(trial.name for trial in trials):
    own = [trial for trial in trials if trial.name == name]
    plt.plot([100 * trial.share for trial in own], [100 * trial.score for trial in own], marker="o", label=name)
plt.xlabel("training rows, percent")
plt.ylabel("P@1")
plt.legend(fontsize="small")
plt.show()
