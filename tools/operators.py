#!/usr/bin/env python3
"""Prints docs/operators.md: the operators with PyTorch's names and their tests,
and PyTorch's names without a counterpart.

    python3 tools/operators.py build/bin/koine > docs/operators.md
    python3 tools/operators.py build/bin/koine --check            # is the page current?

It reads the operators from the program, Koine's names from include/, PyTorch's from tools/torch_names.txt, and from
tools/torch_map.txt what names alone do not tell."""
import fnmatch
import glob
import json
import os
import re
import struct
import subprocess
import sys
import textwrap

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PREFIXES = {
    'torch.nn': ('kn_nn_',),
    'torch.nn.functional': ('kn_',),
    'torch.nn.init': ('kn_init_',),
    'torch.nn.utils': ('kn_', 'kn_nn_', 'kn_nn_utils_'),
    'torch.optim': ('kn_optim_',),
    'torch.optim.lr_scheduler': ('kn_',),
    'torch.Tensor': ('kn_', 'kn_tensor_', 'kn_linalg_'),
    'torch': ('kn_', 'kn_linalg_'),
    'torch.linalg': ('kn_linalg_', 'kn_'),
    'torch.special': ('kn_',),
}


def read(*path):
    with open(os.path.join(TREE, *path), encoding='utf-8') as file:
        return file.read()


def files(*pattern):
    return sorted(glob.glob(os.path.join(TREE, *pattern)))


# --- names ------------------------------------------------------------------------------------------------------------


def plain(name):
    """Without capitals and underscores, except one at the end, which means "in place"."""
    return name.lower().replace('_', '') + ('_' if name.endswith('_') else '')


def declared_names():
    """Functions and macros of the public headers, by their plain names."""
    names = {}
    for path in files('include', 'koine', '*.h') + files('include', 'koine', 'nn', '*.h'):
        for name in re.findall(r'\b(kn_[a-z0-9_]+)\(', read(path)):
            names.setdefault(plain(name), name)
    return names


def torch_names():
    """{"torch.nn": [names], ...}"""
    sections, section = {}, None
    for line in read('tools', 'torch_names.txt').splitlines():
        if line.startswith('['):
            section = sections.setdefault(line[1:-1], [])
        elif line and not line.startswith('#'):
            section.append(line)
    return sections


def read_map():
    """Counterparts {"torch.Tensor.absolute": "kn_abs"} and reasons [("torch.Tensor.*sparse*", "sparse tensors")]."""
    counterparts, reasons = {}, []
    for line in read('tools', 'torch_map.txt').splitlines():
        if line.startswith('#'):
            continue
        if ' = ' in line:
            name, _, counterpart = line.partition(' = ')
            counterparts[name.strip()] = counterpart.strip()
        elif ': ' in line:
            pattern, _, reason = line.partition(': ')
            reasons.append((pattern.strip(), reason.strip()))
    return counterparts, reasons


def counterpart(section, name, declared, counterparts):
    full = section + '.' + name
    if full in counterparts:
        return counterparts[full]
    return next((declared[plain(prefix + name)] for prefix in PREFIXES[section] if plain(prefix + name) in declared),
                None)


def missing_names(declared, counterparts, reasons):
    """{section: {reason: [names]}}, and how many names each section has."""
    missing, counts = {}, {}
    for section, names in torch_names().items():
        counts[section] = len(names)
        groups = missing.setdefault(section, {})
        for name in names:
            if counterpart(section, name, declared, counterparts):
                continue
            reason = next((r for p, r in reasons if fnmatch.fnmatchcase(section + '.' + name, p)), '')
            groups.setdefault(reason, []).append(name)
    return missing, counts


def check_map(declared, counterparts):
    """The map names functions that exist, and only names that PyTorch has."""
    known = {section + '.' + name for section, names in torch_names().items() for name in names}
    exact = set(declared.values())
    for name, found in counterparts.items():
        if name not in known:
            sys.exit('tools/torch_map.txt: PyTorch has no %s' % name)
        for word in re.findall(r'\bkn_[a-z0-9_]+', found):
            if word not in exact and not re.search(r'\b%s\b' % word, ALL_HEADERS):
                sys.exit('tools/torch_map.txt: %s: no header declares %s' % (name, word))


ALL_HEADERS = ''.join(read(path) for path in files('include', 'koine', '*.h') + files('include', 'koine', 'nn', '*.h'))

# --- the operators ----------------------------------------------------------------------------------------------------


