"""
Makes the SenseVoice files the tests use, with the results of the reference implementations.

  pip install torch==2.13.0 numpy gguf==0.19.0 kaldi-native-fbank
  pip download --no-deps funasr==1.4.16 && unzip funasr-1.4.16-*.whl -d FUNASR
  python test/native/generate-sensevoice.py FUNASR frozen test/native/data/sensevoice
  python test/native/generate-sensevoice.py FUNASR sweep FOLDER    # then VOXGATE_SENSEVOICE_CASES=FOLDER

`random` has random weights: every number of the network matters. `tones` is made by hand: its network looks for the
loudest of twenty tones and writes the piece that belongs to it, so that a test can whistle a sentence.
"""

import importlib
import json
import math
import sys
import types
from pathlib import Path

import gguf
import kaldi_native_fbank as knf
import numpy as np
import torch

RATE = 16000
LANGUAGE_ROWS = {"auto": 0, "zh": 3, "en": 4, "yue": 7, "ja": 11, "ko": 12, "nospeech": 13}
ITN_ROWS = {True: 14, False: 15}
TAGS = ["zh", "en", "yue", "ja", "ko", "nospeech", "NEUTRAL", "Speech", "withitn", "woitn"]
# The languages are in the order of their tones.
PIECES = (
    "你 好 世 界 。 ， ▁ ▁hello ▁wor ld . こん にち は ！ ▁안녕 하세 요 ? ▁I"
).split(" ")
FIRST_TONE_BAND, BANDS_PER_TONE = 20, 3


def reference_class(folder):
    """Imports funasr's own model class, without the parts of the package that need more than torch."""
    package = types.ModuleType("funasr")
    package.__path__ = [str(Path(folder) / "funasr")]
    sys.modules["funasr"] = package

    def stub(name, **attributes):
        module = types.ModuleType(name)
        module.__dict__.update(attributes)
        sys.modules[name] = module

    class Nothing(torch.nn.Module):
        def __init__(self, *args, **kwargs):
            super().__init__()

    stub("funasr.metrics.compute_acc", compute_accuracy=None, th_accuracy=None)
    stub("funasr.losses.label_smoothing_loss", LabelSmoothingLoss=Nothing)
    stub("funasr.train_utils.device_funcs", force_gatherable=None)
    stub("funasr.utils.load_utils", load_audio_text_image_video=None, extract_fbank=None)
    stub("funasr.utils.datadir_writer", DatadirWriter=None)
    stub("funasr.models.paraformer.search", Hypothesis=None)
    return importlib.import_module("funasr.models.sense_voice.model").SenseVoiceSmall


class Shape:
    def __init__(self, blocks=2, tp_blocks=1, width=32, heads=4, hidden=48, stack=7, stride=6, vocabulary=48):
        self.blocks, self.tp_blocks, self.width, self.heads = blocks, tp_blocks, width, heads
        self.hidden, self.stack, self.stride, self.vocabulary = hidden, stack, stride, vocabulary
        self.mels, self.kernel = 80, 11
        self.input = self.mels * stack

    def build(self, cls):
        return cls(
            encoder="SenseVoiceEncoderSmall",
            encoder_conf=dict(
                output_size=self.width, attention_heads=self.heads, linear_units=self.hidden,
                num_blocks=self.blocks, tp_blocks=self.tp_blocks, dropout_rate=0.0,
                attention_dropout_rate=0.0, input_layer="pe", pos_enc_class="SinusoidalPositionEncoder",
                normalize_before=True, kernel_size=self.kernel, sanm_shfit=0,
                selfattention_layer_type="sanm",
            ),
            input_size=self.input, vocab_size=self.vocabulary,
        ).eval()  # fmt: skip


def vocabulary(size):
    pieces = ["<unk>"] + [f"<|{tag}|>" for tag in TAGS] + PIECES
    return (pieces + [f"▁w{i}" if i % 3 == 0 else f"字{i}" for i in range(size)])[:size]


