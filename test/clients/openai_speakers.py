"""Asks who said what with the official OpenAI package of PyPI. The arguments are base address, audio file, the voice
of Anna as a data URL, and the expected segments as JSON."""

import json
import sys

from openai import OpenAI
from openai.types.audio import TranscriptionDiarized, TranscriptionTextSegmentEvent

base, clip, reference, expected = sys.argv[1:]
expected = json.loads(expected)
client = OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0)


def ask(**fields):
    with open(clip, "rb") as file:
        return client.audio.transcriptions.create(file=file, **fields)


def valid(answer, kind):
    """The package builds its types without a check, so the check is made here. A member that it does not know is a
    fault, too."""
    assert isinstance(answer, kind), type(answer)
    kind.model_validate(answer.to_dict())
    assert not answer.model_extra, answer.model_extra
    return answer


known = {
    "model": "gpt-4o-transcribe-diarize",
    "response_format": "diarized_json",
    "chunking_strategy": "auto",
    "known_speaker_names": ["Anna"],
    "known_speaker_references": [reference],
}
whole = valid(ask(**known), TranscriptionDiarized)
assert [[s.id, s.speaker, s.text] for s in whole.segments] == expected, whole.segments
assert whole.usage.seconds == 12, whole.usage

segments, text, done = [], "", None
for event in ask(**known, stream=True):
    if event.type == "transcript.text.segment":
        valid(event, TranscriptionTextSegmentEvent)
        segments.append([event.id, event.speaker, event.text])
    elif event.type == "transcript.text.delta":
        text += event.delta
    elif event.type == "transcript.text.done":
        done = event
assert segments == expected, segments
assert done is not None and text == done.text

verbose = ask(
    model="whisper-1",
    response_format="verbose_json",
    timestamp_granularities=["word", "segment"],
    extra_body={"diarize": "true"},
)
assert "".join(s.speaker for s in verbose.segments) == "ABA", verbose.segments
assert "".join(w.speaker for w in verbose.words) == "A" * 8 + "B" * 8 + "A" * 8, verbose.words
print("ok")
