"""faster-whisper behind JSON lines: one request on stdin, one answer on stdout, so that the caller sets the order. The
argument is JSON, too: the model, which is a directory of a CTranslate2 checkpoint, with threads, device, type and beam.

    {"audio": PATH, "language": "en", "words": false, "vad": false}
        -> {"wall_ms": ..., "first_ms": ..., "text": ..., "words": [{"word", "start", "end"}], "language": "en"}

The clock runs from the path of the file to the last segment. Decoding the audio is included, loading the model is
not.
"""

import json
import sys
import time

from faster_whisper import BatchedInferencePipeline, WhisperModel
from json_lines import answer_lines


def transcribe(model, request, beam, batched):
    options = {
        "language": None if request["language"] == "auto" else request["language"],
        "beam_size": beam,
        "word_timestamps": request["words"],
    }
    # The batched mode filters by itself, and has to: its batches are made of the spans that the filter finds.
    if not batched:
        options["vad_filter"] = request["vad"]
    begin = time.perf_counter()
    segments, info = model.transcribe(request["audio"], **options)
    heard = []
    first_ms = None
    for segment in segments:  # the segments come from a generator, so the work happens here
        first_ms = first_ms or (time.perf_counter() - begin) * 1000
        heard.append(segment)
    wall_ms = (time.perf_counter() - begin) * 1000
    words = [
        {"word": word.word.strip(), "start": word.start, "end": word.end}
        for segment in heard
        for word in segment.words or []
    ]
    # Segments of the batched mode come without the space between them.
    text = " ".join(segment.text.strip() for segment in heard)
    return {
        "wall_ms": wall_ms,
        "first_ms": first_ms or wall_ms,
        "text": text,
        "words": words,
        "language": info.language,
    }


options = json.loads(sys.argv[1])
beam, batched = options["beam"], options["batched"]
model = WhisperModel(
    options["model"],
    device=options["device"],
    compute_type=options["type"],
    cpu_threads=options["threads"],
    local_files_only=True,
)
if batched:
    model = BatchedInferencePipeline(model)
answer_lines(("faster-whisper", "ctranslate2"), lambda request: transcribe(model, request, beam, batched))
