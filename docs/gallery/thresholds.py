# %% [markdown]
# # Thresholds
#
# Scores order labels. To know how many labels to keep, learn probabilities and thresholds on held-out rows.

# %%
from articles import texts_and_tags

from labelwood import LinearTree, TextClassifier

texts, tags = texts_and_tags(900)
model = TextClassifier(LinearTree(n_jobs=1)).fit(texts[:500], tags[:500])
model.calibrate(texts[500:700], tags[500:700])
print(model.predict(texts[700:703]).toarray().sum(axis=1), "labels are kept for three texts;")
print([len(one) for one in tags[700:703]], "labels are right")

# %%
import matplotlib.pyplot as plt

from labelwood.metrics import reliability

truth = model.encode_labels(tags[700:])
found = reliability(truth, model.topk_ids(texts[700:], 5))
plt.figure(figsize=(4, 4))
plt.plot([0, 1], [0, 1], color="grey", linewidth=1)
plt.plot(found.score, found.right, marker="o")
plt.xlabel("probability")
plt.ylabel("share that is right")
plt.show()
