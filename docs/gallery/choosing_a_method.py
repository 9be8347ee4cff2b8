# %% [markdown]
# # Choosing a method
#
# Every method has the same interface. Fit several on the same rows and compare quality, time and size on held-out rows.

# %%
import time

from labelwood import METHODS
from labelwood.data.synth import Shape, synth
from labelwood.metrics import precision_at_k

rows = synth(Shape(n_rows=1200, n_labels=60, n_features=600, branching=3, levels=2), seed=0)
X, Y = rows.X.to_scipy(), rows.Y.to_scipy()
train, test = slice(0, 900), slice(900, 1200)
found = {}
for name in ("linear-tree", "one-vs-rest", "online-tree", "craft-forest"):
    started = time.process_time()
    model = METHODS[name](n_jobs=1, random_state=0).fit(X[train], Y[train])
    seconds = time.process_time() - started
    found[name] = seconds, precision_at_k(Y[test], model.topk_ids(X[test], 5), 1)
    print(f"{name:<14} {seconds:6.2f} s   P@1 {100 * found[name][1]:.1f}")

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(5, 3))
for name, (seconds, precision) in found.items():
    plt.scatter(seconds, 100 * precision)
    plt.annotate(name, (seconds, 100 * precision))
plt.xlabel("training, CPU seconds")
plt.ylabel("P@1")
plt.show()
