# %% [markdown]
# # Distributed training
#
# Training divides into units that other processes can do: joblib's here, or a Ray cluster's. The model is the same.

# %%
import tempfile
from pathlib import Path

import numpy as np

from labelwood import CraftForest
from labelwood.data.synth import Shape, synth
from labelwood.executors import JoblibExecutor

rows = synth(Shape(n_rows=1000, n_labels=40, n_features=400, branching=3, levels=2), seed=0)
X, Y = rows.X.to_scipy(), rows.Y.to_scipy()
here = CraftForest(n_trees=8, n_jobs=1, random_state=0).fit(X, Y)
there = CraftForest(n_trees=8, n_jobs=1, random_state=0).fit(X, Y, executor=JoblibExecutor())
print("the same answers:", np.array_equal(here.predict_topk(X, 3)[0], there.predict_topk(X, 3)[0]))

# %% [markdown]
# With a checkpoint, a training that was killed goes on where it was. Finished units are files.

# %%
checkpoint = Path(tempfile.mkdtemp()) / "done"
CraftForest(n_trees=8, n_jobs=1, random_state=0).fit(X, Y, checkpoint=checkpoint)
sizes = [file.stat().st_size for file in sorted(checkpoint.iterdir()) if file.is_file()]
print(len(sizes), "files")

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(5, 2.5))
plt.bar(range(len(sizes)), [size / 1e3 for size in sizes])
plt.xlabel("file of the checkpoint")
plt.ylabel("kB")
plt.tight_layout()
plt.show()
