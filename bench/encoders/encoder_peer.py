"""Times an encoder of encoder_models.py in onnxruntime: encoder_peer.py MODEL THREADS WIDTH

    {"frames": 501} -> {"wall": ..., "cpu": ...}, the wall and processor time of one run, in ms
"""
import sys
import time

import numpy as np
import onnxruntime
from json_lines import answer_lines

path, threads, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
# Threads that spin between two operations cost a shared machine more than they save.
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def answer(request):
    frames = np.random.default_rng(1).standard_normal((1, request["frames"], width), dtype=np.float32)
    wall, cpu = time.perf_counter(), time.process_time()
    session.run(None, {"input": frames})
    return {"wall": (time.perf_counter() - wall) * 1e3, "cpu": (time.process_time() - cpu) * 1e3}


answer_lines(["onnxruntime"], answer)
