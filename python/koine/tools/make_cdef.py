#!/usr/bin/env python3
"""Writes koine/_cdef.py, the C declarations of the public headers in cffi's out-of-line form.

    python3 make_cdef.py OUTPUT INCLUDE_FOLDER...           # the folders that contain koine/

The compiler ($CC or cc) expands the macros of <koine/koine.h>; of its output the declarations of Koine's own headers
are kept. Importing the result takes a few milliseconds and needs neither a compiler nor pycparser."""
import os
import re
import subprocess
import sys

import cffi


def expanded(folders):
    """What the compiler's preprocessor makes of koine.h, without the text of other libraries' headers."""
    command = [os.environ.get('CC', 'cc'), '-E', '-x', 'c', '-std=c11', '-DKOINE_STATIC', '-D__attribute__(x)=', '-']
    command += ['-I' + folder for folder in folders]
    out = subprocess.run(command, input='#include <koine/koine.h>\n', check=True, capture_output=True, text=True).stdout
    lines, wanted = [], False
    for line in out.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            wanted = '/koine/' in marker.group(1)
        elif wanted:
            lines.append(line)
    return '\n'.join(lines)


def without_bodies(text):
    """Without inline functions, which no library exports."""
    out, place = [], 0
    for start in re.finditer(r'^static inline\b', text, re.MULTILINE):
        out.append(text[place:start.start()])
        end, depth = text.index('{', start.end()), 0
        while True:
            depth += {'{': 1, '}': -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        place = end
    return ''.join(out) + text[place:]


def declarations(folders):
    return re.sub(r'\n\s*\n+', '\n', without_bodies(expanded(folders)))


def main():
    output, folders = sys.argv[1], sys.argv[2:]
    ffi = cffi.FFI()
    ffi.set_source('koine._cdef', None)
    ffi.cdef(declarations(folders))
    ffi.emit_python_code(output)  # leaves an equal file as it is


if __name__ == '__main__':
    main()
