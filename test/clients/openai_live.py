"""Speaks a clip live with the official OpenAI package of PyPI, and prints the transcript. Arguments: base address with
/v1, key, model, s16le samples of 24 kHz."""

import asyncio
import base64
import sys

from openai import AsyncOpenAI
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

base, key, model, path = sys.argv[1:]
PIECE = 24_000 // 10 * 2  # bytes of 100 ms
EVENTS = TypeAdapter(RealtimeServerEvent)


def valid(event):
    """The package builds its types without a check, so the check is made here. A type that it does not know is a
    fault, too."""
    checked = EVENTS.validate_python(event.to_dict())
    assert checked.type == event.type and not checked.model_extra, checked
    return event


async def main():
    client = AsyncOpenAI(base_url=base, api_key=key, max_retries=0)
    async with client.realtime.connect(extra_query={"intent": "transcription"}) as connection:
        assert valid(await connection.recv()).type == "session.created"
        await connection.session.update(
            session={
                "type": "transcription",
                "audio": {
                    "input": {
                        "format": {"type": "audio/pcm", "rate": 24_000},
                        "transcription": {"model": model, "language": "en", "delay": "minimal"},
                        "turn_detection": {"type": "server_vad", "silence_duration_ms": 1500},
                    }
                },
            }
        )
        updated = valid(await connection.recv())
        assert updated.type == "session.updated", updated

        async def speak():
            with open(path, "rb") as file:
                while piece := file.read(PIECE):
                    await connection.input_audio_buffer.append(audio=base64.b64encode(piece).decode())
                    await asyncio.sleep(0.025)

        speaking = asyncio.create_task(speak())
        deltas = 0
        async for event in connection:
            assert valid(event).type != "error", event
            deltas += event.type == "conversation.item.input_audio_transcription.delta"
            if event.type == "conversation.item.input_audio_transcription.completed":
                assert deltas > 0 and event.usage.seconds > 10, event
                print(event.transcript)
                break
        await speaking


asyncio.run(main())
