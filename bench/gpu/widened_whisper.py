"""Writes a Whisper of a larger shape that hears what base hears, for the gateway (ggml) and for CTranslate2, in f16.

    widened_whisper.py BASE.bin CHECKPOINT STATE AUDIO_LAYERS TEXT_LAYERS OUT.bin OUT_FOLDER

BASE.bin holds base (or any other size) for whisper.cpp, CHECKPOINT is the folder of the same size for faster-whisper.
The large weights cannot always be fetched, and random ones write no words, so that nobody decodes as many tokens as with
real ones. This model needs the time and the memory of a large one and writes the text of the small one:

  - A row of the residual stream x of length d becomes M x of length D, where the columns of M are orthogonal, of the
    same length, and add up to as much. Layer normalization then finds the mean and the variance of x in it. Its scale
    and offset move into the weights behind it.
  - In the decoder M is the identity on top of such rotated rows, and the text is the same (Chen et al. 2015, Net2Net,
    arXiv 1511.05641, widens networks in this way). Where D is less than 2 d, not all of x finds room in those rows,
    and the variance is an estimate.
  - In the encoder, whose stem ends with a GELU, M can only copy. Where D is no multiple of d, some values have a copy
    more than others, and the mean and the variance are estimates. Texts were the same where this was looked at.
  - Further heads, hidden units and layers compute random numbers that then count for next to nothing.
"""
import json
import shutil
import struct
import sys
from pathlib import Path

import ctranslate2
import numpy as np

GGML_MAGIC, F32, F16, Q8_0 = 0x67676D6C, 0, 1, 8
BLOCK, BLOCK_BYTES = 32, 34
HEAD = 64
# Weights that count for nothing are not zero: equal weights would share memory, and zeros need less power.
INERT, SILENT = 0.02, 2e-6
NOTHING = np.zeros((0, 0), np.float32), np.zeros(0, np.float32)


