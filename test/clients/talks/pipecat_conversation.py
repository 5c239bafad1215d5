"""The same talk as openai_conversation.py with the package pipecat-ai. Arguments: base address with /v1, key, samples."""

import asyncio
import json
import sys

from pipecat.adapters.schemas.function_schema import FunctionSchema
from pipecat.adapters.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    ErrorFrame,
    InputAudioRawFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMRunFrame,
    TTSAudioRawFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.openai.realtime.events import (
    AudioConfiguration,
    AudioInput,
    InputAudioTranscription,
    SessionProperties,
    TurnDetection,
)
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService

base, key, path = sys.argv[1:]
RATE = 24_000
PIECE = RATE // 10 * 2  # bytes of 100 ms
ZONE = {"zone": {"type": "string", "enum": ["UTC", "CET"]}}
seen = {"answers": [], "tools": [], "interruptions": 0, "bytes": 0, "errors": []}


async def clock(params):
    seen["tools"].append([params.function_name, params.arguments["zone"]])
    await params.result_callback("noon")


class Listener(FrameProcessor):
    """Stands where the loudspeaker would, and says the next thing when it is time."""

    def __init__(self, say):
        super().__init__()
        self.say = say
        self.turns = 0
        self.answer = ""  # since the last time that it was our turn
        self.over = asyncio.Event()

    def next_turn(self):
        self.turns += 1
        self.answer = ""
        self.say()

    async def process_frame(self, frame, direction: FrameDirection):
        await super().process_frame(frame, direction)
        if isinstance(frame, TTSAudioRawFrame):
            seen["bytes"] += len(frame.audio)
            if self.turns == 2:
                self.next_turn()
        if isinstance(frame, TTSTextFrame):
            self.answer += frame.text
        if isinstance(frame, InterruptionFrame):
            seen["interruptions"] += 1
            self.answer = ""
        if isinstance(frame, LLMFullResponseEndFrame) and self.answer != "":
            seen["answers"].append(self.answer)
            if self.turns == 3:
                self.over.set()
            elif self.turns == 0 or seen["tools"]:
                self.next_turn()
        if isinstance(frame, ErrorFrame):
            seen["errors"].append(frame.error)
        await self.push_frame(frame, direction)


async def main():
    with open(path, "rb") as file:
        utterance = file.read()
    service = OpenAIRealtimeLLMService(
        api_key=key,
        base_url=base.replace("http", "ws", 1) + "/realtime",
        settings=OpenAIRealtimeLLMService.Settings(
            model="gpt-realtime",
            system_instruction="Be brief.",
            session_properties=SessionProperties(
                audio=AudioConfiguration(
                    input=AudioInput(transcription=InputAudioTranscription(), turn_detection=TurnDetection())
                )
            ),
        ),
    )
    service.register_function("clock", clock)
    tools = ToolsSchema(
        standard_tools=[FunctionSchema(name="clock", description="The time of day.", properties=ZONE, required=["zone"])]
    )
    pair = LLMContextAggregatorPair(LLMContext([], tools))

    async def speak():
        for at in range(0, len(utterance), PIECE):
            piece = utterance[at : at + PIECE]
            await task.queue_frame(InputAudioRawFrame(audio=piece, sample_rate=RATE, num_channels=1))
            await asyncio.sleep(0.02)

    speaking = []
    listener = Listener(lambda: speaking.append(asyncio.create_task(speak())))
    pipeline = Pipeline([pair.user(), service, listener, pair.assistant()])
    task = PipelineTask(
        pipeline, params=PipelineParams(audio_in_sample_rate=RATE, audio_out_sample_rate=RATE), cancel_on_idle_timeout=False
    )
    await task.queue_frame(LLMRunFrame())
    running = asyncio.create_task(PipelineRunner(handle_sigint=False).run(task))
    await listener.over.wait()
    await task.cancel()
    await running
    print(json.dumps(seen))


asyncio.run(asyncio.wait_for(main(), 170))
