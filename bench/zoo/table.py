"""What the zoo's records say: the state of a road, a line, a summary, and the table."""
import math
import pathlib

from compare import RIGHT, ROUNDINGS

ROADS = ("pt2", "decomposed", "onnx", "backend", "peer")
# States of a road that running it again would not change.
DONE = ("right", "draws", "torch fails", "not exported", "not built")


def is_close(off, rounding):
    return off is not None and off <= max(RIGHT, ROUNDINGS * (rounding or 0))


def stage_state(record, road, stage):
    told = record[road].get(stage)
    if told is None:
        return "not reached"
    if "error" in told:
        return "error"
    return "right" if is_close(told.get("off"), record["model"].get("rounding")) else "wrong"


def file_state(record, road):
    told = record[road]
    if "error" in record["model"] and not record["model"].get("parameters"):
        return "not built"
    if "not exported" in told or "imported" not in told:
        return "not exported"
    if "error" in told["imported"]:
        return "refused"
    if record["model"].get("draws"):
        return "draws" if all("error" not in told.get(s, {}) for s in ("eager", "compiled")) else "error"
    stages = [stage_state(record, road, s) for s in ("eager", "compiled")]
    if stages[1] == "error" and stage_state(record, road, "in segments") == "right":
        stages[1] = "right"  # in several programs; the table counts those apart
    return "right" if stages == ["right", "right"] else "died" if "died" in told else "error" if "error" in stages else "wrong"


def backend_state(told):
    if "error" in told:
        return "torch fails" if "error" in told.get("aot_eager", {}) else "error"
    if told.get("draws"):
        return "draws"
    if is_close(told.get("off"), told.get("rounding")) and is_close(told.get("again"), told.get("rounding")):
        return "right"
    other = told.get("aot_eager", {})
    return "torch fails" if other and not other.get("draws") and backend_state(other) != "right" else "wrong"


def gradient_state(told):
    """Of a training step; empty where there is none."""
    grads = told.get("gradients")
    if not grads or told.get("draws"):
        return ""
    if "error" not in grads and is_close(grads.get("off"), grads.get("rounding")):
        return "right"
    other = told.get("aot_eager", {})
    if other.get("gradients") and gradient_state(other) not in ("right", ""):
        return "torch fails"
    return "error" if "error" in grads else "wrong"


def state(record, road):
    """right, wrong, error …; of the backend both directions together."""
    if road in ("backend", "peer"):
        forward = backend_state(record[road])
        if forward != "right":
            return forward
        return gradient_state(record[road]) or "right"
    return file_state(record, road)


def reason(record, road):
    """Why a road is not right, in one line."""
    told = record[road]
    if road in ("backend", "peer"):
        grads = told.get("gradients", {})
        text = told.get("error") or grads.get("error")
        if text is None and backend_state(told) != "right":
            text = f"off by {told['off']:.2g}, {told['again']:.2g} (torch's own rounding {told.get('rounding', math.nan):.2g})"
        if text is None:
            text = (f"gradient of {grads.get('worst')} off by {grads.get('off', math.nan):.2g} "
                    f"(rounding {grads.get('rounding', math.nan):.2g})")
        return text.replace("\n", " ")
    for stage in ("imported", "eager", "compiled", "in segments"):
        if "error" in told.get(stage, {}):
            return f"{stage}: {told[stage]['error']}".replace("\n", " ")
    for stage in ("eager", "compiled", "in segments"):
        if stage in told and stage_state(record, road, stage) == "wrong":
            own = record["model"].get("rounding", math.nan)
            return f"{stage}: off by {told[stage].get('off')} (torch's own rounding {own:.2g})"
    return (told.get("died") or told.get("not exported") or record["model"].get("error") or "").replace("\n", " ")


def tell(record, road):
    now = state(record, road)
    rest = "" if now in ("right", "draws") else " (" + reason(record, road)[:160] + ")"
    stays = {f: k for told in (record[road], record[road].get("gradients") or {}) for f, k in told.get("in_torch", {}).items()}
    return f"{road} {now}{rest}" + (f" in torch {stays}" if stays else "")


