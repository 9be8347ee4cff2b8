# %% [markdown]
# # Text to tags
#
# A model learns from texts and the tags that people gave them. Then it suggests tags for new texts.

# %%
from articles import texts_and_tags

texts, tags = texts_and_tags(400)
print(texts[0][:70], "...")
print(tags[0])

# %% [markdown]
# `TextClassifier` holds an encoder, which turns texts into vectors, and a method. The default is `LinearTree`.

# %%
from labelwood import LinearTree, TextClassifier

model = TextClassifier(LinearTree(n_jobs=1)).fit(texts[:320], tags[:320])
suggested, scores = model.predict_topk(["the court decided on the income tax of the bank"], k=3)
print([f"{label} {score:.2f}" for label, score in zip(suggested[0], scores[0], strict=True)])

# %% [markdown]
# On rows that the model has not seen: which share of the first suggestions is right, and which share of the right tags
# is among them? More suggestions find more tags, and more of them are wrong.

# %%
import matplotlib.pyplot as plt

from labelwood.metrics import precision_at_k, recall_at_k

truth = model.encode_labels(tags[320:])
top = model.topk_ids(texts[320:], 5)
ks = range(1, 6)
plt.figure(figsize=(5, 3))
plt.plot(ks, [100 * precision_at_k(truth, top, k) for k in ks], marker="o", label="precision")
plt.plot(ks, [100 * recall_at_k(truth, top, k) for k in ks], marker="s", label="recall")
plt.xticks(ks)
plt.xlabel("suggestions")
plt.ylabel("percent")
plt.legend()
plt.show()

# %% [markdown]
# A saved model is a directory with everything that is needed to use it. `labelwood predict` reads the same directory.

# %%
import tempfile
from pathlib import Path

from labelwood import load

with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder) / "model")
    print(load(Path(folder) / "model").predict_topk(["a dog and a cat at home"], k=1)[0])
