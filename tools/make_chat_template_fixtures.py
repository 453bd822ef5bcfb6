#!/usr/bin/env python3
"""Records what Jinja, with the settings of Hugging Face, renders for the templates and contexts of a folder.

    pip install jinja2
    python3 tools/make_chat_template_fixtures.py [tests/data/chat_templates]

Reads *.jinja and contexts.json, writes golden.json: every template with every context.
"""
import json
import pathlib
import sys

from jinja2 import Environment
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "tests/data/chat_templates")


def raise_exception(message):
    raise ValueError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment() -> Environment:
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    return env


def main():
    contexts = json.loads((FOLDER / "contexts.json").read_text(encoding="utf-8"))
    golden = []
    for path in sorted(FOLDER.glob("*.jinja")):
        with open(path, encoding="utf-8", newline="") as file:
            template = environment().from_string(file.read())
        for name, context in contexts.items():
            entry = {"template": path.stem, "context": name}
            try:
                entry["output"] = template.render(**context)
            except Exception as error:  # what it says is Jinja's business, that it fails is ours
                entry["error"] = type(error).__name__
            golden.append(entry)
    (FOLDER / "golden.json").write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(len(golden), "cases,", sum("error" in entry for entry in golden), "of them errors")


if __name__ == "__main__":
    main()
