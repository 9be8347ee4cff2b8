# %% [markdown]
# # Text to tags
#
# A model learns from texts and the tags that people gave them. Then it suggests tags for new texts.

# %%
from articles import texts_and_tags

texts, tags = texts_and_tags(400)
print(texts[0])
print(tags[0])

# %% [markdown]
# `TextClassifier` holds an encoder, which turns texts into vectors, and a method. The default is `LinearTree`.

# %%
from labelwood import LinearTree, TextClassifier

model = TextClassifier(LinearTree(n_jobs=1)).fit(texts[:320], tags[:320])
suggested, scores = model.predict_topk(["the court decided on the income tax of the bank"], k=3)
print([f"{label} {score:.2f}" for label, score in zip(suggested[0], scores[0], strict=True)])

# %% [markdown]
# On rows that the model has not seen: which share of the first suggestions is right?

# %%
import matplotlib.pyplot as plt

from labelwood.metrics import precision_at_k

truth = model.encode_labels(tags[320:])
top = model.topk_ids(texts[320:], 5)
precision = [precision_at_k(truth, top, k) for k in range(1, 6)]
plt.figure(figsize=(5, 3))
plt.plot(range(1, 6), precision, marker="o")
plt.xlabel("suggestions")
plt.ylabel("precision")
plt.show()
