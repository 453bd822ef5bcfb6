"""What torch.compile gave to Sinter, and what stayed in torch."""
import collections
import threading

_lock = threading.Lock()


class Report:
    """Counts since the process began, or since reset_report(). Printed, a text for people."""

    def __init__(self):
        self.graphs = 0            # that torch handed over
        self.whole = 0             # of them those without a node in torch
        self.programs = 0          # that Sinter compiled
        self.nodes = 0             # of all graphs
        self.seconds = 0.0         # spent in compiling
        self.in_torch = collections.Counter()  # nodes that stayed in torch, by what they call
        self.reasons = {}          # why, by what they call

    @property
    def nodes_in_torch(self):
        return sum(self.in_torch.values())

    def __str__(self):
        share = 100 * (1 - self.nodes_in_torch / self.nodes) if self.nodes else 100
        lines = [f"{self.graphs} graphs of {self.nodes} nodes: {self.whole} whole, {share:.1f} % of the nodes run by Sinter "
                 f"in {self.programs} programs, {self.seconds:.2f} s of compiling"]
        for name, count in self.in_torch.most_common():
            lines.append(f"  in torch: {name}, {count} {'time' if count == 1 else 'times'}: {self.reasons[name]}")
        return "\n".join(lines)

    __repr__ = __str__


_report = Report()


def report():
    """What became of the graphs that torch.compile(backend="sinter") has handed over so far."""
    return _report


def reset_report():
    global _report
    with _lock:
        _report = Report()


def count_graph(nodes, programs, in_torch, seconds):
    """in_torch: (what a node calls, why it stays) for each node."""
    with _lock:
        _report.graphs += 1
        _report.whole += not in_torch
        _report.programs += programs
        _report.nodes += nodes
        _report.seconds += seconds
        for name, reason in in_torch:
            _report.in_torch[name] += 1
            _report.reasons[name] = reason
