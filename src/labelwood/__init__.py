"""Labelwood: extreme multi-label classification with trees.

The public names are imported when first used, so that ``import labelwood`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "Blend",
    "CraftForest",
    "Embedded",
    "FastXmlForest",
    "FormatError",
    "GraphForest",
    "HashingEncoder",
    "LabelwoodError",
    "LabelwoodWarning",
    "LdsmForest",
    "LinearTree",
    "LivingTree",
    "OneVsRest",
    "OnlineForest",
    "OnlineTree",
    "Ranker",
    "TextClassifier",
    "TfidfEncoder",
    "TreeEstimator",
    "VectorEncoder",
    "data",
    "label_neighbors",
    "load",
    "metrics",
]

if TYPE_CHECKING:
    from labelwood import data, metrics
    from labelwood.errors import FormatError, LabelwoodError, LabelwoodWarning
    from labelwood.estimator import TreeEstimator
    from labelwood.methods import METHODS, load
    from labelwood.methods.blend import Blend
    from labelwood.methods.forest.craft_forest import CraftForest
    from labelwood.methods.forest.fastxml_forest import FastXmlForest
    from labelwood.methods.forest.graph_forest import GraphForest
    from labelwood.methods.forest.label_neighbors import label_neighbors
    from labelwood.methods.forest.ldsm_forest import LdsmForest
    from labelwood.methods.label_tree.linear_tree import LinearTree, OneVsRest
    from labelwood.methods.online.living_tree import LivingTree
    from labelwood.methods.online.online_forest import OnlineForest
    from labelwood.methods.online.online_tree import OnlineTree
    from labelwood.methods.ranker import Ranker
    from labelwood.methods.text_classifier import TextClassifier
    from labelwood.text import HashingEncoder, TfidfEncoder, VectorEncoder
    from labelwood.validation.embedded import Embedded
else:
    _HOMES = {
        "METHODS": "methods",
        "Blend": "methods.blend",
        "CraftForest": "methods.forest.craft_forest",
        "Embedded": "validation.embedded",
        "FastXmlForest": "methods.forest.fastxml_forest",
        "FormatError": "errors",
        "GraphForest": "methods.forest.graph_forest",
        "HashingEncoder": "text",
        "LabelwoodError": "errors",
        "LabelwoodWarning": "errors",
        "LdsmForest": "methods.forest.ldsm_forest",
        "LinearTree": "methods.label_tree.linear_tree",
        "LivingTree": "methods.online.living_tree",
        "OneVsRest": "methods.label_tree.linear_tree",
        "TextClassifier": "methods.text_classifier",
        "TfidfEncoder": "text",
        "VectorEncoder": "text",
        "OnlineForest": "methods.online.online_forest",
        "OnlineTree": "methods.online.online_tree",
        "Ranker": "methods.ranker",
        "TreeEstimator": "estimator",
        "label_neighbors": "methods.forest.label_neighbors",
        "load": "methods",
    }

    def __getattr__(name):
        if name in _HOMES:
            value = getattr(import_module(f"labelwood.{_HOMES[name]}"), name)
        elif name in __all__:
            value = import_module(f"labelwood.{name}")
        else:
            raise AttributeError(f"module 'labelwood' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
