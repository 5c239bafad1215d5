"""Times an encoder of encoder_models.py in onnxruntime: encoder_peer.py MODEL THREADS WIDTH

Each line on standard input is a number of frames; the answer is the wall and processor time of one run, in ms.
"""
import json
import sys
import time

import numpy as np
import onnxruntime

path, threads, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
# Threads that spin between two operations cost a shared machine more than they save.
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
print(json.dumps({"version": onnxruntime.__version__}), flush=True)
for line in sys.stdin:
    frames = np.random.default_rng(1).standard_normal((1, int(line), width), dtype=np.float32)
    wall, cpu = time.perf_counter(), time.process_time()
    session.run(None, {"input": frames})
    print(json.dumps({"wall": (time.perf_counter() - wall) * 1e3, "cpu": (time.process_time() - cpu) * 1e3}), flush=True)
