"""Sinter: a compiler for tensor programs.

    model = torch.compile(model, backend="sinter")     # what Sinter cannot take stays in torch; sinter.report() tells
    y = sinter.load("model.pt2")(x)                    # a file of torch.export.save, on numpy, torch or any DLPack array
"""
from ._native import Array, Error, __version__, seed, set_threads
from ._load import load
from ._report import report, reset_report

__all__ = ["Array", "Error", "load", "report", "reset_report", "seed", "set_threads", "__version__"]
