# %% [markdown]
# # Tail labels
#
# Most labels are rare. The default orders labels by probability; other objectives give rare labels a chance.

# %%
from articles import texts_and_tags

from labelwood import LinearTree, TextClassifier
from labelwood.metrics import macro_f1_at_k, precision_at_k

texts, tags = texts_and_tags(900)
model = TextClassifier(LinearTree(n_jobs=1)).fit(texts[:600], tags[:600])
truth = model.encode_labels(tags[600:])
first = {}
for objective in ("precision", "tail"):
    top = model.classifier_.topk_ids(model.encode(texts[600:]), 1, objective)
    first[objective] = top.labels[:, 0]
    precision, macro_f1 = precision_at_k(truth, top, 1), macro_f1_at_k(truth, top, 1)
    print(f"{objective:<10} P@1 {100 * precision:5.1f}   macro-F1@1 {100 * macro_f1:5.1f}")

# %% [markdown]
# Macro-F1 counts every label alike, P@1 every text.
#
# Where a text leaves a choice, `tail` suggests the rarer label first. Count how often each label comes first.

# %%
import matplotlib.pyplot as plt
import numpy as np

order = np.argsort(-model.classifier_.label_counts_)
places = np.arange(len(order))
plt.figure(figsize=(6, 3))
for shift, (objective, labels) in zip((-0.2, 0.2), first.items(), strict=True):
    plt.bar(places + shift, np.bincount(labels, minlength=len(order))[order], 0.4, label=objective)
plt.xticks(places, [str(name) for name in model.classes_[order]], rotation=60)
plt.xlabel("labels, the most frequent first")
plt.ylabel("first suggestions")
plt.legend()
plt.tight_layout()
plt.show()
