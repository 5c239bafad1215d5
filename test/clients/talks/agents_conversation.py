"""The same talk as openai_conversation.py with the package openai-agents. Arguments: base address with /v1, key, samples."""

import asyncio
import json
import sys
from typing import Literal

from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner

base, key, path = sys.argv[1:]
seen = {"answers": [], "tools": [], "interruptions": 0, "bytes": 0, "errors": []}


@function_tool
def clock(zone: Literal["UTC", "CET"]) -> str:
    """The time of day."""
    seen["tools"].append(["clock", zone])
    return "noon"


answers = {}


def answers_in(history):
    """The texts of the assistant that are whole, in order, as they were before what is said next, sooner than they could
    be played, has cut them short."""
    for item in history:
        if item.type == "message" and item.role == "assistant" and item.status == "completed":
            text = "".join(getattr(part, "transcript", None) or "" for part in item.content)
            answers[item.item_id] = max(answers.get(item.item_id, ""), text, key=len)
    return list(answers.values())


async def main():
    with open(path, "rb") as file:
        utterance = file.read()
    runner = RealtimeRunner(
        RealtimeAgent(name="Host", instructions="Be brief.", tools=[clock]),
        config={"model_settings": {"turn_detection": {"type": "server_vad"}}},
    )
    url = base.replace("http", "ws", 1) + "/realtime?model=gpt-realtime"
    async with await runner.run(model_config={"url": url, "api_key": key}) as session:
        await session.send_audio(utterance)
        turns = 1
        async for event in session:
            if event.type == "error":
                seen["errors"].append(str(event.error))
                break
            if event.type == "audio":
                seen["bytes"] += len(event.audio.data)
                if turns == 2:
                    turns = 3
                    await session.send_audio(utterance)
            if event.type == "audio_interrupted":
                seen["interruptions"] += 1
            if event.type == "history_updated":
                seen["answers"] = answers_in(event.history)
            if event.type == "audio_end" and turns == 1:
                turns = 2
                await session.send_audio(utterance)
            if turns == 3 and len(seen["answers"]) == 2:
                break
    print(json.dumps(seen))


asyncio.run(asyncio.wait_for(main(), 170))
