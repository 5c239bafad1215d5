"""Holds a talk of three turns with the official OpenAI package of PyPI: a question that needs a tool, a story, and an
interruption of it. Prints what was seen as JSON. Arguments: base address with /v1, key, s16le samples of 24 kHz that
are one utterance with the pause behind it."""

import asyncio
import base64
import json
import sys

from openai import AsyncOpenAI

base, key, path = sys.argv[1:]
CLOCK = {
    "type": "function",
    "name": "clock",
    "description": "The time of day.",
    "parameters": {
        "type": "object",
        "properties": {"zone": {"type": "string", "enum": ["UTC", "CET"]}},
        "required": ["zone"],
    },
}
seen = {"answers": [], "tools": [], "statuses": [], "bytes": 0}


async def main():
    client = AsyncOpenAI(base_url=base, api_key=key, max_retries=0)
    async with client.realtime.connect(model="gpt-realtime") as connection:
        await connection.session.update(
            session={
                "type": "realtime",
                "tools": [CLOCK],
                "tool_choice": {"type": "function", "name": "clock"},
                "audio": {
                    "input": {"transcription": {"model": "whisper-1"}, "turn_detection": {"type": "server_vad"}}
                },
            }
        )

        async def say():
            with open(path, "rb") as file:
                await connection.input_audio_buffer.append(audio=base64.b64encode(file.read()).decode())

        await say()
        turns = 1
        async for event in connection:
            if event.type == "error":
                raise SystemExit(event.error.message)
            if event.type == "response.output_audio.delta":
                seen["bytes"] += len(base64.b64decode(event.delta))
                if turns == 2:  # speaks over the story
                    turns = 3
                    await say()
            if event.type == "response.output_audio_transcript.done":
                seen["answers"].append(event.transcript)
            if event.type == "response.function_call_arguments.done":
                seen["tools"].append([event.name, json.loads(event.arguments)["zone"]])
                await connection.session.update(session={"type": "realtime", "tool_choice": "auto"})
                output = {"type": "function_call_output", "call_id": event.call_id, "output": "noon"}
                await connection.conversation.item.create(item=output)
            if event.type == "response.done":
                seen["statuses"].append(event.response.status)
                if event.response.output[0].type == "function_call":
                    await connection.response.create()
                elif turns == 1:
                    turns = 2
                    await say()
                elif len(seen["statuses"]) == 4:
                    break
    print(json.dumps(seen))


asyncio.run(asyncio.wait_for(main(), 170))
