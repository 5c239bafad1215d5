"""Writes a Parakeet file of whisper.cpp as transcribe.cpp reads it: parakeet_gguf.py IN.bin OUT.gguf

The values stay as they are, but for quantized kernels of convolutions, which transcribe.cpp has as halves. It computes
the mel filters and the window by itself, so the file must have those of NeMo (slaney's, and a symmetric Hann window).
"""

import struct
import sys

import gguf
import numpy as np

NAMES = {
    "encoder.layers.": "enc.blocks.", "encoder.pre_encode": "enc.pre_encode", "norm_feed_forward": "norm_ff",
    "norm_self_att": "norm_attn", "feed_forward": "ff", "self_attn.": "attn.", "pointwise_conv": "pointwise",
    "depthwise_conv": "depthwise", "batch_norm": "bn", "decoder.prediction.embed": "pred.embed",
    "joint.joint_net.2": "joint.out",
}  # fmt: skip
LSTM = "decoder.prediction.dec_rnn.lstm."
LSTM_PARTS = {"weight_ih": "Wx", "weight_hh": "Wh", "bias_h": "bias"}


def tensor_name(name):
    if name.startswith(LSTM):
        part, layer = name[len(LSTM) :].rsplit("_l", 1)
        return f"pred.lstm.{layer}.{LSTM_PARTS[part]}"
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


class Reader:
    def __init__(self, path):
        self.bytes, self.at = np.memmap(path, dtype=np.uint8, mode="r"), 0

    def take(self, count):
        self.at += count
        return self.bytes[self.at - count : self.at]

    def ints(self, count):
        return struct.unpack(f"<{count}i", self.take(4 * count).tobytes())

    def tensors(self):
        while self.at < len(self.bytes):
            extents, length, kind = self.ints(3)
            shape = self.ints(extents)[::-1]
            name = self.take(length).tobytes().decode()
            kind = gguf.GGMLQuantizationType(kind)
            block, size = gguf.GGML_QUANT_SIZES[kind]
            yield name, shape, kind, self.take(int(np.prod(shape)) // block * size)


def add(writer, name, shape, kind, data):
    if "lstm" in name:  # the output gate stands before the cell there, and behind it here
        inputs, forget, output, cell = np.split(data, 4)
        data = np.concatenate([inputs, forget, cell, output])
    squeezed = [extent for extent in shape if extent != 1]
    if name.endswith("bias") or len(shape) == 4 and len(squeezed) == 1:
        shape = squeezed
    if "pointwise" in name or "depthwise" in name:
        shape = (shape[0], 1, shape[1]) if "depthwise" in name else (*shape, 1)
    floats = {gguf.GGMLQuantizationType.F32: np.float32, gguf.GGMLQuantizationType.F16: np.float16}
    if kind in floats:
        writer.add_tensor(name, data.view(floats[kind]).reshape(shape))
    elif "pointwise" in name:
        writer.add_tensor(name, gguf.quants.dequantize(data, kind).astype(np.float16).reshape(shape))
    else:
        writer.add_tensor(name, data.reshape(shape[0], -1), raw_dtype=kind)


def convert(source, target):
    reader = Reader(source)
    reader.ints(1)
    (vocabulary, context, state, heads, layers, mels, _, fft, subsampling, channels, kernel, pred, pred_layers,
     durations, most_symbols) = reader.ints(15)  # fmt: skip
    reader.take(4 * int(np.prod(reader.ints(2))))
    window = reader.ints(1)[0]
    reader.take(4 * window)
    steps = list(reader.ints(durations))
    pieces = [reader.take(reader.ints(1)[0]).tobytes().decode() for _ in range(reader.ints(1)[0])]

    writer = gguf.GGUFWriter(target, "parakeet")
    writer.add_string("stt.variant", "tdt-0.6b-v3")
    writer.add_array("general.languages", ["en"])
    writer.add_string("stt.parakeet.head_kind", "tdt")
    writer.add_string("tokenizer.ggml.model", "bpe")
    writer.add_array("tokenizer.ggml.tokens", [*pieces, "<blank>"])
    writer.add_array("tokenizer.ggml.scores", [0.0] * (vocabulary + 1))
    writer.add_array("tokenizer.ggml.token_type", [2, *[1] * (vocabulary - 1), 3])
    writer.add_uint32("tokenizer.ggml.unknown_token_id", 0)
    writer.add_uint32("tokenizer.ggml.blank_token_id", vocabulary)
    encoder = dict(n_layers=layers, d_model=state, n_heads=heads, d_ff=4 * state, conv_kernel=kernel,
                   subsampling_factor=subsampling, subsampling_channels=channels, pos_emb_max_len=context)  # fmt: skip
    for key, value in encoder.items():
        writer.add_uint32(f"stt.parakeet.encoder.{key}", value)
    writer.add_bool("stt.parakeet.encoder.use_bias", False)
    for key, value in dict(hidden=pred, n_layers=pred_layers, vocab=vocabulary + 1).items():
        writer.add_uint32(f"stt.parakeet.predictor.{key}", value)
    writer.add_uint32("stt.parakeet.joint.hidden", pred)
    writer.add_uint32("stt.parakeet.joint.num_extra_outputs", durations)
    writer.add_string("stt.parakeet.joint.activation", "relu")
    writer.add_array("stt.parakeet.tdt.durations", steps)
    writer.add_uint32("stt.parakeet.tdt.max_symbols", most_symbols)
    for key, value in dict(type="mel", window="hann", normalize="per_feature").items():
        writer.add_string(f"stt.frontend.{key}", value)
    numbers = dict(num_mels=mels, sample_rate=16000, n_fft=fft, win_length=window, hop_length=160)
    for key, value in numbers.items():
        writer.add_uint32(f"stt.frontend.{key}", value)
    for key, value in dict(dither=0.0, pre_emphasis=0.97, f_min=0.0, f_max=8000.0).items():
        writer.add_float32(f"stt.frontend.{key}", value)
    for name, shape, kind, data in reader.tensors():
        if not name.endswith("num_batches_tracked"):
            add(writer, tensor_name(name), shape, kind, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    convert(*sys.argv[1:])
