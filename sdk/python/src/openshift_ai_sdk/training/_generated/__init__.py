"""Models made from the custom resource definitions by tools/generate_models.py."""
