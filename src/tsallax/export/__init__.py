"""Trained policies as ONNX graphs, which run without jax and without this library."""

from tsallax.export.graph import Graph, Value
from tsallax.export.networks import action_values
from tsallax.export.policies import entmax, greedy, softmax, sparsemax

__all__ = ["Graph", "Value", "action_values", "entmax", "greedy", "softmax", "sparsemax"]
