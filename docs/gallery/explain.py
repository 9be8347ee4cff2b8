# %% [markdown]
# # Explain
#
# Why was a label suggested? Every feature has a weight on the way from the root of the tree to the label.

# %%
from articles import texts_and_tags

from labelwood import LinearTree, TextClassifier

texts, tags = texts_and_tags(400)
model = TextClassifier(LinearTree(n_jobs=1)).fit(texts, tags)
explanation = model.explain(["the court decided on the income tax"], k=1)[0]
print(explanation)

# %%
import matplotlib.pyplot as plt

step = explanation.suggestions[0].paths[0].steps[-1]
parts = step.contributions[:6]
plt.figure(figsize=(5, 2.5))
plt.barh([str(part.name) for part in parts][::-1], [part.amount for part in parts][::-1])
plt.xlabel(f"contribution to {step.label}")
plt.tight_layout()
plt.show()

# %% [markdown]
# Why was a label **not** suggested? `missed` shows where it was lost, and to which labels.

# %%
print(model.explain(["the court decided on the income tax"], k=1, missed=["bees"])[0])

# %% [markdown]
# Which words speak for a label at all?

# %%
print(", ".join(str(word) for word, _ in model.top_features("law", 5)))
