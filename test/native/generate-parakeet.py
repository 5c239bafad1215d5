#!/usr/bin/env python3
"""Writes a Parakeet TDT model in the format of whisper.cpp whose transcript is known in advance. Needs numpy.

    generate-parakeet.py data/parakeet-script.bin    the model of parakeet.test.ts, which speaks SCRIPT for any input
    generate-parakeet.py data/parakeet-wide.bin --wide  the same with rows as long as the memory of a GPU wants them, and
                                                     probabilities that depend a little on the encoder
    generate-parakeet.py OUT --random SEED           small random weights, to compare with another implementation
    generate-parakeet.py OUT --full                  the published shape in q8_0 with weights of zero (668 MB), to measure

The script gets into the weights like this: the prediction network is an LSTM whose gates are tied to "take the input,
forget the rest", so its output says which token came last; the joint network ignores the encoder and turns that into
the next token and its duration. The durations' logits are 118 below the token's: a softmax over both together leaves
nothing of them, and that is what parakeet.cpp 1.9.1 reads without the repair in parakeet_internals.cpp.
"""
import argparse
import struct

import numpy as np

SPACE = "\u2581"
PAUSE = 25  # frames of 80 ms, so 2 s
# Each entry is a piece and its duration in frames. "<unk>" spells nothing and stands for a pause; a duration of 0
# happens in real models.
SCRIPT = [
    ("_Hell", 2), ("o", 2), (",", 1), ("_Dr", 2), (".", 1), ("_Eu", 2), ("rop", 1), ("a", 0), (".", 1), ("<unk>", PAUSE),
    ("_L", 1), ("'", 0), ("été", 3), ("_co", 1), ("û", 1), ("te", 1), ("_", 1), ("3", 1), (".", 1), ("5", 2),
    ("_eu", 1), ("ros", 3), ("…", 2), ("_¿", 1), ("Qué", 2), ("_-", 1), ("_sí", 4), ("?", 1),
]  # fmt: skip
# A half holds these weights exactly, and the LSTM scales them by 0.76. The next token's logit is 60 and its only
# rival is 2 below, so its probability is 1 / (1 + exp(-2)).
NEXT, RIVAL = 79.0, 76.375
DURATIONS_LOGIT = -60.0  # the right one has 2 more

Q8_0 = 8
BLOCK, BLOCK_BYTES = 32, 34


class Shape:
    vocab, state, heads, layers, mels, fft = 0, 8, 2, 2, 16, 64
    channels, kernel, pred, pred_layers, max_tokens = 4, 3, 0, 1, 10
    durations = [0, 1, 2, 3, 4, PAUSE]


def write_header(out, shape, ftype, pieces, filters, window):
    numbers = [shape.vocab, 5000, shape.state, shape.heads, shape.layers, shape.mels, ftype, shape.fft, 8,
               shape.channels, shape.kernel, shape.pred, shape.pred_layers, len(shape.durations),
               shape.max_tokens]  # fmt: skip
    out.write(struct.pack("<I15i", 0x67676D6C, *numbers))
    out.write(struct.pack("<2i", *filters.shape) + filters.astype("<f4").tobytes())
    out.write(struct.pack("<i", len(window)) + window.astype("<f4").tobytes())
    out.write(struct.pack(f"<{len(shape.durations)}I", *shape.durations))
    out.write(struct.pack("<i", len(pieces)))
    for piece in pieces:
        data = piece.encode()
        out.write(struct.pack("<i", len(data)) + data)


