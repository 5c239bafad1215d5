"""senko's speaker diarization behind JSON lines.

    {"audio": PATH} -> {"wall_ms": ..., "turns": [{"speaker", "start", "end"}]}

It runs with its defaults, which on a processor are Silero's voice activity detection and CAM++. The clock runs from the
path of the file to the turns; loading the models is not included.
"""

import contextlib
import sys
import time

import senko
from json_lines import answer_lines


def diarize(diarizer, request):
    begin = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        result = diarizer.diarize(request["audio"])
    wall_ms = (time.perf_counter() - begin) * 1000
    segments = [] if result is None else result["merged_segments"]
    turns = [{"speaker": str(one["speaker"]), "start": one["start"], "end": one["end"]} for one in segments]
    return {"wall_ms": wall_ms, "turns": turns}


def main():
    threads = int(sys.argv[1])
    with contextlib.redirect_stdout(sys.stderr):
        diarizer = senko.Diarizer(device="cpu", warmup=False)
    diarizer.logical_cores = threads  # it would take all cores
    answer_lines(("senko", "torch"), lambda request: diarize(diarizer, request))


main()
