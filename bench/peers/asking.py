"""What the scripts share that compare with other libraries: asking processes in turns, and tables in Markdown."""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
BENCHES = HERE.parent.parent / "build" / "bench"
# Without these the C library returns large blocks to the system at every call, and torch's time is that of page faults.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 36)}
NOISE = 0.05


class Peer:
    """A process that answers a line of words by a line of JSON (answering.py, bench/support/serve.h)."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})

    def ask(self, *words):
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"failed": "the process ended"}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def in_turn(names, number):
    """Who begins changes from round to round."""
    return list(names) if number % 2 == 0 else list(reversed(names))


def threads_of(count):
    """As many threads for every library; and nothing is asked of a network."""
    return {"SINTER_NUM_THREADS": str(count), "OMP_NUM_THREADS": str(count), "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1"}


def caches_in(folder):
    return {"SINTER_CACHE_DIR": f"{folder}/sinter", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
            "TRITON_CACHE_DIR": f"{folder}/triton"}


def arguments(text, rounds):
    """A parser with what every comparison takes."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=os.environ.get("PEERS_PYTHON", "python3"))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--out", help="all rounds, as JSON")
    return parser


def keep(path, results):
    """Into the file that --out names, where it does."""
    if path:
        pathlib.Path(path).write_text(json.dumps(results, indent=1) + "\n")


def deviation(values):
    return statistics.pstdev(values) / statistics.fmean(values)


def geometric_mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def micro(seconds):
    return f"{seconds * 1e6:.0f}" if seconds * 1e6 >= 100 else f"{seconds * 1e6:.1f}"


def ratio_cell(ratio, spread):
    return f"{ratio:.2f} ±{spread * 100:.0f} %{' !' if spread > NOISE else ''}"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def heading(texts, names=1):
    """The first lines of a table whose first columns are names and the others numbers."""
    return line(texts) + "\n|" + "---|" * names + "--:|" * (len(texts) - names)
