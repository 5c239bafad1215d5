"""The loop of a peer that answers lines of JSON on standard input, one each, on standard output."""

import json
import sys
from importlib.metadata import version


def answer_lines(packages, answer):
    """Writes the versions of the packages first. An exception becomes {"error": ...}: the caller decides what it means."""
    print(json.dumps({name: version(name) for name in packages}), flush=True)
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), flush=True)
