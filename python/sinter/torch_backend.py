"""torch.compile(model, backend="sinter")."""
import contextlib
import functools
import time

import torch

from . import _native, _report
from ._graph import CannotWrite, called, check_node, is_getitem, name_of, write
from ._load import texts

TYPE_CODES = {torch.bool: 6, torch.bfloat16: 4, torch.uint8: 1, torch.float16: 2, torch.float32: 2, torch.float64: 2,
              torch.complex64: 5, torch.complex128: 5}
DEVICES = {"cpu": 1, "cuda": 2}


@functools.lru_cache(maxsize=None)
def takes(name):
    return _native.takes(name)


def refusal(node):
    """Why a node has to stay in torch; empty where Sinter takes it."""
    if not is_getitem(node):
        if not takes(name_of(called(node))):
            return "Sinter has no such function"
    try:
        check_node(node)
    except CannotWrite as reason:
        return f"{reason} cannot be handed over"
    for value in [node.meta.get("val")]:
        for t in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(t, torch.Tensor) and t.device.type not in DEVICES:
                return f"there is no device {t.device.type}"
    return ""


def example(value):
    """What the library has to know of an input to compile for it."""
    if isinstance(value, torch.Tensor):
        hint = lambda s: s if isinstance(s, int) else s.node.hint
        return (TYPE_CODES.get(value.dtype, 0), 8 * value.element_size(), DEVICES[value.device.type], value.device.index or 0,
                [hint(s) for s in value.shape], [hint(s) for s in value.stride()])
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return value.node.hint
    return value


def has_draws(gm):
    return any(isinstance(n.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in n.target.tags
               for n in gm.graph.nodes)


def compile_graph(gm, options):
    """A graph all of whose nodes Sinter takes, as a program that is called with a list."""
    text, constants = write(gm)
    program = _native.read(text, options)
    program.bind(constants, torch.Tensor, torch.from_dlpack)
    values = [n.meta["val"] for n in gm.graph.nodes if n.op == "placeholder"] + constants
    program.prepare([example(v) for v in values])
    return program if hasattr(torch.Tensor, "__dlpack_c_exchange_api__") else by_capsules(program)


def by_capsules(program):
    """Where tensors have no exchange table they pass through Python, which refuses those that want gradients."""
    plain = lambda x: x.detach() if isinstance(x, torch.Tensor) and x.requires_grad else x

    def run(inputs):
        return program([plain(x) for x in inputs])
    return run


def boxed(run):
    """As torch calls what a backend gives: with one list, which it may empty."""
    run._boxed_call = True
    return run


def seeded(program):
    """Random numbers follow torch's generator."""
    def run(inputs):
        _native.seed(int(torch.randint(0, 2**62, ()).item()))
        return program(inputs)
    return run


class Unsupported(RuntimeError):
    """Under fullgraph: what Sinter cannot take."""


def compile_whole(gm, options):
    program = compile_graph(gm, options)
    return boxed(seeded(program) if has_draws(gm) else lambda inputs: program(inputs))


def compile_parts(gm, refused, options):
    """The graph with what Sinter takes cut out and compiled; torch runs the rest. Gives the module and the number of programs."""
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Support(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return node.op == "call_function" and node.name not in refused

    partitioner = CapabilityBasedPartitioner(gm, Support(), allows_single_node_partition=True)
    fused = partitioner.fuse_partitions(partitioner.propose_partitions())
    programs = 0
    for node in fused.graph.nodes:
        if node.op != "call_module":
            continue
        part = getattr(fused, node.target)
        is_single = not isinstance(part.graph.output_node().args[0], (tuple, list))
        run = compile_whole(part, options)
        setattr(fused, node.target, Part(run, is_single))
        programs += 1
    fused.recompile()
    return fused, programs


class Part(torch.nn.Module):
    """A program in the place of a part of a graph."""

    def __init__(self, run, is_single):
        super().__init__()
        self.run, self.is_single = run, is_single

    def forward(self, *inputs):
        results = self.run(list(inputs))
        return results[0] if self.is_single else results


def compile_with_rest(gm, options, fullgraph):
    """The graph as something that is called with a list: one program, or programs and what stays in torch between them."""
    start = time.perf_counter()
    calls = [n for n in gm.graph.nodes if n.op == "call_function"]
    refused = {n.name: reason for n in calls if (reason := refusal(n))}
    while True:
        if refused and fullgraph:
            told = {name_of(n.target): refused[n.name] for n in calls if n.name in refused}
            raise Unsupported("sinter: fullgraph is asked for, and these stay in torch: " +
                              "; ".join(f"{name}: {reason}" for name, reason in told.items()))
        try:
            if not calls:
                run, programs = None, 0
            elif not refused:
                run, programs = compile_whole(gm, options), 1
            else:
                run, programs = compile_parts(torch.fx.GraphModule(gm, gm.graph.__deepcopy__({})), refused, options)
            break
        except _native.Error as error:
            node = getattr(error, "node", "")
            found = next((n for n in calls if n.name == node and node not in refused), None)
            if found is None:
                raise
            refused[node] = str(error).partition("\n")[0]
    _report.count_graph(len(calls), programs, [(name_of(n.target), refused[n.name]) for n in calls if n.name in refused],
                        time.perf_counter() - start)
    if isinstance(run, torch.nn.Module) or run is None:
        module = run or gm
        run = boxed(lambda inputs: module(*inputs))
    return run


@functools.lru_cache(maxsize=None)
def decompositions():
    """Torch's own, but for functions that Sinter has."""
    from torch._decomp import core_aten_decompositions
    return {op: way for op, way in core_aten_decompositions().items() if not takes(str(op))}


def attention_of(example_inputs):
    """Which of its attentions torch puts into a graph: on a GPU the one whose halves Sinter has, for all masks and dtypes."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    if any(isinstance(t, torch.Tensor) and t.is_cuda for t in example_inputs):
        return sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
    return contextlib.nullcontext()


def backend(gm, example_inputs, mode=None, options=None):
    """What torch.compile calls with each graph. Options are the library's, by name, and {"mode": …, "fullgraph": True}."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    options = dict(options or {})
    fullgraph = bool(options.pop("fullgraph", False))
    options.setdefault("mode", mode or "default")
    _native.set_threads(torch.get_num_threads())
    compiler = lambda graph, inputs: compile_with_rest(graph, texts(options), fullgraph)
    with attention_of(example_inputs):
        return aot_autograd(fw_compiler=compiler, bw_compiler=compiler, inference_compiler=compiler,
                            decompositions=decompositions(), partition_fn=min_cut_rematerialization_partition,
                            keep_inference_input_mutations=True)(gm, example_inputs)
