"""Graphs of torch.fx as the JSON of exported programs, which the library reads (docs of the format: torch/_export/serde)."""
import functools
import inspect
import json
import math

import torch

from . import _native

DTYPES = {torch.uint8: 1, torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5, torch.float16: 6, torch.float32: 7,
          torch.float64: 8, torch.complex64: 10, torch.complex128: 11, torch.bool: 12, torch.bfloat16: 13}
FORMATS = {torch.contiguous_format: 1, torch.channels_last: 2, torch.channels_last_3d: 3, torch.preserve_format: 4}
# Graphs that torch hands over write nowhere, so that a view may be a copy where memory lies in another order than torch's.
RENAMED = {torch.ops.aten.view.default: torch.ops.aten.reshape.default,
           torch.ops.aten._unsafe_view.default: torch.ops.aten.reshape.default}
MAJOR_VERSION = 8


class CannotWrite(Exception):
    """What a graph has that exported programs have not."""


def name_of(target):
    """'aten.add.Tensor', '_operator.floordiv': what a node calls, as the library knows it."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    if isinstance(target, torch._ops.HigherOrderOperator):
        return "higher_order." + target.name()
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


def called(node):
    """The function that the library is to call for a node."""
    return RENAMED.get(node.target, node.target)


def parameters_of(target):
    """(name, type) of a function's parameters."""
    if isinstance(target, torch._ops.OpOverload):
        return [(a.name, str(a.type)) for a in target._schema.arguments]
    return [(name, "") for name in inspect.signature(target).parameters]


def is_getitem(node):
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem" and isinstance(
        node.args[0].meta.get("val"), (tuple, list))


def size(s):
    if isinstance(s, int):
        return {"as_int": s}
    import sympy
    expression = s.node.expr
    hint = s.node.hint
    return {"as_expr": {"expr_str": sympy.srepr(expression), "hint": {"as_int": int(hint)} if hint is not None else None}}


@functools.lru_cache(maxsize=None)
def dtype_code(dtype):
    if dtype not in DTYPES or not _native.takes_dtype(DTYPES[dtype]):
        raise CannotWrite(str(dtype))
    return DTYPES[dtype]


def tensor_meta(t):
    dtype = dtype_code(t.dtype)
    if t.layout != torch.strided:
        raise CannotWrite(f"tensors of the layout {t.layout}")
    return {"dtype": dtype, "sizes": [size(s) for s in t.shape], "strides": [size(s) for s in t.stride()]}


def real(x):
    if math.isnan(x):
        return "NaN"
    return x if math.isfinite(x) else "Infinity" if x > 0 else "-Infinity"


