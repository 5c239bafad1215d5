"""Has texts spoken over Wyoming with the reference package, in the way of Home Assistant: one connection for the
description and one for each text. Prints a line of JSON for each. Arguments: port, voice."""

import asyncio
import json
import sys

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncClient
from wyoming.error import Error
from wyoming.info import Describe, Info
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)

port, voice = sys.argv[1:]
CHOSEN = SynthesizeVoice(name=voice)


def client():
    return AsyncClient.from_uri(f"tcp://127.0.0.1:{port}", connect_timeout=10, read_timeout=120)


async def heard(connection, last):
    """What comes until an event of the type `last`."""
    shown = {"types": [], "bytes": 0, "loudest": 0, "errors": []}
    while (event := await connection.read_event()) is not None:
        if AudioChunk.is_type(event.type):
            chunk = AudioChunk.from_event(event)
            shown["bytes"] += len(chunk.audio)
            samples = memoryview(chunk.audio).cast("h")
            shown["loudest"] = max(shown["loudest"], max(map(abs, samples)))
            continue
        shown["types"].append(event.type)
        if AudioStart.is_type(event.type):
            start = AudioStart.from_event(event)
            shown["format"] = [start.rate, start.width, start.channels]
        if Error.is_type(event.type):
            shown["errors"].append(Error.from_event(event).code)
        if last.is_type(event.type):
            break
    return shown


async def main():
    async with client() as connection:
        await connection.write_event(Describe().event())
        (program,) = Info.from_event(await connection.read_event()).tts
        print(json.dumps({
            "name": program.name,
            "streams": program.supports_synthesize_streaming,
            "voices": [v.name for v in program.voices if v.installed],
            "english": all("en" in v.languages for v in program.voices),
        }))
    async with client() as connection:
        await connection.write_event(Synthesize(text="Good evening.", voice=CHOSEN).event())
        print(json.dumps(await heard(connection, AudioStop)))
    async with client() as connection:
        pieces = ["The lights", " are on. The doors ", "are closed."]
        await connection.write_event(SynthesizeStart(voice=CHOSEN).event())
        for piece in pieces:
            await connection.write_event(SynthesizeChunk(text=piece).event())
        # Home Assistant sends the whole text as well, for servers that know nothing of streams.
        await connection.write_event(Synthesize(text="".join(pieces), voice=CHOSEN).event())
        await connection.write_event(SynthesizeStop().event())
        print(json.dumps(await heard(connection, SynthesizeStopped)))


asyncio.run(main())
