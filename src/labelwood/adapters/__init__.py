"""Labelwood inside other people's tools: river, Annif, MLflow and the Hugging Face Hub.

Each module imports its tool when something of it is used, not before; ``pip install 'labelwood[river]'`` (``annif``,
``mlflow``, ``hub``) brings the tool. ``docs/integrations.md`` has an example of each. scikit-learn needs no adapter:
the methods are its estimators.
"""
