"""The same talk as openai_conversation.py with an agent of LiveKit, livekit-plugins-openai. Arguments: base address with
/v1, key, samples."""

import asyncio
import json
import sys
import time
from typing import Literal

from livekit import rtc
from livekit.agents import Agent, AgentSession, function_tool, io
from livekit.plugins import openai

base, key, path = sys.argv[1:]
RATE = 24_000
PIECE = RATE // 50 * 2  # bytes of 20 ms
seen = {"answers": [], "tools": [], "interruptions": 0, "bytes": 0, "errors": []}


class Microphone(io.AudioInput):
    """Hears the utterance each time that it is told to, as long as it lasts: the agent cancels the answer that it interrupts
    without its name, which must not come after the end of the utterance."""

    def __init__(self, utterance):
        super().__init__(label="microphone")
        self.utterance = utterance
        self.frames = asyncio.Queue()

    def hear(self):
        for at in range(0, len(self.utterance), PIECE):
            piece = self.utterance[at : at + PIECE]
            self.frames.put_nowait(rtc.AudioFrame(piece, RATE, 1, len(piece) // 2))

    async def __anext__(self):
        frame = await self.frames.get()
        await asyncio.sleep(frame.duration)
        return frame


class Loudspeaker(io.AudioOutput):
    """Takes as long as the audio lasts, as the agent expects, which tells the gateway what was heard of it."""

    def __init__(self, on_audio):
        super().__init__(label="loudspeaker", capabilities=io.AudioOutputCapabilities(pause=False), sample_rate=RATE)
        self.on_audio = on_audio
        self.began = None
        self.seconds = 0.0
        self.ending = None

    async def capture_frame(self, frame):
        await super().capture_frame(frame)
        seen["bytes"] += len(bytes(frame.data))
        if self.began is None:
            self.began = time.monotonic()
            self.on_playback_started(created_at=time.time())
        self.seconds += frame.duration
        self.on_audio()

    def flush(self):
        super().flush()
        if self.began is not None:
            rest = self.began + self.seconds - time.monotonic()
            self.ending = asyncio.get_running_loop().call_later(max(0, rest), self.end, False)

    def clear_buffer(self):
        self.end(True)

    def end(self, interrupted):
        if self.began is None:
            return
        if self.ending is not None:
            self.ending.cancel()
        heard = min(self.seconds, time.monotonic() - self.began)
        self.began, self.seconds, self.ending = None, 0.0, None
        self.on_playback_finished(playback_position=heard, interrupted=interrupted)


class Host(Agent):
    def __init__(self):
        super().__init__(instructions="Be brief.")

    @function_tool
    async def clock(self, zone: Literal["UTC", "CET"]) -> str:
        """The time of day."""
        seen["tools"].append(["clock", zone])
        return "noon"


async def main():
    with open(path, "rb") as file:
        microphone = Microphone(file.read())
    turns = 1
    over = asyncio.Event()

    def on_audio():
        nonlocal turns
        if turns == 2:  # speaks over the story
            turns = 3
            microphone.hear()

    def on_item(event):
        nonlocal turns
        if event.item.type != "message" or event.item.role != "assistant":
            return
        seen["interruptions"] += event.item.interrupted
        seen["answers"].append(event.item.text_content)
        if turns == 1:
            turns = 2
            microphone.hear()
        elif not event.item.interrupted:
            over.set()

    def on_error(event):
        seen["errors"].append(str(event.error))
        over.set()

    model = openai.realtime.RealtimeModel(base_url=base, api_key=key)
    session = AgentSession(llm=model, aec_warmup_duration=None)  # which would not hear the first seconds of an interruption
    session.on("conversation_item_added", on_item)
    session.on("error", on_error)
    session.input.audio = microphone
    session.output.audio = Loudspeaker(on_audio)
    await session.start(Host())
    microphone.hear()
    await over.wait()
    await session.aclose()
    print(json.dumps(seen))


asyncio.run(asyncio.wait_for(main(), 170))
