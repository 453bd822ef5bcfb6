"""What the scripts share that are asked by others: answering lines on standard input, and rounds of calls."""
import gc
import json
import statistics
import sys
import time


def serve(answer):
    """Until the input ends: `answer` is given the words of a line, and what it raises is told as `failed`."""
    # Compilers write to standard output too; replies keep it for themselves.
    replies, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        try:
            reply = answer(*line.split())
        except Exception as error:  # the driver tells it
            reply = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


class Latest:
    """The case that was asked for last; the one before is freed before another is made."""

    def __init__(self, make):
        self.make, self.name, self.case = make, None, None

    def __call__(self, name, *rest):
        if name != self.name:
            self.name = self.case = None
            gc.collect()
            self.case, self.name = self.make(name, *rest), name
        return self.case


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def timed_calls(work, least):
    """Seconds of each call in a round of at least that long; the first call is not timed."""
    work()
    calls, end = [], time.perf_counter() + least
    while not calls or time.perf_counter() < end:
        calls.append(timed(work))
    return calls


def timed_generations(generate, least):
    """Medians over whole generations for at least that long: `generate` gives the seconds to the first token and those of
    each later one."""
    prefills, steps, end = [], [], time.perf_counter() + least
    while not prefills or time.perf_counter() < end:
        first, later = generate()
        prefills.append(first)
        steps += later
    return {"prefill_s": statistics.median(prefills), "decode_s": statistics.median(steps)}