def node_argument(node):
    """A value of the graph as an argument or a result: (kind, what it holds)."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return "as_tensor", {"name": node.name}
    if isinstance(value, (torch.SymBool, bool)):
        return "as_sym_bool", {"as_name": node.name}
    if isinstance(value, (torch.SymInt, int)):
        return "as_sym_int", {"as_name": node.name}
    if isinstance(value, (torch.SymFloat, float)):
        return "as_sym_float", {"as_name": node.name}
    raise CannotWrite(f"a value of {type(value).__name__}")


def list_argument(values, wanted):
    nodes = [isinstance(v, torch.fx.Node) for v in values]
    if "Tensor" in wanted or any(n and isinstance(v.meta.get("val"), torch.Tensor) for n, v in zip(nodes, values)):
        if all(nodes) and "?" not in wanted:
            return {"as_tensors": [{"name": v.name} for v in values]}
        return {"as_optional_tensors": [{"as_none": True} if v is None else {"as_tensor": {"name": v.name}} for v in values]}
    if any(nodes):
        return {"as_sym_ints": [{"as_name": v.name} if n else {"as_int": int(v)} for n, v in zip(nodes, values)]}
    if any(isinstance(v, bool) for v in values):
        return {"as_bools": list(values)}
    if all(isinstance(v, int) for v in values) and "float" not in wanted:
        return {"as_ints": list(values)}
    if all(isinstance(v, (int, float)) for v in values):
        return {"as_floats": [real(float(v)) for v in values]}
    if all(isinstance(v, str) for v in values):
        return {"as_strings": list(values)}
    raise CannotWrite(f"a list of {', '.join(sorted({type(v).__name__ for v in values}))}")


def argument(value, wanted=""):
    if value is None:
        return {"as_none": True}
    if isinstance(value, torch.fx.Node):
        return dict([node_argument(value)])
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, float):
        return {"as_float": real(value)}
    if isinstance(value, str):
        return {"as_string": value}
    if isinstance(value, (list, tuple, torch.Size)):
        return list_argument(value, wanted)
    if isinstance(value, torch.dtype):
        return {"as_scalar_type": dtype_code(value)}
    if isinstance(value, torch.device):
        return {"as_device": {"type": value.type, "index": value.index}}
    if isinstance(value, torch.memory_format):
        return {"as_memory_format": FORMATS[value]}
    if isinstance(value, torch.layout):
        return {"as_layout": 7}
    raise CannotWrite(f"an argument of {type(value).__name__}")


def write_inputs(node):
    parameters = parameters_of(called(node))
    types = dict(parameters)
    given = list(zip((name for name, _ in parameters), node.args)) + list(node.kwargs.items())
    if len(node.args) > len(parameters):
        raise CannotWrite("more arguments than parameters")
    out = [{"name": name, "arg": argument(value, types.get(name, "")), "kind": 1} for name, value in given]
    for source in as_in_memory(node):
        out[0]["arg"] = source["outputs"][0]
    return out


def memory_order(t):
    """The dimensions of a dense tensor, the outermost in memory first; None where it has gaps or overlaps itself."""
    number = lambda s: s if isinstance(s, int) else s.node.hint
    sizes, strides = [number(s) for s in t.shape], [number(s) for s in t.stride()]
    order = sorted(range(t.dim()), key=lambda d: (-strides[d], d)) if 0 not in sizes else []
    dense = 1
    for d in reversed(order):
        if sizes[d] != 1 and strides[d] != dense:
            return None
        dense *= sizes[d]
    return order if t.storage_offset() == 0 and 0 not in sizes else None


def as_in_memory(node):
    """torch.as_strided reads memory by position: the nodes that make of its operand the memory that torch sees."""
    if node.target is not torch.ops.aten.as_strided.default:
        return []
    order = memory_order(node.args[0].meta["val"])
    if order is None:
        raise CannotWrite("as_strided of a tensor with gaps")
    one = lambda function, source, name, rest: {
        "target": "torch.ops.aten." + function, "name": name, "outputs": [{"as_tensor": {"name": name}}],
        "inputs": [{"name": "self", "arg": {"as_tensor": {"name": source}}, "kind": 1}, {"name": rest[0], "arg": rest[1], "kind": 1}]}
    turned, laid = node.name + "_turned", node.name + "_laid"
    return [one("permute.default", node.args[0].name, turned, ("dims", {"as_ints": order})),
            one("clone.default", turned, laid, ("memory_format", {"as_memory_format": FORMATS[torch.contiguous_format]}))]


def write_outputs(node):
    value = node.meta.get("val")
    if value is None or isinstance(node.target, torch._ops.OpOverload) and not node.target._schema.returns:
        return []
    if not isinstance(value, (tuple, list)):
        return [dict([node_argument(node)])]
    names = [""] * len(value)
    for user in node.users:
        if is_getitem(user):
            names[user.args[1]] = names[user.args[1]] or user.name
    returns = node.target._schema.returns
    if len(returns) == 1:
        return [{"as_tensors": [{"name": name} for name in names]}]
    return [{"as_none": True} if v is None else {"as_tensor": {"name": name}} if isinstance(v, torch.Tensor) else
            {"as_sym_int": {"as_name": name}} for name, v in zip(names, value)]


def check_node(node):
    """CannotWrite unless the node can be a part of a program."""
    for value in [node.meta.get("val")] + [n.meta.get("val") for n in node.all_input_nodes]:
        for t in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(t, torch.Tensor):
                tensor_meta(t)
    if not is_getitem(node):
        write_inputs(node)
        write_outputs(node)


def write(gm):
    """The JSON of a graph, and the tensors of its own that stand behind its inputs."""
    inputs, constants, nodes, tensors, numbers, same = [], [], [], {}, {}, {}
    for node in gm.graph.nodes:
        value = node.meta.get("val")
        if node.op in ("placeholder", "get_attr"):
            if node.op == "get_attr":
                value = getattr(gm, node.target)
                node.meta.setdefault("val", value)
                constants.append(value)
            kind, held = node_argument(node)
            if kind == "as_tensor":
                tensors[node.name] = tensor_meta(value)
            elif isinstance(value, torch.SymInt):
                numbers[node.name] = size(value)
            inputs.append((node.op, {kind: held}))
        elif node.op == "call_function":
            if is_getitem(node):
                key = node.args[0].name, node.args[1]
                same.setdefault(key, node.name)
                if same[key] != node.name:
                    node.replace_all_uses_with(next(u for u in node.args[0].users if u.name == same[key]))
                continue
            nodes += as_in_memory(node)
            nodes.append({"target": "torch.ops." + name_of(called(node)), "name": node.name, "inputs": write_inputs(node),
                          "outputs": write_outputs(node)})
        elif node.op == "output":
            results = node.args[0]
            results = list(results) if isinstance(results, (tuple, list)) else [results]
            outputs = [argument(r) for r in results]
            for r in results:
                if isinstance(r, torch.fx.Node) and isinstance(r.meta.get("val"), torch.Tensor):
                    tensors[r.name] = tensor_meta(r.meta["val"])
        else:
            raise CannotWrite(f"a node of the kind {node.op}")
    # The graph's own tensors come last.
    inputs = [a for op, a in inputs if op == "placeholder"] + [a for op, a in inputs if op == "get_attr"]
    graph = {"inputs": inputs, "outputs": outputs, "nodes": nodes, "tensor_values": tensors, "sym_int_values": numbers}
    signature = {"input_specs": [{"user_input": {"arg": a}} for a in inputs],
                 "output_specs": [{"user_output": {"arg": a}} for a in outputs]}
    program = {"schema_version": {"major": MAJOR_VERSION, "minor": 0}, "range_constraints": {},
               "graph_module": {"graph": graph, "signature": signature}}
    return json.dumps(program), constants