def tensor_shapes(shape):
    """Lists each name, the shape as numpy has it, and whether the weight type applies (else always f32)."""
    state, channels, pred = shape.state, shape.channels, shape.pred
    yield "encoder.pre_encode.out.weight", (state, shape.mels // 8 * channels), True
    yield "encoder.pre_encode.out.bias", (state,), False
    for conv in (0, 2, 3, 5, 6):
        pointwise = conv in (3, 6)
        yield f"encoder.pre_encode.conv.{conv}.weight", (channels, channels, 1, 1) if pointwise else (channels, 1, 3, 3), False
        yield f"encoder.pre_encode.conv.{conv}.bias", (1, channels, 1, 1), False
    for i in range(shape.layers):
        layer = f"encoder.layers.{i}."
        for norm in ("norm_feed_forward1", "norm_conv", "norm_self_att", "norm_feed_forward2", "norm_out", "conv.batch_norm"):
            yield f"{layer}{norm}.weight", (state,), False
            yield f"{layer}{norm}.bias", (state,), False
        for forward in ("feed_forward1", "feed_forward2"):
            yield f"{layer}{forward}.linear1.weight", (4 * state, state), True
            yield f"{layer}{forward}.linear2.weight", (state, 4 * state), True
        yield f"{layer}conv.pointwise_conv1.weight", (2 * state, state), True
        yield f"{layer}conv.depthwise_conv.weight", (state, shape.kernel), False
        yield f"{layer}conv.pointwise_conv2.weight", (state, state), True
        yield f"{layer}conv.batch_norm.running_mean", (state,), False
        yield f"{layer}conv.batch_norm.running_var", (state,), False
        yield f"{layer}conv.batch_norm.num_batches_tracked", (), False
        for linear in ("linear_q", "linear_k", "linear_v", "linear_out", "linear_pos"):
            yield f"{layer}self_attn.{linear}.weight", (state, state), True
        for bias in ("pos_bias_u", "pos_bias_v"):
            yield f"{layer}self_attn.{bias}", (shape.heads, state // shape.heads), False
    yield "decoder.prediction.embed.weight", (shape.vocab + 1, pred), True
    for i in range(shape.pred_layers):
        lstm = "decoder.prediction.dec_rnn.lstm."
        yield f"{lstm}weight_ih_l{i}", (4 * pred, pred), True
        yield f"{lstm}weight_hh_l{i}", (4 * pred, pred), True
        yield f"{lstm}bias_h_l{i}", (4 * pred,), False
    outputs = shape.vocab + 1 + len(shape.durations)
    yield "joint.pred.weight", (pred, pred), True
    yield "joint.pred.bias", (pred,), False
    yield "joint.enc.weight", (pred, state), True
    yield "joint.enc.bias", (pred,), False
    yield "joint.joint_net.2.weight", (outputs, pred), True
    yield "joint.joint_net.2.bias", (outputs,), False


def write_tensor(out, name, dims, kind, data):
    out.write(struct.pack("<3i", len(dims), len(name), kind))
    out.write(struct.pack(f"<{len(dims)}i", *reversed(dims)) + name.encode())
    out.write(data)


def random_weights(rng, name, dims):
    if name.endswith(("running_var", "num_batches_tracked")):
        return np.ones(dims)
    if "norm" in name and name.endswith("weight"):
        return 1 + 0.1 * rng.standard_normal(dims)
    fan_in = dims[-1] if len(dims) == 2 else max(1, int(np.prod(dims[1:])))
    return rng.standard_normal(dims) / np.sqrt(fan_in)


def script_weights(shape, hearing):
    """Makes the tensors that tell the script; positions are 0 for the start, then one for each token of it."""
    positions = shape.pred
    embed = np.zeros((shape.vocab + 1, positions))
    embed[shape.vocab, 0] = 1  # the decoder starts from the blank
    for position, (token, _) in enumerate(script_tokens(), 1):
        embed[token, position] = 1
    take_input = np.zeros((4 * positions, positions))
    take_input[3 * positions :] = 8 * np.eye(positions)
    gates = np.repeat([20.0, -20.0, 20.0, 0.0], positions)  # input, forget, output, cell
    net = np.zeros((shape.vocab + 1 + len(shape.durations), positions))
    blank, rival = shape.vocab, 0
    following = [*script_tokens(), (blank, 4)]
    for position, (token, duration) in enumerate(following):
        net[token, position] = NEXT
        net[rival if token != rival else blank, position] = RIVAL
        net[blank + 1 + shape.durations.index(duration), position] = 2.625
    bias = np.zeros(len(net))
    bias[blank + 1 :] = DURATIONS_LOGIT
    lstm = "decoder.prediction.dec_rnn.lstm."
    return {
        "decoder.prediction.embed.weight": embed,
        f"{lstm}weight_ih_l0": take_input,
        f"{lstm}weight_hh_l0": np.zeros_like(take_input),
        f"{lstm}bias_h_l0": gates,
        "joint.pred.weight": np.eye(positions),
        "joint.pred.bias": np.zeros(positions),
        "joint.enc.weight": hearing,
        "joint.enc.bias": np.zeros(positions),
        "joint.joint_net.2.weight": net,
        "joint.joint_net.2.bias": bias,
    }


def script_tokens():
    """Each position has a token of its own, so that a piece may be said twice. Token 0 is <unk>, 1 is never said."""
    return [(i + 2, duration) for i, (_, duration) in enumerate(SCRIPT)]


def triangles(mels, bins):
    peaks = np.linspace(0, bins - 1, mels + 2)
    at = np.arange(bins)
    return np.array([np.interp(at, peaks[i : i + 3], [0, 1, 0]) for i in range(mels)])


def slaney(mels, bins):
    """Computes the filters of NeMo (librosa's): equal steps up to 1 kHz, then equal ratios; each of the same area."""
    hz = lambda mel: np.where(mel < 15, 200 / 3 * mel, 1000 * np.exp(np.log(6.4) / 27 * (mel - 15)))  # noqa: E731
    peaks = hz(np.linspace(0, 15 + 27 * np.log(8) / np.log(6.4), mels + 2))
    at = np.linspace(0, 8000, bins)
    return np.array([np.interp(at, peaks[i : i + 3], [0, 1, 0]) * 2 / (peaks[i + 2] - peaks[i]) for i in range(mels)])


def generate(path, seed, random, wide):
    rng = np.random.default_rng(seed)
    shape = Shape()
    pieces = ["<unk>", "<|never|>", *(piece.replace("_", SPACE) for piece, _ in SCRIPT)]
    shape.vocab = len(pieces)
    shape.pred = len(SCRIPT) + 1
    if random:
        shape.state, shape.heads, shape.mels, shape.fft, shape.channels, shape.kernel = 64, 4, 32, 512, 256, 9
        shape.pred, shape.pred_layers, shape.durations = 48, 2, [0, 1, 2, 3, 4]
    if wide:
        shape.state, shape.pred = 32, 32
    hearing = 0.0002 * rng.standard_normal((shape.pred, shape.state)) if wide else np.zeros((shape.pred, shape.state))
    known = {} if random else script_weights(shape, hearing)
    half = not random
    window = np.hanning(400 if random else shape.fft)
    with open(path, "wb") as out:
        filters = (slaney if random else triangles)(shape.mels, shape.fft // 2 + 1)
        write_header(out, shape, int(half), pieces, filters, window)
        for name, dims, weighty in tensor_shapes(shape):
            values = known.get(name, random_weights(rng, name, dims))
            as_half = half and weighty
            write_tensor(out, name, dims, int(as_half), np.asarray(values).astype("<f2" if as_half else "<f4").tobytes())


def generate_full(path):
    shape = Shape()
    shape.vocab, shape.state, shape.heads, shape.layers, shape.mels, shape.fft = 8192, 1024, 8, 24, 128, 512
    shape.channels, shape.kernel, shape.pred, shape.pred_layers, shape.durations = 256, 9, 640, 2, [0, 1, 2, 3, 4]
    pieces = ["<unk>", *(f"{SPACE}w{i}" for i in range(1, shape.vocab))]
    with open(path, "wb") as out:
        write_header(out, shape, 2000 + 7, pieces, slaney(shape.mels, 257), np.hanning(400))
        for name, dims, weighty in tensor_shapes(shape):
            count = int(np.prod(dims))
            if weighty:
                write_tensor(out, name, dims, Q8_0, bytes(count // BLOCK * BLOCK_BYTES))
                continue
            values = np.full(dims, 1.0 if name.endswith(("running_var", "num_batches_tracked")) else 0.0, "<f4")
            if name == "joint.joint_net.2.bias":  # a token of 4 frames, three a second as in speech
                values[5] = values[shape.vocab + 5] = 10
            write_tensor(out, name, dims, 0, values.tobytes())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes a Parakeet TDT model whose transcript is known")
    parser.add_argument("output")
    parser.add_argument("--random", type=int, metavar="SEED")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--wide", action="store_true")
    arguments = parser.parse_args()
    if arguments.full:
        generate_full(arguments.output)
    else:
        generate(arguments.output, arguments.random or 0, arguments.random is not None, arguments.wide)
