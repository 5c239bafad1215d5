"""Transcribes with transcribe.cpp: transcribe_cpp_peer.py MODEL THREADS

A request is {"path": 32-bit floats at 16 kHz, "language"}. The answer has the tokens, with milliseconds where the family
gives times, the text with the tags and times in it, and the processor time in milliseconds.
"""

import sys
import time
from array import array

import transcribe_cpp
from json_lines import answer_lines

model = transcribe_cpp.Model(sys.argv[1], backend="cpu")
session = model.session(n_threads=int(sys.argv[2]))
# One attempt, as a call of the addon is.
family = transcribe_cpp.WhisperRunOptions(temperature_inc=0.0) if model.arch == "whisper" else None
# The model of SenseVoice writes punctuation and digits when it is asked for, as the gateway asks it.
itn = "on" if model.supports("itn") else "default"
times = "token" if model.capabilities.max_timestamp_kind == "token" else "auto"


def answer(request):
    samples = array("f")
    with open(request["path"], "rb") as file:
        samples.frombytes(file.read())
    before = time.process_time()
    result = session.run(samples, language=request.get("language"), timestamps=times, itn=itn, family=family,
                         keep_special_tags=True)  # fmt: skip
    cpu = (time.process_time() - before) * 1000
    tokens = [{"id": token.id, "start": token.t0_ms, "end": token.t1_ms} for token in result.tokens]
    return {"tokens": tokens, "text": result.raw_text, "cpu": cpu}


answer_lines(["transcribe-cpp"], answer)
