"""Word errors behind JSON lines.

    {"references": [TEXT, ...], "hypotheses": [TEXT, ...], "language": "ru"}
        -> {"rate": 0.02, "pairs": [{"errors": 1, "words": 50, "wrong": ["ill-sposed for ill-disposed"]}, ...]}

    {"sentences": [{"text": TEXT, "language": "ru"}, ...], "hypothesis": TEXT} -> {"pairs": [one for each sentence]}

The rate is one over all pairs. What was heard of sentences in several languages is cut where the words of one end, so
that each is counted in the spelling of its own language. Both sides are normalized as for Whisper's own evaluation. After that no way of writing
a number is an error of recognition: the English normalizer writes digits, and every digit counts as a word, so that
"two nine three", 293 and 2, 9, 3 are the same. Whisper has no such normalizer for other languages, where each digit
becomes its word instead.
"""

import functools
import json
import re
import sys

import jiwer
from num2words import num2words
from rapidfuzz.distance import Levenshtein
from whisper_normalizer.basic import BasicTextNormalizer
from whisper_normalizer.english import EnglishTextNormalizer

BASIC = BasicTextNormalizer()
ENGLISH = EnglishTextNormalizer()


def normalize(text, language):
    if language == "en":
        return re.sub(r"(?<=\d)(?=\d)", " ", ENGLISH(text)).strip()
    return BASIC(re.sub(r"\d", lambda digit: f" {word_of(digit.group(), language)} ", BASIC(text))).strip()


@functools.cache
def word_of(digit, language):
    try:
        return num2words(int(digit), lang=language)
    except NotImplementedError:
        return digit


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


def cut(references, hypothesis):
    """What was heard of each reference, by one alignment of all words. A word between two belongs to the first."""
    heard = hypothesis.split()
    said = [(i, word) for i, reference in enumerate(references) for word in reference.split()]
    owner = [0] * len(heard)
    last = 0
    steps = Levenshtein.opcodes([BASIC(word) for _, word in said], [BASIC(word) for word in heard])
    for step in steps:
        for offset in range(step.dest_end - step.dest_start):
            if step.tag != "insert":
                last = said[step.src_start + offset][0]
            owner[step.dest_start + offset] = last
    return [" ".join(word for word, its in zip(heard, owner) if its == i) for i in range(len(references))]


def rate_sentences(sentences, hypothesis):
    references = [sentence["text"] for sentence in sentences]
    pairs = []
    for sentence, part in zip(sentences, cut(references, hypothesis)):
        sides = (normalize(text, sentence["language"]) for text in (sentence["text"], part))
        pairs += rate(*([side] for side in sides))["pairs"]
    return {"pairs": pairs}


def answer(request):
    if "sentences" in request:
        return rate_sentences(request["sentences"], request["hypothesis"])
    language = request["language"]
    return rate(*([normalize(text, language) for text in request[side]] for side in ("references", "hypotheses")))


print("{}", flush=True)
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
