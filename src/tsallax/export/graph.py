"""A small builder of ONNX graphs: values, operators between them, constants.

Version 18 of the operator set is supported by all current runtimes, and the first in which all
reductions take their axes in the same way.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Union

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPERATORS, FORMAT = 18, 8  # matching versions of the operator set and the file format

Operand = Union["Value", np.ndarray, float, int]


class Graph:
    """The nodes of a graph, in the order of computation."""

    def __init__(self):
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, operator: str, *inputs: Operand, **attributes: Any) -> "Value":
        """Add a node and return its first output; arrays and numbers become constants."""
        return self.several(operator, 1, *inputs, **attributes)[0]

    def several(
        self, operator: str, outputs: int, *inputs: Operand, **attributes: Any
    ) -> list["Value"]:
        names = [x.name if isinstance(x, Value) else self._constant(x) for x in inputs]
        made = [f"{operator.lower()}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, names, made, **attributes))
        return [Value(self, name) for name in made]

    def _constant(self, x: np.ndarray | float | int) -> str:
        array = np.float32(x) if isinstance(x, float | int) else np.ascontiguousarray(x)
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def model(
        self,
        inputs: Mapping[str, tuple[Any, tuple[int, ...]]],
        outputs: Mapping[str, tuple["Value", int]],
        about: Mapping[str, str],
        version: str,
    ) -> bytes:
        """The file of a model for batches of any size.

        Args:
            inputs: dtype and shape of each, without the batch.
            outputs: each with its number of columns.
            about: metadata of the file.
            version: version of this library.
        """
        for name, (value, _) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value.name], [name]))
        kinds = {
            name: helper.np_dtype_to_tensor_dtype(np.dtype(t)) for name, (t, _) in inputs.items()
        }
        graph = helper.make_graph(
            self.nodes,
            "policy",
            [
                helper.make_tensor_value_info(name, kinds[name], ["batch", *shape])
                for name, (_, shape) in inputs.items()
            ],
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", columns])
                for name, (_, columns) in outputs.items()
            ],
            self.constants,
        )
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPERATORS)],
            ir_version=FORMAT,
            producer_name="tsallax",
            producer_version=version,
        )
        helper.set_model_props(made, dict(about))
        onnx.checker.check_model(made, full_check=True)
        return made.SerializeToString()


class Value(NamedTuple):
    """An array of the graph, by its name. Reductions run over the last axis and keep it."""

    graph: Graph
    name: str

    def __add__(self, other: Operand) -> "Value":  # type: ignore[override]
        return self.graph.add("Add", self, other)

    def __sub__(self, other: Operand) -> "Value":
        return self.graph.add("Sub", self, other)

    def __rsub__(self, other: Operand) -> "Value":
        return self.graph.add("Sub", other, self)

    def __mul__(self, other: Operand) -> "Value":  # type: ignore[override]
        return self.graph.add("Mul", self, other)

    def __truediv__(self, other: Operand) -> "Value":
        return self.graph.add("Div", self, other)

    def __rtruediv__(self, other: Operand) -> "Value":
        return self.graph.add("Div", other, self)

    def __pow__(self, other: Operand) -> "Value":
        return self.graph.add("Pow", self, other)

    def __lt__(self, other: Operand) -> "Value":  # type: ignore[override]
        return self.graph.add("Less", self, other)

    def __gt__(self, other: Operand) -> "Value":  # type: ignore[override]
        return self.graph.add("Greater", self, other)

    def equals(self, other: Operand) -> "Value":
        return self.graph.add("Equal", self, other)

    def where(self, yes: Operand, no: Operand) -> "Value":
        return self.graph.add("Where", self, yes, no)

    def abs(self) -> "Value":
        return self.graph.add("Abs", self)

    def exp(self) -> "Value":
        return self.graph.add("Exp", self)

    def log(self) -> "Value":
        return self.graph.add("Log", self)

    def log1p(self) -> "Value":
        """`ln(1 + x)`, missing in ONNX; `x / (u - 1)` corrects for the rounding of `u = 1 + x`."""
        u = self + 1
        return u.equals(1).where(self, u.log() * self / (u - 1))

    def relu(self) -> "Value":
        return self.graph.add("Relu", self)

    def clip(self, low: Operand, high: Operand) -> "Value":
        return self.maximum(low).minimum(high)

    def maximum(self, other: Operand) -> "Value":
        return self.graph.add("Max", self, other)

    def minimum(self, other: Operand) -> "Value":
        return self.graph.add("Min", self, other)

    def sum(self) -> "Value":
        return self.graph.add("ReduceSum", self, np.array([-1]))

    def mean(self) -> "Value":
        return self.graph.add("ReduceMean", self, np.array([-1]))

    def max(self) -> "Value":
        return self.graph.add("ReduceMax", self, np.array([-1]))

    def min(self) -> "Value":
        return self.graph.add("ReduceMin", self, np.array([-1]))

    def as_float(self) -> "Value":
        return self.graph.add("Cast", self, to=TensorProto.FLOAT)

    def reshape(self, *shape: int) -> "Value":
        return self.graph.add("Reshape", self, np.array(shape))

    def transpose(self, *axes: int) -> "Value":
        return self.graph.add("Transpose", self, perm=axes)
