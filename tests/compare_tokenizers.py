#!/usr/bin/env python3
"""Koine's tokenizers against Hugging Face's: the same ids for the same text, and the same BPE learned from it.

    python3 tests/compare_tokenizers.py                    # the texts of this repository, and random ones
    python3 tests/compare_tokenizers.py FILE...

It is run by hand; it needs PyPI's tokenizers and build/lib/libkoine.so."""

import ctypes
import glob
import os
import random
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "support"))
from koine_ctypes import library_path  # noqa: E402

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = "<|endoftext|>"
VOCAB_SIZE = 2000


class Koine:
    def __init__(self):
        self.lib = ctypes.CDLL(library_path())
        for name in ("kn_tokenizer_load", "kn_bpe_train_with", "kn_tokenizer_decode_with"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.kn_error_message.restype = ctypes.c_char_p
        self.lib.kn_tokenizer_vocab_size.restype = ctypes.c_int64

    def check(self, fine):
        if not fine:
            raise SystemExit(self.lib.kn_error_message().decode())

    def load(self, path):
        made = self.lib.kn_tokenizer_load(path.encode())
        self.check(made)
        return ctypes.c_void_p(made)

    def encode(self, tokenizer, text):
        data, ids, count = text.encode(), ctypes.POINTER(ctypes.c_int64)(), ctypes.c_int64()
        self.check(self.lib.kn_tokenizer_encode(tokenizer, data, ctypes.c_size_t(len(data)), ctypes.byref(ids),
                                                ctypes.byref(count)) == 0)
        found = ids[:count.value]
        self.lib.kn_free(ids)
        return found

    def decode(self, tokenizer, ids):
        class DecodeParams(ctypes.Structure):
            _fields_ = [("skip_special_tokens", ctypes.c_bool), ("length", ctypes.POINTER(ctypes.c_size_t))]
        length, array = ctypes.c_size_t(), (ctypes.c_int64 * len(ids))(*ids)
        text = self.lib.kn_tokenizer_decode_with(tokenizer, array, ctypes.c_int64(len(ids)),
                                                 ctypes.byref(DecodeParams(False, ctypes.pointer(length))))
        self.check(text)
        found = ctypes.string_at(text, length.value)
        self.lib.kn_free(ctypes.c_void_p(text))
        return found

    def train(self, text, path):
        class BpeParams(ctypes.Structure):
            _fields_ = [("special_tokens", ctypes.POINTER(ctypes.c_char_p)), ("min_frequency", ctypes.c_int64)]
        data, names = text.encode(), (ctypes.c_char_p * 2)(SPECIAL.encode(), None)
        made = self.lib.kn_bpe_train_with(data, ctypes.c_size_t(len(data)), ctypes.c_int64(VOCAB_SIZE),
                                          ctypes.byref(BpeParams(names, 2)))
        self.check(made)
        self.check(self.lib.kn_tokenizer_save(ctypes.c_void_p(made), path.encode()) == 0)
        self.lib.kn_tokenizer_free(ctypes.c_void_p(made))


def byte_level(prefix=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix)


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def trained(text, pre_tokenizer):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB_SIZE, min_frequency=2, special_tokens=[SPECIAL], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def random_texts(count):
    """Everything that the expressions tell apart, side by side."""
    draw = random.Random(0)
    pieces = [" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "'s", "'LL", "'", "don't", "I'M", "a", "Zz", "é",
              "日本", "ʰ", "1", "23456", "½", "Ⅷ", "٣", "!", "...", "€", "\U0001f600", "\u200d", "\u0301", "_", "-",
              "ſ", "'ſ", SPECIAL, "<b>", " <b> ", "<b> \n", "[x]", "\u0085", "\u2028", "\x00", "\x7f", "\ufeff"]
    return ["".join(draw.choice(pieces) for _ in range(draw.randrange(1, 30))) for _ in range(count)]


def all_characters():
    return ["".join(f"a{chr(code)}1 {chr(code)}" for code in range(base, base + 0x400)
                    if not 0xD800 <= code < 0xE000) for base in (*range(0, 0x20000, 0x400), 0x30000, 0xE0000)]


def compare(k, name, tokenizer, texts, folder):
    path = os.path.join(folder, "tokenizer.json")
    tokenizer.save(path)
    mine, saved = k.load(path), os.path.join(folder, "saved.json")
    k.check(k.lib.kn_tokenizer_save(mine, saved.encode()) == 0)
    again, other = k.load(saved), Tokenizer.from_file(saved)
    tokens = 0
    for text in texts:
        expected = tokenizer.encode(text, add_special_tokens=False).ids
        for which, found in (("", k.encode(mine, text)), ("saved: ", k.encode(again, text)),
                             ("saved, in Python: ", other.encode(text, add_special_tokens=False).ids)):
            if found != expected:
                at = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), -1)
                raise SystemExit(f"{name}: {which}other ids from token {at} of {text[:200]!r}: {found[at:at + 9]}, "
                                 f"expected {expected[at:at + 9]}")
        if not name.startswith("prefix") and k.decode(mine, expected) != text.encode() and "<b>" not in text:
            raise SystemExit(f"{name}: another text: {text[:200]!r}")
        tokens += len(expected)
    print(f"{name}: {len(texts)} texts, {tokens} tokens: the same ids", flush=True)
    for made in (mine, again):
        k.lib.kn_tokenizer_free(made)


def main():
    files = sys.argv[1:] or sorted(glob.glob(os.path.join(HERE, "..", "docs", "*.md")) +
                                   glob.glob(os.path.join(HERE, "..", "src", "data", "*.c")) +
                                   glob.glob("/usr/share/common-licenses/*"))
    texts = [open(path, encoding="utf-8", errors="replace", newline="").read() for path in files]
    corpus, k = "\n".join(texts), Koine()
    with tempfile.TemporaryDirectory() as folder:
        gpt2 = trained(corpus, byte_level())
        path = os.path.join(folder, "mine.json")
        k.train(corpus, path)
        mine = Tokenizer.from_file(path)
        if mine.get_vocab() != gpt2.get_vocab():
            ours, theirs = mine.get_vocab(), gpt2.get_vocab()
            wrong = sorted((i, t) for t, i in theirs.items() if ours.get(t) != i)
            raise SystemExit(f"another vocabulary was learned: {len(ours)} and {len(theirs)}, {wrong[:5]}")
        print(f"learned: {len(gpt2.get_vocab())} tokens, the same")
        strange = random_texts(1000)
        compare(k, "GPT-2", gpt2, texts + strange + all_characters(), folder)
        compare(k, "Llama 3", trained(corpus, split(LLAMA3)), texts + strange + all_characters(), folder)
        compare(k, "Qwen", trained(corpus, split(LLAMA3.replace("{1,3}", ""))), texts + strange, folder)
        compare(k, "prefix space", trained(corpus, byte_level(True)), texts + strange, folder)
        gpt2.add_tokens([AddedToken("<b>", lstrip=True, rstrip=True, normalized=False), AddedToken("[x]")])
        compare(k, "added tokens", gpt2, strange, folder)


if __name__ == "__main__":
    main()
