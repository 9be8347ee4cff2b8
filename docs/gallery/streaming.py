# %% [markdown]
# # Streaming
#
# `OnlineTree` learns row by row. Labels and features may appear at any time. Progressive validation predicts every row
# before it is learned.

# %%
import numpy as np

from labelwood import OnlineTree
from labelwood.data.synth import Shape, synth

rows = synth(Shape(n_rows=2000, n_labels=50, n_features=500, branching=3, levels=2), seed=0)
X, Y = rows.X.to_scipy(), rows.Y.to_scipy()
model, right = OnlineTree(n_jobs=1), []
for start in range(0, 2000, 100):
    part = slice(start, start + 100)
    if start:
        first = model.topk_ids(X[part], 1).labels[:, 0]
        known = Y[part].toarray()
        right.append(np.mean([known[row, label] > 0 for row, label in enumerate(first) if label >= 0]))
    model.partial_fit(X[part], Y[part])
print(f"P@1 of the last 100 rows before they were learned: {100 * right[-1]:.0f}")

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(5, 3))
plt.plot(range(200, 2100, 100), right, marker=".")
plt.xlabel("rows seen")
plt.ylabel("P@1 of the next 100")
plt.show()
