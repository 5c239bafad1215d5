"""Asks for transcripts over Wyoming with the reference package, in the way of Home Assistant: one connection for the
description and one for each transcription. Prints a line of JSON for each. Arguments: port, model, wav file."""

import asyncio
import json
import sys
import wave

from wyoming.asr import Transcribe, Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.audio import AudioStart, AudioStop, wav_to_chunks
from wyoming.client import AsyncClient
from wyoming.error import Error
from wyoming.info import Describe, Info
from wyoming.ping import Ping, Pong

port, model, path = sys.argv[1:]
URI = f"tcp://127.0.0.1:{port}"


def client():
    return AsyncClient.from_uri(URI, connect_timeout=10, read_timeout=120)


async def speak(connection, transcribe):
    """The audio of the file, then what comes until the transcript, or until the gateway ends the connection."""
    await connection.write_event(transcribe.event())
    with wave.open(path, "rb") as file:
        for part in wav_to_chunks(file, 1024, start_event=True, stop_event=True):
            await connection.write_event(part.event())
    seen = []
    while (event := await connection.read_event()) is not None:
        seen.append(event)
        if TranscriptStop.is_type(event.type):
            break
    return seen


def shown(events):
    chunks = [TranscriptChunk.from_event(e).text for e in events if TranscriptChunk.is_type(e.type)]
    texts = [Transcript.from_event(e) for e in events if Transcript.is_type(e.type)]
    errors = [Error.from_event(e).code for e in events if Error.is_type(e.type)]
    return {
        "first": events[0].type,
        "last": events[-1].type,
        "chunks": "".join(chunks),
        "texts": [t.text for t in texts],
        "languages": [t.language for t in texts],
        "errors": errors,
    }


async def main():
    async with client() as connection:
        await connection.write_event(Describe().event())
        (program,) = Info.from_event(await connection.read_event()).asr
        await connection.write_event(Ping(text="there?").event())
        pong = Pong.from_event(await connection.read_event())
        installed = [m for m in program.models if m.installed]
        print(json.dumps({
            "name": program.name,
            "streams": program.supports_transcript_streaming,
            "models": [m.name for m in installed],
            "english": all("en" in m.languages for m in installed),
            "pong": pong.text,
        }))
    async with client() as connection:
        # Both transcriptions are asked for on one connection.
        for transcribe in (Transcribe(language="en"), Transcribe(name=model, transcript_names=["Americans"])):
            print(json.dumps(shown(await speak(connection, transcribe))))
    async with client() as connection:
        try:
            print(json.dumps(shown(await speak(connection, Transcribe(name="nonsense")))))
        except OSError:  # the gateway has closed while the audio was sent, as Home Assistant expects it to
            print(json.dumps({"errors": ["closed"]}))
    async with client() as connection:
        await connection.write_event(AudioStart(rate=16_000, width=2, channels=1).event())
        await connection.write_event(AudioStop().event())
        events = [await connection.read_event() for _ in range(3)]
        print(json.dumps([e.type for e in events] + [TranscriptStart.is_type(events[0].type)]))


asyncio.run(main())
