#!/usr/bin/env python3
"""Writes src/data/text/unicode_ranges.c: the letters and numbers of Unicode, for tokenizers' regular expressions.

    python3 tools/unicode_classes.py        # needs PyPI's `tokenizers`: the classes are those of its expressions
"""

import os

from tokenizers import Regex, pre_tokenizers

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "data", "text", "unicode_ranges.c")
HEAD = ("/* data/text/unicode_ranges.c - written by tools/unicode_classes.py: the code points of Unicode's general "
        "categories L\n"
        " * (letters) and N (numbers), as ranges {first, last}. */\n"
        '#include "data/text/unicode.h"\n'
        "\n")


def members(category):
    splitter = pre_tokenizers.Split(Regex(r"\p{%s}" % category), "removed", invert=True)
    text = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    return sorted(ord(letter) for piece, _ in splitter.pre_tokenize_str(text) for letter in piece)


def ranges(category):
    found = []
    for code in members(category):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def table(name, category):
    lines, line = [], "   "
    found = ranges(category)
    for first, last in found:
        entry = " {0x%x, 0x%x}," % (first, last)
        if len(line + entry) > 120:
            lines.append(line)
            line = "   "
        line += entry
    lines.append(line)
    return "const kn_code_range kn_%s[] = {\n%s\n};\nconst int kn_%s_count = %d;\n" % (
        name, "\n".join(lines), name, len(found))


with open(PATH, "w", encoding="ascii") as file:
    file.write(HEAD + "/* clang-format off */\n" + table("unicode_letters", "L") + "\n" +
               table("unicode_numbers", "N") + "/* clang-format on */\n")
