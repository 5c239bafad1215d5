"""The requests of Bazarr's Whisper provider (subliminal_patch/providers/whisperai.py), with the same library: the
language of a film is detected, then its subtitles are asked for. Arguments: the address, a file of bare samples."""
import sys

import requests

endpoint, path = sys.argv[1:3]
session = requests.Session()
session.headers["User-Agent"] = "Subliminal/2.1"
with open(path, "rb") as file:
    out = file.read()

r = session.post(
    f"{endpoint}/detect-language",
    params={"encode": "false"},
    files={"audio_file": out},
    timeout=(60, 600),
)
print(r.json()["language_code"], r.json()["detected_language"], flush=True)

for task in ("transcribe", "translate"):
    r = session.post(
        f"{endpoint}/asr",
        params={
            "task": task,
            "language": "en",
            "output": "srt",
            "encode": "false",
            "video_file": "/films/A film (1999).mkv" if task == "transcribe" else None,
        },
        files={"audio_file": out},
        timeout=(60, 600),
    )
    sys.stdout.buffer.write(r.content)
    sys.stdout.flush()