def fbank(samples):
    options = knf.FbankOptions()
    options.frame_opts.samp_freq = RATE
    options.frame_opts.dither = 0
    options.frame_opts.window_type = "hamming"
    options.frame_opts.snip_edges = True
    options.mel_opts.num_bins = 80
    options.energy_floor = 0
    computer = knf.OnlineFbank(options)
    computer.accept_waveform(RATE, (samples * 32768).tolist())
    computer.input_finished()
    return np.stack([computer.get_frame(i) for i in range(computer.num_frames_ready)])


def stacked(rows, stack, stride):
    """Computes funasr's apply_lfr."""
    rows = np.concatenate([np.repeat(rows[:1], (stack - 1) // 2, axis=0), rows])
    count = math.ceil((len(rows) - (stack - 1) // 2) / stride)
    missing = max(0, (count - 1) * stride + stack - len(rows))
    rows = np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)])
    return np.stack([rows[i * stride : i * stride + stack].reshape(-1) for i in range(count)])


def logits(model, cmvn, samples, shape, language, itn):
    features = (stacked(fbank(samples), shape.stack, shape.stride) + cmvn[0]) * cmvn[1]
    with torch.no_grad():
        queries = model.embed(torch.tensor([[LANGUAGE_ROWS[language], 1, 2, ITN_ROWS[itn]]]))
        speech = torch.cat((queries, torch.from_numpy(features.astype(np.float32))[None]), dim=1)
        out, _ = model.encoder(speech, torch.tensor([speech.shape[1]]))
        return model.ctc.ctc_lo(out)[0].numpy()


def decode(rows, pieces):
    """Decodes greedily as funasr's inference does; the tags are taken out of the text."""
    logprobs = torch.log_softmax(torch.from_numpy(rows), dim=-1)
    best = logprobs.argmax(dim=-1)
    tokens = []
    for i, token in enumerate(best.tolist()):
        value = float(logprobs[i, token])
        if i > 0 and token == int(best[i - 1]):
            if tokens and token != 0:
                tokens[-1]["logprob"] = max(tokens[-1]["logprob"], value)
        elif token != 0:
            tokens.append({"id": token, "logprob": value})
    spoken = [t for t in tokens if not pieces[t["id"]].startswith("<|")]
    return {
        "tags": [pieces[int(t)] for t in best[:4]],
        "tokens": [{**t, "logprob": round(t["logprob"], 6)} for t in spoken],
        "text": "".join(pieces[t["id"]] for t in spoken).replace("▁", " "),
    }


NAMES = {
    "self_attn.linear_q_k_v": "attn.qkv", "self_attn.linear_out": "attn.out", "self_attn.fsmn_block": "attn.fsmn",
    "feed_forward.w_1": "ffn.fc1", "feed_forward.w_2": "ffn.fc2", "norm1": "norm_attn", "norm2": "norm_ffn",
}  # fmt: skip


def tensor_name(name):
    name = name.replace("ctc.ctc_lo", "ctc.head")
    name = "enc." + name if name.startswith("embed") else name.replace("encoder.", "enc.", 1)
    for old, new in NAMES.items():
        name = name.replace(old, new)
    return name


def write(path, model, cmvn, shape, pieces, halves=False):
    writer = gguf.GGUFWriter(str(path), "sensevoice")
    writer.add_string("tokenizer.ggml.model", "bpe")
    writer.add_array("tokenizer.ggml.tokens", pieces)
    writer.add_array("tokenizer.ggml.scores", [0.0] * len(pieces))
    writer.add_array("tokenizer.ggml.token_type", [2] + [3 if p.startswith("<|") else 1 for p in pieces[1:]])
    writer.add_uint32("tokenizer.ggml.unknown_token_id", 0)
    writer.add_uint32("tokenizer.ggml.blank_token_id", 0)
    encoder = dict(n_blocks=shape.blocks, tp_blocks=shape.tp_blocks, d_model=shape.width, d_input=shape.input,
                   n_heads=shape.heads, d_ff=shape.hidden, kernel_size=shape.kernel, sanm_shift=0)  # fmt: skip
    for key, value in encoder.items():
        writer.add_uint32(f"stt.sensevoice.encoder.{key}", value)
    writer.add_string("stt.sensevoice.encoder.attention_type", "sanm")
    writer.add_bool("stt.sensevoice.encoder.normalize_before", True)
    for language, row in LANGUAGE_ROWS.items():
        writer.add_uint32(f"stt.sensevoice.special.lang_{language}", row)
    for key, value in dict(event_speech=1, emotion_neutral=2, withitn=14, woitn=15).items():
        writer.add_uint32(f"stt.sensevoice.special.{key}", value)
    texts = dict(type="kaldi_fbank_lfr", window="hamming", normalize="per_feature", fbank_style="kaldi_htk")
    for key, value in texts.items():
        writer.add_string(f"stt.frontend.{key}", value)
    numbers = dict(num_mels=shape.mels, sample_rate=RATE, n_fft=400, win_length=400, hop_length=160,
                   lfr_m=shape.stack, lfr_n=shape.stride)  # fmt: skip
    for key, value in numbers.items():
        writer.add_uint32(f"stt.frontend.{key}", value)
    writer.add_float32("stt.frontend.dither", 0.0)
    writer.add_bool("stt.frontend.upscale_samples", True)
    writer.add_bool("stt.frontend.snip_edges", True)

    writer.add_tensor("frontend.cmvn.shift", cmvn[0])
    writer.add_tensor("frontend.cmvn.scale", cmvn[1])
    for name, value in model.state_dict().items():
        array = np.ascontiguousarray(value.numpy())
        writer.add_tensor(tensor_name(name), array.astype(np.float16) if halves and array.ndim > 1 else array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def random_model(cls, shape, seed):
    torch.manual_seed(seed)
    model = shape.build(cls)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "norm" in name:
                value.normal_(1.0 if name.endswith("weight") else 0.0, 0.2)
            elif value.dim() == 1:
                value.normal_(0, 0.2)
            else:
                value.normal_(0, 1.0 / math.sqrt(value.shape[-1]))
        model.ctc.ctc_lo.weight.mul_(4)
    generator = np.random.default_rng(seed)
    shift = np.tile(generator.uniform(-14, -9, shape.mels), shape.stack).astype(np.float32)
    scale = np.tile(generator.uniform(0.1, 0.3, shape.mels), shape.stack).astype(np.float32)
    return model, (shift, scale)


def tone_band(index):
    return FIRST_TONE_BAND + BANDS_PER_TONE * index


def tones_model(cls):
    """Channel 0 is a constant, 1..10 see the queries, 11..30 one tone each; the loudest channel is the token."""
    pieces = ["<unk>"] + [f"<|{tag}|>" for tag in TAGS] + PIECES
    shape = Shape(blocks=1, tp_blocks=0, hidden=4, vocabulary=len(pieces))
    model = shape.build(cls)
    values = shape.width * 2  # the values begin here in query|key|value
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
        qkv = model.encoder.encoders0[0].self_attn.linear_q_k_v
        qkv.bias[values] = 2.0
        answers = {0: "zh", 1: "NEUTRAL", 2: "Speech", 14: "withitn", 15: "woitn"}
        answers |= {row: language for language, row in LANGUAGE_ROWS.items() if row > 0}
        for row, tag in answers.items():
            channel = 1 + TAGS.index(tag)
            model.embed.weight[row, channel] = 100.0
            qkv.weight[values + channel, channel] = 1.0
        for index in range(len(PIECES)):
            qkv.weight[values + 11 + index, 3 * shape.mels + tone_band(index)] = 1.0
        model.ctc.ctc_lo.weight[:, : len(pieces)] = 4 * torch.eye(len(pieces))
    flat = np.full(shape.input, -8.0, np.float32), np.full(shape.input, 0.25, np.float32)
    return model, flat, shape, pieces


def tone_hz(index):
    mel = lambda hz: 1127 * math.log(1 + hz / 700)  # noqa: E731
    step = (mel(8000) - mel(20)) / 81
    return 700 * (math.exp((mel(20) + step * (tone_band(index) + 1)) / 1127) - 1)


def whistle(pieces):
    """Makes 120 ms of tone and as much silence for each piece."""
    out = np.zeros(3840 * len(pieces) + 1600, np.float32)
    for i, piece in enumerate(pieces):
        t = np.arange(1920) / RATE
        out[3840 * i : 3840 * i + 1920] = 0.3 * np.sin(2 * np.pi * tone_hz(PIECES.index(piece)) * t)
    return out


def signal():
    """Makes something like speech: a gliding buzz with formants that open and close, and noise."""
    generator = np.random.default_rng(7)
    t = np.arange(int(0.8 * RATE)) / RATE
    phase = 2 * np.pi * np.cumsum(120 + 40 * np.sin(2 * np.pi * 1.7 * t)) / RATE
    buzz = sum(np.sin(k * phase) / (1 + abs(k - 6 - 5 * np.sin(9 * t))) for k in range(1, 30))
    wave = buzz * (0.55 + 0.45 * np.sin(2 * np.pi * 4 * t)) + 0.3 * generator.standard_normal(len(t))
    return np.round(wave / np.abs(wave).max() * 20000).astype("<i2")


def write_cases(folder, cls, shape, seed, cases):
    folder.mkdir(parents=True, exist_ok=True)
    model, cmvn = random_model(cls, shape, seed)
    pieces = vocabulary(shape.vocabulary)
    write(folder / "model.gguf", model, cmvn, shape, pieces)
    source = signal().astype(np.float32) / 32768
    decoded = []
    for length, language, itn in cases:
        rows = logits(model, cmvn, np.resize(source, length), shape, language, itn)
        rows.astype("<f4").tofile(folder / f"{length}-{language}-{int(itn)}.f32")
        decoded.append({"samples": length, "language": language, "itn": itn, **decode(rows, pieces)})
        print(folder.name, length, language, len(set(rows.argmax(-1).tolist())), decoded[-1]["text"][:60])
    (folder / "decoded.json").write_text(json.dumps(decoded, ensure_ascii=False, indent=1) + "\n")


def frozen(folder, cls):
    folder.mkdir(parents=True, exist_ok=True)
    signal().tofile(folder / "signal.s16")
    fbank(signal().astype(np.float32) / 32768).astype("<f4").tofile(folder / "fbank.f32")
    write_cases(folder / "random", cls, Shape(stack=3, stride=2), 1,
                [(1600, "auto", True), (12800, "zh", True), (12800, "zh", False), (40000, "ko", True)])  # fmt: skip
    model, cmvn, shape, pieces = tones_model(cls)
    write(folder / "tones.gguf", model, cmvn, shape, pieces, halves=True)
    (folder / "tones.json").write_text(
        json.dumps({p: round(tone_hz(i), 2) for i, p in enumerate(PIECES)}, ensure_ascii=False, indent=1) + "\n"
    )
    for sentence in (PIECES, ["▁hello", "▁wor", "ld", "."]):
        rows = logits(model, cmvn, whistle(sentence), shape, "auto", True)
        print(decode(rows, pieces))


def sweep(folder, cls):
    lengths = [(400 + 1200, "auto", True), (8000, "zh", False), (48000, "en", True), (160000, "yue", True),
               (320000, "ja", False), (480000, "ko", True)]  # fmt: skip
    for seed, shape in enumerate([
        Shape(), Shape(width=64, hidden=128, blocks=4, tp_blocks=2), Shape(width=64, heads=2, blocks=8, tp_blocks=4),
        Shape(width=128, hidden=256, blocks=3, tp_blocks=3, vocabulary=500), Shape(stack=1, stride=1, blocks=1),
        Shape(width=512, hidden=2048, blocks=6, tp_blocks=3, vocabulary=2000),
    ]):  # fmt: skip
        write_cases(folder / f"{seed}-{shape.width}-{shape.blocks}-{shape.tp_blocks}", cls, shape, seed, lengths)


def main(funasr, command, target):
    {"frozen": frozen, "sweep": sweep}[command](Path(target), reference_class(funasr))


main(*sys.argv[1:])
