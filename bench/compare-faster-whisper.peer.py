"""faster-whisper behind JSON lines: one request on stdin, one answer on stdout, so that the caller sets the order.

    {"op": "transcribe", "audio": PATH, "language": "en", "words": false, "vad": false}
        -> {"wall_ms": ..., "text": ..., "words": [{"word", "start", "end"}]}
    {"op": "error_rate", "reference": TEXT, "hypothesis": TEXT, "english": true} -> {"rate": ...}

The clock runs from the path of the file to the last segment: decoding of the audio included, loading of the model not.
"""

import argparse
import json
import sys
import time
from importlib.metadata import version

import jiwer
from faster_whisper import WhisperModel
from whisper_normalizer.basic import BasicTextNormalizer
from whisper_normalizer.english import EnglishTextNormalizer


def transcribe(model, request):
    begin = time.perf_counter()
    segments, _ = model.transcribe(
        request["audio"],
        language=None if request["language"] == "auto" else request["language"],
        beam_size=1,
        word_timestamps=request.get("words", False),
        vad_filter=request.get("vad", False),
    )
    heard = []
    first_ms = None
    for segment in segments:  # a generator: the work happens here
        first_ms = first_ms or (time.perf_counter() - begin) * 1000
        heard.append(segment)
    segments = heard
    wall_ms = (time.perf_counter() - begin) * 1000
    words = [
        {"word": word.word.strip(), "start": word.start, "end": word.end}
        for segment in segments
        for word in segment.words or []
    ]
    return {"wall_ms": wall_ms, "first_ms": first_ms or wall_ms, "text": "".join(segment.text for segment in segments).strip(), "words": words}


def error_rate(request):
    normalize = EnglishTextNormalizer() if request["english"] else BasicTextNormalizer()
    return {"rate": jiwer.wer(normalize(request["reference"]), normalize(request["hypothesis"]))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", help="directory of a CTranslate2 Whisper checkpoint")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compute-type", default="int8")
    options = parser.parse_args()
    model = WhisperModel(
        options.model, device="cpu", compute_type=options.compute_type, cpu_threads=options.threads, local_files_only=True
    )
    print(json.dumps({name: version(name) for name in ("faster-whisper", "ctranslate2")}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = transcribe(model, request) if request["op"] == "transcribe" else error_rate(request)
        except Exception as error:  # the caller decides what a failed run means
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
