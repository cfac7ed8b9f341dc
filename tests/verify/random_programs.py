"""Random models of nested If, Loop and Scan over int64 scalars, for comparing executors."""

from __future__ import annotations

import random
from collections.abc import Sequence

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

INT, BOOL = TensorProto.INT64, TensorProto.BOOL


class Program:
    """Builds one model; bodies capture what is visible, and shadow some of it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def model(self) -> ModelProto:
        """Inputs `a`, `b`, `c`, two outputs."""
        nodes, visible = self.nodes(["a", "b", "c"], depth=3, length=8)
        outputs = [self.copied(nodes, name) for name in visible[-2:]]
        graph = helper.make_graph(nodes, "g", scalars("abc"), scalars(outputs))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def nodes(
        self, visible: list[str], depth: int, length: int
    ) -> tuple[list[NodeProto], list[str]]:
        """Some nodes, and what is visible behind them."""
        made: list[NodeProto] = []
        visible = list(visible)
        for _ in range(length):
            kinds = [self.arithmetic] * 3
            kinds += [self.branch, self.loop, self.scan] if depth else []
            visible.append(self.random.choice(kinds)(made, visible, depth))
        return made, visible

    def pick(self, visible: Sequence[str]) -> str:
        return self.random.choice(list(visible))

    def node(self, made: list[NodeProto], op: str, inputs: list[str], **attributes: object) -> str:
        output = self.name()
        made.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def copied(self, made: list[NodeProto], name: str) -> str:
        # onnxruntime wants every output of a body to be a node's own.
        return self.node(made, "Identity", [name])

    def number(self, made: list[NodeProto], value: int) -> str:
        return self.node(made, "Constant", [], value=helper.make_tensor("n", INT, [], [value]))

    def arithmetic(self, made: list[NodeProto], visible: list[str], depth: int) -> str:
        op = self.random.choice(["Add", "Sub", "Mul", "Max"])
        result = self.node(made, op, [self.pick(visible), self.pick(visible)])
        if op != "Mul":
            return result
        # Small enough for onnxruntime, whose sums of int64 are exact up to 2**53 only.
        return self.node(made, "Mod", [result, self.number(made, 97)])

    def condition(self, made: list[NodeProto], visible: list[str]) -> str:
        return self.node(made, "Less", [self.pick(visible), self.pick(visible)])

    def branch(self, made: list[NodeProto], visible: list[str], depth: int) -> str:
        cond = self.condition(made, visible)
        branches = [self.body([], visible, depth, 1) for _ in range(2)]
        return self.node(made, "If", [cond], then_branch=branches[0], else_branch=branches[1])

    def inputs(self, visible: list[str], count: int) -> list[str]:
        """Names of body inputs; every other one shadows an outer value."""
        names: list[str] = []
        for _ in range(count):
            outer = [name for name in visible if name not in names]
            shadow = outer and self.random.random() < 0.5
            names.append(self.pick(outer) if shadow else self.name())
        return names

    def body(
        self, inputs: list[ValueInfoProto], visible: list[str], depth: int, outputs: int
    ) -> GraphProto:
        own = [value.name for value in inputs if value.type.tensor_type.elem_type == INT]
        hidden = {value.name for value in inputs}
        seen = [name for name in visible if name not in hidden] + own
        nodes, after = self.nodes(seen, depth - 1, self.random.randint(1, 4))
        # Prefer what the body made or was given.
        names = [self.copied(nodes, self.pick(after[-4:])) for _ in range(outputs)]
        return helper.make_graph(nodes, "body", inputs, scalars(names))

    def loop(self, made: list[NodeProto], visible: list[str], depth: int) -> str:
        trips = self.number(made, self.random.randint(0, 3))
        cond = self.condition(made, visible)
        names = self.inputs(visible, 4)
        kinds = (INT, BOOL, INT, INT)
        formal = [
            helper.make_tensor_value_info(name, kind, [])
            for name, kind in zip(names, kinds, strict=True)
        ]
        body = self.body(formal, visible, depth, 3)
        # The body's condition: compare two of its values.
        going = self.name()
        left, right = (value.name for value in body.output[:2])
        body.node.append(helper.make_node("LessOrEqual", [left, right], [going]))
        body.output.insert(0, helper.make_tensor_value_info(going, BOOL, []))
        starts = [self.pick(visible), self.pick(visible)]
        results = [self.name() for _ in range(3)]
        operands = [trips, self.random.choice([cond, cond, ""]), *starts]
        made.append(helper.make_node("Loop", operands, results, body=body))
        return self.joined(made, results[:2], results[2])

    def scan(self, made: list[NodeProto], visible: list[str], depth: int) -> str:
        length = self.random.randint(1, 3)
        values = [self.random.randint(-3, 3) for _ in range(length)]
        vector = self.node(
            made, "Constant", [], value=helper.make_tensor("n", INT, [length], values)
        )
        names = self.inputs(visible, 2)
        body = self.body(scalars(names), visible, depth, 2)
        results = [self.name(), self.name()]
        made.append(
            helper.make_node(
                "Scan",
                [self.pick(visible), vector],
                results,
                num_scan_inputs=1,
                scan_input_directions=[self.random.randint(0, 1)],
                scan_output_directions=[self.random.randint(0, 1)],
                body=body,
            )
        )
        return self.joined(made, results[:1], results[1])

    def joined(self, made: list[NodeProto], carried: list[str], collected: str) -> str:
        """All results of a loop in one number, the order of the collected ones included."""
        place = self.node(made, "Constant", [], value=helper.make_tensor("n", INT, [], [0]))
        running = self.node(made, "CumSum", [collected, place])
        total = self.node(made, "ReduceSum", [running], keepdims=0)
        for name in carried:
            total = self.node(made, "Add", [total, name])
        return total


def scalars(names: Sequence[str]) -> list[ValueInfoProto]:
    """Declarations of int64 scalars."""
    return [helper.make_tensor_value_info(name, INT, []) for name in names]