class Ggml:
    """The numbers, the filters with the vocabulary as they are, and the tensors in float32."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        self.numbers = list(struct.unpack_from("<11i", data, 4))
        begin = at = 48
        mels, bins = struct.unpack_from("<2i", data, at)
        at += 8 + 4 * mels * bins
        (tokens,) = struct.unpack_from("<i", data, at)
        at += 4
        for _ in range(tokens):
            at += 4 + struct.unpack_from("<i", data, at)[0]
        self.filters_and_vocabulary = data[begin:at]
        self.tensors = {}
        while at < len(data):
            dimensions, length, kind = struct.unpack_from("<3i", data, at)
            shape = struct.unpack_from(f"<{dimensions}i", data, at + 12)[::-1]
            at += 12 + 4 * dimensions
            name = data[at : at + length].decode()
            at += length
            count = int(np.prod(shape))
            if kind == Q8_0:
                blocks = np.frombuffer(data, np.uint8, count // BLOCK * BLOCK_BYTES, at).reshape(-1, BLOCK_BYTES)
                values = blocks[:, 2:].view(np.int8) * blocks[:, :2].copy().view("<f2").astype(np.float32)
                at += blocks.size
            else:
                values = np.frombuffer(data, "<f4" if kind == F32 else "<f2", count, at).astype(np.float32)
                at += count * (4 if kind == F32 else 2)
            self.tensors[name] = values.reshape(shape)


class Stream:
    """A residual stream of `d` values in one of `D`: the matrix M of the text above, and how it is read."""

    def __init__(self, matrix):
        self.matrix = matrix
        self.reader = matrix @ np.linalg.inv(matrix.T @ matrix)

    def written(self, weights):
        return self.matrix @ weights

    def read(self, weights):
        return weights @ self.reader.T


class Copies(Stream):
    def __init__(self, d, D):
        self.source = np.concatenate([np.arange(d)] * (D // d) + [np.arange(d)[:: max(1, d // (D % d or d))][: D % d]])
        counts = np.bincount(self.source, minlength=d).astype(np.float32)
        self.share = 1 / counts

    def written(self, weights):
        return weights[self.source]

    def read(self, weights):
        return (weights * self.share)[..., self.source]


def rotated(d, D, random):
    """M for the decoder: the identity, and below it an isometry that keeps sums, or a part of one."""
    rows = D - d
    if rows == 0:
        return np.eye(d, dtype=np.float32)
    rank = min(rows, d)

    def basis(count):
        """`rank` orthogonal columns of length 1, of which the first is constant."""
        columns = random.standard_normal((count, rank))
        columns[:, 0] = 1
        orthogonal, triangular = np.linalg.qr(columns)
        return orthogonal * np.sign(triangular[0, 0])

    lengths = np.full(rank, np.sqrt(rows / d * (d - 1) / (rank - 1)))
    lengths[0] = np.sqrt(rows / d)
    below = basis(rows) * lengths @ basis(d).T
    return np.concatenate([np.eye(d), below]).astype(np.float32)


class Widening:
    """The tensors of the large model by OpenAI's names, in float32. Layers that the small one lacks are inert."""

    def __init__(self, small, state, random):
        self.d, self.state, self.random = small.numbers[2], state, random
        if state < self.d:
            raise SystemExit(f"{state} is less than {self.d}")
        self.old, self.new = small.tensors, {}
        self.encoder, self.decoder = Copies(self.d, state), Stream(rotated(self.d, state, random))

    def noise(self, *shape, scale=INERT):
        return self.random.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    def bias(self, name):
        return self.old[f"{name}.bias"].reshape(-1)

    def padded(self, values):
        return np.concatenate([values, np.zeros(self.state - self.d, np.float32)])

    def normalization(self, name):
        self.new[f"{name}.weight"] = np.ones(self.state, np.float32)
        self.new[f"{name}.bias"] = np.zeros(self.state, np.float32)

    def linear(self, name, weights, offset, rows, columns, scale=INERT):
        full = self.noise(rows, columns, scale=scale)
        full[: weights.shape[0], : weights.shape[1]] = weights
        self.new[f"{name}.weight"] = full
        if not name.endswith(".key"):
            self.new[f"{name}.bias"] = np.concatenate([offset, np.zeros(rows - len(offset), np.float32)])

    def behind(self, norm, stream, name):
        """Weights and offset of a layer behind a normalization that has no scale and no offset of its own."""
        if f"{name}.weight" not in self.old:
            return NOTHING
        weights, scale = self.old[f"{name}.weight"], self.old[f"{norm}.weight"].reshape(-1)
        # The offset that a key would get adds the same to all scores of a query.
        offset = 0 if name.endswith(".key") else self.bias(name)
        return stream.read(weights * scale), offset + weights @ self.bias(norm)

    def written(self, stream, name):
        if f"{name}.weight" not in self.old:
            return NOTHING
        return stream.written(self.old[f"{name}.weight"]), stream.written(self.bias(name))

    def attention(self, name, stream, norm, keys_from=None):
        own, source = (norm, stream), keys_from or (norm, stream)
        for part, place in {"query": own, "key": source, "value": source}.items():
            self.linear(f"{name}.{part}", *self.behind(*place, f"{name}.{part}"), self.state, self.state)
        self.linear(f"{name}.out", *self.written(stream, f"{name}.out"), self.state, self.state, SILENT)

    def layer(self, name, stream, keys_from=None):
        for part in ("attn", "cross_attn", "mlp") if keys_from else ("attn", "mlp"):
            self.normalization(f"{name}.{part}_ln")
        self.attention(f"{name}.attn", stream, f"{name}.attn_ln")
        if keys_from:
            self.attention(f"{name}.cross_attn", stream, f"{name}.cross_attn_ln", keys_from)
        first, second = f"{name}.mlp.0", f"{name}.mlp.2"
        self.linear(first, *self.behind(f"{name}.mlp_ln", stream, first), 4 * self.state, self.state)
        self.linear(second, *self.written(stream, second), self.state, 4 * self.state, SILENT)

    def embeddings_and_stem(self):
        for part, stream in (("encoder", self.encoder), ("decoder", self.decoder)):
            name = f"{part}.positional_embedding"
            self.new[name] = stream.written(self.old[name].T).T
        name = "decoder.token_embedding.weight"
        self.new[name] = self.decoder.written(self.old[name].T).T
        first, second = self.old["encoder.conv1.weight"], self.old["encoder.conv2.weight"]
        conv1 = self.new["encoder.conv1.weight"] = self.noise(self.state, *first.shape[1:])
        conv1[: self.d] = first
        self.new["encoder.conv1.bias"] = self.padded(self.bias("encoder.conv1"))
        conv2 = self.new["encoder.conv2.weight"] = self.noise(self.state, self.state, second.shape[2], scale=SILENT)
        conv2[:, : self.d] = self.encoder.written(second)
        self.new["encoder.conv2.bias"] = self.encoder.written(self.bias("encoder.conv2"))

    def tensors(self, audio_layers, text_layers):
        self.embeddings_and_stem()
        for i in range(audio_layers):
            self.layer(f"encoder.blocks.{i}", self.encoder)
        self.normalization("encoder.ln_post")
        for i in range(text_layers):
            self.layer(f"decoder.blocks.{i}", self.decoder, ("encoder.ln_post", self.encoder))
        # The logits read the first `d` values only: the embedding has more, which the scale leaves out.
        for part in ("weight", "bias"):
            self.new[f"decoder.ln.{part}"] = self.padded(self.old[f"decoder.ln.{part}"].reshape(-1))
        return self.new


