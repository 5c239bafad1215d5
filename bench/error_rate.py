"""Word errors behind JSON lines.

    {"references": [TEXT, ...], "hypotheses": [TEXT, ...], "english": true}
        -> {"rate": 0.02, "pairs": [{"errors": 1, "words": 50, "wrong": ["ill-sposed for ill-disposed"]}, ...]}

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
    return re.sub(r"(?<=\d)(?=\d)", " ", NORMALIZERS[english](text)).strip()


def differences(reference, hypothesis, alignment):
    for part in alignment:
        if part.type == "equal":
            continue
        heard = " ".join(hypothesis[part.hyp_start_idx : part.hyp_end_idx])
        said = " ".join(reference[part.ref_start_idx : part.ref_end_idx])
        yield f"{heard or '-'} for {said or '-'}"


def rate(references, hypotheses):
    output = jiwer.process_words(references, hypotheses)
    pairs = []
    for reference, hypothesis, alignment in zip(output.references, output.hypotheses, output.alignments):
        steps = [part for part in alignment if part.type != "equal"]
        errors = sum(
            max(part.ref_end_idx - part.ref_start_idx, part.hyp_end_idx - part.hyp_start_idx) for part in steps
        )
        wrong = list(differences(reference, hypothesis, alignment))
        pairs.append({"errors": errors, "words": len(reference), "wrong": wrong})
    return {"rate": output.wer, "pairs": pairs}


print("{}", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    sides = ([normalize(text, request["english"]) for text in request[side]] for side in ("references", "hypotheses"))
    print(json.dumps(rate(*sides)), flush=True)
