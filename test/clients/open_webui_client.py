"""The requests of Open WebUI 0.12.4 (open_webui/routers/audio/__init__.py), with the same library: a recording is
transcribed, models and voices are listed, and a text is spoken. The settings are in the environment, the recording
is the argument."""

import asyncio
import json
import os
import sys

import aiohttp

env = os.environ


async def transcribe(session, path):
    async def chunks():
        with open(path, "rb") as file:
            while chunk := file.read(1024 * 1024):
                yield chunk

    # When a request fails, it is sent again without the language.
    for language in ("en", None):
        form = aiohttp.FormData()
        form.add_field("model", env["AUDIO_STT_MODEL"])
        if language:
            form.add_field("language", language)
        form.add_field("file", chunks(), filename=os.path.basename(path))
        response = await session.post(
            f"{env['AUDIO_STT_OPENAI_API_BASE_URL']}/audio/transcriptions",
            headers={"Authorization": f"Bearer {env['AUDIO_STT_OPENAI_API_KEY']}"},
            data=form,
        )
        if response.status == 200:
            break
    response.raise_for_status()
    return (await response.json())["text"]


async def offers(session):
    """The models and voices among which an administrator chooses; the keys are not sent."""
    base = env["AUDIO_TTS_OPENAI_API_BASE_URL"]
    response = await session.get(f"{base}/audio/models")
    if response.status != 200:
        response = await session.get(f"{base}/models")
        response.raise_for_status()
    models = await response.json()
    voices = await session.get(f"{base}/audio/voices")
    return [model["id"] for model in models.get("data", models.get("models"))], voices.status


async def speak(session):
    response = await session.post(
        f"{env['AUDIO_TTS_OPENAI_API_BASE_URL']}/audio/speech",
        json={"input": "Hello.", "voice": env["AUDIO_TTS_VOICE"], "model": env["AUDIO_TTS_MODEL"]},
        headers={
            "Content-Type": "application/json",
            "Authorization": f"Bearer {env['AUDIO_TTS_OPENAI_API_KEY']}",
        },
    )
    response.raise_for_status()
    return response.headers.get("Content-Type"), len(await response.read())


async def main():
    assert env["AUDIO_STT_ENGINE"] == env["AUDIO_TTS_ENGINE"] == "openai"
    async with aiohttp.ClientSession(trust_env=True) as session:
        text = await transcribe(session, sys.argv[1])
        models, voices_status = await offers(session)
        content_type, length = await speak(session)
    print(json.dumps([text, models, voices_status, content_type, length]))


asyncio.run(main())