def write_ggml(path, small, tensors, state, audio_layers, text_layers):
    numbers = small.numbers[:]
    numbers[2:5] = state, state // HEAD, audio_layers
    numbers[6:9] = state, state // HEAD, text_layers
    numbers[10] = F16
    with open(path, "wb") as out:
        out.write(struct.pack("<I11i", GGML_MAGIC, *numbers) + small.filters_and_vocabulary)
        for name, values in tensors.items():
            half = values.ndim > 1 and not name.endswith("positional_embedding")
            if name in ("encoder.conv1.bias", "encoder.conv2.bias"):
                values = values.reshape(-1, 1)
            out.write(struct.pack("<3i", values.ndim, len(name), F16 if half else F32))
            out.write(struct.pack(f"<{values.ndim}i", *values.shape[::-1]) + name.encode())
            out.write(np.ascontiguousarray(values, "<f2" if half else "<f4").tobytes())


def write_ctranslate2(folder, checkpoint, tensors, state, audio_layers, text_layers):
    spec = ctranslate2.specs.WhisperSpec(audio_layers, state // HEAD, text_layers, state // HEAD)
    half = {name: values.astype(np.float16) for name, values in tensors.items()}

    def linear(target, *names):
        target.weight = np.concatenate([half[f"{name}.weight"] for name in names])
        missing = np.zeros(state, np.float16)  # keys have none
        target.bias = np.concatenate([half.get(f"{name}.bias", missing) for name in names])

    def normalization(target, name):
        target.gamma, target.beta = half[f"{name}.weight"], half[f"{name}.bias"]

    def feed_forward(target, name):
        normalization(target.layer_norm, f"{name}.mlp_ln")
        linear(target.linear_0, f"{name}.mlp.0")
        linear(target.linear_1, f"{name}.mlp.2")

    def self_attention(target, name):
        normalization(target.layer_norm, f"{name}.attn_ln")
        linear(target.linear[0], *(f"{name}.attn.{part}" for part in ("query", "key", "value")))
        linear(target.linear[1], f"{name}.attn.out")

    for part in ("conv1", "conv2"):
        convolution = getattr(spec.encoder, part)
        convolution.weight, convolution.bias = half[f"encoder.{part}.weight"], half[f"encoder.{part}.bias"]
    spec.encoder.position_encodings.encodings = half["encoder.positional_embedding"]
    normalization(spec.encoder.layer_norm, "encoder.ln_post")
    for i, layer in enumerate(spec.encoder.layer):
        self_attention(layer.self_attention, f"encoder.blocks.{i}")
        feed_forward(layer.ffn, f"encoder.blocks.{i}")
    spec.decoder.embeddings.weight = half["decoder.token_embedding.weight"]
    spec.decoder.projection.weight = half["decoder.token_embedding.weight"]
    spec.decoder.position_encodings.encodings = half["decoder.positional_embedding"]
    spec.decoder.scale_embeddings = False
    normalization(spec.decoder.layer_norm, "decoder.ln")
    for i, layer in enumerate(spec.decoder.layer):
        name = f"decoder.blocks.{i}"
        self_attention(layer.self_attention, name)
        normalization(layer.attention.layer_norm, f"{name}.cross_attn_ln")
        linear(layer.attention.linear[0], f"{name}.cross_attn.query")
        linear(layer.attention.linear[1], f"{name}.cross_attn.key", f"{name}.cross_attn.value")
        linear(layer.attention.linear[2], f"{name}.cross_attn.out")
        feed_forward(layer.ffn, name)
    for key, value in json.loads((checkpoint / "config.json").read_text()).items():
        setattr(spec.config, key, value)
    spec.register_vocabulary((checkpoint / "vocabulary.txt").read_text("utf-8").removesuffix("\n").split("\n"))
    spec.validate()
    spec.optimize(quantization="float16")
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    shutil.copy(checkpoint / "tokenizer.json", folder)


def main(base, checkpoint, state, audio_layers, text_layers, ggml_file, folder):
    small = Ggml(base)
    shape = int(state), int(audio_layers), int(text_layers)
    tensors = Widening(small, shape[0], np.random.default_rng(1)).tensors(*shape[1:])
    write_ggml(ggml_file, small, tensors, *shape)
    write_ctranslate2(Path(folder), Path(checkpoint), tensors, *shape)


main(*sys.argv[1:])
