"""Labelwood inside other tools: river, Annif, MLflow and the Hugging Face Hub.

Each module imports its tool on first use; ``pip install 'labelwood[river]'`` (``annif``, ``mlflow``, ``hub``) installs
it. ``docs/integrations.md`` has an example of each. scikit-learn needs no adapter: the methods are its estimators.
"""
