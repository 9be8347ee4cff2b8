# %% [markdown]
# # Label texts
#
# A name or a description of a label is one more training row. So a label that no document has can be suggested.

# %%
from articles import texts_and_tags

from labelwood import LinearTree, TextClassifier

texts, tags = texts_and_tags(300)
described = {"astronomy": ["star planet telescope galaxy orbit comet"], "law": ["law court judge"]}
model = TextClassifier(LinearTree(n_jobs=1)).fit(texts, tags, label_texts=described)
labels, scores = model.predict_topk(["a telescope shows a comet near the planet"], k=3)
print([f"{label} {score:.2f}" for label, score in zip(labels[0], scores[0], strict=True)])

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(5, 2))
plt.barh([str(label) for label in labels[0]][::-1], scores[0][::-1])
plt.xlabel("score")
plt.tight_layout()
plt.show()
