"""Word error rates behind JSON lines.

    {"references": [TEXT, ...], "hypotheses": [TEXT, ...], "english": true} -> {"rate": 0.02}

The rate is one over all pairs. Both sides are normalized as for Whisper's own evaluation, and then every digit counts
as a word: whether "two nine three" is written 293 or 2, 9, 3 is not an error of recognition.
"""

import json
import re
import sys

import jiwer
from whisper_normalizer.basic import BasicTextNormalizer
from whisper_normalizer.english import EnglishTextNormalizer

NORMALIZERS = {True: EnglishTextNormalizer(), False: BasicTextNormalizer()}


def normalize(text, english):
    return re.sub(r"(?<=\d)(?=\d)", " ", NORMALIZERS[english](text))


print("{}", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    pairs = [[normalize(text, request["english"]) for text in request[side]] for side in ("references", "hypotheses")]
    print(json.dumps({"rate": jiwer.wer(*pairs)}), flush=True)
