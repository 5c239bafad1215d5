"""Runs the official OpenAI package of PyPI against a gateway. The arguments are base address, model and audio
file."""

import sys

from openai import BadRequestError, OpenAI

base, model, clip = sys.argv[1:]
client = OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0)
WANTED = "what your country can do for you"


def ask(**fields):
    with open(clip, "rb") as file:
        return client.audio.transcriptions.create(model=model, file=file, language="en", **fields)


assert WANTED in ask().text
assert WANTED in ask(response_format="json", include=["logprobs"]).text
verbose = ask(response_format="verbose_json", timestamp_granularities=["word", "segment"])
assert verbose.language == "english" and len(verbose.words) == 22, verbose
assert all(segment.tokens for segment in verbose.segments)
for name in ("text", "srt", "vtt"):
    assert WANTED in str(ask(response_format=name)), name

text, done = "", None
for event in ask(stream=True):
    if event.type == "transcript.text.delta":
        text += event.delta
    elif event.type == "transcript.text.done":
        done = event
assert done is not None and text == done.text and WANTED in text

with open(clip, "rb") as file:
    assert WANTED in client.audio.translations.create(model="whisper-1", file=file).text
assert client.models.list().data[0].id == "auto"
try:
    with open(clip, "rb") as file:
        client.audio.transcriptions.create(model="nope", file=file)
except BadRequestError as error:
    assert error.code == "unknown_model" and error.param == "model", error
else:
    raise AssertionError("an unknown model was accepted")
print("ok")
