#!/usr/bin/env python3
"""Structs that Python files describe for ctypes have the headers' fields, in their order:
ctypes_structs.py INCLUDE FILE..."""
import ast
import pathlib
import re
import sys

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
STRUCT = re.compile(r'typedef struct (\w+) \{(.*?)\n\} \1;', re.S)


def field(declarator):
    """The name in `*const *tensors`, `values[3]` or `(*destroy)(void *self)`."""
    pointer = re.search(r'\(\*(\w+)\)', declarator)
    return pointer[1] if pointer else re.search(r'(\w+)\s*(\[[^]]*\])*\s*$', declarator)[1]


def structs_of(headers):
    """A dictionary of the structs' fields: {'kn_scalar': ['is_whole', 'whole', 'real']}."""
    structs = {}
    for header in headers:
        for name, body in STRUCT.findall(COMMENT.sub('', header.read_text())):
            declarations = [line.strip() for line in body.split(';') if line.strip()]
            structs[name] = [field(d) for line in declarations
                             for d in ([line] if '(' in line else line.split(','))]
    return structs


def described_in(file):
    """The ctypes structures of a Python file: pairs of a class name and its fields."""
    for node in ast.walk(ast.parse(file.read_text())):
        for statement in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == '_fields_':
                yield node.name, [ast.literal_eval(pair.elts[0]) for pair in statement.value.elts]


def main():
    structs, wrong = structs_of(sorted(pathlib.Path(sys.argv[1]).rglob('*.h'))), 0
    for file in map(pathlib.Path, sys.argv[2:]):
        for name, fields in described_in(file):
            ending = re.sub(r'(?<!^)([A-Z])', r'_\1', name).lower()
            named = {s: f for s, f in structs.items() if re.fullmatch(rf'kn_(\w+_)?{ending}(_params)?', s)}
            if fields not in named.values():
                print(f'{file}: {name} has the fields {fields}, which are those of none of {named or "the structs"}')
                wrong += 1
    sys.exit(wrong > 0)


if __name__ == '__main__':
    main()