def geometric_mean(values):
    values = [v for v in values if v and v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def summary(records):
    lines = [f"{len(records)} models"]
    for road in ROADS:
        among = {n: r for n, r in records.items() if road in r}
        if not among:
            continue
        states = {}
        for n, r in among.items():
            states.setdefault(state(r, road), []).append(n)
        ran = len(among) - sum(len(states.get(s, [])) for s in ("not built", "not exported", "torch fails", "draws"))
        right = len(states.get("right", []))
        lines.append(f"{road}: {right} of {ran} right" + (f" ({100 * right / ran:.1f} %)" if ran else "") + "; " +
                     ", ".join(f"{len(v)} {s}" for s, v in states.items() if s != "right"))
        if road in ("pt2", "decomposed", "onnx"):
            parts = sum("error" in r[road].get("compiled", {}) for n, r in among.items() if n in states.get("right", []))
            lines.append(f"  of the right ones {parts} compiled in segments")
        else:
            lines += backend_lines(among, road)
        for s, names in states.items():
            if s not in ("right",):
                lines += [f"  {s}: {n}: {reason(records[n], road)[:300]}" for n in names if s != "draws"]
                lines += [f"  draws: {' '.join(names)}"] if s == "draws" else []
    return "\n".join(lines)


def backend_lines(among, road):
    told = [r[road] for r in among.values() if "nodes" in r[road] and backend_state(r[road]) != "torch fails"]
    forward = [backend_state(r[road]) for r in among.values()]
    trained = [s for s in map(lambda r: gradient_state(r[road]), among.values()) if s and s != "torch fails"]
    lines = [f"  inference: {forward.count('right')} right; training step: gradients of {trained.count('right')} of {len(trained)} right"]
    if told:
        stay = sum(sum(t["in_torch"].values()) for t in told)
        nodes = sum(t["nodes"] for t in told)
        steps = [t["gradients"] for t in told if "nodes" in t.get("gradients", {})]
        lines.append(f"  no node in torch: inference {sum(not t['in_torch'] for t in told)} of {len(told)} models ({stay} of {nodes} nodes), "
                     f"training {sum(not t['in_torch'] for t in steps)} of {len(steps)}")
        functions = {}
        for t in [*told, *steps]:
            for f in t["in_torch"]:
                functions.setdefault((f, t["reasons"].get(f, "")[:120]), []).append(1)
        lines += [f"  in torch: {f} in {len(k)} graphs: {why}" for (f, why), k in sorted(functions.items(), key=lambda e: -len(e[1]))]
    return lines


def markdown(records):
    """One line a model."""
    columns = ("model", "nodes", ".pt2", "decomposed", "backend", "whole", "nodes run", "gradients", "cold s", "step ms", "eager ms",
               "peer cold s", "peer ms")
    lines = ["| " + " | ".join(columns) + " |", "|---|--:|---|---|---|---|--:|---|--:|--:|--:|--:|--:|"]
    number = lambda x, scale=1: "" if x is None else f"{x * scale:.3g}"
    for name, record in records.items():
        back, peer = record.get("backend", {}), record.get("peer", {})
        stay, nodes = sum(back.get("in_torch", {}).values()), back.get("nodes")
        lines.append("| " + " | ".join([
            name, str(record.get("pt2", {}).get("nodes", "")), *(state(record, r) if r in record else "" for r in ("pt2", "decomposed")),
            backend_state(back) if back else "", "" if nodes is None else "yes" if not stay else "no",
            f"{100 * (1 - stay / nodes):.1f} %" if nodes else "", gradient_state(back),
            number(back.get("cold") if "step" in back else None), number(back.get("step"), 1e3), number(back.get("eager step"), 1e3),
            number(peer.get("cold")), number(peer.get("step"), 1e3)]) + " |")
    return "\n".join(lines + ["", summary(records), "", known()])


def known():
    return (pathlib.Path(__file__).parent / "known.txt").read_text()
