"""
Computes what Smart Turn v3.2 gives for pauses in speech, with onnxruntime and the published file.

  pip install onnx==1.23.2 onnxruntime==1.32.0 numpy
  pip download --no-deps pipecat-ai==1.14.0 && unzip pipecat_ai-1.14.0-*.whl 'pipecat/audio/turn/smart_turn/*' -d PIPECAT
  node --import tsx test/native/turn-windows.ts WINDOWS
  python test/native/generate-turns.py PIPECAT WINDOWS test/native/data/turns.json

The published graph rounds weights to 8 bits, and the values between the layers as well. The gateway computes with the
weights of the file and does not round the values, so the graph is computed here without these roundings, and without
onnxruntime's optimizations, which would round them again. How far the published graph is away from that is printed,
and how far it is away from itself without the optimizations.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

SAMPLES = 128000


def unrounded(model):
    """The graph without the pairs of nodes that round a value to 8 bits and back."""
    constants = {tensor.name for tensor in model.graph.initializer}
    same, kept = {}, []
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" or (node.op_type == "DequantizeLinear" and node.input[0] not in constants):
            same[node.output[0]] = node.input[0]
        else:
            kept.append(node)
    for node in kept:
        for i, name in enumerate(node.input):
            while name in same:
                name = same[name]
            node.input[i] = name
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model.SerializeToString()


def session(model, optimized):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    computing = onnxruntime.InferenceSession(model, options)
    return lambda features: float(computing.run(None, {"input_features": features[None]})[0].ravel()[0])


package, windows, target = sys.argv[1:]
folder = Path(package) / "pipecat/audio/turn/smart_turn"
sys.path.insert(0, str(folder))
from _whisper_features import compute_whisper_log_mel_features  # noqa: E402

file = folder / "data/smart-turn-v3.2-cpu.onnx"
features = [compute_whisper_log_mel_features(w) for w in np.fromfile(windows, "<f4").reshape(-1, SAMPLES)]
compute = lambda run: np.array([run(window) for window in features])
exact = compute(session(unrounded(onnx.load(file)), False))
published, plain = compute(session(file.read_bytes(), True)), compute(session(file.read_bytes(), False))
Path(target).write_text(json.dumps([round(p, 6) for p in exact.tolist()], indent=2) + "\n")
for name, some, others in [("exact", published, exact), ("itself, not optimized", published, plain)]:
    apart = np.abs(some - others)
    other = np.count_nonzero((some > 0.5) != (others > 0.5))
    print(f"published to {name}: mean {apart.mean():.3f}, most {apart.max():.3f}, {other} other decisions of {len(some)}")
