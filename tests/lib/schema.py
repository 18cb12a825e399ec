# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports of --json: parsed with their order of keys, and held against the schema that is installed."""
import copy
import json
import os
import sys

import tools
from tap import Failure, Skip

FILE = os.path.join(tools.SRCDIR, 'schema', 'erofs-tools-1.schema.json')
# Another Python than Debian's has no modules of Debian's packages; these are plain Python.
DEBIAN = '/usr/lib/python3/dist-packages'
ORDER = ('schema tool version image image_base64 result exit superblock data_checked check extract build verify '
         'differences statistics inode entries extents findings findings_dropped skipped times engine').split()
_validators = {}


def library():
    try:
        import jsonschema
    except ImportError:
        sys.path.append(DEBIAN)
        try:
            import jsonschema
        except ImportError:
            raise Skip('no Python module jsonschema (Debian: python3-jsonschema)')
        finally:
            sys.path.remove(DEBIAN)
    return jsonschema


def raw():
    with open(FILE, encoding='utf-8') as file:
        return json.load(file)


def _close(node):
    """New keys may appear for readers; here each one must be in the schema."""
    if isinstance(node, dict):
        if 'properties' in node:
            node['additionalProperties'] = False
        for value in node.values():
            _close(value)
    elif isinstance(node, list):
        for value in node:
            _close(value)
    return node


def _validator(part):
    if part not in _validators:
        module = library()
        closed = _close(copy.deepcopy(raw()))
        if part:
            closed = {'$schema': closed['$schema'], '$ref': '#/$defs/' + part, '$defs': closed['$defs']}
        _validators[part] = module.Draft202012Validator(closed)
    return _validators[part]


def valid(value, part=''):
    faults = [f for f in _validator(part).iter_errors(value)]
    if faults:
        raise Failure('\n'.join('%s: %s' % ('/'.join(map(str, f.absolute_path)), f.message[:300])
                                for f in faults[:5]))


def parse(data):
    """An object of strict JSON: UTF-8, no key twice."""
    def unique(pairs):
        keys = [k for k, _ in pairs]
        if len(set(keys)) != len(keys):
            raise Failure('a key stands twice: %s' % keys)
        return dict(pairs)

    def refuse(word):
        raise Failure('no JSON: ' + word)

    return json.loads(data.decode('utf-8'), object_pairs_hook=unique, parse_constant=refuse)


def report(data):
    """The one report that data is; its keys are in order."""
    if not data.endswith(b'\n'):
        raise Failure('no newline at the end: %r' % data[-80:])
    value = parse(data)
    keys = list(value)
    if keys != [k for k in ORDER if k in value]:
        raise Failure('order of keys: %s' % keys)
    valid(value, 'report')
    return value


def stream(data):
    """Entries and report of a stream."""
    lines = data.split(b'\n')
    if lines.pop() != b'':
        raise Failure('no newline at the end')
    entries = [parse(line) for line in lines[:-1]]
    for entry in entries:
        valid(entry, 'entry')
    return entries, report(lines[-1] + b'\n')
