# %% [markdown]
# # Tail labels
#
# Most labels are rare. The default orders labels by probability; other objectives give rare labels a chance.

# %%
from articles import texts_and_tags

from labelwood import LinearTree, TextClassifier
from labelwood.metrics import recall_at_k

texts, tags = texts_and_tags(900)
model = TextClassifier(LinearTree(n_jobs=1)).fit(texts[:600], tags[:600])
truth = model.encode_labels(tags[600:])
for objective in ("precision", "tail"):
    top = model.classifier_.topk_ids(model.encode(texts[600:]), 3, objective)
    print(f"{objective:<10} recall@3 {100 * recall_at_k(truth, top, 3):.1f}")

# %%
import matplotlib.pyplot as plt
import numpy as np

counts = model.classifier_.label_counts_
order = np.argsort(-counts)
plt.figure(figsize=(6, 3))
plt.bar([str(name) for name in model.classes_[order]], counts[order])
plt.xticks(rotation=60)
plt.ylabel("training rows")
plt.tight_layout()
plt.show()
