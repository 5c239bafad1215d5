"""Makes client secrets with the official OpenAI package of PyPI, and opens live sessions with them. Arguments: base
address with /v1, key."""

import asyncio
import sys

from openai import AsyncOpenAI, AuthenticationError, BadRequestError
from openai.types.beta.realtime import TranscriptionSession
from openai.types.realtime import ClientSecretCreateResponse
from pydantic import TypeAdapter

base, key = sys.argv[1:]
client = AsyncOpenAI(base_url=base, api_key=key, max_retries=0)
INPUT = {
    "format": {"type": "audio/pcm", "rate": 24_000},
    "transcription": {"model": "whisper-1", "language": "de"},
    "turn_detection": {"type": "server_vad", "silence_duration_ms": 300},
}


def valid(answer, kind):
    """The package builds its types without a check, so the check is made here."""
    TypeAdapter(kind).validate_python(answer.to_dict())
    return answer


async def session_of(secret):
    opened = AsyncOpenAI(base_url=base, api_key=secret, max_retries=0)
    try:
        await opened.models.list()
    except AuthenticationError:
        pass
    else:
        raise AssertionError("a client secret lists the models")
    async with opened.realtime.connect(extra_query={"intent": "transcription"}) as connection:
        return (await connection.recv()).session.audio.input


async def main():
    made = await client.realtime.client_secrets.create(
        expires_after={"anchor": "created_at", "seconds": 60},
        session={"type": "transcription", "audio": {"input": INPUT}},
    )
    valid(made, ClientSecretCreateResponse)
    assert made.session.type == "transcription", made
    assert (await session_of(made.value)).transcription.language == "de"
    flat = await client.beta.realtime.transcription_sessions.create(
        input_audio_format="pcm16",
        input_audio_transcription={"model": "whisper-1", "language": "fr"},
        client_secret={"expires_at": {"anchor": "created_at", "seconds": 60}},
    )
    valid(flat, TranscriptionSession)
    assert (await session_of(flat.client_secret.value)).transcription.language == "fr"
    talking = await client.realtime.client_secrets.create(
        session={"type": "realtime", "model": "gpt-realtime", "instructions": "Be short."}
    )
    valid(talking, ClientSecretCreateResponse)
    assert talking.session.type == "realtime" and talking.session.instructions == "Be short.", talking
    print("ok")


asyncio.run(main())
