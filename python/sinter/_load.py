"""Programs of torch.export.save, without torch."""
import os

from . import _native


def texts(options):
    """Options as the library takes them: names and texts."""
    return {str(name): str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


class Program:
    """A program of a file: called with its inputs, in their order or by their names, it gives its results."""

    def __init__(self, path, options):
        self._program = _native.load(os.fspath(path), texts(options))
        self.input_names = self._program.input_names

    def __call__(self, *inputs, **named):
        inputs = list(inputs)
        for name in self.input_names[len(inputs):]:
            if name not in named:
                raise TypeError(f"the input '{name}' is missing; the program takes {', '.join(self.input_names)}")
            inputs.append(named.pop(name))
        if named:
            raise TypeError(f"the program has no input {', '.join(map(repr, named))}; it takes {', '.join(self.input_names)}")
        results = tuple(like(result, inputs) for result in self._program(inputs))
        return results[0] if len(results) == 1 else results


def like(result, inputs):
    """The result as an array of the inputs' library."""
    if not isinstance(result, _native.Array) or not inputs:
        return result
    library = type(inputs[0]).__module__.partition(".")[0]
    if library in ("numpy", "torch", "cupy"):
        import importlib
        return importlib.import_module(library).from_dlpack(result)
    return result


def load(path, mode="default", **options):
    """The program of a file that torch.export.save wrote, compiled: sinter.load("model.pt2")(x)."""
    return Program(path, {"mode": mode, **options})
