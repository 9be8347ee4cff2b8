# %% [markdown]
# # Tuning
#
# `tune` tries methods and parameters on small parts of the data and lets the better ones go on to more rows.

# %%
from labelwood.data.synth import Shape, synth
from labelwood.tuning import tune

rows = synth(Shape(n_rows=800, n_labels=40, n_features=400, branching=3, levels=2), seed=0)
trials = []
tuned = tune(
    rows.X,
    rows.Y,
    budget=5,
    metric="P@1",
    candidates=[("linear-tree", {}), ("linear-tree", {"C": 2.0}), ("linear-tree", {"max_leaf": 20})],
    n_jobs=1,
    report=lambda trial, share: trials.append(trial),
)
print(tuned.why)

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(5, 3))
plt.scatter([trial.share for trial in trials], [100 * trial.score for trial in trials])
plt.xlabel("share of the training rows")
plt.ylabel("P@1")
plt.show()
