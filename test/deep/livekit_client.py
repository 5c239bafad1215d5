"""Speaks a clip through the speech-to-text of LiveKit's agents for each line of its input, and prints each event as a
line of JSON. Arguments: the base address with /v1, the key, the model, and s16le samples of 16 kHz."""

import asyncio
import json
import sys

from livekit import rtc
from livekit.agents import utils
from livekit.plugins import openai

base, key, model, path = sys.argv[1:]
RATE = 16_000
PIECE = RATE // 50 * 2  # bytes of 20 ms


def show(**event):
    print(json.dumps(event), flush=True)


async def main():
    with open(path, "rb") as file:
        speech = file.read()
    async with utils.http_context.open():
        stt = openai.STT(base_url=base, api_key=key, model=model, use_realtime=True)
        stream = stt.stream()

        async def talk():
            while await asyncio.to_thread(sys.stdin.readline):
                # Four times as fast as speech, with time for texts of what was said so far.
                for at in range(0, len(speech), PIECE):
                    piece = speech[at : at + PIECE]
                    stream.push_frame(rtc.AudioFrame(piece, RATE, 1, len(piece) // 2))
                    await asyncio.sleep(0.005)
            await stream.aclose()

        talking = asyncio.create_task(talk())
        try:
            async for event in stream:
                shown = {"type": event.type.value}
                if event.alternatives:
                    heard = event.alternatives[0]
                    shown |= {"text": heard.text, "language": heard.language}
                show(**shown)
        except Exception as error:
            show(type="error", text=str(error))
        else:
            await talking
        await stt.aclose()


asyncio.run(main())
