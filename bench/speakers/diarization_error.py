"""Errors of diarization behind JSON lines, as pyannote.metrics and meeteval count them.

    {"seconds": 60.0, "rttm": PATH, "turns": [{"speaker", "start", "end"}], "stm": PATH or null,
     "words": [{"speaker", "word"}] or null}
        -> {"speech": ..., "missed": ..., "falseAlarm": ..., "confusion": ..., "jaccard": ..., "known": 3, "found": 3,
            "words": ..., "wordErrors": ...}

Times are seconds; `speech` counts those of two speakers at once twice. There is no collar, and speech of several at once
counts. `jaccard` is the Jaccard error rate of this file. Words are compared as for Whisper's own evaluation, and are
null where the words of the file are unknown.
"""

import re

from json_lines import answer_lines
from meeteval.io import STM, SegLST
from meeteval.wer import cpwer
from pyannote.core import Annotation, Segment, Timeline
from pyannote.database.util import load_rttm
from pyannote.metrics.diarization import DiarizationErrorRate, JaccardErrorRate
from whisper_normalizer.basic import BasicTextNormalizer

NORMALIZE = BasicTextNormalizer()


def normalize(text):
    return re.sub(r"(?<=\d)(?=\d)", " ", NORMALIZE(text)).strip()


def annotation(turns):
    found = Annotation()
    for i, turn in enumerate(turns):
        found[Segment(turn["start"], turn["end"]), i] = turn["speaker"]
    return found


def reference_of(path):
    files = load_rttm(path)
    return next(iter(files.values())) if files else Annotation()


def word_errors(stm, words):
    reference = [
        {"session_id": "file", "speaker": one["speaker"], "words": normalize(one["words"])}
        for one in STM.load(stm).to_seglst()
    ]
    speakers = dict.fromkeys(one["speaker"] for one in words)
    # One segment for each speaker, because their words are in order.
    hypothesis = [
        {
            "session_id": "file",
            "speaker": speaker,
            "words": normalize(" ".join(one["word"] for one in words if one["speaker"] == speaker)),
        }
        for speaker in speakers
    ]
    result = cpwer(SegLST(reference), SegLST(hypothesis), reference_sort=False, hypothesis_sort=False)["file"]
    return {"words": result.length, "wordErrors": result.errors}


def score(request):
    reference, hypothesis = reference_of(request["rttm"]), annotation(request["turns"])
    whole = Timeline([Segment(0, request["seconds"])])
    parts = DiarizationErrorRate(collar=0.0, skip_overlap=False)(reference, hypothesis, uem=whole, detailed=True)
    answer = {
        "speech": parts["total"],
        "missed": parts["missed detection"],
        "falseAlarm": parts["false alarm"],
        "confusion": parts["confusion"],
        "jaccard": JaccardErrorRate(collar=0.0, skip_overlap=False)(reference, hypothesis, uem=whole),
        "known": len(reference.labels()),
        "found": len(hypothesis.labels()),
        "words": None,
        "wordErrors": None,
    }
    if request["stm"] is None or not request["words"]:
        return answer
    return {**answer, **word_errors(request["stm"], request["words"])}


answer_lines((), score)
