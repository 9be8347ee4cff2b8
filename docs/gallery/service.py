# %% [markdown]
# # Service
#
# `labelwood serve` answers over HTTP and learns there. Here it runs on a free port of this machine.

# %%
import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from articles import texts_and_tags

from labelwood import HashingEncoder, OnlineTree, TextClassifier

texts, tags = texts_and_tags(300)
folder = Path(tempfile.mkdtemp())
TextClassifier(OnlineTree(n_jobs=1), HashingEncoder(n_features=4096)).fit(texts, tags).save(folder / "model")
command = [Path(sys.executable).with_name("labelwood"), "serve", folder / "model", "--port", "0", "--json"]
service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
url = json.loads(service.stdout.readline())["url"].rstrip("/")


def post(path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


print(post("/suggest", {"text": "the judge and the court", "k": 2}))

# %% [markdown]
# A label that the model has never seen is learned from examples.

# %%
new = {"text": "a telescope shows a comet", "labels": ["astronomy"]}
post("/learn", {"examples": [new] * 5})
after = post("/suggest", {"text": "a telescope and a comet", "k": 3})["suggestions"]
print(after)
service.terminate()
service.wait()

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(5, 2))
plt.barh([one["label"] for one in after][::-1], [one["score"] for one in after][::-1])
plt.xlabel("score")
plt.tight_layout()
plt.show()
