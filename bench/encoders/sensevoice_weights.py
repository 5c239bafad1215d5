"""Writes a SenseVoice file of the published size with random weights in q8_0: sensevoice_weights.py SMALL.gguf OUT.gguf

SMALL is a file of the same format, of which the keys are taken. Needs numpy and gguf.
"""

import sys

import gguf
import numpy as np

BLOCKS, TP_BLOCKS, WIDTH, INPUT, HIDDEN, KERNEL, VOCABULARY = 50, 20, 512, 560, 2048, 11, 25055
SIZES = {"n_blocks": BLOCKS, "tp_blocks": TP_BLOCKS, "d_model": WIDTH, "d_input": INPUT, "n_heads": 4, "d_ff": HIDDEN}
STACKED = {"lfr_m": 7, "lfr_n": 6}
F16, Q8_0 = gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.Q8_0

small, target = gguf.GGUFReader(sys.argv[1]), sys.argv[2]
generator = np.random.default_rng(1)
writer = gguf.GGUFWriter(target, "sensevoice")


def add(name, *shape, deviation=None, center=0.0):
    if len(shape) == 1:
        spread = 0.2 if deviation is None else deviation
        return writer.add_tensor(name, (center + spread * generator.standard_normal(shape)).astype(np.float32))
    values = (generator.standard_normal(shape, np.float32) / np.sqrt(shape[-1])).astype(np.float32)
    kind = Q8_0 if shape[-1] % 32 == 0 else F16
    return writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)


def linear(name, out, into):
    add(f"{name}.weight", out, into)
    add(f"{name}.bias", out)


def norm(name, width):
    add(f"{name}.weight", width, center=1.0)
    add(f"{name}.bias", width)


def block(name, into):
    norm(f"{name}.norm_attn", into)
    linear(f"{name}.attn.qkv", 3 * WIDTH, into)
    linear(f"{name}.attn.out", WIDTH, WIDTH)
    add(f"{name}.attn.fsmn.weight", WIDTH, 1, KERNEL)
    norm(f"{name}.norm_ffn", WIDTH)
    linear(f"{name}.ffn.fc1", HIDDEN, WIDTH)
    linear(f"{name}.ffn.fc2", WIDTH, HIDDEN)


def vocabulary():
    pieces = list(small.fields["tokenizer.ggml.tokens"].contents())
    kinds = list(small.fields["tokenizer.ggml.token_type"].contents())
    missing = VOCABULARY - len(pieces)
    return pieces + [f"▁n{i}" for i in range(missing)], kinds + [1] * missing


pieces, kinds = vocabulary()
for key, field in small.fields.items():
    name = key.rsplit(".", 1)[-1]
    if key.startswith("GGUF.") or key == "general.architecture":
        continue
    value = {**SIZES, **STACKED}.get(name, field.contents())
    if key.startswith("tokenizer.ggml.") and isinstance(value, list):
        value = {"tokens": pieces, "token_type": kinds, "scores": [0.0] * VOCABULARY}[name]
        writer.add_array(key, value)
    else:
        writer.add_key_value(key, value, field.types[0])

add("frontend.cmvn.shift", INPUT, deviation=1.0, center=-11.0)
add("frontend.cmvn.scale", INPUT, deviation=0.02, center=0.2)
writer.add_tensor("enc.embed.weight", generator.standard_normal((16, INPUT), np.float32))
block("enc.encoders0.0", INPUT)
for i in range(BLOCKS - 1):
    block(f"enc.encoders.{i}", WIDTH)
norm("enc.after_norm", WIDTH)
for i in range(TP_BLOCKS):
    block(f"enc.tp_encoders.{i}", WIDTH)
norm("enc.tp_norm", WIDTH)
linear("ctc.head", VOCABULARY, WIDTH)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
