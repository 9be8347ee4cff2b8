# %% [markdown]
# # Choosing a method
#
# Every method has the same interface. Fit several on the same rows and compare time and quality on held-out rows.

# %%
import time

from labelwood import METHODS
from labelwood.data.synth import Shape, synth
from labelwood.metrics import precision_at_k

rows = synth(Shape(n_rows=3000, n_labels=200, n_features=1500, branching=4, levels=3, natural=True), seed=0)
X, Y = rows.X.to_scipy(), rows.Y.to_scipy()
train, test = slice(0, 2400), slice(2400, 3000)
found = {}
for name in ("linear-tree", "one-vs-rest", "online-tree", "craft-forest", "fastxml-forest"):
    started = time.process_time()
    model = METHODS[name](n_jobs=1, random_state=0).fit(X[train], Y[train])
    seconds = time.process_time() - started
    found[name] = seconds, 100 * precision_at_k(Y[test], model.topk_ids(X[test], 5), 1)
    print(f"{name:<14} {seconds:6.2f} s   P@1 {found[name][1]:.1f}")

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(5, 3))
for name, (seconds, precision) in found.items():
    plt.scatter(seconds, precision, label=name)
plt.xscale("log")
plt.legend(fontsize="small")
plt.xlabel("training, CPU seconds")
plt.ylabel("P@1")
plt.show()