def torch_name_of(operator, sections):
    if operator.endswith('_backward'):
        return ''
    if operator in sections['torch.nn.functional']:
        return 'F.' + operator
    if operator in sections['torch.Tensor']:
        return 'Tensor.' + operator if operator.endswith('_') else 'torch.' + operator
    if operator.startswith('linalg_'):
        return 'torch.linalg.' + operator[len('linalg_'):]
    base = re.sub(r'_(scalar|dim)(_?)$', r'\2', operator)
    if base != operator and base in sections['torch.Tensor']:
        return 'torch.' + base if not base.endswith('_') else 'Tensor.' + base
    return ''


def golden_operators():
    """{operator: golden files with cases of it}"""
    found = {}
    for path in files('tests', 'golden', '*.safetensors'):
        with open(path, 'rb') as file:
            header = json.loads(file.read(struct.unpack('<Q', file.read(8))[0]))
        stem = os.path.splitext(os.path.basename(path))[0]
        for text in header.get('__metadata__', {}).values():
            match = re.match(r'op(?:erator)?=(\w+)', text)
            if match:
                found.setdefault(match.group(1), set()).add(stem)
    return found


def row_operators():
    """{name: the table of rows that mentions it most}"""
    found = {}
    for path in files('tests', 'ops', 'rows_*.c'):
        stem = os.path.splitext(os.path.basename(path))[0]
        for word in re.findall(r'\b(?:kn_)?([a-z0-9_]+)\b', read(path)):
            times = found.setdefault(word, {})
            times[stem] = times.get(stem, 0) + 1
    return {word: max(sorted(times), key=times.get) for word, times in found.items()}


def tests_of(operator, rows, golden):
    if operator.endswith('_backward'):
        return 'test_backward_operators'
    places = ['golden ' + stem for stem in sorted(golden.get(operator, ()))[:1]]
    return ', '.join(([rows[operator]] if operator in rows else []) + places)


def operator_rows(program):
    page = subprocess.run([program, 'operators', '--markdown'], check=True, capture_output=True, text=True).stdout
    return [line for line in page.splitlines() if line.startswith('| `')]


# --- the page ---------------------------------------------------------------------------------------------------------

INTRODUCTION = '''\
# Operators

All operators of `kn_op_find` (`<koine/operators.h>`), and what PyTorch has that Koine has not. Made by
`python3 tools/operators.py build/bin/koine`.

The columns: PyTorch's name; the operator, which the function `kn_NAME` applies; its inputs (`?`: optional, `...`: a
list); parameters with defaults; outputs; the dtypes of the first input (floating: float64, float32, float16 and
bfloat16; numbers: also integers; all: also bool); whether it has no gradients, first gradients, or second gradients,
too (`kn_autograd_grad` with `create_graph`); whether it is a view or in place; the table in `tests/ops` with its rows
and the file in `tests/golden` with PyTorch's values.

| PyTorch | operator | inputs | parameters | outputs | dtypes | gradient | | tests |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
'''

MISSING = ('Names of PyTorch %s that Koine has not, found by comparing `tools/torch_names.txt` with the headers. '
           'In-place forms end with an underscore.')


def wrapped(text):
    return '\n'.join(textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)) + '\n'


def page(program):
    sections, declared = torch_names(), declared_names()
    counterparts, reasons = read_map()
    check_map(declared, counterparts)
    rows, golden = row_operators(), golden_operators()
    out = [INTRODUCTION]
    for line in operator_rows(program):
        operator = re.match(r'\| `(\w+)`', line).group(1)
        out.append('| %s %s %s |\n' % (torch_name_of(operator, sections), line.rstrip(),
                                       tests_of(operator, rows, golden)))
    version = re.search(r'PyTorch (\d[\d.]*\d)', read('tools', 'torch_names.txt')).group(1)
    out.append('\n## What has no counterpart\n\n' + wrapped(MISSING % version))
    missing, counts = missing_names(declared, counterparts, reasons)
    for section, groups in missing.items():
        count = sum(map(len, groups.values()))
        out.append('\n### `%s`: %d of %d\n' % (section, count, counts[section]))
        for reason, names in sorted(groups.items(), key=lambda item: (item[0] != '', item[0])):
            listed = ', '.join('`%s`' % name for name in names)
            out.append('\n' + wrapped((reason[0].upper() + reason[1:] + ': ' if reason else '') + listed + '.'))
    return ''.join(out)


def main():
    text = page(sys.argv[1])
    if '--check' not in sys.argv[2:]:
        sys.stdout.write(text)
    elif text != read('docs', 'operators.md'):
        sys.exit('docs/operators.md is not current: python3 tools/operators.py %s > docs/operators.md' % sys.argv[1])


if __name__ == '__main__':
    main()
