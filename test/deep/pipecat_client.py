"""Speaks a clip through the pipeline of pipecat for each line of its input, and prints each frame as a line of JSON.
Arguments: the address of the WebSocket, the key, the model, s16le samples of 16 kHz, and who tells the turns: `server`,
or `local`, where the client commits."""

import asyncio
import json
import sys

from pipecat.frames.frames import (
    EndFrame,
    ErrorFrame,
    Frame,
    InputAudioRawFrame,
    InterimTranscriptionFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.openai.stt import OpenAIRealtimeSTTService

url, key, model, path, turns = sys.argv[1:]
RATE = 16_000
PIECE = RATE // 50 * 2  # bytes of 20 ms


def show(**event):
    print(json.dumps(event), flush=True)


class Shown(FrameProcessor):
    async def process_frame(self, frame: Frame, direction: FrameDirection):
        await super().process_frame(frame, direction)
        if isinstance(frame, InterimTranscriptionFrame):
            show(type="interim", text=frame.text)
        elif isinstance(frame, TranscriptionFrame):
            show(type="final", text=frame.text)
        await self.push_frame(frame, direction)


async def main():
    stt = OpenAIRealtimeSTTService(
        api_key=key,
        base_url=url,
        turn_detection={"type": "server_vad", "silence_duration_ms": 1500} if turns == "server" else False,
        settings=OpenAIRealtimeSTTService.Settings(model=model, delay="minimal"),
    )
    @stt.event_handler("on_connected")
    async def on_connected(_):
        show(type="connected")

    task = PipelineTask(
        Pipeline([stt, Shown()]),
        params=PipelineParams(audio_in_sample_rate=RATE),
        cancel_on_idle_timeout=False,
    )

    @task.event_handler("on_pipeline_error")
    async def on_error(_, frame: ErrorFrame):
        show(type="error", text=frame.error)

    with open(path, "rb") as file:
        speech = file.read()

    async def speak():
        if turns == "local":
            await task.queue_frame(VADUserStartedSpeakingFrame())
        # Four times as fast as speech, with time for texts of what was said so far.
        for at in range(0, len(speech), PIECE):
            await task.queue_frame(InputAudioRawFrame(speech[at : at + PIECE], RATE, 1))
            await asyncio.sleep(0.005)
        if turns == "local":
            await task.queue_frame(VADUserStoppedSpeakingFrame())

    async def talk():
        while await asyncio.to_thread(sys.stdin.readline):
            await speak()
        await task.queue_frame(EndFrame())

    talking = asyncio.create_task(talk())
    await PipelineRunner(handle_sigint=False).run(task)
    await talking


asyncio.run(main())
