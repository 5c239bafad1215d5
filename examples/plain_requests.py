"""Transcription, words, a stream, speech and chat with requests: `python plain_requests.py speech.mp3`.
VOXGATE_URL is the gateway (http://127.0.0.1:8000), VOXGATE_API_KEY its key, if it wants one.
"""

import json
import os
import sys
import time
from pathlib import Path

import requests

URL = os.environ.get("VOXGATE_URL", "http://127.0.0.1:8000")
session = requests.Session()
session.headers["Authorization"] = f"Bearer {os.environ.get('VOXGATE_API_KEY', 'none')}"
AUDIO = Path(sys.argv[1]).read_bytes()


def send(method, path, tries=12, **content):
    response = session.request(method, URL + path, timeout=(5, 600), **content)
    if response.ok:
        return response
    error = response.json()["error"]
    retry_after = response.headers.get("Retry-After")  # only a busy gateway sends it
    if retry_after is None or tries == 1:
        sys.exit(f"{error['kind']} {error['code']}: {error['message']}")
    print(f"The gateway is busy ({error['held_by']}); trying again in {retry_after} s", file=sys.stderr)
    time.sleep(float(retry_after))
    return send(method, path, tries - 1, **content)


def transcribe(**fields):
    path, files = "/v1/audio/transcriptions", {"file": ("audio", AUDIO)}
    return send("POST", path, files=files, data=fields, stream="stream" in fields)


models = {m["capabilities"][0]: m["id"] for m in send("GET", "/v1/models").json()["data"]}  # what can serve now
answer = transcribe(response_format="verbose_json", timestamp_granularities=["word"]).json()
print("text:", answer["text"].strip())
for word in answer["words"]:
    print(f"word: {word['start']} to {word['end']} s {word['word']}")

for line in transcribe(stream="true").iter_lines():
    event = json.loads(line[6:]) if line.startswith(b"data: ") else {"type": None}
    if event["type"] == "transcript.text.delta":
        print("delta:", event["delta"].strip(), flush=True)
    elif event["type"] == "error":  # a failure after the answer began
        sys.exit(event["error"]["message"])

if "tts" in models:
    wish = {"model": models["tts"], "voice": "alloy", "input": answer["text"]}
    Path("speech.wav").write_bytes(send("POST", "/v1/audio/speech", json=wish).content)
    print("speech: speech.wav")
if "llm" in models:
    messages = [{"role": "user", "content": f"Sum up in one sentence: {answer['text']}"}]
    chat = send("POST", "/v1/chat/completions", json={"model": models["llm"], "messages": messages}).json()
    print("chat:", chat["choices"][0]["message"]["content"])
