"""Transcription, words, a stream, speech and chat with the OpenAI package of PyPI.

    pip install openai
    python openai_sdk.py speech.mp3

VOXGATE_URL is the gateway (http://127.0.0.1:8000), VOXGATE_API_KEY its key, if it wants one.
"""

import os
import sys
from pathlib import Path

from openai import OpenAI

# A busy gateway answers 503 with Retry-After: the SDK waits that long and tries again, for a minute here. Errors
# that would only repeat themselves carry X-Should-Retry: false, and the SDK raises them at once.
client = OpenAI(
    base_url=os.environ.get("VOXGATE_URL", "http://127.0.0.1:8000") + "/v1",
    api_key=os.environ.get("VOXGATE_API_KEY", "none"),
    max_retries=12,
)
audio = Path(sys.argv[1])

# What can serve now. Speech and chat are listed only while their upstreams answer.
models = list(client.models.list())


def model_for(capability):
    return next((model.id for model in models if capability in model.capabilities), None)


answer = client.audio.transcriptions.create(
    model="auto", file=audio, response_format="verbose_json", timestamp_granularities=["segment", "word"]
)
print("text:", answer.text.strip())
for word in answer.words:
    print(f"word: {word.start} to {word.end} s {word.word}")

for event in client.audio.transcriptions.create(model="auto", file=audio, stream=True):
    if event.type == "transcript.text.delta":
        print("delta:", event.delta.strip(), flush=True)

if voice := model_for("tts"):
    speech = client.audio.speech.with_streaming_response.create(model=voice, voice="alloy", input=answer.text)
    with speech as response:
        response.stream_to_file("speech.wav")
    print("speech: speech.wav")

if chat := model_for("llm"):
    messages = [{"role": "user", "content": f"Sum up in one sentence: {answer.text}"}]
    print("chat: ", end="")
    for part in client.chat.completions.create(model=chat, messages=messages, stream=True):
        print(part.choices[0].delta.content or "" if part.choices else "", end="", flush=True)
    print()
