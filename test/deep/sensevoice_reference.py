"""Computes SenseVoice in double precision, from its description alone: sensevoice_reference.py MODEL.gguf FILE...

Each file holds 32-bit floats at 16 kHz. The answer, a line of JSON for each, is the tokens that are no tags, for a
language that is detected and a text with punctuation.
"""

import json
import math
import sys

import gguf
import numpy as np

AUTO, EVENT, EMOTION, WITH_PUNCTUATION = 0, 1, 2, 14  # rows of the embedding
BLANK = 0

reader = gguf.GGUFReader(sys.argv[1])
tensors = {
    t.name: gguf.quants.dequantize(t.data, t.tensor_type).reshape([int(n) for n in reversed(t.shape)]).astype(float)
    for t in reader.tensors
}
number = lambda key: int(reader.fields[f"stt.{key}"].contents())  # noqa: E731
pieces = reader.fields["tokenizer.ggml.tokens"].contents()


def fbank(samples):
    """Computes Kaldi's filterbank: 25 ms each 10 ms, 80 triangles between 20 and 8000 Hz on the mel scale."""
    samples = samples.astype(float) * 32768
    frames = np.stack([samples[at : at + 400] for at in range(0, len(samples) - 399, 160)])
    frames -= frames.mean(axis=1, keepdims=True)
    frames = frames - 0.97 * np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    power = np.abs(np.fft.rfft(frames * np.hamming(400), 512)) ** 2
    mel = lambda hz: 1127 * np.log(1 + hz / 700)  # noqa: E731
    peaks, bins = np.linspace(mel(20), mel(8000), 82), mel(np.arange(257) * 16000 / 512)
    filters = np.array([np.interp(bins, peaks[i : i + 3], [0, 1, 0]) for i in range(80)])
    return np.log(np.maximum(power @ filters.T, 1.1920929e-7))


def stacked(rows):
    stack, stride = number("frontend.lfr_m"), number("frontend.lfr_n")
    before = (stack - 1) // 2
    count = math.ceil(len(rows) / stride)
    behind = max(0, (count - 1) * stride + stack - len(rows) - before)
    rows = np.concatenate([rows[:1].repeat(before, axis=0), rows, rows[-1:].repeat(behind, axis=0)])
    return np.stack([rows[i * stride : i * stride + stack].ravel() for i in range(count)])


def linear(x, name):
    return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def norm(x, name):
    x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    return x * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]


def softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def block(x, name, width, heads):
    query, key, value = np.split(linear(norm(x, f"{name}.norm_attn"), f"{name}.attn.qkv"), 3, axis=1)
    kernel = tensors[f"{name}.attn.fsmn.weight"].reshape(width, -1)
    around = np.pad(value, ((kernel.shape[1] // 2,) * 2, (0, 0)))
    memory = sum(around[i : i + len(value)] * kernel[:, i] for i in range(kernel.shape[1])) + value
    split = lambda y: y.reshape(len(y), heads, -1).swapaxes(0, 1)  # noqa: E731
    weights = softmax(split(query) @ split(key).swapaxes(1, 2) / math.sqrt(width // heads))
    mixed = (weights @ split(value)).swapaxes(0, 1).reshape(len(x), width)
    heard = linear(mixed, f"{name}.attn.out") + memory
    x = x + heard if x.shape[1] == width else heard
    hidden = np.maximum(linear(norm(x, f"{name}.norm_ffn"), f"{name}.ffn.fc1"), 0)
    return x + linear(hidden, f"{name}.ffn.fc2")


def logits(samples):
    width, heads = number("sensevoice.encoder.d_model"), number("sensevoice.encoder.n_heads")
    features = (stacked(fbank(samples)) + tensors["frontend.cmvn.shift"]) * tensors["frontend.cmvn.scale"]
    queries = tensors["enc.embed.weight"][[AUTO, EVENT, EMOTION, WITH_PUNCTUATION]]
    x = np.concatenate([queries, features]) * math.sqrt(width)
    half = x.shape[1] // 2
    angles = np.arange(1, len(x) + 1)[:, None] * np.exp(-math.log(10000) / (half - 1) * np.arange(half))
    x = block(x + np.concatenate([np.sin(angles), np.cos(angles)], axis=1), "enc.encoders0.0", width, heads)
    for i in range(number("sensevoice.encoder.n_blocks") - 1):
        x = block(x, f"enc.encoders.{i}", width, heads)
    x = norm(x, "enc.after_norm")
    for i in range(number("sensevoice.encoder.tp_blocks")):
        x = block(x, f"enc.tp_encoders.{i}", width, heads)
    return linear(norm(x, "enc.tp_norm"), "ctc.head")


def tokens(rows):
    best = rows.argmax(axis=1).tolist()
    kept = [token for i, token in enumerate(best) if token != BLANK and (i == 0 or token != best[i - 1])]
    return [token for token in kept if not pieces[token].startswith("<|")]


for path in sys.argv[2:]:
    print(json.dumps(tokens(logits(np.fromfile(path, np.float32)))))
