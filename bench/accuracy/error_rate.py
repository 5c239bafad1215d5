"""Word errors behind JSON lines.

    {"sentences": [{"text": TEXT, "language": "ru"}, ...], "hypothesis": TEXT}
        -> {"pairs": [{"errors": 1, "words": 50, "wrong": ["ill-sposed for ill-disposed"]}, one for each sentence]}

What was heard of several sentences is cut where the words of one end, so that each is counted in the spelling of its
own language. Both sides are normalized as for Whisper's own evaluation. After that no way of writing a number is an
error of recognition: the English normalizer writes digits, and every digit counts as a word, so that "two nine three",
293 and 2, 9, 3 are the same. Whisper has no such normalizer for other languages, where each digit becomes its word
instead.
"""

import functools
import re

import jiwer
from json_lines import answer_lines
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


def errors(sentence, heard):
    sides = (normalize(text, sentence["language"]) for text in (sentence["text"], heard))
    output = jiwer.process_words(*([side] for side in sides))
    (reference,), (hypothesis,), (alignment,) = output.references, output.hypotheses, output.alignments
    counts = (max(part.ref_end_idx - part.ref_start_idx, part.hyp_end_idx - part.hyp_start_idx) for part in alignment
              if part.type != "equal")  # fmt: skip
    wrong = list(differences(reference, hypothesis, alignment))
    return {"errors": sum(counts), "words": len(reference), "wrong": wrong}


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


def answer(request):
    sentences = request["sentences"]
    parts = cut([sentence["text"] for sentence in sentences], request["hypothesis"])
    return {"pairs": [errors(*pair) for pair in zip(sentences, parts)]}


answer_lines((), answer)
